"""Launches through the public API, with kernels written by hand in LLVM IR."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from execute.handmade import NAMES, PTX, Lowering

from conftest import ROOT
from ssmtool.execute import ArgumentError, Fault, KernelFaultError, LaunchError, Module, Uninitialised
from ssmtool.execute.launch import DEFAULT_BUDGET


@pytest.fixture
def module(lowering: Lowering) -> Module:
    assert not lowering.calls
    return Module(PTX, "scale.ptx", parameters=NAMES)


def ramp(n: int = 1000) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.arange(n, dtype=np.float32)


@pytest.mark.parametrize("threads", [None, 1, 2, 7, 300])
@pytest.mark.parametrize("blocks", [1, 2, 33, 5000])
def test_every_block_runs_once_whatever_the_threads(module: Module, threads: int | None, blocks: int) -> None:
    # In place, so that a block run twice shows.
    x = np.ones(32 * blocks, np.float32)
    for times in (1, 2, 3):  # the first goes through the pool, small ones later on do not
        result = module.launch("scale", blocks, 32, [x, x, 3.0, x.size], threads=threads, counters=True)
        assert (x == 3.0**times).all()
        assert result.ok
        assert not result.stopped
        assert result.counters is not None
        assert result.counters.executed(0) == blocks
        assert result.counters.total == blocks


def test_arguments_by_c_name_by_ptx_name_and_by_number_are_the_same(module: Module) -> None:
    x = ramp()
    for names in (("y", "x", "a", "n"), [f"scale_param_{k}" for k in range(4)], [f"param_{k}" for k in range(4)]):
        y = np.zeros_like(x)
        module.launch("scale", 32, 32, dict(zip(names, [y, x, 2.5, 1000], strict=True)))
        assert np.array_equal(y, x * np.float32(2.5))


def test_a_fault_names_place_block_thread_and_element(module: Module) -> None:
    y = np.zeros(999, np.float32)
    with pytest.raises(KernelFaultError) as caught:
        module.launch("scale", 32, 32, [y, ramp(), 2.0, 1000])
    (fault,) = caught.value.result.faults
    assert (fault.kind, fault.line, fault.source) == (Fault.OUT_OF_BOUNDS, 15, "scale.cu:7")
    assert (fault.block, fault.thread) == ((31, 0, 0), (7, 0, 0))
    assert fault.where == "y[999], just past the end of y (float32[999], 3996 bytes)"
    for word in ("scale", "PTX line 15", "scale.cu:7", "block (31, 0, 0)", "thread (7, 0, 0)", "y[999]", "st.global"):
        assert word in str(caught.value)
    assert caught.value.exit_code == 1


def test_a_fault_can_be_collected(module: Module) -> None:
    result = module.launch("scale", 32, 32, [None, ramp(), 2.0, 1000], on_fault="collect", threads=1)
    (fault,) = result.faults
    assert (result.ok, fault.where, fault.block) == (False, "a null pointer", (0, 0, 0))
    assert result.stopped  # the first block's fault was enough
    assert fault.count == 32


def test_all_checks_go_on_after_a_fault(module: Module) -> None:
    result = module.launch("scale", 32, 32, [None, ramp(), 2.0, 1000], on_fault="collect", check="all")
    assert (result.stopped, result.faults[0].count) == (False, 1000)


def test_evidence_is_the_label_of_the_stores_that_met_the_buffer(module: Module) -> None:
    x, y = ramp(), np.zeros(1000, np.float32)
    result = module.launch("scale", 32, 32, [y, x, 2.0, 1000])
    assert str(result.evidence("y")) == "unit-model dependent (ex2.approx: H200-exact)"
    assert str(result.evidence(0)) == str(result.evidence(y)) == str(result.evidence("scale_param_0"))
    assert str(result.evidence("x")) == str(result.evidence("bias")) == "exact"
    assert (result.written("y"), result.written("x")) == (True, False)
    with pytest.raises(ArgumentError, match="no buffer"):
        result.evidence("a")


def test_without_checks_every_buffer_has_the_label_of_all_stores(module: Module) -> None:
    result = module.launch("scale", 32, 32, [np.zeros(1000, np.float32), ramp(), 2.0, 1000], check="none")
    assert str(result.evidence("x")) == "unit-model dependent (ex2.approx: H200-exact)"
    assert result.written("x") is None


def test_overlapping_buffers_are_one_allocation(module: Module) -> None:
    both = ramp(64)
    result = module.launch("scale", 1, 32, [both[:40], both[8:48], 1.0, 32])
    assert np.array_equal(both[:32], ramp(40)[8:])
    assert result.evidence("y") == result.evidence("x") != result.evidence("bias")


def test_a_view_s_neighbours_are_outside(module: Module) -> None:
    whole = np.zeros(1000, np.float32)
    with pytest.raises(KernelFaultError, match=r"y\[500\], just past the end of y"):
        module.launch("scale", 32, 32, [whole[:500], ramp(), 2.0, 1000])
    assert not whole[500:].any()


def test_module_variables_are_placed_once_and_relocated(module: Module) -> None:
    bias, table = module.variable("bias"), module.variable("table")
    assert bias.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert table.tolist() == [bias.ctypes.data, bias.ctypes.data + 8]
    bias[0] = 9
    assert module.variable("bias")[0] == 9
    # A kernel's store through the address that the table holds is inside a buffer.
    result = module.launch("scale", 1, 32, [int(table[0]), ramp(), 2.0, 4])
    assert bias.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert str(result.evidence("bias")) != "exact"
    with pytest.raises(ArgumentError, match=r"no .global or .const variable is named biass; there are: bias, table"):
        module.variable("biass")


def test_reachable_buffers_are_inside(module: Module) -> None:
    y = np.zeros(32, np.float32)
    args = [y.ctypes.data, ramp(32), 2.0, 32]
    assert not module.launch("scale", 1, 32, args, on_fault="collect").ok
    assert module.launch("scale", 1, 32, args, reachable=[y]).ok
    assert y[31] == 62


@pytest.mark.parametrize(
    ("grid", "block", "shared", "words"),
    [
        (0, 32, 0, "grid x is 0"),
        (-1, 32, 0, "grid x is -1"),
        (1 << 31, 32, 0, "2147483647"),
        ((1, 65536), 32, 0, "grid y is 65536; sm_37 allows 65535"),
        ((1, 1, 65536), 32, 0, "grid z"),
        ((1, 1, 1, 1), 32, 0, "one to three"),
        ((), 32, 0, "one to three"),
        ("32", 32, 0, "one to three"),
        (1.0, 32, 0, "grid"),
        ((1, 2.0), 32, 0, "whole numbers"),
        (1, 1025, 0, "sm_37 allows 1024"),
        (1, (32, 33), 0, "32 x 33 x 1 has 1056 threads"),
        (1, (1, 1, 65), 0, "block z is 65; sm_37 allows 64"),
        (1, 32, 49152, "50176 bytes of shared memory a block, 1024 static and 49152 dynamic; sm_37 allows 49152"),
        (1, 32, -1, "at least 0"),
        (1, 32, "1k", "number of bytes"),
    ],
)
def test_launches_that_a_gpu_refuses(module: Module, grid: Any, block: Any, shared: Any, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        module.launch("scale", grid, block, [None, None, 0.0, 0], shared)
    assert words in str(caught.value)


def test_the_largest_shapes_are_taken(module: Module) -> None:
    module.launch("scale", (1, 1, 65535), (1, 16, 64), [None, None, 0.0, 0], 48128)
    module.launch("scale", np.int64(3), np.int32(1024), [None, None, 0.0, 0])
    module.launch("scale", np.array([3, 2]), np.array(1024), [None, None, 0.0, 0])


def test_directives_on_the_block_are_obeyed(module: Module) -> None:
    with pytest.raises(LaunchError, match=r"blocks of 32 x 1 x 1 \(.reqntid\), not of 64"):
        module.launch("spin", 1, 64, [None])
    with pytest.raises(LaunchError, match=r"allows 128 threads a block \(.maxntid\)"):
        module.launch("bounded", 1, (129,), [bytes(16)])
    module.compile("bounded", (128,))


@pytest.mark.parametrize(
    ("entry", "words"), [("skale", "did you mean scale"), ("zzz", "entries: scale, spin, bounded")]
)
def test_an_unknown_entry_names_the_one_meant(module: Module, entry: str, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        module.launch(entry, 1, 1, [])


@pytest.mark.parametrize("options", [{"check": "some"}, {"threads": 0}, {"budget": 0}, {"on_fault": "ignore"}])
def test_unknown_options_are_refused(module: Module, options: dict[str, Any]) -> None:
    with pytest.raises(LaunchError, match=next(iter(options))):
        module.launch("scale", 1, 32, [None, None, 0.0, 0], **options)


def test_an_endless_loop_ends_by_its_budget(module: Module) -> None:
    with pytest.raises(KernelFaultError, match=r"endless loop.*more than 1000 times"):
        module.launch("spin", 100, 32, [None], budget=1000)
    start = time.perf_counter()
    with pytest.raises(KernelFaultError, match=str(DEFAULT_BUDGET)):
        module.launch("spin", 1, 32, [None])
    assert time.perf_counter() - start < 30


INTERRUPTED = """
import os, signal, sys, threading, time
import pytest
from execute import handmade
handmade.install(pytest.MonkeyPatch())
from ssmtool.execute import Module
module = Module(handmade.PTX)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.perf_counter()
try:
    module.launch("spin", 8, 32, [None], budget=1 << 60)
