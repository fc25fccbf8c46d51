"""atom and red of every operation and type, in global, shared and generic memory, against plain Python."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest
from execute.small import kernel, run

from ssmtool.execute import UnsupportedError

MASK = {32: 0xFFFFFFFF, 64: (1 << 64) - 1}


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _by_sign(choose: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    return lambda old, x, bits: choose(_signed(old, bits), _signed(x, bits))


OPERATIONS: dict[str, Callable[[int, int, int], int]] = {
    "and": lambda old, x, _: old & x,
    "or": lambda old, x, _: old | x,
    "xor": lambda old, x, _: old ^ x,
    "exch": lambda _, x, __: x,
    "add.u": lambda old, x, _: old + x,
    "add.s": lambda old, x, _: old + x,
    "inc.u": lambda old, x, _: 0 if old >= x else old + 1,
    "dec.u": lambda old, x, _: x if old == 0 or old > x else old - 1,
    "min.u": lambda old, x, _: min(old, x),
    "max.u": lambda old, x, _: max(old, x),
    "min.s": _by_sign(min),
    "max.s": _by_sign(max),
}
FORMS = [
    *[f"{op}.b{bits}" for op in ("and", "or", "xor", "exch") for bits in (32, 64)],
    "add.u32", "add.s32", "add.u64", "inc.u32", "dec.u32",
    *[f"{op}.{kind}" for op in ("min", "max") for kind in ("u32", "s32", "u64", "s64")],
]  # fmt: skip
LANE = "mul.lo.u32 %r1, %i, 2654435769; cvt.u64.u32 %rd5, %r1; mul.lo.u64 %rd5, %rd5, 4294967311;"


def _operand(thread: int, bits: int) -> int:
    word = thread * 2654435769 & MASK[32]
    return word if bits == 32 else word * 4294967311 & MASK[64]


SPACES = {"global": "", "shared": ".shared .align 8 .b8 s[64];", "": ""}


def _kernel(space: str, form: str, returns: bool) -> str:
    """Threads 0..39 but 7 meet at three cells; what they get back, and the cells afterwards, go out."""
    bits = int(form[-2:])
    size = bits // 8
    register = "%r1" if bits == 32 else "%rd5"
    dot = f".{space}" if space else ""
    base = "mov.u64 %rd6, s;" if space == "shared" else "mov.u64 %rd6, %rd0;"
    fill = back = ""
    if space == "shared":
        moved = [
            f"ld.global.b{bits} {register}, [%rd0+{size * k}]; st.shared.b{bits} [s+{size * k}], {register};"
            for k in range(3)
        ]
        fill = "".join(moved) + "bar.sync 0;"
        moved = [
            f"ld.shared.b{bits} {register}, [s+{size * k}]; st.global.b{bits} [%rd0+{size * k}], {register};"
            for k in range(3)
        ]
        back = "bar.sync 0; setp.ne.u32 %p1, %i, 0; @%p1 bra END;" + "".join(moved)
    if returns:
        target = "%r2" if bits == 32 else "%rd7"
        line = f"@%p2 atom{dot}.{form} {target}, [%rd6], {register};"
        line += f"mad.wide.u32 %rd8, %i, {size}, %rd1; @%p2 st.global.b{bits} [%rd8], {target};"
    else:
        line = f"@%p2 red{dot}.{form} [%rd6], {register};"
    body = f"""
    ld.param.u64 %rd1, [out]; {fill} {LANE} {base} rem.u32 %r3, %i, 3; mad.wide.u32 %rd6, %r3, {size}, %rd6;
    setp.ne.u32 %p2, %i, 7; {line} {back}
    """
    return kernel(body, ".param .u64 cells, .param .u64 out", head=SPACES[space])


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("form", FORMS)
def test_an_atomic_operation_is_one_step_after_the_other(form: str, space: str) -> None:
    bits = int(form[-2:])
    kind = np.uint32 if bits == 32 else np.uint64
    cells = np.array([5, 0x80000003, 0], kind)
    old = np.zeros(40, kind)
    start = cells.tolist()
    apply = OPERATIONS[form[:-2] if form.partition(".")[2][0] in "us" else form.partition(".")[0]]
    wanted, returned = list(start), [0] * 40
    for thread in range(40):
        if thread != 7:
            returned[thread] = wanted[thread % 3]
            wanted[thread % 3] = apply(wanted[thread % 3], _operand(thread, bits), bits) & MASK[bits]
    run(_kernel(space, form, True), [cells, old], 40, threads=1)
    assert (cells.tolist(), old.tolist()) == (wanted, returned)
    if not form.startswith("exch"):
        cells = np.array(start, kind)
        run(_kernel(space, form, False), [cells, old], 40, threads=1)
        assert cells.tolist() == wanted


@pytest.mark.parametrize("kind", ["b32", "b64"])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_compare_and_swap(space: str, kind: str) -> None:
    """Each thread takes a ticket from a chain: the cell holds k, and only thread k may make it k + 1."""
    size = int(kind[1:]) // 8
    place = "%rd0" if space == "global" else "s"
    registers = ("%r1", "%r2", "%r3") if kind == "b32" else ("%rd5", "%rd6", "%rd7")
    body = f"""
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %i; add.u32 %r2, %i, 1; cvt.u64.u32 %rd5, %r1; cvt.u64.u32 %rd6, %r2;
    st.shared.{kind} [s], 0; bar.sync 0;
    atom.{space}.cas.{kind} {registers[2]}, [{place}], {registers[0]}, {registers[1]};
    mad.wide.u32 %rd8, %i, {size}, %rd1; st.global.{kind} [%rd8], {registers[2]};
    """
    old = np.zeros(32, np.uint32 if size == 4 else np.uint64)
    cell = np.zeros(1, old.dtype)
    run(kernel(body, ".param .u64 cell, .param .u64 out", head=".shared .align 8 .b8 s[8];"), [cell, old])
    assert old.tolist() == list(range(32))
    assert cell[0] == (32 if space == "global" else 0)


def _f32(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


@pytest.mark.parametrize("space", ["global", "shared", ""])
def test_adding_floats_keeps_the_order_of_lanes_and_rounds_each_time(space: str) -> None:
    head = ".shared .align 4 .b8 s[4];" if space == "shared" else ""
    dot, place = (f".{space}" if space else ""), ("s" if space == "shared" else "%rd0")
    first = "st.shared.f32 [s], 0f00000000; bar.sync 0;" if head else ""
    body = f"""
    cvt.rn.f32.u32 %f1, %i; mul.rn.f32 %f1, %f1, 0f3DCCCCCD; {first}
    ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %i, 4, %rd1;
    atom{dot}.add.f32 %f2, [{place}], %f1; st.global.f32 [%rd1], %f2;
    """
    cell, old = np.zeros(1, np.float32), np.zeros(32, np.float32)
    run(kernel(body, ".param .u64 cell, .param .u64 out", head=head), [cell, old])
    total = 0.0
    for lane in range(32):
        assert old[lane] == np.float32(total), lane
        total = _f32(total + _f32(lane * float(np.float32(0.1))))
    assert space == "shared" or cell[0] == np.float32(total)


def test_subnormal_sums_are_flushed_in_global_and_kept_in_shared_memory() -> None:
    """PTX ISA, "atom": `.add.f32` flushes subnormal inputs and results in global memory, and not in shared memory."""
    body = """
    mov.u32 %r1, 3; mov.b32 %f1, %r1; st.shared.u32 [s], 5; bar.sync 0; setp.ne.u32 %p1, %i, 0; @%p1 bra END;
    red.shared.add.f32 [s], %f1; ld.shared.u32 %r2, [s]; st.global.u32 [%rd0+4], %r2; red.global.add.f32 [%rd0], %f1;
    """
    cells = np.array([5, 0], np.uint32)
    run(kernel(body, head=".shared .align 4 .b8 s[4];"), [cells])
    assert cells.tolist() == [0, 8]


def test_blocks_on_several_workers_lose_no_addition() -> None:
    cells = np.zeros(4, np.uint32)
    body = """
    red.global.add.u32 [%rd0], 1; atom.global.inc.u32 %r1, [%rd0+4], 4294967295; red.add.u32 [%rd0+8], %i;
    cvt.rn.f32.u32 %f1, 1; red.global.add.f32 [%rd0+12], %f1;
    """
    run(kernel(body), [cells], 96, 500, threads=4)
    assert cells[:3].tolist() == [48000, 48000, sum(range(96)) * 500]
    assert cells[3:].view(np.float32)[0] == 48000.0


def test_adding_doubles_is_executed_although_sm_60_brought_it() -> None:
    cells = np.array([0.1, 0.0])
    body = "cvt.rn.f64.u32 %fd1, %i; atom.global.add.f64 %fd2, [%rd0], %fd1; red.global.add.f64 [%rd0+8], %fd1;"
    run(kernel(body), [cells])
    total = 0.1
    for lane in range(32):
        total += lane
    assert cells.tolist() == [total, 496.0]


@pytest.mark.parametrize(
    "line",
    [
        "atom.global.add.s64 %rd5, [%rd0], %rd6;",
        "atom.global.inc.u64 %rd5, [%rd0], %rd6;",
        "atom.global.add.noftz.f16 %h1, [%rd0], %h2;",
        "red.global.exch.b32 [%rd0], %r1;",
        "atom.local.add.u32 %r1, [%rd0], %r2;",
        "atom.global.cas.b16 %h1, [%rd0], %h2, %h3;",
        "atom.global.min.f32 %f1, [%rd0], %f2;",
    ],
)
def test_what_sm_37_has_not_is_refused_by_name(line: str) -> None:
    with pytest.raises(UnsupportedError, match=line.split()[0].replace(".", r"\.")):
        run(kernel(line), [np.zeros(4, np.uint64)])
