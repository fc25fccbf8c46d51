"""The workers of one run: who is there, who may work, and why others may not.

A worker is asked who it is before it gets anything, also one that joins later, and one that has neither the resource
nor the ssmtool of this run gets nothing. Each is asked in a thread of its own: one that hangs holds up nobody.
"""

from __future__ import annotations

import contextlib
import pickle
import secrets
import threading
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from ssmtool.cluster import worker as remote
from ssmtool.cluster.identity import difference, identity
from ssmtool.cluster.job import Job, Opened
from ssmtool.cluster.link import Ended, Link, LinkError, WorkerFacts
from ssmtool.cluster.resources import start_command
from ssmtool.errors import SsmtoolError

_LOOK_S = 0.5
# Attempts to speak to a worker that the scheduler says is there.
_ATTEMPTS = 3
_SHOWN = 6


class NoWorkerError(SsmtoolError):
    """No worker can do this, and none came in time."""


@dataclass(frozen=True)
class Patience:
    """Seconds to wait for a worker: the first one, another one after the last has gone, one that is making ready."""

    start: float = 5.0
    again: float = 30.0
    ready: float = 120.0


@dataclass(frozen=True)
class Met:
    """A worker has been asked: what it opened, or why it gets nothing. `lost`: it did not answer."""

    address: str
    opened: dict[str, Opened | remote.Refusal] = field(default_factory=dict)
    refusal: str | None = None
    lost: bool = False


@dataclass
class Member:
    """A worker that has a resource of this run."""

    facts: WorkerFacts
    state: str = "coming"  # then "ready" or "refused"
    opened: dict[str, Opened] = field(default_factory=dict)


