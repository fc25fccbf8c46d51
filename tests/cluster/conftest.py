"""A local cluster of two that the tests of this room share, and workers that join it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ssmtool.cluster import Cluster, Patience, open_cluster
from ssmtool.cluster.link import WorkerFacts

# Long enough for a busy machine; tests of what happens at the end of it have their own.
PATIENT = Patience(start=60, again=60)

Join = Callable[..., contextlib.AbstractContextManager[WorkerFacts]]


@pytest.fixture(scope="session")
def cluster(kernel_cache: Path) -> Iterator[Cluster]:
    """Two processes with the resource CPU. Their kernels are those of the whole test run."""
    assert kernel_cache.is_dir()
    with open_cluster("local:2", patience=PATIENT) as opened:
        yield opened


@pytest.fixture
def notes(cluster: Cluster) -> list[str]:
    """What it has to say from now on."""
    cluster.notes.clear()
    return cluster.notes


@pytest.fixture
def join(cluster: Cluster, tmp_path: Path) -> Join:
    """Have another worker join, as `dask worker` starts it, until the end of the `with`."""

    @contextlib.contextmanager
    def worker(name: str, resources: str, preload: str | None = None) -> Iterator[WorkerFacts]:
        address = cluster._link._client.scheduler.address
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard",
                   "--nthreads", "1", "--name", name, "--resources", resources, "--host", "127.0.0.1",
                   "--dashboard-address", "127.0.0.1:0", "--local-directory", str(tmp_path)]  # fmt: skip
        if preload is not None:
            (tmp_path / "preload.py").write_text(preload)
            command += ["--preload", str(tmp_path / "preload.py")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # where it finds `cluster.pieces`
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        ) as process:  # fmt: skip
            try:
                yield _joined(cluster, name, process)
            finally:
                process.kill()
                process.wait()

    return worker


def _joined(cluster: Cluster, name: str, process: subprocess.Popen[bytes]) -> WorkerFacts:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, "the worker ended before it had joined"
        for facts in cluster._link.workers().values():
            if facts.name == name:
                return facts
        time.sleep(0.1)
    raise AssertionError("the worker did not join")


def pid_of(cluster: Cluster, facts: WorkerFacts) -> int:
    """The process of a worker."""
    pid = cluster._link.ask(facts.address, os.getpid)
    assert isinstance(pid, int)
    return pid


def local_workers(cluster: Cluster) -> list[WorkerFacts]:
    """The two of the local cluster, where a nanny may just be starting one anew."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = [each for each in cluster._link.workers().values() if each.resources == {"CPU": 1}]
        if len(found) == 2:
            return found
        time.sleep(0.1)
    raise AssertionError("a worker is missing")
