"""Calls in place, names as places, memory laid out."""

from __future__ import annotations

import pytest
from execute.programs import flat, listing

from ssmtool.errors import SsmtoolError
from ssmtool.execute import UnsupportedError
from ssmtool.execute.program.flat import Place
from ssmtool.ptx.operands import Address

ONE = """
.func (.param .b32 r) one(.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; st.param.b32 [r], %r1; ret; }
"""
CALL = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), one, (a); ld.param.b32 %r2, [b]; }"


def test_a_call_becomes_moves_and_a_jump_to_what_follows() -> None:
    code = flat(CALL, module=ONE)
    assert listing(code) == ["mov.b32", "mov.b32", "mov.b32", "bra", "mov.b32", "ret"]
    jump = next(op for op in code.instructions if op.base == "bra")
    assert [target.target for target in jump.targets] == [code.instructions.index(jump) + 1]


def test_a_function_that_is_not_called_costs_nothing() -> None:
    assert listing(flat("mov.u32 %r1, 1;", module=ONE)) == ["mov.u32", "ret"]


def test_registers_of_two_calls_are_apart() -> None:
    names = {register.name for register in flat(CALL + CALL, module=ONE).types}
    assert {"%r1", "%r1#1", "%r1#2"} <= names


def test_shared_and_local_variables_are_laid_out_aligned_and_dynamic_memory_comes_last() -> None:
    head = ".shared .align 4 .b8 a[5]; .shared .align 8 .b64 b; .local .align 4 .b8 c[7]; .local .align 16 .b8 d[3];"
    body = "mov.u32 %r1, rest; mov.u32 %r2, b; mov.u32 %r3, a; mov.u64 %rd5, c; mov.u64 %rd6, d;"
    body += "ld.shared.u32 %r4, [rest+8];"
    code = flat(body, head=head, module=".extern .shared .align 32 .b8 rest[];\n")
    moves = [op.operands for op in code.instructions if op.base == "mov"]
    places = {getattr(to, "name", ""): place for to, place in moves}
    found = {name: (place.space, place.offset) for name, place in places.items() if isinstance(place, Place)}
    assert found["%r2"] == ("shared", 0)
    assert found["%r3"] == ("shared", 8)
    assert found["%r1"] == ("shared", 32)
    assert (found["%rd5"], found["%rd6"]) == (("local", 0), ("local", 16))
    assert (code.shared_bytes, code.dynamic_alignment, code.local_bytes) == (13, 32, 32)
    load = next(op for op in code.instructions if op.opcode.text == "ld.shared.u32")
    assert isinstance(load.operands[1], Address)
    assert isinstance(load.operands[1].base, Place)
    assert (load.operands[1].base.offset, load.operands[1].offset) == (32, 8)


def test_parameters_are_laid_out_each_aligned_to_itself() -> None:
    code = flat(
        "", ".param .u64 out, .param .u8 a, .param .u16 b, .param .u8 c, .param .f64 d, .param .align 16 .b8 e[3]"
    )
    assert [offset for _, offset in code.params] == [0, 8, 10, 12, 16, 32]
    assert code.param_bytes == 35


def test_module_variables_are_noted_once() -> None:
    module = ".global .u32 g; .const .u32 c; .global .u32 unused;\n"
    assert flat("mov.u64 %rd5, g; mov.u64 %rd6, g; ld.const.u32 %r1, [c];", module=module).symbols == ["g", "c"]


def test_a_parameter_read_in_other_pieces_than_written_is_refused_by_name() -> None:
    module = """
    .func f(.param .align 8 .b8 s[8]) { .reg .b64 %rd<3>; ld.param.u64 %rd1, [s]; ret; }
    """
    body = "{ .param .align 8 .b8 a[8]; st.param.b32 [a], %r1; st.param.b32 [a+4], %r2; call f, (a); }"
    with pytest.raises(UnsupportedError, match="other pieces"):
        flat(body, module=module)


def test_what_is_not_declared_is_an_error_with_a_line() -> None:
    with pytest.raises(SsmtoolError) as caught:
        flat("ld.shared.u32 %r1, [nothing];")
    assert caught.value.line is not None
    with pytest.raises(SsmtoolError):
        flat("mov.u32 %zz1, 1;")


def test_calls_that_grow_beyond_all_bounds_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssmtool.execute.program.flatten._MOST_OPS", 2000)  # the real bound takes seconds to reach
    functions = [".func f0() { .reg .b32 %r<2>; " + "mov.u32 %r1, 1; " * 100 + "ret; }"]
    functions += [f".func f{k}() {{ {f'call f{k - 1}; ' * 3} ret; }}" for k in range(1, 14)]
    with pytest.raises(SsmtoolError, match="more than 2000 instructions"):
        flat("call f13;", module="\n".join(functions))
