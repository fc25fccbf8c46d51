from __future__ import annotations

from collections.abc import Callable

import pytest

from ssmtool.ptx import Function, PtxSyntaxError
from ssmtool.ptx.operands import (
    Address,
    Group,
    Immediate,
    Negated,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
    registers_of,
)

R1, R2, P1, P2 = (Register(name) for name in ("%r1", "%r2", "%p1", "%p2"))
F = "mov.b32 %r1, "

CASES: list[tuple[str, tuple[Operand, ...]]] = [
    ("ret;", ()),
    ("mov.u32 %r1, %tid.x;", (R1, Register("%tid.x"))),
    ("mov.u32 %r1, WARP_SZ;", (R1, Immediate(32))),
    ("shfl.sync.down.b32 %r1|%p1, %r2, 1, 0x1f, -1;", (Pair(R1, P1), R2, Immediate(1), Immediate(31), Immediate(-1))),
    ("setp.lt.and.f32 %p1|_, %r1, %r2, !%p2;", (Pair(P1, Sink()), R1, R2, Not(P2))),
    ("elect.sync _|%p1, 0xFFFFFFFF;", (Pair(Sink(), P1), Immediate(0xFFFFFFFF))),
    ("vadd.s32.s32.s32 %r1, -%r2.b3, %r2.h1;", (R1, Negated(Register("%r2", 0, "b3")), Register("%r2", 0, "h1"))),
    ("ld.global.b32 %r1, [%r2];", (R1, Address(R2))),
    ("ld.global.b32 %r1, [%r2+-4];", (R1, Address(R2, -4))),
    ("ld.global.b32 %r1, [%r2 + 4 + 0x10];", (R1, Address(R2, 20))),
    ("ld.global.b32 %r1, [%r2-4];", (R1, Address(R2, -4))),
    ("ld.const.b32 %r1, [table+8];", (R1, Address(Symbol("table"), 8))),
    ("ld.shared.b32 %r1, [64];", (R1, Address(None, 64))),
    ("ld.global.b32 %r1, [%r2].unified;", (R1, Address(R2))),
    ("mov.u64 %r1, table+16;", (R1, Symbol("table", -1, 16))),
    ("ld.v2.b32 {%r1, _}, [%r2];", (Vector((R1, Sink())), Address(R2))),
    ("mov.b64 {%r1, %r2}, 5;", (Vector((R1, R2)), Immediate(5))),
    (
        "tex.2d.v4.f32.s32 {%r1,%r1,%r1,%r1}, [table, smp, {%r1, %r2}];",
        (Vector((R1,) * 4), Address(Symbol("table"), 0, (Symbol("smp"), Vector((R1, R2))))),
    ),
    ("tex.1d.v4.f32.s32 {%r1,%r1,%r1,%r1}, [table, %r1];", (Vector((R1,) * 4), Address(Symbol("table"), 0, (R1,)))),
    ("call (%r1), f, (%r2, 7), proto;", (Group((R1,)), Symbol("f"), Group((R2, Immediate(7))), Symbol("proto"))),
    ("call f;", (Symbol("f"),)),
    ("call f, ();", (Symbol("f"), Group(()))),
    (F + "0x80000000;", (R1, Immediate(0x80000000))),
    (F + "0xFFFFFFFFFFFFFFFF;", (R1, Immediate(2**64 - 1, "int", True))),
    (F + "017;", (R1, Immediate(15))),
    (F + "0b101U;", (R1, Immediate(5, "int", True))),
    (F + "0f3F800000;", (R1, Immediate(0x3F800000, "f32"))),
    (F + "-0F3F800000;", (R1, Immediate(0xBF800000, "f32"))),
    (F + "0d3FF0000000000000;", (R1, Immediate(0x3FF0000000000000, "f64"))),
    (F + "1.5e0;", (R1, Immediate(0x3FF8000000000000, "f64"))),
    (F + "(1 + 2) * 3 - 4 / 2;", (R1, Immediate(7))),
    (F + "-7 / 2;", (R1, Immediate(-3))),
    (F + "-7 % 2;", (R1, Immediate(-1))),
    (F + "1 << 4 | 3 & 1;", (R1, Immediate(17))),
    (F + "~0 == -1 ? 5 : 6;", (R1, Immediate(5))),
    (F + "!0 + !7;", (R1, Immediate(1))),
    (F + "(.u64) -1;", (R1, Immediate(2**64 - 1, "int", True))),
    (F + "-1 < 1U;", (R1, Immediate(0))),
    (F + "0x7FFFFFFFFFFFFFFF + 1;", (R1, Immediate(-(2**63)))),
]


