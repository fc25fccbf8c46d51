"""Every case has its own verdict: what cannot run is told, is never a pass, and stops nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from verify.conftest import Cases, edited, verified

from ssmtool.device import DeviceError
from ssmtool.device.cpu import CpuDevice
from ssmtool.device.errors import CrashedError
from ssmtool.findings import Verdict
from ssmtool.golden import GoldenCase
from ssmtool.verify import Options, Status, Text, run


def with_meta(case: GoldenCase, **changes: Any) -> GoldenCase:
    return GoldenCase(msgspec.structs.replace(case.meta, **changes), case.before, case.after)


def statuses(outcome: Any) -> dict[str, Status]:
    return {each.name: each.status for each in outcome}


def test_a_missing_entry_is_not_checked_and_the_others_run(text: Text, cases: Cases) -> None:
    broken = text.module.text.replace(".entry fc_sigmoid(", ".entry fc_sigmoids(")
    outcome = verified(broken, cases("sigmoid/n1", "decay-gate/h1-n1"))
    assert statuses(outcome) == {"sigmoid/n1": Status.UNCHECKED, "decay-gate/h1-n1": Status.OK}
    assert outcome.verdict is Verdict.UNCHECKED
    assert "did you mean fc_sigmoids?" in outcome.findings().required_skips[0].reason


def test_a_wrong_case_outweighs_one_that_did_not_run(text: Text, cases: Cases) -> None:
    broken = edited(text, "fc_ssm_decay_gate", "add.rn.f32", "sub.rn.f32")
    broken = broken.replace(".entry fc_sigmoid(", ".entry fc_sigmoids(")
    assert verified(broken, cases("sigmoid/n1", "decay-gate/h3-n2", "decay-gate/reference")).verdict is Verdict.WRONG


def test_a_vector_for_another_contract_is_not_checked(text: Text, cases: Cases) -> None:
    (case,) = cases("sigmoid/n1")
    outcome = verified(text, [with_meta(case, contract="2")])
    assert statuses(outcome) == {"sigmoid/n1": Status.UNCHECKED}
    assert "contract '2'" in (outcome.results[0].reason or "")


def test_a_case_of_8_gib_is_told_and_is_no_pass_on_the_cpu(text: Text, cases: Cases) -> None:
    outcome = verified(text, cases("slots/past-2-to-the-31", "sigmoid/n1"))
    assert statuses(outcome)["slots/past-2-to-the-31"] is Status.NOT_HERE
    assert outcome.verdict is Verdict.OK
    assert "8.5 GiB" in outcome.findings().skips[0].reason


def test_nothing_that_ran_is_not_ok(text: Text, cases: Cases) -> None:
    assert verified(text, []).verdict is Verdict.UNCHECKED
    assert verified(text, cases("slots/past-2-to-the-31")).verdict is Verdict.UNCHECKED


def test_an_endless_kernel_ends_with_a_verdict(cases: Cases) -> None:
    endless = """.version 7.4
