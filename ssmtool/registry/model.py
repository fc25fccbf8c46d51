"""What the registry check knows and concludes, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ssmtool.csource import KernelSource, NameArray
from ssmtool.findings import Finding, Skip
from ssmtool.registry.loader_kind import LoaderKind
from ssmtool.wording import plural


class RegistryInput(msgspec.Struct, frozen=True):
    """The four places one module's kernels are written in.

    `ptx_entries` are those of a fresh compilation, None when there was none; `header_entries` are what the host program
    loads. Paths are as reports print them. `loader` is None when the settings name none.
    `elsewhere` are the kernels of the header's other modules, each with its source.
    """

    module: str
    source: KernelSource
    ptx_entries: tuple[str, ...] | None
    header_path: str
    constant: str
    header_entries: tuple[str, ...]
    loader: NameArray | None
    kind: LoaderKind
    elsewhere: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def entries(self) -> tuple[str, ...]:
        """The symbols the source makes, as far as is known: of the fresh PTX, else of the header's."""
        return self.header_entries if self.ptx_entries is None else self.ptx_entries


class LadderRow(msgspec.Struct, frozen=True):
    """One kernel's way from source to launch.

    `source_path` is the file of `source_line`: the source, or a file it includes. Indices are 0-based; `loads`: the
    loader would hand the kernel to the program.
    """

    kernel: str
    source_line: int | None
    source_path: str | None
    ptx_index: int | None
    header_index: int | None
    loader_index: int | None
    counted: bool
    loads: bool
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The row as JSON data."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Simulation(msgspec.Struct, frozen=True):
    """What the loader would do with the header as it is.

    `when` says where it ends: `loaded` (every name of the count), `compile` (the loader does not compile), `refused`
    (it notices that its lists disagree and loads nothing), `stopped` (at `stopped_index`), `undefined` (it reads past
    its array). `message` is what the user sees then, to the letter; None when nothing is printed. `inert` are the
    module's kernels, and the names asked for, that no launch can reach.
    """

    when: Literal["loaded", "compile", "refused", "stopped", "undefined"]
    loaded: tuple[str, ...]
    inert: tuple[str, ...]
    stopped_index: int | None = None
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The simulation as JSON data."""
        return {
            "when": self.when,
            "loaded": list(self.loaded),
            "inert": list(self.inert),
            "stopped_index": self.stopped_index,
            "message": self.message,
        }


class RegistryReport(msgspec.Struct, frozen=True):
    """The verdict on one module: the ladder, what the loader would do, and what is wrong."""

    input: RegistryInput
    rows: tuple[LadderRow, ...]
    simulation: Simulation | None
    findings: tuple[Finding, ...]
    skips: tuple[Skip, ...]
    required_skips: tuple[Skip, ...]

    @property
    def module(self) -> str:
        """The module's name."""
        return self.input.module

    @property
    def summary(self) -> str:
        """One line: how many kernels there are, and how many of them a launch can reach."""
        kernels = plural(len(self.rows), "kernel")
        if self.simulation is None:
            return f"{self.module}: {kernels}, no loader checked"
        reachable = sum(row.loads for row in self.rows)
        return f"{self.module}: {reachable} of {kernels} load{'s' if len(self.rows) == 1 else ''}"

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data, its findings left to the outcome that carries them."""
        given = self.input
        loader = given.loader
        count = loader.count if loader else None
        return {
            "module": given.module,
            "source": given.source.path,
            "header": given.header_path,
            "constant": given.constant,
            "loader": None
            if loader is None
            else {
                "path": loader.path,
                "array": loader.array,
                "function": loader.function,
                "line": loader.line,
                "names": len(loader.entries),
                "count": None
                if count is None
                else {"kind": count.kind, "text": count.text, "value": count.value, "line": count.line},
            },
            "kernels": [row.to_json() for row in self.rows],
            "simulation": self.simulation.to_json() if self.simulation else None,
        }
