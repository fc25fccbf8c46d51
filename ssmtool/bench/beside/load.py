"""Finding what `--beside` names, and asking it for its work; whatever goes wrong in it becomes one message."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from ssmtool.bench.beside.api import Peer, Task
from ssmtool.errors import SsmtoolError

# A file's own name may have a colon in it.
_WORDS = re.compile(r"(.*\.py|[^:]*)(?::(\w*))?", re.DOTALL)

BUILT_IN = ("fla",)
"""The files that come with ssmtool, by their names in this folder."""


class BesideError(SsmtoolError):
    """Somebody else's file or kernel could not do its part; exit code 2."""


@dataclass(frozen=True)
class Adapter:
    """`words` as given to `--beside`, and the function found there."""

    words: str
    function: Callable[[Task], Any]

    def peers(self, task: Task) -> list[Peer]:
        """What it has for a task; nothing, if it does not do such. Raises BesideError."""
        found = attempt(lambda: _aside(lambda: self.function(task)), f"--beside {self.words}: {task.kind}")
        given = [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]
        return [self._peer(each) for each in given]

    def _peer(self, found: Any) -> Peer:
        if isinstance(found, Peer):
            parts = {"run": found.run, "reset": found.reset, "outputs": found.outputs}
            wrong = next((name for name, part in parts.items() if part is not None and not callable(part)), None)
            if wrong is None and callable(found.run) and isinstance(found.name, str) and found.name:
                return found
            what = f"a Peer whose {wrong or 'name or run'} is {getattr(found, wrong or 'name')!r}"
        elif callable(found):
            return Peer(getattr(found, "__name__", self.words), found)
        else:
            what = f"{type(found).__name__} {str(found)[:60]!r}"
        raise BesideError(
            f"--beside {self.words}: it gave {what}; expected a function, a Peer, a list of them, or None",
            hint="docs/bench.md shows such a file",
        )


def load(words: str) -> Adapter:
    """`fla`, `fla:NAME`, `FILE.py` or `FILE.py:NAME`; NAME is a function of one Task. Raises BesideError."""
    match = _WORDS.fullmatch(words)
    place, name = (match[1], match[2] or "beside") if match else (words, "")
    if place in BUILT_IN:
        module = importlib.import_module(f"ssmtool.bench.beside.{place}")
    elif match and place.endswith(".py"):
        module = _read(Path(place), words)
    else:
        raise BesideError(f"--beside {words}: expected FILE.py, FILE.py:NAME or {', '.join(BUILT_IN)}")
    function = getattr(module, name, None)
    if not callable(function):
        there = [
            each
            for each, value in vars(module).items()
            if not each.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
        ]
        raise BesideError(
            f"--beside {words}: no function {name} in it; there is: {', '.join(there[:12]) or 'none'}",
            hint=f"def {name}(task): ...",
        )
    prepare = getattr(module, "prepare", None)
    if callable(prepare):
        attempt(lambda: _aside(prepare), f"--beside {words}")
    return Adapter(words, function)


def attempt(call: Callable[[], Any], what: str) -> Any:
    """The call's result. Whatever it raises becomes a BesideError that begins with `what` and says where."""
    try:
        return call()
    except SsmtoolError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: a file may end the program it believes to be
        places = traceback.extract_tb(error.__traceback__)
        own = [each for each in places if each.filename != __file__ and not each.filename.startswith("<")]
        where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
        said = " ".join(str(error).split()) or "no words"
        raise BesideError(f"{what}: {type(error).__name__}: {said[:400]}{where}") from None


def _aside(call: Callable[[], Any]) -> Any:
    """The call's result. What it prints goes to standard error: the other one is the report's."""
    with redirect_stdout(sys.stderr):
        return call()


def _read(path: Path, words: str) -> ModuleType:
    if not path.is_file():
        raise BesideError(f"--beside {words}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(f"beside_{path.stem}", path)
    assert spec is not None and spec.loader is not None  # a name that ends in .py has a loader
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # for what it imports from beside itself, then and later
    sys.modules[spec.name] = module  # dataclasses of the file look themselves up there
    attempt(lambda: _aside(lambda: _execute(spec.loader, module)), f"--beside {words}")
    return module


def _execute(loader: Any, module: ModuleType) -> None:
    loader.exec_module(module)


def arrays(found: Any, what: str) -> Mapping[str, Any]:
    """The outputs that a peer gave, as a mapping. Raises BesideError."""
    if not isinstance(found, Mapping):
        raise BesideError(f"{what}: outputs() gave {type(found).__name__}; expected a dictionary of arrays by name")
    return found
