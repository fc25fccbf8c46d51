"""Compiler flags that say what a source means: macros, include folders, files put before every source."""

from __future__ import annotations

from collections.abc import Sequence

_DEFINE = ("-D", "--define-macro")
_FOLDER = ("-I", "--include-path")
_BEFORE = ("-include", "--pre-include")


def defines_from_flags(flags: Sequence[str]) -> dict[str, str | None]:
    """The macros of `-DX`, `-DX=1`, `-D X` and `--define-macro=X`; one without a value is 1."""
    defines: dict[str, str | None] = {}
    for definition in _values(flags, _DEFINE):
        name, equals, value = definition.partition("=")
        defines[name] = value if equals else "1"
    return defines


def include_folders(flags: Sequence[str]) -> list[str]:
    """The folders of `-Ix`, `-I x` and `--include-path=x`, in their order."""
    return _values(flags, _FOLDER)


def files_before(flags: Sequence[str]) -> list[str]:
    """The files of `-include x` and `--pre-include=x`: what they define is known in every source."""
    return _values(flags, _BEFORE)


def _values(flags: Sequence[str], names: tuple[str, str]) -> list[str]:
    """What follows a flag of these names: the next flag, what stands behind `=`, or behind a single letter."""
    values: list[str] = []
    rest = iter(flags)
    for flag in rest:
        if flag in names:
            values += filter(None, [next(rest, None)])
        for name in names:
            if flag.startswith(f"{name}=") or (len(name) == 2 and flag != name and flag.startswith(name)):
                values.append(flag[len(name) :].removeprefix("="))
    return values
