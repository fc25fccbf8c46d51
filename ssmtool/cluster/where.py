"""What `--scheduler` names: an address, a file that holds one, or a cluster of this machine's own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from ssmtool.errors import SsmtoolError
from ssmtool.execute.pool import default_threads
from ssmtool.files import read_bytes

WORDS = "tcp://HOST:PORT, tls://HOST:PORT, a scheduler file (dask scheduler --scheduler-file), or local[:N]"
_ADDRESS = re.compile(r"(tcp|tls)://(?:\[([0-9A-Fa-f:.%]+)\]|([^\s:/\[\]]+)):(\d{1,5})/?")
_LOCAL = re.compile(r"local(?::(\d{1,4}))?")
# A scheduler file has some kB, more where many workers are listed in it.
_MOST_BYTES = 16 << 20
_MOST_WORKERS = 256


@dataclass(frozen=True)
class Where:
    """A scheduler's address, or (`workers` > 0) a cluster of that many processes, started here and ended afterwards."""

    given: str
    address: str = ""
    host: str = ""
    port: int = 0
    workers: int = 0

    @property
    def local(self) -> bool:
        """Whether ssmtool starts the workers itself."""
        return self.workers > 0

    def __str__(self) -> str:
        return f"the local cluster of {self.workers}" if self.local else self.address


def parse_where(given: str) -> Where:
    """The word of `--scheduler`. Raises SsmtoolError for one that is neither an address, a file nor `local`."""
    if (local := _LOCAL.fullmatch(given)) is not None:
        count = default_threads() if local[1] is None else int(local[1])
        if not 1 <= count <= _MOST_WORKERS:
            raise SsmtoolError(f"--scheduler {given}: a local cluster has 1 to {_MOST_WORKERS} workers")
        return Where(given, workers=count)
    if "://" in given:
        return _address(given, given)
    if not given or "\0" in given:
        raise SsmtoolError(f"--scheduler of nothing: expected {WORDS}")
    if not Path(given).exists():
        meant = f"; did you mean tcp://{given}?" if re.fullmatch(r"[\w.-]+:\d+", given) else ""
        raise SsmtoolError(f"--scheduler {given}: there is no such file, and it is no address{meant}",
                           hint=f"give {WORDS}")  # fmt: skip
    return _address(given, _from_file(Path(given)))


def _address(given: str, address: str) -> Where:
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match[4]) < 65536:
        raise SsmtoolError(f"--scheduler {given}: {address} is no address of a scheduler", hint=f"give {WORDS}")
    return Where(given, address.rstrip("/"), match[2] or match[3], int(match[4]))


def _from_file(path: Path) -> str:
    """The address in what `dask scheduler --scheduler-file` wrote."""
    data = read_bytes(path)
    try:
        if len(data) > _MOST_BYTES:
            raise ValueError
        found = json.loads(data)["address"]
        if not isinstance(found, str):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SsmtoolError(
            "is no scheduler file: it holds no JSON object with an address", path=path,
            hint="dask scheduler --scheduler-file FILE writes one",
        ) from None  # fmt: skip
    return found
