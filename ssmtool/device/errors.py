"""What a device can fail with. Everything is an SsmtoolError, so a command turns it into one message."""

from __future__ import annotations

from ssmtool.errors import ProductError, SsmtoolError


class DeviceError(SsmtoolError):
    """A device could not do what was asked. `code` is the driver's (CUresult) where it came from one.

    `fatal` says that the device is unusable from now on; another device, and another process, is not.
    """

    def __init__(self, message: str, *, code: int | None = None, fatal: bool = False, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.fatal = fatal


class NoDeviceError(DeviceError):
    """There is no such device here; the message names what there is."""


class LoadError(DeviceError):
    """The device or its driver cannot take the PTX."""


class RefusedPtxError(LoadError):
    """The driver finds the PTX itself wrong: the product is, not the machine."""

    exit_code = 1


class CrashedError(DeviceError):
    """A kernel ended its own context by what it did, such as an access outside all memory: the product is wrong.

    Always fatal. The launch was waited for, so that no other can be meant.
    """

    exit_code = 1


class OutsideWriteError(ProductError):
    """A kernel stored outside its buffers, or into one that is read-only: seen after the launch, on a real card."""


class BindingError(Exception):
    """One driver call that failed, as a binding tells it: the call, CUresult, and the JIT's log.

    Stays inside this room: a device turns it into a DeviceError that says what it means.
    """

    def __init__(self, call: str, code: int, log: str = "") -> None:
        super().__init__(f"{call}: {code}")
        self.call = call
        self.code = code
        self.log = log
