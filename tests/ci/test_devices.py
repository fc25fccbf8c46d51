"""Several devices in one run: compared bit by bit, by kernel, in the JSON and on the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from ci import project as small
from ci.test_html import Page
from device.conftest import fake, fake_library
from device.fake import FakeDriver

from conftest import Run

__all__ = ["fake", "fake_library"]


@pytest.fixture
def project(run: Run, tmp_path: Path, fake: FakeDriver) -> Path:
    assert fake.path
    folder = small.write(tmp_path / "project")
    assert run(folder, "build").code == 0
    return folder


def test_equal_bits_are_counted_by_vector(run: Run, project: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    ran = run(project, "ci", "--only", "verify", "--device", "all", "--format", "json", "--html", str(page))
    assert ran.code == 0, ran.out
    (kernel,) = ran.json["kernels"]
    assert {(each["name"], each["devices"]) for each in kernel["devices"]} == {
        (name, f"{device} = cpu") for name in ("sigmoid/n1", "sigmoid/n257") for device in ("cuda:0", "cuda:1")
    }
    assert all(each["equal"] == each["runs"] == 1 for each in kernel["devices"])
    assert len(ran.json["provenance"]["devices"]) == 3
    words = "".join(Page(page.read_text()).words)
    assert "Devices compared" in words and "cuda:1 = cpu" in words


def test_a_bit_that_differs_is_in_the_first_line(run: Run, project: Path, fake: FakeDriver) -> None:
    fake.flips = [(0, 0)]
    ran = run(project, "ci", "--only", "verify", "--device", "cpu,cuda:0")
    assert ran.code == 1
    assert ran.out.splitlines()[0].startswith("wrong: launch -> numbers (verify): ")


def test_without_a_device_the_cards_are_taken(run: Run, project: Path) -> None:
    ran = run(project, "ci", "--only", "verify", "--require", "executor", "--format", "json")
    assert ran.json["provenance"]["devices"] == [
        f"cuda:{number} (Fake K80, sm_37, driver of CUDA 11.4, by ctypes)" for number in (0, 1)
    ]
    assert not any(each["check"] == "numbers on a card" for each in ran.json["skips"])


def test_required_cards_are_those_that_are_used(run: Run, project: Path) -> None:
    ran = run(project, "ci", "--only", "verify", "--require", "sm_90", "--format", "json")
    assert ran.code == 1
    assert any(each["message"].startswith("--require sm_90") for each in ran.json["findings"])
    assert any(each["check"] == "numbers on a card" for each in ran.json["skips"])


def test_a_project_outside_git(run: Run, project: Path) -> None:
    ran = run(project, "ci", "--only", "build", "--format", "json")
    assert ran.json["provenance"]["commit"] is None
    assert run(project, "ci", "--only", "build", "--base", "HEAD").code == 2
