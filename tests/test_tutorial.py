"""docs/tutorial.md, followed word for word in a scratch copy, prints what it shows and ends green.

The page's convention, which it states at its head, is all that is known here: a `console` block is typed and compared;
a block under "New file `F`:", "At the end of `F`, add:" or "In `F`, change:" goes into that file; "It exits with N"
after a block is about its last command. Nothing of the page's text is repeated here, so it can be edited freely.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conftest import ROOT

PAGE = ROOT / "docs" / "tutorial.md"
INTO = re.compile(r"(New file|At the end of|In) `([^`]+)`(?:, (?:add|change))?:$")
# What differs between two runs or two machines, and means nothing: seconds.
TIME = re.compile(r"\b\d+\.\d+(?= m?s\b|  \S)")


@dataclass
class Typed:
    """One command, what the page shows of its output, and the exit code it names."""

    line: int
    command: str
    shown: list[str] = field(default_factory=list)
    code: int = 0


@dataclass(frozen=True)
class Edit:
    """One change of a file: `how` is "New file", "At the end of" or "In"."""

    line: int
    how: str
    file: str
    text: str


def steps(page: str) -> list[Typed | Edit]:
    """What the page has its reader do, in order. Raises AssertionError for a block that is neither command nor edit."""
    found: list[Typed | Edit] = []
    fence = re.compile(r"(?ms)^```(\w*)\n(.*?)^```$")
    end = 0
    for match in [*fence.finditer(page), None]:
        between = page[end : match.start() if match else len(page)]
        exits = re.search(r"It exits with (\d+)", between)
        if exits and end:
            last = found[-1]
            assert isinstance(last, Typed), f"{between.strip()}: no command before it"
            last.code = int(exits[1])
        if match is None:
            break
        line = page.count("\n", 0, match.start()) + 1
        before = between.rstrip().rsplit("\n", 1)[-1]
        into = INTO.match(before)
        if match[1] == "console":
            found += typed(match[2], line + 1)
        else:
            assert into, f"line {line}: a {match[1]} block, and no file is named for it"
            found.append(Edit(line, into[1], into[2], match[2]))
        end = match.end()
    return found


def typed(block: str, line: int) -> list[Typed]:
    """The commands of one block."""
    found: list[Typed] = []
    for number, text in enumerate(block.splitlines(), line):
        if text.startswith("$ "):
            found.append(Typed(number, text[2:]))
        else:
            assert found, f"line {number}: output before any command"
            found[-1].shown.append(text)
    return found


def apply(edit: Edit, folder: Path) -> None:
    """Do what an edit says; a place that is not there, or there twice, is an error of the page."""
    path = folder / edit.file
    if edit.how == "New file":
        assert not path.exists(), f"line {edit.line}: {edit.file} is there already"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(edit.text, "utf-8")
        return
    text = path.read_text("utf-8")
    if edit.how == "At the end of":
        path.write_text(text + edit.text, "utf-8")
        return
    for hunk in re.split(r"(?m)^@@\n", edit.text):
        lines = hunk.splitlines(keepends=True)
        assert all(each[0] in " +-" for each in lines), f"line {edit.line}: no diff: {hunk}"
        old = "".join(each[1:] for each in lines if each[0] in " -")
        new = "".join(each[1:] for each in lines if each[0] in " +")
        assert text.count(old) == 1, f"line {edit.line}: {text.count(old)} places in {edit.file} are:\n{old}"
        text = text.replace(old, new)
    path.write_text(text, "utf-8")


def lasting(line: str) -> str:
    """A line without times, and without how many blanks align its columns, which depends on them."""
    return re.sub(r" +", " ", TIME.sub("T", line)).rstrip()


def shows(shown: list[str], printed: list[str]) -> bool:
    """Whether `shown` is all of `printed`; a line `...` stands for any lines, also none, in a line for any part."""
    pattern = "".join(
        r"(?:\n.*)*" if line == "..." else "\n" + ".*".join(re.escape(part) for part in lasting(line).split("..."))
        for line in shown
    )
    return re.fullmatch(pattern, "".join(f"\n{lasting(line)}" for line in printed)) is not None


class Reader:
    """Who follows the page: a shell in a scratch checkout, with `ssmtool` and `python` of this interpreter."""

    def __init__(self, folder: Path) -> None:
        self.here = folder / "checkout"
        shutil.copytree(ROOT / "examples", self.here / "examples")
        programs = folder / "bin"
        programs.mkdir()
        for name, words in (("python", ""), ("ssmtool", "-m ssmtool ")):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
            program.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "COLUMNS": "120",
            "NO_COLOR": "1",
            # The page is about a machine without a card; one that has one runs it the same way.
            "CUDA_VISIBLE_DEVICES": "",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
        }

    def type(self, step: Typed) -> None:
        """Type one command; its exit code and its output must be the page's."""
        if step.command.startswith("cd "):
            self.here = (self.here / step.command[3:]).resolve(strict=True)
            return
        ran = subprocess.run(
            ["bash", "-c", step.command],
            cwd=self.here,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            check=False,
        )
        where = f"docs/tutorial.md:{step.line}: $ {step.command}"
        assert ran.returncode == step.code, f"{where} exits with {ran.returncode}:\n{ran.stdout}"
        assert shows(step.shown, ran.stdout.splitlines()), f"{where} prints:\n{ran.stdout}"


def test_the_tutorial_followed_word_for_word_prints_what_it_shows_and_ends_green(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    done = steps(PAGE.read_text("utf-8"))
    for step in done:
        if isinstance(step, Edit):
            apply(step, reader.here)
        else:
            reader.type(step)
    last = [step for step in done if isinstance(step, Typed) and step.command.startswith("ssmtool ci")][-1]
    assert last.code == 0
    assert {"registry", "build", "run", "golden", "verify", "fuzz", "audit-ptx", "ci"} <= {
        step.command.split()[1] for step in done if isinstance(step, Typed) and step.command.startswith("ssmtool ")
    }


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a", "...", "c"], ["a", "b", "b", "c"], True),
        (["a", "...", "c"], ["a", "c"], True),
        (["a", "...", "d"], ["a", "b", "c"], False),
        (["a 1.2 s, ..., d"], ["a 3.4 s, b, c, d"], True),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        ([], [], True),
        ([], ["a"], False),
        (["out[:2] = 0.5 1.5"], ["out[:2] = 0.5 1.6"], False),
        (["3.5e-15      4.1e-07    2"], ["3.5e-14      4.1e-07    2"], False),
    ],
)
def test_output_that_the_page_does_not_show_is_noticed(shown: list[str], printed: list[str], same: bool) -> None:
    assert shows(shown, printed) is same


def test_an_edit_whose_place_is_gone_is_an_error_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one\ntwo\n")
    apply(Edit(1, "In", "f", "-one\n+1\n two\n"), tmp_path)
    assert (tmp_path / "f").read_text() == "1\ntwo\n"
    with pytest.raises(AssertionError, match="0 places"):
        apply(Edit(1, "In", "f", "-one\n+1\n"), tmp_path)
