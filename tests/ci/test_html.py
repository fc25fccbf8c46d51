"""The page: whole without network and script, hostile text shown and not run, the same facts as the JSON."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from ci.samples import HOSTILE, sample

from ssmtool.errors import SsmtoolError
from ssmtool.report.html import image, log_width, number, render_html, signed

VOID = {"meta", "link", "img", "br", "input", "hr"}
SHOWN = HOSTILE.replace("\u202e", "\ufffd")


class Page(HTMLParser):
    """Tags with their attributes, text, and whether every element is closed in its order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.raw: dict[str, str] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.raw[self.open[-1]] = self.raw.get(self.open[-1], "") + data
        else:
            self.words.append(data)


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render_html(sample()))


def test_every_element_is_closed_in_its_order(page: Page) -> None:
    assert page.wrong == [] and page.open == []


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            if attributes.get(name):
                assert str(attributes[name]).startswith(("data:", "#")), (tag, attributes)
    assert "http" not in page.raw["style"] and "url(" not in page.raw["style"] and "@import" not in page.raw["style"]
    assert "fetch" not in page.raw["script"] and "http" not in page.raw["script"]


def test_hostile_text_is_text_and_no_element_or_attribute(page: Page) -> None:
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert all(not name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert all("style" not in attributes for _, attributes in page.tags)
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    assert len(images) == 1 and str(images[0]["src"]).startswith("data:image/svg+xml;base64,")
    assert sum(SHOWN in words for words in page.words) > 10


def test_no_mark_turns_the_direction_of_writing(page: Page) -> None:
    assert "\u202e" not in "".join(page.words)


def test_a_template_in_a_name_is_not_evaluated(page: Page) -> None:
    assert "{{7*7}}" in "".join(page.words)


def test_the_policy_names_the_hashes_of_the_pages_own_script_and_style(page: Page) -> None:
    policy = next(str(each["content"]) for tag, each in page.tags if tag == "meta" and "http-equiv" in each)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.raw[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_every_part_of_the_structure_is_on_the_page(page: Page) -> None:
    words = " ".join("".join(page.words).split())
    for title in ("Ladder", "Resources and budgets", "Local traffic", "Errors by vector", "Relations",
                  "Devices compared", "Control flow", "Provenance", "Loaders", "Device comparison"):  # fmt: skip
        assert title in words
    assert "+10" in words and "over budget" in words and "1.0e-14" in words


def test_a_table_has_as_many_cells_in_a_row_as_heads() -> None:
    text = render_html(sample())
    for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
        heads = table.count("<th ")
        for row in re.findall(r"<tr>(?!<th)(.*?)</tr>", table, re.DOTALL):
            assert row.count("<td") == heads, row


def test_a_run_of_one_step_has_a_page_too() -> None:
    from ssmtool.ci.document import document
    from ssmtool.ci.model import Done, Run, Step
    from ssmtool.findings import Outcome

    run = Run([Step("build", Done(Outcome(), "fine"))], provenance={"time": "now", "devices": []})
    page = Page(render_html(document(run, command="ci --only build")))
    assert page.wrong == [] and "The step registry did not run." in "".join(page.words)


@pytest.mark.parametrize(
    ("value", "words"), [(None, "-"), (0.0, "0"), (1.6e-14, "1.6e-14"), (0.25, "0.25"), (31, "31"), ("nan", "nan")]
)
def test_numbers(value: object, words: str) -> None:
    assert number(value) == words


def test_changes_have_a_sign_and_no_baseline_is_no_zero() -> None:
    assert [signed(each) for each in (None, 0, 3, -1)] == ["-", "0", "+3", "-1"]


def test_an_error_that_is_not_finite_fills_the_bar() -> None:
    assert [log_width(each) for each in (0.0, 1e-18, 1e-9, 1.0, 1e30, "inf", float("nan"))] == [
        0.0, 0.0, 50.0, 100.0, 100.0, 100.0, 100.0,
    ]  # fmt: skip


def test_a_graph_is_an_image() -> None:
    address = image("<svg/>")
    assert base64.b64decode(address.partition(",")[2]) == b"<svg/>"


def test_without_jinja_the_command_that_brings_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(SsmtoolError) as caught:
        render_html({})
    assert caught.value.hint == "pip install 'ssmtool[report]'"
