"""Run a tool in a child process with a time limit, and tell a tool that failed from a tool that was killed."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssmtool.settings_form import table
from ssmtool.toolchain.model import ToolchainError
from ssmtool.toolchain.workers import children_of_thread, kill_group


@dataclass(frozen=True, slots=True)
class Finished:
    """A child that ended by itself: its exit code (never negative), what it printed, and the wall seconds it took."""

    code: int
    stdout: str
    stderr: str
    seconds: float


def run_tool(
    argv: Sequence[str | Path],
    *,
    name: str,
    timeout_s: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    hint: str | None = None,
    blame: Path | None = None,
) -> Finished:
    """Run `argv` to its end.

    `name` is what messages call it, and `blame` the file they point at (the program, unless it only carries a library);
    `hint` mends a tool that cannot start or dies.

    The child leads a process group of its own, because nvcc starts cicc and the host compiler and killing nvcc alone
    would leave them running; the whole group is killed on a timeout and on Ctrl-C, which does not reach a group of
    its own otherwise. Raises ToolchainError when the child cannot start, is killed by a signal, or runs out of time.
    """
    start = time.perf_counter()
    culprit = blame or Path(argv[0])
    try:
        child = subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=env,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise ToolchainError(f"{name} cannot be started: {error.strerror or error}", path=culprit, hint=hint) from None
    family = children_of_thread()
    with child:
        family.add(child)
        try:
            stdout, stderr = child.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            _end(child)
            raise ToolchainError(
                f"{name} was stopped after {timeout_s:g} s, the time limit",
                path=culprit,
                hint=f"raise compile_timeout in {table()}, or look for a kernel that never stops unrolling",
            ) from None
        except BaseException:
            _end(child)
            raise
        finally:
            family.remove(child)
    seconds = time.perf_counter() - start
    if child.returncode < 0:
        raise ToolchainError(
            f"{name} was killed by {signal_name(-child.returncode)}{_last_words(stderr)}",
            path=culprit,
            hint=hint or _signal_hint(-child.returncode),
        )
    return Finished(child.returncode, stdout, stderr, seconds)


def signal_name(number: int) -> str:
    """`SIGSEGV` for 11, and so on."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end(child: subprocess.Popen[str]) -> None:
    """Kill the child and everything it started, and wait for its end."""
    kill_group(child)
    child.wait()


def _signal_hint(number: int) -> str | None:
    """SIGKILL without a time limit is nearly always the kernel's out-of-memory killer."""
    return "free some memory (a SIGKILL is mostly the out-of-memory killer) and run again" if number == 9 else None


def _last_words(stderr: str) -> str:
    """The last line a dying tool printed, or nothing."""
    lines = stderr.strip().splitlines()
    return f"; its last words: {lines[-1].strip()}" if lines else ""
