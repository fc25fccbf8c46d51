"""What a rebuild would change in the header, kernel by kernel."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ssmtool.build.entries import EntryText, split_entries
from ssmtool.header import HeaderModule


@dataclass(frozen=True, slots=True)
class KernelChange:
    """One kernel that a rebuild adds, removes, changes or moves.

    `operations` lists what the change adds to and takes from the instruction counts (`fma.rn.f32 +4`): register names
    differ between any two compilers, so this says more than the lines do. `diff` is a unified diff of the PTX.
    """

    constant: str
    kernel: str
    kind: str
    lines_added: int
    lines_removed: int
    operations: tuple[str, ...]
    diff: str


def compare_modules(old: Sequence[HeaderModule], new: Sequence[HeaderModule]) -> list[KernelChange]:
    """The changes from the header's modules to those of a fresh build; empty when every kernel's PTX is the same."""
    before = {module.record.constant: module for module in old}
    after = {module.record.constant: module for module in new}
    changes: list[KernelChange] = []
    for constant in dict.fromkeys([*before, *after]):
        changes.extend(_compare_texts(constant, _ptx(before.get(constant)), _ptx(after.get(constant))))
    return changes


def _ptx(module: HeaderModule | None) -> str:
    return module.ptx if module else ""


def _compare_texts(constant: str, old: str, new: str) -> list[KernelChange]:
    """The changes of one string constant; what lies before the first entry counts as the kernel `(module)`."""
    before = {entry.name: entry for entry in _parts(old)}
    after = {entry.name: entry for entry in _parts(new)}
    changes = []
    for name in dict.fromkeys([*before, *after]):
        one, other = before.get(name), after.get(name)
        if one is None or other is None or one.text != other.text:
            kind = "added" if one is None else "removed" if other is None else "changed"
            changes.append(_change(constant, name, kind, one.text if one else "", other.text if other else ""))
    common = [name for name in before if name in after]
    if common != [name for name in after if name in before]:
        changes.append(KernelChange(constant, "(module)", "reordered", 0, 0, tuple(after), ""))
    return changes


def _parts(ptx: str) -> list[EntryText]:
    """What lies before the first entry, as an entry named `(module)`, then the entries; nothing for no text."""
    entries = split_entries(ptx)
    end = ptx.find(entries[0].text) if entries else len(ptx)
    return [EntryText("(module)", (), ptx[:end]), *entries] if ptx else []


def _change(constant: str, kernel: str, kind: str, old: str, new: str) -> KernelChange:
    diff = list(
        difflib.unified_diff(
            old.splitlines(), new.splitlines(), f"header/{kernel}", f"rebuild/{kernel}", n=2, lineterm=""
        )
    )
    body = [line for line in diff[2:] if not line.startswith("@@")]
    counts = _operations(new)
    counts.subtract(_operations(old))
    operations = tuple(f"{name} {count:+d}" for name, count in sorted(counts.items()) if count)
    return KernelChange(
        constant=constant,
        kernel=kernel,
        kind=kind,
        lines_added=sum(line.startswith("+") for line in body),
        lines_removed=sum(line.startswith("-") for line in body),
        operations=operations,
        diff="\n".join(diff),
    )


def _operations(text: str) -> Counter[str]:
    """Instruction name -> count. A line such as `@%p1 bra $L__BB0_4;` counts as `bra`."""
    counts: Counter[str] = Counter()
    for line in text.splitlines():
        words = line.split()
        if words and words[0].startswith("@"):
            words = words[1:]
        if words and line.endswith(";") and words[0][0].isalpha():
            counts[words[0].rstrip(";")] += 1
    return counts
