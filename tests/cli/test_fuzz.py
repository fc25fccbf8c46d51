"""`ssmtool fuzz`: exit codes, what is told and saved, limits, interruption, vectors, a missing hypothesis."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import ROOT, Run
from ssmtool.audit.inputs import read_input
from ssmtool.cli import fuzz

FUZZ = ("fuzz", "--device", "cpu")


@pytest.fixture(scope="session")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The PTX of the 15 kernels: without the fast ones, whose relations compile the most."""
    path = tmp_path_factory.mktemp("ptx") / "right.ptx"
    path.write_text(read_input(str(ROOT / "generated" / "fc_cuda_ptx.h"))[0].module.text)
    return path


@pytest.fixture(scope="session")
def wrong(right: Path) -> Path:
    """The same, the sigmoid without the sign of x."""
    text = right.read_text()
    start = text.index(".entry fc_sigmoid(")
    assert "neg.f32" in text[start:]
    path = right.with_name("wrong.ptx")
    path.write_text(text[:start] + text[start:].replace("neg.f32", "mov.f32", 1))
    return path


def flat(text: str) -> str:
    """Without the breaks of folded lines."""
    return " ".join(text.split())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_right_kernels_are_0_and_nothing_is_written(run: Run, here: Path, right: Path) -> None:
    ran = run(here, *FUZZ, "--ptx", str(right), "--only", "fc_sigmoid", "--rounds", "12", "--seed", "4")
    assert ran.code == 0
    assert "ok: 24 rounds of 2 targets on cpu" in ran.out
    assert "seed 4" in ran.out
    assert "seed 4, hypothesis" in ran.err
    assert "--only fc_sigmoid --device cpu --seed 4 --rounds 12\n" in ran.err
    assert not list(here.iterdir())


def test_the_command_that_is_told_has_every_limit_and_the_scheduler() -> None:
    assert fuzz._again(None, "k.ptx", (), (), None, "contract", "all", "local:2").endswith("--scheduler local:2")
    assert fuzz._limits(None, None, 20) == ""
    assert fuzz._limits(600.0, 7, 3) == " --rounds 7 --time 10m --max-failures 3"
    assert [fuzz._limits(each, None, 20) for each in (90.5, 7200.0)] == [" --time 90.5s", " --time 2h"]


def test_a_wrong_kernel_is_1_and_the_command_that_is_told_fails_again(
    run: Run, here: Path, right: Path, wrong: Path
) -> None:
    ran = run(here, *FUZZ, "--ptx", str(wrong), "--only", "fc_sigmoid", "--rounds", "12", "--seed", "4")
    assert ran.code == 1
    assert "WRONG" in ran.out
    assert "x[i=0] is" in flat(ran.out)
    assert "the sign of x lost" in flat(ran.out)
    assert "of seed 4 on cpu" in flat(ran.out)
    command = next(line for line in ran.out.splitlines() if "mend it: ssmtool verify failures/" in line)
    words = command.split("mend it: ssmtool ")[1].split()
    again = run(here, *words)
    assert again.code == 1
    assert "the sign of x lost" in flat(again.out)
    vector = words[1]
    assert run(here, "verify", vector, "--ptx", str(right), "--device", "cpu").code == 0
    assert run(here, "golden", "check", vector).code == 0


def test_json_has_everything_and_the_same_seed_the_same_rounds(run: Run, here: Path, wrong: Path) -> None:
    ptx, found = str(wrong), []
    for folder in ("one", "two"):
        ran = run(
            here, *FUZZ, "--ptx", ptx, "--only", "fc_sigmoid", "--rounds", "10", "--seed", "9", "--save", folder,
            "--format", "json",
        )  # fmt: skip
        assert ran.code == 1
        found.append(ran.json)
    extra = found[0]["extra"]
    assert extra["seed"] == 9
    assert extra["rounds"]["fc_sigmoid"] >= 1
    assert extra["rounds_per_second"] > 0
    assert extra["ended"] == "rounds"
    assert not extra["partial"]
    (failure,) = extra["failures"]
    assert failure["kind"] == "value"
    assert failure["where"] == "x"
    assert failure["verify_fails_it"]
    assert Path(failure["vector"]).exists()
    assert failure["choices"] == found[1]["extra"]["failures"][0]["choices"]
    assert extra["rounds"] == found[1]["extra"]["rounds"]
    rules = {each["rule"] for each in found[0]["findings"]}
    assert rules == {"fuzz/value"}


