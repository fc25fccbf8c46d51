"""The report of a cluster is that of one machine, whatever its workers do meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cluster.conftest import Join, local_workers, pid_of

from conftest import ROOT, Run
from ssmtool.audit.inputs import read_input
from ssmtool.cluster import Cluster, NoWorkerError, Patience
from ssmtool.cluster.resources import Wanted
from ssmtool.device.cpu import CpuDevice
from ssmtool.golden import GoldenCase, read_case
from ssmtool.report.verify import ProgressLines
from ssmtool.verify import InterruptedRunError, Options, Outcome, Status, Text
from ssmtool.verify import run as run_here
from ssmtool.verify.result import result_json

CPU = Wanted("cpu", "CPU")
NAMES = ("sigmoid/n1", "sigmoid/n255", "sigmoid/n1000", "decay-gate/h1-n1", "decay-gate/h3-n2", "decay-gate/reference")
RELATIONS = frozenset({"R4/decay-gate", "R9/decay-gate", "R9/decay-gate-nx"})


@pytest.fixture(scope="module")
def text() -> Text:
    found = read_input(str(ROOT / "generated" / "fc_cuda_ptx.h"))[0]
    return Text(found.module, found.parameters)


def golden(*names: str) -> list[GoldenCase]:
    return [read_case(ROOT / "golden" / f"{name}.npz") for name in names]


def wrong(text: Text) -> str:
    """The PTX with a wrong sigmoid and without one kernel of the decay gates."""
    whole = text.module.text
    start = whole.index(".entry fc_sigmoid(")
    end = whole.index("ret;", start)
    body = whole[start:end].replace("add.rn.f32", "sub.rn.f32").replace("add.f32", "sub.f32")
    assert body != whole[start:end]
    return (whole[:start] + body + whole[end:]).replace(".entry fc_ssm_decay_gate(", ".entry fc_ssm_gone(")


def plain(outcome: Outcome) -> list[dict[str, Any]]:
    """Every result, without times and places."""
    found = []
    for each in outcome:
        data = dict(result_json(each))
        data.pop("seconds")
        data.pop("place", None)
        found.append(data)
    return found


def test_a_worker_is_killed_half_way_and_the_results_are_those_of_one_machine(
    cluster: Cluster, text: Text, notes: list[str]
) -> None:
    options = Options(names=RELATIONS, rounds=80)
    pid = pid_of(cluster, local_workers(cluster)[1])
    killed: list[int] = []

    def listener(phase: str, done: int, total: int, _result: object) -> None:
        if phase == "verify" and done > total // 3 and not killed:
            os.kill(pid, signal.SIGKILL)
            killed.append(done)

    over = cluster.verify(text, golden(*NAMES), [CPU], options=options, listener=listener)
    here = run_here(text, golden(*NAMES), CpuDevice(), options=options)
    assert killed
    assert any("has gone" in words for words in notes)
    assert plain(over) == plain(here)
    assert over.findings().to_json() == here.findings().to_json()


def test_wrong_results_and_what_is_not_there_are_told_alike(cluster: Cluster, text: Text) -> None:
    options = Options(names=RELATIONS, rounds=2, keep=True)
    cases = golden(*NAMES, "slots/past-2-to-the-31")
    over = cluster.verify(wrong(text), cases, [CPU], options=options)
    here = run_here(wrong(text), cases, CpuDevice(), options=options)
    assert {each.status for each in here} >= {Status.WRONG, Status.UNCHECKED, Status.NOT_HERE}
    assert plain(over) == plain(here)
    assert [sorted(each.arrays) for each in over] == [sorted(each.arrays) for each in here]
    assert all(each.place for each in over.failed)
    assert f"({over.failed[0].place})" in over.findings().findings[0].message


def test_the_command_prints_the_same_report_and_nothing_of_dask(tmp_path: Path, run: Run, text: Text) -> None:
    ptx = tmp_path / "wrong.ptx"
    ptx.write_text(wrong(text))
    words = ["verify", *(str(ROOT / "golden" / f"{name}.npz") for name in NAMES[:4]), "--ptx", str(ptx), "--format"]
    more = ["json", "--device", "cpu", "--save-failure"]
    command = [sys.executable, "-m", "ssmtool", "-C", str(tmp_path), *words, *more, str(tmp_path / "over")]
    over = subprocess.run([*command, "--scheduler", "local:1"], capture_output=True, text=True, check=False)
    here = run(tmp_path, *words, *more, str(tmp_path / "here"))
    assert over.stderr == here.err == ""
    assert over.returncode == here.code == 1
    assert files(tmp_path / "over") == files(tmp_path / "here")
    assert report(json.loads(over.stdout)) == report(here.json)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def report(data: dict[str, Any]) -> dict[str, Any]:
    """A report without times, devices and places."""
    for key in ("devices", "seconds", "compile_seconds"):
        data["extra"].pop(key)
    for each in data["extra"]["results"]:
        each.pop("seconds")
        each.pop("place", None)
    for each, key in [*((each, "message") for each in data["findings"]), *((each, "check") for each in data["skips"])]:
        each[key] = each[key].replace(" on cpu (worker 0 on 127.0.0.1)", " on cpu")
    data["extra"]["saved"] = [Path(path).name for path in data["extra"]["saved"]]
    return data


def test_an_interrupted_run_is_partial_and_its_tasks_are_cancelled(
    run: Run, monkeypatch: pytest.MonkeyPatch, cluster: Cluster
) -> None:
    monkeypatch.setattr("ssmtool.cluster.open_cluster", lambda _words, *, notes: Borrowed(cluster, notes))

    def interrupt(_self: object, phase: str, done: int, _total: int, _result: object) -> None:
        if phase == "verify" and done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLines, "__call__", interrupt)
    words = ("verify", "--relations", "only", "--only", "R4/decay-gate", "--rounds", "50", "--format", "json")
    for where in (("--device", "cpu"), ("--scheduler", "local")):
        ran = run(ROOT, *words, *where)
        assert ran.code == 130
        assert ran.json["extra"]["partial"] is True
        assert ran.json["verdict"] == "unchecked"
        assert "of 50 cases and rounds" in ran.json["skips"][0]["check"]
        assert ran.json["skips"][0]["reason"] == "the run was interrupted before it ended"
    assert not cluster._link._futures


class Borrowed:
    """The tests' cluster as one that a command opens, and may close."""

    def __init__(self, cluster: Cluster, notes: list[str]) -> None:
        self.cluster, self.notes = cluster, notes

    def __enter__(self) -> Cluster:
        return self.cluster

    def __exit__(self, *_exception: object) -> None:
        return None


