"""`--scheduler` takes an address, a file or `local`; anything else is told with what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssmtool.cluster.where import parse_where
from ssmtool.errors import SsmtoolError


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [("tcp://host:8786", "host", 8786), ("tls://10.0.0.1:1", "10.0.0.1", 1), ("tcp://[::1]:8786/", "::1", 8786)],
)
def test_an_address(given: str, host: str, port: int) -> None:
    where = parse_where(given)
    assert (where.host, where.port, where.address, where.local) == (host, port, given.rstrip("/"), False)


def test_a_local_cluster_has_as_many_workers_as_are_asked_for() -> None:
    assert parse_where("local:3").workers == 3
    assert parse_where("local").workers >= 1


def test_the_address_in_a_scheduler_file(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text('{"type": "Scheduler", "address": "tcp://10.0.0.7:8786", "workers": {}}')
    assert parse_where(str(file)).address == "tcp://10.0.0.7:8786"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"address": 5}', '{"address": "inproc://1"}', "[" * 100_000, "\0"]
)
def test_a_file_that_is_no_scheduler_file(tmp_path: Path, content: str) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(content)
    with pytest.raises(SsmtoolError, match=r"scheduler"):
        parse_where(str(file))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "of nothing"),
        ("a\0b", "of nothing"),
        ("host:8786", r"did you mean tcp://host:8786\?"),
        ("nosuch.json", "no such file"),
        ("local:0", "1 to 256 workers"),
        ("local:9999", "1 to 256 workers"),
        ("local:-1", "no such file"),
        ("ucx://host:1", "no address"),
        ("tcp://host", "no address"),
        ("tcp://host:99999", "no address"),
        ("tcp://:8786", "no address"),
    ],
)
def test_what_is_no_scheduler(given: str, message: str) -> None:
    with pytest.raises(SsmtoolError, match=message):
        parse_where(given)


def test_a_folder_is_no_scheduler_file(tmp_path: Path) -> None:
    with pytest.raises(SsmtoolError):
        parse_where(str(tmp_path))
