from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from ssmtool.toolchain import ToolchainError
from ssmtool.toolchain.process import run_tool


def test_exit_code_output_and_input_come_through() -> None:
    finished = run_tool(["sh", "-c", "cat; echo err >&2; exit 3"], name="sh", timeout_s=10, stdin="in")
    assert (finished.code, finished.stdout, finished.stderr) == (3, "in", "err\n")


def test_output_that_is_not_utf8_does_not_break_the_reader() -> None:
    assert "\ufffd" in run_tool(["printf", r"\377"], name="printf", timeout_s=10).stdout


def test_time_limit_kills_the_grandchild_too(tmp_path: Path) -> None:
    """Nvcc's cicc outlived a killed nvcc: the whole group has to go."""
    mark = tmp_path / "pid"
    start = time.monotonic()
    with pytest.raises(ToolchainError, match=r"stopped after 0\.5 s"):
        run_tool(["sh", "-c", f"sleep 60 & echo $! > {mark}; wait"], name="slow", timeout_s=0.5)
    assert time.monotonic() - start < 20
    grandchild = int(mark.read_text())
    for _ in range(100):
        try:
            state = Path(f"/proc/{grandchild}/stat").read_text(encoding="utf-8").split()[2]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    os.kill(grandchild, 9)
    pytest.fail("the grandchild still runs")


def test_killed_tool_names_signal_and_last_words() -> None:
    with pytest.raises(ToolchainError, match="killed by SIGKILL; its last words: going") as caught:
        run_tool(["sh", "-c", "echo going >&2; kill -KILL $$"], name="tool", timeout_s=10)
    assert caught.value.hint is not None
    assert "memory" in caught.value.hint


def test_folder_in_the_place_of_a_tool(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="cannot be started"):
        run_tool([tmp_path], name="tool", timeout_s=10)


def test_isolated_child_needs_the_standard_library_only() -> None:
    """The NVRTC child runs with -I -S in any environment: ssmtool's packages must not be needed to start it."""
    child = Path(__file__).parents[2] / "ssmtool" / "toolchain" / "nvrtc_child.py"
    request = '{"library": "/nowhere/libnvrtc.so"}'
    finished = run_tool([sys.executable, "-I", "-S", child], name="child", timeout_s=30, stdin=request)
    assert "load_error" in finished.stdout