@pytest.fixture
def one(kernel: Callable[..., Function]) -> Callable[[str], tuple[Operand, ...]]:
    """The operands of one instruction."""

    def parse_one(text: str) -> tuple[Operand, ...]:
        return kernel(".reg .pred %p<3>; .reg .b32 %r<3>;\n" + text).instructions[0].operands

    return parse_one


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_operands(one: Callable[[str], tuple[Operand, ...]], text: str, expected: tuple[Operand, ...]) -> None:
    assert one(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("mov.b32 %r1 %r2;", 13, "expected ',', found '%r2'"),
        ("mov.b32 %r1,;", 13, "expected a constant, found the end of the statement"),
        ("mov.b32 %r1, , %r2;", 14, "expected a constant, found ','"),
        ("mov.b32 %r1, [%r2;", 18, "expected ']'"),
        ("mov.b32 %r1, #2;", 14, "cannot read '#2'"),
        ("mov.b32 %r1, 09;", 14, "bad number '09'"),
        ("mov.b32 %r1, 0x1FFFFFFFFFFFFFFFF;", 14, "bad number"),
        ("mov.b32 %r1, 1 / 0;", 16, "division by zero"),
        ("mov.b32 %r1, [%r2+1.5];", 19, "must be an integer"),
        ("mov.b32 %r1, 12abc;", 14, "cannot read '12abc'"),
    ],
)
def test_bad_operands_name_their_place(kernel: Callable[..., Function], text: str, column: int, says: str) -> None:
    function = kernel(".reg .b32 %r<3>;\n" + text)
    with pytest.raises(PtxSyntaxError) as caught:
        function.check()
    assert says in str(caught.value)
    assert (caught.value.line, caught.value.column) == (8, column)


def test_float_literals_read_as_numbers() -> None:
    assert Immediate(0x3FC00000, "f32").number == 1.5
    assert Immediate(0xBFF8000000000000, "f64").number == -1.5
    assert Immediate(-3).number == -3


def test_only_special_registers_are_special() -> None:
    special = ["%tid.x", "%laneid", "%clock64", "%pm3", "%pm0_64", "%envreg31", "%lanemask_lt", "%dynamic_smem_size"]
    assert all(Register(name).special for name in special)
    assert not any(Register(name).special for name in ("%r1", "%p", "%tidy", "tid", "%pmx", "%envreg"))


def test_registers_of_finds_every_register_in_order() -> None:
    operand = Address(R1, 0, (Vector((R2, Not(P1))), Pair(P2, Sink()), Group((Negated(R1),))))
    assert registers_of(operand) == (R1, R2, P1, P2, R1)


def test_a_register_range_ends_where_it_says(kernel: Callable[..., Function]) -> None:
    function = kernel(".reg .b32 %r<3>, %r1<5>, a, b;\nmov.b32 %r2, %r14;\nmov.b32 a, %r3;\nmov.b32 b, %r02;")
    found = [[function.register(r) for r in i.operands if isinstance(r, Register)] for i in function.instructions]
    names = [[variable.name if variable else None for variable in row] for row in found]
    assert names == [["%r", "%r1"], ["a", None], ["b", None]]
