"""The page in a real browser: no error on its console, sorting and filtering by mouse and keyboard, nothing runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ci.samples import HOSTILE, sample

from ssmtool.report.html import render_html

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: the page was not opened in a browser"
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium on PATH: the page was not opened in a browser"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as library:
        # --no-sandbox: the sandbox refuses to start as root, which runners in containers are.
        started = library.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(sample()), "utf-8")
    return path


class Opened:
    def __init__(self, browser: Any, report: Path, **options: Any) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page = browser.new_page(**options)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(report.as_uri())

    def rows(self, table: str) -> list[str]:
        found: list[str] = self.page.locator(
            f"table[data-name={table}] tbody tr:visible td:first-child"
        ).all_inner_texts()
        return found


@pytest.fixture
def opened(browser: Any, report: Path) -> Iterator[Opened]:
    made = Opened(browser, report)
    yield made
    made.page.close()


def test_it_loads_without_an_error_and_asks_nobody(opened: Opened, report: Path) -> None:
    assert opened.said == []
    assert [url for url in opened.asked if not url.startswith("data:")] == [report.as_uri()]
    assert opened.page.evaluate("document.images.length") == 1


def test_a_hostile_name_is_shown_and_not_run(opened: Opened) -> None:
    shown = HOSTILE.replace("\u202e", "\ufffd")
    assert opened.page.evaluate("window.hit") is None
    assert shown in opened.page.locator("h3").first.inner_text()
    assert opened.page.locator("script").count() == 1


def test_a_click_sorts_up_and_then_down(opened: Opened) -> None:
    head = opened.page.locator("table[data-name=Steps] th").nth(5)
    head.locator("button").click()
    assert opened.rows("Steps") == ["build", "verify"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").click()
    assert opened.rows("Steps") == ["verify", "build"]
    assert head.get_attribute("aria-sort") == "descending"


def test_the_keyboard_sorts_too(opened: Opened) -> None:
    opened.page.locator("table[data-name=Steps] th button").first.focus()
    opened.page.keyboard.press("Enter")
    opened.page.keyboard.press("Space")
    assert opened.rows("Steps") == ["verify", "build"]


def test_a_filter_leaves_the_rows_with_all_its_words(opened: Opened) -> None:
    opened.page.get_by_label("Filter the table Kernels").focus()
    opened.page.keyboard.type("PLAIN4 line")
    assert opened.rows("Kernels") == ["plain4"]
    assert opened.page.locator("[role=status]").first.inner_text() == "1 of 7"
    opened.page.keyboard.press("Escape")
    assert len(opened.rows("Kernels")) == 7


def test_tab_reaches_every_control_in_its_order(opened: Opened) -> None:
    reached = []
    for _ in range(10):
        opened.page.keyboard.press("Tab")
        reached.append(
            opened.page.evaluate(
                "document.activeElement.tagName + ' ' + document.activeElement.textContent.trim().slice(0, 7)"
            )
        )
    # The region that scrolls, then the heads of its table.
    assert reached[0].startswith("DIV ") and reached[1:8] == [
        f"BUTTON {word}" for word in ("step", "link", "verdict", "finding", "skipped", "seconds", "what")
    ]


def test_a_short_table_has_no_filter(opened: Opened) -> None:
    assert opened.page.get_by_label("Filter the table Steps").count() == 0


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_a_phone_scrolls_down_only_and_colours_follow_it(browser: Any, report: Path, scheme: str) -> None:
    made = Opened(browser, report, viewport={"width": 360, "height": 700}, color_scheme=scheme)
    assert made.page.evaluate("document.documentElement.scrollWidth") <= 360
    back = made.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert back == {"dark": "rgb(13, 17, 23)", "light": "rgb(255, 255, 255)"}[scheme]
    made.page.close()


def test_on_paper_no_table_is_cut_off(browser: Any, report: Path) -> None:
    # A4 across, at 96 pixels an inch, less its margins.
    made = Opened(browser, report, viewport={"width": 1046, "height": 700})
    made.page.emulate_media(media="print")
    assert made.page.evaluate("document.documentElement.scrollWidth") <= 1046
    made.page.close()


def test_on_paper_all_is_there_and_the_filters_are_not(opened: Opened) -> None:
    opened.page.emulate_media(media="print")
    assert not opened.page.locator(".filter").first.is_visible()
    assert opened.page.locator("table[data-name=Kernels]").is_visible()


def test_without_script_the_page_is_whole(browser: Any, report: Path) -> None:
    made = Opened(browser, report, java_script_enabled=False)
    assert made.page.locator("table").count() > 8
    assert made.page.locator("table[data-name=Steps] th").first.inner_text() == "step"
    assert made.page.locator(".filter").count() == 0
    made.page.close()
