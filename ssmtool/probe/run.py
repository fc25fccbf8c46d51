"""Run the trials on devices, side by side, and compare with the executor's arithmetic bit by bit."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssmtool import __version__
from ssmtool.device.causes import classify
from ssmtool.device.diagnose import machine
from ssmtool.device.drivers import dotted
from ssmtool.device.errors import DeviceError, LoadError
from ssmtool.device.interface import Device, DeviceModule
from ssmtool.errors import SsmtoolError
from ssmtool.probe import kernels
from ssmtool.probe.reference import Reference, label
from ssmtool.probe.result import EXAMPLES, Example, Form, Result
from ssmtool.probe.trials import Operands, Trial
from ssmtool.probe.variants import Variant, register

if TYPE_CHECKING:
    from hashlib import _Hash

SELF_TEST = "self-test of the executor: no evidence about any card"
CARD = "answers of a card"
_MESSAGE = 300


def probe(
    devices: Sequence[Device],
    chosen: Sequence[Trial],
    *,
    quick: bool = False,
    progress: Callable[[int, int, str], None] = lambda _done, _total, _title: None,
) -> list[Result]:
    """Every trial on every device; a Result for each device, also for one that was lost on the way.

    `progress(done, total, title)` is called before each trial; the weights are numbers of results.
    """
    runs = [_Run(device, _result(device, quick)) for device in devices]
    weights = [trial.cases * len(trial.forms) + 50_000 * len(trial.forms) for trial in chosen]
    began = time.perf_counter()
    with ThreadPoolExecutor(max(1, len(devices))) as pool:
        for number, trial in enumerate(chosen):
            progress(sum(weights[:number]), sum(weights), trial.title)
            live = [run for run in runs if run.result.problem is None]
            if not live:
                break
            _trial(trial, live, pool)
    for run in runs:
        run.result.seconds = round(time.perf_counter() - began, 1)
    return [run.result for run in runs]


@dataclass
class _Loaded:
    """A part of a trial's forms, on one device; `places` are their numbers in the trial."""

    module: DeviceModule
    forms: list[Variant]
    places: list[int]


@dataclass
class _Tally:
    form: Form
    hash: _Hash = field(default_factory=hashlib.sha256)


@dataclass
class _Run:
    device: Device
    result: Result
    trial: Trial = field(init=False)
    parts: list[_Loaded] = field(default_factory=list)
    tallies: dict[int, _Tally] = field(default_factory=dict)

    def load(self, trial: Trial) -> None:
        """Load the trial's forms; those the device refuses are put aside, one by one."""
        self.trial, self.tallies = trial, {}
        self.parts = self._load(list(range(len(trial.forms))))
        for part in self.parts:
            for place in part.places:
                form = trial.forms[place]
                told = label(form) if trial.answered else "refused by the executor"
                self.tallies[place] = _Tally(Form(form.name, trial.title, told))

    def _load(self, places: list[int]) -> list[_Loaded]:
        forms = [self.trial.forms[place] for place in places]
        try:
            return [_Loaded(self.device.load(kernels.module(forms)), forms, places)]
        except LoadError as error:
            if len(places) == 1:
                self._refuse(forms[0], error)
                return []
            return self._halves(places)

    def _halves(self, places: list[int]) -> list[_Loaded]:
        middle = len(places) // 2
        return [*self._load(places[:middle]), *self._load(places[middle:])]

    def _refuse(self, form: Variant, error: SsmtoolError) -> None:
        if self.trial.answered:
            self.result.failed[form.name] = error.message.splitlines()[0][:_MESSAGE]
        else:
            self.result.refused.append(form.name)

    def answers(self, operands: Operands) -> dict[int, NDArray[np.uint64]]:
        """Result bits by place."""
        found: dict[int, NDArray[np.uint64]] = {}
        left, kept = self.parts, []
        while left:
            part, *left = left
            try:
                results = _launched(part, operands)
            except SsmtoolError as error:
                # One bad form must not cost its neighbours their answers; a card that is lost costs all.
                if self.device.problem is not None or isinstance(error, DeviceError):
                    raise
                part.module.close()
                if len(part.places) == 1:
                    self._refuse(part.forms[0], error)
                    del self.tallies[part.places[0]]
                else:
                    left = [*self._halves(part.places), *left]
                continue
            kept.append(part)
            for column, place in enumerate(part.places):
                found[place] = np.ascontiguousarray(results[:, column])
        self.parts = kept
        return found

    def unload(self) -> None:
        for part in self.parts:
            part.module.close()
        self.parts = []


