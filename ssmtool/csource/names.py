"""A loader's array of kernel names, and the call that receives it with a count: with the byte spans a patch needs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ssmtool.csource.counts import Count, read_count
from ssmtool.csource.grammar import Tree, parse
from ssmtool.csource.preprocess import View, host_environment, preprocess
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from tree_sitter import Node

_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_NULL = re.compile(r"NULL|nullptr|0|\(\s*(?:const\s+)?(?:char|void)\s*(?:const\s*)?\*\s*\)\s*0")


class NameEntry(msgspec.Struct, frozen=True):
    """One element: its name and the span of its expression in bytes.

    `pieces` are the string literals it is made of; more than one means neighbours joined, wanted or by a lost comma.
    `macro` is the name it was written as. `condition` is the `#if` that may or may not keep it.
    """

    name: str
    start: int
    end: int
    line: int
    column: int
    pieces: tuple[str, ...]
    macro: str | None = None
    condition: str | None = None


class HiddenName(msgspec.Struct, frozen=True):
    """A string in a comment or in an `#if` group that is not compiled."""

    name: str
    line: int
    place: str


class NameArray(msgspec.Struct, frozen=True):
    """The array and its call.

    `open`:`close` is the span between the braces. `declared` is the size written in the brackets, `count` the argument
    of the call; either is None when there is none. `terminated`: the list ends in NULL, which `entries` leaves out.
    `count_argument` is the setting it was found with. `doubts` are reasons not to edit; `buffers` are the other arrays
    handed to the call whose size the file fixes.
    """

    path: str
    array: str
    function: str | None
    line: int
    open: int
    close: int
    entries: tuple[NameEntry, ...]
    terminated: bool
    declared: Count | None
    count: Count | None
    call_line: int | None
    hidden: tuple[HiddenName, ...]
    doubts: tuple[str, ...]
    buffers: tuple[tuple[str, Count], ...]
    count_argument: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names in order."""
        return tuple(entry.name for entry in self.entries)

    @property
    def length(self) -> int:
        """Elements the compiled array has, terminator included; a declared size wins over the list."""
        listed = len(self.entries) + self.terminated
        return self.declared.value if self.declared and self.declared.value is not None else listed


def find_name_array(
    data: bytes, path: Path | str, array: str, function: str | None = None, count_argument: int | None = None
) -> NameArray:
    """The array `array` in a C or C++ loader, and the call of `function` that takes it.

    `function` None means the one call that takes the array, if there is one. `count_argument` is the 0-based position
    of the count; None means the argument after the array. Bytes that are not UTF-8 are allowed in comments.

    Raises SsmtoolError when the array or the call is missing, when either exists twice, or when an element is not a
    string; ProductError for text that is UTF-16 or binary.
    """
    view = preprocess(data, path, host_environment(path))
    tree = parse(view.code, path)
    declarator, values = _find_array(tree, view, array, path)
    entries, terminated, doubts = _read_elements(values, view, array, path)
    length = len(entries) + terminated
    declared = _declared_size(declarator, array, length, view, tree)
    true_length = declared.value if declared and declared.value is not None else length
    call = _find_call(tree, view, array, function, path)
    count, buffers = None, []
    if call is not None:
        arguments, position = call
        chosen = position + 1 if count_argument is None else count_argument
        if chosen >= len(arguments):
            raise SsmtoolError(
                f"the call that takes {array} has {len(arguments)} arguments, none at the count's position {chosen}",
                path=path,
                line=view.masked.line(arguments[position].start_byte),
                hint="set count_argument in [tool.ssmtool] to the 0-based position of the count",
            )
        count = read_count(arguments[chosen], array=array, length=true_length, view=view, tree=tree)
        others = [argument for index, argument in enumerate(arguments) if index not in (position, chosen)]
        buffers = _buffers(others, array, true_length, view, tree)
    if any(values.start_byte <= offset < values.end_byte for offset in view.directives):
        doubts.append(f"{array} has preprocessor lines inside its braces")
    return NameArray(
        path=str(path),
        array=array,
        function=function,
        line=view.masked.line(declarator.start_byte),
        open=values.start_byte + 1,
        close=values.end_byte - 1,
        entries=tuple(entries),
        terminated=terminated,
        declared=declared,
        count=count,
        call_line=count.line if count else None,
        hidden=_hidden(view),
        doubts=tuple(doubts),
        buffers=tuple(buffers),
        count_argument=count_argument,
    )


