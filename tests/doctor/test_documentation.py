"""The pages about the doctor and the runner: every check is explained, every message is one that ssmtool prints."""

from __future__ import annotations

import re

from conftest import ROOT
from ssmtool.doctor.run import CHECKS

# A string of Python that goes on in the next line: the message stands in two pieces.
_JOINED = re.compile(r'"\s*\n\s*f?"')


def test_every_check_is_on_the_page() -> None:
    page = (ROOT / "docs" / "doctor.md").read_text()
    assert {name for name, _, _ in CHECKS} - set(re.findall(r"`([a-z]+/[a-z-]+)`", page)) == {
        # They add to another check and find no trap of their own.
        "driver/ageing",
        "gpu/nvidia-smi",
    }
    assert set(re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE))
    rows = re.findall(r"^\| `(.*?)` \|", page, re.MULTILINE)
    assert set(re.findall(r"[a-z]+/[a-z-]+", " ".join(rows))) <= {name for name, _, _ in CHECKS}


def test_every_message_on_the_runners_page_is_one_that_is_printed() -> None:
    page = (ROOT / "docs" / "k80-runner.md").read_text()
    messages = re.findall(r"^\| `([^`]+)` \| (?:doctor|build|audit|verify)", page, re.MULTILINE)
    sources = "\n".join(path.read_text() for path in sorted((ROOT / "ssmtool").rglob("*.py")))
    printed = _JOINED.sub("", sources)
    assert len(messages) > 20
    assert [message for message in messages if message not in printed] == []


def test_the_runners_page_says_that_no_k80_has_run_it() -> None:
    assert "No K80 has run it yet" in (ROOT / "docs" / "k80-runner.md").read_text()
