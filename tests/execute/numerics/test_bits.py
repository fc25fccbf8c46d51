"""Field, permute and search operations against the ISA's own loops, written out in Python."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ssmtool.execute.numerics import bits
from ssmtool.execute.numerics.harness import compile_one

RNG = np.random.default_rng(3)
COUNT = 4000


def words(size: int) -> np.ndarray:
    value = RNG.integers(0, 1 << 63, COUNT, dtype=np.uint64) * np.uint64(2) + RNG.integers(0, 2, COUNT, dtype=np.uint64)
    return (value >> np.uint64(64 - size)).astype(f"u{size // 8}")


def bfe(x: int, position: int, length: int, size: int, signed: bool) -> int:
    top = size - 1
    sign = 0 if not signed or length == 0 else x >> min(position + length - 1, top) & 1
    return sum((x >> (position + i) & 1 if i < length and position + i <= top else sign) << i for i in range(size))


def bfi(x: int, y: int, position: int, length: int, size: int) -> int:
    for i in range(length):
        if position + i < size:
            y = y & ~(1 << (position + i)) | (x >> i & 1) << (position + i)
    return y


def fns(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return 0xFFFFFFFF


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("size", [32, 64])
def test_bfe_fields_past_the_top_or_empty(size: int, signed: bool) -> None:
    x, position, length = words(size), RNG.integers(0, 90, COUNT), RNG.integers(0, 90, COUNT)
    mapped = compile_one(lambda b, v: bits.bfe(b, *v, signed), (f"b{size}", "b32", "b32"), f"b{size}")
    got = mapped(x, position.astype(np.uint32), length.astype(np.uint32))
    want = [bfe(int(a), int(p), int(n), size, signed) for a, p, n in zip(x, position, length, strict=True)]
    assert got.tolist() == want


@pytest.mark.parametrize("size", [32, 64])
def test_bfi_cuts_what_passes_the_top(size: int) -> None:
    x, y, position, length = words(size), words(size), RNG.integers(0, 90, COUNT), RNG.integers(0, 90, COUNT)
    mapped = compile_one(lambda b, v: bits.bfi(b, *v), (f"b{size}", f"b{size}", "b32", "b32"), f"b{size}")
    got = mapped(x, y, position.astype(np.uint32), length.astype(np.uint32))
    rows = zip(x, y, position, length, strict=True)
    assert got.tolist() == [bfi(int(a), int(c), int(p), int(n), size) for a, c, p, n in rows]


def test_fns_searches_both_ways_from_the_base() -> None:
    mask, base, offset = words(32) & words(32), RNG.integers(0, 32, COUNT), RNG.integers(-33, 34, COUNT)
    mapped = compile_one(lambda b, v: bits.fns(b, *v), ("b32", "b32", "b32"), "b32")
    got = mapped(mask, base.astype(np.uint32), offset.astype(np.int32))
    assert got.tolist() == [fns(int(m), int(s), int(o)) for m, s, o in zip(mask, base, offset, strict=True)]


@pytest.mark.parametrize(
    ("emit", "amount", "want"),
    [
        (lambda b, v: bits.shl(b, *v), 32, 0),
        (lambda b, v: bits.shl(b, *v), 0xFFFFFFFF, 0),
        (lambda b, v: bits.shr(b, *v, True), 32, 0xFFFFFFFF),
        (lambda b, v: bits.shr(b, *v, False), 33, 0),
        (lambda b, v: bits.shl(b, *v), 31, 0x80000000),
    ],
)
def test_shifts_by_the_width_and_more_clamp(emit: Callable[..., object], amount: int, want: int) -> None:
    mapped = compile_one(emit, ("b32", "b32"), "b32")
    assert mapped(np.array([0x80000001], np.uint32), np.array([amount], np.uint32))[0] == want


def test_prmt_nibbles_pick_bytes_or_repeat_signs() -> None:
    low, high, selector = words(32), words(32), words(32)
    mapped = compile_one(lambda b, v: bits.prmt(b, *v), ("b32",) * 3, "b32")
    want = []
    for a, c, s in zip(low.tolist(), high.tolist(), selector.tolist(), strict=True):
        source = (c << 32 | a).to_bytes(8, "little")
        picked = [source[s >> 4 * i & 7] for i in range(4)]
        signs = [0xFF if byte & 0x80 else 0 for byte in picked]
        flags = [s >> 4 * i & 8 for i in range(4)]
        want.append(
            int.from_bytes(bytes(g if f else p for p, g, f in zip(picked, signs, flags, strict=True)), "little")
        )
    assert mapped(low, high, selector).tolist() == want
