"""The 15 kernels in checked mode: nothing is told of them as they are, and what is planted in them is found."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from execute import delta_kernels as kernels
from execute.delta_kernels import CONVOLUTIONS, SEQUENCES, SLOTS, Case

from ssmtool import ptx
from ssmtool.execute.module import Module
from ssmtool.execute.program.flatten import flatten
from ssmtool.ptx.cfg import ControlFlowGraph

BARRIER = re.compile(r"^\tbar\.sync.*$", re.MULTILINE)


def quiet(case: Case) -> None:
    """Nothing is told, even with outputs that count as never written."""
    result = case.launch(uninitialised=case.outputs)
    assert not result.faults and not result.notes, [str(each) for each in (*result.faults, *result.notes)]
    assert all(np.isfinite(array).all() for array in result.buffers.values())


def test_all_are_here() -> None:
    assert sorted(case.entry for case in kernels.every()) == sorted(kernels.module().entries)


@pytest.fixture(autouse=True)
def cache_folder(kernel_cache: Path) -> Path:
    """The run's own: the product's kernels are compiled by others too."""
    return kernel_cache


@pytest.mark.parametrize("entry", SEQUENCES)
def test_sequences_as_they_are(entry: str) -> None:
    for n in (0, 1, 2, 3, 130):
        for snaps in (False, True):
            if n and not (n > 3 and snaps):
                quiet(kernels.recurrence(entry, heads=1 + n % 2, n=n, snaps=snaps))
    empty = kernels.recurrence(entry, n=1, snaps=False)
    empty.args[9] = 0
    before = empty.args[0].copy()
    result = empty.launch()
    assert result.ok
    assert np.array_equal(empty.args[0], before)


def test_other_kernels_as_they_are() -> None:
    for entry in SLOTS:
        for slots in (1, 3):
            quiet(kernels.recurrence(entry, heads=2, n=slots))
        quiet(kernels.recurrence(entry, size=64, n=1))
    quiet(kernels.recurrence("fc_ssm_recurrence", heads=3))
    quiet(kernels.recurrence("fc_ssm_recurrence", size=32))
    quiet(kernels.recurrence("fc_ssm_recurrence_seq", size=64, n=3))
    for entry in CONVOLUTIONS:
        for taps in (2, 3, 4):
            quiet(kernels.convolution(entry, taps=taps, n=taps - 1))
    for heads, block in ((1, 128), (3, 256)):
        quiet(kernels.norm(heads, block=block))
    quiet(kernels.sigmoid(1))
    for case in (*kernels.gate(32, 10), *kernels.gate(3, 1), *kernels.qknorm(2, 2), *kernels.qknorm(1, 4, n=1)):
        quiet(case)


# -- a barrier taken away


def _without(entry: str) -> list[tuple[int, str]]:
    """(place, text) of a kernel without one of its barriers."""
    whole = kernels.text()
    start = whole.index(f".entry {entry}(")
    end = whole.index("\n}", start)
    places = [match.start() + start for match in BARRIER.finditer(whole[start:end])]
    head, body = whole[: whole.index(".visible .entry")], whole[whole.rindex(".visible", 0, start) : end + 2]
    shift = whole.rindex(".visible", 0, start)
    return [(k, head + body[: at - shift] + "//" + body[at - shift :]) for k, at in enumerate(places)]


def _touches_shared_after(text: str, entry: str) -> bool:
    """Whether an access to shared memory can come after the barrier that is a comment in `text`."""
    line = text[: text.index("//\tbar.sync")].count("\n") + 1
    module = ptx.parse(text)
    function = module.function(entry)
    assert function is not None
    flat = flatten(module, function)
    graph = ControlFlowGraph(flat)
    at = next(k for k, op in enumerate(flat.instructions) if op.origin.line > line)
    first = graph.block_of[at]
    reached, work = set(), list(graph.blocks[first].successors)
    while work:
        block = work.pop()
        if block not in reached:
            reached.add(block)
            work += graph.blocks[block].successors
    later = [flat.instructions[at : graph.blocks[first].end]]
    later += [flat.instructions[graph.blocks[each].start : graph.blocks[each].end] for each in reached]
    return any(op.opcode.space == "shared" for ops in later for op in ops)


WITHIN_A_WARP = {"fc_ssm_recurrence_seq_unroll128": {2, 3, 4, 5, 6, 11, 12, 13, 14, 15}}
"""Barriers between the last steps of the unrolled trees, in which threads 0 to 31 meet only each other: on Kepler
none is needed, later GPUs need one of the warp."""
BEHIND_THE_LAST = {"fc_ssm_recurrence": {5}, "fc_ssm_gated_norm": {2}, "fc_ssm_recurrence_slots": {5}}
"""Barriers behind which no thread touches shared memory any more: there is nothing to race with."""
WITH_BARRIERS = [
    *(kernels.recurrence(each, size=64) for each in ("fc_ssm_recurrence", "fc_ssm_recurrence_seq", *SLOTS)),
    *(kernels.recurrence(each) for each in SEQUENCES[1:]),
    kernels.norm(size=64, block=64),
    *kernels.qknorm(size=64),
]


LITERALLY = {
    "fc_ssm_recurrence": {0, 5},
    "fc_ssm_recurrence_seq": {0, 2},
    "fc_ssm_recurrence_seq_unroll128": {0, 1, 2, 9},
    "fc_ssm_recurrence_slots": {0, 5},
}
"""Of kernels with many barriers, those that are taken out of the text: LLVM needs seconds for each. All of them are
taken away at run time, in one compiled kernel."""


def _missed(case: Case, place: int, text: str, module: Module) -> None:
    """A launch of a kernel without its barrier `place`; `text` is the kernel with that barrier as a comment."""
    grid = (2, *case.grid[1:])
    result = Case(case.entry, grid, case.block, case.shared, case.args, ()).launch(module)
    rules = {each.rule for each in result.faults}
    if place in BEHIND_THE_LAST.get(case.entry, ()):
        assert not _touches_shared_after(text, case.entry)
        assert not rules and not result.notes
    elif place in WITHIN_A_WARP.get(case.entry, ()):
        assert not rules
        assert {each.rule for each in result.notes} == {"warp-race"}
        assert all(each.thread[0] < 32 and each.other[0] < 32 for each in result.notes if each.other)
    else:
        assert rules == {"race"}, (place, [str(each) for each in result.faults])
        assert all(each.line and each.where for each in result.faults)


@pytest.mark.parametrize("case", WITH_BARRIERS, ids=[case.entry for case in WITH_BARRIERS])
def test_every_barrier_taken_away_is_missed(case: Case) -> None:
    for place, text in _without(case.entry):
        if place in LITERALLY.get(case.entry, (place,)):
            _missed(case, place, text, Module(text))


def _switched(entry: str) -> str:
    """The kernel with a last parameter more: the number of the barrier that it leaves out."""
    text = _without(entry)[0][1].replace("//\tbar.sync", "\tbar.sync")
    number = iter(range(100))

    def switched(bar: re.Match[str]) -> str:
        k = next(number)
        return f"setp.eq.u32 %skip, %left, {k};\n@%skip bra PAST{k};\n{bar[0]}\nPAST{k}:"

    text = BARRIER.sub(switched, text)
    parameters = text.index("\n)", text.index(".entry"))
    body = text.index("{", parameters)
    load = "\n.reg .pred %skip; .reg .b32 %left; ld.param.u32 %left, [left_out];"
    return f"{text[:parameters]},\n.param .u32 left_out{text[parameters : body + 1]}{load}{text[body + 1 :]}"


SWITCHED = [case for case in WITH_BARRIERS if case.entry in LITERALLY]


@pytest.mark.parametrize("case", SWITCHED, ids=[case.entry for case in SWITCHED])
def test_every_barrier_left_out_at_run_time_is_missed(case: Case) -> None:
    module = Module(_switched(case.entry))
    texts = _without(case.entry)
    for place, text in texts:
        _missed(Case(case.entry, case.grid, case.block, case.shared, [*case.args, place], ()), place, text, module)
    args = [each.copy() if isinstance(each, np.ndarray) else each for each in case.args]
    whole = Case(case.entry, case.grid, case.block, case.shared, [*args, len(texts)], ()).launch(module)
    assert whole.ok and not whole.notes


def test_each_kernel_with_a_barrier_is_among_them() -> None:
    entries = {each.entry for each in WITH_BARRIERS}
    assert entries == {entry for entry in kernels.module().entries if _without(entry)}


def test_the_pointless_ones_are_told_apart() -> None:
    texts = [text for _, text in _without("fc_ssm_recurrence")]
    assert [_touches_shared_after(text, "fc_ssm_recurrence") for text in texts] == [True] * 5 + [False]


# -- a buffer too short


def test_one_element_past_each_buffer_is_named() -> None:
    for case in kernels.every():
        function = kernels.module().ptx.function(case.entry)
        assert function is not None
        for place, array in enumerate(case.args):
            if not isinstance(array, np.ndarray):
                continue
            size = array.size
            args = [each.copy() if isinstance(each, np.ndarray) else each for each in case.args]
            whole = np.full(size + 8, 7, np.float32)
            whole[:size] = array.ravel()
            args[place] = whole[: size - 1]
            result = Case(case.entry, case.grid, case.block, case.shared, args, ()).launch()
            assert {each.rule for each in result.faults} == {"out-of-bounds"}, case.entry
            name = function.params[place].name.removeprefix(f"{case.entry}_")
            assert {each.where.split(",")[0] for each in result.faults} == {f"{name}[{size - 1}]"}
            assert whole[size - 1] == array.ravel()[-1]
            assert (whole[size:] == 7).all()
