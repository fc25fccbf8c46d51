"""`ssmtool bench --beside`: work from outside in the same run, over the fake driver (0.5 ms between events)."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from device.fake import FakeDriver

from conftest import ROOT, Run
from ssmtool.bench.beside import Peer, Task, timing

SMALL = ("--device", "ctypes:0", "--heads", "1", "--positions", "2", "--users", "", "--repeat", "2", "--warmup", "1")
WORDS = ("bench", "fc_ssm_recurrence_seq", *SMALL)
File = Callable[[str], str]


pytestmark = pytest.mark.usefixtures("fake")


@pytest.fixture(autouse=True)
def _small_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssmtool.bench.card._FILLER", 1 << 16)
    monkeypatch.setattr("ssmtool.bench.card._COPY", 1 << 16)


@pytest.fixture
def file(tmp_path: Path) -> File:
    def write(text: str) -> str:
        path = tmp_path / "mine.py"
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def test_a_function_is_timed_and_its_outputs_are_compared_not_held_to_bits(
    run: Run, fake: FakeDriver, file: File
) -> None:
    mine = file(
        """
        import numpy as np
        from ssmtool.bench.beside import Peer

        def beside(task):
            assert (task.kind, task.positions, task.users, task.heads, task.size) == ("prefill", 2, 1, 1, 128)
            assert not task.inputs["q"].flags.writeable
            x = {name: each[:, 0].astype(float) for name, each in task.inputs.items() if name != "s"}
            calls = []

            def compute():
                s, y = task.inputs["s"][0].astype(float), []
                for t in range(task.positions):
                    s = s * np.exp(x["g"][t])
                    s = s + np.outer((x["v"][t] - s @ x["k"][t]) * x["beta"][t], x["k"][t])
                    y.append(task.scale * (s @ x["q"][t]))
                return {"y": np.array(y), "s": s}

            return Peer("in float64", lambda: calls.append(1), outputs=compute, note="numpy, as written")
        """
    )
    ran = run(ROOT, *WORDS, "--beside", mine, "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    (report,) = ran.json["extra"]["bench"]
    (peer,) = report["beside"]
    assert (peer["peer"], peer["median_us"], peer["repeats"]) == ("in float64", 500.0, 2)
    assert peer["bytes"] == report["timings"][0]["bytes"]
    assert {each["output"] for each in peer["differences"]} == {"s", "y"}
    assert all(0 < each["nmse"] < 1e-12 and each["max_abs"] < 1e-5 * each["rms"] for each in peer["differences"])
    assert fake.left() == (0, 0, 0)
    ran = run(ROOT, *WORDS, "--beside", mine)
    assert "from outside, in the same run" in ran.out
    assert "note: numpy, as written" in ran.out


def test_a_plain_function_a_list_and_nothing_are_taken_and_a_named_one_found(run: Run, file: File) -> None:
    mine = file(
        """
        def kernel(): pass
        def other(task): return [kernel, kernel] if task.snapshots else None
        """
    )
    ran = run(ROOT, *WORDS, "--snapshots", "--beside", f"{mine}:other", "--format", "json")
    assert ran.code == 0, ran.out + ran.err
    found = ran.json["extra"]["bench"][0]["beside"]
    assert [(each["peer"], each["group"], each["differences"]) for each in found] == 2 * [
        ("kernel", "prefill, 2 positions, every snapshot", [])
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def beside(task):\n    1 / 0\n", "prefill: ZeroDivisionError: division by zero (mine.py, line 2)"),
        ("def beside(task):\n    return 5\n", "it gave int '5'; expected a function"),
        ("def beside(task):\n    return lambda: [][1]\n", "IndexError: list index out of range (mine.py, line 2)"),
        ("def beside(task):\n    return lambda: exit(3)\n", "SystemExit: 3"),
        (
            "from ssmtool.bench.beside import Peer\n"
            "def beside(task):\n    return Peer('p', print, outputs=lambda: {'y': [1, 2]})\n",
            "p, prefill, 2 positions: output y has the shape (2,); ours has (2, 1, 128)",
        ),
        (
            "from ssmtool.bench.beside import Peer\n"
            "def beside(task):\n    return Peer('p', print, outputs=lambda: 7)\n",
            "outputs() gave int; expected a dictionary",
        ),
    ],
)
def test_what_fails_in_it_is_told_ours_are_timed_all_the_same_and_the_exit_code_says_so(
    run: Run, file: File, text: str, says: str
) -> None:
    ran = run(ROOT, *WORDS, "--beside", file(text))
    assert ran.code == 2
    assert says in " ".join(ran.out.split())  # long words are folded
    assert "500.00" in ran.out
    assert "Traceback" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def beside(:\n", "SyntaxError"),
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("other = 3\ndef g(task): pass\n", "no function beside in it; there is: g"),
        ("def prepare():\n    raise RuntimeError('no card of mine')\ndef beside(task): pass\n", "no card of mine"),
    ],
)
def test_a_bad_file_ends_it_before_anything_is_timed(run: Run, file: File, text: str, says: str) -> None:
    ran = run(ROOT, *WORDS, "--beside", file(text))
    assert ran.code == 2
    assert says in ran.err
    assert "Traceback" not in ran.out + ran.err


def test_what_a_file_prints_is_not_mixed_with_the_report(run: Run, file: File) -> None:
    mine = file("print('read')\ndef prepare(): print('prepared')\ndef beside(task): print('asked')\n")
    ran = run(ROOT, *WORDS, "--beside", mine, "--format", "json")
    assert ran.json["tool"] == "ssmtool"
    assert ran.err.split()[:3] == ["read", "prepared", "asked"]


def test_work_that_is_in_a_stream_of_its_own_is_seen(run: Run, file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    """The card is idle long after the event that stands behind the work."""
    monkeypatch.setattr(timing, "_SLACK_S", 1e-4)
    mine = file("import time\ndef beside(task):\n    return lambda: time.sleep(0.003)\n")
    ran = run(ROOT, *WORDS, "--beside", mine)
    assert ran.code == 2
    assert "its work goes on after the event behind it" in ran.out
    assert "mend it: put it into the default stream" in ran.out


def test_the_queue_is_kept_busy_for_as_long_as_the_host_takes() -> None:
    """Of a peer that the host takes 20 ms to start, that time must not be in the card's."""

    class Binding:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: 50.0  # milliseconds, where it is asked for

    class Card:
        binding = Binding()

        def events(self) -> tuple[int, int]:
            return (0, 1)

    begun: list[int] = []
    conditions: Any = timing.Conditions(Card(), begun.append, 1e-3)  # type: ignore[arg-type]
    seconds, host = timing._seconds(Peer("slow", lambda: time.sleep(0.02)), conditions, 2, 1, "a group")
    assert seconds == (0.05, 0.05)
    assert 0.02 <= host < 0.2
    assert all(copies * 1e-3 >= 2 * host for copies in begun)


def test_the_cpu_has_no_clock_for_it(run: Run, file: File) -> None:
    ran = run(ROOT, "bench", "--device", "cpu", "--beside", file("def beside(task): pass\n"))
    assert ran.code == 2
    assert "--beside is for cards" in ran.err


def test_flash_linear_attention_says_what_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    from ssmtool.bench.beside import fla

    fla._libraries.cache_clear()
    ran = run(ROOT, *WORDS, "--beside", "fla")
    assert ran.code == 2
    assert "--beside fla: import of torch halted" in ran.err
    assert "pip install torch triton fla-core" in ran.err


def test_a_task_is_what_the_group_is() -> None:
    names = set(Task.__dataclass_fields__)
    assert names == {"kind", "positions", "users", "heads", "size", "scale", "snapshots", "inputs", "device"}
