"""`ssmtool verify` as a step: vectors and relations on the cards, else on the CPU, told by kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssmtool.ci.model import Context, Done
from ssmtool.errors import SsmtoolError
from ssmtool.findings import Skip

if TYPE_CHECKING:
    from collections.abc import Collection

    from ssmtool.device import Devices
    from ssmtool.golden import ArrayResult, GoldenCase
    from ssmtool.verify.engine import Options
    from ssmtool.verify.loaded import Text
    from ssmtool.verify.result import Outcome, Result

CARD = "numbers on a card"


@dataclass(frozen=True)
class Wanted:
    """What to verify: all of the project's vectors and relations, or those that launch one of `kernels`."""

    texts: Sequence[Text]
    kernels: Collection[str] | None = None


def verify_step(context: Context) -> Done:
    """Every vector and relation, or the quick ones. Raises SsmtoolError without NumPy, header or vectors."""
    from ssmtool.golden import require_numpy

    require_numpy()
    from ssmtool.report.verify import summary, verify_json
    from ssmtool.verify.gaps import unlaunched
    from ssmtool.verify.sources import header_findings, read_ptx

    project = context.project
    if not project.header_path.exists():
        raise SsmtoolError(
            "there is no generated header",
            path=project.settings.header,
            hint="ssmtool build",
        )
    texts = read_ptx(str(project.header_path), project.show)
    outcome, skips = verify(context, Wanted(texts))
    if "build" not in context.options.steps:
        outcome.extra += header_findings(project)
    context.devices = outcome.devices
    found = outcome.findings()
    found.skips += skips
    kernels = by_kernel(outcome, [entry.name for text in texts for entry in text.module.entries])
    found.skips += unlaunched(list(kernels), outcome, project.settings.header)
    context.numbers = {name: data["numbers"] for name, data in kernels.items()}
    data = {key: value for key, value in verify_json(outcome).items() if key != "tables"}
    return Done(found, summary(outcome), {"verify": data}, kernels)


def verify(context: Context, wanted: Wanted) -> tuple[Outcome, list[Skip]]:
    """Run it, and say what was left out. The options are those of the context: `quick` and `device`."""
    from ssmtool.verify.engine import Options, applicable, relation_kernels
    from ssmtool.verify.gaps import vectors_for
    from ssmtool.verify.quick import quick_cases
    from ssmtool.verify.relations import all_relations
    from ssmtool.verify.sources import read_vectors

    project, quick = context.project, context.options.quick
    folder = project.path(project.settings.golden)
    hint = vectors_for([entry.name for text in wanted.texts for entry in text.module.entries], project.settings.header)
    if not folder.is_dir():
        raise SsmtoolError("there is no folder of golden vectors", path=project.settings.golden, hint=hint)
    vectors = read_vectors([folder], project.show, hint)
    names = None
    if wanted.kernels is not None:
        asked = set(wanted.kernels)
        vectors.cases = [case for case in vectors.cases if asked & set(case.kernels)]
        names = frozenset(each.name for each in all_relations() if asked & set(each.entries))
    options = Options(check="bounds" if quick else "all", rounds=1 if quick else 3, names=names)
    skips = []
    if quick:
        count = len(vectors.cases)
        vectors.cases = quick_cases(vectors.cases, relation_kernels(applicable(wanted.texts, options)))
        if left := count - len(vectors.cases):
            skips.append(
                Skip(
                    f"{left} of {count} vectors",
                    "--quick leaves them out",
                    "ssmtool ci",
                )
            )
    with_relations = names is None or bool(names)
    where = _here if context.options.scheduler is None else _on_cluster
    outcome, why = where(context, wanted.texts, vectors.cases, options, relations=with_relations)
    outcome.kernels = tuple(dict.fromkeys(entry.name for text in wanted.texts for entry in text.module.entries))
    outcome.results += vectors.damaged
    for result in outcome:
        if result.path is not None:
            result.path = project.show(Path(result.path))
    device = context.options.device
    outcome.again = f"ssmtool verify --device {device}" if device else "ssmtool verify"
    return outcome, [*why, *skips]


def _here(
    context: Context, texts: Sequence[Text], cases: Sequence[GoldenCase], options: Options, *, relations: bool
) -> tuple[Outcome, list[Skip]]:
    from ssmtool.device import shares
    from ssmtool.verify.engine import run

    with _devices(context) as (devices, why):
        return run(
            texts, cases, list(devices), relations=relations, options=options, listener=context.listener,
            share=shares(context.options.device), warm=True,
        ), why  # fmt: skip


def _on_cluster(
    context: Context, texts: Sequence[Text], cases: Sequence[GoldenCase], options: Options, *, relations: bool
) -> tuple[Outcome, list[Skip]]:
    """By the workers of a cluster; a worker that is refused or has gone is a skip that says so."""
    from ssmtool.cluster import open_cluster

    assert context.options.scheduler is not None
    with open_cluster(context.options.scheduler) as cluster:
        chosen = cluster.choose(context.options.device, _target(context))
        outcome = cluster.verify(
            texts, cases, chosen, relations=relations, options=options, listener=context.listener
        )  # fmt: skip
    skips = [Skip("a worker", words) for words in cluster.notes if words.startswith("worker ")]
    if all(each.word == "cpu" for each in chosen):
        skips.append(Skip(CARD, f"only workers with the resource {chosen[0].resource} were used"))
    return outcome, skips


