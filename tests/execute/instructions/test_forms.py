"""Every numeric form through the public API, on vectors and on scalars, against what an H200 answered.

`tests/execute/numerics` proves the arithmetic itself; here it is run as a kernel runs it: parsed, split into variables,
given registers of its own width, and stored.
"""

from __future__ import annotations

import numpy as np
import pytest
from execute.instructions import forms
from execute.instructions.forms import BLOCK, LANES
from execute.numerics.measured import silicon
from execute.numerics.test_silicon import executed

from ssmtool.execute import Module, UnsupportedError
from ssmtool.probe.inputs import CASES
from ssmtool.probe.variants import variants

# A batch takes half a second of LLVM; the workers of a run share them out.
BATCHES = 32


@pytest.mark.parametrize("start", range(BATCHES))
@pytest.mark.parametrize("case", [LANES, BLOCK], ids=["vectors", "scalars"])
def test_every_form_has_the_silicon_s_bits_in_a_kernel(case: str, start: int) -> None:
    results, _ = silicon()
    every = executed()
    rows, table = forms.operands(every)
    batch = every[start::BATCHES]  # the dear forms are neighbours: every batch gets its share
    module = Module(forms.HEADER + forms.kernel("k", batch, rows, case))
    out = np.zeros((len(batch), CASES), np.uint64)
    grid, block = (1, CASES) if case == LANES else (CASES, 1)
    # Unchecked: half of the code would be the bounds of a store that is not what is tested here.
    module.launch("k", grid, block, [table, out], check="none", threads=1)
    assert [v.name for v, got in zip(batch, out, strict=True) if (got != results[v.name]).any()] == []


def test_every_form_that_is_not_executed_is_refused_by_its_name_and_line() -> None:
    run = {v.name for v in executed()}
    refused = [v for v in variants() if v.name not in run]
    assert len(refused) == len(variants()) - 2984
    for v in refused:
        text = forms.single(v)
        with pytest.raises(UnsupportedError) as caught:
            Module(text, "body.ptx").compile("k", 32)
        opcode = next(word for word in v.text.replace(";", " ").split() if "." in word and not word.startswith("."))
        line = caught.value.line
        assert line is not None
        assert opcode in text.splitlines()[line - 1], v.name
        assert str(caught.value).startswith("body.ptx") or "body.ptx" in repr(caught.value.path)


def test_nothing_has_run_when_the_last_instruction_is_refused() -> None:
    text = forms.HEADER + (
        ".visible .entry k(.param .u64 out) { .reg .b64 %rd; .reg .b32 %r;\n"
        "ld.param.u64 %rd, [out];\nst.global.u32 [%rd], 7;\nvmad.u32.u32.u32.shr9 %r, %r, %r, %r;\nret; }"
    )
    out = np.zeros(1, np.uint32)
    with pytest.raises(UnsupportedError, match=r"vmad\.u32\.u32\.u32\.shr9") as caught:
        Module(text).launch("k", 1, 1, [out])
    assert (caught.value.line, out[0]) == (7, 0)
