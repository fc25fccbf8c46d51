"""Everything of a subject that can be fuzzed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.draws import DRAWERS
from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.judge import Contract
from ssmtool.fuzz.kernels import KernelTarget
from ssmtool.fuzz.mutating import VectorTarget
from ssmtool.fuzz.relating import RelationTarget
from ssmtool.fuzz.target import Target
from ssmtool.fuzz.tolerance import by_reference, chained
from ssmtool.fuzz.user_target import UserTarget
from ssmtool.fuzz.userfile import UserFile
from ssmtool.golden import GoldenCase, parse_case
from ssmtool.golden.reference import knows
from ssmtool.verify.loaded import Loaded
from ssmtool.verify.plan import CPU_BYTES
from ssmtool.verify.relations import all_relations

if TYPE_CHECKING:
    from ssmtool.fuzz.batch import Subject

# State sizes of a run: few, since the executor compiles a kernel for each; two of them verify has compiled.
SIZES = (2, 16, 128)


def all_targets(subject: Subject, entries: Collection[str]) -> list[Target]:
    """The targets of a subject whose PTX has these entries: vectors, a user's kernels, or the product's with relations.

    Raises SsmtoolError for a user's file, or a vector, that is wrong.
    """
    if subject.vectors:
        return list(_of_vectors(subject))
    if subject.user is not None:
        file = UserFile(*subject.user)
        return [UserTarget(file, entry) for entry in file.entries]
    contract = Contract()
    names = {entry: names for _, table in subject.texts for entry, names in table.items()}
    found: list[Target] = [
        KernelTarget(entry, subject.sizes, contract, subject.judge) for entry in DRAWERS if entry in entries
    ]
    found += [
        RelationTarget(relation, contract, names)
        for relation in all_relations()
        if set(relation.entries) <= set(entries)
    ]
    return found


def _of_vectors(subject: Subject) -> list[Target]:
    contract = Contract()
    user = {} if subject.user is None else _user_targets(UserFile(*subject.user))
    found: list[Target] = []
    for path, data in subject.vectors:
        case = parse_case(data, Path(path))
        if case.device_bytes > CPU_BYTES:
            continue
        own = user.get(case.kernels[0]) if len(case.kernels) == 1 else None
        if knows(case):
            plain = subject.judge == "contract" and not chained(case)
            found.append(VectorTarget(case, contract.judge if plain else by_reference, special=plain))
        elif own is not None and all(len(run.launches) == 1 for run in case.meta.runs):
            found.append(VectorTarget(case, _judge_of(own), special=False))
        else:
            raise SsmtoolError(
                f"no formula is known for {', '.join(case.kernels)}, so its inputs cannot be changed", path=path,
                hint="ssmtool fuzz FILE.py --vectors ...: a file with the formula (docs/fuzz.md)",
            )  # fmt: skip
    return found


def _judge_of(target: UserTarget) -> Callable[[str, GoldenCase, Loaded], Failure | None]:
    return lambda _name, case, loaded: target.judge(case, loaded)


def _user_targets(file: UserFile) -> dict[str, UserTarget]:
    return {entry: UserTarget(file, entry) for entry in file.entries}


def too_large(subject: Subject) -> list[str]:
    """Vectors that are left out: their buffers are for offsets past 32 bits, and one round would take minutes."""
    cases = [parse_case(data, Path(path)) for path, data in subject.vectors]
    return [case.meta.name for case in cases if case.device_bytes > CPU_BYTES]


def kernels_without(targets: Sequence[Target], entries: Collection[str]) -> list[str]:
    """Kernels of the PTX that no target launches."""
    launched = {kernel for target in targets for kernel in target.kernels}
    return [entry for entry in entries if entry not in launched]
