"""Compiles what a run on the CPU will launch, on two processors, before its rounds begin."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence

from ssmtool import ptx
from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.batch import Subject
from ssmtool.fuzz.choices import TAPE_BYTES, Choices
from ssmtool.fuzz.target import CaseTarget, Target
from ssmtool.fuzz.targets import all_targets
from ssmtool.verify.engine import relation_kernels
from ssmtool.verify.loaded import Text
from ssmtool.verify.relations import all_relations
from ssmtool.verify.warm import Wanted, compile_ahead

# Rounds of each target that are drawn to see what it launches: nearly every block size is among them.
_LOOKS = 24


class _TimeUpError(Exception):
    """No time is left to compile ahead; the rounds compile what they need."""


def warm(subject: Subject, names: Sequence[str], until: float | None) -> None:
    """Have the kernels of these targets in the executor's cache, as far as that goes by `until` (of time.monotonic)."""
    texts = [Text(ptx.parse(text), dict(given)) for text, given in subject.texts]
    entries = [entry.name for text in texts for entry in text.module.entries]
    targets = [each for each in all_targets(subject, entries) if each.name in names]
    wanted = list(dict.fromkeys(each for target in targets for each in _launched(target, subject)))

    def tell(_done: int, _total: int) -> None:
        if until is not None and time.monotonic() >= until:
            raise _TimeUpError

    try:
        compile_ahead(texts, wanted, tell)
    except _TimeUpError:
        return


def _launched(target: Target, subject: Subject) -> Iterator[Wanted]:
    if isinstance(target, CaseTarget):
        for number in range(_LOOKS):
            word = hashlib.shake_128(f"{target.name}/{number}".encode()).digest(TAPE_BYTES)
            try:
                case = target.draw(Choices(word if number else b""))
            except SsmtoolError:
                return  # the first round tells it
            for run in case.meta.runs:
                for launch in run.launches:
                    yield launch.entry, launch.block, subject.check
        return
    relations = [(each, 1) for each in all_relations() if each.name == target.name]
    for entry, threads in sorted(relation_kernels(relations)):
        yield entry, (threads, 1, 1), subject.check