def test_a_folder_that_cannot_be_written_is_told_and_the_failure_is_not_lost(run: Run, here: Path, wrong: Path) -> None:
    (here / "taken").write_text("a file")
    ran = run(
        here, *FUZZ, "--ptx", str(wrong), "--only", "fc_sigmoid", "--rounds", "5",
        "--save", "taken/in", "--seed", "1",
    )  # fmt: skip
    assert ran.code == 1
    assert "Not saved" in flat(ran.out)
    assert "mend it: ssmtool fuzz --ptx" in flat(ran.out)


def test_a_vector_is_changed_and_judged(run: Run, here: Path, right: Path, wrong: Path) -> None:
    vector = str(ROOT / "golden" / "sigmoid" / "n1.npz")
    good = run(here, *FUZZ, "--ptx", str(right), "--vectors", vector, "--rounds", "10", "--seed", "2")
    assert good.code == 0
    assert "sigmoid/n1" in good.out
    bad = run(here, *FUZZ, "--ptx", str(wrong), "--vectors", vector, "--rounds", "10", "--seed", "2")
    assert bad.code == 1


def test_time_that_ends_before_all_kernels_had_a_round_is_2(run: Run, here: Path, right: Path) -> None:
    started = time.monotonic()
    ran = run(here, *FUZZ, "--ptx", str(right), "--time", "0.1s", "--seed", "2", "--only", "fc_ssm_decay_gate*")
    assert time.monotonic() - started < 20
    assert ran.code == 2
    assert "the time was up before a first round" in flat(ran.out)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--only", "no-such-*"], "no kernel, relation or vector fits"),
        (["--ptx", "nowhere.ptx"], "no such file"),
        (["--device", "gpu"], "--device gpu"),
        (["--rounds", "0"], "--rounds"),
        (["--time", "never"], "no duration such as"),
        (["--seed", "-1"], "--seed"),
        (["nowhere.py"], "no such file"),
        (["--vectors", "nowhere.npz"], "no such file"),
        (["--vectors", str(ROOT / "golden/slots/past-2-to-the-31.npz")], "more buffers than a round can run on"),
    ],
)
def test_bad_usage_is_2_with_the_reason(run: Run, product: Path, options: list[str], says: str) -> None:
    ran = run(product, "fuzz", *options)
    assert ran.code == 2
    assert says in ran.out + ran.err


def test_without_hypothesis_it_says_what_to_install(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch, right: Path
) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    ran = run(here, *FUZZ, "--ptx", str(right))
    assert ran.code == 2
    assert "pip install 'ssmtool[fuzz]'" in ran.err


def test_ctrl_c_ends_it_with_130_and_what_was_found(here: Path, wrong: Path) -> None:
    command = [
        sys.executable, "-m", "ssmtool", *FUZZ, "--ptx", str(wrong), "--only", "fc_sigmoid",
        "--only", "fc_ssm_decay_gate", "--time", "5m", "--seed", "3",
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("wrong: fc_sigmoid"):
            break
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "INTERRUPTED: this is what was found by then" in flat(out)
    assert "the rest of the rounds: interrupted" in flat(out)
    assert "[fuzz/value]" in out
    assert list((here / "failures").glob("fc_sigmoid-value-x-*-cpu.npz"))


def test_an_interrupted_run_says_so_in_json(run: Run, here: Path, right: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ssmtool.fuzz import run as whole
    from ssmtool.fuzz.batch import Batch, BatchResult

    def interrupted(batch: Batch) -> BatchResult:
        return BatchResult(batch.target, batch.index, batch.device, rounds=3, interrupted=True)

    monkeypatch.setattr(whole, "run_batch", interrupted)
    ran = run(here, *FUZZ, "--ptx", str(right), "--only", "fc_sigmoid", "--rounds", "9", "--format", "json")
    assert ran.code == 130
    assert ran.json["extra"]["partial"]
    assert ran.json["extra"]["ended"] == "interrupted"
    assert ran.json["extra"]["total_rounds"] == 3
    assert ran.json["verdict"] == "unchecked"
