from __future__ import annotations

import dataclasses
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from ssmtool.audit.launches import Launch, contract_launches
from ssmtool.audit.occupancy import GK210, occupancy, occupancy_rows
from ssmtool.errors import SsmtoolError
from ssmtool.toolchain.ptxas_report import Resources


def test_warps_and_blocks_tie_for_four_warp_blocks() -> None:
    # 128 threads = 4 warps: 64 / 4 = 16 blocks by warps, 16 by the block limit.
    # 20 registers * 32 = 640, up to 768 a warp; 131072 / 4 / 768 = 42 warps a partition, 168 in all; 168 / 4 = 42.
    # 512 bytes of shared memory: 114688 / 512 = 224 blocks.
    result = occupancy(20, 128, 512)
    assert (result.blocks, result.warps, result.fraction) == (16, 64, 1.0)
    assert result.limiter == "warps, blocks"
    assert result.allowed == {"warps": 16, "blocks": 16, "registers": 42, "shared memory": 224}


def test_registers_round_up_to_256_a_warp_not_a_block() -> None:
    # 65 * 32 = 2080, up to 2304 a warp; 32768 / 2304 = 14 warps a partition, 56 in all; 56 / 8 = 7 blocks of 256.
    # Without the rounding it would be 15 a partition and still 7 blocks; at 5 warps a block the two differ: 11 and 12.
    assert occupancy(65, 256, 0).allowed["registers"] == 7
    assert occupancy(65, 160, 0).allowed["registers"] == 11


def test_leftovers_of_the_partitions_do_not_add_up() -> None:
    # 168 * 32 = 5376 a warp; 32768 / 5376 = 6 a partition, 24 in all (the whole file would hold 131072 / 5376 = 24.4).
    # 144 * 32 = 4608 a warp; 7 a partition, 28 in all: 28 one-warp blocks, above the 16 block limit.
    assert occupancy(168, 256, 0).blocks == 3
    assert occupancy(144, 32, 0).allowed["registers"] == 28


def test_the_launch_check_rounds_the_warps_of_a_block_to_four() -> None:
    # 255 registers: 8192 a warp. 8 warps = 65536, the most a block may have; 9 warps count as 12.
    assert occupancy(255, 256, 0).blocks == 2
    too_many = occupancy(255, 257, 0)
    assert (too_many.blocks, too_many.limiter) == (0, "registers")


def test_more_than_255_registers_or_1024_threads_cannot_launch() -> None:
    assert occupancy(256, 32, 0).limiter == "registers"
    assert occupancy(10, 1025, 0).limiter == "warps"


def test_shared_memory_in_units_of_256() -> None:
    # 12289 bytes become 12544: 114688 / 12544 = 9.1.
    result = occupancy(32, 128, 12_289)
    assert (result.blocks, result.limiter) == (9, "shared memory")
    assert occupancy(32, 128, 48 * 1024).blocks == 2
    assert occupancy(32, 128, 48 * 1024 + 1).blocks == 0


def test_more_l1_leaves_less_shared_memory() -> None:
    l1 = dataclasses.replace(GK210, shared_bytes=80 * 1024)
    assert occupancy(32, 128, 48 * 1024, l1).blocks == 1


def test_an_unused_resource_is_no_limiter() -> None:
    assert "shared memory" not in occupancy(32, 32, 0).allowed
    assert occupancy(0, 32, 0).limiter == "blocks"


