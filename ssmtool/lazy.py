"""Names of a package that are imported when they are first used: importing the package costs next to nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], before: Callable[[], None] | None = None
) -> Callable[[str], Any]:
    """The `__getattr__` of a package. `homes` is name -> module below the package that has it.

    `before` is called first: it raises where a library is missing. A name that is found is kept in the package: a
    module of the same name, imported on the way, would else be left in its place.
    """

    def getattribute(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if before is not None:
            before()
        value = getattr(importlib.import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattribute
