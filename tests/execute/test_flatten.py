"""Calls in place, parameters laid out."""

from __future__ import annotations

import pytest
from execute.programs import CALL, ONE, flat, listing

from ssmtool.errors import SsmtoolError
from ssmtool.execute import UnsupportedError


def test_a_call_becomes_moves_and_a_jump_to_what_follows() -> None:
    code = flat(CALL, module=ONE)
    assert listing(code) == ["mov.b32", "mov.b32", "mov.b32", "bra", "mov.b32", "ret"]
    jump = next(op for op in code.instructions if op.base == "bra")
    assert [target.target for target in jump.targets] == [code.instructions.index(jump) + 1]


def test_a_function_that_is_not_called_costs_nothing() -> None:
    assert listing(flat("mov.u32 %r1, 1;", module=ONE)) == ["mov.u32", "ret"]


def test_parameters_are_laid_out_each_aligned_to_itself() -> None:
    code = flat(
        "", ".param .u64 out, .param .u8 a, .param .u16 b, .param .u8 c, .param .f64 d, .param .align 16 .b8 e[3]"
    )
    assert [offset for _, offset in code.params] == [0, 8, 10, 12, 16, 32]
    assert code.param_bytes == 35


def test_a_parameter_read_in_other_pieces_than_written_is_refused_by_name() -> None:
    module = """
    .func f(.param .align 8 .b8 s[8]) { .reg .b64 %rd<3>; ld.param.u64 %rd1, [s]; ret; }
    """
    body = "{ .param .align 8 .b8 a[8]; st.param.b32 [a], %r1; st.param.b32 [a+4], %r2; call f, (a); }"
    with pytest.raises(UnsupportedError, match="other pieces"):
        flat(body, module=module)


def test_calls_that_grow_beyond_all_bounds_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssmtool.execute.program.flatten._MOST_OPS", 2000)  # the real bound takes seconds to reach
    functions = [".func f0() { .reg .b32 %r<2>; " + "mov.u32 %r1, 1; " * 100 + "ret; }"]
    functions += [f".func f{k}() {{ {f'call f{k - 1}; ' * 3} ret; }}" for k in range(1, 14)]
    with pytest.raises(SsmtoolError, match="more than 2000 instructions"):
        flat("call f13;", module="\n".join(functions))
