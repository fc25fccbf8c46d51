"""Golden vectors: what a kernel must compute, in one self-contained file per case.

    from ssmtool.golden import read_case, compare
    case = read_case("golden/fc_ssm_recurrence/one-token.npz")
    for run in case.meta.runs: ...                     # launches, each from the same `case.image(name)` of every buffer
    results = compare(case, {"s": s, "y": y})          # after a run: one result for each buffer

NumPy is imported when the first of these names is. Nothing here runs a kernel.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ssmtool.lazy import lazy_names

if TYPE_CHECKING:
    from ssmtool.golden.case import Argument, Buffer, CaseError, GoldenCase, Launch, Meta, Policy, Run
    from ssmtool.golden.compare import ArrayResult, compare, compare_array
    from ssmtool.golden.format import case_bytes, parse_case, read_case

_HOMES = {
    "Argument": "case",
    "Buffer": "case",
    "CaseError": "case",
    "GoldenCase": "case",
    "Launch": "case",
    "Meta": "case",
    "Policy": "case",
    "Run": "case",
    "ArrayResult": "compare",
    "compare": "compare",
    "compare_array": "compare",
    "case_bytes": "format",
    "parse_case": "format",
    "read_case": "format",
}

__all__ = [
    "Argument",
    "ArrayResult",
    "Buffer",
    "CaseError",
    "GoldenCase",
    "Launch",
    "Meta",
    "Policy",
    "Run",
    "case_bytes",
    "compare",
    "compare_array",
    "parse_case",
    "read_case",
    "require_numpy",
]


def require_numpy() -> None:
    """Raise SsmtoolError where NumPy is not installed: it comes with an extra."""
    try:
        importlib.import_module("numpy")
    except ModuleNotFoundError:
        from ssmtool.errors import SsmtoolError

        raise SsmtoolError(
            "golden vectors need numpy, which is not installed", hint="pip install 'ssmtool[executor]'"
        ) from None


__getattr__ = lazy_names(__name__, _HOMES, require_numpy)
