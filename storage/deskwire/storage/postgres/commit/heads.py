"""The heads of the projects' logs: who holds a project's row gives its events their places, and nobody else meanwhile.

A head is locked behind everything else that a transaction locks, and stays so until its commit is visible. So of two
positions the smaller one is visible before the larger one is given, and no reader ever skips one (ADR 57).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.core.ids import IdGenerator, Prefix
from deskwire.engine.events.ports import Advance, ProjectHead
from deskwire.storage.connection import Connection

SHIFT: Final = 40
"""Bits of a position that count within its project; above them stands the project."""

LOCK: Final = (
    "SELECT project, position, last_id, delivery, delivery_id, endpoints_version FROM project_heads "
    "WHERE project IN (SELECT unnest(CAST(? AS bigint[]))) ORDER BY project FOR UPDATE"
)
LOCK_OF: Final = (
    "SELECT project, position, last_id, delivery, delivery_id, endpoints_version FROM project_heads WHERE project IN "
    "(SELECT c.project FROM conversations c WHERE c.rowid = ANY($1)) ORDER BY project FOR UPDATE"
)
"""The same by the conversations whose events are to come."""

SAVE: Final = (
    "UPDATE project_heads SET position = ?, last_id = ?, delivery = ?, delivery_id = ? WHERE project = ?"
)
VERSIONS: Final = "SELECT endpoints_version FROM project_heads WHERE project = ?"


def project_of(position: int) -> int:
    """Return the project in whose log a position is."""
    return position >> SHIFT


class Counter:
    """The places of one kind, and the ids that grow with them.

    Args:
        last: the last place that was given.
        last_id: the id of what took it.
    """

    __slots__ = ("_mint", "_prefix", "before", "last", "last_id")

    def __init__(self, prefix: Prefix, last: int, last_id: str | None) -> None:
        self.before: Final = last
        self.last = last
        self.last_id = last_id
        self._prefix: Prefix = prefix
        self._mint = IdGenerator(last_id)

    def next(self, at: int) -> tuple[int, str]:
        """Return the next position, and the id of what takes it."""
        self.last += 1
        self.last_id = self._mint.new(self._prefix, at)
        return self.last, self.last_id


class Head(Struct):
    """The head of a project's log, while its row is locked.

    Args:
        endpoints_version: counts the changes of the endpoints that events are for.
    """

    project: int
    events: Counter
    deliveries: Counter
    endpoints_version: int

    @property
    def advance(self) -> Advance:
        """The move of this head since it was locked."""
        events, deliveries = self.events, self.deliveries
        return Advance(
            ProjectHead(self.project, events.before, deliveries.before),
            ProjectHead(self.project, events.last, deliveries.last),
        )

    def saved(self) -> tuple[object, ...]:
        """Return the values of SAVE."""
        events, deliveries = self.events, self.deliveries
        return events.last, events.last_id, deliveries.last, deliveries.last_id, self.project


def head_of(row: Sequence[Any]) -> Head:
    """Return the head in a row of LOCK."""
    project, position, last_id, delivery, delivery_id, version = row
    return Head(project, Counter("evt", position, last_id), Counter("dlv", delivery, delivery_id), version)


def lock_head(conn: Connection, project: int) -> Head:
    """Lock a project's head, which it has from its begin, and return it."""
    return head_of(conn.execute(LOCK, ((project,),)).fetchone())
