"""How much is under way at once: what is more is refused at once, and not queued (ADR 24).

Waiting costs a place of its own: a client that sends slowly, or waits in the feed, holds up nobody's work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

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
        bodies_bytes_max: bytes of bodies, arriving and arrived, that may be in memory.
        writes_max: jobs that may wait for the writer.
        writes: those that do.
        refused: how many requests were, by what there was too much of.
    """

    requests_max: int
    waits_max: int
    bodies_bytes_max: int
    writes_max: int
    writes: Sized
    requests: int = 0
    waits: int = 0
    bodies_bytes: int = 0
    imports: int = 0
    refused: dict[str, int] = field(
        default_factory=lambda: {
            "requests": 0,
            "waits": 0,
            "bodies": 0,
            "writes": 0,
            "imports": 0,
        }
    )

    def check(self, *, changes: bool = False) -> None:
        """Raise Unavailable (`overloaded`) if no further request should begin, or none that `changes` anything."""
        if self.requests >= self.requests_max:
            raise self._overloaded("requests", "Too many requests are under way.")
        if changes and len(self.writes) >= self.writes_max:
            raise self._overloaded("writes", "Too many changes wait for the disk.")

    def begin(self) -> None:
        """Take a place for a handler, until `end`. Raises Unavailable (`overloaded`) if there is none."""
        self.check()
        self.requests += 1

    def end(self) -> None:
        """Give the place back."""
        self.requests -= 1

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Between `begin` and `end`: give that place up for one to wait in. Raises Unavailable (`overloaded`)."""
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

    def room(self, size: int) -> None:
        """Take room for a part of a body, which is `bodies_bytes` from then on. Raises Unavailable (`overloaded`)."""
        if self.bodies_bytes + size > self.bodies_bytes_max:
            raise self._overloaded("bodies", "Too many large requests are arriving.")
        self.bodies_bytes += size

    def _overloaded(self, what: str, detail: str) -> Unavailable:
        self.refused[what] += 1
        return Unavailable(detail, code="overloaded", retry_after_s=RETRY_AFTER_S)
