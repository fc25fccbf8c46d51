"""Verdicts: what counts as wrong, and that a check which did not run never counts as a pass."""

from __future__ import annotations

from ssmtool.findings import Finding, Outcome, Severity, Skip, Verdict

ERROR = Finding("header/missing", Severity.ERROR, "there is no generated header", path="a.h", line=3)
WARNING = Finding("registry/order", Severity.WARNING, "order differs")
SKIP = Skip("driver truth", "no GPU")


def test_nothing_found_is_ok() -> None:
    assert Outcome().verdict is Verdict.OK


def test_a_warning_does_not_change_the_verdict_and_an_error_does() -> None:
    assert Outcome(findings=[WARNING]).verdict is Verdict.OK
    assert Outcome(findings=[WARNING, ERROR]).verdict is Verdict.WRONG


def test_a_required_check_that_did_not_run_is_no_pass() -> None:
    assert Outcome(required_skips=[SKIP]).verdict is Verdict.UNCHECKED
    assert Outcome(skips=[SKIP]).verdict is Verdict.OK


def test_a_wrong_product_wins_over_a_check_that_did_not_run() -> None:
    assert Outcome(findings=[ERROR], required_skips=[SKIP]).verdict is Verdict.WRONG


def test_json_carries_verdict_exit_code_and_every_skip() -> None:
    data = Outcome(findings=[ERROR], skips=[SKIP], required_skips=[SKIP]).to_json()
    assert (data["verdict"], data["exit_code"]) == ("wrong", 1)
    assert data["findings"] == [
        {
            "rule": "header/missing",
            "severity": "error",
            "message": "there is no generated header",
            "path": "a.h",
            "line": 3,
        }
    ]
    assert len(data["skips"]) == 2
