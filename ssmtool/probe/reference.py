"""The executor's arithmetic for instruction forms, without memory, threads or PTX around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.execute.numerics.evidence import Evidence, Level
from ssmtool.execute.numerics.form import UnsupportedError
from ssmtool.execute.numerics.harness import Operation, compile_all
from ssmtool.probe.body import emit, forms_of
from ssmtool.probe.variants import Variant, register


def executed(form: Variant) -> bool:
    """Whether the executor runs the form; the others it refuses by name."""
    try:
        forms_of(form)
    except UnsupportedError:
        return False
    return True


def label(form: Variant) -> str:
    """What the executor says about its own result: `exact`, or the unit that it models."""
    labels: list[Evidence] = [each.evidence for each in forms_of(form)]
    # Alone in a kernel, a product is followed by no sum that it could be fused with.
    doubtful = [each for each in labels if each.level is Level.UNIT_MODEL]
    return str(doubtful[0]) if doubtful else "exact"


class Reference:
    """Compiled forms. `results` gives what a card that agrees would."""

    def __init__(self, forms: Sequence[Variant]) -> None:
        self.forms = tuple(forms)
        operations = [Operation(emit(v), tuple(register(k) for k in v.operands), register(v.result)) for v in forms]
        self._mapped = compile_all(operations, 8, level=0)

    def results(self, number: int, operands: Mapping[tuple[str, ...], Sequence[NDArray[Any]]]) -> NDArray[np.uint64]:
        """Form `number` on the operands of its kinds: result bits, zero-extended."""
        form = self.forms[number]
        sizes = [np.dtype(f"u{int(register(kind)[1:]) // 8}") for kind in form.operands]
        cut = [each.astype(size) for each, size in zip(operands[form.operands], sizes, strict=True)]
        return self._mapped[number](*cut).astype(np.uint64)
