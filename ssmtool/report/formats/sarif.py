"""SARIF 2.1.0, for code scanning (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ssmtool.findings import Finding, Outcome, Severity, Skip, Verdict
from ssmtool.report.formats.json import dump
from ssmtool.report.formats.text import encodable, finding_text, skip_text

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# The folder that relative paths count from: the project's. Whoever reads the log knows where that is, we do not say.
_ROOT = "%SRCROOT%"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def render_sarif(outcome: Outcome, *, command: str, tool_version: str, extra: Mapping[str, Any] | None) -> str:
    """One run: a rule for each rule id, a result for each finding, a tool notification for each skip.

    A skip is no result, since nothing was found; as a notification it is shown as what the tool could not do, and
    a skip of a required check makes the run unsuccessful.
    """
    rules = list(dict.fromkeys(finding.rule for finding in outcome.findings))
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "ssmtool", "version": tool_version, "rules": [_rule(rule) for rule in rules]}},
        "invocations": [
            {
                "executionSuccessful": outcome.verdict is not Verdict.UNCHECKED,
                "exitCode": int(outcome.verdict),
                "commandLine": command,
                "toolExecutionNotifications": [
                    *(_notification(skip, "error") for skip in outcome.required_skips),
                    *(_notification(skip, "warning") for skip in outcome.skips),
                ],
            }
        ],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The folder of the project's settings file."}}},
        "columnKind": "unicodeCodePoints",
        "results": _results(outcome, rules),
    }
    if extra:
        run["properties"] = dict(extra)
    return dump({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: str) -> dict[str, Any]:
    group, _, name = rule.partition("/")
    text = f"{group}: {name.replace('-', ' ')}" if name else rule.replace("-", " ")
    return {"id": rule, "shortDescription": {"text": _plain(text)}}


def _results(outcome: Outcome, rules: list[str]) -> list[dict[str, Any]]:
    """The findings in order. Twins (same rule, kernel and file) are told apart by their order, not by their line."""
    twins: Counter[tuple[str, str | None, str | None]] = Counter()
    results = []
    for finding in outcome.findings:
        identity = (finding.rule, finding.kernel, finding.path)
        fingerprint = encodable("\0".join((*(part or "" for part in identity), str(twins[identity]))))
        twins[identity] += 1
        result: dict[str, Any] = {
            "ruleId": finding.rule,
            "ruleIndex": rules.index(finding.rule),
            "level": _LEVELS[finding.severity],
            "message": {"text": _plain(finding_text(finding))},
            # Without it, a result moves with each line inserted above it and closed alerts open again.
            "partialFingerprints": {"ssmtool/v1": hashlib.sha256(fingerprint.encode()).hexdigest()},
        }
        location = _location(finding)
        if location:
            result["locations"] = [location]
        properties = {key: value for key, value in finding.to_json().items() if key in ("kernel", "effect", "fix")}
        if properties:
            result["properties"] = properties
        results.append(result)
    return results


def _location(finding: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {}
    if finding.path is not None:
        physical: dict[str, Any] = {"artifactLocation": artifact(finding.path)}
        if finding.line is not None and finding.line > 0:
            region = {"startLine": finding.line}
            if finding.column is not None and finding.column > 0:
                region["startColumn"] = finding.column
            physical["region"] = region
        location["physicalLocation"] = physical
    if finding.kernel is not None:
        location["logicalLocations"] = [{"name": finding.kernel, "kind": "function"}]
    return location


def artifact(path: str) -> dict[str, str]:
    """A file: relative to the project's folder where the path is relative, else a file: URI. Percent-encoded."""
    path = encodable(path)
    slashed = path.replace("\\", "/")
    if re.match(r"[A-Za-z]:/", slashed):
        return {"uri": f"file:///{slashed[:2]}{quote(slashed[2:])}"}
    if slashed.startswith("//"):
        return {"uri": f"file:{quote(slashed)}"}
    if slashed.startswith("/"):
        return {"uri": f"file://{quote(slashed)}"}
    # quote() encodes `:` too: a first part such as `a:b` would read as a scheme.
    return {"uri": quote(slashed), "uriBaseId": _ROOT}


def _notification(skip: Skip, level: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": _plain(skip_text(skip))}, "properties": skip.to_json()}


def _plain(text: str) -> str:
    """Message text in which neither `[text](target)` is a link nor `{0}` a placeholder (sections 3.11.5 and 3.11.6)."""
    return re.sub(r"\{(?=\d)", "{ ", text.replace("](", "] ("))