except KeyboardInterrupt:
    assert time.perf_counter() - start < 5
    module.launch("scale", 1, 32, [None, None, 0.0, 0])  # the pool is as before
    print("interrupted")
"""


def test_ctrl_c_ends_an_endless_loop() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, env=environment)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("interrupted\n", "", 0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_several_threads_may_launch_at_once(module: Module, lowering: Lowering) -> None:
    outputs = [np.zeros(3200, np.float32) for _ in range(8)]
    x = ramp(3200)

    def work(k: int) -> None:
        for _ in range(20):
            outputs[k][:] = 0
            module.launch("scale", 100, 32, [outputs[k], x, float(k), 3200])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(outputs[k], x * k) for k in range(8))
    assert lowering.calls == ["scale"]  # compiled once for all of them


def test_a_kernel_is_compiled_once_for_a_block_and_mode(module: Module, lowering: Lowering) -> None:
    args = [None, None, 0.0, 0]
    assert not module.launch("scale", 1, 32, args).cached
    module.launch("scale", 9, 32, args)
    assert lowering.calls == ["scale"]
    module.launch("scale", 1, 64, args)
    module.launch("scale", 1, 32, args, check="all")
    assert lowering.calls == ["scale"] * 3
    again = Module(PTX)
    assert again.launch("scale", 1, 32, args).cached
    assert lowering.calls == ["scale"] * 3
    Module(PTX.replace("ret;", "ret; ")).launch("scale", 1, 32, args)
    assert lowering.calls == ["scale"] * 4


def test_uninitialised_remembers_only_what_was_tracked(module: Module) -> None:
    buffer = Uninitialised(np.zeros(1000, np.float32))
    module.launch("scale", 1, 32, [buffer, ramp(), 2.0, 32], check="all")
    assert not buffer.written.any()  # this kernel, written by hand, marks nothing
    module.launch("scale", 1, 32, [buffer, ramp(), 2.0, 32])
    assert buffer.written.all()


@pytest.mark.usefixtures("lowering")
def test_a_symbol_that_is_only_declared_is_refused() -> None:
    text = PTX.replace(".const .align 8 .u64 table[2] = {bias, bias+8};", ".extern .const .u64 table[];")
    with pytest.raises(LaunchError, match=r"uses the variable table, but it is \.extern"):
        Module(text).launch("scale", 1, 32, [None, None, 0.0, 0])
    text = PTX.replace("{bias, bias+8}", "{bias, somewhere}")
    with pytest.raises(LaunchError, match="holds the address of somewhere"):
        Module(text).launch("scale", 1, 32, [None, None, 0.0, 0])


def test_a_cache_that_cannot_be_written_changes_nothing_else(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSMTOOL_CACHE_DIR", "/dev/null")
    y = np.zeros(32, np.float32)
    module.launch("scale", 1, 32, [y, ramp(), 2.0, 32])
    assert y[31] == 62
    assert module.cache_problem is not None
    assert "not kept: /dev/null/execute" in module.cache_problem


def test_the_example_of_the_docs_runs() -> None:
    page = (ROOT / "docs/execute.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    assert names["result"].ok
    assert names["y"][999] == 2497.5
