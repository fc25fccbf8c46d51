"""What the settings' schema cannot say: paths that are none, names that C does not take, files that two settings name.

The checks are about the text of the settings alone; whether a file is there is asked by the command that needs it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ssmtool.errors import SsmtoolError
from ssmtool.header import guard_name

if TYPE_CHECKING:
    from ssmtool.project import Settings

# Words that a name in a C or C++ header may not be.
_C_WORDS = (
    " auto bool break case char class const continue default delete do double else enum extern float for friend goto if"
    " inline int long namespace new operator private protected public register restrict return short signed sizeof"
    " static struct switch template this throw try typedef union unsigned using virtual void volatile while "
)
_CONTROL = re.compile(r"[\0-\x1f\x7f]")
# PATH_MAX of Linux, less what a project's own folder may take.
_LONGEST_PATH = 4000


class _WrongError(Exception):
    """The setting `key` is wrong; `value` tells its lines apart when the key stands in several tables."""

    def __init__(self, key: str, message: str, value: str = "") -> None:
        super().__init__(message)
        self.key, self.message, self.value = key, message, value


def check_settings(settings: Settings, path: Path, text: str) -> None:
    """Raise SsmtoolError, with its line in `text`, for the first setting of the file `path` that is wrong."""
    try:
        _check_compiler(settings)
        _check_paths(settings)
        _check_modules(settings)
    except _WrongError as wrong:
        line = line_of(text, wrong.key, wrong.value)
        raise SsmtoolError(f"setting `{wrong.key}`: {wrong.message}", path=path, line=line) from None


def line_of(text: str, key: str, value: str = "") -> int | None:
    """The 1-based line that sets `key`, one that holds `value` before others; tables of other tools do not count."""
    ours = re.search(r"(?m)^[ \t]*\[+[ \t]*tool[ \t]*\.[ \t]*ssmtool\b", text)
    start = ours.start() if ours else 0
    found = list(re.compile(rf"(?m)^[ \t]*(?:\[+\s*[\w.]*\.)?{re.escape(key)}\s*[=\]].*$").finditer(text, start))
    match = next((match for match in found if value in match[0]), found[0] if found else None)

    return text.count("\n", 0, match.start()) + 1 if match else None


def _check_compiler(settings: Settings) -> None:
    if settings.compiler not in ("auto", "nvcc", "nvrtc"):
        raise _WrongError("compiler", f'"{_short(settings.compiler)}" is not one of "auto", "nvcc", "nvrtc"')
    if not re.fullmatch(r"sm_[0-9]{2,4}[af]?", settings.target):
        raise _WrongError("target", f'"{_short(settings.target)}" is not an architecture such as "sm_37"')
    for key in ("cuda_release", "max_ptx_isa"):
        value = getattr(settings, key)
        if not re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", value):
            raise _WrongError(key, f'"{_short(value)}" is not of the form "11.4"')
    if not 0 < settings.compile_timeout <= 1e6:
        raise _WrongError("compile_timeout", "must be a positive number of seconds, at most a million")
    if any(not flag or "\0" in flag for flag in settings.flags):
        raise _WrongError("flags", "a flag is empty or holds a NUL character, which no compiler takes")


def _files(settings: Settings) -> Iterator[tuple[str, str]]:
    """(key, path) of every setting that names a file of the project."""
    yield "header", settings.header
    yield "baseline", settings.baseline
    for module in settings.module:
        yield "source", module.source
        if module.loader is not None:
            yield "path", module.loader.path


def _check_paths(settings: Settings) -> None:
    files = list(_files(settings))
    folders = [("include_dirs", folder) for folder in settings.include_dirs]
    for key, value in [*files, *folders, *([("nvcc", settings.nvcc)] if settings.nvcc is not None else [])]:
        if not value.strip():
            raise _WrongError(key, "is empty" + ('; "." is the project\'s folder' if key == "include_dirs" else ""))
        if _CONTROL.search(value) or len(value) > _LONGEST_PATH:
            raise _WrongError(key, "is no path: it holds a control character or is longer than a path can be", value)
    for key, value in files:
        if value.endswith("/") or PurePosixPath(value).name in ("", ".."):
            raise _WrongError(key, f'"{value}" is a folder; it has to name a file', value)
    # What a command writes may be nothing that the user wrote, nor what another command writes.
    written: dict[str, str] = {}
    for key, value in files:
        place = posixpath.normpath(value)
        if place in written and (key in ("header", "baseline") or written[place] in ("header", "baseline")):
            raise _WrongError(key, f'"{value}" is the setting `{written[place]}` too', value)
        written.setdefault(place, key)


def _check_modules(settings: Settings) -> None:
    guard = guard_name(PurePosixPath(settings.header).name)
    constants: dict[str, str] = {}
    for module in settings.module:
        loader = module.loader
        if loader is not None:
            if loader.count_argument is not None and loader.count_argument < 0:
                raise _WrongError("count_argument", "is a position counted from 0")
            for key, value in (("array", loader.array), ("function", loader.function)):
                if value is not None and (not value.strip() or _CONTROL.search(value)):
                    raise _WrongError(key, "is empty or holds a control character, so it names nothing", value)
        constant = module.constant_name
        if not re.fullmatch(r"[A-Za-z_]\w*", constant, re.ASCII):
            raise _WrongError("constant", f'"{_short(constant)}" is not a C identifier', constant)
        if f" {constant} " in _C_WORDS or constant == guard:
            raise _WrongError("constant", f'"{constant}" is a word of C, or the include guard of the header', constant)
        if constant in constants:
            raise _WrongError("constant", f"{constant} would hold both {constants[constant]} and {module.source}")
        constants[constant] = module.source


def _short(value: str) -> str:
    """A value as a message quotes it: on one line, and no longer than that."""
    shown = _CONTROL.sub("?", value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
