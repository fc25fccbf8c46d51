"""Random kernels against a plain interpreter: masks, registers of waiting lanes, loops left at different turns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from execute.differential import difference, executed, reference
from execute.random_kernels import Generator, Kernel, generate, wrapped
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


# A few hundred others were run by hand when this was written: each costs a compilation, which takes three times as long
# with bounds checked, and what diverges is the same.
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, (1 << 64) - 1))
def test_random_kernels_leave_the_bits_that_threads_one_by_one_leave(seed: int) -> None:
    assert difference(generate(seed)) == ""


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, (1 << 64) - 1))
def test_unchecked_kernels_leave_the_same_bits(seed: int) -> None:
    assert difference(generate(seed), "none") == ""


@pytest.mark.parametrize("seed", [90, 1069])
def test_kernels_that_once_went_wrong(seed: int) -> None:
    made = generate(seed)
    # The first has 300 threads in one vector: with bounds checked LLVM takes 12 s for it.
    assert difference(made, "none") == ""
    assert difference(replace(made, block=(min(made.block[0], 60), *made.block[1:]))) == ""


def kernel(body: str, block: tuple[int, int, int] = (64, 1, 1)) -> Kernel:
    """A kernel whose statements are written by hand, between the head and the dump of the random ones."""
    from random import Random

    generator = Generator(Random(1), "tree")
    generator.barriers = True
    generator.head(block[0] * block[1] * block[2])
    generator.lines += [line.strip() for line in body.strip().splitlines()]
    generator.dump()
    return Kernel(wrapped(generator.lines, 4, 4), 2, block, (3, 5))


HAND = {
    "a value of the loop is used after lanes left it at different turns": """
        mov.u32 %c0, 0;
        and.b32 %r0, %tid.x, 7;
        TOP:
        add.s32 %c0, %c0, 1;
        mul.lo.s32 %r1, %c0, 10;
        setp.lt.u32 %p0, %c0, %r0;
        @%p0 bra TOP;
        add.s32 %r3, %r1, %c0;
    """,
    "lanes that wait for the end keep what lanes at a barrier overwrite": """
        mov.u32 %r0, %tid.x;
        setp.gt.u32 %p0, %tid.x, 2;
        @%p0 bra DUMP;
        bar.sync 0;
        mov.u32 %r0, 77;
    """,
    "the other half of an unpacked number is not the number": """
        mov.u32 %s0, 5;
        mov.b32 {%h0, %h1}, %s0;
        cvt.u32.u16 %s1, %h1;
        mul.lo.u32 %s2, %tid.x, %s1;
        cvt.u64.u32 %d0, %s2;
    """,
    "a cut number is not the number": """
        mov.u32 %s0, 300;
        cvt.u32.u8 %s1, %s0;
        mul.lo.u32 %s2, %tid.x, %s1;
        cvt.s32.s8 %r0, %s0;
        cvt.u64.u32 %d0, %s2;
    """,
    "a wide product by a negative literal": """
        mul.wide.u32 %d0, %tid.x, -4;
        mul.wide.s32 %d1, %tid.x, 4294967292;
        mul.wide.s32 %d2, %tid.x, -4;
    """,
    "an index that wraps in half of the lanes": """
        add.u32 %s0, %tid.x, 4294967280;
        mul.wide.u32 %d0, %s0, 4;
        cvt.u64.u32 %d1, %s0;
        cvt.s64.s32 %d2, %s0;
        sub.s32 %s1, %tid.x, 16;
        cvt.u64.u32 %d3, %s1;
    """,
    "a sign that changes from lane to lane": """
        add.u32 %s0, %tid.x, 2147483630;
        cvt.s64.s32 %d0, %s0;
        mul.wide.s32 %d1, %s0, 4;
    """,
    "two ways into a loop": """
        setp.lt.u32 %p0, %tid.x, 20;
        mov.u32 %c0, 0;
        and.b32 %r0, %tid.x, 3;
        @%p0 bra MIDDLE;
        TOP:
        add.s32 %r0, %r0, 5;
        MIDDLE:
        add.s32 %c0, %c0, 1;
        add.s32 %r0, %r0, %c0;
        setp.lt.u32 %p1, %c0, 6;
        setp.lt.u32 %p2, %r0, 30;
        and.pred %p1, %p1, %p2;
        @%p1 bra TOP;
    """,
    "a register that two uses share": """
        setp.lt.u32 %p0, %tid.x, 9;
        mov.u32 %r0, 1;
        @%p0 mov.u32 %r0, 2;
        add.s32 %r1, %r0, 1;
        mov.u32 %r0, %tid.x;
        @!%p0 add.s32 %r0, %r0, 100;
    """,
    "lanes exit before the others meet": """
        setp.gt.u32 %p0, %tid.x, 40;
        @%p0 ret;
        st.shared.u32 [%x3], %tid.x;
        bar.sync 0;
        ld.shared.u32 %r0, [%x3];
    """,
}


@pytest.mark.parametrize("name", HAND)
@pytest.mark.parametrize(("block", "check"), [((64, 1, 1), "bounds"), ((33, 1, 1), "none"), ((8, 5, 2), "none")])
def test_a_known_trap(name: str, block: tuple[int, int, int], check: str) -> None:
    made = kernel(HAND[name], block)
    assert executed(made, check) == reference(made)


def test_the_generator_makes_kernels_that_matter() -> None:
    """Among the first hundred there are loops, switches, exits, barriers, blocks of every dimension and gotos."""
    texts = [generate(seed).text for seed in range(100)]
    for word in ("brx.idx", "bar.sync", "exit;", "B2:", "@%q1 bra", "ld.local", "mul.wide", "%laneid", "v2.u32"):
        assert sum(word in text for text in texts) > 2, word
    assert len({generate(seed).block for seed in range(100)}) > 15
