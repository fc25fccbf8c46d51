"""Calls of `.func`s, in place of which their bodies stand, and jumps through tables."""

from __future__ import annotations

import numpy as np
import pytest
from execute.small import kernel, run, words

from ssmtool.errors import SsmtoolError
from ssmtool.execute import KernelFaultError, UnsupportedError

BY_PARAM = """
.func (.param .b32 r) square(.param .b32 x, .param .b64 y)
{ .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<2>;
ld.param.u32 %r1, [x]; ld.param.u64 %rd1, [y]; cvt.u32.u64 %r2, %rd1; setp.gt.u32 %p1, %r1, 20; @%p1 bra BIG;
mad.lo.u32 %r3, %r1, %r1, %r2; st.param.b32 [r], %r3; ret;
BIG: st.param.b32 [r], %r2; ret; }
"""
CALL = """{{ .param .b32 px; .param .b64 py; .param .b32 pr; st.param.b32 [px], {x}; st.param.b64 [py], {y};
call.uni (pr), {name}, (px, py); ld.param.b32 {to}, [pr]; }}
"""
BY_REGISTER = """
.func (.reg .b32 %out) twice(.reg .b32 %in, .reg .f32 %scale)
{ .reg .f32 %f<3>; cvt.rn.f32.u32 %f1, %in; mul.rn.f32 %f1, %f1, %scale; cvt.rzi.u32.f32 %out, %f1; ret; }
"""
STRUCT = """
.func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 s[16])
{ .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .b16 %h<3>;
ld.param.u32 %r1, [s]; ld.param.u16 %h1, [s+4]; ld.param.s16 %h2, [s+6]; ld.param.u64 %rd1, [s+8];
cvt.s32.s16 %r2, %h2; cvt.u32.u16 %r3, %h1; add.s32 %r3, %r3, %r2;
st.param.u64 [r], %rd1; st.param.u32 [r+8], %r1; st.param.u32 [r+12], %r3; ret; }
"""


def test_a_function_by_param_with_two_ways_out() -> None:
    body = (
        "cvt.u64.u32 %rd5, %i;" + CALL.format(x="%i", y="%rd5", name="square", to="%r1") + "st.global.u32 [%rd1], %r1;"
    )
    assert words(body, module=BY_PARAM)[:, 0].tolist() == [i * i + i if i <= 20 else i for i in range(32)]


