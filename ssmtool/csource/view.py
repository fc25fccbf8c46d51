"""What is known before a source is read, and what reading it gives: environments, undecided groups, the view itself."""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ssmtool.csource.macros import Macro
from ssmtool.csource.mask import Lines, Masked


class Included(msgspec.Struct, frozen=True):
    """A file that an `#include` stands for: where it lies, how reports name it, its bytes."""

    path: Path
    shown: str
    data: bytes


# What stands after `#include`, with its quotes or brackets, and the file it stands in -> the file, None to leave it.
Resolver = Callable[[str, Path], Included | None]


class Environment(msgspec.Struct, frozen=True):
    """What is known from outside the text.

    `defined` maps a predefined macro to its value, None when only its existence is sure. `undefined` names are sure
    not to be defined. `closed` says that `defined` is complete: then an unreserved name nothing has defined is not
    defined, unless the text includes other files.
    """

    defined: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    undefined: frozenset[str] = frozenset()
    closed: bool = False


class Group(msgspec.Struct, frozen=True):
    """A span under an `#if` branch of which it cannot be told whether it is compiled."""

    start: int
    end: int
    condition: str


class SourceFile(msgspec.Struct, frozen=True):
    """One file that was read, and the spans of it that are surely not compiled, each with the outermost reason."""

    shown: str
    masked: Masked
    dropped: list[tuple[int, int, str]]


class View(msgspec.Struct, frozen=True):
    """A preprocessed file: `code` with comments, directives and inactive groups blank.

    `undecided` are the outermost groups that cannot be decided. They, `directives` and the macros' offsets and lines
    are those of `code`. `includes` are the ones left unread; `headers` are the names and the code of included files
    that were read for their definitions only. `files` are all files read, `masked` the first of them.
    """

    masked: Masked
    code: str
    lines: Lines
    undecided: tuple[Group, ...]
    macros: Mapping[str, tuple[Macro, ...]]
    includes: tuple[str, ...]
    directives: tuple[int, ...]
    files: tuple[SourceFile, ...]
    headers: tuple[tuple[str, str], ...]
    origins: tuple[tuple[int, int, int], ...]

    def origin(self, line: int) -> tuple[str, int]:
        """The file, as reports name it, and the line in it that a line of `code` comes from."""
        start, file, first = self.origins[bisect.bisect_right(self.origins, (line, len(self.files), 0)) - 1]
        return self.files[file].shown, first + line - start

    def undecided_at(self, offset: int) -> Group | None:
        """The outermost undecided group around an offset."""
        at = bisect.bisect_right(self.undecided, offset, key=lambda group: group.start) - 1
        return self.undecided[at] if at >= 0 and offset < self.undecided[at].end else None

    def macro(self, name: str, before: int | None = None) -> Macro | None:
        """The one definition of `name`; with `before`, the last one above that offset. None if ambiguous or absent."""
        found = self.macros.get(name, ())
        if before is not None:
            found = tuple(macro for macro in found if macro.offset < before)[-1:]
        if len({(macro.parameters, macro.body, macro.removed) for macro in found}) != 1 or found[0].removed:
            return None
        return found[0]


def device_environment(target: str, defines: Mapping[str, str | None] | None = None) -> Environment:
    """The device pass of a CUDA compiler for `target` such as `sm_37`; `defines` None means "flags unknown"."""
    digits = re.sub(r"\D", "", target)
    predefined: dict[str, str | None] = {"__CUDACC__": None, "__cplusplus": None, "__CUDA_ARCH__": f"{digits}0"}
    return Environment(defined={**predefined, **(defines or {})}, closed=defines is not None)


def host_environment(path: Path | str) -> Environment:
    """A host compiler reading `path`; only its language is known, from the suffix."""
    if Path(path).suffix == ".c":
        return Environment(undefined=frozenset({"__cplusplus", "__CUDACC__", "__CUDA_ARCH__"}))
    return Environment(undefined=frozenset({"__CUDA_ARCH__"}))
