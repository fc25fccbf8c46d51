"""The loader's second module: the fast kernels, loaded when the options ask for them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loader.test_loader import CLEAN, expected_launches, replaced

if TYPE_CHECKING:
    from tests.loader.conftest import Host, Workshop


def test_they_load_and_launch_with_their_arguments_in_order(host: Host, workshop: Workshop) -> None:
    result = host.run("fast")
    assert result.code == 0, result.output
    assert result.names("launch ") == expected_launches(workshop.fast)
    assert [line for line in result.output.splitlines() if line.endswith(" 1")] == [
        f"{name} 1" for name in workshop.fast
    ]
    assert result.calls.count("cuModuleLoadDataEx") == result.calls.count("cuModuleUnload") == 2
    assert result.left == CLEAN


def test_the_generated_header_has_them(each: Workshop) -> None:
    generated = each.root / "generated" / "fc_cuda_ptx.h"
    for name, flags in (("real-fast", ()), ("real-fast-split", ("-DFC_PTX_SPLIT_LITERALS",))):
        result = each.host(name, f'#include "{generated}"\n', *flags).run("fast")
        assert result.code == 0, result.output
        assert result.names("launch ") == expected_launches(each.fast)


def test_without_the_option_nothing_of_them_is_loaded_and_a_launch_says_so(host: Host) -> None:
    result = host.run("fast-without")
    assert "status 9 cuda 0" in result.output
    assert (
        "fc_ssm_recurrence_slots_warp was not loaded: the fast kernels are loaded when fc_cuda_options.fast says so"
        in (result.output)
    )
    assert result.calls.count("cuModuleLoadDataEx") == 1
    assert result.left == CLEAN


def test_one_that_the_module_lacks_is_named_and_everything_is_given_back(
    workshop: Workshop, contract: dict[str, str]
) -> None:
    fast = {name: types for name, types in workshop.fast.items() if name != "fc_ssm_decode_step"}
    header = workshop.header(workshop.ptx(contract), workshop.ptx(fast))
    result = workshop.host("fast-lacks", header).run("fails", HOST_FAST="1")
    assert (result.code, result.status) == (0, 9)
    assert "kernel fc_ssm_decode_step, name 3 of 3 (index 2), is not in the loaded module" in result.output
    assert result.left == CLEAN


def test_names_in_another_order_and_a_wrong_count_are_refused(workshop: Workshop, contract: dict[str, str]) -> None:
    loader = (workshop.root / "kernels" / "fc_cuda.c").read_text()
    fast = (workshop.root / "kernels" / "fc_cuda_fast.h").read_text()
    first, second = list(workshop.fast)[:2]
    swapped = fast.replace(f'"{first}"', "@").replace(f'"{second}"', f'"{first}"').replace("@", f'"{second}"')
    for number, (text, says) in enumerate(
        (
            (swapped, f'fast_names[0] is "{second}", FC_FAST_KERNELS in fc_cuda.h has "{first}" there'),
            (replaced(fast, "fast_names, 3,", "fast_names, 2,"), "is told 2 names, FC_FAST_KERNELS holds 3"),
        )
    ):
        whole = replaced(loader, '#include "fc_cuda_fast.h"', text)
        host = workshop.host(f"fast-{number}", workshop.header(workshop.ptx(contract)), loader=whole)
        result = host.run("fails", HOST_FAST="1")
        assert (result.code, result.status) == (0, 2)
        assert says in result.output
        assert result.left == CLEAN


def test_argument_counts_are_the_contracts(workshop: Workshop) -> None:
    text = (workshop.root / "kernels" / "fc_cuda.h").read_text()
    rows = re.findall(r"F\((\w+), (\w+), (\d+)\)", text)
    assert [(constant, symbol, int(count)) for constant, symbol, count in rows] == [
        (name.upper(), name, len(types)) for name, types in workshop.fast.items()
    ]
