"""Arguments as parameter bytes: what fits, what does not, and what people read then."""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssmtool.execute.arguments import Bound, bind
from ssmtool.execute.errors import ArgumentError
from ssmtool.execute.layout import READ_ONLY, AllocationSlot, Param
from ssmtool.execute.memory import Buffer, Memory, Uninitialised
from ssmtool.execute.scalars import scalar_bytes

WIDTHS = {"8": 1, "16": 2, "32": 4, "64": 8}


def one(kind: str | None, value: Any, size: int | None = None, **more: Any) -> Bound:
    size = size or int((kind or "b8")[1:]) // 8
    return bind("k", [Param("k_param_0", kind, 0, size)], [value], source_names=("p",), **more)


@given(st.sampled_from("usb"), st.sampled_from(sorted(WIDTHS)), st.integers(-(1 << 65), 1 << 65))
def test_an_integer_fits_as_signed_or_as_unsigned(letter: str, width: str, value: int) -> None:
    size = WIDTHS[width]
    if -(1 << 8 * size - 1) <= value < 1 << 8 * size:
        data = scalar_bytes(value, letter + width, size)
        assert value in (int.from_bytes(data, "little", signed=True), int.from_bytes(data, "little"))
        assert len(data) == size
    else:
        with pytest.raises(ValueError, match="does not fit"):
            scalar_bytes(value, letter + width, size)


@given(st.floats(width=64, allow_nan=False, allow_infinity=False))
def test_a_float_is_rounded_to_the_nearest(value: float) -> None:
    if abs(value) >= 2.0**128 - 2.0**103:  # half a unit beyond the largest float
        with pytest.raises(ValueError, match="beyond the range"):
            scalar_bytes(value, "f32", 4)
        return
    (got,) = struct.unpack("<f", scalar_bytes(value, "f32", 4))
    down, up = (float(np.nextafter(np.float32(got), np.float32(side))) for side in (-np.inf, np.inf))
    error = abs(Fraction(got) - Fraction(value))
    assert all(abs(Fraction(each) - Fraction(value)) >= error for each in (down, up) if np.isfinite(each))


@given(st.integers(0, (1 << 32) - 1))
def test_a_numpy_float_of_the_very_type_keeps_its_bits_nans_too(bits: int) -> None:
    value = np.array(bits, np.uint32).view(np.float32)[()]
    for kind in ("f32", "b32"):
        assert scalar_bytes(value, kind, 4) == bits.to_bytes(4, "little")


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("u8", 300, "300 does not fit the 8 bits of .u8"),
        ("s32", 1 << 32, "does not fit"),
        ("u32", 2.0, "is a float, the parameter is an integer"),
        ("u32", np.float32(2), "is a float"),
        ("b32", 2.0, r"np.float32\(...\) gives its bits"),
        ("u32", "2", "'2' is no integer"),
        ("u32", 2j, "no integer"),
        ("f32", "2", "no number"),
        ("f32", True, "no number"),
        ("f32", 1e39, "beyond the range of .f32"),
        ("f16", 70000, "beyond the range"),
        ("f32", 10**400, "beyond the range"),
        ("f32", None, "no pointer, so it cannot be None"),
        ("u32", None, "no pointer"),
        ("f32", np.zeros(1, np.float32), "takes no buffer"),
        ("u64", [1, 2], "no integer"),
        ("u32", b"\0\0\0", "3 bytes were given, the parameter has 4"),
    ],
)
def test_what_does_not_fit_is_said_with_the_parameter_s_name(kind: str, value: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words) as caught:
        one(kind, value)
    assert "k: parameter p (." + kind in str(caught.value)


