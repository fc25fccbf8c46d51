"""Global memory that nothing has written."""

from __future__ import annotations

import numpy as np
import pytest
from execute.checked import run, text_of, told

from ssmtool.execute.memory import Uninitialised
from ssmtool.execute.module import Module

LOAD = "ld.global.u32 %r4, [%rd4]"
STORE = "st.global.u32 [%rd4], %r1"


def found(body: str, block: int = 64, **options: object) -> list[tuple[str, str, int, int | None]]:
    return told(run(body, block, uninitialised=["a"], **options).faults)  # type: ignore[arg-type]


def test_a_load_of_what_nothing_wrote() -> None:
    result = run(f"{LOAD}; ld.global.u32 %r5, [%rd5];", uninitialised=["a"])
    assert told(result.faults) == [("unwritten-global", LOAD, 0, None)]
    assert (result.faults[0].where, result.faults[0].count) == ("a[0]", 64)


@pytest.mark.parametrize("space", [".global", ""])
def test_stores_make_it_written(space: str) -> None:
    load, store = LOAD.replace(".global", space), STORE.replace(".global", space)
    assert found(f"{store}; {load};") == []
    assert found(f"@%p2 {store}; {load};") == [("unwritten-global", load, 32, None)]
    assert found(f"@%p1 st{space}.u32 [%rd1+4], 1; ld{space}.u32 %r4, [%rd1+4]; @%p1 {load};") != []


def test_one_place_for_all_lanes() -> None:
    assert found("st.global.u32 [%rd1+8], %r9; ld.global.u32 %r4, [%rd1+8];") == []
    load = "ld.global.u32 %r4, [%rd1+8]"
    assert found(f"{load};", 32) == [("unwritten-global", load, 0, None)]


def test_wide_and_narrow_accesses() -> None:
    pairs = "shl.b32 %r5, %r1, 3; cvt.u64.u32 %rd6, %r5; add.u64 %rd6, %rd6, %rd1"
    assert found(f"{pairs}; st.global.v2.u32 [%rd6], {{%r1, %r1}}; {LOAD}; ld.global.u64 %rd7, [%rd6];") == []
    load = "ld.global.u64 %rd7, [%rd6]"
    assert found(f"{STORE}; {pairs}; {load};", 32) == [("unwritten-global", load, 16, None)]
    # A byte makes its word written.
    assert found(f"st.global.u8 [%rd4+1], %r1; {LOAD};") == []


def test_scattered_places() -> None:
    place = "mul.lo.u32 %r5, %r1, 20; and.b32 %r5, %r5, 4092; cvt.u64.u32 %rd6, %r5; add.u64 %rd6, %rd6, %rd1"
    assert found(f"{place}; st.global.u32 [%rd6], 1; ld.global.u32 %r4, [%rd6];") == []
    assert found(f"{place}; ld.global.u32 %r4, [%rd6];")[0][0] == "unwritten-global"


def test_atomics_read_and_write() -> None:
    add = "red.global.add.u32 [%rd4], 1"
    assert found(f"{add}; {LOAD};", 32) == [("unwritten-global", add, 0, None)]
    assert found(f"{STORE}; {add}; {LOAD};") == []
    assert found(f"atom.global.exch.b32 %r4, [%rd4], 1; {LOAD};") == []


def test_one_instruction_meets_two_buffers() -> None:
    # Lanes of one warp in a (unwritten) and in b (written).
    choose = "selp.b64 %rd6, %rd4, %rd5, %p3"
    load = "ld.global.u32 %r4, [%rd6]"
    result = run(f"setp.ge.u32 %p3, %r1, 20; {choose}; {load};", 32, uninitialised=["a"])
    assert told(result.faults) == [("unwritten-global", load, 20, None)]
    assert (result.faults[0].where, result.faults[0].count) == ("a[20]", 12)


def test_a_launch_writes_for_the_next() -> None:
    array, other = Uninitialised(np.zeros(64, np.uint32)), np.zeros(64, np.uint32)
    write, read = Module(text_of(f"@%p2 {STORE};")), Module(text_of(f"{LOAD};"))
    write.launch("k", 1, 64, [array, other, 0], check="all")
    result = read.launch("k", 1, 64, [array, other, 0], check="all", on_fault="collect")
    assert told(result.faults) == [("unwritten-global", LOAD, 32, None)]
