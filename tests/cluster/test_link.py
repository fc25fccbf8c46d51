"""A scheduler that is not there, or is something else, is an error of one sentence within seconds."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import ROOT, Run
from ssmtool.cluster import LinkError, open_cluster


def test_nobody_listens_and_the_command_says_how_to_start_one(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ran = run(ROOT, "verify", "--only", "sigmoid/n1", "--scheduler", f"tcp://127.0.0.1:{port}")
    assert ran.code == 2
    assert f"no scheduler answers at tcp://127.0.0.1:{port}: Connection refused" in ran.err
    assert f"dask scheduler --no-dashboard --port {port}" in ran.err


def test_something_that_listens_and_says_nothing_is_no_scheduler() -> None:
    # distributed itself waits for such a one for ever.
    with socket.create_server(("127.0.0.1", 0)) as server:
        started = time.monotonic()
        with pytest.raises(LinkError, match="no scheduler that this distributed understands"):
            open_cluster(f"tcp://127.0.0.1:{server.getsockname()[1]}")
    assert time.monotonic() - started < 15


def test_a_local_cluster_that_is_terminated_leaves_no_folder(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""
import os, signal
from ssmtool.cluster import open_cluster
if __name__ == "__main__":
    with open_cluster("local:1"):
        assert os.listdir(os.environ["TMPDIR"])
        os.kill(os.getpid(), signal.SIGTERM)
""")
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, str(script)], env=environment, check=False, timeout=120)
    assert ran.returncode == 128 + signal.SIGTERM
    assert not list((tmp_path / "tmp").glob("ssmtool-*"))


def test_without_the_extra_the_command_to_install_it_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    ran = run(ROOT, "verify", "--only", "sigmoid/n1", "--scheduler", "local", "--format", "json")
    assert ran.code == 2
    assert ran.json["error"]["fix"] == "pip install 'ssmtool[cluster]'"


def test_one_machine_needs_no_dask(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("dask", "distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    ran = run(ROOT, "verify", "--only", "sigmoid/n1", "--device", "cpu", "--relations", "none")
    assert ran.code == 0


def test_a_check_of_everything_goes_on_without_its_cluster(run: Run) -> None:
    ran = run(ROOT, "ci", "--only", "verify", "--scheduler", "tcp://127.0.0.1:1", "--format", "json")
    assert ran.code == 2
    assert "no scheduler answers at tcp://127.0.0.1:1" in ran.json["headline"]
    assert ran.json["command"] == "ci --only verify --scheduler tcp://127.0.0.1:1"
