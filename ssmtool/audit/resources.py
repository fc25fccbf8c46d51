"""What each kernel uses, by three tiers of truth side by side.

1. The PTX's text is a hint. It errs both ways: a depot may be promoted to registers, and a kernel without a word of
   `.local` may be spilled by ptxas.
2. ptxas is an estimate: it makes the very machine code, but the driver that loads the PTX is another release of it.
3. The driver is the truth, for the GPU it was asked on and no other.

"0 bytes spill" is not "no local memory": the stack frame is what counts, and spills are part of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ssmtool.audit.calls import Callees
from ssmtool.audit.driver_truth import CHECK as DRIVER_CHECK
from ssmtool.audit.driver_truth import DriverReport, DriverResources, ask_driver
from ssmtool.errors import ProductError
from ssmtool.findings import Skip
from ssmtool.ptx import Module, parse
from ssmtool.toolchain.model import ToolchainError
from ssmtool.toolchain.ptxas import PtxasReport, assemble, select_ptxas
from ssmtool.toolchain.ptxas_report import Resources

ESTIMATE_CHECK = "ptxas estimate of registers, stack frame and spills"
_VERSION = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Hint:
    """What the PTX's text says of a kernel and the functions it can reach: bytes declared, static accesses."""

    depot_bytes: int
    local_loads: int
    local_stores: int


@dataclass(frozen=True, slots=True)
class KernelTiers:
    """One kernel in three tiers; a tier that was not asked is None."""

    kernel: str
    hint: Hint
    estimate: Resources | None
    truth: DriverResources | None

    @property
    def remark(self) -> str | None:
        """Where the tiers differ about local memory, in words; None when they agree."""
        words = []
        if self.estimate is not None:
            hinted = bool(self.hint.depot_bytes or self.hint.local_loads or self.hint.local_stores)
            spilled = self.estimate.spill_store_bytes + self.estimate.spill_load_bytes
            if hinted and not self.estimate.has_local_memory:
                words.append(f"the PTX declares {self.hint.depot_bytes} local bytes, ptxas keeps them in registers")
            elif self.estimate.has_local_memory and not hinted:
                frame = f"{self.estimate.stack_bytes}-byte frame ({spilled} bytes of spills)"
                words.append(f"no .local in the PTX, but ptxas makes a {frame}")
        if self.estimate is not None and self.truth is not None:
            local = self.truth.local_bytes
            if bool(local) != self.estimate.has_local_memory:
                made_for = f"for sm_{self.truth.binary_version}"
                words.append(f"ptxas says {self.estimate.stack_bytes} bytes of frame, the driver {local} {made_for}")
        return "; ".join(words) or None


@dataclass(frozen=True, slots=True)
class Tiers:
    """A module in three tiers. `estimate` and `truth` are whole reports, or the Skip that says why there is none."""

    target: str
    kernels: tuple[KernelTiers, ...]
    estimate: PtxasReport | Skip
    truth: DriverReport | Skip

    @property
    def skips(self) -> tuple[Skip, ...]:
        """The tiers that were not asked."""
        return tuple(tier for tier in (self.estimate, self.truth) if isinstance(tier, Skip))

    @property
    def truth_is_for_target(self) -> bool:
        """False when the driver was asked on another GPU than the target: its numbers are then a comparison only."""
        return isinstance(self.truth, DriverReport) and self.truth.target == self.target

    def table(self) -> dict[str, object]:
        """Title, columns and rows for a report; a dash is a tier that was not asked."""
        place = f"{self.truth.device}, {self.truth.target}" if isinstance(self.truth, DriverReport) else "no answer"
        made = self.estimate.ptxas.title if isinstance(self.estimate, PtxasReport) else "no ptxas"
        return {
            "title": f"Local memory and registers for {self.target}: PTX (hint), {made} (estimate), driver ({place})",
            "columns": (
                *("kernel", "PTX depot", "PTX ld/st.local", "ptxas registers", "ptxas frame", "ptxas spill st/ld"),
                *("shared", "constant", "driver local", "driver registers", "remark"),
            ),
            "rows": [_row(kernel) for kernel in self.kernels],
        }


def hints(module: Module) -> dict[str, Hint]:
    """The first tier, by kernel: what the audit counts in the text, the functions it may call included."""
    callees = Callees(module)
    found = {}
    for entry in module.require_entries():
        accesses = callees.accesses(entry)
        called, _ = callees.reached(entry, None)
        loads = sum(access.kind == "load" for access in accesses)
        depot = entry.local_bytes + callees.module_bytes(entry, called)
        found[entry.name] = Hint(
            depot + sum(function.local_bytes for function in called),
            loads + sum(function.local_loads for function in called),
            len(accesses) - loads + sum(function.local_stores for function in called),
        )
    return found


def measure(ptx: str, target: str, *, name: str = "kernel.ptx", timeout_s: float = 300.0) -> PtxasReport | Skip:
    """The second tier: what a real ptxas reports for `target`; a Skip when no ptxas here can assemble that.

    `name` is what errors call the PTX. Raises PtxasError when ptxas refuses the PTX, ToolchainError when ptxas fails
    or its report does not speak of every kernel, and ProductError when there is no kernel: nothing recognised never
    reads as nothing used.
    """
    version = _VERSION.search(ptx)
    try:
        ptxas = select_ptxas(target, (int(version[1]), int(version[2])) if version else None)
    except ToolchainError as error:
        return Skip(ESTIMATE_CHECK, error.message, error.hint)
    report = assemble(ptx, target, ptxas=ptxas, name=name, timeout_s=timeout_s)
    if not report.entries:
        raise ProductError("no .entry in this PTX, so there is nothing to measure", path=name)
    return report


def three_tiers(
    ptx: str, target: str, *, name: str = "kernel.ptx", module: Module | None = None, driver: bool = True
) -> Tiers:
    """All three tiers. `module` is the PTX when it is parsed already; without `driver` the third is not asked.

    Raises what `measure`, `ask_driver` and the PTX front end raise.
    """
    hinted = hints(module or parse(ptx, name))
    estimate = measure(ptx, target, name=name)
    truth: DriverReport | Skip = (
        ask_driver(ptx, tuple(hinted), target) if driver else Skip(DRIVER_CHECK, "it was not asked for")
    )
    estimates = {item.name: item for item in estimate.entries} if isinstance(estimate, PtxasReport) else {}
    truths = truth.entries if isinstance(truth, DriverReport) else {}
    kernels = tuple(
        KernelTiers(kernel, hint, estimates.get(kernel), truths.get(kernel)) for kernel, hint in hinted.items()
    )
    return Tiers(target, kernels, estimate, truth)


def _row(kernel: KernelTiers) -> tuple[str, ...]:
    hint, estimate, truth = kernel.hint, kernel.estimate, kernel.truth
    row = [kernel.kernel, str(hint.depot_bytes), f"{hint.local_loads}/{hint.local_stores}"]
    if estimate is None:
        row += ["-"] * 5
    else:
        frames = estimate.stack_bytes + sum(function.stack_bytes for function in estimate.functions)
        row += [str(estimate.registers), str(frames), f"{estimate.spill_store_bytes}/{estimate.spill_load_bytes}"]
        row += [str(estimate.shared_bytes), str(sum(estimate.constant_banks.values()))]
    row += ["-", "-"] if truth is None else [str(truth.local_bytes), str(truth.registers)]
    return (*row, kernel.remark or "")
