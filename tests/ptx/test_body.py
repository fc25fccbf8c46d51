from __future__ import annotations

from collections.abc import Callable

import pytest

from ssmtool.ptx import Function, PtxSyntaxError
from ssmtool.ptx.operands import Label, Register

Kernel = Callable[..., Function]


def test_inline_assembly_may_declare_a_name_again(kernel: Kernel) -> None:
    function = kernel(
        """.reg .pred p; .reg .b32 %r<4>; .reg .b32 t;
        { .reg .pred p; .reg .f32 t; setp.eq.s32 p, %r1, 0; @p mov.f32 t, 0f3F800000;
          { .reg .b64 t; mov.b64 t, 1; } }
        @!p mov.b32 t, %r2;"""
    )
    registers = [instruction.operands[0] for instruction in function.instructions]
    assert registers == [Register("p", 1), Register("t", 1), Register("t", 2), Register("t", 0)]
    kinds = [function.register(register) for register in registers if isinstance(register, Register)]
    assert [kind.type for kind in kinds if kind] == ["pred", "f32", "b64", "b32"]
    guards = [instruction.predicate for instruction in function.instructions]
    assert [guard and (guard.register, guard.negated) for guard in guards] == [
        None,
        (Register("p", 1), False),
        None,
        (Register("p", 0), True),
    ]


def test_labels_of_inline_assembly_are_its_own(kernel: Kernel) -> None:
    loop = "{ .reg .pred p; LOOP: setp.eq.s32 p, %r1, 0; @p bra LOOP; }\n"
    function = kernel(".reg .b32 %r<2>;\n" + loop + loop + "bra LAST;\nLAST:\n")
    assert [i.operands for i in function.instructions if i.base == "bra"] == [
        (Label("LOOP", 0),),
        (Label("LOOP", 2),),
        (Label("LAST", 5),),
    ]
    assert function.labels == {"LOOP": 0, "LAST": 5}


def test_a_label_twice_in_one_scope_is_an_error(kernel: Kernel) -> None:
    with pytest.raises(PtxSyntaxError, match="'L' is defined twice") as caught:
        kernel("L: ret;\nL: ret;").check()
    assert caught.value.line == 8


def test_call_parameters_are_those_of_their_own_braces(kernel: Kernel) -> None:
    function = kernel(
        """.reg .b64 %rd<3>;
        { .param .b32 param0; st.param.b32 [param0], 1; call f, (param0); }
        { .param .align 8 .b8 param0[24]; st.param.b64 [param0+8], %rd1; call f, (param0); }""",
        module=".func f(.param .b32 x) { ret; }",
    )
    sizes = []
    for instruction in function.instructions:
        if instruction.base == "st":
            address = instruction.operands[0]
            variable = function.variable(address.base)  # type: ignore[union-attr, arg-type]
            assert variable is not None
            sizes.append(variable.size)
    assert sizes == [4, 24]


def test_a_jump_table_gives_its_labels(kernel: Kernel) -> None:
    function = kernel(
        """.reg .b32 %r<2>;
        table: .branchtargets A, B,
               A;
        brx.idx %r1, table;
        A: ret;
        B: exit;"""
    )
    assert function.instructions[0].targets == (Label("A", 1), Label("B", 2), Label("A", 1))
    assert function.opcodes == ["brx.idx", "ret", "exit"]


def test_a_jump_table_with_a_name_that_is_no_label_is_an_error(kernel: Kernel) -> None:
    function = kernel(".reg .b32 %r<2>; t: .branchtargets A, Z; brx.idx %r1, t; A: ret;")
    with pytest.raises(PtxSyntaxError, match="not a label"):
        _ = function.instructions[0].targets


@pytest.mark.parametrize("usual", ["\n\tL1:\n\t.loc\t1 2 3\n\t@%p1 bra L1", "L1: .loc 1 2 3 @%p1 bra L1"])
def test_label_loc_and_guard_before_one_instruction(kernel: Kernel, usual: str) -> None:
    function = kernel(f".reg .pred %p<2>;\nret;\nbra L1;\n{usual};\n")
    last = function.instructions[2]
    assert last.text == "@%p1 bra L1;"
    assert last.targets == (Label("L1", 2),)
    assert last.loc is not None
    assert (last.loc.line, last.loc.column) == (2, 3)
    assert function.instructions[1].loc is None


@pytest.mark.parametrize(
    "body",
    [
        "add.s32 %r1, %r1, %r1\n\tld.local.b32 %r1, [%r1];",
        "add.s32 %r1, %r1, %r1 @%p1 ld.local.b32 %r1, [%r1];",
        "add.s32 %r1, %r1, %r1\n@%p1 bra L;",
        "add.s32 %r1, %r1, %r1\nL: ret;",
        "ld.global.b32 %r1, [%r1]\n{ ret; }",
        "add.s32 %r1, %r1, %r1\n.loc 1 2 3\n ret;",
    ],
)
def test_a_lost_semicolon_never_swallows_an_instruction(kernel: Kernel, body: str) -> None:
    with pytest.raises(PtxSyntaxError, match="';'"):
        kernel(".reg .pred %p<2>; .reg .b32 %r<2>;\n" + body)


def test_operands_over_several_lines_are_no_lost_semicolon(kernel: Kernel) -> None:
    function = kernel(
        ".reg .b32 %r<3>;\nmov.b64\n\t{%r1,\n\t %r2}\n\t, 5\n\t;\ncall (%r1),\n\tf,\n\t(\n\t%r2\n\t)\n\t;",
        module=".func (.reg .b32 o) f (.reg .b32 i) { ret; }",
    )
    assert function.opcodes == ["mov.b64", "call"]
    function.check()
