"""Reports of a running kernel: which are kept, when it is stopped, and what people read."""

from __future__ import annotations

import ctypes
import itertools
import threading

import numpy as np
import pytest
from execute.handmade import facts

from ssmtool.execute.faults import MOST_FAULTS, MOST_REPORTS, KernelFault, Recorder, unflatten
from ssmtool.execute.layout import Fault, KernelFacts, Mode, SharedVariable, Site
from ssmtool.execute.memory import Buffer, Memory

GRID = (4, 3, 2)
ARRAY = np.zeros((4, 5), np.float32)
BASE = ARRAY.ctypes.data
MEMORY = Memory([Buffer("y", ARRAY, BASE, (4, 5), ("h", "j"))])
SHARED = 1 << 44


def kernel(*sites: Site) -> KernelFacts:
    from msgspec.structs import replace

    return replace(
        facts("scale", (8, 4, 2), Mode()),
        sites=sites or (Site(9, "st.global.f32 [%rd1], %f1", "k.cu:3", store=True),),
        registers=("%r1", "%f2"),
        shared_variables=(SharedVariable("tile", 64, 128, 4),),
    )


class Stops:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1


def call(recorder: Recorder, *numbers: int) -> None:
    """As a kernel calls: through the address, with plain numbers."""
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)(recorder.address)(*numbers)


def told(kind: Fault, address: int = 0, extra: int = 4, *, site: Site | None = None, shared: int = 1024) -> KernelFault:
    recorder = Recorder(Stops(), first_stops=True)
    call(recorder, kind, 0, 17, 43, address, extra)
    some = kernel(*([site] if site else []))
    faults, notes = recorder.decode(some, GRID, MEMORY, [SHARED], shared, 99)
    (fault,) = faults + notes
    return fault


LOAD = Site(9, "ld.shared.f32 %f1, [%r1]")


@pytest.mark.parametrize(
    ("kind", "address", "extra", "site", "words"),
    [
        (
            Fault.OUT_OF_BOUNDS,
            BASE + 80,
            4,
            None,
            "writes 4 bytes out of bounds, at y[20], just past the end of y",
        ),
        (Fault.OUT_OF_BOUNDS, 0, 4, None, "a null pointer"),
        (Fault.OUT_OF_BOUNDS, 1024, 4, LOAD, "reads 4 bytes out of bounds, at byte 1024 of shared memory, past"),
        (Fault.OUT_OF_BOUNDS, SHARED + 1024, 4, LOAD, "byte 1024 of shared memory, past its end (1024 bytes)"),
        (Fault.OUT_OF_BOUNDS, SHARED - 4, 4, LOAD, "4 bytes before shared memory"),
        (Fault.OUT_OF_BOUNDS, 9999, 4, Site(9, "st.local.u32 [%r1], 0"), "local memory (16 bytes a thread)"),
        (Fault.MISALIGNED, BASE + 2, 4, None, "at an address that is no multiple of 4, y[h=0, j=0] byte 2"),
        (Fault.READ_ONLY, BASE + 44, 4, None, "writes 4 bytes into read-only memory, y[h=2, j=1]"),
        (Fault.UNWRITTEN_GLOBAL, BASE + 44, 4, None, "that nothing has written, y[h=2, j=1]"),
        (Fault.UNWRITTEN_SHARED, 72, 4, LOAD, "reads 4 bytes that nothing has written, shared tile[2]"),
        (Fault.UNWRITTEN_SHARED, 73, 1, LOAD, "shared tile[2] byte 1"),
        (Fault.UNWRITTEN_SHARED, 8, 4, LOAD, "nothing has written, byte 8 of shared memory"),
        (Fault.UNWRITTEN_REGISTER, 1, 0, None, "register %f2 is read before it is written"),
        (Fault.RACE, 64, 9 + (1 << 32), LOAD, "reads shared tile[0], which thread (1, 1, 0) wrote with no barrier"),
        (Fault.RACE, 64, 9, None, "writes shared tile[0], which thread (1, 1, 0) read"),
        (Fault.RACE, 64, -1, None, "which several other threads read"),
        (Fault.RACE, 64, -1 + (1 << 32), None, "which several other threads wrote"),
        (Fault.WARP_RACE, 64, 0, None, "thread (0, 0, 0) read with no barrier between (the same warp: right on Kepler"),
        (Fault.BARRIER_DIVERGENCE, 0, 0x100FF, None, "reach this barrier (lanes 0-7, 16)"),
        (Fault.BARRIER_DEADLOCK, 0, 2, None, "2 warps wait"),
        (Fault.BARRIER_EXITED, 0, -1, None, "(lanes 0-63 reach it)"),
        (Fault.SHUFFLE_INACTIVE, 0, 31, None, "reads lane 31, which is not active"),
        (Fault.DIVISION_BY_ZERO, 0, 0, None, "division by zero"),
        (Fault.BUDGET, 0, 0, None, "more than 99 times"),
        (Fault.TRAP, 0, 0, None, "trap"),
    ],
    ids=map(str, itertools.count()),  # an address would be another in each process
)
def test_every_kind_is_told_in_words(kind: Fault, address: int, extra: int, site: Site | None, words: str) -> None:
    fault = told(kind, address, extra, site=site)
    assert words in fault.message
    assert fault.message.endswith((site or kernel().sites[0]).text)
    assert (fault.kind, fault.line, fault.kernel) == (kind, 9, "scale")
    # Block 17 of 4 x 3 x 2, thread 43 of 8 x 4 x 2.
    assert (fault.block, fault.thread) == ((1, 1, 1), (3, 1, 1))


