"""Random launches of kernels against their reference and their relations, shrunk to the smallest that fails.

    from ssmtool.fuzz import Plan, Subject, fuzz
    subject = Subject(texts=((ptx_text, {}),))
    found = fuzz(Plan(subject, targets=("fc_sigmoid", "R2/warp"), seed=1, rounds=100))
    print(found.rounds, [each.failure.message for each in found.found])

`batches`, `run_batch` and `Collector` are the same in pieces, for whoever spreads the work: batches and their results
can be pickled. hypothesis draws and shrinks; it is imported by `run_batch` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssmtool.golden import require_numpy
from ssmtool.lazy import lazy_names

if TYPE_CHECKING:
    from ssmtool.fuzz.batch import Batch, BatchResult, Subject, close, run_batch
    from ssmtool.fuzz.engine import Limits, require_hypothesis
    from ssmtool.fuzz.run import Collector, Found, Fuzzed, Plan, batches, fuzz

_HOMES = {
    "Batch": "batch",
    "BatchResult": "batch",
    "Collector": "run",
    "Found": "run",
    "Fuzzed": "run",
    "Limits": "engine",
    "Plan": "run",
    "Subject": "batch",
    "batches": "run",
    "close": "batch",
    "fuzz": "run",
    "require_hypothesis": "engine",
    "run_batch": "batch",
}

__all__ = [
    "Batch",
    "BatchResult",
    "Collector",
    "Found",
    "Fuzzed",
    "Limits",
    "Plan",
    "Subject",
    "batches",
    "close",
    "fuzz",
    "require_hypothesis",
    "run_batch",
]

__getattr__ = lazy_names(__name__, _HOMES, require_numpy)
