"""The run of steps: a crash is told and the others run, an interrupt leaves a partial report."""

from __future__ import annotations

from pathlib import Path

from ssmtool.ci.document import document
from ssmtool.ci.model import Context, Done, Options, Step
from ssmtool.ci.run import run
from ssmtool.errors import ProductError, SsmtoolError
from ssmtool.findings import Outcome, Verdict
from ssmtool.project import Project, Settings


def fine(_context: Context) -> Done:
    return Done(Outcome(), "fine", {}, {"k": {"numbers": "ok"}})


def crash(_context: Context) -> Done:
    raise ZeroDivisionError("by zero")


def interrupted(_context: Context) -> Done:
    raise KeyboardInterrupt


def unreadable(_context: Context) -> Done:
    raise SsmtoolError("no such file", hint="make it")


def damaged(_context: Context) -> Done:
    raise ProductError("is no PTX", path="a.ptx", line=3)


def context(folder: Path) -> Context:
    return Context(Project(folder, Settings()), Options())


FINE = dict.fromkeys(("build", "registry", "audit-ptx", "verify"), fine)


def test_a_crash_is_a_finding_and_the_others_run(tmp_path: Path) -> None:
    told: list[Step] = []
    whole = run(context(tmp_path), tell=told.append, steps={**FINE, "registry": crash})
    assert [step.name for step in told] == ["build", "registry", "audit-ptx", "verify"]
    assert [step.word for step in whole.steps] == ["ok", "not checked", "ok", "ok"]
    assert whole.outcome.verdict is Verdict.UNCHECKED
    (finding,) = whole.outcome.findings
    assert finding.rule == "ci/crashed"
    assert "the step registry crashed: ZeroDivisionError: by zero" in finding.message
    assert document(whole, command="ci")["headline"].startswith("not checked: header -> loader (registry): ")


def test_an_interrupt_keeps_what_there_is_and_marks_it_partial(tmp_path: Path) -> None:
    whole = run(context(tmp_path), steps={**FINE, "audit-ptx": interrupted})
    data = document(whole, command="ci")
    assert data["partial"] is True
    assert data["headline"].startswith("interrupted: not checked: ")
    assert [step.word for step in whole.steps] == ["ok", "ok", "not checked", "not checked"]
    assert data["kernels"] == [{"name": "k", "numbers": "ok", "verdict": "ok"}]


def test_errors_keep_the_verdict_of_their_exit_code(tmp_path: Path) -> None:
    whole = run(context(tmp_path), steps={**FINE, "build": unreadable})
    assert whole.outcome.verdict is Verdict.UNCHECKED
    assert whole.outcome.required_skips[0].fix == "make it"
    whole = run(context(tmp_path), steps={**FINE, "build": unreadable, "verify": damaged})
    assert whole.outcome.verdict is Verdict.WRONG
    assert document(whole, command="ci")["headline"].startswith("wrong: launch -> numbers (verify): a.ptx:3: is no PTX")


def test_what_two_steps_say_alike_is_counted_once(tmp_path: Path) -> None:
    whole = run(context(tmp_path), steps={**FINE, "build": unreadable, "registry": unreadable})
    assert len(whole.outcome.required_skips) == 2
    assert [step.skipped for step in whole.steps] == [1, 1, 0, 0]


def test_a_kernel_that_cannot_load_is_wrong_whatever_its_numbers(tmp_path: Path) -> None:
    def ladder(_context: Context) -> Done:
        return Done(Outcome(), "", {}, {"k": {"ladder": {"has_loader": True, "loads": False}}})

    whole = run(context(tmp_path), steps={**FINE, "registry": ladder})
    assert document(whole, command="ci")["kernels"][0]["verdict"] == "wrong"