def _launched(part: _Loaded, operands: Operands) -> NDArray[np.uint64]:
    """Results of a part's forms, one column each."""
    rows = kernels.operand_rows(part.forms)
    cases = len(next(iter(operands.values()))[0])
    given = np.zeros((cases, len(rows)), np.uint64)
    for (kinds, position), row in rows.items():
        given[:, row] = operands[kinds][position]
    results = np.zeros((cases, len(part.forms)), np.uint64)
    part.module.launch(kernels.ENTRY, -(-cases // kernels.THREADS), kernels.THREADS, [given, results, cases])
    return results


def _trial(trial: Trial, runs: Sequence[_Run], pool: ThreadPoolExecutor) -> None:
    ready = [run for run, done in zip(runs, pool.map(lambda run: _guarded(run, run.load, trial), runs), strict=True)
             if done is not None]  # fmt: skip
    reference = Reference(trial.forms) if trial.answered else None
    for operands in trial.chunks():
        ready = [run for run in ready if run.result.problem is None]
        waiting = [(run, pool.submit(_guarded, run, run.answers, operands)) for run in ready]
        wanted = (
            {}
            if reference is None
            else {place: reference.results(place, operands) for place in range(len(trial.forms))}
        )
        for run, answer in waiting:
            for place, got in (answer.result() or {}).items():
                tally = run.tallies[place]
                tally.hash.update(got.astype("<u8").tobytes())
                tally.form.cases += got.size
                if place in wanted:
                    _compare(trial.forms[place], operands, wanted[place], got, tally.form)
    for run in ready:
        for tally in run.tallies.values():
            tally.form.digest = tally.hash.hexdigest()[:32]
            if trial.answered:
                run.result.forms.append(tally.form)
            else:
                run.result.unanswered[tally.form.name] = tally.form.digest
        run.unload()


def _guarded(run: _Run, task: Callable[[Any], Any], argument: Any) -> Any:
    """What the task returns (True for nothing); None when the device failed, which ends its probe."""
    try:
        returned = task(argument)
    except (DeviceError, SsmtoolError) as error:
        run.result.problem = str(error)
        return None
    return True if returned is None else returned


def _compare(
    form: Variant, operands: Operands, wanted: NDArray[np.uint64], got: NDArray[np.uint64], into: Form
) -> None:
    places = np.flatnonzero(wanted != got)
    if not places.size:
        return
    into.different += int(places.size)
    for cause, count in classify(form.result, wanted[places], got[places]).items():
        into.causes[cause] = into.causes.get(cause, 0) + count
    for place in places[: EXAMPLES - len(into.examples)]:
        given = tuple(
            _hexadecimal(each[place], kind) for each, kind in zip(operands[form.operands], form.operands, strict=True)
        )
        into.examples.append(
            Example(given, _hexadecimal(wanted[place], form.result), _hexadecimal(got[place], form.result))
        )


def _hexadecimal(bits: Any, kind: str) -> str:
    digits = int(register(kind)[1:]) // 4
    return f"0x{int(bits) & (1 << 4 * digits) - 1:0{digits}x}"


def _result(device: Device, quick: bool) -> Result:
    properties = device.properties
    return Result(
        device=device.name,
        model=properties.model,
        target=properties.target,
        driver=dotted(properties.driver) if properties.driver else None,
        driver_version=machine().version if device.real else None,
        binding=properties.binding,
        date=datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        quick=quick,
        ssmtool=__version__,
        evidence=CARD if device.real else SELF_TEST,
    )