def test_scalars_that_fit() -> None:
    for kind, value, data in [
        ("u8", True, b"\1"),
        ("u32", -1, b"\xff" * 4),
        ("s64", np.int8(-1), b"\xff" * 8),
        ("f64", 1, struct.pack("<d", 1)),
        ("f16", 1.5, struct.pack("<e", 1.5)),
        ("f32", np.float64(0.1), struct.pack("<f", 0.1)),
        ("f32", float("inf"), struct.pack("<f", float("inf"))),
        ("u32", b"abcd", b"abcd"),
        ("u64", None, bytes(8)),
    ]:
        assert one(kind, value).data.tobytes()[: len(data)] == data


def test_a_struct_takes_its_bytes_or_an_array_of_its_size() -> None:
    pair = np.array([(1, 2.5, 3.5)], np.dtype([("n", "<i4"), ("x", "<f4"), ("y", "<f8")]))
    for value in (pair, pair[0], pair.tobytes(), np.frombuffer(pair.tobytes(), np.uint8)):
        bound = one("b8", value, 16)
        assert bound.data.tobytes()[:16] == pair.tobytes()
        assert bound.buffers == ()
    with pytest.raises(ArgumentError, match=r"parameter p \(.b8\[16\]\): 15 bytes were given, the parameter has 16"):
        one("b8", bytes(15), 16)
    with pytest.raises(ArgumentError, match="a struct of 16 bytes"):
        one("b8", 7, 16)
    with pytest.raises(ArgumentError, match="takes no buffer"):
        one("b8", np.zeros(3, np.uint8), 16)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((4, 4), np.float32).T[:, :2], "do not lie one after the other"),
        (np.zeros(8, np.float32)[::2], "do not lie one after the other"),
        (np.zeros(8, ">f4"), "byte order"),
        (np.zeros(2, object), "array of object"),
        (np.array(["a"]), "array of <U1"),
        (np.ma.masked_array([1.0], [True]), "masked"),
    ],
)
def test_arrays_that_a_kernel_cannot_be_given(array: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        one("u64", array)


PARAMS = [Param("k_param_0", "u64", 0, 8), Param("k_param_1", "u32", 8, 4), Param("k_param_2", "f32", 12, 4)]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "takes 3 arguments, 0 were given; missing: out, n, scale"),
        ([None], "missing: n, scale"),
        ([None, 1, 2, 3], "takes 3 arguments, 4 were given"),
        ({"out": None, "n": 1}, "missing: scale"),
        ({"out": None, "n": 1, "scael": 2}, "no parameter 'scael'; did you mean scale"),
        ({"out": None, "n": 1, "zzz": 2}, "there are: out, n, scale"),
        ({"out": None, "n": 1, "k_param_1": 1, "scale": 1}, "n is given twice"),
        (np.zeros(3), "a list in the parameters' order"),
        ("abc", "a list in the parameters' order"),
    ],
)
def test_missing_and_unknown_arguments_are_named(args: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        bind("k", PARAMS, args, source_names=("out", "n", "scale"))


def test_a_source_name_wins_over_a_place() -> None:
    # Somebody's second parameter may be called param_0 in C.
    bound = bind("k", PARAMS[:2], {"param_0": 5, "p": None}, source_names=("p", "param_0"))
    assert bound.data[8] == 5


def test_a_zero_size_array_is_not_null() -> None:
    bound = one("u64", np.zeros((0, 4), np.float32))
    assert int.from_bytes(bound.data[:8].tobytes(), "little") != 0
    assert len(Memory(bound.buffers).rows) == 0


def buffer(array: Any, name: str = "b", unwritten: Uninitialised | None = None) -> Buffer:
    return Buffer(name, array, array.ctypes.data, array.shape, (), not array.flags.writeable, unwritten)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), min_size=1, max_size=8))
def test_rows_are_sorted_disjoint_and_cover_just_the_buffers(spans: list[tuple[int, int]]) -> None:
    room = np.zeros(100, np.uint8)
    memory = Memory([buffer(room[a : a + n]) for a, n in spans])
    covered: set[int] = set()
    last = -1
    for base, size, _, _ in memory.rows.tolist():
        start = base - room.ctypes.data
        assert start >= last
        last = start + size
        covered |= set(range(start, last))
    assert covered == {byte for a, n in spans for byte in range(a, a + n)}
    for each in memory.buffers:
        row = memory.row_of(each)
        assert row is not None
        assert memory.rows[row][AllocationSlot.BASE] <= each.base


