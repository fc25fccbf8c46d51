"""One kernel of a user's file as a target: its draw becomes a case, its formula the judge."""

from __future__ import annotations

from math import prod
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ssmtool.errors import SsmtoolError
from ssmtool.fuzz.blank import Blank
from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.failure import Failure
from ssmtool.fuzz.target import CaseTarget
from ssmtool.fuzz.tolerance import by_formula
from ssmtool.fuzz.userfile import PREFIX, Draw, Output, UserFile
from ssmtool.golden import Argument, Buffer, GoldenCase, Policy, Run
from ssmtool.golden.case import DTYPES
from ssmtool.golden.policies import POLICIES
from ssmtool.verify.loaded import Loaded

Array = NDArray[Any]

_KEYS = ("grid", "block", "shared_bytes", "args", "policy", "group")
_AXES = "ijklmn"
# The axis of a buffer that the user's launch has without elements: a real one has at least one, which must stay.
_EMPTY = "none"
_MOST_THREADS = 1 << 22
_TYPES = {np.dtype(numpy): name for name, numpy in DTYPES.items()}


class UserTarget(CaseTarget):
    """A kernel with its two functions. Whatever they get wrong is an SsmtoolError with the file's line."""

    def __init__(self, file: UserFile, entry: str) -> None:
        self.name = entry
        self.kernels = (entry,)
        self._file = file

    def draw(self, choices: Choices) -> GoldenCase:
        """The launch that the file draws, as a case without expectations."""
        drawer = f"{PREFIX}{self.name}"
        drawn = self._file.called(lambda: self._file.function(drawer)(Draw(choices)), self._file.line(drawer))
        if not isinstance(drawn, dict):
            raise self._wrong(f"returns {type(drawn).__name__}, not a dict")
        if strange := [key for key in drawn if key not in _KEYS]:
            raise self._wrong(f"returns a key {strange[0]!r}; there are {', '.join(_KEYS)}")
        given = drawn.get("args")
        if not isinstance(given, dict) or not given or not all(isinstance(name, str) for name in given):
            raise self._wrong('"args" must be a dict: every parameter in order, by its name')
        grid, block = self._extent(drawn, "grid"), self._extent(drawn, "block")
        if prod(grid) * prod(block) > _MOST_THREADS:
            raise self._wrong(f"launches {prod(grid) * prod(block)} threads; at most {_MOST_THREADS} are allowed")
        shared = drawn.get("shared_bytes", 0)
        if not isinstance(shared, int | np.integer) or not 0 <= shared <= 1 << 20:
            raise self._wrong(f'"shared_bytes" is {shared!r}, not a number of bytes')
        b = Blank(f"fuzz/{self.name}", _title(choices))
        policies: dict[str, Policy] = {}
        written = set(self._call(self._inputs(given)))
        args = [self._argument(b, name, value, drawn, written, policies) for name, value in given.items()]
        if stray := written - set(given):
            raise self._wrong(f"returns {min(stray, key=str)!r}, which is no argument of the launch", self.name)
        if not written:
            raise self._wrong("returns nothing that the kernel leaves", self.name)
        b.add(self.name, grid, block, int(shared), args)
        return b.case(policies)

    def judge(self, case: GoldenCase, loaded: Loaded) -> Failure | None:
        """By the file's formula, within the policy. What cannot be launched is the draw's doing: its line is told."""
        from ssmtool.execute import LaunchError

        try:
            return by_formula(self.name, case, loaded, self._formula)
        except LaunchError as error:
            raise self._wrong(f"cannot be launched: {error.message}") from None

    # -------------------------------------------------------------------------------------------------- the launch

    def _extent(self, drawn: dict[str, Any], key: str) -> tuple[int, int, int]:
        value = drawn.get(key)
        sizes = [value] if isinstance(value, int | np.integer) else value
        if not isinstance(sizes, list | tuple) or not 1 <= len(sizes) <= 3:
            raise self._wrong(f'"{key}" is {value!r}; it must be a number, or up to three')
        if not all(isinstance(each, int | np.integer) and not isinstance(each, bool) and each > 0 for each in sizes):
            raise self._wrong(f'"{key}" is {value!r}; sizes are whole numbers above 0')
        x, y, z = (*(int(each) for each in sizes), 1, 1)[:3]
        return x, y, z

    def _argument(
        self, b: Blank, name: str, value: Any, drawn: dict[str, Any], written: set[str], policies: dict[str, Policy]
    ) -> Argument:  # fmt: skip
        """A buffer of the case, or a scalar."""
        if value is None:
            return Argument(name=name, type="null")
        if isinstance(value, Output):
            if name not in written:
                raise self._wrong(f"does not return {name}, which is an output of the launch", self.name)
            self._buffer(b, name, None, value.shape, np.dtype(np.float32), drawn, policies, written=True)
        elif isinstance(value, np.ndarray):
            if value.dtype not in _TYPES:
                raise self._wrong(f"{name} is an array of {value.dtype}; there are {', '.join(DTYPES)}")
            self._buffer(b, name, value, value.shape, value.dtype, drawn, policies, written=name in written)
        else:
            return self._scalar(name, value)
        return Argument(name=name, buffer=name)

    def _buffer(
        self, b: Blank, name: str, array: Array | None, shape: tuple[int, ...], dtype: np.dtype[Any],
        drawn: dict[str, Any], policies: dict[str, Policy], *, written: bool,
    ) -> None:  # fmt: skip
        if not shape or len(shape) > len(_AXES):
            raise self._wrong(f"{name} has {len(shape)} axes; a buffer has 1 to {len(_AXES)}")
        if prod(shape) == 0:
            kept = Buffer(dtype=_TYPES[dtype], shape=(1,), axes=(_EMPTY,), before="poison", after="unchanged")
            b.buffer(name, None, kept)
            return
        axes = tuple(_AXES[: len(shape)])
        grouped = drawn.get("group", {}).get(name, 0) if isinstance(drawn.get("group", {}), dict) else None
        if not isinstance(grouped, int) or not 0 <= grouped <= len(shape):
            raise self._wrong(f'"group" of {name} is {grouped!r}; it is how many of its first axes are compared apart')
        policy = self._policy(name, dtype, drawn, policies) if written else None
        described = Buffer(
            dtype=_TYPES[dtype],
            shape=tuple(map(int, shape)),
            axes=axes,
            before="given" if array is not None else "poison",
            after="expected" if written else "unchanged",
            policy=policy,
            group=axes[:grouped] if written else (),
        )
        b.buffer(name, array, described)

    def _policy(self, name: str, dtype: np.dtype[Any], drawn: dict[str, Any], policies: dict[str, Policy]) -> str:
        """The name of a buffer's tolerance; one of the file's own is added to `policies`."""
        table = drawn.get("policy", {})
        if not isinstance(table, dict):
            raise self._wrong('"policy" must be a dict: the name of an output to that of a policy, or to limits')
        wanted = table.get(name, "elementwise" if dtype.kind == "f" else "exact")
        if isinstance(wanted, str) and wanted in POLICIES:
            return wanted
        if not isinstance(wanted, dict):
            known = ", ".join(POLICIES)
            raise self._wrong(f'"policy" of {name} is {wanted!r}: neither {known} nor a dict of limits')
        keys = Policy.__struct_fields__
        if strange := [key for key in wanted if key not in keys]:
            raise self._wrong(f'"policy" of {name} has a key {strange[0]!r}; there are {", ".join(keys)}')
        try:
            policy = msgspec.convert(wanted, Policy)
        except msgspec.ValidationError as error:
            raise self._wrong(f'"policy" of {name} is {wanted!r}: {error}') from None
        limits = [each for each in (policy.nmse, policy.max_rms, policy.max_ulp) if each is not None]
        if not (limits or policy.exact) or not all(0 <= each < np.inf for each in (*limits, policy.atol)):
            # With such a one every result is right, or none.
            raise self._wrong(
                f'"policy" of {name} is {wanted!r}: it needs a limit, and limits are finite and not below 0'
            )
        policies[f"of_{name}"] = policy
        return f"of_{name}"

    def _scalar(self, name: str, value: Any) -> Argument:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise self._wrong(f"{name} is {type(value).__name__}: an argument is an array, an output, a number or None")
        if isinstance(value, np.integer | np.floating):
            kind = value.dtype.name
        else:
            kind = "int32" if isinstance(value, int) else "float32"
        plain = int(value) if isinstance(value, int | np.integer) else float(value)
        if kind == "float32":
            plain = float(np.float32(plain))
        if kind == "int32" and not -(2**31) <= plain < 2**31:
            raise self._wrong(f"{name} is {plain}, which is no int32; numpy.int64({plain}) is one of 64 bits")
        if not np.isfinite(plain):
            raise self._wrong(f"{name} is {plain}: a number must be finite")
        return Argument(name=name, type=kind, value=plain)

    # ------------------------------------------------------------------------------------------------- the formula

    def _inputs(self, given: dict[str, Any]) -> dict[str, Any]:
        """What the formula sees of a launch as it was drawn."""
        seen: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, Output):
                seen[name] = np.full(value.shape, np.nan)
            elif isinstance(value, np.ndarray):
                seen[name] = value.astype(np.float64) if value.dtype.kind == "f" else value.copy()
            else:
                seen[name] = value
        return seen

    def _formula(self, case: GoldenCase, run: Run, dtype: type) -> dict[str, Array]:
        """Every buffer after the launch, in the buffers' own types."""
        seen: dict[str, Any] = {}
        for argument in run.launches[0].args:
            name = argument.name
            if argument.buffer is None:
                floats = (argument.type or "").startswith("float")
                seen[name] = dtype(argument.value) if floats else argument.value
                continue
            buffer, image = case.meta.buffers[name], case.image(name)
            if buffer.axes == (_EMPTY,):
                image = image[:0]
            if buffer.before == "poison":
                image = np.full(image.shape, np.nan, image.dtype)
            seen[name] = image.astype(dtype) if image.dtype.kind == "f" else image.copy()
        shapes = {name: value.shape for name, value in seen.items() if isinstance(value, np.ndarray)}
        found = self._call(seen)
        after = {name: case.image(name) for name in case.meta.buffers}
        for name, result in found.items():
            if name not in shapes:
                raise self._wrong(f"returns {name!r}, which is no buffer of the launch", self.name)
            if result.shape != shapes[name]:
                raise self._wrong(f"returns {name} of shape {result.shape}; the buffer has {shapes[name]}", self.name)
            if result.dtype.kind not in "fiub":
                raise self._wrong(f"returns {name} of type {result.dtype}, which is no number", self.name)
            if result.size:
                with np.errstate(all="ignore"):
                    after[name] = result.astype(after[name].dtype)
        return after

    def _call(self, seen: dict[str, Any]) -> dict[str, Array]:
        line = self._file.line(self.name)
        found = self._file.called(lambda: self._file.function(self.name)(**seen), line)
        if not isinstance(found, dict):
            raise self._wrong(f"returns {type(found).__name__}, not a dict of what it leaves", self.name)
        arrays: dict[str, Array] = self._file.called(
            lambda: {name: np.asarray(each) for name, each in found.items()}, line
        )
        return arrays

    def _wrong(self, what: str, function: str | None = None) -> SsmtoolError:
        name = function or f"{PREFIX}{self.name}"
        return SsmtoolError(
            f"{name}: {what}", path=self._file.path, line=self._file.line(name), hint="see docs/fuzz.md"
        )


def _title(choices: Choices) -> str:
    """The sizes and options that were drawn; not which fill an array has."""
    sizes = [f"{name} {value}" for name, value in choices.values.items() if name != "data" and " of " not in name]
    return ", ".join(sizes) or "a launch"
