"""`ssmtool fuzz`: random launches against reference and relations, shrunk to the smallest that fails."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import click

from ssmtool.cli.context import (
    AppContext,
    built_header,
    exits_with_code,
    print_report,
    report_format_option,
    scheduler_option,
)
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.findings import Outcome
    from ssmtool.fuzz import Fuzzed, Plan, Subject
    from ssmtool.fuzz.saving import Saved
    from ssmtool.fuzz.target import Target

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_DEFAULT_SECONDS = 60.0
_MOST_FAILURES = 20
# Seconds that all explanations of failures may take together.
_DIAGNOSIS = 10.0
# Seeds drawn here: short enough to be typed again.
_SEEDS = 10**9


class _Seconds(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """`60s`, `5m`, `1h`, or seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smh]?)", str(value).strip())
        seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
        if seconds <= 0:
            self.fail(f"{value!r} is no duration such as 60s, 5m or 1h", param, ctx)
        return seconds


@click.command(
    "fuzz",
    epilog="Exit codes: 0 nothing failed; 1 something is wrong; 2 something could not be checked; 130 interrupted.",
)
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE.py]")
@click.option(
    "--ptx", metavar="FILE", help="Fuzz this: .ptx, or a C file with PTX in it (default: the project's header)."
)
@click.option("--vectors", multiple=True, metavar="FILE", help="Change the inputs of this vector (or folder of them).")
@click.option("--only", multiple=True, metavar="PATTERN", help="Kernels or relations of this name or pattern.")
@click.option("--rounds", type=click.IntRange(1, 10_000_000), metavar="N", help="Of each kernel and relation.")
@click.option(
    "--time",
    "seconds",
    type=_Seconds(),
    metavar="TIME",
    help="Stop after 60s, 5m, 1h. [default: 60s, once all had rounds]",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Of all choices (default: a new one).")
@click.option("--device", metavar="WORDS", help="cpu, cuda[:N], pycuda[:N], all, ... (default: the GPUs, else cpu).")
@click.option("--save", type=click.Path(path_type=Path, file_okay=False), default=Path("failures"), metavar="DIR",
              show_default=True, help="Write each failure as a vector, with what was got and the PTX.")  # fmt: skip
@click.option(
    "--judge",
    type=click.Choice(["contract", "policy"]),
    default="contract",
    show_default=True,
    help="Of the product's kernels: the contract's operations bit by bit, or verify's tolerances.",
)
@click.option(
    "--check",
    type=click.Choice(["all", "bounds"]),
    default="all",
    show_default=True,
    help="On the CPU: races, unwritten memory and bounds; or bounds only.",
)
@click.option("--max-failures", type=click.IntRange(1, 1000), default=_MOST_FAILURES, show_default=True, metavar="N",
              help="Stop after so many distinct ones.")  # fmt: skip
@scheduler_option
@report_format_option
@click.pass_obj
@exits_with_code
def command(
    app: AppContext,
    file: Path | None,
    ptx: str | None,
    vectors: tuple[str, ...],
    only: tuple[str, ...],
    rounds: int | None,
    seconds: float | None,
    seed: int | None,
    device: str | None,
    save: Path,
    judge: Literal["contract", "policy"],
    check: Literal["all", "bounds"],
    max_failures: int,
    scheduler: str | None,
    output_format: str,
) -> int:
    """Launch kernels at random, and shrink what fails to the smallest.

    Shapes, chunks, snapshots and inputs are drawn; each result is held to the contract's float32 operations, bit by
    bit, and the relations R1 to R12 to themselves. What fails is shrunk and saved as a vector that `ssmtool verify`
    fails. Kernels of your own are fuzzed by a FILE.py that draws a launch and has the formula.

    \b
    Examples:
      ssmtool fuzz                                  a minute of everything
      ssmtool fuzz --time 10m --device cuda
      ssmtool fuzz --only 'fc_ssm_recurrence_seq*' --rounds 500 --seed 7
      ssmtool fuzz my_fuzz.py --ptx my_kernels.ptx  kernels of your own
      ssmtool fuzz --vectors golden/recurrence/chunks.npz
    """
    from ssmtool.fuzz import require_hypothesis

    require_hypothesis()
    from ssmtool.device import shares
    from ssmtool.fuzz import Plan, fuzz
    from ssmtool.report.fuzz import progress

    seed = secrets.randbelow(_SEEDS) if seed is None else seed
    unlimited = rounds is None and seconds is None
    if unlimited:
        seconds = _DEFAULT_SECONDS
    chosen = _choose(app, file, ptx, vectors, only, judge, check)
    names, shown, why = _devices(device) if scheduler is None else ((), [], [])
    quiet = app.quiet or output_format != "console"
    again = _again(file, ptx, vectors, only, device, judge, check, scheduler)
    limits = _limits(None if unlimited else seconds, rounds, max_failures)
    if not quiet:
        for note in why:
            click.echo(note, err=True)
        click.echo(
            f"seed {seed}, hypothesis {_release()}; the same rounds again: {again} --seed {seed}{limits}", err=True
        )
    plan = Plan(
        chosen.subject, tuple(each.name for each in chosen.targets), seed, names, rounds, seconds,
        share=shares(device), most=max_failures, first_whole=unlimited,
    )  # fmt: skip
    if scheduler is None:
        with progress(quiet=quiet) as listener:
            found = fuzz(plan, listener)
    else:
        found, shown = _on_cluster(plan, scheduler, device, quiet=quiet)
    return _report(app, chosen, plan, found, shown, save, f"{again} --seed {seed}", output_format)


def _on_cluster(plan: Plan, scheduler: str, device: str | None, *, quiet: bool) -> tuple[Fuzzed, list[str]]:
    """By workers; and what they are. What there is to say about them is said."""
    from ssmtool.cluster import open_cluster
    from ssmtool.cluster.fuzzing import fuzz_on_cluster
    from ssmtool.report.fuzz import progress

    with open_cluster(scheduler) as cluster:
        wanted = cluster.choose(device, None)
        with progress(quiet=quiet) as listener:
            found = fuzz_on_cluster(cluster, plan, wanted, listener)
        if not quiet:
            for note in cluster.notes:
                click.echo(note, err=True)
    return found, [f"{each.word} on {scheduler}" for each in wanted]


@dataclass
class _Chosen:
    """What is fuzzed; kernels of the PTX, and vectors, that are not."""

    subject: Subject
    targets: list[Target]
    left_out: list[str]
    too_large: list[str]

    @property
    def named(self) -> list[tuple[str, tuple[str, ...]]]:
        """(name, kernels) of each target."""
        return [(each.name, each.kernels) for each in self.targets]


def _choose(
    app: AppContext, file: Path | None, ptx: str | None, vectors: Sequence[str], only: Sequence[str],
    judge: Literal["contract", "policy"], check: Literal["all", "bounds"],
) -> _Chosen:  # fmt: skip
    from ssmtool.fuzz import Subject
    from ssmtool.fuzz.batch import read_user_file
    from ssmtool.fuzz.targets import all_targets, kernels_without, too_large
    from ssmtool.verify.sources import fits, read_ptx

    texts = read_ptx(ptx if ptx is not None else str(built_header(app.load_project())))
    entries = [entry.name for text in texts for entry in text.module.entries]
    subject = Subject(
        texts=tuple(
            (text.module.text, {name: tuple(given) for name, given in text.parameters.items()}) for text in texts
        ),
        user=read_user_file(file) if file is not None else None,
        vectors=_vectors(vectors),
        judge=judge,
        check=check,
    )
    every = all_targets(subject, entries)
    targets = [each for each in every if fits(only, each.name, each.kernels)]
    if not every and subject.vectors:
        raise SsmtoolError("every vector has more buffers than a round can run on", hint="ssmtool verify --device cuda")
    if not every:
        raise SsmtoolError(
            f"no formula is known for {', '.join(entries[:3])}{' and others' if len(entries) > 3 else ''}",
            hint="ssmtool fuzz FILE.py --ptx ...: a file with a draw and a formula for each kernel (docs/fuzz.md)",
        )
    if not targets:
        raise SsmtoolError(f"no kernel, relation or vector fits {' or '.join(only)}")
    return _Chosen(subject, targets, [] if only or vectors else kernels_without(every, entries), too_large(subject))


def _vectors(given: Sequence[str]) -> tuple[tuple[str, bytes], ...]:
    from ssmtool.files import read_bytes

    found: list[tuple[str, bytes]] = []
    for each in given:
        path = Path(each)
        files = sorted(path.rglob("*.npz")) if path.is_dir() else [path]
        files = [file for file in files if not file.name.endswith(".got.npz") or file == path]
        if not files:
            raise SsmtoolError("this folder holds no golden vector (.npz)", path=path)
        found += [(str(file), read_bytes(file)) for file in files]
    return tuple(found)


def _devices(words: str | None) -> tuple[tuple[str, ...], list[str], list[str]]:
    """Names of the devices, what they are, and why they are not GPUs where nobody asked."""
    from ssmtool.device import open_preferred

    devices, why = open_preferred(words)
    with devices:
        return tuple(each.name for each in devices), [str(each) for each in devices], why


def _again(
    file: Path | None, ptx: str | None, vectors: Sequence[str], only: Sequence[str], device: str | None, judge: str,
    check: str, scheduler: str | None,
) -> str:  # fmt: skip
    """The command, without limits and seed."""
    words = ["ssmtool fuzz"]
    words += [quote(str(file))] if file is not None else []
    words += [f"--ptx {quote(ptx)}"] if ptx else []
    words += [f"--vectors {quote(each)}" for each in vectors]
    words += [f"--only {quote(each)}" for each in only]
    words += [f"--device {quote(device)}"] if device else []
    words += [f"--judge {judge}"] if judge != "contract" else []
    words += [f"--check {check}"] if check != "all" else []
    words += [f"--scheduler {quote(scheduler)}"] if scheduler else []
    return " ".join(words)


def _limits(seconds: float | None, rounds: int | None, most: int) -> str:
    """The options that end a run, as they were given."""
    words = [f" --rounds {rounds}"] if rounds is not None else []
    if seconds is not None:
        unit = next((unit for unit in ("h", "m") if seconds % _UNITS[unit] == 0), "s")
        words.append(f" --time {seconds / _UNITS[unit]:.10g}{unit}")
    words += [f" --max-failures {most}"] if most != _MOST_FAILURES else []
    return "".join(words)


def _release() -> str:
    from importlib.metadata import version

    return version("hypothesis")


def _report(
    app: AppContext, chosen: _Chosen, plan: Plan, found: Fuzzed, devices: Sequence[str], folder: Path, again: str,
    output_format: str,
) -> int:  # fmt: skip
    from ssmtool.fuzz.saving import save
    from ssmtool.report.console import print_outcome
    from ssmtool.report.fuzz import fuzz_json, print_fuzz, summary
    from ssmtool.verify.diagnosis import Purse

    purse = Purse(_DIAGNOSIS)
    saved = [save(each, plan.subject, plan.seed, folder, purse) for each in found.found]
    outcome = _outcome(chosen, plan, found, saved, again)
    interrupted = found.ended == "interrupted"
    if output_format != "console":
        extra = fuzz_json(found, saved, chosen.named, devices, _release())
        print_report(outcome, output_format, command="fuzz", extra=extra)
    else:
        if not app.quiet:
            print_fuzz(found, chosen.named)
            for path in dict.fromkeys(path for each in saved for path in each.paths):
                click.echo(f"wrote {path}", err=True)
        print_outcome(outcome, summary=summary(found, devices), quiet=app.quiet)
    return 130 if interrupted else int(outcome.verdict)


def _missed(plan: Plan, found: Fuzzed) -> list[str]:
    """Targets that nothing is known of."""
    known = {name for name, _, _ in found.problems} | {each.failure.target for each in found.found}
    return [name for name in plan.targets if not found.rounds.get(name) and name not in known]


def _outcome(chosen: _Chosen, plan: Plan, found: Fuzzed, saved: Sequence[Saved], again: str) -> Outcome:
    from ssmtool.findings import Outcome, Skip
    from ssmtool.fuzz.saving import finding

    outcome = Outcome()
    for each in saved:
        target = quote(each.found.failure.target)
        outcome.findings.append(finding(each, plan.seed, f"{again} --only {target} --rounds {each.found.round}"))
    for target, why, fix in found.problems:
        outcome.required_skips.append(Skip(target, why, fix))
    if found.ended == "interrupted":
        outcome.required_skips.append(Skip("the rest of the rounds", "interrupted", again))
    elif found.ended == "time" and (missed := _missed(plan, found)):
        few = ", ".join(missed[:3]) + (f" and {len(missed) - 3} more" if len(missed) > 3 else "")
        why = f"the time was up before a first round of {len(missed)} of {len(plan.targets)}"
        outcome.required_skips.append(Skip(few, why, f"{again} --time 5m"))
    for name in chosen.too_large:
        outcome.skips.append(Skip(f"vector {name}", "its buffers are too large for rounds", "ssmtool verify"))
    if chosen.left_out:
        names = ", ".join(chosen.left_out)
        outcome.skips.append(Skip(names, "no formula is known, and no relation has it", "docs/fuzz.md"))
    return outcome
