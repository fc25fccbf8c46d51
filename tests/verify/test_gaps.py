"""Few words for what was not looked at, and mends that mend."""

from __future__ import annotations

from pathlib import Path

from ssmtool.golden import read_case
from ssmtool.verify.gaps import missing_kernels, unlaunched, vectors_for
from ssmtool.verify.result import Outcome, Result, Status

GOLDEN = Path(__file__).parents[2] / "golden"


def absent(name: str, kernel: str, *, made: bool = True) -> Result:
    """A case whose kernel the PTX does not have; `made` by `golden make`."""
    case = read_case(GOLDEN / f"{name}.npz") if made else None
    return Result(
        "case", name, "", (kernel,), "cpu", Status.UNCHECKED, reason=f"no kernel {kernel}", missing=kernel,
        path=f"golden/{name}.npz", case=case,
    )  # fmt: skip


def there(name: str) -> Result:
    return Result("case", name, "", ("mine",), "cpu", path=f"golden/{name}.npz")


def test_a_hundred_cases_of_kernels_not_there_are_one_line() -> None:
    results = [absent("sigmoid/n1", "fc_sigmoid"), absent("decay-gate/h1-n1", "fc_ssm_decay_gate"), there("mine/small")]
    found = Outcome(("cpu",), results, kernels=("mine",)).findings()
    assert [each.check for each in found.required_skips] == ["2 cases on cpu"]
    assert found.required_skips[0].reason == "the PTX has no kernel fc_sigmoid, fc_ssm_decay_gate"
    assert found.required_skips[0].fix == "rm -r golden/decay-gate golden/sigmoid"


def test_a_folder_with_a_vector_of_ones_own_is_not_removed_whole() -> None:
    results = [absent("sigmoid/n1", "fc_sigmoid"), there("sigmoid/mine")]
    assert missing_kernels(results, ["mine"])[0].fix == "rm golden/sigmoid/n1.npz"


def test_vectors_that_somebody_wrote_are_never_told_to_be_removed_alone() -> None:
    # A kernel that was renamed: the vector is right.
    skip = missing_kernels([absent("mime/small", "mime", made=False)], ["mine"])[0]
    assert skip.reason == "the PTX has no kernel mime; did you mean mine?"
    assert skip.fix == "build the PTX with it, or delete what launches it: golden/mime/small.npz"


def test_the_products_own_vectors_stay_where_one_of_its_kernels_is() -> None:
    skip = missing_kernels([absent("sigmoid/n1", "fc_sigmoid")], ["fc_ssm_recurrence"])[0]
    assert skip.fix is not None and not skip.fix.startswith("rm")


def test_one_case_alone_is_told_by_its_name() -> None:
    found = Outcome(("cpu",), [absent("sigmoid/n1", "fc_sigmoid"), there("a/b")], kernels=("mine",)).findings()
    assert [each.check for each in found.required_skips] == ["case sigmoid/n1 on cpu"]


def test_kernels_that_nothing_launches_are_counted_and_none_is_no_skip() -> None:
    assert unlaunched(["mine"], [there("a/b")], "k.ptx") == []
    skip = unlaunched(["mine", "other", "third"], [there("a/b")], "k.ptx")[0]
    assert (skip.check, skip.fix) == ("numbers of other, third", "ssmtool golden new other --from k.ptx")


def test_the_command_that_makes_vectors_is_that_of_the_projects_kernels() -> None:
    assert vectors_for(["mine"], "k.h") == "ssmtool golden new mine --from k.h"
    assert vectors_for(["fc_sigmoid"], "k.h") == "ssmtool golden make"
