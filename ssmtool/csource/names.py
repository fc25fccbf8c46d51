"""A loader's array of kernel names, and the call that receives it with a count: with the byte spans a patch needs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ssmtool.csource.counts import Count, Shape, read_count
from ssmtool.csource.elements import NameEntry, read_elements
from ssmtool.csource.grammar import Tree, parse
from ssmtool.csource.mask import refuse_trigraphs
from ssmtool.csource.preprocess import preprocess
from ssmtool.csource.scope import Scope
from ssmtool.csource.view import Resolver, View, host_environment
from ssmtool.errors import SsmtoolError
from ssmtool.settings_form import table

if TYPE_CHECKING:
    from tree_sitter import Node

_STRING = re.compile(r'"([^"\\\n]*(?:\\.[^"\\\n]*)*)("?)', re.DOTALL)
# C++ containers whose braces hold the names and whose `size()` counts them.
_CONTAINER = re.compile(r"\b(?:array|vector|initializer_list)\s*(?:<|$)")


class HiddenName(msgspec.Struct, frozen=True):
    """A string in a comment or in an `#if` group that is not compiled."""

    name: str
    line: int
    place: str


class NameArray(msgspec.Struct, frozen=True):
    """The array and its call.

    `open`:`close` is the span between the braces. `declared` is the size written in the brackets, `count` the argument
    of the call; either is None when there is none. `names` are those of `entries`. `terminated`: the list ends in NULL,
    which `entries` leaves out. `pointed`: rows of a table say where each function goes, so order means
    nothing. `count_argument`, `file` and `resolve` are what it was found with. `doubts` are reasons not to edit;
    `buffers` are the other arrays handed to the call whose size the file fixes.
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
    pointed: bool = False

    names: tuple[str, ...] = ()
    file: Path | None = None
    resolve: Resolver | None = None

    @property
    def length(self) -> int:
        """Elements the compiled array has, terminator included; a declared size wins over the list."""
        listed = len(self.entries) + self.terminated
        return self.declared.value if self.declared and self.declared.value is not None else listed


def find_name_array(
    data: bytes,
    path: Path | str,
    array: str,
    function: str | None = None,
    count_argument: int | None = None,
    *,
    file: Path | None = None,
    resolve: Resolver | None = None,
) -> NameArray:
    """The array `array` in a C or C++ loader, and the call of `function` that takes it.

    `function` None means the one call that takes the array, if there is one. `count_argument` is the 0-based position
    of the count; None means the argument after the array. Bytes that are not UTF-8 are allowed in comments. `resolve`
    finds headers, as seen from `file`, where the loader lies: their macros and constants may be in the count.

    Raises SsmtoolError when the array or the call is missing, when either exists twice, when an element is not a
    string, or for text that is UTF-16 or binary.
    """
    view = preprocess(data, path, host_environment(path), resolve, file=file, inline=False)
    refuse_trigraphs(view.masked, path)
    tree = parse(view.code, path)
    scope = Scope(view, tree)
    declarator, values, size, pointers = _find_array(tree, view, array, path)
    entries, terminated, doubts = read_elements(values, scope, array, path)
    listed = len(entries) + terminated
    shape = Shape(array, listed, pointers)
    declared = read_count(size, shape=shape, scope=scope) if size is not None else None
    if declared is not None and declared.value is not None:
        shape = Shape(array, declared.value, pointers)
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
                hint=f"set count_argument in {table()} to the 0-based position of the count",
            )
        count = read_count(arguments[chosen], shape=shape, scope=scope)
        others = [argument for index, argument in enumerate(arguments) if index not in (position, chosen)]
        buffers = _buffers(others, shape, scope)
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
        pointed=bool(entries) and all(_is_pointed(child, view.code) for child in values.named_children[: len(entries)]),
        names=tuple(entry.name for entry in entries),
        file=file,
        resolve=resolve,
    )


def _is_pointed(row: Node, code: str) -> bool:
    """Whether an element is a row with an address in it: `{"ln_forward", &f0}`."""
    return row.type == "initializer_list" and "&" in code[row.start_byte : row.end_byte]


