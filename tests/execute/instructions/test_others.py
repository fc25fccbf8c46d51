"""Every form that is not arithmetic is taken, alone and under a guard where PTX allows one."""

from __future__ import annotations

import pytest
from execute.instructions.others import FAMILIES, HEAD, MODULE, PARAMS, Family
from execute.small import kernel

from ssmtool.execute.layout import Mode
from ssmtool.execute.lower import lower
from ssmtool.ptx import parse

_BATCH = 200


def _lowered(body: str, block: int) -> None:
    lower(parse(kernel(body, PARAMS, MODULE, HEAD)), "k", (block, 1, 1), Mode())


# A form that accesses memory is lowered for a warp, whatever the block: once is enough, and there are a thousand.
ACCESSES = ("`ld`, `ldu`", "`st`", "`atom`, `red`")
CASES = [(each, block) for each in FAMILIES for block in (32, 128) if block == 32 or each.name not in ACCESSES]


@pytest.mark.parametrize(("family", "block"), CASES, ids=[f"{each.test}-{block}" for each, block in CASES])
def test_every_form_of_the_list_is_taken(family: Family, block: int) -> None:
    assert len(set(family.forms)) == len(family.forms)
    if "branches" in family.name:
        for form in family.forms:
            _lowered(f"setp.eq.u32 %p1, %i, 3; mov.u32 %r1, 0;\n{form}\nst.global.u32 [%rd0], %r2;", block)
        return
    for start in range(0, len(family.forms), _BATCH):
        _lowered("\n".join(family.forms[start : start + _BATCH]), block)
        guarded = [f"@%p3 {form}" for form in family.forms[start : start + _BATCH] if not form.startswith("bar")]
        _lowered("setp.eq.u32 %p3, %i, 3;" + "\n".join(guarded), block)