@pytest.mark.parametrize("arguments", [(-1, 32, 0), (1, 0, 0), (1, 32, -1)])
def test_impossible_numbers_are_refused(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(SsmtoolError, match="no launch has"):
        occupancy(*arguments)


_ORACLE = r"""
#include <stdio.h>
#include <string.h>
#include <limits.h>
#include "cuda_occupancy.h"
int main(void) {
    struct cudaOccDeviceProp device;
    struct cudaOccFuncAttributes function;
    struct cudaOccDeviceState state;
    int registers, threads, shared;
    memset(&device, 0, sizeof device);
    memset(&state, 0, sizeof state);
    device.computeMajor = 3; device.computeMinor = 7;
    device.maxThreadsPerBlock = 1024; device.maxThreadsPerMultiprocessor = 2048;
    device.regsPerBlock = 65536; device.regsPerMultiprocessor = 131072; device.warpSize = 32;
    device.sharedMemPerBlock = 49152; device.sharedMemPerMultiprocessor = 114688; device.numSms = 13;
    while (scanf("%d %d %d", &registers, &threads, &shared) == 3) {
        struct cudaOccResult result;
        memset(&function, 0, sizeof function);
        function.maxThreadsPerBlock = INT_MAX; function.numRegs = registers;
        function.partitionedGCConfig = PARTITIONED_GC_OFF; function.shmemLimitConfig = FUNC_SHMEM_LIMIT_DEFAULT;
        function.numBlockBarriers = 1;
        int error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, threads, shared);
        if (error) return 10 + error;
        printf("%d %d\n", result.activeBlocksPerMultiprocessor, (int)result.limitingFactors);
    }
    return 0;
}
"""
# cudaOccLimitingFactor of cuda_occupancy.h
_FACTORS = {"warps": 1, "registers": 2, "shared memory": 4, "blocks": 8}


def _nvidia_header() -> Path | None:
    try:
        distribution = metadata.distribution("nvidia-cuda-runtime-cu11")
    except metadata.PackageNotFoundError:
        return None
    path = Path(str(distribution.locate_file("nvidia/cuda_runtime/include/cuda_occupancy.h")))
    return path if path.is_file() else None


def test_equals_nvidias_own_calculator(tmp_path: Path) -> None:
    header = _nvidia_header()
    assert header is not None, "make test brings nvidia-cuda-runtime-cu11"
    if shutil.which("gcc") is None:
        pytest.skip("occupancy is not compared with NVIDIA's: needs gcc")
    (tmp_path / "oracle.c").write_text(_ORACLE)
    build = ["gcc", "-O1", "-w", "-I", str(header.parent), "oracle.c", "-o", "oracle", "-lm"]
    subprocess.run(build, cwd=tmp_path, check=True)
    cases = [
        (registers, threads, shared)
        for registers in range(1, 257)
        for threads in (1, 32, 33, 96, 128, 160, 256, 288, 352, 512, 640, 1024)
        for shared in (0, 1, 1024, 7000, 12_289, 28_672, 49_152, 49_153)
    ]
    asked = "\n".join(f"{registers} {threads} {shared}" for registers, threads, shared in cases)
    answer = subprocess.run([tmp_path / "oracle"], input=asked, capture_output=True, text=True, check=True).stdout
    lines = answer.split("\n")[:-1]
    assert len(lines) == len(cases)
    for case, line in zip(cases, lines, strict=True):
        blocks, factors = (int(word) for word in line.split())
        ours = occupancy(*case)
        assert ours.blocks == blocks, case
        if blocks:
            assert sum(_FACTORS[name] for name in ours.limiter.split(", ")) == factors, case


def test_table_of_the_contract() -> None:
    # Registers as ptxas 11.8 reports them for the kernels built by NVRTC 11.4 (docs/kernels.md).
    registers = (20, 22, 21, 12, 10, 30, 32, 31, 33, 40, 22, 20, 23, 10, 32)
    launches = contract_launches()
    resources = [
        Resources(launch.kernel, "sm_37", count, 0, 0, 0) for launch, count in zip(launches, registers, strict=True)
    ]
    rows = occupancy_rows(resources, launches)
    assert len(rows) == 15
    assert {row.occupancy.fraction for row in rows} == {1.0}
    warp = rows[9]
    # (32, 32) blocks over 13 multiprocessors of 16 blocks: 1024 / 208.
    assert warp.launch == Launch("fc_ssm_recurrence_seq_warp", (32, 32, 1), (128, 1, 1), 1024)
    assert warp.waves == pytest.approx(1024 / 208)


def test_kernel_10_loses_occupancy_to_its_shared_array_at_long_prompts() -> None:
    launch = contract_launches(positions=6144)[9]
    assert launch.dynamic_shared_bytes == 48 * 1024
    (row,) = occupancy_rows([Resources(launch.kernel, "sm_37", 40, 0, 0, 0)], [launch])
    assert (row.occupancy.blocks, row.occupancy.limiter) == (2, "shared memory")
    too_long = contract_launches(positions=6145)[9]
    (row,) = occupancy_rows([Resources(too_long.kernel, "sm_37", 40, 0, 0, 0)], [too_long])
    assert row.occupancy.blocks == 0
    assert row.waves is None
