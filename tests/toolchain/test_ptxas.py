"""Reports of real ptxas releases, and a real ptxas run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ssmtool.toolchain import CompileRequest, ToolchainError
from ssmtool.toolchain.nvrtc import Nvrtc
from ssmtool.toolchain.ptxas import PtxasError, PtxasInfo, assemble, find_ptxas, select_ptxas
from ssmtool.toolchain.ptxas_report import parse_report

DATA = Path(__file__).parent / "data"
PTX = (DATA / "resources.ptx").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def ptxas() -> PtxasInfo:
    try:
        return select_ptxas("sm_37", (7, 4))
    except ToolchainError as error:
        pytest.skip(f"{error.message}: no PTX was assembled")


def test_report_of_ptxas_11_8() -> None:
    report = parse_report((DATA / "ptxas-11.8-sm_37.txt").read_text(encoding="utf-8"))
    spill, k, tk = report.entries
    assert (spill.name, spill.target, spill.registers, spill.stack_bytes) == ("spill", "sm_37", 64, 136)
    assert (spill.spill_store_bytes, spill.spill_load_bytes) == (324, 356)
    assert (k.registers, k.stack_bytes, k.spill_store_bytes) == (32, 160, 0)
    assert k.constant_banks == {0: 332, 2: 12}
    assert [item.name for item in k.functions] == ["_Z1gPfi"]
    assert (tk.shared_bytes, tk.registers, tk.has_local_memory) == (128, 7, False)
    assert (tk.barriers, tk.cumulative_stack_bytes) == (None, None)
    assert report.constant_banks == {3: 64}
    assert report.unread == []


def test_report_of_ptxas_13() -> None:
    report = parse_report((DATA / "ptxas-13.0-sm_75.txt").read_text(encoding="utf-8"))
    spill, k, tk = report.entries
    assert (spill.barriers, spill.cumulative_stack_bytes, spill.constant_banks) == (1, 56, {0: 360})
    assert (k.registers, k.constant_banks, k.cumulative_stack_bytes) == (48, {0: 364, 2: 8}, 160)
    assert (tk.shared_bytes, tk.barriers) == (128, 1)
    assert [line for line in report.unread if "minnctapersm" not in line] == []


def test_frame_without_spills_is_local_memory() -> None:
    """ "0 bytes spill" is not "no local memory"."""
    k = parse_report((DATA / "ptxas-11.8-sm_37.txt").read_text(encoding="utf-8")).entries[1]
    assert k.spill_store_bytes == 0
    assert k.has_local_memory


def test_kernel_without_its_frame_line_is_not_reported_with_zeros() -> None:
    text = "ptxas info    : Compiling entry function 'k' for 'sm_37'\nptxas info    : Used 7 registers\n"
    assert parse_report(text).entries == []


def test_assemble_reports_every_kernel_in_the_order_of_the_ptx(ptxas: PtxasInfo) -> None:
    report = assemble(PTX, "sm_37", ptxas=ptxas)
    assert [item.name for item in report.entries] == ["_Z2tkIfEvPT_", "k", "spill"]
    assert report.entry("spill").stack_bytes > 0
    assert report.entry("_Z2tkIfEvPT_").shared_bytes == 128
    assert report.constant_banks == {3: 64}


def test_the_fifteen_kernels_have_no_stack_frame(ptxas: PtxasInfo, nvrtc: Nvrtc) -> None:
    root = Path(__file__).parents[2]
    source = root / "kernels" / "ssm_gated_delta.cu"
    ptx = nvrtc.compile(CompileRequest(source, source.read_text(encoding="utf-8"), root, "sm_37")).ptx
    report = assemble(ptx, "sm_37", ptxas=ptxas)
    assert {item.name: item.stack_bytes for item in report.entries} == {item.name: 0 for item in report.entries}
    assert len(report.entries) == 15


def test_error_has_the_line_of_the_ptx(ptxas: PtxasInfo) -> None:
    lines = PTX.splitlines()
    at = next(number for number, line in enumerate(lines) if "add.f32" in line)
    lines[at] = lines[at].replace("add.f32", "add.f31")
    with pytest.raises(PtxasError, match=r"Unknown modifier '\.f31'") as caught:
        assemble("\n".join(lines), "sm_37", ptxas=ptxas, name="my.ptx")
    assert caught.value.where == f"my.ptx:{at + 1}"
    assert caught.value.exit_code == 1
    assert all(line == at + 1 for line, _ in caught.value.errors)


def test_newer_ptx_than_ptxas_reads(ptxas: PtxasInfo) -> None:
    with pytest.raises(PtxasError, match=r"Unsupported \.version 9\.9"):
        assemble(PTX.replace(".version 7.4", ".version 9.9"), "sm_37", ptxas=ptxas)
    with pytest.raises(ToolchainError, match=r"no ptxas for sm_37 that reads PTX 9\.9"):
        assemble(PTX.replace(".version 7.4", ".version 9.9"), "sm_37")


def fake(path: Path) -> PtxasInfo:
    return PtxasInfo("11.8", "11.8.89", path, "test")


def test_report_that_says_nothing_is_not_a_pass(fake_tool: Callable[[Path, str], Path], tmp_path: Path) -> None:
    silent = fake(fake_tool(tmp_path / "ptxas", "exit 0"))
    with pytest.raises(ToolchainError, match="its report says nothing of _Z2tkIfEvPT_"):
        assemble(PTX, "sm_37", ptxas=silent)


def test_report_that_lacks_one_kernel_is_not_a_pass(fake_tool: Callable[[Path, str], Path], tmp_path: Path) -> None:
    report = (DATA / "ptxas-11.8-sm_37.txt").read_text(encoding="utf-8").replace("'k'", "'other'")
    (tmp_path / "said").write_text(report, encoding="utf-8")
    partial = fake(fake_tool(tmp_path / "ptxas", f"cat {tmp_path}/said >&2"))
    with pytest.raises(ToolchainError, match="nothing of k"):
        assemble(PTX, "sm_37", ptxas=partial)


def test_warnings_are_kept(fake_tool: Callable[[Path, str], Path], tmp_path: Path) -> None:
    (tmp_path / "said").write_text((DATA / "ptxas-13.0-sm_75.txt").read_text(encoding="utf-8"), encoding="utf-8")
    tool = fake(fake_tool(tmp_path / "ptxas", f"cat {tmp_path}/said >&2"))
    (warning,) = assemble(PTX, "sm_75", ptxas=tool).warnings
    assert warning.startswith("Value of threads per SM for entry spill is out of range")


@pytest.mark.parametrize(
    ("body", "words"), [("kill -SEGV $$", "SIGSEGV"), ("echo 'ptxas fatal   : no' >&2; exit 1", "no")]
)
def test_ptxas_that_fails_is_not_the_products_fault(
    body: str, words: str, fake_tool: Callable[[Path, str], Path], tmp_path: Path
) -> None:
    with pytest.raises(ToolchainError, match=words):
        assemble(PTX, "sm_37", ptxas=fake(fake_tool(tmp_path / "ptxas", body)))


@pytest.mark.usefixtures("no_compilers")
def test_no_ptxas_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssmtool.toolchain.ptxas._candidates", lambda: iter(()))
    assert find_ptxas() == []
    with pytest.raises(ToolchainError) as caught:
        select_ptxas("sm_37")
    assert caught.value.hint == "pip install 'ssmtool[compiler]'"