.target sm_37
.address_size 64
.visible .entry fc_sigmoid(.param .u64 x, .param .u32 n)
{
$again:
    bra $again;
}
"""
    outcome = verified(endless, cases("sigmoid/n1"))
    assert outcome.failed
    assert "endless loop?" in outcome.failed[0].problem


def test_relations_of_kernels_that_are_not_there_are_not_applicable() -> None:
    other = ".version 7.4\n.target sm_37\n.address_size 64\n.visible .entry mine(.param .u64 x)\n{\n    ret;\n}\n"
    outcome = verified(other, (), "R1/recurrence")
    # Of another's kernels they are not even told: nobody who has none of these can mend that.
    assert outcome.findings().skips == []
    assert outcome.verdict is Verdict.UNCHECKED


class Failing(CpuDevice):
    """The executor as a card that is lost at its n-th launch."""

    def __init__(self, name: str, lost_at: int, error: DeviceError | None = None) -> None:
        super().__init__()
        self.name = name
        self.left = lost_at
        self.error = error or DeviceError("the card fell off the bus", fatal=True)

    @property
    def real(self) -> bool:
        return True

    def load(self, *args: Any, **kwargs: Any) -> Any:
        module = super().load(*args, **kwargs)
        launch = module.launch

        def counted(*inner: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                self.problem = self.error
                raise self.error
            return launch(*inner, **options)

        module.launch = counted  # type: ignore[method-assign]
        return module


def on(devices: Sequence[CpuDevice], text: Text, cases: list[GoldenCase], **more: Any) -> Any:
    return run(text, cases, devices, relations=False, options=Options(), **more)


def test_a_lost_gpu_leaves_its_cases_unchecked_and_the_other_goes_on(text: Text, cases: Cases) -> None:
    some = cases("sigmoid/n1", "sigmoid/n255", "sigmoid/n256", "sigmoid/n257", "sigmoid/n1000", "sigmoid/reference")
    outcome = on([Failing("cuda:0", 1), Failing("cuda:1", 100)], text, some, share=True)
    assert len(outcome.results) == len(some)
    unchecked = outcome.with_status(Status.UNCHECKED)
    assert len(unchecked) <= 1
    assert all("fell off the bus" in (each.reason or "") for each in unchecked)
    assert any(each.device == "cuda:1" for each in outcome.with_status(Status.OK))


def test_when_every_gpu_is_lost_the_rest_is_unchecked(text: Text, cases: Cases) -> None:
    some = cases("sigmoid/n1", "sigmoid/n255", "sigmoid/n256")
    outcome = on([Failing("cuda:0", 1)], text, some)
    assert [each.status for each in outcome] == [Status.OK, Status.UNCHECKED, Status.UNCHECKED]
    assert outcome.verdict is Verdict.UNCHECKED


def test_a_kernel_that_ends_its_context_is_wrong_and_not_merely_unchecked(text: Text, cases: Cases) -> None:
    some = cases("sigmoid/n1", "sigmoid/n255", "sigmoid/n256")
    outcome = on([Failing("cuda:0", 1, CrashedError("illegal memory access", code=700, fatal=True))], text, some)
    assert [each.status for each in outcome] == [Status.OK, Status.WRONG, Status.UNCHECKED]
    assert "illegal memory access" in outcome.results[1].problem
    assert outcome.verdict is Verdict.WRONG


def test_devices_are_compared_with_each_other(text: Text, cases: Cases) -> None:
    class Other(Failing):
        def load(self, _given: Any, *args: Any, **kwargs: Any) -> Any:
            return super().load(edited(text, "fc_sigmoid", "rcp.rn.f32", "rcp.rz.f32"), *args, **kwargs)

    outcome = on([CpuDevice(), Other("other", 100)], text, cases("sigmoid/n1000"))
    (compared,) = [each for each in outcome if each.kind == "devices"]
    # The executor does not promise the bits of the exp inside: the difference is told and is not an error.
    words = [*compared.runs[0].faults, *compared.runs[0].notes]
    assert "x[i=" in words[0]
    assert " on cpu, " in words[0]


def test_the_same_devices_agree(text: Text, cases: Cases) -> None:
    outcome = on([CpuDevice(), Failing("cuda:0", 10**6)], text, cases("sigmoid/n1000", "slots/k3"))
    assert [each.status for each in outcome if each.kind == "devices"] == [Status.OK, Status.OK]


def test_runs_with_large_work_are_watched_for_bounds_only(text: Text, cases: Cases) -> None:
    outcome = verified(text, cases("sigmoid/n1"), options=Options(all_work=0))
    assert outcome.results[0].check == "bounds"


@pytest.mark.parametrize("bad", ["", "not ptx", ".version 7.4\n.target sm_37\n.address_size 64\n"])
def test_text_that_is_no_ptx_is_an_error_and_no_pass(bad: str, cases: Cases) -> None:
    from ssmtool.errors import SsmtoolError

    try:
        outcome = verified(bad, cases("sigmoid/n1"))
    except SsmtoolError:
        return
    assert outcome.verdict is Verdict.UNCHECKED
