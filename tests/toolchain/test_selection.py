"""Which compiler is taken, which is refused, and what the refusal says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ssmtool.errors import SsmtoolError
from ssmtool.project import Project
from ssmtool.toolchain import ToolchainError, find_compilers, select_compiler, store
from ssmtool.toolchain.model import cannot_target, ptx_isa_of

Fake = Callable[[Path, str], Path]


def says(release: str, version: str) -> str:
    return f"echo 'Cuda compilation tools, release {release}, V{version}'"


def with_settings(project: Project, **changes: object) -> Project:
    return Project(root=project.root, settings=msgspec.structs.replace(project.settings, **changes))


def put_store() -> Path:
    """Files of the right size in the place of the embedded compiler; sparse, since nothing reads them."""
    folder = store.nvrtc_dir()
    folder.mkdir(parents=True)
    for name, size, _ in store.FILES.values():
        with (folder / name).open("wb") as file:
            file.truncate(size)
    return folder


@pytest.mark.usefixtures("no_compilers")
def test_no_compiler_says_where_it_looked_and_how_to_mend(project: Project) -> None:
    with pytest.raises(ToolchainError) as caught:
        select_compiler(project)
    message = caught.value.message
    for place in ("PATH", "CUDA_HOME", "CUDA_PATH", "cuda-11.4", str(store.nvrtc_dir())):
        assert place in message
    assert caught.value.hint == "ssmtool toolchain install"
    assert caught.value.exit_code == 2


def test_wrong_release_is_refused_naming_found_and_wanted(
    project: Project, no_compilers: Path, fake_tool: Fake
) -> None:
    fake_tool(no_compilers / "nvcc", says("11.8", "11.8.89"))
    with pytest.raises(ToolchainError) as caught:
        select_compiler(project)
    assert "wanted nvcc or NVRTC of CUDA 11.4" in caught.value.message
    assert "nvcc 11.8.89" in caught.value.message


@pytest.mark.parametrize("asked", ["nvcc-11.8", "11.8", "NVCC-11.8", "11.8.89"])
def test_wrong_release_is_taken_when_named(asked: str, project: Project, no_compilers: Path, fake_tool: Fake) -> None:
    fake_tool(no_compilers / "nvcc", says("11.8", "11.8.89"))
    assert select_compiler(project, asked=asked).info.version == "11.8.89"


def test_kind_alone_does_not_name_a_release(project: Project, no_compilers: Path, fake_tool: Fake) -> None:
    fake_tool(no_compilers / "nvcc", says("11.8", "11.8.89"))
    with pytest.raises(ToolchainError):
        select_compiler(project, asked="nvcc")


@pytest.mark.parametrize("asked", ["gcc", "11", "nvcc11.8", "", "nvrtc-"])
@pytest.mark.usefixtures("no_compilers")
def test_words_that_name_no_compiler(asked: str, project: Project) -> None:
    with pytest.raises(SsmtoolError, match="does not name a compiler"):
        select_compiler(project, asked=asked)


def test_nvcc_of_the_release_goes_before_the_embedded_compiler(
    project: Project, no_compilers: Path, fake_tool: Fake
) -> None:
    put_store()
    assert select_compiler(project).info.kind == "nvrtc"
    fake_tool(no_compilers / "nvcc", says("11.4", "11.4.152"))
    assert select_compiler(project).info.kind == "nvcc"
    assert select_compiler(project, asked="nvrtc").info.kind == "nvrtc"
    assert select_compiler(with_settings(project, compiler="nvrtc")).info.kind == "nvrtc"


def test_nvcc_in_cuda_home_is_found_behind_a_wrong_one_on_path(
    project: Project, no_compilers: Path, fake_tool: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_tool(no_compilers / "nvcc", says("13.0", "13.0.88"))
    right = fake_tool(tmp_path / "cuda" / "bin" / "nvcc", says("11.4", "11.4.120"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert select_compiler(project).info.path == right


@pytest.mark.usefixtures("no_compilers")
def test_nvcc_in_the_usual_place(project: Project, fake_tool: Fake, tmp_path: Path) -> None:
    right = fake_tool(tmp_path / "usr-local" / "cuda-11.4" / "bin" / "nvcc", says("11.4", "11.4.152"))
    assert select_compiler(project).info.path == right


def test_the_setting_nvcc_shuts_out_the_one_on_path(project: Project, no_compilers: Path, fake_tool: Fake) -> None:
    fake_tool(no_compilers / "nvcc", says("11.4", "11.4.152"))
    mine = fake_tool(project.root / "tools" / "nvcc", says("11.4", "11.4.48"))
    assert select_compiler(with_settings(project, nvcc="tools/nvcc")).info.path == mine
    with pytest.raises(ToolchainError, match="no such file"):
        select_compiler(with_settings(project, nvcc="tools/gone"))


@pytest.mark.usefixtures("no_compilers")
def test_one_nvcc_under_two_names_is_listed_once(
    project: Project, fake_tool: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake_tool(tmp_path / "cuda" / "bin" / "nvcc", says("11.4", "11.4.152"))
    monkeypatch.setenv("PATH", str(tmp_path / "cuda" / "bin"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert [item.origin for item in find_compilers(project)] == ["PATH"]


@pytest.mark.parametrize(
    ("body", "words"), [("echo hello", "does not name a release"), ("kill -SEGV $$", "SIGSEGV"), ("exit 3", "nothing")]
)
def test_nvcc_that_does_not_work_is_listed_with_the_reason(
    body: str, words: str, project: Project, no_compilers: Path, fake_tool: Fake
) -> None:
    fake_tool(no_compilers / "nvcc", body)
    (found,) = find_compilers(project)
    assert found.info is None
    assert found.why is not None
    assert words in found.why
    with pytest.raises(ToolchainError, match=words):
        select_compiler(project)


@pytest.mark.usefixtures("no_compilers")
def test_damaged_embedded_compiler_is_not_taken(project: Project) -> None:
    library = put_store() / store.LIBRARY
    with library.open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(ToolchainError, match=r"is damaged: 1000 bytes") as caught:
        select_compiler(project)
    assert caught.value.hint == "ssmtool toolchain install"


def test_release_that_cannot_make_the_target_is_refused_even_by_name(
    project: Project, no_compilers: Path, fake_tool: Fake
) -> None:
    fake_tool(no_compilers / "nvcc", says("13.0", "13.0.88"))
    with pytest.raises(ToolchainError, match=r"CUDA 13\.0 cannot target sm_37"):
        select_compiler(project, asked="nvcc-13.0")
    assert select_compiler(with_settings(project, target="sm_80"), asked="nvcc-13.0").info.release == "13.0"


@pytest.mark.usefixtures("no_compilers")
def test_wheel_found_by_its_file_list_without_importing_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    (site / "cumm_cu114.libs").mkdir(parents=True)
    (site / "cumm_cu114-0.8.2.dist-info").mkdir()
    names = list(store.FILES)
    for name in names:
        (site / name).write_bytes(b"")
    info = site / "cumm_cu114-0.8.2.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cumm-cu114\nVersion: 0.8.2\n", encoding="utf-8")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in names), encoding="utf-8")
    monkeypatch.setattr("ssmtool.toolchain.find._WHEELS", ("cumm-cu114",))
    monkeypatch.syspath_prepend(str(site))
    compiler = select_compiler(project)
    assert compiler.info.version == "11.4.152"
    assert compiler.info.path == site / "cumm_cu114.libs" / "libnvrtc-f0492a2f.so.11.4.152"


@pytest.mark.parametrize(
    ("release", "isa"),
    [("11.4", (7, 4)), ("11.8", (7, 8)), ("12.5", (8, 5)), ("12.6", (8, 5)), ("12.9", (8, 8)), ("13.0", (9, 0))],
)
def test_ptx_isa_of_a_release(release: str, isa: tuple[int, int]) -> None:
    assert ptx_isa_of(release) == isa


def test_kepler_ends_with_cuda_11() -> None:
    assert cannot_target("11.8", "sm_37") is None
    assert cannot_target("12.0", "sm_37") is not None
