"""PTX texts to audit, from wherever they are: a `.ptx`, a generated header, C source, standard input, a folder."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ssmtool.errors import ProductError, SsmtoolError
from ssmtool.files import read_bytes
from ssmtool.header import BEGIN, Header, read_header
from ssmtool.ptx import Module, PtxSyntaxError, parse
from ssmtool.ptx.embedded import EmbeddedPtx, extract

_C_SUFFIXES = frozenset((".h", ".hpp", ".hh", ".hxx", ".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".inc"))
_TEXT_SUFFIXES = frozenset((".ptx", *_C_SUFFIXES))
# A C file with PTX in it, be it cut off. Code and comments that only speak of `.entry` hold none. Blanks may be \t.
_MAY_HOLD_PTX = re.compile(rb'\.version(?:[ \t]|\\t)+\d+\.\d|"[^"\n]*\.entry(?:[ \t]|\\t)+[\w$%]+[ \t]*\(')


@dataclass(frozen=True, slots=True)
class Input:
    """One PTX module to audit.

    `name` is the file as reports show it, with the constant for one of several in a header; `file` is the file alone,
    which annotations point at, where the two differ. `parameters` gives kernels'
    parameter names in C, where the input tells. `piece` is the PTX text within the file, `argument` what the user named
    on the command line to get here (None: nothing, it is the project's header).
    """

    name: str
    module: Module
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    piece: EmbeddedPtx | None = None
    argument: str | None = None
    file: str | None = None

    @property
    def path(self) -> str:
        """The file as reports show it."""
        return self.file or self.name

    def place(self, line: int, column: int | None = None) -> tuple[int, int | None]:
        """A place of the PTX as one of the file; inside a C string only the line can be told."""
        if self.piece is None or not self.piece.host_lines:
            return line, column
        return self.piece.host_line(line), None


def read_inputs(paths: Sequence[str], show: Callable[[Path], str] = str) -> list[Input]:
    """The modules of all paths; one that is named twice is read once. Raises as `read_input`."""
    found: list[Input] = []
    seen: set[str] = set()
    for path in paths:
        real = "-" if path == "-" else os.path.realpath(path) if path else path
        if real not in seen:
            seen.add(real)
            found += [replace(each, argument=path) for each in read_input(path, show)]
    return found


def read_input(path: str, show: Callable[[Path], str] = str) -> list[Input]:
    """The modules of a file, of a folder's files (hidden folders left out), or (`-`) of standard input.

    Raises PtxSyntaxError or ProductError for text that is not PTX or holds no kernel, SsmtoolError for what cannot be
    read. In a folder, C files without PTX are passed over; a folder without any kernel is an error.
    """
    if path == "-":
        if sys.stdin is None:
            raise SsmtoolError("standard input is closed", path="<stdin>")
        return read_data(sys.stdin.buffer.read(), "<stdin>")
    if not path or "\0" in path:
        raise SsmtoolError("an empty name, or one with a NUL, is no file")
    place = Path(path)
    try:
        folder = place.is_dir()
    except OSError as error:
        raise SsmtoolError(f"cannot be read: {error.strerror or error}", path=path) from None
    if not folder:
        return read_data(read_bytes(place), show(place))
    found: list[Input] = []
    for file in sorted(place.rglob("*")):
        # Folders such as .git and .venv hold other people's files.
        if any(part.startswith(".") for part in file.relative_to(place).parts[:-1]):
            continue
        if file.suffix.lower() in _TEXT_SUFFIXES and file.is_file():
            data = read_bytes(file)
            if file.suffix.lower() == ".ptx" or _MAY_HOLD_PTX.search(data):
                found += read_data(data, show(file))
    if not found:
        raise ProductError("no file of this folder holds a PTX kernel", path=show(place))
    return found


def read_data(data: bytes, name: str) -> list[Input]:
    """The modules in the bytes of one file; the kind is told by the content. Raises as `read_input`."""
    parameters: dict[str, tuple[str, ...]] = {}
    if BEGIN.encode() in data:
        header = _header_of(data, name)
        parameters = {entry.name: _names(entry.parameters) for held in header.modules for entry in held.record.entries}
    pieces = extract(data, name)
    found = []
    for piece in pieces:
        try:
            module = parse(piece.text, name)
            if len(pieces) == 1:
                module.require_entries()
        except PtxSyntaxError as error:
            if piece.host_lines and error.line is not None:
                error.message += f" (line {error.line} of the PTX)"
                error.line, error.column = piece.host_line(error.line), None
            raise
        if module.entries:
            shown = name if len(pieces) == 1 or piece.name is None else f"{name} ({piece.name})"
            found.append(Input(shown, module, parameters, piece, file=name))
    if not found:
        raise ProductError(f"none of its {len(pieces)} PTX texts holds a kernel", path=name)
    return found


def _header_of(data: bytes, name: str) -> Header:
    """The header in bytes that may come from standard input or a git revision: the reader wants a file."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "header.h"
        copy.write_bytes(data)
        try:
            return read_header(copy)
        except SsmtoolError as error:
            error.path = name
            raise


def _names(parameters: str) -> tuple[str, ...]:
    """The names in `u64 s, u32 state_size`."""
    return tuple(part.split()[-1] for part in parameters.split(",") if part.strip())
