"""Whole-file writes and readable text."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from ssmtool.errors import SsmtoolError
from ssmtool.files import read_bytes, read_source, write_atomic


def test_an_unchanged_file_keeps_its_time_stamp(tmp_path: Path) -> None:
    path = tmp_path / "header.h"
    assert write_atomic(path, b"one") is True
    os.utime(path, (1, 1))
    assert write_atomic(path, b"one") is False
    assert path.stat().st_mtime == 1


def test_a_full_disk_leaves_the_old_file_and_no_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "header.h"
    path.write_bytes(b"old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SsmtoolError, match="No space left on device; nothing was changed"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_between_write_and_rename_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "header.h"
    path.write_bytes(b"old")

    def interrupted(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "generated").write_text("a file where the folder should be")
    with pytest.raises(SsmtoolError, match="cannot be written"):
        write_atomic(tmp_path / "generated" / "header.h", b"new")


def test_permission_bits_and_links_survive(tmp_path: Path) -> None:
    target = tmp_path / "real.h"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link = tmp_path / "link.h"
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("__global__".encode("utf-16"), "is UTF-16 text"),
        ("__global__".encode("utf-16-le"), "NUL byte"),
        (b"ok\n\xff\xfa", "not UTF-8 text"),
    ],
)
def test_a_source_in_another_encoding_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "k.cu"
    path.write_bytes(data)
    with pytest.raises(SsmtoolError, match=message):
        read_source(path)


def test_a_bad_byte_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_bytes(b"one\ntwo\nthr\xffee\n")
    with pytest.raises(SsmtoolError) as caught:
        read_source(path)
    assert caught.value.line == 3


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "k.cu"
    os.mkfifo(pipe)
    with pytest.raises(SsmtoolError, match="is a pipe or a device"):
        read_bytes(pipe)


def test_missing_file_and_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(SsmtoolError, match="no such file"):
        read_bytes(tmp_path / "none.cu")
    with pytest.raises(SsmtoolError, match="is a folder"):
        read_bytes(tmp_path)