class Crew:
    """Workers that have one of `resources`, each with the job open. `notes` are sentences about what became of them."""

    def __init__(self, link: Link, job: Job, resources: Sequence[str], notes: list[str] | None = None) -> None:
        self.link = link
        self.key = secrets.token_hex(16)
        self.resources = tuple(resources)
        self.notes: list[str] = [] if notes is None else notes
        self.faults: dict[str, list[remote.Refusal]] = {resource: [] for resource in resources}
        self.events: SimpleQueue[Met | Ended] = SimpleQueue()
        self._blob = pickle.dumps(job)
        self._members: dict[str, Member] = {}
        self._others: dict[str, WorkerFacts] = {}
        self._attempts: Counter[str] = Counter()
        self._next = 0.0
        self._silent: tuple[float, str] | None = None

    # ------------------------------------------------------------------------------------------------ who is there

    def look(self, *, now: bool = False) -> None:
        """Ask the scheduler who is there; twice a second at most, unless it has to be `now`."""
        if not now and time.monotonic() < self._next:
            return
        try:
            there = self.link.workers()
        except LinkError as error:
            # It may only be busy: nobody is given up for that alone.
            self._silent = self._silent or (time.monotonic(), error.message)
            return
        finally:
            self._next = time.monotonic() + _LOOK_S
        self._silent = None
        self._part(there)
        self._others = {}
        for address, facts in there.items():
            if not any(facts.slots(each) for each in self.resources):
                self._others[address] = facts
            elif address not in self._members:
                self._ask(facts)

    def last_look(self) -> None:
        """At the end: who went since the last look is noted, and nobody new is asked."""
        if not self.silent:
            with contextlib.suppress(LinkError):
                self._part(self.link.workers())

    def _part(self, there: Collection[str]) -> None:
        for address in [each for each in self._members if each not in there]:
            member = self._members.pop(address)
            if member.state == "ready":
                self.note(f"worker {member.facts} has gone: what it had begun runs elsewhere")

    def next_event(self, timeout: float) -> Ended | None:
        """A task that has ended, within the time; a worker that was met is taken in, or not, on the way."""
        try:
            event = self.events.get(timeout=timeout)
        except Empty:
            return None
        if isinstance(event, Met):
            self._meet(event)
            return None
        return event

    def ready(self, resource: str, among: frozenset[str] | None = None) -> list[WorkerFacts]:
        """Workers that may be given work with this resource."""
        return [
            each.facts
            for address, each in self._members.items()
            if each.state == "ready" and resource in each.opened and (among is None or address in among)
        ]

    def opened(self, resource: str) -> dict[str, Opened]:
        """What each of them told of itself, by address."""
        return {each.address: self._members[each.address].opened[resource] for each in self.ready(resource)}

    def coming(self, resource: str) -> bool:
        """Whether a worker with it is being asked."""
        return any(each.state == "coming" and each.facts.slots(resource) for each in self._members.values())

    @property
    def silent(self) -> float:
        """Seconds since the scheduler no longer answers; 0 while it does, infinite when it never will again."""
        if self._silent is None:
            return 0.0
        return float("inf") if self.link.closed else max(1e-9, time.monotonic() - self._silent[0])

    def name(self, address: str) -> str:
        """A worker in words, also one that has gone."""
        return str(self._members[address].facts) if address in self._members else address

    # ---------------------------------------------------------------------------------------------- who may not work

    def again(self, address: str) -> None:
        """A worker that does not know the job any more: its process is another one now."""
        if (member := self._members.pop(address, None)) is not None:
            self._ask(member.facts)

    def exclude(self, address: str, reason: str) -> None:
        """A worker that is out of use gets nothing more in this run."""
        if (member := self._members.get(address)) is not None and member.state != "refused":
            member.state = "refused"
            self.note(f"worker {member.facts} gets nothing more: {reason}")

    def note(self, words: str) -> None:
        """Something to be told once."""
        if words not in self.notes:
            self.notes.append(words)

    def at_fault(self, resource: str) -> bool:
        """Whether every worker with it found the product itself at fault: waiting for another would be idle."""
        return bool(self.faults[resource]) and not self.ready(resource) and not self.coming(resource)

    def missing(self, resource: str) -> str:
        """Why nobody is ready, with those that are there."""
        if self._silent is not None:
            return self._silent[1]
        there = Counter(_resources(each) for each in self._others.values())
        refused = sum(each.state == "refused" for each in self._members.values())
        words = [f"{count} with {what}" for what, count in there.most_common(_SHOWN)]
        words += [f"{refused} that cannot be used"] if refused else []
        words += ["one that does not make ready"] if self.coming(resource) else []
        return f"no worker of {self.link.where} has the resource {resource}; there is {', '.join(words) or 'none'}"

    # ------------------------------------------------------------------------------------------------------ a whole

    def gather(self, patience: Patience) -> None:
        """Wait until each resource has a worker, and those that are there are ready. Raises NoWorkerError."""
        started = time.monotonic()
        while True:
            self.look()
            lacking = [each for each in self.resources if not self.ready(each) and not self.at_fault(each)]
            coming = any(each.state == "coming" for each in self._members.values())
            waited = time.monotonic() - started
            if not lacking and (not coming or waited > patience.start):
                return
            if waited > patience.ready or (not coming and waited > patience.start):
                words = [each for each in self.notes if each.startswith("worker ")]
                raise NoWorkerError("; ".join([self.missing(lacking[0]), *words[:_SHOWN]]), hint=self._hint(lacking[0]))
            self.next_event(0.1)

    def _hint(self, resource: str) -> str:
        if self.link.where.local:
            return "a local cluster has the CPU alone; without --scheduler the cards of this machine share the cases"
        return start_command(resource, self.link.where.address)

    def dismiss(self) -> None:
        """Have every worker forget the job, without waiting long for one that does not answer."""
        addresses = [address for address, each in self._members.items() if each.state != "coming"]
        threads = [threading.Thread(target=self._forget, args=(each,), daemon=True) for each in addresses]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 2.0
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _forget(self, address: str) -> None:
        try:
            self.link.ask(address, remote.forget, self.key)
        except Exception:
            return  # it has gone, and the job with it

    def _ask(self, facts: WorkerFacts) -> None:
        self._members[facts.address] = Member(facts)
        self._attempts[facts.address] += 1
        threading.Thread(target=self._introduce, args=(facts,), daemon=True, name="ssmtool-cluster").start()

    def _introduce(self, facts: WorkerFacts) -> None:
        """In a thread: ask who it is, and have it open the job."""
        address = facts.address
        try:
            refusal = self._refusal(address)
            if refusal is not None:
                self.events.put(Met(address, refusal=refusal))
                return
            resources = [each for each in self.resources if facts.slots(each)]
            threads = max(1, facts.threads // max(1, facts.slots("CPU")))
            opened = self.link.ask(address, remote.install, self.key, self._blob, resources, threads)
            self.events.put(Met(address, opened))
        except OSError:
            self.events.put(Met(address, lost=True))
        except Exception as error:
            self.events.put(Met(address, refusal=f"{type(error).__name__}: {error}"))

    def _refusal(self, address: str) -> str | None:
        try:
            return difference(identity(), self.link.ask(address, remote.introduce))
        except (ImportError, AttributeError):
            return f"its ssmtool is {self._version(address)}, here it is {identity()['ssmtool']}"

    def _version(self, address: str) -> str:
        """Of a worker that does not even have this room."""
        from importlib.metadata import version

        try:
            return f"{self.link.ask(address, version, 'ssmtool')}, which knows no cluster"
        except Exception:
            return "not installed"

    def _meet(self, met: Met) -> None:
        member = self._members.get(met.address)
        if member is None or member.state != "coming":
            return
        if met.lost:
            self._members.pop(met.address)  # asked again, if it is still there
            if self._attempts[met.address] >= _ATTEMPTS:
                self._members[met.address] = Member(member.facts, "refused")
                self.note(f"worker {member.facts} is refused: it does not answer")
            return
        if met.refusal is not None:
            member.state = "refused"
            self.note(f"worker {member.facts} is refused: {met.refusal}; restart it with this ssmtool")
            return
        for resource, found in met.opened.items():
            if isinstance(found, Opened):
                member.opened[resource] = found
            elif found.product:
                self.faults[resource].append(found)
            else:
                mend = f" ({found.fix})" if found.fix else ""
                self.note(f"worker {member.facts} cannot be used as {resource}: {found.message}{mend}")
        member.state = "ready" if member.opened else "refused"


def available(link: Link, patience: Patience) -> set[str]:
    """Names of the resources that the workers have, waiting for the first worker. Raises LinkError."""
    end = time.monotonic() + patience.start
    while True:
        found = {name for each in link.workers().values() for name in each.resources if each.slots(name)}
        if found or time.monotonic() > end:
            return found
        time.sleep(0.1)


def _resources(facts: WorkerFacts) -> str:
    return ", ".join(f"{name}={amount:g}" for name, amount in sorted(facts.resources.items())) or "no resource"


def check_scheduler(link: Link) -> None:
    """Raise LinkError for a scheduler that could not pass tasks on: another distributed, Python, or no ssmtool."""
    try:
        theirs: Any = link.ask_scheduler(remote.introduce)
    except Exception:
        raise LinkError(
            f"the scheduler at {link.where} runs without this ssmtool",
            hint="start it in an environment with: pip install 'ssmtool[cluster]'",
        ) from None
    found = difference(identity(), theirs, ("distributed", "Python"))
    if found is not None:
        raise LinkError(f"the scheduler at {link.where} is refused: {found}", hint="restart it with the same release")
