"""JUnit XML, the dialect that pytest writes and CI systems read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from ssmtool.findings import Finding, Outcome, Severity, Skip, Verdict
from ssmtool.report.formats.text import finding_text, printable, skip_text, summary, verdict_word


def render_junit(outcome: Outcome, *, command: str, tool_version: str, extra: Mapping[str, Any] | None) -> str:
    """One suite: a failed case for each error, a passed case with its text as output for each warning and note.

    Skips are `<skipped>`. JUnit readers call a suite of nothing but skips green, so without an error there is one more
    case, `verdict`: it passes when all is well and is an `<error>` when a required check did not run.
    """
    suite = ElementTree.Element("testsuite", _attributes(name=f"ssmtool {command}"))
    properties = {"tool_version": tool_version, "verdict": verdict_word(outcome), "summary": summary(outcome)}
    # Only what fits in an attribute; the JSON report has it all.
    properties |= {key: str(value) for key, value in (extra or {}).items() if isinstance(value, str | int | float)}
    holder = ElementTree.SubElement(suite, "properties")
    for key, value in properties.items():
        ElementTree.SubElement(holder, "property", _attributes(name=key, value=value))
    for finding in outcome.findings:
        _add_finding(suite, finding)
    for skip in outcome.required_skips:
        _add_skip(suite, skip, required=True)
    for skip in outcome.skips:
        _add_skip(suite, skip, required=False)
    if outcome.verdict is not Verdict.WRONG:
        case = _add_case(suite, "ssmtool", "verdict")
        if outcome.verdict is Verdict.UNCHECKED:
            reasons = "\n".join(skip_text(skip) for skip in outcome.required_skips)
            _add_text(case, "error", reasons, type="not-checked", message="a required check did not run")
    counts = {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
        "skipped": len(suite.findall("testcase/skipped")),
    }
    root = ElementTree.Element("testsuites", _attributes(name="ssmtool"))
    for element in (root, suite):
        element.attrib.update({key: str(value) for key, value in counts.items()} | {"time": "0"})
    root.append(suite)
    ElementTree.indent(root)
    # Not xml_declaration=True: with encoding="unicode" it names the encoding of the machine's locale.
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_finding(suite: ElementTree.Element, finding: Finding) -> None:
    name = finding.rule
    if finding.kernel:
        name += f" [{finding.kernel}]"
    if finding.where:
        name += f" at {finding.where}"
    case = _add_case(suite, f"ssmtool.{finding.rule.partition('/')[0]}", name)
    if finding.path is not None:
        case.attrib.update(_attributes(file=finding.path))
    if finding.line is not None:
        case.set("line", str(finding.line))
    text = finding_text(finding)
    if finding.severity is Severity.ERROR:
        _add_text(case, "failure", text, type=finding.rule, message=finding.message)
    else:
        _add_text(case, "system-out", f"{finding.severity.value}: {text}")


def _add_skip(suite: ElementTree.Element, skip: Skip, *, required: bool) -> None:
    case = _add_case(suite, "ssmtool.skipped", skip.check)
    kind = "required" if required else "optional"
    _add_text(case, "skipped", skip_text(skip), type=kind, message=skip.reason)


def _add_case(suite: ElementTree.Element, classname: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", _attributes(classname=classname, name=name, time="0"))


def _add_text(case: ElementTree.Element, tag: str, text: str, **attributes: str) -> None:
    ElementTree.SubElement(case, tag, _attributes(**attributes)).text = printable(text)


def _attributes(**values: str) -> dict[str, str]:
    return {key: printable(value) for key, value in values.items()}
