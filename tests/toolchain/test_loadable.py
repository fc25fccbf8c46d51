from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ssmtool.errors import ProductError
from ssmtool.project import Project
from ssmtool.toolchain import ToolchainError
from ssmtool.toolchain.loadable import make_loadable
from ssmtool.toolchain.ptxas import select_ptxas

PTX = (Path(__file__).parent / "data" / "resources.ptx").read_text(encoding="utf-8")
NEWER = PTX.replace(".version 7.4", ".version 7.8")


@pytest.fixture
def with_ptxas() -> None:
    try:
        select_ptxas("sm_37", (7, 8))
    except ToolchainError as error:
        pytest.skip(f"{error.message}: relabelling was not checked by a real ptxas")


def test_ptx_of_the_pinned_release_is_left_alone(project: Project) -> None:
    assert make_loadable(PTX, project) == (PTX, None)


@pytest.mark.usefixtures("with_ptxas")
def test_newer_label_is_lowered_when_ptxas_accepts_it(project: Project) -> None:
    ptx, note = make_loadable(NEWER, project)
    assert ptx == PTX
    assert note is not None
    assert "PTX ISA 7.8 relabelled 7.4" in note


@pytest.mark.usefixtures("with_ptxas")
def test_newer_instruction_is_not_hidden_by_a_lower_label(project: Project) -> None:
    """szext came with PTX 7.6: under the label 7.4 a real ptxas refuses it, and so would the driver."""
    body = ".visible .entry k() { .reg .b32 %r<3>; mov.u32 %r1, 7; szext.wrap.u32 %r2, %r1, %r1; ret; }\n"
    ptx = f".version 7.8\n.target sm_70\n.address_size 64\n{body}"
    volta = Project(root=project.root, settings=msgspec.structs.replace(project.settings, target="sm_70"))
    with pytest.raises(ProductError, match=r"error 222.*does not hold as 7\.4.*7\.6"):
        make_loadable(ptx, volta)


def test_without_a_ptxas_a_newer_label_cannot_be_judged(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssmtool.toolchain.ptxas._candidates", lambda: iter(()))
    with pytest.raises(ToolchainError, match="cannot be checked") as caught:
        make_loadable(NEWER, project)
    assert caught.value.exit_code == 2


def test_another_target_is_refused(project: Project) -> None:
    with pytest.raises(ProductError, match="made for sm_50, the project's target is sm_37"):
        make_loadable(PTX.replace(".target sm_37", ".target sm_50, debug"), project)


@pytest.mark.parametrize("text", ["", "hello", ".version 7.4\n"])
def test_text_that_is_not_ptx(text: str, project: Project) -> None:
    with pytest.raises(ProductError, match="not PTX"):
        make_loadable(text, project)
