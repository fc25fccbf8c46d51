"""The registry rule: source, PTX, header and loader agree on the kernels, or every disagreement is named.

`fix` plans a loader's edits and `project` works on a whole project; they are imported by those who need them, since a
check runs on every build.
"""

from ssmtool.registry.check import check_registry
from ssmtool.registry.loader_kind import LoaderKind, recognise_loader
from ssmtool.registry.model import LadderRow, RegistryInput, RegistryReport, Simulation

__all__ = [
    "LadderRow",
    "LoaderKind",
    "RegistryInput",
    "RegistryReport",
    "Simulation",
    "check_registry",
    "recognise_loader",
]
