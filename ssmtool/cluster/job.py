"""What travels to a worker: a job, once, and then pieces of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Job(ABC):
    """Everything that the pieces of a run have in common: PTX, options. It is pickled, sent, and opened on each worker.

    A job of one's own is a class of a module that the workers have too, and pickles; what `open` makes stays there.
    """

    @abstractmethod
    def open(self, resource: str) -> Opened:
        """Make ready on a worker that has the resource. Raises SsmtoolError where this worker cannot.

        An error of exit code 1 says that the product is at fault, and not the worker.
        """

    @abstractmethod
    def perform(self, resource: str, piece: Any) -> Any:
        """One piece, opened before; may be called by several threads at once where the resource is CPU."""

    def problem(self, resource: str) -> str | None:
        """Why this worker is out of use from now on (a card that was lost), or None."""
        return None

    def close(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back what `open` took. A second call does nothing."""


@dataclass(frozen=True)
class Opened:
    """What a worker tells of itself. `model` is its device in words; workers of one `cache` share compiled kernels."""

    model: str = ""
    cache: str = ""


class Calls(Job):
    """A job without anything of its own: each piece is a tuple of arguments of one function of a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def open(self, resource: str) -> Opened:
        """Nothing is needed."""
        return Opened()

    def perform(self, resource: str, piece: Any) -> Any:
        """`function(*piece)`."""
        return self.function(*piece)
