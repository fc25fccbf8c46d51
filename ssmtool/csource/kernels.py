"""The kernels a `.cu` file defines: name, line, parameters, and whether their symbol is the plain name."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ssmtool.csource.expand import expand_kernel_macros
from ssmtool.csource.grammar import Chain, parse
from ssmtool.csource.mask import Lines, blank
from ssmtool.csource.preprocess import preprocess
from ssmtool.csource.view import Resolver, View, device_environment

if TYPE_CHECKING:
    from tree_sitter import Node

_GLOBAL = re.compile(r"\b__global__\b")
_GLOBAL_OR_STRING = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|\b__global__\b', re.DOTALL)
# A kernel's head in text no parser looks at: blanks, types and attributes up to the first parenthesis.
_HEAD = re.compile(r"[\w\s*&<>:]*\b([A-Za-z_]\w*)\s*\(")
_ATTRIBUTE = re.compile(r"\b(?:__launch_bounds__|__attribute__)\s*\(+[^()]*\)+")
_MAX_HEAD = 400
_BLANKS = re.compile(r"[ \t]{200,}")
_BRACE = re.compile(
    r"""(?s)"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|\b\.?[0-9][0-9A-Za-z_.']*|'[^'\\\n]*(?:\\.[^'\\\n]*)*'?|[{}]"""
)


class Parameter(msgspec.Struct, frozen=True):
    """One parameter as written: `const float *__restrict__` and `q`; no name gives an empty one."""

    type: str
    name: str


class SourceKernel(msgspec.Struct, frozen=True):
    """One `__global__` function with a body.

    `extern_c`: its symbol is its plain name. `condition` is the `#if` that may or may not keep it, None when it is
    surely compiled. `template`: it has a symbol only where it is instantiated. `from_macro`: its head was expanded.
    `path` is the file that `line` is in: the source, or one that it includes.
    """

    name: str
    path: str
    line: int
    extern_c: bool
    parameters: tuple[Parameter, ...]
    condition: str | None = None
    template: bool = False
    from_macro: bool = False

    @property
    def conditional(self) -> bool:
        """Whether it lies in an `#if` that the text cannot decide."""
        return self.condition is not None


class HiddenKernel(msgspec.Struct, frozen=True):
    """A kernel's head that is not compiled: `place` is `a comment` or the `#if` line that drops it."""

    name: str
    path: str
    line: int
    place: str


class KernelSource(msgspec.Struct, frozen=True):
    """What one `.cu` file, with the project's files that it includes, says about kernels.

    `unread` are lines with a `__global__` that no kernel or declaration accounts for; with those, or with `includes`,
    the included files that were not read, there may be kernels that no text shows.
    """

    path: str
    kernels: tuple[SourceKernel, ...]
    hidden: tuple[HiddenKernel, ...]
    declared: tuple[str, ...]
    unread: tuple[int, ...]
    includes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether `kernels` is surely all of them."""
        return not self.unread and not self.includes


def find_kernels(text: str, path: Path | str, target: str = "sm_37") -> list[SourceKernel]:
    """The kernels of `.cu` text in its order. Raises SsmtoolError when no CUDA grammar is installed."""
    return list(read_kernels(text, path, target).kernels)


def read_kernels(
    text: str,
    path: Path | str,
    target: str = "sm_37",
    defines: Mapping[str, str | None] | None = None,
    *,
    file: Path | None = None,
    resolve: Resolver | None = None,
) -> KernelSource:
    """`find_kernels` and what else the text says about kernels.

    `defines` are the `-D` macros of the compilation; None says they are not known, so that `#ifdef NAME` stays open.
    `resolve` finds included files, as seen from `file`, where the text lies (`path` is what reports call it).
    """
    environment = device_environment(target, defines)
    view = preprocess(text.encode("utf-8"), path, environment, resolve, file=file)
    code, touched = expand_kernel_macros(view)
    code = _BLANKS.sub(" ", code)  # What comments leave behind; from here on only lines count, not columns.
    lines = Lines(code)
    heads = [match.start() for match in _GLOBAL_OR_STRING.finditer(code) if not match[0].startswith('"')]
    kernels: list[SourceKernel] = []
    declared: list[str] = []
    accounted: list[tuple[int, int]] = []
    types = ("function_definition", "declaration", "field_declaration")
    for node, above in parse(_without_bodies(code, heads), path).around(heads, types) if heads else ():
        span = _head(node)
        if span is None or not _holds(heads, span):
            continue
        declarator = _function_declarator(node)
        name = declarator.child_by_field_name("declarator") if declarator else None
        if declarator is None or name is None:
            continue
        accounted.append(span)
        if node.type == "function_definition":
            line = lines.line(name.start_byte)
            condition = _condition(view, line)
            where = view.origin(line)
            kernels.append(_kernel(node, above, declarator, name, code, where, condition, from_macro=line in touched))
        else:
            declared.append(_text(name, code))
    return KernelSource(
        path=str(path),
        kernels=tuple(kernels),
        hidden=_hidden(view),
        declared=tuple(declared),
        unread=tuple(view.origin(lines.line(head))[1] for head in _outside(heads, accounted)),
        includes=view.includes,
    )


def _without_bodies(code: str, heads: Sequence[int]) -> str:
    """The code with the insides of bodies blank, but for those that hold a head.

    What a body says is of no use here, most of a file is bodies, and the grammar takes `f() { { } }` for a variable
    with an initialiser.
    """
    pieces: list[str] = []
    opened: list[int] = []
    copied = 0
    spans: list[tuple[int, int]] = []
    for match in _BRACE.finditer(code):
        if match[0] == "{":
            opened.append(match.start())
        elif match[0] == "}" and opened:
            start = opened.pop()
            body = code[max(0, start - _MAX_HEAD) : start].rstrip().endswith(")")
            if body and not _holds(heads, (start, match.start())):
                while spans and spans[-1][0] > start:
                    spans.pop()
                spans.append((start + 1, match.start()))
    for start, end in spans:
        pieces += [code[copied:start], blank(code[start:end])]
        copied = end
    return "".join([*pieces, code[copied:]])


def _holds(offsets: Sequence[int], span: tuple[int, int]) -> bool:
    at = bisect.bisect_left(offsets, span[0])
    return at < len(offsets) and offsets[at] < span[1]


def _outside(offsets: Sequence[int], spans: Sequence[tuple[int, int]]) -> list[int]:
    """The sorted offsets that lie in none of the spans."""
    outside: list[int] = []
    reach, at = 0, 0
    ordered = sorted(spans)
    for offset in offsets:
        while at < len(ordered) and ordered[at][0] <= offset:
            reach = max(reach, ordered[at][1])
            at += 1
        if offset >= reach:
            outside.append(offset)
    return outside


def _head(node: Node) -> tuple[int, int] | None:
    """The span of a function up to its body; for a declaration, all of it."""
    body = node.child_by_field_name("body")
    if node.type == "function_definition" and body is None:
        return None
    return node.start_byte, body.start_byte if body is not None else node.end_byte


def _function_declarator(node: Node) -> Node | None:
    """The function's declarator, through pointers, references and parentheses."""
    current = node.child_by_field_name("declarator")
    while current is not None and current.type != "function_declarator":
        inner = current.child_by_field_name("declarator")
        current = inner if inner is not None else (current.named_children[-1] if current.named_children else None)
    return current


