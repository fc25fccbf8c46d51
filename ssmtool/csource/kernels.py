"""The kernels a `.cu` file defines: name, line, parameters, and whether their symbol is the plain name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ssmtool.csource.expand import expand_kernel_macros
from ssmtool.csource.grammar import ancestors, parse
from ssmtool.csource.preprocess import View, device_environment, preprocess

if TYPE_CHECKING:
    from tree_sitter import Node

_GLOBAL = re.compile(r"\b__global__\b")
_GLOBAL_OR_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\b__global__\b', re.DOTALL)
# A kernel's head in text no parser looks at: from __global__ to the last name before a parenthesis.
_HIDDEN_KERNEL = re.compile(
    r"__global__(?:\s|\w|[*&<>:]|__launch_bounds__\s*\([^)]*\))*?\b(?!__launch_bounds__)(?P<name>[A-Za-z_]\w*)\s*\("
)


class Parameter(msgspec.Struct, frozen=True):
    """One parameter as written: `const float *__restrict__` and `q`; no name gives an empty one."""

    type: str
    name: str


class SourceKernel(msgspec.Struct, frozen=True):
    """One `__global__` function with a body.

    `extern_c`: its symbol is its plain name. `condition` is the `#if` that may or may not keep it, None when it is
    surely compiled. `template`: it has a symbol only where it is instantiated. `from_macro`: its head was expanded.
    """

    name: str
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
    line: int
    place: str


class KernelSource(msgspec.Struct, frozen=True):
    """What one `.cu` file says about kernels.

    `unread` are lines with a `__global__` that no kernel or declaration accounts for; with those, or with `includes`,
    the file may make kernels that its text does not show.
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
    text: str, path: Path | str, target: str = "sm_37", defines: Mapping[str, str | None] | None = None
) -> KernelSource:
    """`find_kernels` and what else the text says about kernels.

    `defines` are the `-D` macros of the compilation; None says they are not known, so that `#ifdef NAME` stays open.
    """
    view = preprocess(text.encode("utf-8"), path, device_environment(target, defines))
    code, touched = expand_kernel_macros(view)
    tree = parse(code, path)
    kernels: list[SourceKernel] = []
    declared: list[str] = []
    accounted: list[tuple[int, int]] = []
    for node in tree.find("function_definition", "declaration", "field_declaration"):
        span = _head(node)
        if span is None or not _GLOBAL.search(code, *span):
            continue
        declarator = _function_declarator(node)
        name = declarator.child_by_field_name("declarator") if declarator else None
        if declarator is None or name is None:
            continue
        accounted.append(span)
        if node.type == "function_definition":
            kernels.append(_kernel(node, declarator, name, view, code, touched))
        else:
            declared.append(_text(name, code))
    unread = tuple(
        code.count("\n", 0, match.start()) + 1
        for match in _GLOBAL_OR_STRING.finditer(code)
        if not match[0].startswith('"') and not any(start <= match.start() < end for start, end in accounted)
    )
    return KernelSource(
        path=str(path),
        kernels=tuple(kernels),
        hidden=_hidden(view),
        declared=tuple(declared),
        unread=unread,
        includes=view.includes,
    )


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


def _kernel(node: Node, declarator: Node, name: Node, view: View, code: str, touched: frozenset[int]) -> SourceKernel:
    line = code.count("\n", 0, name.start_byte) + 1
    enclosing = list(ancestors(node))
    linkage = any(
        parent.type == "linkage_specification" and '"C"' in code[parent.start_byte : parent.start_byte + 24]
        for parent in enclosing
    )
    member = any(parent.type in ("class_specifier", "struct_specifier", "union_specifier") for parent in enclosing)
    static = bool(re.search(r"\bstatic\b", code[node.start_byte : declarator.start_byte]))
    template = any(parent.type == "template_declaration" for parent in enclosing)
    return SourceKernel(
        name=_text(name, code),
        line=line,
        extern_c=linkage and not static and not member and not template,
        parameters=_parameters(declarator, code),
        condition=_condition(view, line),
        template=template,
        from_macro=line in touched,
    )


def _condition(view: View, line: int) -> str | None:
    """The undecided `#if` around a line; lines, because expansion may have moved the offsets."""
    for group in view.groups:
        if group.active is None and view.masked.line(group.start) <= line <= view.masked.line(group.end):
            return re.sub(r"\s+", " ", group.condition)
    return None


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
    places = [(start, end, "a comment") for start, end in view.masked.comments]
    places += [(group.start, group.end, group.condition) for group in view.groups if group.active is False]
    found = [
        HiddenKernel(match["name"], view.masked.line(match.start("name")), re.sub(r"\s+", " ", place))
        for start, end, place in places
        for match in _HIDDEN_KERNEL.finditer(view.masked.text, start, end)
    ]
    return tuple(sorted(found, key=lambda hidden: hidden.line))
