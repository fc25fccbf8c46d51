"""The loader compiled, opened and used: what works, and the lists that must agree before anything runs."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.loader.conftest import Host, Workshop

CLEAN = "left: contexts 0, modules 0, allocations 0, pushed 0"


def float_of_bits(bits: int) -> str:
    """How C prints the float whose bits are `bits`."""
    return f"{struct.unpack('<f', struct.pack('<I', bits))[0]:g}"


def expected_launches(contract: dict[str, str]) -> list[str]:
    """The launches of mode `all`: argument i of kernel k holds 100*k + i, whatever its type."""
    launches = []
    for k, (name, types) in enumerate(contract.items()):
        values = [float_of_bits(100 * k + i) if kind == "f" else str(100 * k + i) for i, kind in enumerate(types)]
        launches.append(f"launch {name} grid {k + 1}x2x3 block 128x1x1 shared 512: {' '.join(values)}")
    return launches


def replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in fc_cuda.c"
    return text.replace(old, new)


def test_no_warning_in_any_form_and_all_fifteen_launch_with_their_arguments_in_order(
    each: Workshop, contract: dict[str, str]
) -> None:
    host = each.host("all", each.header(each.ptx(contract)), "-O2")
    result = host.run("all")
    assert result.code == 0, result.output
    assert result.status == 0
    assert result.names("launch ") == expected_launches(contract)
    assert result.left == CLEAN


def test_ptx_beyond_the_4095_characters_of_iso_c_is_no_warning(each: Workshop, contract: dict[str, str]) -> None:
    text = each.ptx(contract) + "// padding\n" * 8000
    assert len(text) > 65_535
    assert each.host("long", each.header(text)).run("all").code == 0


def test_the_generated_header_loads_all_fifteen(each: Workshop, contract: dict[str, str]) -> None:
    """In both of its forms: one literal, and the split literals that MSVC needs."""
    generated = each.root / "generated" / "fc_cuda_ptx.h"
    for name, flags in (("real", ()), ("real-split", ("-DFC_PTX_SPLIT_LITERALS",))):
        result = each.host(name, f'#include "{generated}"\n', *flags).run("all")
        assert result.code == 0, result.output
        assert result.names("launch ") == expected_launches(contract)


def test_the_default_header_is_the_one_the_build_writes(loader_text: str) -> None:
    assert '#define FC_CUDA_PTX_HEADER "../generated/fc_cuda_ptx.h"' in loader_text


def test_public_header_compiles_as_cpp(workshop: Workshop) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is absent: not checked that fc_cuda.h can be included from C++")
    source = workshop.folder / "host.cpp"
    source.write_text('#include "fc_cuda.h"\nint main() { fc_cuda_close(nullptr); }\n')
    command = ["g++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{workshop.root / 'kernels'}", "-c"]
    done = subprocess.run([*command, source, "-o", f"{source}.o"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_argument_counts_are_the_contracts(workshop: Workshop, contract: dict[str, str]) -> None:
    text = (workshop.root / "kernels" / "fc_cuda.h").read_text()
    rows = re.findall(r"X\((\w+), (\w+), (\d+)\)", text)
    assert [(symbol, int(count)) for _, symbol, count in rows] == [(n, len(t)) for n, t in contract.items()]
    assert [constant for constant, _, _ in rows] == [name.upper() for name in contract]


def test_every_constant_finds_its_symbol(host: Host, contract: dict[str, str]) -> None:
    lines = host.run("names").output.splitlines()
    assert lines[-15:] == [f"{name} 1" for name in contract]


def test_device_and_kernel_attributes_land_in_the_right_fields(host: Host) -> None:
    output = host.run("info", FC_TEST_DEVICES="2", HOST_DEVICE="1").output
    assert "Test K80 #1 ordinal 1 cc 3.7 sm 13 shared 49152 driver 11040" in output
    assert "registers 32 local 8 static shared 16 threads 1024" in output


def test_memory_round_trip_and_zero_bytes(host: Host) -> None:
    result = host.run("memory")
    assert result.code == 0, result.output
    assert result.calls.count("cuMemAlloc_v2") == 1
    assert result.left == CLEAN


def test_out_of_device_memory_is_told_apart_and_says_how_much(host: Host) -> None:
    result = host.run("memory-fails", FC_TEST_FAIL="cuMemAlloc_v2=2")
    assert result.code == 0
    assert "status 10 cuda 2\ncannot allocate device memory: CUDA error 2, CUDA_ERROR_OUT_OF_MEMORY" in result.output
    assert "4 bytes were asked for on device 0, Test K80 #0" in result.output


def test_misuse_is_refused_before_it_reaches_the_driver(host: Host) -> None:
    result = host.run("misuse")
    assert result.code == 0, result.output
    assert not {"cuLaunchKernel", "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemsetD8_v2"} & set(result.calls)


def test_null_output_is_an_argument_error_and_closing_null_is_fine(host: Host) -> None:
    result = host.run("null")
    assert (result.code, result.status) == (0, 1)
    assert "cuda is NULL" in result.output


def test_no_positions_is_no_launch_where_the_driver_would_call_it_invalid(host: Host) -> None:
    result = host.run("no-positions")
    assert result.status == 0
    assert "cuLaunchKernel" not in result.calls


def test_the_calling_thread_gets_its_own_context_back_after_every_call(host: Host) -> None:
    calls = host.run("all").calls
    current = 0
    for call in calls:
        current += (call == "cuCtxPushCurrent_v2") - (call == "cuCtxPopCurrent_v2")
        assert current in (0, 1)
    assert current == 0
    assert "cuCtxSetCurrent" not in calls


@pytest.mark.parametrize(("count", "left_out"), [(14, ["fc_ssm_qknorm_gqa_nx"]), (13, 2), (0, 15), (-1, 15)])
def test_count_below_the_array_fails_and_does_not_leave_kernels_silently_inert(
    workshop: Workshop, contract: dict[str, str], loader_text: str, count: int, left_out: list[str] | int
) -> None:
    loader = replaced(loader_text, "ssm_names, 15,", f"ssm_names, {count},")
    host = workshop.host(f"count{count}", workshop.header(workshop.ptx(contract)), loader=loader)
    result = host.run("fails")
    names = left_out if isinstance(left_out, list) else list(contract)[-left_out:]
    assert result.code == 0
    assert result.output == (
        "status 2 cuda 0\n"
        f"the loader's count is wrong: fc_load_functions is told {count} names, ssm_names holds 15\n"
        f"  left out: {', '.join(names)}\n"
        "  run: ssmtool registry --fix\n"
    )
    assert result.left == CLEAN


def test_count_above_the_array_fails_and_does_not_read_past_it(
    workshop: Workshop, contract: dict[str, str], loader_text: str
) -> None:
    loader = replaced(loader_text, "ssm_names, 15,", "ssm_names, 16,")
    host = workshop.host("count16", workshop.header(workshop.ptx(contract)), *workshop.sanitize, loader=loader)
    result = host.run("fails")
    assert result.code == 0, result.errors
    assert "fc_load_functions is told 16 names, ssm_names holds 15\n  run: ssmtool registry --fix\n" in result.output
    assert result.left == CLEAN


def test_two_names_swapped_would_launch_the_wrong_kernel(
    workshop: Workshop, contract: dict[str, str], loader_text: str
) -> None:
    loader = replaced(
        loader_text, '    "fc_sigmoid",\n    "fc_ssm_decay_gate",\n', '    "fc_ssm_decay_gate",\n    "fc_sigmoid",\n'
    )
    host = workshop.host("swapped", workshop.header(workshop.ptx(contract)), loader=loader)
    result = host.run("fails")
    assert (result.code, result.status) == (0, 2)
    assert 'ssm_names[3] in fc_cuda.c is "fc_ssm_decay_gate", FC_KERNELS in fc_cuda.h has "fc_sigmoid"' in result.output
    assert result.left == CLEAN


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    "fc_sigmoid",\n', ""),
        ('"fc_sigmoid",', '"fc_sigmoid"'),
    ],
    ids=["deleted", "missing comma"],
)
def test_a_name_lost_from_the_array_does_not_compile(
    each: Workshop, contract: dict[str, str], loader_text: str, old: str, new: str
) -> None:
    done = each.compile("lost", each.header(each.ptx(contract)), loader=replaced(loader_text, old, new))
    assert done.returncode != 0
    assert "ssm_names is shorter than FC_KERNELS: a name was deleted, or a missing comma joined two" in done.stderr


def test_a_sixteenth_name_loads_before_it_has_a_constant(
    workshop: Workshop, contract: dict[str, str], loader_text: str
) -> None:
    """What the build's own edit of the loader leaves behind: it must compile and run as it is."""
    loader = replaced(loader_text, '    "fc_ssm_qknorm_gqa_nx",\n', '    "fc_ssm_qknorm_gqa_nx",\n    "fc_new",\n')
    loader = replaced(loader, "ssm_names, 15,", "ssm_names, 16,")
    host = workshop.host("sixteen", workshop.header(workshop.ptx({**contract, "fc_new": "pi"})), loader=loader)
    result = host.run("all")
    assert result.code == 0, result.output
    assert result.calls.count("cuModuleGetFunction") == 16