def test_an_interrupt_before_anything_is_done_is_partial_too(cluster: Cluster, text: Text) -> None:
    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError) as caught:
        cluster.verify(text, golden(*NAMES[:2]), [CPU], relations=False, listener=interrupt)
    assert caught.value.outcome.unreached == (2, 2)
    assert caught.value.outcome.partial


def test_a_worker_that_says_it_has_a_card_and_has_none_is_not_used(
    cluster: Cluster, text: Text, join: Join, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_patience", Patience(start=0.5, again=1))
    with join("braggart", "GPU=1 sm_37=1"):
        (wanted,) = cluster.choose(None, "sm_37")
        with pytest.raises(NoWorkerError, match=r"worker braggart on 127\.0\.0\.1 cannot be used as sm_37: "):
            cluster.verify(text, golden("sigmoid/n1"), [wanted], relations=False)
    assert len(notes) == 1


def test_several_devices_are_compared_as_on_one_machine(cluster: Cluster, text: Text, join: Join) -> None:
    # The executor under two names: another word and resource, as of a card, and a preload that opens the CPU for it.
    pretend = """
import ssmtool.device as d
from ssmtool.device.select import open_devices
d.open_devices = lambda word, *, require=None: open_devices("cpu")
"""
    with join("card", "GPU=1", preload=pretend):
        wanted = cluster.choose("cpu,cuda", None)
        outcome = cluster.verify(text, golden("sigmoid/n255"), wanted, relations=False)
    assert [(each.kind, each.device, each.status) for each in outcome] == [
        ("case", "cpu", Status.OK),
        ("case", "cuda", Status.OK),
        ("devices", "cpu, cuda", Status.OK),
    ]
    assert len(outcome.devices) == 2


def test_rounds_that_no_worker_could_do_are_one_result_of_each_relation(
    cluster: Cluster, text: Text, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_patience", Patience(start=60, again=0.5))
    options = Options(names=RELATIONS, rounds=200)
    with join("alone", "GPU=1", preload="import ssmtool.device as d\nfrom ssmtool.device.select import open_devices\n"
              "d.open_devices = lambda word, *, require=None: open_devices('cpu')\n") as alone:  # fmt: skip
        pid = pid_of(cluster, alone)

        def listener(_phase: str, done: int, _total: int, _result: object) -> None:
            if done == 10:
                os.kill(pid, signal.SIGKILL)

        outcome = cluster.verify(
            text, golden("sigmoid/n1"), [Wanted("cuda", "GPU")], options=options, listener=listener
        )
    unchecked = outcome.with_status(Status.UNCHECKED)
    assert [each.name for each in unchecked if each.kind == "case"] == ["sigmoid/n1"]
    assert len(unchecked) <= 1 + len(RELATIONS)
    assert any("of its 200 rounds did not run: no worker of" in (each.reason or "") for each in unchecked)
    assert int(outcome.verdict) == 2
