"""The one way by which the checks learn about a machine; tests put a recorded machine in its place.

Nothing here raises for what a machine may be: a missing file is None, a command that cannot run says why.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ssmtool.project import Project
    from ssmtool.toolchain.model import Found
    from ssmtool.toolchain.ptxas import PtxasInfo

_MOST_READ = 4 << 20


@dataclass(frozen=True)
class Ran:
    """A command that ended. `failure` says why it did not run to its end (`code` is then -1), else None."""

    code: int
    out: str = ""
    err: str = ""
    failure: str | None = None

    @property
    def last_words(self) -> str:
        """The last line that it printed, for a message."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1].strip() if lines else "nothing"


@dataclass(frozen=True)
class Access:
    """A file's permission bits, its owner's and group's names, and whether this user may read and write it."""

    mode: int
    owner: str
    group: str
    readable: bool
    writable: bool


@dataclass(frozen=True)
class Place:
    """What this Python is. `machine` is `x86_64`."""

    version: tuple[int, int, int]
    executable: str
    platform: str
    machine: str
    user: str


class System(Protocol):
    """A machine to examine."""

    @property
    def environ(self) -> Mapping[str, str]:
        """Its environment."""

    def place(self) -> Place:
        """Python and platform."""

    def which(self, name: str) -> str | None:
        """The program of that name on PATH."""

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, stdin: str = "", without: Sequence[str] = ()) -> Ran:
        """Run a program to its end; `without` are variables taken out of its environment."""

    def read(self, path: str) -> str | None:
        """A file's text."""

    def folder(self, path: str) -> list[str] | None:
        """The names in a folder, sorted."""

    def access(self, path: str) -> Access | None:
        """Who may use a file or folder."""

    def free_bytes(self, path: str) -> int | None:
        """Free space of the file system that holds `path`, or its nearest folder that exists."""

    def requirements(self) -> list[str]:
        """Dependencies of ssmtool as its metadata names them (`click>=8.1`). Raises LookupError without metadata."""

    def package(self, name: str) -> str | None:
        """The version of an installed Python package."""

    def project(self, folder: Path) -> Project:
        """The project of a folder. Raises SsmtoolError."""

    def compilers(self, project: Project | None) -> list[Found]:
        """Every nvcc and NVRTC in reach."""

    def assemblers(self) -> list[PtxasInfo]:
        """Every ptxas that runs."""

    def cache_folder(self) -> str:
        """Where compiled kernels are kept."""


class ThisMachine:
    """The machine that this process runs on."""

    def __init__(self) -> None:
        self.environ: Mapping[str, str] = dict(os.environ)

    def place(self) -> Place:  # noqa: D102 - the interface says it
        machine = os.uname().machine if hasattr(os, "uname") else "unknown"
        number = os.getuid() if hasattr(os, "getuid") else -1
        version = (sys.version_info.major, sys.version_info.minor, sys.version_info.micro)
        return Place(version, sys.executable or "", sys.platform, machine, _name_of_user(number))

    def which(self, name: str) -> str | None:  # noqa: D102
        return shutil.which(name)

    def run(  # noqa: D102
        self, argv: Sequence[str], *, timeout_s: float = 10.0, stdin: str = "", without: Sequence[str] = ()
    ) -> Ran:
        environment = {name: value for name, value in self.environ.items() if name not in without}
        # `toolchain.process.run_tool` waits for a killed child; one that hangs inside a broken driver never ends.
        try:
            child = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**environment, "LC_ALL": "C"},
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return Ran(-1, failure=f"cannot be started: {getattr(error, 'strerror', None) or error}")
        try:
            out, err = child.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=1.0)
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            child.returncode = -9  # or its finaliser warns of a child that nobody can end
            return Ran(-1, failure=f"did not end within {timeout_s:g} s")
        if child.returncode < 0:
            return Ran(-1, out, err, f"was killed by signal {-child.returncode}")
        return Ran(child.returncode, out, err)

    def read(self, path: str) -> str | None:  # noqa: D102
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                return file.read(_MOST_READ).decode(errors="replace")
        except (OSError, ValueError):
            return None

    def folder(self, path: str) -> list[str] | None:  # noqa: D102
        try:
            return sorted(os.listdir(path))  # noqa: PTH208 - names, not paths
        except OSError:
            return None

    def access(self, path: str) -> Access | None:  # noqa: D102
        try:
            state = Path(path).stat()
        except (OSError, ValueError):
            return None
        mode = stat.S_IMODE(state.st_mode)
        owner, group = _name_of_user(state.st_uid), _name_of_group(state.st_gid)
        return Access(mode, owner, group, os.access(path, os.R_OK), os.access(path, os.W_OK))

    def free_bytes(self, path: str) -> int | None:  # noqa: D102
        for folder in (Path(path), *Path(path).parents):
            with suppress(OSError):
                return shutil.disk_usage(folder).free
        return None

    def requirements(self) -> list[str]:  # noqa: D102
        try:
            return list(metadata.requires("ssmtool") or ())
        except metadata.PackageNotFoundError:
            raise LookupError("ssmtool") from None

    def package(self, name: str) -> str | None:  # noqa: D102
        try:
            return metadata.version(name)
        except (metadata.PackageNotFoundError, ValueError, KeyError):
            return None

    def project(self, folder: Path) -> Project:  # noqa: D102
        from ssmtool.project import find_project

        return find_project(folder)

    def compilers(self, project: Project | None) -> list[Found]:  # noqa: D102
        from ssmtool.toolchain.find import find_compilers

        return find_compilers(project)

    def assemblers(self) -> list[PtxasInfo]:  # noqa: D102
        from ssmtool.toolchain.ptxas import find_ptxas

        return find_ptxas()

    def cache_folder(self) -> str:  # noqa: D102
        from ssmtool.execute.cache import cache_dir

        return str(cache_dir())


def _without_waiting(path: str, flags: int) -> int:
    """Open so that a pipe without a writer does not hold us up."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _name_of_user(number: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return str(number)


def _name_of_group(number: int) -> str:
    try:
        import grp

        return grp.getgrgid(number).gr_name
    except (ImportError, KeyError):
        return str(number)
