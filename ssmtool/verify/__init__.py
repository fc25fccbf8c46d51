"""Whether PTX computes the right numbers, and the fast kernels give the slow ones' bits.

    from ssmtool.device import open_devices
    from ssmtool.verify import run
    with open_devices("cpu") as devices:
        outcome = run(ptx_text, cases, devices)     # cases: from ssmtool.golden.read_case
    print(outcome.verdict, [result.problem for result in outcome.failed])

NumPy is imported when the first of these names is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssmtool.golden import require_numpy
from ssmtool.lazy import lazy_names

if TYPE_CHECKING:
    from ssmtool.verify.engine import Options, run
    from ssmtool.verify.loaded import Loaded, Text
    from ssmtool.verify.relations import Relation, all_relations
    from ssmtool.verify.result import InterruptedRunError, Outcome, Result, RunResult, Status

_HOMES = {
    "Options": "engine",
    "run": "engine",
    "Loaded": "loaded",
    "Text": "loaded",
    "Relation": "relations",
    "all_relations": "relations",
    "InterruptedRunError": "result",
    "Outcome": "result",
    "Result": "result",
    "RunResult": "result",
    "Status": "result",
}

__all__ = [
    "InterruptedRunError",
    "Loaded",
    "Options",
    "Outcome",
    "Relation",
    "Result",
    "RunResult",
    "Status",
    "Text",
    "all_relations",
    "run",
]

__getattr__ = lazy_names(__name__, _HOMES, require_numpy)
