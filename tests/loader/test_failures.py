"""Every way a machine or a build can fail the loader: the status, the words, and nothing left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.loader.conftest import Host, Workshop

CLEAN = "left: contexts 0, modules 0, allocations 0, pushed 0"
REGISTRY = "compare with: ssmtool registry"
BUILD = "the kernel was added to the source after the header was last generated; run: ssmtool build"

# Every entry point on the way to an open handle and back.
FALLIBLE = (
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDriverGetVersion",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuCtxPushCurrent_v2",
    "cuModuleLoadDataEx",
    "cuModuleGetFunction",
)


@pytest.fixture(scope="session")
def checked(workshop: Workshop) -> Host:
    """The host program and the test driver under the address and undefined-behaviour sanitizers."""
    flags = workshop.sanitize
    probe = workshop.folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    if workshop.cc("probe", [probe], *flags).returncode != 0:
        pytest.skip("no sanitizer runtime: leaks, overruns and undefined behaviour of the loader were not looked for")
    # All but the last: the longest way to a failure.
    kernels = dict(list(workshop.contract.items())[:-1])
    return workshop.host("checked-host", workshop.header(workshop.ptx(kernels)), *flags)


# ------------------------------------------------------------------------------------------------ a kernel is missing


@pytest.mark.parametrize("index", [0, 7, 14], ids=["first", "middle", "last"])
def test_missing_kernel_is_named_with_its_index_and_the_inert_rest(
    workshop: Workshop, contract: dict[str, str], index: int
) -> None:
    names = list(contract)
    missing = names[index]
    kernels = {name: types for name, types in contract.items() if name != missing}
    result = workshop.host(f"missing{index}", workshop.header(workshop.ptx(kernels))).run("fails")
    usable = f": {', '.join(names[:index])}" if index else ""
    inert = f": {', '.join(names[index + 1 :])}" if index < 14 else ""
    assert result.code == 0
    assert result.output == (
        "status 9 cuda 500\n"
        f"kernel {missing}, name {index + 1} of 15 (index {index}), is not in the loaded module: "
        "CUDA error 500, CUDA_ERROR_NOT_FOUND (named symbol not found)\n"
        f"  usable: {index} before it{usable}\n"
        f"  inert: it and {14 - index} after it{inert}\n"
        f"  likely cause: {BUILD}\n"
        "  (or it was removed or renamed there, and the name stayed; see: ssmtool registry)\n"
    )
    assert result.calls.count("cuModuleGetFunction") == index + 1, "stops at the first missing name"
    assert result.left == CLEAN


def test_renamed_kernel_points_at_the_entry_nobody_asks_for(workshop: Workshop, contract: dict[str, str]) -> None:
    contract["fc_sigmoid_v2"] = contract.pop("fc_sigmoid")
    output = workshop.host("renamed", workshop.header(workshop.ptx(contract))).run("fails").output
    assert f"no name asks for fc_sigmoid_v2, which the module has; {REGISTRY}" in output
    assert BUILD not in output


@pytest.mark.parametrize("symbol", ["_Z17fc_ssm_gated_normPKfS0_", "_ZN4mine17fc_ssm_gated_normEPKf"])
def test_missing_extern_c_is_told_from_the_mangled_name(
    workshop: Workshop, contract: dict[str, str], symbol: str
) -> None:
    contract[symbol] = contract.pop("fc_ssm_gated_norm")
    output = workshop.host("mangled", workshop.header(workshop.ptx(contract))).run("fails").output
    assert (
        f'the module has {symbol}: the kernel lacks extern "C"; add it in the source and run: ssmtool build' in output
    )


@pytest.mark.parametrize("symbol", ["xx_17fc_ssm_gated_norm", "_Z117fc_ssm_gated_normPKf", "_Z16fc_ssm_gated_norPf"])
def test_a_symbol_that_only_looks_mangled_is_a_rename(
    workshop: Workshop, contract: dict[str, str], symbol: str
) -> None:
    """117 would be the length of a longer name that begins alike."""
    contract[symbol] = contract.pop("fc_ssm_gated_norm")
    output = workshop.host("not-mangled", workshop.header(workshop.ptx(contract))).run("fails").output
    assert f"no name asks for {symbol}, which the module has; {REGISTRY}" in output


def test_another_kernels_mangled_name_that_begins_alike_is_not_blamed(
    workshop: Workshop, contract: dict[str, str]
) -> None:
    del contract["fc_ssm_recurrence"]
    contract["_Z21fc_ssm_recurrence_seqPf"] = contract.pop("fc_ssm_recurrence_seq")
    output = workshop.host("alike", workshop.header(workshop.ptx(contract))).run("fails").output
    assert "kernel fc_ssm_recurrence, name 1 of 15" in output
    assert "lacks extern" not in output


def test_lookup_that_fails_for_another_reason_is_not_called_missing(host: Host) -> None:
    result = host.run("fails", FC_TEST_FAIL="cuModuleGetFunction=2")
    assert result.status == 11
    assert "cannot be taken from the module: CUDA error 2, CUDA_ERROR_OUT_OF_MEMORY" in result.output
    assert "likely cause" not in result.output


def test_partial_handle_has_the_kernels_before_and_refuses_the_others_by_name(
    workshop: Workshop, contract: dict[str, str]
) -> None:
    del contract["fc_ssm_decay_gate_nx"]
    result = workshop.host("partial", workshop.header(workshop.ptx(contract))).run("partial")
    assert result.code == 0
    assert "status 9 cuda 500\nkernel fc_ssm_decay_gate_nx" in result.output
    assert "loaded 13\n" in result.output
    # Number 15 is in the module; it is inert all the same, because loading stopped at 14.
    assert "fc_ssm_decay_gate_nx was not loaded: the module lacked fc_ssm_decay_gate_nx" in result.output
    assert "fc_ssm_qknorm_gqa_nx was not loaded: the module lacked fc_ssm_decay_gate_nx" in result.output
    assert "cuLaunchKernel" not in result.calls
    assert result.left == CLEAN


# ---------------------------------------------------------------------------------------------- the PTX does not load


@pytest.mark.parametrize("text", ["", "\n", "// made without a compiler\n", ".version 7.4\n.target sm_37\n"])
def test_empty_ptx_table_is_loud_even_where_there_is_no_driver(workshop: Workshop, text: str) -> None:
    result = workshop.host("empty", workshop.header(text)).run("fails", driver="/nowhere/libcuda.so.1")
    assert (result.code, result.status) == (0, 3)
    assert "carries no kernel, so nothing could ever run on a GPU" in result.output
    assert "run: ssmtool build" in result.output


def test_222_says_which_isa_the_ptx_is_and_which_the_driver_reads(workshop: Workshop, contract: dict[str, str]) -> None:
    host = workshop.host("newer", workshop.header(workshop.ptx(contract, isa="7.8")))
    result = host.run("fails", FC_TEST_FAIL="cuModuleLoadDataEx=222")
    assert result.status == 8
    assert "CUDA error 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION" in result.output
    assert (
        "PTX ISA 7.8 for sm_37\n  driver for CUDA 11.4; device 0: Test K80 #0, compute capability 3.7" in result.output
    )
    assert "newer than this driver, which reads PTX ISA 7.4 at most; rebuild with CUDA 11.4 or older" in result.output
    assert result.left == CLEAN


def test_222_on_a_cuda_10_driver_claims_no_isa_number(host: Host) -> None:
    """CUDA 10.2 reads ISA 6.5, not 6.2: the rule of thumb starts at CUDA 11."""
    output = host.run("fails", FC_TEST_FAIL="cuModuleLoadDataEx=222", FC_TEST_VERSION="10020").output
    assert "driver for CUDA 10.2" in output
    assert "at most" not in output


def test_218_passes_the_assemblers_log_on(host: Host) -> None:
    log = "ptxas application ptx input, line 12; error   : Unknown symbol 'oops'"
    result = host.run("fails", FC_TEST_FAIL="cuModuleLoadDataEx=218", FC_TEST_JIT_LOG=log)
    assert result.status == 8
    assert "CUDA error 218, CUDA_ERROR_INVALID_PTX" in result.output
    assert "see: ssmtool build --check" in result.output
    assert f"the driver's assembler says:\n{log}\n" in result.output
    assert result.left == CLEAN


def test_a_log_longer_than_its_buffer_is_cut_not_overrun(checked: Host) -> None:
    result = checked.run("fails", FC_TEST_FAIL="cuModuleLoadDataEx=218", FC_TEST_JIT_LOG="x" * 10_000)
    assert (result.code, result.status) == (0, 8), result.errors
    assert 2000 < result.output.count("x") < 2100


def test_text_without_a_version_prints_no_empty_isa(workshop: Workshop) -> None:
    result = workshop.host("no-version", workshop.header("hello .entry x\n")).run("fails")
    assert "status 8 cuda 200" in result.output
    assert "PTX ISA" not in result.output


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (209, "PTX runs on the architecture it names and on newer ones, and this device is older"),
        (200, "the text is not PTX: the generated header is damaged"),
        (221, "libnvidia-ptxjitcompiler.so.1 is missing"),
        (223, "CUDA_DISABLE_PTX_JIT is set"),
    ],
)
def test_other_reasons_to_refuse_the_module_are_explained(host: Host, code: int, words: str) -> None:
    result = host.run("fails", FC_TEST_FAIL=f"cuModuleLoadDataEx={code}")
    assert result.status == 8
    assert f"status 8 cuda {code}\n" in result.output
    assert words in result.output


# ------------------------------------------------------------------------------------------ the machine has no CUDA


def test_no_driver_library(host: Host) -> None:
    result = host.run("fails", driver="/nowhere/libcuda.so.1")
    assert result.status == 4
    assert "cannot open the CUDA driver library /nowhere/libcuda.so.1: " in result.output
    assert "comes with the NVIDIA driver" in result.output


def test_environment_names_the_driver_and_is_named_in_the_error(host: Host) -> None:
    assert host.run("all", driver="", FC_CUDA_DRIVER=str(host.driver)).code == 0
    output = host.run("fails", driver="", FC_CUDA_DRIVER="/nowhere/x.so").output
    assert "/nowhere/x.so (from $FC_CUDA_DRIVER)" in output


def test_argument_wins_over_environment(host: Host) -> None:
    assert host.run("all", FC_CUDA_DRIVER="/nowhere/x.so").code == 0


def test_empty_environment_variable_means_the_systems_driver(host: Host) -> None:
    """As unset. This machine may or may not have a driver: where it has none, the error names libcuda.so.1."""
    result = host.run("names", driver="", FC_CUDA_DRIVER="")
    assert result.status != 5, 'dlopen("") opens the program itself'
    assert result.status != 4 or "cannot open the CUDA driver library libcuda.so.1: " in result.output


def test_driver_without_an_entry_point_says_which(workshop: Workshop, host: Host) -> None:
    old = workshop.library("without-launch", "-DWITHOUT_LAUNCH")
    result = host.run("fails", driver=old)
    assert result.status == 5
    assert f"the driver library {old} has no cuLaunchKernel" in result.output
    assert result.left == CLEAN
    assert "cuInit" not in result.calls, "nothing is started before every entry point is there"


def test_a_library_that_is_no_driver(workshop: Workshop, host: Host) -> None:
    source = workshop.folder / "other.c"
    source.write_text("int other(void);\nint other(void) { return 0; }\n")
    assert workshop.cc("other.so", [source], "-shared", "-fPIC").returncode == 0
    result = host.run("fails", driver=workshop.folder / "other.so")
    assert result.status == 5
    assert "has no cuInit" in result.output
    assert "or no CUDA driver at all" in result.output


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        (100, 7, "CUDA_VISIBLE_DEVICES hides them all"),
        (34, 6, "link stub, not a driver"),
        (803, 6, "of different releases: reboot"),
        (999, 6, "a code this driver has no name for"),
    ],
)
def test_driver_that_does_not_start(host: Host, code: int, status: int, words: str) -> None:
    result = host.run("fails", FC_TEST_FAIL=f"cuInit={code}")
    assert result.status == status
    assert f"the CUDA driver does not start: CUDA error {code}, " in result.output
    assert words in result.output


@pytest.mark.parametrize(("devices", "ordinal"), [("0", "0"), ("2", "2"), ("1", "-1")])
def test_no_such_device(host: Host, devices: str, ordinal: str) -> None:
    result = host.run("fails", FC_TEST_DEVICES=devices, HOST_DEVICE=ordinal)
    assert result.status == 7
    assert f"no such CUDA device: {ordinal} was asked for, and there are {devices}" in result.output


# ----------------------------------------------------------------------------------------------- launches that fail


def test_refused_launch_names_the_kernel_and_its_shape(host: Host) -> None:
    output = host.run("launch-one", FC_TEST_FAIL="cuLaunchKernel=701").output
    assert "fc_sigmoid was not launched (grid 1x1x1, block 256x1x1, 0 bytes shared): CUDA error 701" in output
    assert "fc_cuda_kernel_info tells its max_threads" in output


def test_fault_inside_a_kernel_surfaces_at_the_wait_and_close_still_releases(host: Host) -> None:
    result = host.run("all", FC_TEST_FAIL="cuCtxSynchronize=700")
    assert result.code == 1
    assert "work on the device failed: CUDA error 700, CUDA_ERROR_ILLEGAL_ADDRESS" in result.output
    assert "restart it" in result.output
    assert result.left == CLEAN


# --------------------------------------------------------------------------------------------- nothing stays behind


@pytest.mark.parametrize("entry_point", FALLIBLE)
def test_whatever_fails_while_opening_everything_is_released(checked: Host, entry_point: str) -> None:
    result = checked.run("fails", FC_TEST_FAIL=f"{entry_point}=1")
    assert result.code == 0, result.errors
    assert "cuda 1\n" in result.output
    assert "CUDA error 1, CUDA_ERROR_INVALID_VALUE (invalid argument)" in result.output
    # A push that fails on the way in fails on the way out as well: the context is released even so.
    assert result.left == CLEAN


def test_missing_kernel_releases_module_and_context_under_the_sanitizers(checked: Host) -> None:
    result = checked.run("fails")
    assert (result.code, result.status) == (0, 9), result.errors
    assert "name 15 of 15 (index 14)" in result.output
    assert result.calls.index("cuModuleUnload") < result.calls.index("cuDevicePrimaryCtxRelease_v2")
    assert result.left == CLEAN


def test_misuse_and_success_are_clean_under_the_sanitizers(
    workshop: Workshop, checked: Host, contract: dict[str, str]
) -> None:
    assert checked is not None  # the sanitizers are here
    whole = workshop.host("checked-all", workshop.header(workshop.ptx(contract)), *workshop.sanitize)
    for mode in ("all", "memory", "misuse", "null", "names", "info"):
        result = whole.run(mode)
        assert result.code == 0, (mode, result.output, result.errors)
        assert result.errors == ""
