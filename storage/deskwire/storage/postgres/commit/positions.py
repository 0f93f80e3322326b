"""Positions of events and deliveries, assigned under the lock of a project's log head.

A transaction locks heads after everything else, and holds them until its commit is visible. So a position is
visible before the next one is assigned, and no reader skips one (ADR 57).

Until then the events of a batch have provisional positions and ids, and so do the rows that refer to them.
`LogAppends.assign_positions` replaces the values in these very objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import force_setattr

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.ids import IdGenerator, Prefix, day_of
from deskwire.engine.events.ports import Advance, ProjectHead
from deskwire.engine.events.types import EventDraft, StoredEvent, stored_event
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.storage.connection import Connection
from deskwire.storage.dialect import UNPLANNED_KEYS
from deskwire.storage.tables.events.events import event_row
from deskwire.storage.tables.webhooks.deliveries import delivery_at, delivery_row

PROJECT_SHIFT: Final = 40  # Bits of the position within its project; the project's number is above them.

LOCK_HEADS: Final = (
    "SELECT project, position, last_id, delivery, delivery_id, endpoints_version FROM project_heads "
    "WHERE project IN (SELECT unnest(CAST(? AS bigint[]))) ORDER BY project FOR UPDATE"
)
# The same lock, by the conversations whose events will follow.
LOCK_HEADS_OF_CONVERSATIONS: Final = (
    "SELECT project, position, last_id, delivery, delivery_id, endpoints_version FROM project_heads WHERE project IN "
    f"(SELECT c.project FROM conversations c WHERE c.rowid = ANY({UNPLANNED_KEYS})) ORDER BY project FOR UPDATE"
)

SAVE_HEAD: Final = (
    "UPDATE project_heads SET position = ?, last_id = ?, delivery = ?, delivery_id = ? WHERE project = ?"
)
ENDPOINTS_VERSION: Final = "SELECT endpoints_version FROM project_heads WHERE project = ?"


def project_of(position: int) -> int:
    """Return the project of a position."""
    return position >> PROJECT_SHIFT


class PositionCounter:
    """The last position and id of events or of deliveries in one project.

    Args:
        last: the last position that was assigned.
        last_id: the id of that event or delivery.
    """

    __slots__ = ("_mint", "_prefix", "before", "last", "last_id")

    def __init__(self, prefix: Prefix, last: int, last_id: str | None) -> None:
        self.before: Final = last
        self.last = last
        self.last_id = last_id
        self._prefix: Prefix = prefix
        self._mint = IdGenerator(last_id)

    def next(self, at: int) -> tuple[int, str]:
        """Return the next position and id."""
        self.last += 1
        self.last_id = self._mint.new(self._prefix, at)
        return self.last, self.last_id


class LogHead(Struct):
    """The head of a project's log while its row is locked.

    Args:
        endpoints_version: grows with each change of the project's endpoints.
    """

    project: int
    events: PositionCounter
    deliveries: PositionCounter
    endpoints_version: int

    @property
    def advance(self) -> Advance:
        """The positions before and after the changes since the lock."""
        events, deliveries = self.events, self.deliveries
        return Advance(
            ProjectHead(self.project, events.before, deliveries.before),
            ProjectHead(self.project, events.last, deliveries.last),
        )

    def values(self) -> tuple[object, ...]:
        """Return the values of SAVE_HEAD."""
        events, deliveries = self.events, self.deliveries
        return events.last, events.last_id, deliveries.last, deliveries.last_id, self.project


def head_from_row(row: Sequence[Any]) -> LogHead:
    """Return the head in a row of LOCK_HEADS."""
    project, position, last_id, delivery, delivery_id, version = row
    return LogHead(
        project,
        PositionCounter("evt", position, last_id),
        PositionCounter("dlv", delivery, delivery_id),
        version,
    )


def lock_head(conn: Connection, project: int) -> LogHead:
    """Lock and return a project's head, which exists as long as the project."""
    return head_from_row(conn.execute(LOCK_HEADS, ((project,),)).fetchone())


_ID_LENGTH: Final = 30
_ID_AT: Final = len(b'{"id":"')
_numbers: Final = count(1)


class ProvisionalPosition(int):
    """A negative, unique number in place of a position that is not assigned yet."""

    __slots__ = ()


class ProvisionalId(str):
    """A unique text in place of an id that is not assigned yet, with the length of an id."""

    __slots__ = ()


_PROVISIONAL: Final = frozenset({ProvisionalPosition, ProvisionalId})


class _Event(NamedTuple):
    event: StoredEvent
    project: int
    at: int
    published: bool


class _Delivery(NamedTuple):
    delivery: Delivery
    project: int
    skipped: str | None
    redelivery_of: int | None