def _text(node: Node, code: str) -> str:
    raw = code[node.start_byte : node.end_byte]
    return re.sub(r"\s+", " ", raw.encode("latin-1").decode("utf-8", "replace")).strip()


def _kernel(
    node: Node,
    above: Chain | None,
    declarator: Node,
    name: Node,
    code: str,
    where: tuple[str, int],
    condition: str | None,
    *,
    from_macro: bool,
) -> SourceKernel:
    linkage = member = template = False
    while above is not None:
        parent, above = above
        if parent.type == "linkage_specification":
            linkage = linkage or '"C"' in code[parent.start_byte : parent.start_byte + 24]
        member = member or parent.type in ("class_specifier", "struct_specifier", "union_specifier")
        template = template or parent.type == "template_declaration"
    static = bool(re.search(r"\bstatic\b", code[node.start_byte : declarator.start_byte]))
    return SourceKernel(
        name=_text(name, code),
        path=where[0],
        line=where[1],
        extern_c=linkage and not static and not member and not template,
        parameters=_parameters(declarator, code),
        condition=condition,
        template=template,
        from_macro=from_macro,
    )


def _condition(view: View, line: int) -> str | None:
    """The undecided `#if` around a line; lines, because expansion may have moved the offsets."""
    at = bisect.bisect_right(view.undecided, line, key=lambda group: view.lines.line(group.start)) - 1
    if at < 0 or line > view.lines.line(view.undecided[at].end):
        return None
    return re.sub(r"\s+", " ", view.undecided[at].condition)


def _parameters(declarator: Node, code: str) -> tuple[Parameter, ...]:
    listed = declarator.child_by_field_name("parameters")
    if listed is None:
        return ()
    parameters: list[Parameter] = []
    for child in listed.named_children:
        if child.type not in ("parameter_declaration", "optional_parameter_declaration"):
            continue
        default = child.child_by_field_name("default_value")
        inner = child.child_by_field_name("declarator")
        while inner is not None and inner.type != "identifier":
            nested = inner.child_by_field_name("declarator")
            inner = nested if nested is not None else (inner.named_children[-1] if inner.named_children else None)
        end = default.start_byte if default is not None else child.end_byte
        whole = code[child.start_byte : end]
        if inner is None:
            parameters.append(Parameter(_squeeze(whole), ""))
            continue
        before, after = whole[: inner.start_byte - child.start_byte], whole[inner.end_byte - child.start_byte :]
        parameters.append(Parameter(_squeeze(before + after), _text(inner, code)))
    if len(parameters) == 1 and parameters[0] == Parameter("void", ""):
        return ()
    return tuple(parameters)


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text.encode("latin-1").decode("utf-8", "replace").strip(" \t\r\n=")).strip()


def _hidden(view: View) -> tuple[HiddenKernel, ...]:
    """Kernel heads in comments and in groups that are surely not compiled."""
    found: dict[HiddenKernel, None] = {}
    for file in view.files:
        masked = file.masked
        if "__global__" not in masked.text:
            continue
        spans = [(start, end, "a comment") for start, end in masked.comments]
        seen: set[int] = set()
        for start, end, place in (*spans, *file.dropped):
            for at, name in _hidden_heads(masked.text, start, end):
                if at not in seen:
                    seen.add(at)
                    hidden = HiddenKernel(name, file.shown, masked.line(at), re.sub(r"\s+", " ", place))
                    found[hidden] = None
    return tuple(sorted(found, key=lambda hidden: (hidden.path != view.files[0].shown, hidden.path, hidden.line)))


def _hidden_heads(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """The offset and name of each kernel's head in a span."""
    at = text.find("__global__", start, end)
    while at >= 0:
        head = at + len("__global__")
        at = text.find("__global__", head, end)
        window = text[head : min(end if at < 0 else at, head + _MAX_HEAD)]
        blanked = _ATTRIBUTE.sub(lambda match: " " * len(match[0]), window)
        match = _HEAD.match(blanked[: blanked.find("(") + 1])
        if match:
            yield head + match.start(1), match[1]