def _target(context: Context) -> str | None:
    """`sm_37`, where it is required."""
    return next(
        (word.partition(":")[0] for word in context.options.require if word.startswith("sm_")),
        None,
    )


@contextmanager
def _devices(context: Context) -> Iterator[tuple[Devices, list[Skip]]]:
    """The devices asked for; where nobody asked, the cards, or the CPU and a skip that says why."""
    from ssmtool.device import DeviceError, open_devices

    target = _target(context)
    asked = context.options.device
    skips = []
    if asked is not None:
        devices = open_devices(asked)
        if not any(each.real for each in devices):
            skips.append(Skip(CARD, f"--device {asked} was asked for"))
    else:
        try:
            devices = open_devices("cuda", require=target)
        except DeviceError as error:
            skips.append(Skip(CARD, error.message, "run ssmtool ci on the machine with the card"))
            devices = open_devices("cpu")
    try:
        yield devices, skips
    finally:
        devices.close()


def by_kernel(outcome: Outcome, entries: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Vectors, relations and comparisons of devices by kernel, and a verdict in words for each."""
    found: dict[str, dict[str, Any]] = {}
    for name in entries:
        results = [each for each in outcome if name in each.kernels]
        found[name] = {
            "numbers": _verdict(name, results),
            "vectors": [_vector(name, each) for each in results if each.kind == "case"],
            "relations": _relations([each for each in results if each.kind == "relation"]),
            "devices": [_comparison(each) for each in results if each.kind == "devices"],
            "error_decades": _decades(name, results),
        }
    return found


def _verdict(kernel: str, results: Sequence[Result]) -> str:
    """`wrong` for the kernels of the runs that are; one that nothing ran for is `not checked`."""
    from ssmtool.verify.result import Status

    for each in results:
        if each.status is Status.WRONG and any(kernel in run.entries and not run.ok for run in each.runs):
            return "wrong"
    statuses = {each.status for each in results}
    if Status.UNCHECKED in statuses or not statuses & {Status.OK, Status.WRONG}:
        return "not checked"
    return "ok"


def _arrays(kernel: str, result: Result) -> list[ArrayResult]:
    return [array for run in result.runs if kernel in run.entries for array in run.arrays]


def _vector(kernel: str, result: Result) -> dict[str, Any]:
    """One vector's worst numbers over the buffers of the kernel's runs, with the limits that they are held to."""
    from ssmtool.verify.result import finite

    arrays = _arrays(kernel, result)
    limits = [array.policy.nmse for array in arrays if array.policy.nmse is not None]
    ran = [run for run in result.runs if kernel in run.entries]
    return {
        "name": result.name,
        "device": result.device,
        "status": result.status.value if not ran or not all(run.ok for run in ran) else "ok",
        "check": result.check,
        "seconds": round(result.seconds, 6),
        "nmse": finite(max((array.nmse for array in arrays), default=0.0)),
        "nmse_limit": min(limits, default=None),
        "max_abs_over_rms": finite(max((array.max_rms for array in arrays), default=0.0)),
        "max_ulp": max((array.max_ulp for array in arrays), default=0),
        "nonfinite": sum(array.nonfinite for array in arrays),
        "policies": list(dict.fromkeys(str(array.policy) for array in arrays)),
        "reason": result.problem or None,
    }


def _decades(kernel: str, results: Sequence[Result]) -> dict[str, int]:
    """How many buffers of vectors have an NMSE in each power of ten; `0` are those without any error."""
    counts: dict[int | None, int] = {}
    for each in results:
        for array in _arrays(kernel, each) if each.kind == "case" else ():
            power = None
            if array.nmse > 0:
                power = math.floor(math.log10(array.nmse)) if math.isfinite(array.nmse) else 99
            counts[power] = counts.get(power, 0) + 1
    words = {None: "0", 99: "not finite"}
    order = sorted(counts, key=lambda power: -999 if power is None else power)
    return {words.get(power, f"1e{power}"): counts[power] for power in order}


def _relations(results: Sequence[Result]) -> list[dict[str, Any]]:
    from ssmtool.verify.result import Status

    groups: dict[tuple[str, str], list[Result]] = {}
    for each in results:
        groups.setdefault((each.name, each.device), []).append(each)
    found = []
    for (name, device), rounds in groups.items():
        bad = next((each for each in rounds if each.status is not Status.OK), None)
        found.append(
            {"name": name, "title": rounds[0].title, "device": device, "rounds": len(rounds),
             "equal": sum(each.status is Status.OK for each in rounds),
             "status": (bad or rounds[0]).status.value, "reason": (bad.problem or None) if bad else None}
        )  # fmt: skip
    return found


def _comparison(result: Result) -> dict[str, Any]:
    return {
        "name": result.name,
        "devices": result.title,
        "status": result.status.value,
        "runs": len(result.runs),
        "equal": sum(run.ok and not run.notes for run in result.runs),
        "notes": [words for run in result.runs for words in (*run.faults, *run.notes)],
    }