class LogAppends:
    """The events and deliveries that a batch appends to the logs, in order."""

    def __init__(self) -> None:
        self.events: Final[list[_Event]] = []
        self.deliveries: Final[list[_Delivery]] = []
        self._projects: dict[int, int] = {}

    @property
    def projects(self) -> list[int]:
        """The projects whose heads must be locked, in the order of the locks."""
        return sorted({each.project for each in self.events} | {each.project for each in self.deliveries})

    def add_event(
        self,
        project: Project,
        draft: EventDraft,
        conversation: int | None,
        at: int,
        *,
        directed: bool,
        ticket: int | None,
    ) -> StoredEvent:
        """Add an event, and return it with a provisional position and id."""
        number = next(_numbers)
        position, event_id = ProvisionalPosition(-number), ProvisionalId(f"evt_{number:026d}")
        event = stored_event(
            position, event_id, project, draft, conversation, at, directed=directed, ticket=ticket
        )
        self.events.append(_Event(event, project.rowid, at, not directed))
        self._projects[position] = project.rowid
        return event

    def add_delivery(
        self,
        endpoint: int,
        event: StoredEvent,
        ordering_key: int | None,
        previous: int | None,
        at: int,
        *,
        skipped: str | None,
        redelivery_of: int | None,
    ) -> Delivery:
        """Add a delivery, and return it with a provisional position and id."""
        number = next(_numbers)
        delivery = delivery_at(
            ProvisionalPosition(-number),
            ProvisionalId(f"dlv_{number:026d}"),
            endpoint,
            event,
            ordering_key,
            previous,
            at,
            redelivery=redelivery_of is not None,
        )
        project = self._projects.get(event.position)
        if project is None:  # the event was committed before
            project = project_of(event.position)
        self.deliveries.append(_Delivery(delivery, project, skipped, redelivery_of))
        return delivery

    def assign_positions(self, heads: Mapping[int, LogHead]) -> dict[int | str, int | str]:
        """Assign positions and ids to all events and deliveries.

        Returns a mapping from each provisional value to the assigned one.
        """
        real: dict[int | str, int | str] = {}
        for event, project, at, _ in self.events:
            position, event_id = heads[project].events.next(at)
            real[event.position], real[event.id] = position, event_id
            force_setattr(event, "position", position)
            force_setattr(event, "id", event_id)
            body = event.body
            force_setattr(
                event, "body", b"%b%b%b" % (body[:_ID_AT], event_id.encode(), body[_ID_AT + _ID_LENGTH :])
            )
        for delivery, project, _, _ in self.deliveries:
            position, delivery_id = heads[project].deliveries.next(delivery.created_at)
            real[delivery.position], real[delivery.id] = position, delivery_id
            force_setattr(delivery, "position", position)
            force_setattr(delivery, "id", delivery_id)
        return real

    def published(self) -> tuple[StoredEvent, ...]:
        """Return the events to publish; their positions must be assigned."""
        return tuple([each.event for each in self.events if each.published])

    def pending(self) -> tuple[Delivery, ...]:
        """Return the deliveries to make; their positions must be assigned."""
        return tuple([each.delivery for each in self.deliveries if each.skipped is None])

    def event_rows(self) -> list[Sequence[Any]]:
        """Return the rows of the events; their positions must be assigned."""
        return [event_values(each.event, each.at) for each in self.events]

    def delivery_rows(self) -> list[Sequence[Any]]:
        """Return the rows of the deliveries; their positions must be assigned."""
        return [delivery_values(each.delivery, each.skipped, each.redelivery_of) for each in self.deliveries]


def has_provisional(values: Sequence[Any]) -> bool:
    """Return whether a row has a provisional position or id."""
    return not _PROVISIONAL.isdisjoint(map(type, values))


def with_positions(values: Sequence[Any], real: Mapping[int | str, int | str]) -> list[Any]:
    """Return a row with assigned positions and ids in place of provisional ones."""
    return [real[each] if type(each) in _PROVISIONAL else each for each in values]


def delivery_values(delivery: Delivery, skipped: str | None, redelivery_of: int | None) -> tuple[object, ...]:
    """Return the values of INSERT_DELIVERY."""
    return (*delivery_row(delivery, skipped, redelivery_of), day_of(delivery.id))


def event_values(event: StoredEvent, at: int) -> tuple[object, ...]:
    """Return the values of INSERT_EVENT.

    An event that outlives its conversation or contact is stored with their public ids, so that it can be
    found.
    """
    about: tuple[str | None, str | None] = (None, None)
    if event.conversation is None and event.topics:
        subjects = {topic.kind: topic.subject for topic in event.topics}
        about = subjects.get("conversation"), subjects.get("contact")
    return (*event_row(event, at), *about, day_of(event.id))
