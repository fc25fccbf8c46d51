"""A verification as a job: the PTX and the options once, then cases and rounds of relations. This runs on workers."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ssmtool.cluster.job import Job, Opened
from ssmtool.cluster.resources import Wanted, start_command
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.device import Devices
    from ssmtool.verify.engine import Options
    from ssmtool.verify.loaded import Loaded, Ran, Text
    from ssmtool.verify.result import Result


@dataclass(frozen=True)
class Compile:
    """A kernel to have in the cache of this worker: entry, block, check."""

    wanted: tuple[str, tuple[int, int, int], Any]


@dataclass(frozen=True)
class Round:
    """One round of a relation."""

    relation: str
    number: int


@dataclass(frozen=True)
class Case:
    """A case as the bytes of its file. With `ends` what its runs left comes back too, to be compared."""

    data: bytes
    ends: bool = False


class Verification(Job):
    """The job. `texts` are (PTX, path for messages, parameters' names)."""

    def __init__(self, texts: Sequence[Text], options: Options, wanted: Sequence[Wanted]) -> None:
        self._given = [
            (each.module.text, each.module.path, {name: tuple(names) for name, names in each.parameters.items()})
            for each in texts
        ]
        self._options = options
        self._wanted = {each.resource: each for each in wanted}
        self._texts: list[Text] = []
        self._devices: list[Devices] = []
        self._loaded: dict[str, Loaded] = {}
        self._compilers: Mapping[str, object] = {}
        self._purse: Any = None

    def open(self, resource: str) -> Opened:
        """The device of this worker, with the PTX loaded. Raises what `open_devices` and `Device.load` raise."""
        from ssmtool.device import open_devices
        from ssmtool.verify.diagnosis import Purse
        from ssmtool.verify.loaded import Loaded
        from ssmtool.verify.relations import all_relations

        all_relations()  # now, so that what it runs later is what was compared with the client's files
        self._parse()
        self._purse = self._purse or Purse(self._options.diagnose)
        wanted = self._wanted[resource]
        devices = open_devices(wanted.word, require=wanted.require)
        self._devices.append(devices)
        if len(devices) != 1:
            raise SsmtoolError(f"it sees {len(devices)} cards: start one worker for each", hint=start_command(resource))
        device = devices[0]
        self._loaded[resource] = Loaded(device, self._texts, check=self._options.check)
        return Opened(str(device).partition(" ")[2].strip("()"), "" if device.real else _cache())

    def _parse(self) -> None:
        from ssmtool import ptx
        from ssmtool.verify.loaded import Text

        if not self._texts:
            self._texts = [Text(ptx.parse(text, path), names) for text, path, names in self._given]

    def perform(self, resource: str, piece: Any) -> Any:
        """A Result, its case taken out; of a Case with `ends` also each run's `Ran`, by name."""
        if isinstance(piece, Compile):
            return self._compile(piece)
        return self._round(resource, piece) if isinstance(piece, Round) else self._case(resource, piece)

    def _compile(self, piece: Compile) -> None:
        from ssmtool.verify.warm import compile_kernel, modules_of

        if not self._compilers:
            self._compilers = modules_of(self._texts)
        compile_kernel(self._compilers, piece.wanted)

    def _round(self, resource: str, piece: Round) -> Result:
        from ssmtool.verify.relating import run_relation
        from ssmtool.verify.relations import all_relations

        relation = next(each for each in all_relations() if each.name == piece.relation)
        options = self._options
        return run_relation(
            relation, self._loaded[resource], seed=options.seed, number=piece.number, keep=options.keep
        )  # fmt: skip

    def _case(self, resource: str, piece: Case) -> tuple[Result, dict[str, Ran]]:
        from ssmtool.golden import parse_case
        from ssmtool.verify.casework import run_case

        ends: dict[str, Ran] | None = {} if piece.ends else None
        options = self._options
        result = run_case(
            parse_case(piece.data), self._loaded[resource], all_work=options.all_work, purse=self._purse,
            keep=options.keep, stop_at_first=options.stop_at_first, ends=ends,
        )  # fmt: skip
        result.case = None
        return result, ends or {}

    def problem(self, resource: str) -> str | None:
        """Of a card after a fatal error."""
        problem = self._loaded[resource].device.problem
        return None if problem is None else str(problem)

    def close(self) -> None:
        """Unload and give the card back."""
        for loaded in self._loaded.values():
            loaded.close()
        for devices in self._devices:
            devices.close()
        self._loaded, self._devices = {}, []


def _cache() -> str:
    from ssmtool.execute.cache import cache_dir

    return f"{socket.gethostname()}:{cache_dir()}"
