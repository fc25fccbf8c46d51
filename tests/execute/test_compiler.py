"""LLVM text to code that runs: features, wide vectors, lifetimes, errors."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref

import pytest
from execute.handmade import SCALE, SPIN

from ssmtool.execute.compiler import MachineCode, compile_ir, identity, target
from ssmtool.execute.errors import CompileError

# Doubles n = launch[0] floats at launch[1], 32 at a time, and calls the C library.
WIDE = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare float @llvm.fma.f32(float, float, float)
@one = private constant <32 x float> splat (float 1.0)
define void @run(ptr %launch, ptr %worker) {
  %n = load i64, ptr %launch
  %slot = getelementptr i64, ptr %launch, i64 1
  %p = load ptr, ptr %slot
  %v = load <32 x float>, ptr %p, align 4
  %one = load <32 x float>, ptr @one
  %s = fadd <32 x float> %v, %one
  store <32 x float> %s, ptr %p, align 4
  %rest = getelementptr float, ptr %p, i64 32
  call void @llvm.memset.p0.i64(ptr %rest, i8 0, i64 %n, i1 false)
  ret void
}
"""


def run(code: MachineCode, count: int = 64) -> list[float]:
    data = (ctypes.c_float * count)(*range(count))
    launch = (ctypes.c_int64 * 2)(4 * (count - 32), ctypes.addressof(data))
    code(ctypes.addressof(launch), 0)
    return list(data)


def test_code_runs_with_constants_and_library_calls() -> None:
    assert run(MachineCode(compile_ir(WIDE)), 4096) == [k + 1.0 for k in range(32)] + [0.0] * 4064


def test_vectors_are_as_wide_as_the_machine_has() -> None:
    _, features = target()
    if "+avx512f" not in features.split(","):
        pytest.skip("this CPU has no 512-bit vectors: whether they would be used was not checked")
    # An EVEX prefix with vector length 512 (L'L = 10) on an add: 62 ?? ?? 48 58.
    code = compile_ir(WIDE)
    assert any(code[k] == 0x62 and code[k + 3] & 0x60 == 0x40 and code[k + 4] == 0x58 for k in range(len(code) - 5))


def test_the_identity_names_cpu_features_and_llvm() -> None:
    cpu, features = target()
    assert cpu in identity()
    assert features in identity()


@pytest.mark.parametrize(
    "text",
    [
        "define void @run(ptr %a, ptr %b) { ret i32 0 }",
        "define void @run(ptr %a, ptr %b) {\n %v = add i32 %w, 1\n %w = add i32 %v, 1\n ret void\n}",
        "rubbish",
    ],
)
def test_what_llvm_refuses_is_one_error(text: str) -> None:
    with pytest.raises(CompileError, match="LLVM does not take"):
        compile_ir(text)


def test_code_without_the_entry_is_one_error() -> None:
    with pytest.raises(CompileError, match="without a function 'run'"):
        MachineCode(compile_ir("define void @walk(ptr %a, ptr %b) { ret void }"))


def test_the_same_text_gives_the_same_code() -> None:
    assert compile_ir(SCALE) == compile_ir(SCALE) != compile_ir(SPIN)


def test_code_lives_as_long_as_its_object_and_no_longer() -> None:
    code = compile_ir(WIDE)
    held = [MachineCode(code) for _ in range(20)]
    engines = [weakref.ref(each._engine) for each in held]
    kept = held[7]
    del held
    gc.collect()
    assert [engine() is not None for engine in engines] == [k == 7 for k in range(20)]
    assert run(kept)[:32] == [k + 1.0 for k in range(32)]


def test_threads_may_compile_and_load_at_once() -> None:
    results: list[float] = []

    def work() -> None:
        results.append(sum(run(MachineCode(compile_ir(WIDE)))))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [528.0] * 8
