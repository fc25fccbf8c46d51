"""Compiles kernels ahead of the cases, on two processors: LLVM holds one lock in a process.

The main process compiles the first half of the list; if the first kernel shows that the disk's cache is cold, a second
process compiles the other half into that cache. Whatever goes wrong there costs time only.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.verify.loaded import Check, Text

# (entry, block, check)
Wanted = tuple[str, tuple[int, int, int], "Check"]

# A kernel from the cache takes a hundredth of this.
_COLD_SECONDS = 0.08
# Fewer than these are compiled sooner than a process starts.
_WORTH = 4


def compile_ahead(texts: Sequence[Text], wanted: Sequence[Wanted], progress: Callable[[int, int], None]) -> None:
    """Have every kernel in the cache on the disk. Kernels that cannot be compiled are left for their cases to tell."""
    modules = modules_of(texts)
    helper: subprocess.Popen[str] | None = None
    half = len(wanted)
    try:
        for number, each in enumerate(wanted):
            if number >= half:
                break
            progress(number, len(wanted))
            started = time.perf_counter()
            compile_kernel(modules, each)
            if number == 0 and len(wanted) >= _WORTH and time.perf_counter() - started > _COLD_SECONDS:
                half = 1 + -(-(len(wanted) - 1) // 2)
                helper = _start(texts, wanted[half:]) if _processors() > 1 else None
                half = half if helper else len(wanted)
        if helper is not None:
            helper.wait()
    finally:
        if helper is not None and helper.poll() is None:
            helper.kill()
            helper.wait()
    progress(len(wanted), len(wanted))


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def modules_of(texts: Sequence[Text]) -> dict[str, object]:
    """The executor's module of each entry."""
    from ssmtool.execute import Module

    found: dict[str, object] = {}
    for text in texts:
        module = Module(text.module)
        for entry in module.entries:
            found.setdefault(entry, module)
    return found


def compile_kernel(modules: Mapping[str, object], wanted: Wanted) -> None:
    """Have one kernel in the cache. One that cannot be compiled is left for its cases to tell."""
    entry, block, check = wanted
    module = modules.get(entry)
    if module is not None:
        with contextlib.suppress(SsmtoolError):
            module.compile(entry, block, check=check)  # type: ignore[attr-defined]


def _start(texts: Sequence[Text], wanted: Sequence[Wanted]) -> subprocess.Popen[str] | None:
    """The second process, or None where there can be none."""
    job = json.dumps({"texts": [text.module.text for text in texts], "wanted": list(wanted)})
    try:
        helper = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert helper.stdin is not None
        helper.stdin.write(job)
        helper.stdin.close()
    except OSError:
        return None
    return helper


def main() -> None:
    """The second process: the job as JSON on standard input."""
    from ssmtool import ptx
    from ssmtool.verify.loaded import Text

    job = json.load(sys.stdin)
    modules = modules_of([Text(ptx.parse(text)) for text in job["texts"]])
    for entry, block, check in job["wanted"]:
        compile_kernel(modules, (entry, tuple(block), check))


if __name__ == "__main__":
    main()
