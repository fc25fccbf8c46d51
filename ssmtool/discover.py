"""A first guess at a project's settings, from its tree: what `ssmtool init` writes for the user to correct.

Guesses are made from text, then confirmed with the same readers that every later command uses; what could not be
confirmed is written as a comment, not as a setting.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ssmtool.csource import find_kernels, find_name_array
from ssmtool.errors import SsmtoolError
from ssmtool.files import read_source
from ssmtool.project import ModuleSettings

_SKIPPED_FOLDERS = {"node_modules", "build", "dist", "venv", "site-packages", "third_party", "vendor", "__pycache__"}
_C_SUFFIXES = {".c", ".cc", ".cpp", ".cxx"}
_HEADER_SUFFIXES = {".h", ".hpp", ".inc"}
# A file larger than this is data, not a loader or a header written for people.
_MAX_BYTES = 8_000_000
#   static const char *const ssm_names[] = {
_ARRAY = re.compile(r"(\w+)\s*\[[^\]\n]*\]\s*=\s*\{([^{}]*)\}")
#   static const char FC_PTX_SSM_GATED_DELTA[] =
_CONSTANT = re.compile(r"\bchar\s*(?:const\s*)?\*?\s*(?:const\s+)?(\w+)\s*(?:\[\w*\])?\s*=\s*\{?\s*(?:\n#[^\n]*)*\s*\"")


@dataclass(frozen=True, slots=True)
class LoaderGuess:
    """A name array that holds kernels of a source, and the call that takes it, when one was found."""

    path: str
    array: str
    function: str | None
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModuleGuess:
    """One `.cu` file with kernels, the PTX constant that seems to carry them, and their loader."""

    source: str
    kernels: tuple[str, ...]
    constant: str
    loader: LoaderGuess | None


@dataclass(slots=True)
class Guess:
    """What was found: modules, the header, include folders, and remarks for the user."""

    modules: list[ModuleGuess] = field(default_factory=list)
    header: str = "generated/fc_cuda_ptx.h"
    remarks: list[str] = field(default_factory=list)


def discover(root: Path) -> Guess:
    """Look at the tree below `root`. Raises SsmtoolError when it holds no `.cu` file with a kernel."""
    files = sorted(_files(root))
    texts = {path: text for path in files if path.suffix != ".cu" and (text := _text(path)) is not None}
    guess = Guess()
    constants: dict[str, Path] = {}
    for path, text in texts.items():
        if path.suffix in _HEADER_SUFFIXES and ".entry" in text and ".target" in text:
            constants.update(dict.fromkeys(_CONSTANT.findall(text), path))
    sources: dict[Path, tuple[str, ...]] = {}
    for path in (path for path in files if path.suffix == ".cu"):
        try:
            kernels = tuple(dict.fromkeys(kernel.name for kernel in find_kernels(read_source(path), path)))
        except SsmtoolError as error:
            guess.remarks.append(f"{path.relative_to(root).as_posix()} was left out: {error.message}")
            continue
        if kernels:
            sources[path] = kernels
    if not sources:
        raise SsmtoolError("no .cu file with a __global__ function in or below this folder", path=root)
    for path, kernels in sources.items():
        shown = path.relative_to(root).as_posix()
        constant = _constant_of(shown, kernels, constants, texts, alone=len(sources) == 1)
        guess.modules.append(ModuleGuess(shown, kernels, constant, _loader_of(root, kernels, texts)))
    headers = {constants[module.constant] for module in guess.modules if module.constant in constants}
    if headers:
        guess.header = min(headers).relative_to(root).as_posix()
    return guess


def _files(root: Path) -> Iterator[Path]:
    """C, C++, CUDA and header files below `root`, without hidden folders and other people's code."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS]
        for name in names:
            path = Path(folder, name)
            if path.suffix in _C_SUFFIXES | _HEADER_SUFFIXES | {".cu"}:
                yield path


def _text(path: Path) -> str | None:
    """The file's text, or None for what is too large or no text: a guess passes over those."""
    try:
        return read_source(path) if path.stat().st_size <= _MAX_BYTES else None
    except (SsmtoolError, OSError):
        return None


def _constant_of(
    source: str, kernels: tuple[str, ...], constants: dict[str, Path], texts: dict[Path, str], *, alone: bool
) -> str:
    """An existing constant whose name holds the source's stem, or that stands alone; else the default name."""
    default = ModuleSettings(source=source).constant_name
    stem = Path(source).stem.upper()
    matching = [name for name in constants if stem in name.upper()]
    if len(matching) == 1:
        return matching[0]
    if (
        alone
        and len(constants) == 1
        and any(kernel in texts[path] for kernel in kernels for path in constants.values())
    ):
        return next(iter(constants))
    return default


def _loader_of(root: Path, kernels: tuple[str, ...], texts: dict[Path, str]) -> LoaderGuess | None:
    """The array with most of these kernels among its strings, confirmed by the reader of loaders."""
    best: tuple[int, Path, str] | None = None
    for path, text in texts.items():
        if path.suffix not in _C_SUFFIXES:
            continue
        for array, body in _ARRAY.findall(text):
            common = len(set(re.findall(r'"(\w+)"', body)) & set(kernels))
            if common and (best is None or common > best[0]):
                best = (common, path, array)
    if best is None:
        return None
    _, path, array = best
    for function in [*_callers(texts[path], array), None]:
        try:
            found = find_name_array(path.read_bytes(), path, array, function)
        except SsmtoolError:
            continue
        return LoaderGuess(path.relative_to(root).as_posix(), array, function, found.names)
    return None


def _callers(text: str, array: str) -> list[str]:
    """Names of the functions that are called with `array` and a further argument after it."""
    names = []
    for match in re.finditer(rf"\b{re.escape(array)}\s*,", text):
        depth = 0
        for offset in range(match.start() - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(text[offset], 0)
            if depth < 0:
                name = re.search(r"(\w+)\s*$", text[:offset][-80:])
                names.extend([name[1]] if name else [])
            if depth < 0 or text[offset] in ";{}":
                break
    return list(dict.fromkeys(names))
