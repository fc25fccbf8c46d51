"""Standard output and error that never raise: a full disk, a closed stream and a reader that left are no tracebacks.

A command's exit code is its verdict, whether or not somebody reads the report to its end.
"""

from __future__ import annotations

import io
import os
import sys


class _Unfailing(io.FileIO):
    """A descriptor whose writes do not raise; what went wrong first is kept in `failure`."""

    failure: OSError | None = None

    def write(self, data: object, /) -> int:
        """Write, or note why not; all is reported as written, so that no buffer holds on to it."""
        if self.failure is None:
            try:
                return super().write(data)  # type: ignore[arg-type]
            except OSError as error:
                self.failure = error
        return memoryview(data).nbytes  # type: ignore[arg-type]


_guarded: list[_Unfailing] = []


def guard_streams() -> None:
    """Put unfailing streams in the place of stdout and stderr; ones that are closed lead nowhere from now on."""
    # Or the next file that is opened, the header for one, would be the stream that others write to.
    lowest = os.open(os.devnull, os.O_RDWR)
    while lowest <= 2:
        lowest = os.open(os.devnull, os.O_RDWR)
    os.close(lowest)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        raw = _Unfailing(descriptor, "w", closefd=False)
        _guarded.append(raw)
        stream = io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=old.encoding if old else "utf-8",
            # A file name may hold what no encoding writes.
            errors="backslashreplace",
            line_buffering=name == "stderr" or raw.isatty(),
        )
        setattr(sys, name, stream)


def undelivered(code: int) -> int:
    """Flush both streams; the exit code, which is never 0 when the report did not get where it should.

    A reader that left (`| head`) had what it wanted and changes nothing.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    failure = _guarded[0].failure if _guarded else None
    if failure is None or isinstance(failure, BrokenPipeError):
        return code
    print(f"error: the report could not be written: {failure.strerror or failure}", file=sys.stderr, flush=True)
    return code or 2
