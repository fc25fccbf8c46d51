"""The C file or header that keeps the kernels' names in an array."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ssmtool.csource import NameArray, find_name_array
from ssmtool.discover.tree import HEADER_SUFFIXES, Tree
from ssmtool.errors import SsmtoolError

#   static const char *const ssm_names[] = {     constexpr std::array<const char *, 2> kNames = {     kNames{{
_ARRAY = re.compile(r"\b(\w+)\s*(?:\[[^\]\n]*\]\s*)?(?:=\s*)?\{\s*\{?([^{}]*)\}")
#   static struct kernel table[] = { {"ln_forward", &f0}, ... };
_ROWS = re.compile(r"\b(\w+)\s*\[[^\]\n]*\]\s*=\s*\{\s*((?:\{[^{}]{0,400}\}\s*(?:,\s*)?)+)\}")
# Arguments of a loading call that are tried as the count.
_MOST_ARGUMENTS = 8


@dataclass(frozen=True, slots=True)
class LoaderGuess:
    """A name array that holds kernels of a source, and the call that takes it, when one was found."""

    path: str
    array: str
    function: str | None
    names: tuple[str, ...]
    count_argument: int | None = None


def find_loader(tree: Tree, kernels: tuple[str, ...], texts: dict[Path, str]) -> LoaderGuess | None:
    """The array with most of these kernels among its strings, confirmed by the reader of loaders.

    An array in a header that the header itself gives to no function is taken only when no other file has one: labels
    for people are kept so, and a list of them may well be longer than the loader's.
    """
    candidates: list[tuple[tuple[bool, int, bool], Path, str]] = []
    for path, text in texts.items():
        header = path.suffix in HEADER_SUFFIXES
        for array, body in [*_ARRAY.findall(text), *_ROWS.findall(text)]:
            common = len(set(re.findall(r'"(\w+)"', body)) & set(kernels))
            if common:
                candidates.append(((header and not _callers(text, array), -common, header), path, array))
    for _, path, array in sorted(candidates, key=lambda candidate: candidate[0]):
        for function in [*_callers(texts[path], array), None]:
            try:
                found = find_name_array(path.read_bytes(), path, array, function)
            except (SsmtoolError, OSError):
                continue
            if not set(found.names) & set(kernels):
                break  # A table whose rows begin with something else.
            position = _count_argument(path, array, function) if function and _open(found) else None
            return LoaderGuess(tree.show(path), array, function, found.names, position)
    return None


def _open(found: NameArray) -> bool:
    """Whether the argument after the array has no value: then the count may be another."""
    return found.count is not None and found.count.value is None


def _count_argument(path: Path, array: str, function: str) -> int | None:
    """The position of the only argument whose value is the number of names."""
    positions = []
    for position in range(_MOST_ARGUMENTS):
        try:
            found = find_name_array(path.read_bytes(), path, array, function, position)
        except (SsmtoolError, OSError):
            break
        if found.count is not None and found.count.value == len(found.names):
            positions.append(position)
    return positions[0] if len(positions) == 1 else None


def _callers(text: str, array: str) -> list[str]:
    """Names of the functions that are called with `array`, or with its data."""
    names = []
    for match in re.finditer(rf"\b{re.escape(array)}(?:\.data\(\))?\s*[,)]", text):
        depth = 0
        for offset in range(match.start() - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(text[offset], 0)
            if depth < 0:
                name = re.search(r"(\w+)\s*$", text[:offset][-80:])
                names.extend([name[1]] if name else [])
            if depth < 0 or text[offset] in ";{}":
                break
    return [name for name in dict.fromkeys(names) if name != "sizeof"]
