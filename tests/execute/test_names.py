"""Names of a body as registers and places of the flat code."""

from __future__ import annotations

import pytest
from execute.programs import CALL, ONE, flat

from ssmtool.errors import SsmtoolError


def test_registers_of_two_calls_are_apart() -> None:
    names = {register.name for register in flat(CALL + CALL, module=ONE).types}
    assert {"%r1", "%r1#1", "%r1#2"} <= names


def test_what_is_not_declared_is_an_error_with_a_line() -> None:
    with pytest.raises(SsmtoolError) as caught:
        flat("ld.shared.u32 %r1, [nothing];")
    assert caught.value.line is not None
    with pytest.raises(SsmtoolError):
        flat("mov.u32 %zz1, 1;")
