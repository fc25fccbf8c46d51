"""Fuzzing by workers finds what one machine finds, and shrinks it to the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cluster.conftest import Join

from conftest import ROOT, Run
from ssmtool.audit.inputs import read_input
from ssmtool.cluster import Cluster, NoWorkerError, Patience
from ssmtool.cluster.fuzzing import fuzz_on_cluster
from ssmtool.cluster.resources import Wanted
from ssmtool.fuzz import Plan, Subject, fuzz

CPU = Wanted("cpu", "CPU")


def plan(*targets: str) -> Plan:
    """Of the product with a wrong sigmoid."""
    whole = read_input(str(ROOT / "generated" / "fc_cuda_ptx.h"))[0].module.text
    start = whole.index(".entry fc_sigmoid(")
    end = whole.index("ret;", start)
    body = whole[start:end].replace("add.rn.f32", "sub.rn.f32").replace("add.f32", "sub.f32")
    return Plan(Subject(texts=((whole[:start] + body + whole[end:], {}),)), targets, 5, rounds=40)


def test_the_same_rounds_and_the_same_smallest_failure(cluster: Cluster) -> None:
    given = plan("fc_sigmoid", "fc_ssm_decay_gate")
    over, here = fuzz_on_cluster(cluster, given, [CPU]), fuzz(given)
    assert over.rounds == here.rounds
    assert over.rounds["fc_ssm_decay_gate"] == 40
    assert (over.ended, over.problems) == (here.ended, here.problems) == ("rounds", [])
    assert [(each.batch, each.round, each.failure) for each in over.found] == [
        (each.batch, each.round, each.failure) for each in here.found
    ]
    assert [each.failure.target for each in over.found] == ["fc_sigmoid"]


def test_the_time_ends_it(cluster: Cluster) -> None:
    found = fuzz_on_cluster(cluster, replace(plan("fc_ssm_decay_gate"), rounds=None, seconds=1.0), [CPU])
    assert found.ended == "time"
    assert found.seconds < 10
    assert found.total


def test_a_worker_with_another_hypothesis_is_not_used(
    cluster: Cluster, join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_patience", Patience(start=0.5, again=1))
    other = "import ssmtool.cluster.fuzzing as f\nf.version = lambda name: '5.0'\n"
    with join("other", "GPU=1", preload=other), pytest.raises(NoWorkerError, match=r"its hypothesis is 5\.0"):
        fuzz_on_cluster(cluster, plan("fc_sigmoid"), [Wanted("cuda", "GPU")])


def test_the_command_takes_a_scheduler(run: Run) -> None:
    ran = run(ROOT, "fuzz", "--only", "fc_sigmoid", "--scheduler", "tcp://127.0.0.1:1")
    assert ran.code == 2
    assert "no scheduler answers at tcp://127.0.0.1:1" in ran.err
