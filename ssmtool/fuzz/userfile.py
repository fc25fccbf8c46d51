"""Targets of a user's own: a Python file with a draw and a formula for each kernel (docs/fuzz.md is its manual).

    def draw_scale(draw):                       # one random launch of the kernel `scale`
        n = draw.integer("n", 0, 1000)
        return {"grid": max(1, -(-n // 128)), "block": 128,
                "args": {"y": draw.output(n), "x": draw.array("x", n), "a": draw.number("a"), "n": n}}

    def scale(y, x, a, n):                      # what it must leave, in the precision of what it is given
        return {"y": a * x}

The file is the user's program: running it is what was asked for. Whatever it does wrong is told with its line.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from math import prod
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.values import F32, FILLS, MODEST, Source
from ssmtool.golden.case import DTYPES

PREFIX = "draw_"
# Of one array, 1 GiB: a slip of the pen is told before it takes the machine's memory.
_MOST_ELEMENTS = 1 << 28


class Output:
    """A buffer that the kernel writes and that nothing has written before: `draw.output(...)`."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape


class Draw:
    """What a user's `draw_...` is given. Every choice has a name; simpler rounds have smaller numbers."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._source = Source(choices)

    def integer(self, name: str, low: int, high: int) -> int:
        """A number from low to high, both included; low is the simplest."""
        return self._choices.integer(name, low, high)

    def pick(self, name: str, options: Sequence[Any]) -> Any:
        """One of the options; the first is the simplest."""
        return self._choices.pick(name, options)

    def array(
        self, name: str, *shape: int, low: float | None = None, high: float | None = None, special: bool = False
    ) -> F32:
        """Random float32: ones, zeros, small integers, bell-shaped, sparse, nearly cancelling, of wide ranges.

        With `low` and `high` spread evenly between them; with `special` also subnormal, huge, NaN and infinite.
        """
        sizes = _sizes(name, shape)
        if not all(sizes):
            return np.zeros(sizes, np.float32)
        if low is not None or high is not None:
            return self._source.uniform(
                name, *sizes, low=-1.0 if low is None else low, high=1.0 if high is None else high
            )
        return self._source.array(name, *sizes, fills=FILLS if special else (*MODEST, "pairs", "mixed"))

    def integers(self, name: str, *shape: int, low: int, high: int, dtype: Any = "int32") -> NDArray[Any]:
        """Random integers from low to high, both included; `dtype` is int8 to int64 or uint8 to uint64, as NumPy's."""
        kind = _integer_type(name, dtype)
        if high < low:
            raise ValueError(f"{name}: there is no integer from {low} to {high}")
        limits = np.iinfo(kind)
        if not limits.min <= low <= high <= limits.max:
            raise ValueError(f"{name}: {low} to {high} are no {kind.name}, which has {limits.min} to {limits.max}")
        sizes, span = _sizes(name, shape), high - low + 1
        words = self._source.stream.words(name, prod(sizes))
        if span > 1 << 32:
            words = words << np.uint64(32) | self._source.stream.words(f"{name}/low", prod(sizes))
        if span <= np.iinfo(np.uint64).max:
            words = words % np.uint64(span)
        # Modulo 2^64, as two's complement has it: what is drawn is within the type.
        return (words + np.uint64(low % (1 << 64))).view(np.int64).astype(kind).reshape(sizes)

    def number(self, name: str, low: float = -4.0, high: float = 4.0) -> np.float32:
        """A float32 of the interval in 256 steps; 1, or what is nearest to it, is the simplest."""
        step = self._choices.integer(f"value of {name}", 0, 256)
        start = min(max(1.0, low), high)
        return np.float32(start if step == 0 else low + (high - low) * (step - 1) / 255)

    def output(self, *shape: int) -> Output:
        """A buffer to be written."""
        return Output(_sizes("an output", shape))


def _integer_type(name: str, dtype: Any) -> np.dtype[Any]:
    """One of the integer types that a vector may hold. Raises ValueError."""
    try:
        kind: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind.kind not in "iu" or kind.name not in DTYPES:
        known = ", ".join(each for each in DTYPES if "int" in each)
        raise ValueError(f"{name}: dtype {dtype!r} is none of {known}")
    native: np.dtype[Any] = kind.newbyteorder("=")
    return native


def _sizes(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(int(each) for each in shape)
    if any(each < 0 for each in sizes):
        raise ValueError(f"{name}: shape {sizes}")
    if prod(sizes) > _MOST_ELEMENTS:
        raise ValueError(f"{name}: shape {sizes} has more than {_MOST_ELEMENTS} elements")
    return sizes


class UserFile:
    """The functions of a file: `draw_KERNEL` and `KERNEL`. Raises SsmtoolError, with file and line, for a wrong one."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        module = ModuleType("ssmtool_fuzz_file")
        module.__file__ = path
        # Where Python looks for it: dataclasses of the file, for one, do not work without.
        sys.modules[module.__name__] = module
        self._names: dict[str, Any] = module.__dict__
        try:
            code: CodeType = compile(text, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            raise SsmtoolError(
                f"is no Python: {str(getattr(error, 'msg', error)) or 'nested too deeply'}", path=path, line=line
            ) from None
        self.called(lambda: exec(code, self._names), 1)
        self.entries = tuple(
            name[len(PREFIX) :] for name, value in self._names.items() if name.startswith(PREFIX) and callable(value)
        )
        if not self.entries:
            raise SsmtoolError(
                "has no function draw_KERNEL, so it says how to launch nothing", path=path, hint="see docs/fuzz.md"
            )
        for entry in self.entries:
            if not callable(self._names.get(entry)):
                raise SsmtoolError(
                    f"has draw_{entry} but no function {entry}, the formula of what it must leave",
                    path=path, line=self.line(f"{PREFIX}{entry}"), hint="see docs/fuzz.md",
                )  # fmt: skip

    def function(self, name: str) -> Callable[..., Any]:
        """A function of the file."""
        found: Callable[..., Any] = self._names[name]
        return found

    def line(self, name: str) -> int:
        """Where a function begins."""
        return int(getattr(getattr(self._names[name], "__code__", None), "co_firstlineno", 1))

    def called(self, function: Callable[[], Any], line: int) -> Any:
        """What the function returns; what it raises is told with the file's own line.

        What it prints goes to standard error: the other one is the report's.
        """
        try:
            with np.errstate(all="ignore"), redirect_stdout(sys.stderr):
                return function()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: the file is not to end the command
            frames = traceback.extract_tb(error.__traceback__)
            own = [frame.lineno for frame in frames if frame.filename == self.path]
            words = (str(error).splitlines() or [""])[0]
            raise SsmtoolError(
                f"{type(error).__name__}{f': {words}' if words else ''}", path=self.path, line=(own or [line])[-1]
            ) from None
