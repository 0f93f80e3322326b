"""Shapes of the bodies and queries of tickets (contract 2.4; decisions 7)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from deskwire.engine.core.clock import milliseconds
from deskwire.engine.core.errors import Invalid, Problem
from deskwire.engine.tickets.ports import Order, SortKey
from deskwire.engine.tickets.ticket import Priority, Status
from deskwire.http.api.input.validation import Body, Flag, given_fields, unique
from deskwire.http.api.pagination import Paged
from deskwire.http.resources.bodies import Title

BULK_MAX: Final = 1_000
"""Tickets changed by one call (decisions 7)."""

SNOOZE_MAX_S: Final = 10 * 366 * 86_400
"""How far ahead a ticket may be snoozed."""

NULLABLE: Final = frozenset(
    {
        "description",
        "type",
        "processing_user",
        "processing_team",
        "snoozed_until",
        "conversation_id",
        "contact_id",
    }
)


def _time(text: str) -> str:
    milliseconds(text)
    return text


Description = Annotated[str, Field(max_length=20_000)]
Kind = Annotated[str, Field(min_length=1, max_length=50)]
Id = Annotated[str, Field(min_length=1, max_length=40)]
Time = Annotated[str, Field(max_length=40), AfterValidator(_time)]
Tag = Annotated[str, Field(min_length=1, max_length=50)]
Tags = Annotated[list[Tag], Field(max_length=20), AfterValidator(unique)]


class TicketBody(Body):
    """A new ticket. Linked to a conversation it has that one's contact."""

    title: Title
    description: Description | None = None
    type: Kind | None = None
    status: Status = "OPEN"
    priority: Priority = "MEDIUM"
    processing_user: Id | None = None
    processing_team: Id | None = None
    snoozed_until: Time | None = None
    conversation_id: Id | None = None
    contact_id: Id | None = None
    tags: Annotated[Tags, Field(default_factory=list)]


class TicketPatch(Body):
    """Fields to change; `tags` are replaced. Null clears a field, but for title, status, priority and tags."""

    title: Title | None = None
    description: Description | None = None
    type: Kind | None = None
    status: Status | None = None
    priority: Priority | None = None
    processing_user: Id | None = None
    processing_team: Id | None = None
    snoozed_until: Time | None = None
    conversation_id: Id | None = None
    contact_id: Id | None = None
    tags: Tags | None = None


class Selection(Body):
    """Which tickets: with `limit` only the first of `ids`."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=BULK_MAX), AfterValidator(unique)]
    limit: Annotated[int, Field(ge=1, le=BULK_MAX)] | None = None


class BulkPayload(Body):
    """What to change; at least one field. `duration` snoozes for that many seconds, 0 wakes. Null clears user or team."""

    processing_user: Id | None = None
    processing_team: Id | None = None
    priority: Priority | None = None
    duration: Annotated[float, Field(ge=0, le=SNOOZE_MAX_S, allow_inf_nan=False)] | None = None


class BulkBody(Body):
    """A change of many tickets at once."""

    selection: Selection
    payload: BulkPayload


class TicketList(Paged):
    """Which tickets to list, and in which order.

    `assignee` is the id of a user or team, or `none`. `contact` is a con_ id or the backend's user id. `q` has
    words, or beginnings of words, of title and description.
    """

    parts = 3

    status: Status | None = None
    priority: Priority | None = None
    assignee: Id | None = None
    tag: Tag | None = None
    type: Kind | None = None
    snoozed: Flag | None = None
    contact: Annotated[str, Field(min_length=1, max_length=255)] | None = None
    conversation: Id | None = None
    q: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    sort: SortKey = "createdAt"
    order: Order = "desc"


def new_values(body: TicketBody, now: int) -> dict[str, Any]:
    """The fields of a new ticket. Raises Invalid for a snooze that is not ahead."""
    every = {name: getattr(body, name) for name in TicketBody.model_fields}
    return _values({name: value for name, value in every.items() if value is not None}, now)


def patch_values(body: TicketPatch, now: int) -> dict[str, Any]:
    """The fields of a PATCH. Raises Invalid for a null that clears nothing, and for no field at all."""
    return _values(given_fields(body, NULLABLE), now)


def bulk_values(body: BulkPayload, now: int) -> dict[str, Any]:
    """The fields of a bulk change. Raises Invalid as `patch_values`."""
    values = given_fields(body, frozenset({"processing_user", "processing_team"}), "/payload")
    if "duration" in values:
        duration_s = values.pop("duration")
        values["snoozed_until"] = now + round(duration_s * 1000) if duration_s else None
    return values


def _values(given: dict[str, Any], now: int) -> dict[str, Any]:
    if given.get("tags") is not None:
        given["tags"] = tuple(given["tags"])
    until = given.get("snoozed_until")
    if until is not None:
        given["snoozed_until"] = ahead(until, now)
    return given


def ahead(time: str | None, now: int) -> int | None:
    """Until when a ticket is snoozed, in milliseconds. Raises Invalid for what is not ahead."""
    if time is None:
        return None
    until = milliseconds(time)
    if until <= now:
        raise Invalid(
            Problem("/snoozedUntil", "not_ahead", "A ticket is snoozed until a time that is still ahead.")
        )
    if until > now + SNOOZE_MAX_S * 1000:
        raise Invalid(Problem("/snoozedUntil", "too_large", "A ticket is snoozed for ten years at most."))
    return until
