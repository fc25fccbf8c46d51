"""Put the guesses together: sources with kernels, their constants, loaders, the header, include folders."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from ssmtool.csource import find_kernels
from ssmtool.csource.loads import find_pairs, loaded_constants
from ssmtool.discover.includes import guess_header, guess_include_dirs, including
from ssmtool.discover.loader import LoaderGuess, find_loader
from ssmtool.discover.tree import C_SUFFIXES, HEADER_SUFFIXES, MAX_NAMES, SOURCE_SUFFIX, Tree, read_small, read_tree
from ssmtool.errors import SsmtoolError
from ssmtool.files import decode_source, read_source

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
    # The source whose kernels' array it is already, when it has no array of its own.
    shares: str | None = None


@dataclass(slots=True)
class Guess:
    """What was found: modules, the header, include folders, and remarks for the user."""

    modules: list[ModuleGuess] = field(default_factory=list)
    header: str = "generated/kernels_ptx.h"
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
    wanted = {path: _wanted(tree, loader) if loader else [] for path, loader in found.items()}
    known: dict[Path, str | None] = {}
    for path, kernels in sources.items():
        carried = len(sources) == 1 and any(name in headers[constants[c]] for c in constants for name in kernels)
        alone = len(sources) == 1 or _only(found, found[path])
        known[path] = _of_source(path, constants, alone=carried) or _of_source(path, wanted[path], alone=alone)
    _give_unmatched(tree, found, wanted, known)
    for path, kernels in sources.items():
        taken = {module.constant for module in guess.modules}
        constant = _free(known[path] or _default(path.stem), tree, path, taken)
        guess.modules.append(ModuleGuess(tree.show(path), kernels, constant, found[path]))
    _tell_unmatched(tree, guess, wanted, constants)
    guess.header = _header(tree, guess, constants) or guess.header
    guess.include_dirs = guess_include_dirs(tree, sources)
    _tell_shared_arrays(guess)
    _tell_unread_loaders(tree, guess, loaders)
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


def _give_unmatched(
    tree: Tree,
    found: dict[Path, LoaderGuess | None],
    wanted: dict[Path, list[str]],
    known: dict[Path, str | None],
) -> None:
    """Constants that no source's name fits, to the source whose array goes with it, or to the only source left."""
    for shown in dict.fromkeys(loader.path for loader in found.values() if loader):
        mine = {path: loader for path, loader in found.items() if loader and loader.path == shown}
        path = tree.root / shown
        for source, loader in mine.items():
            free = [name for name in wanted[source] if name not in known.values()]
            if known[source] is None and free:
                pairs = find_pairs(read_small(path) or b"", path, free, [loader.array])
                named = {pair.constant for pair in pairs}
                known[source] = named.pop() if len(named) == 1 else None
        without = [source for source in mine if known[source] is None]
        free = [name for source in without for name in wanted[source] if name not in known.values()]
        if len(without) == 1 and len(free) == 1:
            known[without[0]] = free[0]


def _tell_unmatched(tree: Tree, guess: Guess, wanted: dict[Path, list[str]], held: dict[str, Path]) -> None:
    """Constants that a loader loads and no module makes: without them it does not compile."""
    made = {module.constant for module in guess.modules}
    told: dict[str, str] = {}
    for module in guess.modules:
        for name in wanted[tree.root / module.source] if module.loader else ():
            if name not in made and name not in held and module.loader:
                told.setdefault(name, module.loader.path)
    for name, path in told.items():
        guess.remarks.append(f"{path} mentions {name}, which no module makes; see `constant` in the settings")


def _default(stem: str) -> str:
    """A constant's name made from a source's, in the letters that C takes."""
    name = re.sub(r"\W", "_", stem, flags=re.ASCII).upper()
    return f"{name}_PTX" if name[:1].isalpha() else f"PTX_{name}"


def _free(constant: str, tree: Tree, source: Path, taken: set[str]) -> str:
    """The name itself, or the source's whole path when another module has it: two folders may both hold a `k.cu`."""
    if constant not in taken:
        return constant
    name = _default(tree.show(source.with_suffix("")))
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
            names = list(loaded_constants(read_small(path) or b"", path))
        except SsmtoolError:
            continue
        if names:
            return names
    return []


def _tell_shared_arrays(guess: Guess) -> None:
    """A loader's array belongs to one module: its functions are looked up in one loaded PTX."""
    first: dict[tuple[str, str], str] = {}
    for index, module in enumerate(guess.modules):
        loader = module.loader
        if loader is None:
            continue
        owner = first.setdefault((loader.path, loader.array), module.source)
        if owner != module.source:
            guess.modules[index] = replace(module, shares=owner)
            guess.remarks.append(
                f"{loader.array} in {loader.path} has kernels of {owner} and {module.source}: give each its own array;"
                " the second loader table is commented out until then"
            )


def _tell_unread_loaders(tree: Tree, guess: Guess, loaders: dict[Path, str]) -> None:
    """Files that have a kernel's name as a string, where no array of names was found."""
    for module in guess.modules:
        if module.loader is not None:
            continue
        for path, text in loaders.items():
            name = next((kernel for kernel in module.kernels if f'"{kernel}"' in text), None)
            if name is not None:
                guess.remarks.append(
                    f'{tree.show(path)} has "{name}" outside an array of names, where the registry rule does not see'
                    " it: it reads arrays of strings, and of rows whose first member is the name"
                )
                break