def test_every_kind_has_an_effect_and_a_row_in_the_docs() -> None:
    from conftest import ROOT
    from ssmtool.report.run import _EFFECTS

    assert set(_EFFECTS) == set(Fault)
    text = (ROOT / "docs/execute.md").read_text()
    assert all(f"| `{kind.name.lower().replace('_', '-')}` |" in text for kind in Fault)


def test_the_two_threads_of_a_race_are_told() -> None:
    assert told(Fault.RACE, 64, 9).other == (1, 1, 0)
    assert told(Fault.RACE, 64, -1).other is None


@pytest.mark.parametrize("extents", [(1, 1, 1), (5, 3, 2), (1024, 1, 1)])
def test_unflatten_counts_x_first(extents: tuple[int, int, int]) -> None:
    x, y, z = extents
    every = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    assert [unflatten(index, extents) for index in range(x * y * z)] == every


def test_the_first_fault_stops_only_where_it_should() -> None:
    for first, calls in ((True, 1), (False, 0)):
        stops = Stops()
        call(Recorder(stops, first_stops=first), Fault.RACE, 0, 0, 0, 0, 0)
        assert stops.calls == calls


@pytest.mark.parametrize("kind", [Fault.BUDGET, Fault.BARRIER_DEADLOCK, Fault.TRAP])
def test_what_would_repeat_in_every_block_stops_in_every_mode(kind: Fault) -> None:
    stops = Stops()
    call(Recorder(stops, first_stops=False), kind, 0, 0, 0, 0, 0)
    assert stops.calls == 1


def test_notes_never_stop_and_are_no_faults() -> None:
    stops = Stops()
    recorder = Recorder(stops, first_stops=True)
    for k in range(MOST_FAULTS + MOST_REPORTS):
        recorder._report(Fault.WARP_RACE, k % (2 * MOST_FAULTS), 0, 0, 0, 0)
    faults, notes = recorder.decode(kernel(), GRID, MEMORY, [SHARED], 64, 1)
    assert (stops.calls, faults, len(notes)) == (0, [], 2 * MOST_FAULTS)


def test_different_faults_are_kept_up_to_the_cap_and_equal_ones_counted() -> None:
    stops = Stops()
    recorder = Recorder(stops, first_stops=False)
    for k in range(MOST_FAULTS + 20):
        for thread in (5, 3, 9):
            call(recorder, Fault.DIVISION_BY_ZERO, k, 1, thread, 0, 0)
        assert (stops.calls > 0) == (k >= MOST_FAULTS - 1)
    faults, _ = recorder.decode(kernel(), GRID, MEMORY, [SHARED], 64, 1)
    assert len(faults) == MOST_FAULTS
    assert {(fault.count, fault.thread) for fault in faults} == {(3, (3, 0, 0))}


def test_a_flood_of_one_fault_stops() -> None:
    stops = Stops()
    recorder = Recorder(stops, first_stops=False)
    for _ in range(MOST_REPORTS):
        recorder._report(Fault.RACE, 0, 0, 0, 0, 0)
    assert stops.calls == 1


def test_reports_of_many_threads_are_all_counted() -> None:
    recorder = Recorder(Stops(), first_stops=False)

    def work(block: int) -> None:
        for _ in range(500):
            call(recorder, Fault.RACE, 0, block, 0, 0, 0)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (fault,), _ = recorder.decode(kernel(), GRID, MEMORY, [SHARED], 64, 1)
    assert (fault.count, fault.block) == (4000, (0, 0, 0))


def test_what_is_raised_in_the_callback_is_kept_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    stops = Stops()
    recorder = Recorder(stops, first_stops=False)
    monkeypatch.setattr(recorder, "_take", lambda *_: 1 / 0)
    call(recorder, Fault.RACE, 0, 0, 0, 0, 0)
    assert isinstance(recorder.raised, ZeroDivisionError)
    assert stops.calls == 1
