"""What a launch can fail with. Everything is an SsmtoolError, so a command turns it into one message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssmtool.errors import ProductError, SsmtoolError

if TYPE_CHECKING:
    from ssmtool.execute.result import LaunchResult

_LISTED = 5


class LaunchError(SsmtoolError):
    """A launch that no GPU of sm_37 would take, or of a kernel that is not there. Nothing has run."""


class ArgumentError(LaunchError):
    """An argument that does not fit its parameter, one too many, or one missing. Nothing has run."""


class CompileError(SsmtoolError):
    """LLVM refuses the code of a kernel: a bug of ssmtool, or an LLVM that it does not know."""


class KernelFaultError(ProductError):
    """The kernel did what a GPU may answer with anything; `result` is the launch as far as it went."""

    def __init__(self, result: LaunchResult) -> None:
        faults = result.faults
        shown = [str(fault) for fault in faults[:_LISTED]]
        if len(faults) > _LISTED:
            shown.append(f"and {len(faults) - _LISTED} more")
        super().__init__("\n".join(shown))
        self.result = result
