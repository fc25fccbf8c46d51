"""What an audit found about each kernel, as plain data."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ssmtool.audit.counts import Counts
from ssmtool.audit.names import cut
from ssmtool.audit.paths import PathCounts
from ssmtool.findings import Outcome


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """What a kernel inherits from a `.func` it calls, itself or through others."""

    name: str
    local_bytes: int
    local_loads: int
    local_stores: int
    executed: bool

    @property
    def touches_local(self) -> bool:
        """Whether its text has a local load or store."""
        return self.local_loads + self.local_stores > 0


@dataclass(frozen=True, slots=True)
class KernelAudit:
    """One kernel.

    `path` holds for the assumptions in it; `called` are `.func`s it may reach, counted into the totals below;
    `calls_elsewhere` says that code outside this text may run too, about which nothing is known. `argument` is what was
    named to audit it, None for the project's header. `module_local_bytes` are those of `.local` variables outside any
    function that the kernel's text names.
    `input` names the text (of several in a file, with its constant), `file` the file that holds it.
    `line` counts in the PTX, `shown_line` in the file that holds it.
    """

    input: str
    file: str
    name: str
    line: int
    parameters: tuple[str, ...]
    counts: Counts
    path: PathCounts
    called: tuple[CalledFunction, ...] = ()
    calls_elsewhere: bool = False
    shown_line: int | None = None
    module_local_bytes: int = 0
    argument: str | None = None

    @property
    def explain(self) -> str:
        """The command that prints this kernel with its margin; a long name as a pattern, so that it stays on a line."""
        file = f" {shlex.quote(self.argument)}" if self.argument not in (None, "-") else ""
        return f"ssmtool audit-ptx{file} --explain {shlex.quote(cut(self.name, '*'))}"

    @property
    def local_bytes(self) -> int:
        """Declared bytes, callees included."""
        own = self.counts.local_bytes + self.module_local_bytes
        return own + sum(function.local_bytes for function in self.called)

    @property
    def static_local(self) -> tuple[int, int]:
        """(loads, stores) in the text, callees included."""
        return (
            self.counts.local_loads + sum(function.local_loads for function in self.called),
            self.counts.local_stores + sum(function.local_stores for function in self.called),
        )

    @property
    def path_local(self) -> tuple[int, int]:
        """(loads, stores) that may be executed under the assumptions, callees included."""
        reached = [function for function in self.called if function.executed]
        return (
            self.path.local_loads + sum(function.local_loads for function in reached),
            self.path.local_stores + sum(function.local_stores for function in reached),
        )

    def to_json(self) -> dict[str, Any]:
        """The kernel as JSON data."""
        data = asdict(self)
        data["local"] = {
            "declared_bytes": self.local_bytes,
            "static_loads": self.static_local[0],
            "static_stores": self.static_local[1],
            "path_loads": self.path_local[0],
            "path_stores": self.path_local[1],
        }
        return data


@dataclass(slots=True)
class AuditResult:
    """Every kernel of every input, and the outcome of the checks on them."""

    kernels: list[KernelAudit] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)

    def __iter__(self) -> Iterator[KernelAudit]:
        return iter(self.kernels)

    def kernel(self, name: str) -> KernelAudit | None:
        """The first kernel of that name."""
        return next((kernel for kernel in self.kernels if kernel.name == name), None)

    @property
    def by_name(self) -> Mapping[str, KernelAudit]:
        """Kernel name -> its audit; the second of a name is `name (2)`, so that none stands for another."""
        found: dict[str, KernelAudit] = {}
        seen: Counter[str] = Counter()
        for kernel in self.kernels:
            seen[kernel.name] += 1
            number = seen[kernel.name]
            found[kernel.name if number == 1 else f"{kernel.name} ({number})"] = kernel
        return found

    def to_json(self) -> dict[str, Any]:
        """The kernels as JSON data; the outcome is the report's own."""
        return {"kernels": [kernel.to_json() for kernel in self.kernels]}
