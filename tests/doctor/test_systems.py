"""Whole machines: what the doctor says of a laptop, of a K80 runner and of another GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctor.recorded import SYSTEMS, Recorded, load

from ssmtool.doctor.model import CARD, Report, Verdict
from ssmtool.doctor.require import parse
from ssmtool.doctor.run import examine

K80_RUNNER = "gpu,sm_37:2,driver-470,nvcc-11.4,nvrtc-11.4,ptxas,executor,cuda-bindings"


def examined(name: str, require: str = "") -> Report:
    return examine(Path("/project"), parse(require) if require else (), Recorded(load(name)))


def test_a_bare_laptop_checks_every_link_and_is_no_problem() -> None:
    report = examined("laptop")
    assert report.exit_code == 0
    assert report.summary == "all links but the card's can be checked here; its numbers want a K80"
    assert [link for link, reason in report.links.items() if reason] == [CARD]
    assert {check.verdict for check in report.checks} == {Verdict.OK}


def test_a_k80_runner_as_the_page_sets_it_up_is_all_ok() -> None:
    report = examined("k80", K80_RUNNER)
    assert [(check.id, check.result.found) for check in report.checks if check.verdict is not Verdict.OK] == []
    assert report.summary == "all links can be checked here, on 2 sm_37 devices too"
    assert all(reason is None for reason in report.links.values())
    assert report.machine["gpus"][1]["address"] == "0000:06:00.0"
    assert report.machine["kernel_module"] == "470.256.02"


def test_a_driver_580_and_an_h200_are_fine_and_are_said_to_be_no_k80() -> None:
    report = examined("h200")
    assert report.exit_code == 0
    assert {check.id for check in report.checks if check.verdict is not Verdict.OK} == set()
    target = next(check for check in report.checks if check.id == "gpu/target")
    assert "sm_90" in str(target.result.means)
    assert report.summary == "all links but the card's can be checked here; its numbers want a K80"


def test_a_k80_runners_requirements_fail_on_an_h200() -> None:
    report = examined("h200", K80_RUNNER)
    assert report.exit_code == 1
    missing = {check.id for check in report.problems}
    assert missing == {f"require/{word}" for word in ("sm_37:2", "driver-470", "nvcc-11.4", "cuda-bindings")}
    assert all(check.result.mend for check in report.problems)


@pytest.mark.parametrize("path", sorted(SYSTEMS.glob("*.json")), ids=lambda path: path.stem)
def test_every_recording_says_what_it_is(path: Path) -> None:
    note = load(path.stem)["note"]
    assert "real" in note.lower() or "recorded" in note.lower()


@pytest.mark.parametrize("name", ["laptop", "k80", "h200"])
def test_the_json_says_what_the_console_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from ssmtool.report.doctor import print_doctor

    report = examined(name)
    print_doctor(report)
    shown = capsys.readouterr().out
    data = report.to_json()
    assert data["exit_code"] == report.exit_code
    assert data["summary"] in shown
    assert all(f"[{check['id']}]" in shown for check in data["checks"])
