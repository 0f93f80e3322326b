"""A system that Deskwire is measured beside: how it is installed, filled, started and called. One module for each system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from benchmarks.job import SENT, Call, Job

APPEND, START, READ, LIST, SEARCH = (
    "append a message",
    "start a conversation",
    "read 20 messages",
    "list the 50 newest",
    "search, 50 of 100 hits",
)
OPERATIONS: Final = (APPEND, START, READ, LIST, SEARCH)

PHRASE: Final = "could you please look into it?"
TEXT: Final = f"sent {SENT} The parcel has not arrived yet, {PHRASE}"
"""A message; its time of sending makes the age of an event known."""
WORD: Final = "quartz"
"""The word that is searched for."""
HITS: Final = 100
PAGE_SIZE: Final = 50
LONG: Final = 20
"""Messages of the conversations that are read."""
READ_CONVERSATIONS: Final = 16
APPENDED_CONVERSATIONS: Final = 64


Subscriber = Callable[[], AbstractContextManager[Callable[[], list[float]]]]
"""Subscribes for a block, which can call for the ages (ms) of the messages since its last call."""


class NotInstalled(Exception):
    """A peer can't be installed on this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a peer without which its figures mean little.

    Args:
        system: its name and version, and the servers and database it runs on.
        synced: whether an answer to a write comes after a sync to the disk, and how.
        leaves_out: guarantees and features of Deskwire that it does not have.
        favours: choices in its favour, and choices against it.
    """

    system: str
    synced: str
    leaves_out: str
    favours: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The requests of an operation, and a text that each answer must have exactly `times`."""

    calls: Sequence[Call]
    holds: str
    times: int = 1
    key: str = ""
    project: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Running:
    """A peer that runs.

    Args:
        service, database: ids of the processes whose trees are the service and its database.
        subscribers: the ways to be notified of a new message.
    """

    port: int
    service: Sequence[int]
    database: Sequence[int]
    operations: Mapping[str, Asked]
    subscribers: Mapping[str, Subscriber] = field(default_factory=dict)

    def job(self, operation: str, **how: Any) -> Job:
        """Return the job of an operation, with further arguments of a job."""
        asked = self.operations[operation]
        return Job(
            self.port,
            calls=list(asked.calls),
            key=asked.key,
            project=asked.project,
            headers=dict(asked.headers),
            holds=asked.holds,
            times=asked.times,
            drained=True,
            **how,
        )


class Peer(Protocol):
    """A system on one database."""

    name: str
    """Of its column."""

    @property
    def slow(self) -> bool:
        """Return whether it needs longer rounds."""

    @property
    def facts(self) -> Facts:
        """Return the facts about the installed version."""

    def prepare(self, conversations: int) -> None:
        """Install it and store conversations of two messages, some of them long. Raises NotInstalled."""

    def running(self, *, notify: bool = False) -> AbstractContextManager[Running]:
        """Run it on what is stored, until it accepts connections; with subscribers only if `notify`."""


def bodies_of(count: int, *, word: bool) -> list[str]:
    """Return the first messages of that many conversations, 100 of them with the word of the search."""
    every = max(1, count // HITS)
    marked = {number * every for number in range(HITS)} if word else set[int]()
    return [f"{WORD} " * (number in marked) + TEXT.replace(SENT, f"{number:019}") for number in range(count)]
