"""The one exception family a command turns into a message and an exit code.

Anything a user can cause (a missing file, a compiler that dies, a loader without its array) is raised as an
`SsmtoolError`; a traceback is therefore always a bug of ssmtool itself.
"""

from __future__ import annotations

from pathlib import Path


class SsmtoolError(Exception):
    """Something could not be checked or done; exit code 2 unless a subclass says otherwise.

    `line` and `column` are 1-based. `hint` is the command or edit that mends it, when there is one.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        path: Path | str | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = str(path) if path is not None else None
        self.line = line
        self.column = column
        self.hint = hint

    @property
    def where(self) -> str | None:
        """`path:line:column` as far as it is known, or None."""
        if self.path is None:
            return f"line {self.line}" if self.line is not None else None
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class ProductError(SsmtoolError):
    """The user's product itself is wrong (a syntax error, no kernels, a damaged header); exit code 1."""

    exit_code = 1