def test_a_function_with_register_parameters() -> None:
    body = "mov.f32 %f1, 0f40200000; call (%r1), twice, (%i, %f1); st.global.u32 [%rd1], %r1;"
    assert words(body, module=BY_REGISTER)[:, 0].tolist() == [i * 5 // 2 for i in range(32)]


def test_a_struct_by_value() -> None:
    body = """
    mov.u64 %rd5, 81985529216486895; cvt.u16.u32 %h1, %i; mov.u16 %h2, -7;
    { .param .align 8 .b8 ps[16]; .param .align 8 .b8 pr[16];
    st.param.u32 [ps], %i; st.param.b16 [ps+4], %h1; st.param.b16 [ps+6], %h2; st.param.u64 [ps+8], %rd5;
    call.uni (pr), swap, (ps); ld.param.u64 %rd6, [pr]; ld.param.u32 %r1, [pr+8]; ld.param.u32 %r2, [pr+12]; }
    mov.b64 {%r3, %r4}, %rd6; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
    """
    found = words(body, 4, module=STRUCT)
    assert found[:, 0].tolist() == list(range(32))
    assert found[:, 1].view(np.int32).tolist() == [i - 7 for i in range(32)]
    assert (found[:, 2:] == [0x89ABCDEF, 0x01234567]).all()


def test_calls_in_divergent_code_guarded_calls_and_calls_of_calls() -> None:
    module = (
        BY_PARAM
        + """
    .func (.param .b32 r) outer(.param .b32 x, .param .b64 y)
    { .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<2>; ld.param.u32 %r1, [x]; ld.param.u64 %rd1, [y];
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; mov.u32 %r3, 5; @%p1 bra SKIP;
    { .param .b32 a; .param .b64 b; .param .b32 c; st.param.b32 [a], %r1; st.param.b64 [b], %rd1;
    call.uni (c), square, (a, b); ld.param.b32 %r3, [c]; }
    SKIP: add.u32 %r3, %r3, 1000; st.param.b32 [r], %r3; ret; }
    """
    )
    call = CALL.format(x="%i", y="%rd5", name="outer", to="%r1")
    body = f"""
    mov.u64 %rd5, 3; mov.u32 %r1, 77; setp.lt.u32 %p1, %i, 10; @%p1 bra AFTER; {call} AFTER:
    mov.u32 %r2, 88; setp.eq.u32 %p2, %i, 4;
    {{ .param .b32 px; .param .b64 py; .param .b32 pr; st.param.b32 [px], %i; st.param.b64 [py], %rd5;
    @%p2 call.uni (pr), square, (px, py); @%p2 ld.param.b32 %r2, [pr]; }}
    st.global.v2.u32 [%rd1], {{%r1, %r2}};
    """
    found = words(body, 2, module=module)
    square = [i * i + 3 if i <= 20 else 3 for i in range(32)]
    wanted = [77 if i < 10 else (1000 + square[i] if i & 1 else 1005) for i in range(32)]
    assert found[:, 0].tolist() == wanted
    assert found[:, 1].tolist() == [19 if i == 4 else 88 for i in range(32)]


def test_one_function_called_twice_keeps_two_sets_of_registers_and_one_of_memory() -> None:
    module = """
    .func (.param .b32 r) count(.param .b32 x)
    { .reg .b32 %r<4>; .shared .align 4 .u32 seen; .local .align 4 .b8 own[4]; .reg .b64 %rd<2>;
    ld.param.u32 %r1, [x]; mov.u64 %rd1, own; st.local.u32 [%rd1], %r1; ld.local.u32 %r2, [%rd1];
    atom.shared.add.u32 %r3, [seen], 1; st.param.b32 [r], %r2; ret; }
    """
    one = (
        "{{ .param .b32 px; .param .b32 pr; st.param.b32 [px], {0}; call (pr), count, (px); ld.param.b32 {1}, [pr]; }}"
    )
    body = f"add.u32 %r1, %i, 100; {one.format('%i', '%r2')} {one.format('%r1', '%r3')}"
    body += "st.global.v2.u32 [%rd1], {%r2, %r3};"
    found = words(body, 2, module=module)
    assert found.tolist() == [[i, i + 100] for i in range(32)]


def test_a_barrier_within_a_function() -> None:
    module = """
    .func (.param .b32 r) other(.param .b32 x)
    { .reg .b32 %r<6>; .shared .align 4 .b8 s[1024]; ld.param.u32 %r1, [x]; mov.u32 %r2, s; mov.u32 %r3, %tid.x;
    shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r2; st.shared.u32 [%r4], %r1; bar.sync 0; xor.b32 %r4, %r4, 256;
    ld.shared.u32 %r5, [%r4]; bar.sync 0; st.param.b32 [r], %r5; ret; }
    """
    one = "{ .param .b32 px; .param .b32 pr; st.param.b32 [px], %r9; call (pr), other, (px); ld.param.b32 %r9, [pr]; }"
    for mode in ("", "mov.u32 %r8, %laneid;"):
        found = words(
            f"{mode} mul.lo.u32 %r9, %i, 3; {one} add.u32 %r9, %r9, 1; {one} st.global.u32 [%rd1], %r9;",
            1,
            128,
            module=module,
        )
        assert found[:, 0].tolist() == [3 * i + 1 for i in range(128)]


@pytest.mark.parametrize("index", ["%ctaid.x", "%r5"])
def test_a_jump_through_a_table(index: str) -> None:
    body = f"""
    and.b32 %r5, %i, 3; mov.u32 %r6, {index}; mov.u32 %r1, 0;
    T: .branchtargets A, B, C, A;
    brx.idx %r6, T;
    A: add.u32 %r1, %r1, 1; bra DONE;
    B: add.u32 %r1, %r1, 10;
    C: add.u32 %r1, %r1, 100;
    DONE: st.global.u32 [%rd1], %r1;
    """
    found = words(body, grid=4)[:, 0].tolist()
    which = [i // 32 if index == "%ctaid.x" else i & 3 for i in range(128)]
    assert found == [[1, 110, 100, 1][each] for each in which]


def test_an_assertion_that_fails_ends_the_launch() -> None:
    module = ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"
    body = """
    setp.lt.u32 %p1, %i, 9; @%p1 bra FINE;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; call __assertfail, (a, b, c, d, e); }
    FINE: st.global.u32 [%rd1], 1;
    """
    with pytest.raises(KernelFaultError, match="trap"):
        words(body, module=module)
    assert (words(body, block=9, module=module) == 1).all()


@pytest.mark.parametrize(
    ("module", "body", "word"),
    [
        (".func f() { call f; ret; }", "call f;", "calls itself"),
        (".func g();\n.func f() { call g; ret; }\n.func g() { call f; ret; }", "call f;", "calls itself"),
        (
            ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);",
            "{ .param .b32 r; .param .b64 a; .param .b64 b; call (r), vprintf, (a, b); }",
            "printf",
        ),
        (".extern .func nowhere();", "call nowhere;", "no body"),
        (BY_REGISTER, "call (%r1), twice, (%r2);", "other parameters"),
    ],
)
def test_a_call_that_cannot_be_followed_is_refused_with_its_line(module: str, body: str, word: str) -> None:
    with pytest.raises((UnsupportedError, SsmtoolError), match=word) as caught:
        run(kernel(body, module=module), [np.zeros(1, np.uint32)])
    assert caught.value.line is not None


def test_a_call_through_a_register_is_refused() -> None:
    body = "mov.u64 %rd5, f; P: .callprototype _ (); call %rd5, (), P;"
    with pytest.raises(SsmtoolError):
        run(kernel(body, module=".func f() { ret; }"), [np.zeros(1, np.uint32)])