def _find_array(tree: Tree, view: View, array: str, path: Path | str) -> tuple[Node, Node]:
    """The declarator and the initialiser list of the array."""
    found: list[tuple[Node, Node]] = []
    mentioned = False
    for node in tree.find("init_declarator"):
        declarator = node.child_by_field_name("declarator")
        value = node.child_by_field_name("value")
        if declarator is None or value is None or _identifier(declarator, view.code) != array:
            continue
        mentioned = True
        if value.type == "initializer_list":
            found.append((declarator, value))
    if len(found) == 1:
        return found[0]
    if found:
        lines = ", ".join(str(view.masked.line(declarator.start_byte)) for declarator, _ in found)
        raise SsmtoolError(
            f"has {len(found)} arrays named {array} (lines {lines}), so the names that are loaded cannot be told",
            path=path,
            line=view.masked.line(found[1][0].start_byte),
            hint="keep one, or name the right one in [tool.ssmtool]: loader.array",
        )
    if mentioned:
        raise SsmtoolError(f"{array} is not a list of names in braces", path=path)
    raise SsmtoolError(
        f"has no array {array} with the kernel names",
        path=path,
        hint="name the loader's array of kernel names in [tool.ssmtool]: loader.array",
    )


def _identifier(node: Node, code: str) -> str | None:
    """The name a declarator declares."""
    current: Node | None = node
    while current is not None and current.type not in ("identifier", "field_identifier"):
        inner = current.child_by_field_name("declarator")
        current = (
            inner if inner is not None else next((c for c in current.named_children if "declarator" in c.type), None)
        )
    return code[current.start_byte : current.end_byte] if current is not None else None


def _read_elements(values: Node, view: View, array: str, path: Path | str) -> tuple[list[NameEntry], bool, list[str]]:
    """The names, whether a NULL ends them, and what speaks against editing."""
    doubts: list[str] = []
    entries: list[NameEntry] = []
    elements = [child for child in values.named_children if child.type != "comment"]
    terminated = False
    for index, element in enumerate(elements):
        text = view.code[element.start_byte : element.end_byte]
        if element.type == "ERROR" or element.has_error:
            raise SsmtoolError(
                f"{array} cannot be read here: {text.strip()[:60]}",
                path=path,
                line=view.masked.line(element.start_byte),
            )
        if index == len(elements) - 1 and entries and _NULL.fullmatch(text):
            terminated = True
            break
        entry = _read_element(element, text, view, array, path)
        if entry.macro:
            doubts.append(f"the name on line {entry.line} is written as {entry.macro}")
        elif len(entry.pieces) > 1:
            doubts.append(f"the name on line {entry.line} is joined from {len(entry.pieces)} strings")
        entries.append(entry)
    return entries, terminated, doubts


def _read_element(element: Node, text: str, view: View, array: str, path: Path | str) -> NameEntry:
    line = view.masked.line(element.start_byte)
    expanded, macro = re.sub(r"\\\r?\n", "", text), None
    names = set(re.findall(r"[A-Za-z_]\w*", _STRING.sub(" ", text)))
    for name in names:
        found = view.macro(name)
        if found is None or found.parameters is not None:
            break
        expanded = re.sub(rf"\b{name}\b", lambda _, body=found.body: body, expanded)  # type: ignore[misc]
        macro = re.sub(r"\s+", " ", text)
    pieces = _STRING.findall(expanded)
    if not pieces or _STRING.sub("", expanded).strip(" \t\r\n()") or any("\\" in piece for piece in pieces):
        what = re.sub(r"\s+", " ", text)[:60]
        raise SsmtoolError(
            f"{array} holds {what}, which is not a plain string, so the names that are loaded cannot be told",
            path=path,
            line=line,
            hint='write each kernel name as a string: "NAME",',
        )
    group = view.group_at(element.start_byte, None)
    decoded = [piece.encode("latin-1").decode("utf-8", "replace") for piece in pieces]
    return NameEntry(
        name="".join(decoded),
        start=element.start_byte,
        end=element.end_byte,
        line=line,
        column=view.masked.column(element.start_byte),
        pieces=tuple(decoded),
        macro=macro,
        condition=re.sub(r"\s+", " ", group.condition) if group else None,
    )


