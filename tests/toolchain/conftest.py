from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ssmtool.project import Project, Settings
from ssmtool.toolchain import Compiler, CompileRequest, find_compilers, store
from ssmtool.toolchain.nvcc import Nvcc
from ssmtool.toolchain.nvrtc import Nvrtc

Compile = Callable[..., CompileRequest]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(root=tmp_path, settings=Settings())


@pytest.fixture
def request_for(tmp_path: Path) -> Compile:
    """A request for `text` in kernels/k.cu of a fresh project; other files by their path."""

    def make(text: str, files: dict[str, str] | None = None, **options: object) -> CompileRequest:
        source = tmp_path / "kernels" / "k.cu"
        for name, content in {"kernels/k.cu": text, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        fields = {"source": source, "text": text, "root": tmp_path, "target": "sm_37", "timeout_s": 60.0, **options}
        return CompileRequest(**fields)  # type: ignore[arg-type]

    return make


@pytest.fixture(scope="session")
def nvrtc() -> Nvrtc:
    folder = store.nvrtc_dir()
    for item in find_compilers():
        if item.kind == "nvrtc" and item.info and item.info.release == "11.4":
            assert item.companion is not None
            return Nvrtc(item.info, item.companion)
    pytest.skip(
        f"the embedded compiler is not in {folder} (ssmtool toolchain install): nothing was compiled with NVRTC"
    )


@pytest.fixture(scope="session")
def nvcc() -> Nvcc:
    """A real nvcc that can target sm_37: the one SSMTOOL_TEST_NVCC names, or one in the usual places."""
    named = os.environ.get("SSMTOOL_TEST_NVCC")
    if named:
        project = Project(root=Path.cwd(), settings=Settings(nvcc=named))
        found = [item for item in find_compilers(project) if item.origin == "setting nvcc"]
        assert found and found[0].info, (
            f"SSMTOOL_TEST_NVCC={named} does not work: {found[0].why if found else 'missing'}"
        )
        return Nvcc(found[0].info)
    for item in find_compilers():
        if item.kind == "nvcc" and item.info and int(item.info.release.split(".")[0]) <= 11:
            return Nvcc(item.info)
    pytest.skip("no nvcc of CUDA <= 11 (set SSMTOOL_TEST_NVCC): the nvcc path was not checked for sm_37")


@pytest.fixture(params=["nvrtc", "nvcc"])
def compiler(request: pytest.FixtureRequest) -> Compiler:
    """Both real compilers, one after the other: what one accepts the other must."""
    made: Compiler = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def no_compilers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with nothing on it: an empty PATH, no CUDA variables, an empty store."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("SSMTOOL_TOOLCHAIN_DIR", str(tmp_path / "store"))
    monkeypatch.setattr("ssmtool.toolchain.find._WHEELS", ())
    monkeypatch.setattr("ssmtool.toolchain.find.USUAL_PLACE", tmp_path / "usr-local")
    return empty


@pytest.fixture
def fake_tool() -> Callable[[Path, str], Path]:
    """A shell script in the place of a tool."""

    def make(path: Path, body: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    return make
