"""The view for pull requests: at most 200 lines, hostile text is text, what is left out is counted."""

from __future__ import annotations

from typing import Any

import pytest
from ci.samples import HOSTILE, sample

from ssmtool.ci.base import Change, words
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
