"""The C file that keeps the kernels' names in an array, and the PTX constant that it loads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ssmtool.csource import find_name_array
from ssmtool.csource.mask import mask
from ssmtool.discover.tree import Tree
from ssmtool.errors import SsmtoolError

#   static const char *const ssm_names[] = {
_ARRAY = re.compile(r"\b(\w+)\s*\[[^\]\n]*\]\s*=\s*\{([^{}]*)\}")
#   cuModuleLoadData(&module, FC_PTX_SSM_GATED_DELTA)     const char *ptx = FC_PTX_SSM_GATED_DELTA;
_LOADED = re.compile(
    r"(?:\b\w*Load\w*\s*\([^;{}]*?,\s*|\bchar\s*(?:const\s*)?\*\s*(?:const\s+)?\w+\s*=\s*)(\w+)\s*[,;)]"
)


@dataclass(frozen=True, slots=True)
class LoaderGuess:
    """A name array that holds kernels of a source, and the call that takes it, when one was found."""

    path: str
    array: str
    function: str | None
    names: tuple[str, ...]


def find_loader(tree: Tree, kernels: tuple[str, ...], texts: dict[Path, str]) -> LoaderGuess | None:
    """The array with most of these kernels among its strings, confirmed by the reader of loaders."""
    best: tuple[int, Path, str] | None = None
    for path, text in texts.items():
        for array, body in _ARRAY.findall(text):
            common = len(set(re.findall(r'"(\w+)"', body)) & set(kernels))
            if common and (best is None or common > best[0]):
                best = (common, path, array)
    if best is None:
        return None
    _, path, array = best
    for function in [*_callers(texts[path], array), None]:
        try:
            found = find_name_array(path.read_bytes(), path, array, function)
        except (SsmtoolError, OSError):
            continue
        return LoaderGuess(tree.show(path), array, function, found.names)
    return None


def wanted_constants(text: str, path: Path) -> list[str]:
    """Names with PTX in them that the loader loads and does not define: string constants of a header to be made."""
    try:
        code = mask(text.encode(), path).code
    except SsmtoolError:
        return []
    names = [name for name in dict.fromkeys(_LOADED.findall(code)) if "ptx" in name.lower()]
    return [name for name in names if not re.search(rf"\bdefine[ \t]+{name}\b|\*\s*{name}\b|\b{name}\s*[\[=]", code)]


def _callers(text: str, array: str) -> list[str]:
    """Names of the functions that are called with `array` and a further argument after it."""
    names = []
    for match in re.finditer(rf"\b{re.escape(array)}\s*,", text):
        depth = 0
        for offset in range(match.start() - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(text[offset], 0)
            if depth < 0:
                name = re.search(r"(\w+)\s*$", text[:offset][-80:])
                names.extend([name[1]] if name else [])
            if depth < 0 or text[offset] in ";{}":
                break
    return list(dict.fromkeys(names))
