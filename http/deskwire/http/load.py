"""How much is under way at once: what is more is refused at once, and not queued (ADR 24).

Waiting costs a place of its own: a client that sends slowly, or waits in the feed, holds up nobody's work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Self

from deskwire.engine.errors import Unavailable

RETRY_AFTER_S: Final = 1

IMPORTS_MAX: Final = 2
"""Imports that may be under way; each commits as fast as it can, so more of them only make each other wait."""


@dataclass(slots=True)
class Load:
    """What requests take of the process.

    Args:
        requests_max: handlers that may be at work.
        waits_max: long polls that may wait.
        bodies_bytes_max: bytes of bodies, arriving and arrived, that may be in memory; and bytes of answers that wait
            for their clients, from which on no further request begins.
        writes_max: jobs that may wait for the writer.
        writes: how many do.
        refused: how many requests were, by what there was too much of.
    """

    requests_max: int
    waits_max: int
    bodies_bytes_max: int
    writes_max: int
    writes: Callable[[], int]
    requests: int = 0
    waits: int = 0
    bodies_bytes: int = 0
    imports: int = 0
    unsent: Callable[[], int] = lambda: 0
    refused: dict[str, int] = field(
        default_factory=lambda: {
            "requests": 0,
            "waits": 0,
            "bodies": 0,
            "writes": 0,
            "imports": 0,
            "answers": 0,
        }
    )

    def check(self, *, changes: bool = False) -> None:
        """Raise Unavailable (`overloaded`) if no further request should begin, or none that `changes` anything."""
        if self.requests >= self.requests_max:
            raise self._overloaded("requests", "Too many requests are under way.")
        if self.unsent() > self.bodies_bytes_max:
            raise self._overloaded("answers", "Too many answers wait for clients that do not read them.")
        if changes and self.writes() >= self.writes_max:
            raise self._overloaded("writes", "Too many changes wait for the disk.")

    def working(self) -> Working:
        """A place for a handler, to hold by `with`. Raises Unavailable (`overloaded`) there if there is none."""
        return Working(self)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within `working`: give that place up for one to wait in. Raises Unavailable (`overloaded`)."""
        if self.waits >= self.waits_max:
            raise self._overloaded("waits", "Too many calls wait for events.")
        self.waits += 1
        self.requests -= 1
        try:
            yield
        finally:
            self.waits -= 1
            self.requests += 1  # perhaps one too many for a moment: this one is nearly done

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Hold one of the few places for an import. Raises Unavailable (`overloaded`) if there is none."""
        if self.imports >= IMPORTS_MAX:
            raise self._overloaded("imports", f"There are {IMPORTS_MAX} imports under way.")
        self.imports += 1
        try:
            yield
        finally:
            self.imports -= 1

    def body(self) -> Body:
        """Room for a body, given back at the end of a `with`."""
        return Body(self)

    def room(self, size: int) -> None:
        """Take room for a part of a body. Raises Unavailable (`overloaded`) if there is none."""
        if self.bodies_bytes + size > self.bodies_bytes_max:
            raise self._overloaded("bodies", "Too many large requests are arriving.")
        self.bodies_bytes += size

    def _overloaded(self, what: str, detail: str) -> Unavailable:
        self.refused[what] += 1
        return Unavailable(detail, code="overloaded", retry_after_s=RETRY_AFTER_S)


@dataclass(slots=True)
class Working:
    """The place that one handler holds. A class, as a generator for each request costs three times as much."""

    load: Load

    def __enter__(self) -> None:
        self.load.check()
        self.load.requests += 1

    def __exit__(self, *_: object) -> None:
        self.load.requests -= 1


@dataclass(slots=True)
class Body:
    """The room that one body takes."""

    load: Load
    size: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.load.bodies_bytes -= self.size

    def grow(self, size: int) -> None:
        """Take so many bytes more. Raises Unavailable (`overloaded`)."""
        self.load.room(size)
        self.size += size
