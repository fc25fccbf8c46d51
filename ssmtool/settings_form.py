"""How messages name a table of the settings: as the settings file in use writes it.

`[tool.ssmtool]` in a pyproject.toml is the whole of an ssmtool.toml, and a reader who pastes the one form into the
other file gets an unknown key. Most messages are made far from the project, so the file read last decides.
"""

from __future__ import annotations

from pathlib import Path

PYPROJECT = "pyproject.toml"
_in_use = PYPROJECT


def use(path: Path) -> None:
    """From now on messages speak of this settings file."""
    global _in_use
    _in_use = path.name


def table(name: str = "") -> str:
    """The settings as a whole, `[tool.ssmtool]` or `ssmtool.toml`; with a name, that table of many: `[[launch]]`."""
    if _in_use == PYPROJECT:
        return f"[[tool.ssmtool.{name}]]" if name else "[tool.ssmtool]"
    return f"[[{name}]]" if name else _in_use