def _find_array(tree: Tree, view: View, array: str, path: Path | str) -> tuple[Node, Node, Node | None, bool]:
    """The array's declarator, initialiser list and declared size, and whether its elements are pointers."""
    found: list[tuple[Node, Node, Node | None, bool]] = []
    mentioned = False
    for node in tree.find("init_declarator"):
        declarator = node.child_by_field_name("declarator")
        value = node.child_by_field_name("value")
        if declarator is None or value is None or _identifier(declarator, view.code) != array:
            continue
        mentioned = True
        if value.type != "initializer_list":
            continue
        dimensions, pointer = _declared_dimensions(declarator)
        if dimensions:
            found.append((declarator, value, dimensions[-1].child_by_field_name("size"), pointer))
        elif (container := _container(node, view.code)) is not None:
            inner = value.named_children
            if len(inner) == 1 and inner[0].type == "initializer_list":
                value = inner[0]
            found.append((declarator, value, container[1], True))
    if len(found) == 1:
        return found[0]
    if found:
        lines = ", ".join(str(view.masked.line(declarator.start_byte)) for declarator, *_ in found)
        raise SsmtoolError(
            f"has {len(found)} arrays named {array} (lines {lines}), so the names that are loaded cannot be told",
            path=path,
            line=view.masked.line(found[1][0].start_byte),
            hint=f"keep one, or name the right one in {table()}: loader.array",
        )
    if mentioned:
        raise SsmtoolError(f"{array} is not a list of names in braces", path=path)
    holder = next((shown for shown, code in view.headers if re.search(rf"\b{re.escape(array)}\s*\[", code)), None)
    raise SsmtoolError(
        f"has no array {array} with the kernel names"
        + (f"; {holder}, which it includes, may have it" if holder else ""),
        path=path,
        hint=f"name the loader's array of kernel names in {table()}: loader.array"
        + (f", and the file it is in: loader.path = {holder}" if holder else ""),
    )


def _declared_dimensions(declarator: Node) -> tuple[list[Node], bool]:
    """The array declarators, the first dimension's last, and whether what they hold is pointers."""
    dimensions: list[Node] = []
    pointer = False
    current: Node | None = declarator
    while current is not None:
        if current.type == "array_declarator":
            dimensions.append(current)
        pointer = pointer or current.type == "pointer_declarator"
        inner = current.child_by_field_name("declarator")
        current = (
            inner if inner is not None else next((c for c in current.named_children if "declarator" in c.type), None)
        )
    return dimensions, pointer and len(dimensions) == 1


def _container(node: Node, code: str) -> tuple[str, Node | None] | None:
    """The C++ container a variable is, and the size among its template arguments; None for another type."""
    kind = node.parent.child_by_field_name("type") if node.parent is not None else None
    if kind is None or not (match := _CONTAINER.search(code[kind.start_byte : kind.end_byte])):
        return None
    while kind is not None and kind.type == "qualified_identifier":
        kind = kind.child_by_field_name("name")
    listed = kind.child_by_field_name("arguments") if kind is not None else None
    arguments = listed.named_children if listed is not None else []
    return match[0], arguments[1] if len(arguments) == 2 else None


def _identifier(node: Node, code: str) -> str | None:
    """The name a declarator declares."""
    current: Node | None = node
    while current is not None and current.type not in ("identifier", "field_identifier"):
        inner = current.child_by_field_name("declarator")
        current = (
            inner if inner is not None else next((c for c in current.named_children if "declarator" in c.type), None)
        )
    return code[current.start_byte : current.end_byte] if current is not None else None


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
            hint=None if function else f"name the loading function in {table()}: loader.function",
        )
    if function is None:
        return None
    reason = f"calls {function}, but not with {array}" if called else f"has no call of {function}"
    raise SsmtoolError(
        f"{reason}, so the count of {array} cannot be told",
        path=path,
        hint=f"name the function that loads the kernels in {table()}: loader.function",
    )


def _is_array(argument: Node, array: str, code: str) -> bool:
    """`names`, `&names[0]`, `names.data()`, with casts and parentheses."""
    text = re.sub(r"\s+", "", code[argument.start_byte : min(argument.end_byte, argument.start_byte + 400)])
    while match := re.fullmatch(r"\((.*)\)|\([\w*&<>:]+\)(.*)|&(\w+)\[0\]|(\w+)\.data\(\)|std::data\((\w+)\)", text):
        text = next(group for group in (*match.groups(), "") if group is not None)
    return text == array


def _buffers(arguments: list[Node], shape: Shape, scope: Scope) -> list[tuple[str, Count]]:
    """Other arrays of the call, `CUfunction funcs[15]`, whose size stands in this file."""
    code = scope.view.code
    wanted = {
        match[1]
        for argument in arguments
        if (match := re.search(r"(\w+)\W*$", code[argument.start_byte : argument.end_byte]))
    }
    sizes: dict[str, list[Count]] = {}
    for node in scope.tree.find("array_declarator") if wanted else ():
        size = node.child_by_field_name("size")
        name = _identifier(node, code) if size is not None else None
        if name is not None and name in wanted and size is not None:
            sizes.setdefault(name, []).append(read_count(size, shape=shape, scope=scope))
    return [(name, counts[0]) for name, counts in sizes.items() if len(counts) == 1]


def _hidden(view: View) -> tuple[HiddenName, ...]:
    """Strings in comments and in groups that are surely not compiled."""
    found: dict[int, HiddenName] = {}
    masked = view.masked
    spans = [(start, end, "a comment") for start, end in masked.comments]
    for start, end, place in (*spans, *view.files[0].dropped):
        for match in _STRING.finditer(masked.text, start, end):
            if match[2] and match.start() not in found:
                name = HiddenName(match[1], masked.line(match.start()), re.sub(r"\s+", " ", place))
                found[match.start()] = name
    return tuple(sorted(found.values(), key=lambda hidden: hidden.line))
