"""Installing from a local wheel: whole or not at all. The wheel here is small, with pins of its own."""

from __future__ import annotations

import hashlib
import os
import threading
import zipfile
from pathlib import Path

import pytest

from ssmtool.errors import SsmtoolError
from ssmtool.toolchain import store
from ssmtool.toolchain.install import install

CONTENT = {
    "x.libs/libnvrtc-1.so": (store.LIBRARY, b"library" * 999),
    "x.libs/libbuiltins-1.so": (store.BUILTINS, b"b" * 99),
}


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel of the pinned one's shape; its hashes become the pins."""
    path = tmp_path / "small.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, (_, data) in CONTENT.items():
            archive.writestr(member, data)
        archive.writestr("cumm_cu114-0.8.2.dist-info/METADATA", "Name: cumm-cu114\n")
        archive.writestr("cumm_cu114-0.8.2.dist-info/licenses/LICENSE", "licence\n")
        archive.writestr("cumm/__init__.py", "raise SystemExit\n")
    pins = {member: (name, len(data), hashlib.sha256(data).hexdigest()) for member, (name, data) in CONTENT.items()}
    monkeypatch.setattr(store, "FILES", pins)
    monkeypatch.setattr(store, "WHEEL_SHA256", store.file_sha256(path))
    monkeypatch.setenv("SSMTOOL_TOOLCHAIN_DIR", str(tmp_path / "store"))
    return path


def test_takes_the_two_libraries_and_the_notices_only(wheel: Path) -> None:
    result = install(wheel=wheel)
    assert result.changed
    names = sorted(path.name for path in result.folder.iterdir())
    assert names == ["LICENSE", "METADATA", "NOTICE", store.BUILTINS, store.LIBRARY]
    assert [path.name for path in store.store_dir().iterdir()] == [result.folder.name], "scratch left behind"


def test_second_run_changes_nothing(wheel: Path) -> None:
    first = install(wheel=wheel)
    stamp = (first.folder / store.LIBRARY).stat().st_mtime_ns
    second = install(wheel=wheel)
    assert not second.changed
    assert (first.folder / store.LIBRARY).stat().st_mtime_ns == stamp


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_damaged_installation_is_replaced(damage: str, wheel: Path) -> None:
    library = install(wheel=wheel).folder / store.LIBRARY
    if damage == "flip":
        data = bytearray(library.read_bytes())
        data[100] ^= 1
        library.write_bytes(data)
    elif damage == "truncate":
        os.truncate(library, 10)
    else:
        library.unlink()
    said: list[str] = []
    assert install(wheel=wheel, say=said.append).changed
    assert store.full_fault(store.nvrtc_dir()) is None
    assert "not whole" in said[0]


def test_wheel_of_another_hash_is_refused_and_nothing_stays(wheel: Path) -> None:
    with wheel.open("ab") as file:
        file.write(b"x")
    with pytest.raises(SsmtoolError, match="is not the pinned wheel"):
        install(wheel=wheel)
    assert list(store.store_dir().iterdir()) == []


def test_refused_wheel_leaves_the_old_installation(wheel: Path) -> None:
    library = install(wheel=wheel).folder / store.LIBRARY
    library.write_bytes(b"damaged")
    wheel.write_bytes(b"not the wheel")
    with pytest.raises(SsmtoolError, match="is not the pinned wheel"):
        install(wheel=wheel)
    assert library.read_bytes() == b"damaged"


def test_missing_wheel(wheel: Path) -> None:
    with pytest.raises(SsmtoolError, match="cannot be read: No such file"):
        install(wheel=wheel.with_name("gone.whl"))


def test_place_that_cannot_be_written(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the folder should be: refused to root too, unlike permission bits."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("SSMTOOL_TOOLCHAIN_DIR", str(tmp_path / "file" / "store"))
    with pytest.raises(SsmtoolError, match="cannot be written") as caught:
        install(wheel=wheel)
    assert caught.value.hint is not None
    assert "SSMTOOL_TOOLCHAIN_DIR" in caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere: a read-only folder was not tried")
def test_read_only_folder(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir(mode=0o555)
    with pytest.raises(SsmtoolError, match="cannot be written: Permission denied"):
        install(wheel=wheel)


def test_two_runs_at_once_both_succeed(wheel: Path) -> None:
    results: list[bool] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(install(wheel=wheel).changed)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(results) == 4
    assert store.full_fault(store.nvrtc_dir()) is None
    assert [path.name for path in store.store_dir().iterdir()] == [store.nvrtc_dir().name]


def test_other_hosts_are_told(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(SsmtoolError, match="x86-64 Linux only, this is aarch64"):
        install(wheel=wheel)


@pytest.mark.usefixtures("wheel")
def test_python_without_pip_is_told_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SsmtoolError, match="has no pip") as caught:
        install()
    assert caught.value.hint is not None
    assert "--wheel" in caught.value.hint


@pytest.mark.usefixtures("wheel")
def test_without_network_the_way_out_is_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pip itself, with an index that refuses the connection and no local one."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    with pytest.raises(SsmtoolError, match="pip could not download") as caught:
        install()
    assert caught.value.hint is not None
    assert "--wheel FILE" in caught.value.hint
    assert list(store.store_dir().iterdir()) == []


def test_without_a_home_folder_nothing_is_made_in_the_current_one(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A user of a container without HOME and without an account gets "~" itself as home folder."""
    monkeypatch.delenv("SSMTOOL_TOOLCHAIN_DIR")
    monkeypatch.setattr(store.platformdirs, "user_data_dir", lambda _name: "~/.local/share/ssmtool")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SsmtoolError, match="HOME is not set") as caught:
        install(wheel=wheel)
    assert caught.value.hint is not None
    assert "SSMTOOL_TOOLCHAIN_DIR" in caught.value.hint
    assert not (tmp_path / "~").exists()


def test_a_file_in_the_way_is_told_as_that(wheel: Path) -> None:
    store.store_dir().write_text("mine\n")
    with pytest.raises(SsmtoolError, match="a file is where a folder has to be"):
        install(wheel=wheel)
    assert store.store_dir().read_text() == "mine\n"


def test_a_wrong_wheel_names_a_command_that_fetches_the_right_one(wheel: Path) -> None:
    wheel.write_bytes(wheel.read_bytes()[:100])
    with pytest.raises(SsmtoolError, match="is not the pinned wheel") as caught:
        install(wheel=wheel)
    assert caught.value.hint is not None
    assert "--python-version 3.11" in caught.value.hint
