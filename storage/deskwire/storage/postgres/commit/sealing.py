"""Events and deliveries that wait for their places: those are given under their projects' heads, last of all.

Until then an event has stand-ins for its position and its id, and so has each row that names it. `seal` puts the real
ones into the very objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

from msgspec.structs import force_setattr

from deskwire.engine.accounts.people import Project
from deskwire.engine.events.types import Draft, StoredEvent, stored_event
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.storage.postgres.commit.heads import Head, project_of
from deskwire.storage.postgres.transaction import row_of_day, row_with_subjects
from deskwire.storage.tables.webhooks.deliveries import delivery_at

_ID_LENGTH: Final = 30
_ID_AT: Final = len(b'{"id":"')
_numbers: Final = count(1)


class StandInPosition(int):
    """Stands for a position that is not given yet; negative, and no other is like it."""

    __slots__ = ()


class StandInId(str):
    """Stands for an id that is not given yet; as long as one."""

    __slots__ = ()


_STAND_INS: Final = frozenset({StandInPosition, StandInId})


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


class Unsealed:
    """The events and deliveries of one batch, in order."""

    def __init__(self) -> None:
        self.events: Final[list[_Event]] = []
        self.deliveries: Final[list[_Delivery]] = []
        self._projects: dict[int, int] = {}

    @property
    def projects(self) -> list[int]:
        """The projects whose heads are needed, in the order in which they are locked."""
        return sorted({each.project for each in self.events} | {each.project for each in self.deliveries})

    def append(
        self,
        project: Project,
        draft: Draft,
        conversation: int | None,
        at: int,
        *,
        directed: bool,
        ticket: int | None,
    ) -> StoredEvent:
        """Add an event, and return it with its stand-ins."""
        number = next(_numbers)
        position, event_id = StandInPosition(-number), StandInId(f"evt_{number:026d}")
        event = stored_event(
            position, event_id, project, draft, conversation, at, directed=directed, ticket=ticket
        )
        self.events.append(_Event(event, project.rowid, at, not directed))
        self._projects[position] = project.rowid
        return event

    def deliver(
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
        """Add a delivery, and return it with its stand-ins."""
        number = next(_numbers)
        delivery = delivery_at(
            StandInPosition(-number),
            StandInId(f"dlv_{number:026d}"),
            endpoint,
            event,
            ordering_key,
            previous,
            at,
            redelivery=redelivery_of is not None,
        )
        project = self._projects.get(event.position)
        if project is None:  # an event of an earlier commit
            project = project_of(event.position)
        self.deliveries.append(_Delivery(delivery, project, skipped, redelivery_of))
        return delivery

    def seal(self, heads: Mapping[int, Head]) -> dict[int | str, int | str]:
        """Give everything its place and id; return these by the stand-ins."""
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
        """Return the events that are made known, once they are sealed."""
        return tuple([each.event for each in self.events if each.published])

    def pending(self) -> tuple[Delivery, ...]:
        """Return the deliveries that are to be made, once they are sealed."""
        return tuple([each.delivery for each in self.deliveries if each.skipped is None])

    def event_rows(self) -> list[Sequence[Any]]:
        """Return the rows of the events, once they are sealed."""
        return [row_with_subjects(each.event, each.at) for each in self.events]

    def delivery_rows(self) -> list[Sequence[Any]]:
        """Return the rows of the deliveries, once they are sealed."""
        return [row_of_day(each.delivery, each.skipped, each.redelivery_of) for each in self.deliveries]


def waits(values: Sequence[Any]) -> bool:
    """Tell whether a row has a stand-in."""
    return not _STAND_INS.isdisjoint(map(type, values))


def sealed(values: Sequence[Any], real: Mapping[int | str, int | str]) -> list[Any]:
    """Return a row with the real ones in place of its stand-ins."""
    return [real[each] if type(each) in _STAND_INS else each for each in values]
