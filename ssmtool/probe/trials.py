"""What a probe runs: forms, and the operands they are applied to, in chunks that fit anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssmtool.probe import stress
from ssmtool.probe.inputs import CASES, inputs, pairs
from ssmtool.probe.reference import executed
from ssmtool.probe.variants import Variant, one, variants

Operands = dict[tuple[str, ...], list[NDArray[Any]]]

CHUNK = 1 << 19
_PACK = 32
_ALONE = 8

UNITS = ("ex2", "rcp", "rsqrt", "sqrt", "lg2", "sin", "cos")
# unit -> first bits of binades swept whole: all 2^23 mantissas of each. ex2 has the ones where its fraction moves
# (below 2^-24 every bit of x is shifted out, from 2^7 on it overflows), both signs; roots have an even and an odd one.
SWEEPS: dict[str, tuple[int, ...]] = {
    "ex2": (0x3F800000, 0xBF800000, 0x3F000000, 0xBF000000, 0x33800000, 0xB3800000, 0x42800000, 0xC2800000, 0xC3000000),
    "rcp": (0x3F800000, 0xC0000000, 0x7E800000, 0x00000000),
    "rsqrt": (0x3F800000, 0x40000000, 0x00000000),
    "sqrt": (0x3F800000, 0x40000000, 0x00000000),
    "lg2": (0x3F800000, 0x40000000, 0x3F000000, 0x00000000),
    "sin": (0x3F800000, 0xC0800000, 0x33800000),
    "cos": (0x3F000000, 0x3F800000, 0xC0800000),
}
_PAIRS = 8192
# A prime step, so that every exponent is met with ever other mantissas.
_STEP, _QUICK_STEP = 8191, 262139
_HIGH_WORDS, _QUICK_HIGH_WORDS = 1 << 18, 1 << 13


@dataclass(frozen=True)
class Trial:
    """`title` is for reports and groups trials of a kind; `cases` of every form, `chunks()` gives their operands.

    `answered` says that the executor runs these forms; of the others a card's answers are only hashed.
    """

    title: str
    forms: tuple[Variant, ...]
    cases: int
    chunks: Callable[[], Iterator[Operands]]
    answered: bool = True


def trials(*, quick: bool = False) -> list[Trial]:
    """All of them in order. `quick` takes every eighth form and every 64th input."""
    return [*_units(quick), *_edges(quick), *_stress(quick)]


def _packed(forms: Sequence[Variant], size: int) -> Iterator[tuple[Variant, ...]]:
    for start in range(0, len(forms), size):
        yield tuple(forms[start : start + size])


def _edges(quick: bool) -> Iterator[Trial]:
    forms = variants()[:: 8 if quick else 1]
    known = [form for form in forms if executed(form)]
    unknown = [form for form in forms if form not in known]
    for answered, group, size in ((True, known, _PACK), (False, unknown, _ALONE)):
        for pack in _packed(group, size):
            kinds = {form.operands for form in pack}

            def chunks(kinds: set[tuple[str, ...]] = kinds) -> Iterator[Operands]:
                yield {each: [inputs(kind, place) for place, kind in enumerate(each)] for each in kinds}

            yield Trial("edge inputs", pack, CASES, chunks, answered)


def _stress(quick: bool) -> Iterator[Trial]:
    forms = [form for form in stress.forms()[:: 8 if quick else 1] if executed(form)]
    for pack in _packed(forms, _PACK):
        kinds = {form.operands for form in pack}

        def chunks(kinds: set[tuple[str, ...]] = kinds) -> Iterator[Operands]:
            yield {each: stress.stress(each) for each in kinds}

        yield Trial("special values and the format's edges", pack, stress.CASES, chunks)


def _units(quick: bool) -> Iterator[Trial]:
    for unit in UNITS:
        forms = tuple(one(f"{unit}.approx{ftz}.f32", "f32", "f32") for ftz in (".ftz", ""))
        for first in SWEEPS[unit]:
            step = 64 if quick else 1
            title = f"{unit}: every mantissa from 0x{first:08x}"
            yield Trial(title, forms, (1 << 23) // step, _words(("f32",), first, step, (1 << 23) // step))
        step = _QUICK_STEP if quick else _STEP
        count = (1 << 32) // step
        yield Trial(f"{unit}: the whole range", forms, count, _words(("f32",), 0, step, count))
    wide = tuple(one(op, "f64", "f64") for op in ("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f64"))
    count = _QUICK_HIGH_WORDS if quick else _HIGH_WORDS
    step = (1 << 32) // count - 1
    yield Trial("rcp, rsqrt of f64: high words", wide, count, _words(("f64",), 0, step, count, low=32))
    divisions = tuple(
        one(f"div.{how}{ftz}.f32", "f32", "f32", "f32") for how in ("approx", "full") for ftz in (".ftz", "")
    )

    def chunks() -> Iterator[Operands]:
        yield {("f32", "f32"): [each.astype(np.uint64) for each in pairs(_PAIRS)]}

    yield Trial("approximate division", divisions, _PAIRS, chunks)


def _words(kinds: tuple[str, ...], first: int, step: int, count: int, low: int = 0) -> Callable[[], Iterator[Operands]]:
    """Bits first, first + step, ...; shifted up by `low`, with ones below."""

    def chunks() -> Iterator[Operands]:
        for start in range(0, count, CHUNK):
            index = np.arange(start, min(start + CHUNK, count), dtype=np.uint64)
            bits = np.uint64(first) + index * np.uint64(step)
            yield {kinds: [bits << np.uint64(low) | np.uint64((1 << low) - 1)]}

    return chunks
