"""Compiled kernels on the disk: damage, other processes, other users, no room."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from execute.handmade import facts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import ROOT
from ssmtool.execute import cache as room
from ssmtool.execute.cache import Cache, cache_dir, key_of
from ssmtool.execute.layout import Mode

FACTS = facts("scale", (32, 1, 1), Mode(checks=True))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "kernels")


def only(cache: Cache) -> Path:
    (path,) = cache.folder.iterdir()
    return path


def test_facts_and_code_come_back(cache: Cache) -> None:
    assert cache.load("a") is None
    cache.store("a", FACTS, b"\x7fcode")
    assert cache.load("a") == (FACTS, b"\x7fcode")
    assert cache.load("b") is None
    assert cache.problem is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_damage_is_a_miss_and_the_entry_goes(cache: Cache, data: st.DataObject) -> None:
    cache.store("a", FACTS, b"code" * 9)
    path = only(cache)
    whole = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole)
    assert cache.load("a") is None
    assert not path.exists()
    cache.store("a", FACTS, b"again")
    assert cache.load("a") == (FACTS, b"again")


def test_a_file_that_others_may_write_is_not_run(cache: Cache) -> None:
    cache.store("a", FACTS, b"code")
    only(cache).chmod(0o666)
    assert cache.load("a") is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="giving a file away needs root")
def test_a_file_of_another_user_is_not_run(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("a", FACTS, b"code")
    os.chown(only(cache), 12345, -1)
    assert cache.load("a") is None
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert cache.load("a") is not None


def test_only_the_user_may_look_in(cache: Cache) -> None:
    cache.store("a", FACTS, b"code")
    assert cache.folder.stat().st_mode & 0o77 == 0


def test_the_least_recently_used_entries_go_first(cache: Cache) -> None:
    cache.store("a", FACTS, bytes(1000))
    cache.most_bytes = 4 * only(cache).stat().st_size
    for at, key in enumerate("bcd"):
        cache.store(key, FACTS, bytes(1000))
        for name in cache.folder.iterdir():
            os.utime(name, (at, at))
    os.utime(cache._path("b"), (0, 0))
    assert cache.load("b") is not None  # which makes it the youngest
    cache.store("e", FACTS, bytes(1000))
    assert len(list(cache.folder.iterdir())) == 4
    assert cache.load("b") is not None
    assert cache.load("e") is not None


def test_temporary_files_are_left_to_their_process_until_they_are_old(cache: Cache) -> None:
    cache.most_bytes = 100
    cache.folder.mkdir()
    for name, at in (("young.tmp", None), ("old.tmp", (0, 0))):
        (cache.folder / name).write_bytes(bytes(1000))
        os.utime(cache.folder / name, at)
    cache.store("a", FACTS, b"code")
    assert sorted(path.name for path in cache.folder.iterdir()) == ["a.kernel", "young.tmp"]


def test_an_entry_larger_than_all_room_is_kept_until_the_next(cache: Cache) -> None:
    cache.most_bytes = 100
    cache.store("a", FACTS, bytes(1000))
    assert cache.load("a") is not None
    cache.store("b", FACTS, bytes(1000))
    assert (cache.load("a"), cache.load("b") is not None) == (None, True)


def test_a_folder_that_cannot_be_made_is_said_and_no_more() -> None:
    cache = Cache(Path("/dev/null/kernels"))
    cache.store("a", FACTS, b"code")
    assert cache.problem == "compiled kernels are not kept: /dev/null/kernels: Not a directory"
    assert cache.load("a") is None


def test_a_full_disk_leaves_nothing_behind(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    cache.store("a", FACTS, b"code")
    assert cache.problem is not None
    assert "No space left" in cache.problem
    assert list(cache.folder.iterdir()) == []


def test_keys_tell_parts_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert key_of(["ab", "c"]) != key_of(["a", "bc"]) != key_of(["abc"])
    before = key_of(["a"])
    monkeypatch.setattr(room, "sources_hash", lambda: "another state of the sources")
    assert key_of(["a"]) != before


def test_the_sources_that_make_code_are_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "ssmtool"
    for name in ("execute/cache.py", "execute/deep/down.py", "ptx/parse.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("x = 1\n")
    monkeypatch.setattr(room, "__file__", str(package / "execute/cache.py"))
    fresh = room.sources_hash.__wrapped__
    seen = {fresh()}
    for name in ("execute/deep/down.py", "ptx/parse.py"):
        (package / name).write_text("x = 2\n")
        seen.add(fresh())
    (package / "ptx/more.py").write_text("")
    seen.add(fresh())
    assert len(seen) == 4
    (package / "ptx/__pycache__").mkdir()
    (package / "ptx/__pycache__/more.pyc").write_text("")
    assert fresh() in seen


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSMTOOL_CACHE_DIR", str(tmp_path))
    assert cache_dir() == tmp_path / "execute"
    monkeypatch.delenv("SSMTOOL_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg/ssmtool/execute"


WRITER = """
import sys
from pathlib import Path
from execute.handmade import facts
from ssmtool.execute.cache import Cache
from ssmtool.execute.layout import Mode
cache = Cache(Path(sys.argv[1]), most_bytes=60_000)
mine = facts("scale", (32, 1, 1), Mode())
for k in range(150):
    key = f"k{k % 12}"
    found = cache.load(key)
    assert found is None or found == (mine, key.encode() * 3000), key
    cache.store(key, mine, key.encode() * 3000)
assert cache.problem is None, cache.problem
"""


def test_processes_that_write_and_remove_at_once_never_read_a_wrong_entry(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "k")], env=environment, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [(writer.communicate()[1], writer.returncode) for writer in writers] == [(b"", 0)] * 3


def test_a_file_larger_than_any_kernel_is_not_read(cache: Cache) -> None:
    cache.store("k", FACTS, b"code")
    os.truncate(only(cache), 1 << 40)  # sparse: to read it would take all memory
    assert cache.load("k") is None
    assert not list(cache.folder.iterdir())
