"""Kernels that are wrong in the ways people get them wrong: each must fail, and say which mistake it looks like."""

from __future__ import annotations

import pytest
from verify.conftest import Cases, Mutant, edited, verified

from ssmtool.findings import Verdict
from ssmtool.verify import Options, Text
from ssmtool.verify.result import Status

NORM_HEADS = "const long long vh = (t * kv_groups + r) * n_k_heads + kh;"
# Wrong numbers need no checks, and kernels without them are compiled in half the time.
BOUNDS = Options(check="bounds")
UPDATE = "r = __fmaf_rn(k, correction(v, pred, beta), r);"


@pytest.mark.parametrize(
    ("old", "new", "case", "says"),
    [
        (NORM_HEADS, "const long long vh = t * kv_groups * n_k_heads + kh * kv_groups + r;",
         "qknorm/mistake-grouped-heads", "the heads grouped"),
        ("*y = __fmul_rn(scale, tree_sum(p", "*y = __fmul_rn(1.0f, tree_sum(p", "recurrence/mistake-scale",
         "the factor 1/sqrt(S) left out"),
        (UPDATE, "r = __fadd_rn(__fmul_rn(k, correction(v, pred, beta)), r);", "recurrence/mistake-unfused-update",
         "the update's product rounded before it is added"),
        ("const long long cell = row * state_size + i;\n    const long long in",
         "const long long cell = (head * state_size + i) * state_size + blockIdx.x;\n    const long long in",
         "recurrence/mistake-transposed-state", "the state transposed"),
        ("expf(g[head])", "(g[head])", "recurrence/mistake-linear-decay", "g taken as the decay itself"),
        ("fmaxf(__fsqrt_rn(shared[0]), eps)", "__fsqrt_rn(__fadd_rn(shared[0], eps))", "qknorm/mistake-eps", ""),
        ("w.a = w.b;\n    w.b = w.c;\n    w.c = x;", "", "convolution/mistake-short-prompt", "the history not shifted"),
        ("v > 20.0f ? v : log1pf(expf(v))", "log1pf(expf(v))", "decay-gate/mistake-softplus",
         "softplus without its branch"),
    ],
    ids=["grouped-heads", "dropped-scale", "unfused-update", "transposed-state", "linear-decay", "rsqrt-eps",
         "stale-history", "no-branch"],
)  # fmt: skip
def test_a_mistake_in_the_source_fails_and_is_named(
    mutant: Mutant, cases: Cases, old: str, new: str, case: str, says: str
) -> None:
    outcome = verified(mutant(old, new), cases(case), options=BOUNDS)
    assert outcome.verdict is Verdict.WRONG
    (finding,) = outcome.findings().findings
    assert says in finding.message
    assert finding.kernel


def test_a_missing_snapshot_is_unwritten_memory(mutant: Mutant, cases: Cases) -> None:
    outcome = verified(mutant("if (snaps)\n            snaps[snap] = r;", ""), cases("recurrence/resume-seq"))
    (finding,) = outcome.findings().findings
    assert "was never written" in finding.message or "nothing has written" in finding.message


def test_a_dropped_barrier_is_a_race_even_where_the_numbers_are_right(text: Text) -> None:
    broken = edited(text, "fc_ssm_recurrence", "bar.sync \t0;", "", 0)
    outcome = verified(broken, (), "R3/recurrence")
    assert any(
        "with no barrier between" in fault for each in outcome.failed for run in each.runs for fault in run.faults
    )


def test_an_off_by_one_bound_is_a_store_past_the_end(mutant: Mutant, cases: Cases) -> None:
    outcome = verified(mutant("if (i < n)\n        x[i]", "if (i <= n)\n        x[i]"), cases("sigmoid/n257"))
    (finding,) = outcome.findings().findings
    assert finding.rule == "verify/fault"
    assert "past the end of x" in finding.message


def test_a_bound_that_overwrites_a_neighbour_in_the_same_buffer_is_seen(mutant: Mutant, cases: Cases) -> None:
    outcome = verified(mutant("if (i < n)\n        x[i]", "if (i <= n)\n        x[i]"), cases("sigmoid/part"))
    (finding,) = outcome.findings().findings
    assert "only i=100" in finding.message


@pytest.mark.parametrize(
    ("entry", "old", "new", "number", "relation"),
    [
        ("fc_ssm_recurrence_seq_warp", "fma.rn.f32", "fma.rz.f32", 3, "R2/warp"),
        ("fc_ssm_recurrence_seq_unroll128", "add.rn.f32", "sub.rn.f32", 5, "R2/unroll"),
        ("fc_ssm_recurrence_slots", "mul.rn.f32", "add.rn.f32", 0, "R3/recurrence"),
        ("fc_ssm_decay_gate_nx", "rem.s32", "div.s32", 0, "R4/decay-gate"),
    ],
)
def test_a_relation_fails_where_one_kernel_of_the_two_is_other(
    text: Text, entry: str, old: str, new: str, number: int, relation: str
) -> None:
    outcome = verified(edited(text, entry, old, new, number), (), relation)
    assert [each.name for each in outcome.failed] == [relation]
    fix = outcome.findings().findings[0].fix
    assert fix == f"ssmtool verify --relations only --only {relation} --seed 0 --rounds 1"


def test_the_product_itself_passes_all_of_these(text: Text, cases: Cases) -> None:
    names = ("recurrence/mistake-scale", "sigmoid/n257", "sigmoid/part", "decay-gate/mistake-softplus")
    outcome = verified(text, cases(*names), "R2/warp", "R2/unroll", "R3/recurrence", "R4/decay-gate")
    assert {each.status for each in outcome} == {Status.OK}  # of the whole, other kernels were not launched
    assert not outcome.findings().findings
    assert {each.check for each in outcome} == {"all"}


def test_the_first_failure_can_be_the_last_thing_that_runs(mutant: Mutant, cases: Cases) -> None:
    broken = mutant("expf(-x)", "expf(x)")
    both = cases("sigmoid/n1", "sigmoid/n1000")
    outcome = verified(broken, both, options=Options(stop_at_first=True))
    assert [each.name for each in outcome] == ["sigmoid/n1"]
