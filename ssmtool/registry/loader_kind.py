"""Whose loader it is, and so what its user reads when something is missing.

`fc_cuda.c` says which name the module lacks, counts the others, and refuses lists that disagree; its texts are
reproduced here to the letter, and a test compiles it and compares. Any other loader is taken to pass on the driver's
own words, which name no kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ssmtool.csource.preprocess import preprocess
from ssmtool.csource.view import host_environment

DRIVER_NOT_FOUND = "CUDA_ERROR_NOT_FOUND: named symbol not found"
DRIVER_NULL_NAME = "CUDA_ERROR_INVALID_VALUE: invalid argument"

# Part of the format that fc_cuda.c prints a missing kernel with.
_OWN_FORMAT = b"name %d of %d (index %d)"
# X(FC_SIGMOID, fc_sigmoid, 2)
_CONSTANT_ROW = re.compile(r"\w+\s*\(\s*\w+\s*,\s*(\w+)\s*,\s*\d+\s*\)")


_LENGTH = re.compile(r"[0-9]+")


class LoaderKind(msgspec.Struct, frozen=True):
    """`own`: the loader speaks as `fc_cuda.c` does. `constants` are the symbols of its FC_KERNELS list, in order."""

    own: bool = False
    constants: tuple[str, ...] = ()


def recognise_loader(data: bytes, headers: Sequence[tuple[Path, bytes]]) -> LoaderKind:
    """The kind of a loader; `headers` are the files it includes, in which FC_KERNELS may stand."""
    if _OWN_FORMAT not in data:
        return LoaderKind()
    for path, text in headers:
        if b"define FC_KERNELS(" not in text:
            continue
        macro = preprocess(text, path, host_environment(path)).macro("FC_KERNELS")
        if macro is not None:
            return LoaderKind(own=True, constants=tuple(_CONSTANT_ROW.findall(macro.body)))
    return LoaderKind(own=True)


def mangled_names(symbols: Sequence[str]) -> dict[str, str]:
    """Name -> the first symbol that is its C++ name: `_Z4namei`, or the same inside a namespace or a template."""
    found: dict[str, str] = {}
    for symbol in symbols:
        if not symbol.startswith("_Z"):
            continue
        for match in _LENGTH.finditer(symbol):
            # In `_Z1210k...` the length may be any end of the digits.
            for start in range(max(match.start(), match.end() - 4), match.end()):
                name = symbol[match.end() : match.end() + int(symbol[start : match.end()])]
                if f"{len(name)}{name}" == symbol[start : match.end() + len(name)]:
                    found.setdefault(name, symbol)
    return found


def missing_message(kind: LoaderKind, names: Sequence[str], count: int, index: int, entries: Sequence[str]) -> str:
    """What the user reads when the module lacks `names[index]`."""
    if not kind.own:
        return DRIVER_NOT_FOUND
    asked = names[:count]
    lines = [
        f"kernel {names[index]}, name {index + 1} of {count} (index {index}), is not in the loaded module: "
        "CUDA error 500, CUDA_ERROR_NOT_FOUND (named symbol not found)",
        f"  usable: {index} before it{_listed(asked[:index])}",
        f"  inert: it and {count - index - 1} after it{_listed(asked[index + 1 :])}",
    ]
    mangled = mangled_names(entries).get(names[index])
    claimed = frozenset(asked)
    unclaimed = [entry for entry in entries if entry not in claimed]
    if mangled:
        lines.append(
            f'  likely cause: the module has {mangled}: the kernel lacks extern "C"; add it in the source and run: '
            "ssmtool build"
        )
    elif unclaimed:
        lines.append(
            f"  likely cause: a typo, or a renamed kernel: no name asks for {', '.join(unclaimed)}, which the module "
            "has; compare with: ssmtool registry"
        )
    else:
        lines += [
            "  likely cause: the kernel was added to the source after the header was last generated; "
            "run: ssmtool build",
            "  (or it was removed or renamed there, and the name stayed; see: ssmtool registry)",
        ]
    return "\n".join(lines)


def count_message(names: Sequence[str], count: int) -> str:
    """What `fc_cuda.c` says when its count is not the length of its array."""
    first = f"the loader's count is wrong: fc_load_functions is told {count} names, ssm_names holds {len(names)}"
    if count < len(names):
        first += f"\n  left out{_listed(names[max(count, 0) :])}"
    return f"{first}\n  run: ssmtool registry --fix"


def disagreement(kind: LoaderKind, names: Sequence[str]) -> tuple[int, str] | None:
    """Where FC_KERNELS and the array part, and what `fc_cuda.c` says about it; None when they agree."""
    for index, (name, constant) in enumerate(zip(names, kind.constants, strict=False)):
        if name != constant:
            return index, (
                f'the loader\'s lists disagree: ssm_names[{index}] in fc_cuda.c is "{name}", FC_KERNELS in fc_cuda.h '
                f'has "{constant}" there, so its constant would launch another kernel; '
                "a new name goes at the end of both"
            )
    return None


def short_message(kind: LoaderKind, names: Sequence[str]) -> str | None:
    """The compiler's words when the array is shorter than FC_KERNELS: the loader then does not compile."""
    if len(names) >= len(kind.constants):
        return None
    reason = "ssm_names is shorter than FC_KERNELS: a name was deleted, or a missing comma joined two"
    return f'static assertion failed: "{reason}"'


def _listed(names: Sequence[str]) -> str:
    return ": " + ", ".join(names) if names else ""