def test_a_read_only_array_is_read_only_unless_another_name_may_write_it() -> None:
    room = np.zeros(16, np.float32)
    locked = room[4:12]
    locked.flags.writeable = False
    assert Memory([buffer(locked)]).rows[0][AllocationSlot.FLAGS] == READ_ONLY
    assert Memory([buffer(locked), buffer(room[:8])]).rows[0][AllocationSlot.FLAGS] == 0


def test_the_shadow_of_an_overlap_counts_the_initialised_part_as_written() -> None:
    room = np.zeros(16, np.float32)
    fresh = Uninitialised(room[4:12])
    memory = Memory([buffer(room[:8], "a"), buffer(room[4:12], "u", fresh)])
    (shadow,) = memory._shadows
    assert shadow is not None
    assert memory.rows[0][AllocationSlot.SHADOW] == shadow.ctypes.data
    assert shadow[:12].tolist() == [1] * 8 + [0] * 4
    shadow[9] = 1  # as a kernel does that stores there
    memory.keep_written(tracked=True)
    assert fresh.written.tolist() == [1, 1, 1, 1, 0, 1, 0, 0]


def test_uninitialised_goes_by_name_or_number_and_needs_an_array() -> None:
    array = np.zeros(4, np.float32)
    for name in ("p", "k_param_0", 0):
        assert one("u64", array, uninitialised=[name]).buffers[0].unwritten is not None
    with pytest.raises(ArgumentError, match="was given no array"):
        one("u64", None, uninitialised=["p"])
    with pytest.raises(ArgumentError, match="no parameter number 3"):
        one("u64", array, uninitialised=[3])


@pytest.mark.parametrize(
    ("shape", "place"),
    [(None, "p[13]"), ({"h": 4, "j": 5}, "p[h=2, j=3]"), ((4, 5), "p[2, 3]"), (("i",), "p[i=13]"), ("i", "p[i=13]")],
)
def test_places_are_told_in_the_axes_given(shape: Any, place: str) -> None:
    array = np.zeros(20, np.float32)
    bound = one("u64", array, shapes=None if shape is None else {"p": shape})
    assert Memory(bound.buffers).describe(array.ctypes.data + 52, 4) == place


@pytest.mark.parametrize("shape", [("h", "j"), (4, 6), {"h": 19}, (4, None), (4, "j"), 20])
def test_axes_that_do_not_fit_are_refused(shape: Any) -> None:
    with pytest.raises(ArgumentError, match="does not fit an array of shape"):
        one("u64", np.zeros(20, np.float32), shapes={"p": shape})


def test_places_outside_are_told_from_the_nearest_buffer() -> None:
    room = np.zeros(64, np.float32)
    memory = Memory([buffer(room[8:16], "a"), buffer(room[32:40], "b")])
    at = room.ctypes.data
    assert memory.describe(at + 16 * 4, 4) == "a[8], just past the end of a (float32[8], 32 bytes)"
    assert memory.describe(at + 17 * 4, 4) == "a[9], 4 bytes past the end of a (float32[8], 32 bytes)"
    assert memory.describe(at + 31 * 4, 4) == "4 bytes before b (float32[8], 32 bytes)"
    assert memory.describe(at + 15 * 4, 8) == (
        "a[7], of which the last 4 bytes are past the end of a (float32[8], 32 bytes)"
    )
    assert memory.describe(at + 9 * 4 + 1, 4) == "a[1] byte 1"
    assert memory.describe(0, 4) == "a null pointer"
    assert memory.describe(24, 4) == "a null pointer plus 24 bytes"
    assert Memory([]).describe(1 << 40, 4) == "address 0x10000000000; the launch has no buffer"
    assert "the launch has no buffer" in Memory([]).describe(-8, 4)
