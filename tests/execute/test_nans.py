"""The bits of NaNs, wherever a kernel can look at them, are the card's, although arithmetic mostly defers them."""

from __future__ import annotations

import numpy as np
import pytest

from ssmtool.execute import Module

CARD = 0x7FFFFFFF
PAYLOAD = 0x7FC12345
NEGATIVE = 0xFFC54321

HEAD = """.version 7.4
.target sm_37
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_2)
{{
.reg .pred %p<4>;
.reg .f32 %f<9>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.shared .align 4 .b8 tile[512];
ld.param.u64 %rd1, [k_param_0];
ld.param.u64 %rd2, [k_param_1];
ld.param.u32 %r1, [k_param_2];
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd3, %r2, 4;
add.s64 %rd1, %rd1, %rd3;
add.s64 %rd2, %rd2, %rd3;
ld.global.f32 %f1, [%rd1];
mov.u64 %rd4, tile;
add.s64 %rd4, %rd4, %rd3;
{body}
ret;
}}
"""


def run(body: str, inputs: list[int], scalar: int = 0, block: int = 32) -> list[int]:
    given = np.resize(np.array(inputs, np.uint32), block)
    out = np.zeros(block, np.uint32)
    Module(HEAD.format(body=body)).launch("k", 1, block, [given, out, scalar])
    return [int(each) for each in out[: len(inputs)]]


@pytest.mark.parametrize("block", [32, 128])
def test_a_copy_keeps_the_payload_and_arithmetic_does_not(block: int) -> None:
    assert run("st.global.f32 [%rd2], %f1;", [PAYLOAD, NEGATIVE], block=block) == [PAYLOAD, NEGATIVE]
    assert run("add.f32 %f2, %f1, %f1; st.global.f32 [%rd2], %f2;", [PAYLOAD, NEGATIVE], block=block) == [CARD, CARD]


LOOP = """
mov.u32 %r3, 0;
setp.ge.s32 %p1, %r3, %r1;
@%p1 bra END;
TOP:
add.f32 %f1, %f1, %f1;
add.s32 %r3, %r3, 1;
setp.lt.s32 %p1, %r3, %r1;
@%p1 bra TOP;
END:
st.global.f32 [%rd2], %f1;
"""


def test_a_register_that_is_loaded_or_computed_says_which() -> None:
    """The same store sees the loaded bits when the loop does not run, the card's when it does."""
    assert run(LOOP, [PAYLOAD, NEGATIVE], 0) == [PAYLOAD, NEGATIVE]
    assert run(LOOP, [PAYLOAD, NEGATIVE], 3) == [CARD, CARD]


def test_lanes_of_one_register_differ_in_where_their_nan_comes_from() -> None:
    body = """
    setp.lt.u32 %p1, %r2, 1;
    @%p1 add.f32 %f1, %f1, %f1;
    st.global.f32 [%rd2], %f1;
    """
    assert run(body, [PAYLOAD, NEGATIVE, 0x7F800001]) == [CARD, NEGATIVE, 0x7F800001]


def test_lanes_that_part_keep_their_own_nans() -> None:
    body = """
    setp.lt.u32 %p1, %r2, 1;
    @!%p1 bra SKIP;
    add.f32 %f1, %f1, %f1;
    SKIP:
    st.global.f32 [%rd2], %f1;
    """
    assert run(body, [PAYLOAD, NEGATIVE]) == [CARD, NEGATIVE]


@pytest.mark.parametrize(
    "look",
    [
        "mov.b32 %r4, %f2; st.global.u32 [%rd2], %r4;",
        "st.shared.f32 [%rd4], %f2; ld.shared.u32 %r4, [%rd4]; st.global.u32 [%rd2], %r4;",
        "st.shared.f32 [%rd4], %f2; ld.shared.f32 %f3, [%rd4]; st.global.f32 [%rd2], %f3;",
        "cvta.shared.u64 %rd5, %rd4; st.shared.f32 [%rd4], %f2; ld.u32 %r4, [%rd5]; st.global.u32 [%rd2], %r4;",
        "mov.f32 %f3, %f2; st.global.f32 [%rd2], %f3;",
        "selp.f32 %f3, %f2, %f1, 1; st.global.f32 [%rd2], %f3;",
        "shfl.idx.b32 %f3, %f2, 0, 31; mov.b32 %r4, %f3; st.global.u32 [%rd2], %r4;",
        "st.local.f32 [depot], %f2; ld.local.u32 %r4, [depot]; st.global.u32 [%rd2], %r4;",
        "mov.b64 %rd5, {{%f2, %f2}}; mov.b64 {{%r4, %r5}}, %rd5; st.global.u32 [%rd2], %r5;",
    ],
)
def test_every_way_of_looking_sees_the_cards_nan(look: str) -> None:
    look = look.replace("{{", "{").replace("}}", "}")
    body = f".local .align 4 .b8 depot[4];\nmul.f32 %f2, %f1, %f1;\n{look}".replace(", 1; st", ", %p2; st")
    body = body.replace("selp", "setp.eq.u32 %p2, %r2, %r2;\nselp")
    assert run(body, [NEGATIVE, NEGATIVE]) == [CARD, CARD]


def test_neg_and_abs_of_a_deferred_nan() -> None:
    """neg and abs act on bits: what they make of the card's NaN, not of the one underneath."""
    body = "mul.f32 %f2, %f1, %f1; neg.f32 %f3, %f2; st.global.f32 [%rd2], %f3;"
    direct = "mov.f32 %f2, 0f7FFFFFFF; neg.f32 %f3, %f2; st.global.f32 [%rd2], %f3;"
    assert run(body, [NEGATIVE]) == run(direct, [NEGATIVE])
