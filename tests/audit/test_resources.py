from __future__ import annotations

from pathlib import Path

import pytest

from ssmtool.audit import resources
from ssmtool.audit.driver_truth import DriverReport, DriverResources
from ssmtool.audit.resources import Hint, KernelTiers, Tiers, hints, measure, three_tiers
from ssmtool.errors import ProductError
from ssmtool.findings import Skip
from ssmtool.header import read_header
from ssmtool.ptx import PtxSyntaxError, parse
from ssmtool.toolchain import CompileRequest, find_compilers
from ssmtool.toolchain.nvrtc import Nvrtc
from ssmtool.toolchain.ptxas import PtxasError, PtxasReport, select_ptxas
from ssmtool.toolchain.ptxas_report import Resources

_DATA = Path(__file__).parent / "data"
_ROOT = Path(__file__).parents[2]
_TIERS = (_DATA / "tiers.ptx").read_text()

_CALLS = """.version 7.4
.target sm_37
.address_size 64
.local .align 4 .b8 module_wide[8];
.func leaf() { .reg .b32 %r<2>; .local .align 4 .b8 d[64]; st.local.u32 [d], %r1; ld.volatile.local.u32 %r1, [d]; ret; }
.func middle() { call leaf, (); ret; }
.func never() { .local .align 4 .b8 d[1000]; ret; }
.visible .entry direct() { call middle, (); ret; }
.visible .entry by_address() { .reg .b64 %a<2>; mov.u64 %a1, leaf; mov.u64 %a1, module_wide; ret; }
.visible .entry alone() { .reg .b32 %r<2>; .shared .align 4 .b8 local[4]; ld.shared.u32 %r1, [local]; ret; }
"""


@pytest.fixture(scope="module", autouse=True)
def _ptxas() -> None:
    # It raises where there is none: `make test` brings one, so its absence is a broken set-up and no reason to skip.
    select_ptxas("sm_37", (7, 4))


def test_a_depot_in_the_ptx_that_ptxas_promotes_away() -> None:
    tiers = three_tiers(_TIERS, "sm_37", driver=False)
    kernel = next(kernel for kernel in tiers.kernels if kernel.kernel == "promoted")
    assert kernel.hint == Hint(depot_bytes=64, local_loads=1, local_stores=1)
    assert kernel.estimate is not None
    assert kernel.estimate.stack_bytes == 0
    assert kernel.remark == "the PTX declares 64 local bytes, ptxas keeps them in registers"


def test_spills_without_a_word_of_local_in_the_ptx() -> None:
    tiers = three_tiers(_TIERS, "sm_37", driver=False)
    kernel = next(kernel for kernel in tiers.kernels if kernel.kernel == "spilled")
    assert kernel.hint == Hint(0, 0, 0)
    assert kernel.estimate is not None
    assert kernel.estimate.registers == 64
    assert kernel.estimate.stack_bytes > 0
    assert kernel.estimate.spill_store_bytes > 0
    assert kernel.remark is not None
    assert kernel.remark.startswith("no .local in the PTX, but ptxas makes a ")


def test_the_compiler_still_makes_both_counter_examples() -> None:
    found = next((item for item in find_compilers() if item.info and item.info.version == "11.4.152"), None)
    assert found is not None, "ssmtool toolchain install, which make test runs, brings NVRTC 11.4.152"
    assert found.info is not None
    assert found.companion is not None
    source = _DATA / "tiers.cu"
    request = CompileRequest(source=source, text=source.read_text(), root=_DATA, target="sm_37")
    assert hints(parse(Nvrtc(found.info, found.companion).compile(request).ptx)) == hints(parse(_TIERS))


def test_our_header_has_no_local_memory_in_any_tier() -> None:
    modules = read_header(_ROOT / "generated" / "fc_cuda_ptx.h").modules
    kernels = [kernel for module in modules for kernel in three_tiers(module.ptx, "sm_37", driver=False).kernels]
    assert len(kernels) == 18
    for kernel in kernels:
        assert kernel.hint == Hint(0, 0, 0), kernel.kernel
        assert kernel.estimate is not None
        assert not kernel.estimate.has_local_memory, kernel.kernel
        assert kernel.remark is None


def test_a_kernel_counts_the_functions_it_can_reach() -> None:
    found = hints(parse(_CALLS))
    assert found["direct"] == Hint(64, 1, 1)
    assert found["by_address"] == Hint(72, 1, 1)
    assert found["alone"] == Hint(0, 0, 0)


def test_what_ptxas_refuses_has_its_line() -> None:
    text = ".version 7.4\n.target sm_37\n.address_size 64\n.visible .entry k() {\n  retn;\n}\n"
    with pytest.raises(PtxasError) as caught:
        measure(text, "sm_37", name="k.ptx")
    assert (caught.value.path, caught.value.line) == ("k.ptx", 5)


def test_nothing_recognised_is_an_error_not_a_zero() -> None:
    without = ".version 7.4\n.target sm_37\n.address_size 64\n"
    with pytest.raises(ProductError, match=r"no \.entry"):
        measure(without, "sm_37")
    with pytest.raises(PtxSyntaxError):
        three_tiers(without, "sm_37", driver=False)


def test_no_fitting_ptxas_is_a_skip_with_a_remedy() -> None:
    skip = measure(_TIERS.replace(".version 7.4", ".version 99.0"), "sm_37")
    assert isinstance(skip, Skip)
    assert "reads PTX 99.0" in skip.reason
    assert skip.fix is not None


def _tiers(estimate: Resources | None, truth: DriverResources | None, capability: tuple[int, int]) -> Tiers:
    report = DriverReport("GPU", capability, "11.4", {}) if truth else Skip("driver", "none")
    kernel = KernelTiers("k", Hint(0, 0, 0), estimate, truth)
    return Tiers("sm_37", (kernel,), Skip("ptxas", "none"), report)


def test_the_driver_contradicting_ptxas_is_remarked_on() -> None:
    truth = DriverResources(8, 30, 0, 0, 1024, 37, 37)
    tiers = _tiers(Resources("k", "sm_37", 32, 0, 0, 0), truth, (3, 7))
    assert tiers.kernels[0].remark == "ptxas says 0 bytes of frame, the driver 8 for sm_37"
    assert tiers.truth_is_for_target


def test_truth_from_another_gpu_is_not_called_the_targets() -> None:
    truth = DriverResources(0, 30, 0, 0, 1024, 37, 90)
    tiers = _tiers(None, truth, (9, 0))
    assert not tiers.truth_is_for_target
    assert "sm_90" in str(tiers.table()["title"])


def test_a_tier_that_was_not_asked_is_a_dash_and_a_skip_never_a_zero() -> None:
    tiers = _tiers(None, None, (0, 0))
    assert [skip.check for skip in tiers.skips] == ["ptxas", "driver"]
    assert tiers.table()["rows"] == [("k", "0", "0/0", "-", "-", "-", "-", "-", "-", "-", "")]


def test_all_tiers_are_asked_for_the_same_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def driver(ptx: str, entries: tuple[str, ...], target: str) -> Skip:
        asked.append(entries)
        return Skip("driver", f"not {target} {len(ptx)}")

    monkeypatch.setattr(resources, "ask_driver", driver)
    tiers = three_tiers(_TIERS, "sm_37")
    assert isinstance(tiers.estimate, PtxasReport)
    assert asked == [("spilled", "promoted")]
    assert {kernel.kernel for kernel in tiers.kernels} == set(asked[0])
