"""Which string constants a loader loads, and which array of names goes with which of them.

No flow analysis: a module variable is followed from the call that fills it to the call that takes it with an array, in
the order of the text. Wherever that could be wrong (two constants in one call, a variable filled twice before it is
used, a name that a macro pastes together) nothing is said.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ssmtool.csource.grammar import Tree, parse
from ssmtool.csource.mask import mask
from ssmtool.csource.preprocess import preprocess
from ssmtool.csource.view import host_environment

if TYPE_CHECKING:
    from tree_sitter import Node

_STRING = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
#   #ifndef LOADER_H
#   #define LOADER_H     before all else: not a group but the whole file
_GUARD = re.compile(r"\s*#[ \t]*ifndef[ \t]+(\w+)[ \t]*\r?\n[ \t]*#[ \t]*define[ \t]+\1\b")
_OPENS = re.compile(r"(?m)^[ \t]*(?:#|%:)[ \t]*if")
_CLOSES = re.compile(r"(?m)^[ \t]*(?:#|%:)[ \t]*endif")
_WORD = re.compile(r"[A-Za-z_]\w*")
#   cuModuleLoadData(&module, FC_PTX_SSM_GATED_DELTA)     load_all(PTX_SCALE, names, 2)
_CALL = re.compile(r"\b(\w*[Ll]oad\w*)\s*\(([^;{}]{0,2000})")
#   const char *ptx = FC_PTX_SSM_GATED_DELTA;
_POINTER = re.compile(r"\bchar\s*(?:const\s*)?\*\s*(?:const\s+)?\w+\s*=\s*(\w+)\s*[,;]")
_ARGUMENT = re.compile(r"(?:^|[(,])\s*(\w+)\s*(?=[,)])")
_DRIVER = re.compile(r"(?:cu|hip)(?:Module|Library)Load\w*")
#   module   ctx->module   s.modules[0], after the casts
_PLACE = re.compile(r"(?:\([\w*]+\))*(&?)\(?([A-Za-z_]\w*(?:->\w+|\.\w+|\[\w+\])*)\)?")
_DECLARED = re.compile(r"([A-Za-z_]\w*)\s*(?=[,;=\[{]|$)")


class Pair(NamedTuple):
    """An array of names that is looked up in the module of a constant.

    `line` is that of the call (or row) that takes the array, `loaded` that of the constant's name in the text.
    """

    array: str
    constant: str
    line: int
    loaded: int


def code_words(data: bytes, path: Path | str) -> frozenset[str] | None:
    """Words of the compiled text and of its macros; none of comments, strings, `#if` lines and groups switched off.

    None where macros paste names together, so that a word may be made that the text does not show.
    """
    view = preprocess(data, path, host_environment(path), inline=False)
    bodies = [macro.body for macros in view.macros.values() for macro in macros]
    if any("##" in body for body in bodies):
        return None
    return frozenset(word for text in (view.code, *bodies) for word in _WORD.findall(_STRING.sub('""', text)))


def surely_used(data: bytes, path: Path | str, names: Collection[str]) -> frozenset[str]:
    """Those of `names` that stand in the code outside of all `#if` groups: `code_words` at a tenth of its price."""
    masked = mask(data, path)
    found = set()
    guard = _GUARD.match(masked.code)
    for name in names:
        if name not in masked.code:
            continue
        for match in re.finditer(rf"\b{name}\b", masked.code):
            start = masked.code.rfind("\n", 0, match.start()) + 1
            line = masked.code[start : match.start()]
            opened = len(_OPENS.findall(masked.code, 0, start)) - len(_CLOSES.findall(masked.code, 0, start))
            if opened == (guard is not None) and line.count('"') % 2 == 0 and not line.lstrip().startswith(("#", "%:")):
                found.add(name)
                break
    return frozenset(found)


def loaded_constants(data: bytes, path: Path | str) -> dict[str, int]:
    """Names that the file hands to a loading call and does not define, with their lines: constants of another file.

    A name counts when it has PTX in it, or when it is in capitals and handed to the driver itself.
    """
    masked = mask(data, path)
    code = _STRING.sub(lambda match: " " * len(match[0]), masked.code)
    found: dict[str, int] = {}
    for call in _CALL.finditer(code):
        for argument in _ARGUMENT.finditer(call[2]):
            name = argument[1]
            if "ptx" in name.lower() or (_DRIVER.fullmatch(call[1]) and name.isupper() and name != "NULL"):
                found.setdefault(name, masked.line(call.start(2) + argument.start(1)))
    for pointer in _POINTER.finditer(code):
        if "ptx" in pointer[1].lower():
            found.setdefault(pointer[1], masked.line(pointer.start(1)))
    defined = r"\bdefine[ \t]+{0}\b|\*\s*(?:const\s+)?{0}\b|\b{0}\s*[\[=]"
    return {name: line for name, line in found.items() if not re.search(defined.format(name), code)}


def find_pairs(data: bytes, path: Path | str, constants: Collection[str], arrays: Collection[str]) -> list[Pair]:
    """The arrays of `arrays` whose constant, one of `constants`, can be told from the text. Raises as `preprocess`."""
    view = preprocess(data, path, host_environment(path), inline=False)
    return _Follower(view.code, parse(view.code, path), frozenset(constants), frozenset(arrays)).pairs()


class _Filled:
    """A variable that a call or an assignment filled; `constant` None: with what cannot be told."""

    def __init__(self, place: str, function: int, at: int, constant: str | None, loaded: int) -> None:
        self.place, self.function, self.at, self.constant, self.loaded = place, function, at, constant, loaded
        self.used = False


class _Follower:
    def __init__(self, code: str, tree: Tree, constants: frozenset[str], arrays: frozenset[str]) -> None:
        self.code, self.tree, self.constants, self.arrays = code, tree, constants, arrays
        self._functions = tree.find("function_definition")
        self._starts = [node.start_byte for node in self._functions]
        self._lines = [match.start() for match in re.finditer("\n", code)]
        self._filled: list[_Filled] = []
        # Function (-1 is the file) -> the names that it declares, its parameters among them.
        self._declared: dict[int, set[str]] = {}
        for node in tree.find("declaration", "parameter_declaration"):
            names = _DECLARED.findall(self._text(node))
            self._declared.setdefault(self._function(node.start_byte), set()).update(names)

    def pairs(self) -> list[Pair]:
        """What the calls, rows and assignments say, in the order of the text."""
        walkers = self._walkers()
        found: list[Pair] = []
        for node in self.tree.find("call_expression", "init_declarator", "assignment_expression", "initializer_list"):
            if node.type == "call_expression":
                found += self._call(node, walkers)
            elif node.type == "initializer_list":
                found += self._row(node)
            else:
                self._assigned(node)
        return found

    def _text(self, node: Node) -> str:
        return self.code[node.start_byte : node.end_byte]

    def _line(self, at: int) -> int:
        return bisect.bisect_left(self._lines, at) + 1

    def _function(self, at: int) -> int:
        """The index of the function around an offset, -1 outside of all."""
        index = bisect.bisect_right(self._starts, at) - 1
        return index if index >= 0 and at < self._functions[index].end_byte else -1

    def _arguments(self, node: Node) -> list[Node]:
        listed = node.child_by_field_name("arguments")
        return [] if listed is None else [child for child in listed.named_children if child.type != "comment"]

    def _array(self, node: Node) -> str | None:
        """The array that an argument is, or is an element of."""
        text = re.sub(r"\s+", "", self._text(node)) if node.end_byte - node.start_byte < 400 else ""
        match = re.fullmatch(r"(?:\([\w*]+\))*&?(\w+)(?:\[.*\]|\.data\(\))?", text)
        return match[1] if match and match[1] in self.arrays else None

    def _place(self, node: Node) -> tuple[bool, str] | None:
        """Whether an argument is an address, and the variable it is or points to."""
        text = re.sub(r"\s+", "", self._text(node)) if node.end_byte - node.start_byte < 400 else ""
        match = _PLACE.fullmatch(text)
        return (bool(match[1]), match[2]) if match else None

    def _named(self, node: Node) -> dict[str, int]:
        """The constants whose names stand in a node, with their lines."""
        text = _STRING.sub(lambda match: " " * len(match[0]), self._text(node))
        return {
            match[0]: self._line(node.start_byte + match.start())
            for match in _WORD.finditer(text)
            if match[0] in self.constants
        }

    def _walkers(self) -> dict[str, dict[int, set[str]]]:
        """Functions that walk an array in the module of a parameter: name -> the parameter's position -> the arrays."""
        found: dict[str, dict[int, set[str]]] = {}
        parameters = [self._parameters(node) for node in self._functions]
        for node in self.tree.find("call_expression"):
            index = self._function(node.start_byte)
            arguments = self._arguments(node)
            arrays = {array for array in map(self._array, arguments) if array}
            if index < 0 or not arrays:
                continue
            name, names = parameters[index]
            for place in filter(None, map(self._place, arguments)):
                if place[1] in names:
                    found.setdefault(name, {}).setdefault(names.index(place[1]), set()).update(arrays)
        return found

    def _parameters(self, function: Node) -> tuple[str, list[str]]:
        """A function's name and the names of its parameters."""
        head = self._text(function).partition("{")[0]
        name = re.search(r"(\w+)\s*\(", head)
        inside = head[name.end() :] if name else ""
        return (name[1] if name else ""), [
            (_WORD.findall(part.partition("[")[0]) or [""])[-1] for part in inside.rpartition(")")[0].split(",")
        ]

    def _known(self, place: str, at: int) -> _Filled | None:
        """What filled a variable before an offset; None when that cannot be told."""
        function = self._function(at)
        mine = [each for each in self._filled if each.place == place and each.function == function]
        if mine:
            last = mine[-1]
            doubtful = any(each.constant != last.constant and not each.used for each in mine[:-1])
            return None if doubtful or last.constant is None else last
        hidden = self._declared.get(function, set())
        if place in hidden or place not in self._declared.get(-1, ()):
            return None
        others = [
            each
            for each in self._filled
            if each.place == place and (each.function < 0 or place not in self._declared.get(each.function, ()))
        ]
        return others[-1] if others and len({each.constant for each in others}) == 1 and others[-1].constant else None

    def _sources(self, arguments: list[Node]) -> tuple[dict[str, int], list[_Filled]]:
        """The constants behind the arguments, with their lines, and the variables that brought them."""
        constants: dict[str, int] = {}
        through = []
        for argument in arguments:
            constants.update(self._named(argument))
            place = self._place(argument)
            filled = self._known(place[1], argument.start_byte) if place and not place[0] else None
            if filled is not None and filled.constant is not None:
                constants.setdefault(filled.constant, filled.loaded)
                through.append(filled)
        return constants, through

    def _call(self, node: Node, walkers: dict[str, dict[int, set[str]]]) -> Iterator[Pair]:
        arguments = self._arguments(node)
        callee = node.child_by_field_name("function")
        name = self._text(callee) if callee is not None else ""
        arrays = {array for array in map(self._array, arguments) if array}
        constants, through = self._sources(arguments)
        line = self._line(node.start_byte)
        if arrays:
            if len(arrays) == 1 and len(constants) == 1:
                yield from self._pair(arrays, constants, through, line)
            return
        for position, walked in walkers.get(name, {}).items():
            handed, brought = self._sources(arguments[position : position + 1])
            if len(walked) == 1 and len(handed) == 1:
                yield from self._pair(walked, handed, brought, line)
        if not constants and "oad" not in name:
            return
        only = next(iter(constants)) if len(constants) == 1 else None
        for argument in arguments:
            place = self._place(argument)
            if place and place[0]:
                self._fill(place[1], node.start_byte, only, constants)

    def _pair(
        self, arrays: Collection[str], constants: dict[str, int], through: list[_Filled], line: int
    ) -> Iterator[Pair]:
        for filled in through:
            filled.used = True
        ((constant, loaded),) = constants.items()
        for array in arrays:
            yield Pair(array, constant, line, loaded)

    def _row(self, node: Node) -> Iterator[Pair]:
        """`{DEQUANT_PTX, dq_names, 1}` in a table."""
        arrays, constants = set(), dict[str, int]()
        for child in node.named_children:
            if child.type not in ("initializer_list", "string_literal"):
                arrays |= {array for array in [self._array(child)] if array}
                constants |= self._named(child)
        if len(arrays) == 1 and len(constants) == 1:
            yield from self._pair(arrays, constants, [], self._line(node.start_byte))

    def _assigned(self, node: Node) -> None:
        """`const char *ptx = DEQUANT_PTX;` and `module = load(DEQUANT_PTX);`."""
        left = node.child_by_field_name("declarator" if node.type == "init_declarator" else "left")
        right = node.child_by_field_name("value" if node.type == "init_declarator" else "right")
        if left is None or right is None or right.type == "initializer_list":
            return
        text = re.sub(r"\s+|\bconst\b|^[*&\s]+", "", self._text(left))
        match = _PLACE.fullmatch(text.lstrip("*"))
        constants = self._named(right)
        place = self._place(right)
        filled = self._known(place[1], right.start_byte) if place and not place[0] else None
        if filled is not None and filled.constant is not None:
            constants.setdefault(filled.constant, filled.loaded)
        if match and (constants or any(each.place == match[2] for each in self._filled)):
            self._fill(match[2], node.start_byte, next(iter(constants)) if len(constants) == 1 else None, constants)

    def _fill(self, place: str, at: int, constant: str | None, lines: dict[str, int]) -> None:
        loaded = lines[constant] if constant is not None else self._line(at)
        self._filled.append(_Filled(place, self._function(at), at, constant, loaded))
