"""What makes a case whole: names that resolve, shapes that fit, expectations that say so where they are not finite."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.golden.case import DTYPES, Argument, Buffer, CaseError, GoldenCase, Launch, Meta, Policy, is_poison
from ssmtool.golden.policies import POLICIES

# Scalars and the values they may have.
_INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
_FLOATS = {"float32": 3.4028234663852886e38, "float64": math.inf}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_CASE_NAME = re.compile(r"[A-Za-z0-9_.+-]+(/[A-Za-z0-9_.+-]+)*\Z")
_MAX_BUFFER = 1 << 40
_MAX_RUNS = 64
_MAX_LAUNCHES = 1 << 14
# x, y, z of grid and block: the limits of compute capability 3.0 and later.
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_BLOCK = (1024, 1024, 64)


def check_case(case: GoldenCase) -> None:
    """Raise CaseError, naming the file and the entry, unless the case is whole and consistent."""
    try:
        _check(case)
    except CaseError as error:
        error.path = error.path or (str(case.path) if case.path else None)
        raise


def unedited(meta: Meta) -> bool:
    """Whether the title is that of `golden new`'s template: what is expected are then zeros that nobody meant."""
    return meta.title.startswith("EDIT")


def _check(case: GoldenCase) -> None:
    meta = case.meta
    _require(_CASE_NAME.match(meta.name) and ".." not in meta.name, f"name {meta.name[:80]!r} is not a file's name")
    _require(meta.buffers, "a case needs a buffer")
    _require(1 <= len(meta.runs) <= _MAX_RUNS, f"a case has 1 to {_MAX_RUNS} runs, not {len(meta.runs)}")
    _require(len({run.name for run in meta.runs}) == len(meta.runs), "two runs have the same name")
    for name, policy in meta.policies.items():
        _check_policy(name, policy)
    for name, buffer in meta.buffers.items():
        _check_buffer(name, buffer, case)
    for held, when in ((case.before, "before"), (case.after, "after")):
        for name in held:
            _require(name in meta.buffers, f"array '{when}.{name}' belongs to no buffer")
    if all(buffer.after == "any" for buffer in meta.buffers.values()):
        raise CaseError("every buffer may hold anything after the runs: nothing would be checked")
    for run in meta.runs:
        _require(1 <= len(run.launches) <= _MAX_LAUNCHES, f"run {run.name!r} has {len(run.launches)} launches")
        for number, launch in enumerate(run.launches):
            _check_launch(launch, f"run {run.name!r}, launch {number} ({launch.entry})", case)


def _check_policy(name: str, policy: Policy) -> None:
    _require(name not in POLICIES, f"policy {name!r} has the name of a built-in one")
    limits = [value for value in (policy.nmse, policy.max_rms, policy.max_ulp) if value is not None]
    _require(policy.exact or limits, f"policy {name!r} has no limit: anything would pass")
    _require(not (policy.exact and (limits or policy.atol)), f"policy {name!r} is exact and has limits")
    for value in (*limits, policy.atol):
        _require(math.isfinite(value) and value >= 0, f"policy {name!r}: {value} is no limit")


def _check_buffer(name: str, buffer: Buffer, case: GoldenCase) -> None:
    where = f"buffer {name!r}"
    _require(_NAME.match(name), f"{where}: a name is letters, digits and _")
    _require(buffer.dtype in DTYPES, f"{where}: type {buffer.dtype!r} is none of {', '.join(DTYPES)}")
    _require(buffer.shape and all(size > 0 for size in buffer.shape), f"{where}: shape {list(buffer.shape)}")
    _require(buffer.nbytes <= _MAX_BUFFER, f"{where}: {buffer.nbytes} bytes")
    _require(
        len(buffer.axes) == len(buffer.shape) and len(set(buffer.axes)) == len(buffer.axes),
        f"{where}: axes {list(buffer.axes)} do not name the {len(buffer.shape)} dimensions of its shape",
    )
    _require(set(buffer.group) <= set(buffer.axes), f"{where}: group {list(buffer.group)} is not among its axes")
    if buffer.rows is not None:
        _require(
            buffer.rows == tuple(sorted(set(buffer.rows))) and buffer.rows and buffer.rows[0] >= 0
            and buffer.rows[-1] < buffer.shape[0],
            f"{where}: rows {list(buffer.rows)[:8]} must ascend and be among the {buffer.shape[0]} of its first axis",
        )  # fmt: skip
    if buffer.after == "expected":
        _require(
            buffer.policy in {**POLICIES, **case.meta.policies},
            f"{where}: policy {buffer.policy!r} is none of {', '.join([*POLICIES, *case.meta.policies])}",
        )
        exact = buffer.policy is not None and case.policy(name).exact
        _require(
            exact or buffer.dtype.startswith("float"), f"{where}: integers need an exact policy, not {buffer.policy!r}"
        )
    else:
        _require(buffer.policy is None, f"{where}: a policy, but nothing is expected")
    _check_array("before", name, buffer, case.before.get(name), needed=buffer.before == "given")
    _check_array("after", name, buffer, case.after.get(name), needed=buffer.after == "expected")
    if buffer.after == "expected":
        _check_finite(name, buffer, case.after[name])
    else:
        _require(buffer.nan == 0 and buffer.inf == 0, f"{where}: counts of NaN or infinity, but nothing is expected")


