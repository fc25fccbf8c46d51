"""`--fix`: the loader's names and count brought in line with the module, byte for byte, or left alone with the reason.

Names are added, removed and respelt; they are never moved, since launches go by their index. Every edit is read back
and checked before the result is handed out, so a wrong guess about a layout ends in a refusal, not in a broken file.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Literal

import msgspec

from ssmtool.csource import Count, NameArray, find_name_array
from ssmtool.csource.preprocess import preprocess
from ssmtool.csource.view import host_environment
from ssmtool.errors import SsmtoolError
from ssmtool.registry.model import RegistryInput, RegistryReport
from ssmtool.registry.order import in_order, mangled_by_accident, misplaced, reference_order
from ssmtool.registry.patch import ArrayText, Edit, RefusedError, insert, remove, rename


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
    before = frozenset(old)
    places = {name: index for index, name in enumerate(new)}
    for index, name in enumerate(old):
        if name in places and places[name] != index:
            moved.append(f"{name}: {index} -> {places[name]}")
        elif name not in places and (index >= len(new) or new[index] in before):
            moved.append(f"{name}: removed")
    return tuple(moved)


class _Reader(msgspec.Struct, frozen=True):
    """Reads the same array again from changed bytes."""

    old: NameArray
    given: RegistryInput

    def read(self, data: bytes) -> NameArray:
        old = self.old
        return find_name_array(
            data, old.path, old.array, old.function, old.count_argument, file=old.file, resolve=old.resolve
        )

    def text(self, data: bytes) -> ArrayText:
        old = self.old
        environment = host_environment(Path(old.path))
        view = preprocess(data, old.path, environment, old.resolve, file=old.file, inline=False)
        return ArrayText.of(self.read(data), view)


def _refuse_doubts(loader: NameArray) -> None:
    conditional = next((entry for entry in loader.entries if entry.condition), None)
    if conditional:
        raise RefusedError(f"the name on line {conditional.line} is under {conditional.condition}")
    if loader.doubts:
        raise RefusedError(loader.doubts[0])


def _target(given: RegistryInput, loader: NameArray) -> tuple[str, ...]:
    """The names the array should hold. Raises RefusedError where that takes a move, or knowledge there is none of."""
    module = frozenset(given.header_entries)
    waiting = {kernel.name for kernel in given.source.kernels}
    keep = {name for name in loader.names if name in module or name in waiting}
    gone = [name for name in loader.names if name not in keep]
    if gone and not given.source.complete and given.ptx_entries is None:
        raise RefusedError(
            f"{gone[0]} may come from a part of {given.source.path} that its text does not show: "
            "run ssmtool build first"
        )
    foreign = next((name for name in gone if name in given.elsewhere), None)
    if foreign is not None:
        raise RefusedError(f"{foreign} is a kernel of {given.elsewhere[foreign]}: split {loader.array} by hand")
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
    wanted = keep | (module - mangled_by_accident(given))
    return tuple(sorted(wanted, key=reference.__getitem__))


class _Operation(msgspec.Struct, frozen=True):
    """One change of the list, `kind` at entry `index`: `names` put before it, or `names[0]` in its place, or gone.

    `place` is the index that the first of `names` will have.
    """

    kind: Literal["insert", "rename", "remove"]
    index: int
    names: tuple[str, ...]
    place: int

    @property
    def touched(self) -> tuple[int, int]:
        """The first and the last entry whose name or comma the change may move."""
        after = {"insert": 0, "rename": 0, "remove": 1}[self.kind]
        return self.index - (self.kind != "rename"), self.index + after


def _edit_names(reader: _Reader, data: bytes, target: tuple[str, ...], edits: list[str]) -> bytes:
    """Changes that do not touch are made together; the array is read anew for those that do."""
    limit = 2 * (len(target) + len(reader.old.entries)) + 2
    for _ in range(limit):
        where = reader.text(data)
        entries = where.array.entries
        if where.array.names == target:
            return data
        reached = -2
        changes: list[Edit] = []
        for operation in _operations(where.array.names, target):
            first, last = operation.touched
            if first <= reached:
                continue
            reached = last
            if operation.kind == "insert":
                changes += insert(where, operation.index, operation.names)
                edits += [f"{name} added at index {operation.place + at}" for at, name in enumerate(operation.names)]
                continue
            entry = entries[operation.index]
            if operation.kind == "rename":
                changes += rename(where, operation.index, operation.names[0])
                edits.append(f"line {entry.line}: {entry.name} becomes {operation.names[0]}")
            else:
                changes += remove(where, operation.index)
                edits.append(f"line {entry.line}: {entry.name} removed")
        data = where.splice(changes).encode("latin-1")
    raise RefusedError("the edits do not come to an end; nothing was changed")


def _operations(names: tuple[str, ...], target: tuple[str, ...]) -> list[_Operation]:
    """What makes `target` of `names` and moves none of them, from left to right."""
    kept = frozenset(in_order(names, {name: place for place, name in enumerate(target)}))
    known = frozenset(names)
    operations: list[_Operation] = []
    index = place = 0
    while index < len(names) or place < len(target):
        wanted = target[place] if place < len(target) else None
        if index in kept and names[index] == wanted:
            index, place = index + 1, place + 1
        elif index < len(names) and index not in kept:
            # Where no name stays, each is respelt in its place: to remove the last one would leave no C.
            if wanted is not None and wanted not in known and (not kept or _alike(names[index], wanted)):
                operations.append(_Operation("rename", index, (wanted,), place))
                place += 1
            else:
                operations.append(_Operation("remove", index, (), place))
            index += 1
        else:
            start = place
            while place < len(target) and not (index in kept and names[index] == target[place]):
                place += 1
            operations.append(_Operation("insert", index, target[start:place], start))
    return operations


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
