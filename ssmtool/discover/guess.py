"""Put the guesses together: sources with kernels, their constants, loaders, the header, include folders."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ssmtool.csource import find_kernels
from ssmtool.discover.includes import guess_header, guess_include_dirs, including
from ssmtool.discover.loader import LoaderGuess, find_loader, wanted_constants
from ssmtool.discover.tree import C_SUFFIXES, HEADER_SUFFIXES, MAX_NAMES, SOURCE_SUFFIX, Tree, read_small, read_tree
from ssmtool.errors import SsmtoolError
from ssmtool.files import decode_source, read_source
from ssmtool.project import ModuleSettings

#   static const char FC_PTX_SSM_GATED_DELTA[] =     const char *const PTX =     but not: char *const names[] = { "k" }
_CONSTANT = re.compile(
    r"\bchar\s*(?:const\s*)?(?:\*\s*(?:const\s+)?(?=\w+\s*=))?(\w+)\s*(?:\[\w*\])?\s*=\s*\{?\s*(?:\n#[^\n]*)*\s*\""
)
#   .target sm_37     .target\tsm_37 (in a C string)     but not: config.target = 3
_TARGET = re.compile(r"\.target(?:[ \t]|\\t)+sm_\d")


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
    include_dirs: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def discover(root: Path, *, max_names: int = MAX_NAMES) -> Guess:
    """Look at the tree below `root`. Raises SsmtoolError when it holds no `.cu` file with a kernel, or is not readable.

    `max_names` limits the files and folders looked at.
    """
    try:
        tree = read_tree(root, max_names=max_names)
    except OSError as error:
        raise SsmtoolError(f"cannot be read: {error.strerror or error}", path=root) from None
    sources = _sources(tree)
    if not sources:
        raise SsmtoolError(
            'no .cu file with an extern "C" __global__ function in or below this folder', path=root, hint=_why(tree)
        )
    names = {kernel for kernels in sources.values() for kernel in kernels}
    headers = {path: text for path, text in _texts(tree, HEADER_SUFFIXES, {".entry"}).items() if _TARGET.search(text)}
    # A build writes the header with the PTX anew, so a loader in it would not last.
    loaders = {p: text for p, text in _texts(tree, C_SUFFIXES | HEADER_SUFFIXES, names).items() if p not in headers}
    constants = {name: path for path, text in headers.items() for name in _CONSTANT.findall(text)}
    guess = Guess(remarks=tree.remarks)
    found = {path: find_loader(tree, kernels, loaders) for path, kernels in sources.items()}
    for path, kernels in sources.items():
        loader = found[path]
        wanted = _wanted(tree, loader) if loader else []
        alone = len(sources) == 1
        known = _of_source(
            path, constants, alone=alone and any(name in headers[constants[c]] for c in constants for name in kernels)
        )
        constant = known or _of_source(path, wanted, alone=alone or _only(found, loader)) or _default(tree, path)
        taken = {module.constant for module in guess.modules}
        guess.modules.append(ModuleGuess(tree.show(path), kernels, _free(constant, tree, path, taken), loader))
    guess.header = _header(tree, guess, constants) or guess.header
    guess.include_dirs = guess_include_dirs(tree, sources)
    _tell_shared_arrays(guess)
    return guess


def _sources(tree: Tree) -> dict[Path, tuple[str, ...]]:
    """The `.cu` files with kernels that a loader can look up by name."""
    sources: dict[Path, tuple[str, ...]] = {}
    for path in tree.of(SOURCE_SUFFIX):
        try:
            kernels = find_kernels(read_source(path), path)
        except SsmtoolError as error:
            tree.remarks.append(f"{tree.show(path)} was left out: {error.message}")
            continue
        named = tuple(dict.fromkeys(kernel.name for kernel in kernels if kernel.extern_c))
        if named:
            sources[path] = named
        elif kernels:
            tree.remarks.append(f'{tree.show(path)} was left out: none of its kernels is extern "C"')
    return sources


def _why(tree: Tree) -> str | None:
    """What was left out, as the reason for which nothing was found."""
    return "; ".join(tree.remarks[:5]) or None


def _texts(tree: Tree, suffixes: frozenset[str], words: set[str]) -> dict[Path, str]:
    """The files with one of these suffixes in which one of the words occurs. Most files of a large tree have none."""
    wanted = [word.encode() for word in words]
    texts: dict[Path, str] = {}
    for path in tree.of(*suffixes):
        data = read_small(path)
        if data is None or not any(word in data for word in wanted):
            continue
        try:
            texts[path] = decode_source(data, path)
        except SsmtoolError:
            continue
    return texts


def _of_source(source: Path, constants: dict[str, Path] | list[str], *, alone: bool) -> str | None:
    """The one constant whose name holds the source's stem, or the only one when `alone`."""
    stem = re.sub(r"\W", "_", source.stem).upper()
    matching = [name for name in constants if stem in name.upper()]
    if len(matching) == 1:
        return matching[0]
    return next(iter(constants)) if alone and len(constants) == 1 else None


def _only(found: dict[Path, LoaderGuess | None], loader: LoaderGuess | None) -> bool:
    """Whether this loader serves a single source."""
    return loader is not None and sum(item is not None and item.path == loader.path for item in found.values()) == 1


def _default(tree: Tree, source: Path) -> str:
    """The name that a build would take, in the letters that C takes."""
    return re.sub(r"\W", "_", ModuleSettings(source=tree.show(source)).constant_name, flags=re.ASCII)


def _free(constant: str, tree: Tree, source: Path, taken: set[str]) -> str:
    """The name itself, or the source's whole path when another module has it: two folders may both hold a `k.cu`."""
    if constant not in taken:
        return constant
    name = "FC_PTX_" + re.sub(r"\W", "_", tree.show(source.with_suffix("")), flags=re.ASCII).upper()
    while name in taken:
        name += "_"
    return name


def _header(tree: Tree, guess: Guess, constants: dict[str, Path]) -> str | None:
    """The file that holds the constants now, or else the one that the first loader includes and that is missing."""
    present = {constants[module.constant] for module in guess.modules if module.constant in constants}
    if present:
        return tree.show(min(present))
    files = [path for module in guess.modules if module.loader for path in _parts(tree, module.loader)]
    return next(filter(None, (guess_header(tree, path) for path in files)), None)


def _parts(tree: Tree, loader: LoaderGuess) -> list[Path]:
    """The loader's file and, when it is a header, those that include it: the PTX may be named in either."""
    path = tree.root / loader.path
    return [path, *(including(tree, path) if path.suffix in HEADER_SUFFIXES else ())]


def _wanted(tree: Tree, loader: LoaderGuess) -> list[str]:
    """The PTX constants that the first of the loader's files to load any loads."""
    for path in _parts(tree, loader):
        try:
            names = wanted_constants(decode_source(read_small(path) or b"", path), path)
        except SsmtoolError:
            continue
        if names:
            return names
    return []


def _tell_shared_arrays(guess: Guess) -> None:
    """A loader's array belongs to one module: its functions are looked up in one loaded PTX."""
    users: dict[tuple[str, str], list[str]] = {}
    for module in guess.modules:
        if module.loader:
            users.setdefault((module.loader.path, module.loader.array), []).append(module.source)
    for (path, array), sources in users.items():
        if len(sources) > 1:
            guess.remarks.append(f"{array} in {path} has kernels of {' and '.join(sources)}: give each its own array")