def _check_array(when: str, name: str, buffer: Buffer, array: NDArray[Any] | None, *, needed: bool) -> None:
    if array is None:
        _require(not needed, f"array '{when}.{name}' is missing")
        return
    _require(needed, f"array '{when}.{name}' is there, but the buffer is {getattr(buffer, when)!r} {when}")
    _require(
        array.dtype.str == DTYPES[buffer.dtype],
        f"array '{when}.{name}' is {array.dtype}, the buffer is {buffer.dtype}",
    )
    _require(
        array.shape == buffer.stored_shape,
        f"array '{when}.{name}' has shape {list(array.shape)}, the buffer {list(buffer.stored_shape)}",
    )


def _check_finite(name: str, buffer: Buffer, array: NDArray[Any]) -> None:
    """A NaN that nobody meant is the most common way for a vector to be useless: it must be announced."""
    if array.dtype.kind != "f":
        return
    kept = is_poison(array)
    _require(
        buffer.before == "poison" or not kept.any(),
        f"array 'after.{name}' holds the poison's bits, but the buffer was never poison",
    )
    for word, found, declared in (
        ("nan", int((np.isnan(array) & ~kept).sum()), buffer.nan),
        ("inf", int(np.isinf(array).sum()), buffer.inf),
    ):
        _require(found == declared, f"array 'after.{name}' has {found} {word}, the buffer declares {declared}")


def _check_launch(launch: Launch, where: str, case: GoldenCase) -> None:
    _require(_NAME.match(launch.entry.replace("$", "_")), f"{where}: {launch.entry[:80]!r} is no kernel's name")
    for word, sizes, limits in (("grid", launch.grid, _MAX_GRID), ("block", launch.block, _MAX_BLOCK)):
        fits = all(1 <= size <= limit for size, limit in zip(sizes, limits, strict=True))
        _require(fits, f"{where}: {word} {list(sizes)} is outside 1 to {list(limits)}")
    _require(math.prod(launch.block) <= 1024, f"{where}: block {list(launch.block)} has more than 1024 threads")
    _require(0 <= launch.shared_bytes <= 1 << 20, f"{where}: {launch.shared_bytes} bytes of shared memory")
    _require(len({each.name for each in launch.args}) == len(launch.args), f"{where}: two arguments of one name")
    for argument in launch.args:
        _check_argument(argument, f"{where}, argument {argument.name!r}", case)


def _check_argument(argument: Argument, where: str, case: GoldenCase) -> None:
    if argument.buffer is not None:
        buffer = case.meta.buffers.get(argument.buffer)
        if buffer is None:
            raise CaseError(f"{where}: no buffer is named {argument.buffer!r}; {_listed(case.meta.buffers)}")
        _require(argument.type is None and argument.value is None, f"{where}: a buffer has no type and no value")
        fits = 0 <= argument.offset < math.prod(buffer.shape)
        _require(fits, f"{where}: offset {argument.offset} is outside the {math.prod(buffer.shape)} elements")
        return
    _require(argument.offset == 0, f"{where}: an offset, but no buffer")
    if argument.type == "null":
        _require(argument.value is None, f"{where}: null has no value")
    elif argument.type in _INTEGERS:
        low, high = _INTEGERS[argument.type]
        fits = isinstance(argument.value, int) and low <= argument.value <= high
        _require(fits, f"{where}: {argument.value!r} is no {argument.type}")
    elif argument.type in _FLOATS:
        value = argument.value
        _require(
            value is not None and math.isfinite(value) and abs(value) <= _FLOATS[argument.type],
            f"{where}: {value!r} is no finite {argument.type}",
        )
    else:
        kinds = ", ".join(["null", *_INTEGERS, *_FLOATS])
        raise CaseError(f"{where}: neither a buffer nor one of the types {kinds}")


def _listed(names: Iterable[str]) -> str:
    return f"there are: {', '.join(names)}"


def _require(holds: object, message: str) -> None:
    if not holds:
        raise CaseError(message)
