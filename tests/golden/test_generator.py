"""Random bits: the published generator, and floats that no NumPy version rounds otherwise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ssmtool.golden.generator import Stream, philox, ramp

# Bits of the generator's version 1; vectors of others may rest on them.
PINNED_BELL = [1057348096, 1057417216]
PINNED_UNIFORM = [3171641504, 3182433030]
PINNED_UNIT = [1060392637, 1060485747]


def test_philox_gives_the_authors_known_answer() -> None:
    # Random123's kat_vectors: philox4x32 10 rounds, counter 0, key 0.
    assert [f"{int(word):08x}" for word in philox(np.zeros(1, np.uint64), (0, 0))[0]] == [
        "6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8",
    ]  # fmt: skip


def _by_hand(counter: int, key: tuple[int, int]) -> list[int]:
    x, k = [counter & 0xFFFFFFFF, counter >> 32, 0, 0], list(key)
    for _ in range(10):
        a, b = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [(b >> 32) ^ x[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ x[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return x


@pytest.mark.parametrize("counter", [1, 2**32 - 1, 2**32, 2**63 + 5])
def test_philox_equals_integer_arithmetic(counter: int) -> None:
    words = philox(np.array([counter], np.uint64), (0xDEADBEEF, 0xFFFFFFFF))[0].tolist()
    assert words == _by_hand(counter, (0xDEADBEEF, 0xFFFFFFFF))


def test_arrays_do_not_depend_on_each_other_or_on_their_length() -> None:
    stream = Stream("seed")
    assert np.array_equal(stream.words("a", 7), stream.words("a", 400)[:7])
    assert not np.array_equal(stream.words("a", 7), stream.words("b", 7))
    assert not np.array_equal(stream.words("a", 7), Stream("other").words("a", 7))


def test_first_values_stay_as_they_were_published() -> None:
    stream = Stream("pinned")
    assert stream.bell("x", (2,)).view(np.uint32).tolist() == PINNED_BELL
    assert stream.uniform("x", (2,), -0.1, 0.0).view(np.uint32).tolist() == PINNED_UNIFORM
    assert stream.unit("x", (1, 2)).view(np.uint32).reshape(-1).tolist() == PINNED_UNIT


def test_bell_is_exact_in_fp32_and_has_its_spread() -> None:
    stream = Stream("spread")
    integers, values = stream.bell_integers("x", (10000,)), stream.bell("x", (10000,), -2)
    assert all(Fraction(float(value)) == Fraction(int(n), 2**18) for n, value in zip(integers, values, strict=True))
    assert abs(values.mean()) < 0.01 and abs(values.std() * 4 - 0.8165) < 0.02


def test_unit_vectors_have_norm_one() -> None:
    norms = np.linalg.norm(Stream("norms").unit("q", (50, 128)).astype(np.float64), axis=-1)
    assert np.abs(norms - 1).max() < 1e-7


def test_ramp_ends_where_it_says() -> None:
    assert ramp(-2, 3, 11)[[0, -1]].tolist() == [-2, 3]
