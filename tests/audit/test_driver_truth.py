"""A driver library made by the test stands in for the real one, so that each failure is a real one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ssmtool.audit.driver_truth import DriverReport, ask_driver
from ssmtool.errors import ProductError
from ssmtool.findings import Skip

# Two devices: 0 is sm_90, 1 is sm_37. Local bytes are 100 + the attribute's number on device 1.
_DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int current = -1;
int cuInit(unsigned flags) { if (flags) return 1; INIT; return 0; }
int cuDeviceGetCount(int *count) { *count = COUNT; return 0; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 75 ? (device ? 3 : 9) : attribute == 76 ? (device ? 7 : 0) : -1;
    return 0;
}
int cuDriverGetVersion(int *version) { *version = 11040; return 0; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "GPU %d", device); return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { current = device; *context = &current; return 0; }
int cuCtxSetCurrent(void *context) { return context == &current ? 0 : 201; }
int cuModuleLoadDataEx(void **module, const char *image, unsigned count, int *options, void **values)
{
    if (count != 2 || options[0] != 5 || options[1] != 6 || strcmp(image, "the ptx")) return 1;
    snprintf(values[0], (size_t)values[1], "%s", LOG);
    *module = &current;
    return LOAD;
}
int cuModuleGetFunction(void **function, void *module, const char *name)
{
    if (strcmp(name, "k")) return 500;
    *function = module;
    return 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    (void)function;
    *value = 100 * current + attribute;
    return 0;
}
int cuGetErrorName(int code, const char **text)
{
    *text = code == 222 ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" : "NAME";
    return 0;
}
"""

Make = Callable[..., Path]


@pytest.fixture
def driver(tmp_path: Path) -> Make:
    if shutil.which("gcc") is None:
        pytest.skip("the driver tier was not tried: needs gcc for the library that stands in for the driver")

    def make(*, init: str = "", count: int = 2, log: str = "", load: int = 0) -> Path:
        source, library = tmp_path / "driver.c", tmp_path / "libdriver.so"
        source.write_text(_DRIVER)
        defines = [f"-DINIT={init}", f"-DCOUNT={count}", f'-DLOG="{log}"', f"-DLOAD={load}"]
        subprocess.run(["gcc", "-shared", "-fPIC", *defines, source, "-o", library], check=True)
        return library

    return make


def _ask(
    library: Path | str, *, entry: str = "k", target: str = "sm_37", timeout_s: float = 30.0
) -> DriverReport | Skip:
    return ask_driver("the ptx", [entry], target, libraries=[str(library)], timeout_s=timeout_s)


def _skip(library: Path | str, *, entry: str = "k", timeout_s: float = 30.0) -> Skip:
    answer = _ask(library, entry=entry, timeout_s=timeout_s)
    assert isinstance(answer, Skip)
    return answer


def test_the_gpu_of_the_target_is_asked_not_the_first(driver: Make) -> None:
    answer = _ask(driver())
    assert isinstance(answer, DriverReport)
    assert (answer.device, answer.target, answer.driver) == ("GPU 1", "sm_37", "11.4")
    kernel = answer.entries["k"]
    assert (kernel.max_threads_per_block, kernel.shared_bytes, kernel.constant_bytes) == (100, 101, 102)
    assert (kernel.local_bytes, kernel.registers) == (103, 104)
    assert (kernel.ptx_version, kernel.binary_version) == (105, 106)


def test_without_the_targets_gpu_the_first_is_asked_and_named(driver: Make) -> None:
    answer = _ask(driver(), target="sm_103a")
    assert isinstance(answer, DriverReport)
    assert (answer.device, answer.target) == ("GPU 0", "sm_90")


def test_no_driver_is_a_skip_that_says_so() -> None:
    skip = _skip("libno-such-driver.so.1")
    assert skip.reason == "no CUDA driver on this machine (libno-such-driver.so.1 cannot be opened)"
    assert skip.fix is not None


def test_a_driver_without_a_gpu_is_a_skip(driver: Make) -> None:
    assert _skip(driver(count=0)).reason == "the CUDA driver sees no GPU"
    assert _skip(driver(init="return 100")).reason == "cuInit failed: NAME (100)"


def test_ptx_newer_than_the_driver_is_a_skip_not_a_fault_of_the_product(driver: Make) -> None:
    log = "ptxas application ptx input, line 9; fatal   : Unsupported .version 99.0; current version is '9.0'"
    reason = _skip(driver(load=222, log=log)).reason
    assert reason == f"CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): {log}"


def test_ptx_for_a_newer_gpu_is_a_skip_too(driver: Make) -> None:
    log = "ptxas fatal   : SM version specified by .target is higher than default SM version assumed"
    assert "higher than default" in _skip(driver(load=218, log=log)).reason


def test_ptx_that_the_driver_refuses_is_an_error_with_its_line(driver: Make) -> None:
    log = "ptxas application ptx input, line 14; error   : Unknown modifier '.globl'"
    with pytest.raises(ProductError) as caught:
        _ask(driver(load=218, log=log))
    assert caught.value.line == 14
    assert caught.value.message == "the CUDA driver refuses the PTX: Unknown modifier '.globl'"
    with pytest.raises(ProductError, match=r"refuses the PTX: NAME \(200\)"):
        _ask(driver(load=200))


def test_a_kernel_that_the_module_lacks_is_a_skip_not_zeros(driver: Make) -> None:
    assert _skip(driver(), entry="other").reason == "cuModuleGetFunction failed: NAME (500)"


def test_a_driver_that_crashes_takes_only_its_own_process(driver: Make) -> None:
    assert _skip(driver(init="abort()")).reason.startswith("the CUDA driver was killed by SIGABRT")


def test_a_driver_that_hangs_is_stopped(driver: Make) -> None:
    assert "stopped after 1 s" in _skip(driver(init="for(;;)"), timeout_s=1).reason


def test_a_driver_that_prints_does_not_spoil_the_answer(driver: Make) -> None:
    assert isinstance(_ask(driver(init='puts("banner")')), DriverReport)


def test_a_library_that_is_no_driver(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("a library without the driver's functions was not tried: needs gcc")
    library = tmp_path / "libempty.so"
    subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", library], check=True)
    assert _skip(library).reason == "the CUDA driver is too old: it lacks cuInit"
