"""The view for pull requests: at most 200 lines, hostile text is text, what is left out is counted."""

from __future__ import annotations

from typing import Any

import pytest
from ci.samples import HOSTILE, sample

from ssmtool.audit.compare import compare_results
from ssmtool.audit.inputs import Input
from ssmtool.audit.kernels import audit
from ssmtool.audit.result import AuditResult
from ssmtool.ci.base import Change, _change, words
from ssmtool.ci.document import document
from ssmtool.ci.model import Done, Run, Step
from ssmtool.findings import Finding, Outcome, Severity
from ssmtool.ptx import parse
from ssmtool.report.pull_request import MOST_LINES, render_pull_request


def crowd(kernels: int) -> dict[str, Any]:
    data = sample("name")
    change = data["base"]["kernels"][0]
    data["base"]["kernels"] = [{**change, "kernel": f"k{number}"} for number in range(kernels)]
    data["kernels"] = [{**data["kernels"][0], "name": f"k{number}"} for number in range(kernels)]
    data["findings"] *= kernels
    data["skips"] *= kernels
    return data


@pytest.mark.parametrize("kernels", [1, 30, 1000])
def test_it_never_has_more_than_200_lines(kernels: int) -> None:
    text = render_pull_request(crowd(kernels))
    assert len(text.splitlines()) <= MOST_LINES
    assert text.count("<details>") == text.count("</details>")
    assert text.splitlines()[-1].startswith("Reproduce: ")


def test_what_is_left_out_is_counted() -> None:
    text = render_pull_request(crowd(1000))
    assert "and 985 more" in text and "and 940 more" in text
    assert "more tables left out here" in text


def test_a_hostile_name_is_no_markup() -> None:
    text = render_pull_request(sample())
    assert HOSTILE not in text
    assert "<script" not in text and "<img" not in text and "\u202e" not in text


def test_the_first_paragraph_is_what_changed() -> None:
    assert render_pull_request(sample("name")).splitlines()[2] == "Since `name` (`0123456789ab`): name"


def test_one_line_says_worse_before_better_and_counts_the_rest() -> None:
    changes = [
        Change("a", "changed", better=["registers 9 -> 8"]),
        Change("b", "changed", worse=["local bytes 0 -> 16", "registers 8 -> 9"]),
        *(Change(name, "changed", worse=["registers 1 -> 2"]) for name in "cd"),
        Change("e", "new"),
        Change("f", "changed"),
        Change("g", "same"),
    ]
    assert words(changes) == (
        "worse: b: local bytes 0 -> 16, b: registers 8 -> 9, c: registers 1 -> 2 and 1 more; "
        "better: a: registers 9 -> 8; new: e; 1 kernel changed, neither better nor worse; 1 the same"
    )


def test_nothing_changed() -> None:
    assert words([Change("a", "same")]) == "nothing changed in the PTX of 1 kernel"


def test_numbers_that_a_fault_kept_from_being_compared_are_no_zero_error() -> None:
    data = sample("name")
    data["kernels"][0]["vectors"] = [{**data["kernels"][0]["vectors"][0], "nmse": 0.0, "policies": []}]
    (row,) = [line for line in render_pull_request(data).splitlines() if line.startswith("| name | wrong")]
    assert "0.0e+00" not in row
    assert row.endswith("| - | 0 of 1 |")


def test_barriers_are_not_there_twice() -> None:
    def audited(text: str) -> AuditResult:
        return audit([Input("k", parse(text))], ())

    plain = ".version 7.4\n.target sm_37\n.address_size 64\n.visible .entry k()\n{\n    bar.sync 0;\n    ret;\n}\n"
    (change,) = compare_results(audited(plain), audited(plain.replace("bar.sync 0;", "bar.sync 0;\n    bar.sync 0;")))
    assert {"barriers", "barrier"} <= set(change.numbers)
    assert "barrier" not in _change(change, None, None, {}, {"k": "new"}).numbers


def test_a_mangled_name_leaves_the_headline_room_for_what_happened() -> None:
    name = "_ZN" + "9a_kernel" * 20 + "EPfi"
    finding = Finding(
        "verify/fault", Severity.ERROR, f"case {name}/small on cpu: race in shared memory of {name}", kernel=name,
        path="golden/small.npz", fix="ssmtool verify",
    )  # fmt: skip
    run = Run([Step("verify", Done(Outcome(findings=[finding]), "wrong"), 0.1)])
    line = document(run, command="ci")["headline"]
    assert "race in shared memory" in line
    assert line.endswith("mend it: ssmtool verify")
    assert "golden/small.npz: case _ZN9a_kernel9a_kerne..." in line
