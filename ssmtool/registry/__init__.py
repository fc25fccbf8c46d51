"""The registry rule: source, PTX, header and loader agree on the kernels, or every disagreement is named."""

from ssmtool.registry.check import check_registry
from ssmtool.registry.fix import Fix, plan_fix
from ssmtool.registry.loader_kind import LoaderKind, recognise_loader
from ssmtool.registry.model import LadderRow, RegistryInput, RegistryReport, Simulation

__all__ = [
    "Fix",
    "LadderRow",
    "LoaderKind",
    "RegistryInput",
    "RegistryReport",
    "Simulation",
    "check_registry",
    "plan_fix",
    "recognise_loader",
]
