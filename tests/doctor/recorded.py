"""A machine from a JSON file in `systems/`, in the place of the one that the tests run on.

Keys: `note` (what of it is a real recording), `place`, `environ`, `programs` (on PATH), `commands` (argv as one text ->
[exit code, stdout, stderr]), `files` (path -> text), `folders` (path -> names), `access` (path -> [mode, owner, group,
readable, writable]), `driver` (the answer of driver_child.py, or a text: why it gave none), `driver_unhidden` (the same
without CUDA_VISIBLE_DEVICES), `packages`, `imports` (a word of the code -> [exit code, stdout, stderr]),
`compilers`, `ptxas`, `free`, `cache`, `requirements`, `settings` (None: no project).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ssmtool.doctor.facts import CHILD, SMI
from ssmtool.doctor.system import Access, Place, Ran
from ssmtool.errors import SsmtoolError
from ssmtool.project import Project, Settings
from ssmtool.toolchain.find import cannot_target
from ssmtool.toolchain.model import CompilerInfo, Found
from ssmtool.toolchain.ptxas import PtxasInfo

SYSTEMS = Path(__file__).with_name("systems")
NVIDIA_SMI = " ".join(SMI)


def load(name: str) -> dict[str, Any]:
    """The data of one system, free to be changed."""
    data: dict[str, Any] = json.loads((SYSTEMS / f"{name}.json").read_text())
    return copy.deepcopy(data)


class Recorded:
    """A `System` that answers from data; what the data does not hold is not there."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.asked: list[str] = []

    @property
    def environ(self) -> Mapping[str, str]:
        environ: Mapping[str, str] = self.data.get("environ", {})
        return environ

    def place(self) -> Place:
        place = {"version": [3, 10, 12], "executable": "/venv/bin/python", "platform": "linux", "machine": "x86_64"}
        place |= {"user": "runner", **self.data.get("place", {})}
        version: Any = place.pop("version")
        return Place(tuple(version), **place)  # type: ignore[arg-type]

    def which(self, name: str) -> str | None:
        return f"/usr/bin/{name}" if name in self.data.get("programs", ()) else None

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, stdin: str = "", without: Sequence[str] = ()) -> Ran:
        words = " ".join(argv)
        self.asked.append(words)
        if str(CHILD) in argv:
            answer = self.data["driver_unhidden" if without else "driver"]
            return Ran(-1, failure=answer) if isinstance(answer, str) else Ran(0, json.dumps(answer))
        if "-c" in argv:
            found = (value for word, value in self.data.get("imports", {}).items() if word in argv[-1])
            return Ran(*next(found, (1, "", "ModuleNotFoundError: no such module")))
        if words in self.data.get("commands", {}):
            return Ran(*self.data["commands"][words])
        return Ran(-1, failure="cannot be started: No such file or directory")

    def read(self, path: str) -> str | None:
        text: str | None = self.data.get("files", {}).get(path)
        return text

    def folder(self, path: str) -> list[str] | None:
        names: list[str] | None = self.data.get("folders", {}).get(path)
        return names

    def access(self, path: str) -> Access | None:
        row = self.data.get("access", {}).get(path)
        return None if row is None else Access(int(row[0], 8), *row[1:])

    def free_bytes(self, path: str) -> int | None:
        free: int | None = self.data.get("free", 40 << 30)
        return free

    def requirements(self) -> list[str]:
        lines: list[str] | None = self.data.get("requirements", ["click>=8.1", "msgspec>=0.19"])
        if lines is None:
            raise LookupError("ssmtool")
        return lines

    def package(self, name: str) -> str | None:
        version: str | None = self.data.get("packages", {}).get(name)
        return version

    def project(self, folder: Path) -> Project:
        settings = self.data.get("settings", {})
        if settings is None:
            raise SsmtoolError("no [tool.ssmtool] table", hint="ssmtool init")
        if isinstance(settings, str):
            raise SsmtoolError(settings, path="pyproject.toml", line=3, hint="docs/settings.md lists every key")
        return Project(Path("/project"), Settings(**settings), Path("/project/pyproject.toml"))

    def compilers(self, project: Project | None) -> list[Found]:
        return [_found(*row, project) for row in self.data.get("compilers", ())]

    def assemblers(self) -> list[PtxasInfo]:
        return [
            PtxasInfo(".".join(version.split(".")[:2]), version, Path(path), origin)
            for version, path, origin in self.data.get("ptxas", ())
        ]

    def cache_folder(self) -> str:
        folder: str = self.data.get("cache", "/home/runner/.cache/ssmtool/execute")
        return folder


def _found(kind: Any, version: str | None, path: str, origin: str, why: str | None, project: Project | None) -> Found:
    """As find_compilers makes it: with a reason where the project would not take it."""
    if version is None:
        return Found(kind, Path(path), origin, why=why)
    release = ".".join(version.split(".")[:2])
    info = CompilerInfo(kind, release, version, Path(path), f"{kind} {version}")
    if project is not None:
        why = cannot_target(release, project.settings.target)
        if why is None and release != project.settings.cuda_release:
            why = f"release {release} is not the pinned {project.settings.cuda_release}"
    return Found(kind, Path(path), origin, info, why)
