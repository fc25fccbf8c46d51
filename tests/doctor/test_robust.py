"""The doctor does not fall over: not on a machine that tells nothing, and not in an installation that is broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doctor.recorded import Recorded, load

from conftest import ROOT
from ssmtool.doctor.model import Report, Verdict
from ssmtool.doctor.run import examine
from ssmtool.doctor.system import ThisMachine

NOTHING: dict[str, Any] = {
    "driver": "cannot be started",
    "requirements": None,
    "free": None,
    "packages": dict.fromkeys(("click", "msgspec", "platformdirs"), "9"),
}


def _failed(report: Report) -> list[str]:
    """Checks that met what they did not foresee."""
    return [check.result.found for check in report.checks if check.result.found.startswith("the check itself failed")]


def test_a_machine_that_tells_nothing() -> None:
    report = examine(Path("/project"), (), Recorded(NOTHING))
    assert _failed(report) == []
    assert report.exit_code == 0
    assert "not checkable here: source -> PTX" in report.summary


@pytest.mark.parametrize("name", ["laptop", "k80", "h200"])
@pytest.mark.parametrize("junk", [None, "", "\x00\x1b[31m,,=\n", "9" * 5000])
def test_every_fact_missing_or_junk_in_turn(name: str, junk: str | None) -> None:
    for table in ("files", "commands", "environ", "folders", "access", "imports"):
        for key in load(name).get(table, {}):
            data = load(name)
            if junk is None:
                del data[table][key]
            elif table in ("files", "environ"):
                data[table][key] = junk
            elif table in ("commands", "imports"):
                data[table][key] = [0, junk, junk]
            else:
                continue
            data["driver_unhidden"] = data["driver"]
            report = examine(Path("/project"), (), Recorded(data))
            assert _failed(report) == [], (table, key)
            json.dumps(report.to_json())


def test_a_fault_in_a_check_is_told_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def falls_over(*_: object) -> int | None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(Recorded, "free_bytes", falls_over)
    report = examine(Path("/project"), (), Recorded(load("laptop")))
    assert _failed(report) == ["the check itself failed: RuntimeError: no such luck"]
    assert next(check for check in report.checks if check.id == "base/disk").verdict is Verdict.UNKNOWN
    assert len(report.checks) > 8


def test_what_a_driver_says_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    from ssmtool.report.doctor import print_doctor

    data = load("k80")
    data["driver"]["devices"][0]["name"] = "Tesla\x1b[2J\nok  all is well"
    print_doctor(examine(Path("/project"), (), Recorded(data)))
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert not any(line.startswith("ok  all is well") for line in shown.splitlines())


def _python(*words: str, environ: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environ, cwd=folder, timeout=60, check=False
    )


def test_without_any_package_it_says_which_are_missing(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[1:] = ['--json']\n"
    code += "from ssmtool.doctor.__main__ import main\nsys.exit(main())"
    ran = _python("-I", "-S", "-c", code, environ={}, folder=tmp_path)
    assert ran.stderr == ""
    data = json.loads(ran.stdout)
    assert (ran.returncode, data["exit_code"]) == (1, 1)
    assert data["summary"].startswith("base/packages: click, msgspec, platformdirs missing")
    checks = {check["id"]: check for check in data["checks"]}
    assert checks["base/packages"]["mend"] == "pip install ."
    assert checks["build/compiler"]["verdict"] == "could not tell"
    assert not any("the check itself failed" in check["found"] for check in data["checks"])


def test_without_path_and_home_the_command_still_answers(tmp_path: Path) -> None:
    ran = _python("-m", "ssmtool", "doctor", "--format", "json", environ={"PATH": ""}, folder=tmp_path)
    assert ran.stderr == ""
    data = json.loads(ran.stdout)
    assert not any("the check itself failed" in check["found"] for check in data["checks"])
    assert not any("Traceback" in check["found"] for check in data["checks"])


def test_no_optional_package_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('numpy', 'llvmlite', 'cuda', 'pycuda', 'rich', 'tree_sitter'):\n"
        "            raise AssertionError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "from ssmtool.cli import run\n"
        "sys.exit(run(['doctor']))"
    )
    ran = _python("-c", code, environ={"PATH": "", "HOME": str(tmp_path)}, folder=tmp_path)
    assert ran.stderr == ""
    assert "AssertionError" not in ran.stdout


class TestThisMachine:
    def test_a_program_that_never_ends_is_left_behind(self) -> None:
        ran = ThisMachine().run([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.3)
        assert ran.failure == "did not end within 0.3 s"

    def test_a_program_that_dies(self) -> None:
        ran = ThisMachine().run([sys.executable, "-c", "import os; os.kill(os.getpid(), 11)"])
        assert ran.failure == "was killed by signal 11"

    def test_a_program_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("not a program")
        assert "cannot be started" in str(ThisMachine().run([str(tmp_path / "text")]).failure)
        assert "cannot be started" in str(ThisMachine().run(["/no/such/program"]).failure)
        assert "cannot be started" in str(ThisMachine().run(["a\0b"]).failure)

    def test_a_pipe_is_not_read(self, tmp_path: Path) -> None:
        import os

        os.mkfifo(tmp_path / "pipe")
        assert ThisMachine().read(str(tmp_path / "pipe")) is None
        assert ThisMachine().read(str(tmp_path)) is None
        assert ThisMachine().read(str(tmp_path / "none")) is None

    def test_variables_are_taken_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
        code = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))"
        machine = ThisMachine()
        assert machine.run([sys.executable, "-c", code]).out.strip() == "7"
        assert machine.run([sys.executable, "-c", code], without=["CUDA_VISIBLE_DEVICES"]).out.strip() == "None"
