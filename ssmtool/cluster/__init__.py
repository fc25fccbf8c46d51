"""Work on more than one machine, by dask.distributed: `--scheduler`. It is an extra; nothing else imports this room.

    from ssmtool.cluster import Calls, open_cluster
    with open_cluster("tcp://host:8786") as cluster:             # or "local:4", "tls://...", a scheduler file
        for answer in cluster.sweep(Calls(function), [(1,), (2,)], "CPU"):
            print(answer.piece.load, answer.value, answer.error)

docs/cluster.md says how workers are started and what is refused.
"""

from __future__ import annotations

from ssmtool.cluster.crew import NoWorkerError, Patience
from ssmtool.cluster.job import Calls, Job, Opened
from ssmtool.cluster.link import LinkError
from ssmtool.cluster.session import Cluster, open_cluster
from ssmtool.cluster.sweep import Answer, Piece

__all__ = [
    "Answer",
    "Calls",
    "Cluster",
    "Job",
    "LinkError",
    "NoWorkerError",
    "Opened",
    "Patience",
    "Piece",
    "open_cluster",
]
