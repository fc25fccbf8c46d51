"""A cluster, open: what `--scheduler` names, and what can be done on it."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ssmtool.cluster.batches import Batches, Sized
from ssmtool.cluster.crew import Crew, Patience, available, check_scheduler
from ssmtool.cluster.job import Job
from ssmtool.cluster.link import Link, open_link
from ssmtool.cluster.resources import CPU, Wanted, choose
from ssmtool.cluster.sweep import Answer, Lane, Sweep
from ssmtool.cluster.where import parse_where

if TYPE_CHECKING:
    from ssmtool.golden import GoldenCase
    from ssmtool.verify.engine import Listener, Options, Ptx
    from ssmtool.verify.result import Outcome

Answers = Generator[Answer, None, None]


class Cluster:
    """A scheduler and its workers; a local cluster ends with it. `notes` are sentences about what became of workers."""

    def __init__(self, link: Link, patience: Patience, notes: list[str]) -> None:
        self._link = link
        self._patience = patience
        self.notes = notes

    def choose(self, device: str | None, require: str | None) -> tuple[Wanted, ...]:
        """What `--device` and `--require` mean here. Raises SsmtoolError for words that mean nothing."""
        there = available(self._link, self._patience)
        if device is None and require is None and "GPU" not in there:
            self.notes.append(f"on the CPU, since no worker of {self._link.where} has the resource GPU")
        return choose(device, require, there)

    def verify(
        self,
        ptx_text: Ptx,
        cases: Iterable[GoldenCase],
        wanted: Sequence[Wanted],
        *,
        relations: bool = True,
        options: Options | None = None,
        listener: Listener | None = None,
    ) -> Outcome:
        """As `ssmtool.verify.run`, on the workers that have what is wanted. Raises as `run_on_cluster`."""
        from ssmtool.cluster.verifying import run_on_cluster

        return run_on_cluster(
            self._link, ptx_text, cases, wanted, relations=relations, options=options, listener=listener,
            patience=self._patience, notes=self.notes,
        )  # fmt: skip

    def sweep(self, job: Job, loads: Iterable[Any], resource: str = CPU, *, seconds: float = 1.0) -> Answers:
        """Each load done once, in any order, answered as it comes; `loads` may be without end.

        `seconds` is a guess of what one takes: short ones travel together. Who leaves the loop ends the sweep. Raises
        NoWorkerError when no worker has the resource.
        """
        return self.sweeps(job, [(resource, loads)], seconds=seconds)

    def sweeps(
        self, job: Job, loads: Sequence[tuple[str, Iterable[Any]]], *, seconds: float = 1.0
    ) -> Answers:  # fmt: skip
        """The same for several resources at once; `Answer.lane` says which of `loads` it is of."""
        crew = Crew(self._link, job, [resource for resource, _ in loads], self.notes)
        try:
            crew.gather(self._patience)
            batches = [_batches(crew, resource, each, seconds) for resource, each in loads]
            lanes = [Lane(resource, batch) for (resource, _), batch in zip(loads, batches, strict=True)]
            for answer in Sweep(crew, lanes, self._patience):
                if answer.error is None:
                    batches[answer.lane].learn(answer.piece.number, answer.seconds)
                yield answer
        finally:
            crew.dismiss()

    def close(self) -> None:
        """Leave it. A second call does nothing."""
        self._link.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _batches(crew: Crew, resource: str, loads: Iterable[Any], seconds: float) -> Batches:
    held: dict[int, Any] = {}

    def sized() -> Iterator[Sized]:
        for number, load in enumerate(loads):
            held[number] = load
            yield Sized(number, "", seconds)

    count = len(loads) if isinstance(loads, Sequence) else None
    return Batches(sized(), held.pop, lambda: sum(each.slots(resource) for each in crew.ready(resource)), count)


def open_cluster(words: str, *, patience: Patience | None = None, notes: list[str] | None = None) -> Cluster:
    """What `--scheduler` names; sentences about workers go to `notes`.

    Raises SsmtoolError for no such thing and without the extra, LinkError where no scheduler answers that fits.
    """
    link = open_link(parse_where(words))
    try:
        check_scheduler(link)
    except BaseException:
        link.close()
        raise
    return Cluster(link, patience or Patience(), [] if notes is None else notes)
