"""Why no card is seen: from a small copy of what Linux shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssmtool.device.diagnose import Machine, machine, why

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Thu May  2 14:37:44 UTC 2024\nGCC version: gcc\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder)\n"
K80, H200, SOUND = ("0x102d", "0x030200"), ("0x2335", "0x030200"), ("0x0be9", "0x040300")


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)


def system(root: Path, version: str | None, cards: list[tuple[str, str]], maps: str = "") -> Path:
    if version is not None:
        (root / "proc/driver/nvidia").mkdir(parents=True)
        (root / "proc/driver/nvidia/version").write_text(version)
    for number, (device, kind) in enumerate(cards):
        folder = root / f"sys/bus/pci/devices/0000:{number:02x}:00.0"
        folder.mkdir(parents=True)
        for name, text in (("vendor", "0x10de"), ("device", device), ("class", kind)):
            (folder / name).write_text(f"{text}\n")
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/maps").write_text(maps)
    return root


def test_both_dies_of_a_k80_and_the_branch_are_read(tmp_path: Path) -> None:
    found = machine(system(tmp_path, VERSION.format("470.256.02"), [K80, K80, SOUND]), "")
    assert (found.branch, found.cards, found.kepler) == (470, (0x102D, 0x102D), "Tesla K80")


def test_the_open_kernel_module_is_read_too(tmp_path: Path) -> None:
    found = machine(system(tmp_path, OPEN, [H200]), "")
    assert (found.branch, found.version) == (580, "580.159.04")


def test_a_machine_without_any_of_it_is_no_error(tmp_path: Path) -> None:
    assert machine(tmp_path, "") == Machine()
    assert "no NVIDIA card is plugged in" in why(machine(tmp_path, ""))[0]


def test_a_driver_too_new_for_kepler_is_named_with_the_last_one(tmp_path: Path) -> None:
    reason, mend = why(machine(system(tmp_path, VERSION.format("535.183.01"), [K80]), ""), call="cuInit", code=100)
    assert "a Tesla K80 is plugged in, but the driver is R535 and R470 is the last that knows Kepler" in reason
    assert mend is not None and "nvidia-driver-470" in mend


def test_a_compatibility_library_that_hides_the_card_is_named(tmp_path: Path) -> None:
    maps = "7f00-7f01 r-xp 00000000 08:01 123  /usr/local/cuda-12.2/compat/libcuda.so.535.54.03\n"
    here = machine(system(tmp_path, VERSION.format("470.256.02"), [K80], maps), "")
    reason, mend = why(here, call="cuInit", code=803, version=12020)
    assert "/usr/local/cuda-12.2/compat/libcuda.so.535.54.03 is a compatibility library" in reason
    assert "Tesla K80s are not seen through it" in reason
    assert mend == "run it without that library: env -u LD_LIBRARY_PATH ssmtool ..."


def test_a_card_without_its_kernel_module_is_named(tmp_path: Path) -> None:
    reason, mend = why(machine(system(tmp_path, None, [K80]), ""), call="cuInit", code=100)
    assert "Tesla K80 is plugged in, but no NVIDIA kernel module is loaded" in reason
    assert mend == "modprobe nvidia"


def test_hidden_cards_are_told_from_absent_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    reason, mend = why(machine(system(tmp_path, OPEN, [H200]), ""), call="cuDeviceGetCount", code=100)
    assert "CUDA_VISIBLE_DEVICES is ''" in reason and mend == "unset CUDA_VISIBLE_DEVICES"


def test_any_other_failure_keeps_the_driver_s_words(tmp_path: Path) -> None:
    reason, _ = why(machine(system(tmp_path, OPEN, [H200]), ""), call="cuInit", code=999)
    assert reason.startswith("cuInit failed: unknown error (999, CUDA_ERROR_UNKNOWN)")
