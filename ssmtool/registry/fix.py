"""`--fix`: the loader's names and count brought in line with the module, byte for byte, or left alone with the reason.

Names are added, removed and respelt; they are never moved, since launches go by their index. Every edit is read back
and checked before the result is handed out, so a wrong guess about a layout ends in a refusal, not in a broken file.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import msgspec

from ssmtool.csource import Count, NameArray, find_name_array
from ssmtool.csource.preprocess import host_environment, preprocess
from ssmtool.errors import SsmtoolError
from ssmtool.registry.model import RegistryInput, RegistryReport
from ssmtool.registry.order import in_order, mangled_by_accident, misplaced, reference_order
from ssmtool.registry.patch import ArrayText, RefusedError, insert, remove, rename


class Fix(msgspec.Struct, frozen=True):
    """The outcome of planning: `data` are the loader's new bytes, the old ones when nothing is to be done or may be.

    `edits` say what changes, a line each; `refusal` says why nothing does, although something is wrong. `moved` are
    the names that lose their index, in words: launches go by index.
    """

    data: bytes
    edits: tuple[str, ...] = ()
    refusal: str | None = None
    moved: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether there is something to write."""
        return bool(self.edits)


def plan_fix(report: RegistryReport, data: bytes) -> Fix:
    """Bring the names and the count of `report`'s loader, whose bytes are `data`, in line with the module.

    The array is read again from `data`, so several modules of one loader file can be fixed one after the other. Raises
    SsmtoolError as `find_name_array` does.
    """
    given = report.input
    if given.loader is None:
        return Fix(data)
    try:
        return _plan(given, given.loader, data)
    except RefusedError as reason:
        return Fix(data, refusal=str(reason))


def _plan(given: RegistryInput, old: NameArray, data: bytes) -> Fix:
    reader = _Reader(old, given)
    loader = reader.read(data)
    target = _target(given, loader)
    edits: list[str] = []
    if loader.names != target:
        _refuse_doubts(loader)
    new_data = _edit_names(reader, data, target, edits)
    new_data = _edit_numbers(reader, new_data, loader, len(target), edits)
    if not edits:
        return Fix(data)
    _verify(reader, new_data, target)
    return Fix(new_data, tuple(edits), moved=_moved(loader.names, target))


