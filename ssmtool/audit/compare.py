"""Before and after, kernel by kernel, and why a number changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ssmtool.audit.budgets import measured
from ssmtool.audit.inputs import Input, read_data, read_input
from ssmtool.audit.result import AuditResult, KernelAudit
from ssmtool.errors import SsmtoolError

_GIT = "git:"
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class KernelChange:
    """One kernel in both. `before` or `after` is None where the kernel is new or gone.

    `numbers` are name -> (before, after) of those that differ, the instruction mix among them; `reasons` are words.
    """

    kernel: str
    before: KernelAudit | None
    after: KernelAudit | None
    numbers: Mapping[str, tuple[int, int]]
    reasons: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether anything differs."""
        return self.before is None or self.after is None or bool(self.numbers)


def read_old(old: str, inputs: Sequence[str], repository: Path, default: str | None) -> list[Input]:
    """The older PTX: a file or folder, or `git:REVISION`, the audited file as it was then.

    Raises SsmtoolError when git does not know the revision or the file in it.
    """
    if not old.startswith(_GIT):
        if old and not os.path.lexists(old) and "/" not in old and not Path(old).suffix:
            raise SsmtoolError("no such file", path=old, hint=f"for a git revision: --compare {_GIT}{old}")
        return read_input(old)
    if len(inputs) > 1 or inputs == ("-",):
        raise SsmtoolError("--compare git:REVISION wants one file to look up in the repository")
    path = inputs[0] if inputs else default
    if path is None:
        raise SsmtoolError("--compare git:REVISION wants a file, or a project")
    revision = old[len(_GIT) :]
    if not revision or ":" in revision:
        raise SsmtoolError(f'"{revision}" is not a git revision', hint="--compare git:HEAD~1")
    file = Path(path).resolve()
    folder = file.parent if file.parent.is_dir() else repository
    data = _git(folder, "show", f"{revision}:./{file.name}", what=f"{path} at {revision}")
    return read_data(data, f"{path}@{revision}") if Path(path).suffix else read_data(data, path)


def _git(folder: Path, *arguments: str, what: str) -> bytes:
    if arguments[1].startswith("-"):
        raise SsmtoolError(f'"{arguments[1]}" is not a git revision')
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise SsmtoolError("git is not on PATH", hint="give --compare a file instead") from None
    except subprocess.TimeoutExpired:
        raise SsmtoolError(f"git took longer than {_TIMEOUT_S:.0f} s to show {what}") from None
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise SsmtoolError(f"git cannot show {what}: {words[0] if words else 'no reason given'}")
    return done.stdout


def compare_results(old: AuditResult, new: AuditResult) -> list[KernelChange]:
    """Every kernel of either, in the order of the new text, then those that are gone."""
    names = [*new.by_name, *(name for name in old.by_name if name not in new.by_name)]
    return [_change(name, old.by_name.get(name), new.by_name.get(name)) for name in names]


def _numbers(kernel: KernelAudit) -> dict[str, int]:
    counts = kernel.counts
    return {
        "instructions": counts.instructions,
        **measured(kernel),
        "barriers": counts.barriers,
        "shuffles": counts.shuffles,
        "atomics": counts.atomics,
        "conditional_branches": counts.conditional_branches,
        "approximate": counts.approximate,
        **counts.mix,
    }


def _change(name: str, before: KernelAudit | None, after: KernelAudit | None) -> KernelChange:
    if before is None or after is None:
        return KernelChange(name, before, after, {}, ("new" if before is None else "gone",))
    old, new = _numbers(before), _numbers(after)
    numbers = {
        key: (old.get(key, 0), new.get(key, 0))
        for key in dict.fromkeys([*new, *old])
        if old.get(key, 0) != new.get(key, 0)
    }
    return KernelChange(name, before, after, numbers, tuple(_reasons(before, after, numbers)))


def _reasons(before: KernelAudit, after: KernelAudit, numbers: Mapping[str, tuple[int, int]]) -> list[str]:
    """What explains the change, the weightiest first."""
    reasons = []
    if "local_bytes" in numbers:
        old, new = numbers["local_bytes"]
        what = "an array is now indexed at run time or its address is taken" if not old else "the local array changed"
        reasons.append(what if new else "the local array is gone")
    if "executed_local" in numbers:
        old, new = numbers["executed_local"]
        guard = next((a.guarding for a in after.path.accesses if a.executed and a.guarding), None)
        when = f", when {guard.condition}" if guard else ""
        reasons.append(f"local traffic on the path: {old} -> {new}{when}")
    if dict(before.path.assumed) != dict(after.path.assumed):
        reasons.append("other assumptions apply to the two")
    for key, words in (
        ("barriers", "barriers"),
        ("shuffles", "shuffles"),
        ("contractible", "products open to contraction"),
        ("shared memory", "shared-memory accesses"),
        ("global memory", "global-memory accesses"),
        ("floating point", "floating-point operations"),
        ("conditional_branches", "conditional branches"),
    ):
        if key in numbers:
            old, new = numbers[key]
            reasons.append(f"{words} {old} -> {new}")
    if not reasons and numbers:
        old, new = numbers.get("instructions", (0, 0))
        reasons.append(f"address arithmetic and moves only ({new - old:+d} instructions)")
    return reasons