def _declared_size(declarator: Node, array: str, length: int, view: View, tree: Tree) -> Count | None:
    """The size in the first pair of brackets after the name."""
    dimensions: list[Node] = []
    current: Node | None = declarator
    while current is not None:
        if current.type == "array_declarator":
            dimensions.append(current)
        inner = current.child_by_field_name("declarator")
        current = (
            inner if inner is not None else next((c for c in current.named_children if "declarator" in c.type), None)
        )
    # Declarators nest inside out: the innermost one carries the first dimension.
    size = dimensions[-1].child_by_field_name("size") if dimensions else None
    return read_count(size, array=array, length=length, view=view, tree=tree) if size is not None else None


def _find_call(
    tree: Tree, view: View, array: str, function: str | None, path: Path | str
) -> tuple[list[Node], int] | None:
    """The arguments of the loading call and the array's position among them."""
    found: list[tuple[Node, list[Node], int]] = []
    called = False
    for node in tree.find("call_expression"):
        callee = node.child_by_field_name("function")
        listed = node.child_by_field_name("arguments")
        if callee is None or listed is None:
            continue
        name = re.split(r"::|->|\.", view.code[callee.start_byte : callee.end_byte])[-1].strip()
        if function is not None and name != function:
            continue
        called = True
        arguments = [child for child in listed.named_children if child.type != "comment"]
        for position, argument in enumerate(arguments):
            if _is_array(argument, array, view.code):
                found.append((node, arguments, position))
                break
    if len(found) == 1:
        return found[0][1], found[0][2]
    if len(found) > 1:
        lines = ", ".join(str(view.masked.line(node.start_byte)) for node, _, _ in found)
        what = f"calls {function} with {array}" if function else f"hands {array} to a call"
        raise SsmtoolError(
            f"{what} {len(found)} times (lines {lines}), so the count that holds cannot be told",
            path=path,
            line=view.masked.line(found[1][0].start_byte),
            hint=None if function else "name the loading function in [tool.ssmtool]: loader.function",
        )
    if function is None:
        return None
    reason = f"calls {function}, but not with {array}" if called else f"has no call of {function}"
    raise SsmtoolError(
        f"{reason}, so the count of {array} cannot be told",
        path=path,
        hint="name the function that loads the kernels in [tool.ssmtool]: loader.function",
    )


def _is_array(argument: Node, array: str, code: str) -> bool:
    """`names`, `&names[0]`, with casts and parentheses."""
    text = re.sub(r"\s+", "", code[argument.start_byte : argument.end_byte])
    while match := re.fullmatch(r"\((.*)\)|\([\w*&<>:]+\)(.*)|&(\w+)\[0\]", text):
        text = match[1] or match[2] or match[3] or ""
    return text == array


def _buffers(arguments: list[Node], array: str, length: int, view: View, tree: Tree) -> list[tuple[str, Count]]:
    """Other arrays of the call, `CUfunction funcs[15]`, whose size stands in this file."""
    wanted = {
        match[1]
        for argument in arguments
        if (match := re.search(r"(\w+)\W*$", view.code[argument.start_byte : argument.end_byte]))
    }
    sizes: dict[str, list[Count]] = {}
    for node in tree.find("array_declarator"):
        name = _identifier(node, view.code)
        size = node.child_by_field_name("size")
        if name is not None and name in wanted and size is not None:
            sizes.setdefault(name, []).append(read_count(size, array=array, length=length, view=view, tree=tree))
    return [(name, counts[0]) for name, counts in sizes.items() if len(counts) == 1]


def _hidden(view: View) -> tuple[HiddenName, ...]:
    """Strings in comments and in groups that are surely not compiled."""
    places = [(start, end, "a comment") for start, end in view.masked.comments]
    places += [(group.start, group.end, group.condition) for group in view.groups if group.active is False]
    found = [
        HiddenName(match[1], view.masked.line(match.start()), re.sub(r"\s+", " ", place))
        for start, end, place in places
        for match in _STRING.finditer(view.masked.text, start, end)
    ]
    return tuple(sorted(found, key=lambda hidden: hidden.line))