def _moved(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """What happens to indices: `name: 3 -> 2`, or `name: removed`. A name respelt in its place keeps its index."""
    moved = []
    for index, name in enumerate(old):
        if name in new and new.index(name) != index:
            moved.append(f"{name}: {index} -> {new.index(name)}")
        elif name not in new and (index >= len(new) or new[index] in old):
            moved.append(f"{name}: removed")
    return tuple(moved)


class _Reader(msgspec.Struct, frozen=True):
    """Reads the same array again from changed bytes."""

    old: NameArray
    given: RegistryInput

    def read(self, data: bytes) -> NameArray:
        old = self.old
        return find_name_array(data, old.path, old.array, old.function, old.count_argument)

    def text(self, data: bytes) -> ArrayText:
        return ArrayText.of(self.read(data), preprocess(data, self.old.path, host_environment(Path(self.old.path))))


def _refuse_doubts(loader: NameArray) -> None:
    conditional = next((entry for entry in loader.entries if entry.condition), None)
    if conditional:
        raise RefusedError(f"the name on line {conditional.line} is under {conditional.condition}")
    if loader.doubts:
        raise RefusedError(loader.doubts[0])


def _target(given: RegistryInput, loader: NameArray) -> tuple[str, ...]:
    """The names the array should hold. Raises RefusedError where that takes a move, or knowledge there is none of."""
    module = given.header_entries
    waiting = {kernel.name for kernel in given.source.kernels}
    keep = {name for name in loader.names if name in module or name in waiting}
    gone = [name for name in loader.names if name not in keep]
    if gone and not given.source.complete and given.ptx_entries is None:
        raise RefusedError(
            f"{gone[0]} may come from a part of {given.source.path} that its text does not show: "
            "run ssmtool build first"
        )
    if not module:
        raise RefusedError(f"{given.constant} holds no kernel: run ssmtool build first")
    reference = reference_order(given)
    for name in loader.names:
        if name in keep and name not in reference:
            # Waiting for its symbol under another name (no extern "C", a template): it keeps its place.
            raise RefusedError(f"{name} has no symbol of its own name: mend the source first")
    moved = misplaced(loader.names, reference)
    if moved:
        raise RefusedError(
            f"{', '.join(moved)} would have to move, and launches go by index: put the names of {loader.array} in the "
            "source's order by hand"
        )
    wanted = keep | (set(module) - mangled_by_accident(given))
    return tuple(sorted(wanted, key=reference.__getitem__))


def _edit_names(reader: _Reader, data: bytes, target: tuple[str, ...], edits: list[str]) -> bytes:
    """One edit at a time, the array read anew after each."""
    reference = {name: place for place, name in enumerate(target)}
    limit = 2 * (len(target) + len(reader.old.entries)) + 2
    for _ in range(limit):
        where = reader.text(data)
        names = where.array.names
        if names == target:
            return data
        kept = frozenset(in_order(names, reference))
        index = next(
            (
                at
                for at, (name, wanted) in enumerate(zip(names, target, strict=False))
                if name != wanted or at not in kept
            ),
            min(len(names), len(target)),
        )
        wanted_name = target[index] if index < len(target) else None
        if index < len(names) and index not in kept:
            name, line = names[index], where.array.entries[index].line
            if wanted_name and wanted_name not in names and _alike(name, wanted_name):
                text = rename(where, index, wanted_name)
                edits.append(f"line {line}: {name} becomes {wanted_name}")
            else:
                text = remove(where, index)
                edits.append(f"line {line}: {name} removed")
        else:
            assert wanted_name is not None
            text = insert(where, index, wanted_name)
            edits.append(f"{wanted_name} added at index {index}")
        data = text.encode("latin-1")
    raise RefusedError("the edits do not come to an end; nothing was changed")


def _alike(name: str, wanted: str) -> bool:
    """Whether one is a misspelling of the other rather than another kernel."""
    return difflib.SequenceMatcher(None, name, wanted).ratio() >= 0.8


def _edit_numbers(reader: _Reader, data: bytes, before: NameArray, length: int, edits: list[str]) -> bytes:
    """The count literal and a literal in the array's brackets."""
    listed = len(before.entries) + before.terminated
    now = reader.read(data)
    changes: list[tuple[Count, int, str]] = []
    declared = now.declared
    if declared is not None and declared.kind != "length":
        wanted = length + now.terminated
        if declared.value is None and wanted != listed:
            raise RefusedError(f"the size {declared.text} of {now.array} cannot be told")
        if (
            declared.value is not None
            and declared.value != wanted
            and (declared.value in (listed,) or declared.value < wanted)
        ):
            changes.append((declared, wanted, f"size of {now.array}"))
    count = now.count
    if count is None or count.value is None:
        if length != len(before.entries):
            what = f"the count {count.text} cannot be told" if count else "no call with a count is known"
            raise RefusedError(f"{what}, so a name more or less may not be loaded")
    elif count.kind == "length":
        # A count by the declared size follows once that is edited; _verify reads it back.
        pass
    elif count.value != length:
        changes.append((count, length, f"count in line {count.line}"))
    for number, value, what in changes:
        if number.kind != "literal":
            where = f" (line {number.defined_line})" if number.defined_line else ""
            raise RefusedError(f"{what} is {number.text}{where}, which is not edited: set it to {value} by hand first")
    for name, size in now.buffers:
        if size.kind != "length" and size.value is not None and size.value < length:
            raise RefusedError(
                f"{name} has {size.value} elements (line {size.line}), and {length} names would write past its end: "
                "enlarge it first"
            )
    text = data.decode("latin-1")
    for number, value, what in sorted(changes, key=lambda change: -change[0].start):
        text = text[: number.start] + str(value) + text[number.end :]
        edits.append(f"{what}: {number.value} becomes {value}")
    return text.encode("latin-1")


def _verify(reader: _Reader, data: bytes, target: tuple[str, ...]) -> None:
    """Read the result back. Raises RefusedError unless it is what was planned."""
    try:
        result = reader.read(data)
    except SsmtoolError as error:
        raise RefusedError(f"the edited loader could not be read back ({error.message})") from None
    count = result.count
    if result.names != target:
        raise RefusedError("the edited loader reads back differently")
    if count is not None and count.value is not None and count.value != len(target):
        raise RefusedError(f"the count {count.text} is {count.value} for {len(target)} names: write it anew by hand")
