"""The bodies and queries of tickets, and the values that they hold (contract 2.4; decisions 7)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.clock import milliseconds
from deskwire.engine.core.errors import Invalid, Problem
from deskwire.engine.core.values import SortOrder
from deskwire.engine.tickets.ports import SortKey
from deskwire.engine.tickets.ticket import Priority, Status
from deskwire.http.api.input.validation import NOT_BLANK, Body, Flag, given_fields, unique
from deskwire.http.api.pagination import Paged
from deskwire.http.resources.fields import Time, Title

BULK_MAX: Final = 1_000
"""Tickets that one call may change (decisions 7)."""

SNOOZE_MAX_S: Final = 10 * 366 * 86_400
"""The seconds that a ticket may be snoozed for."""

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


Description = Annotated[str, Field(max_length=20_000)]
Kind = Annotated[str, Field(min_length=1, max_length=50), NOT_BLANK]
Id = Annotated[str, Field(min_length=1, max_length=40)]
Tag = Annotated[str, Field(min_length=1, max_length=50), NOT_BLANK]


def _distinct(tags: list[str]) -> list[str]:
    """Return the list itself, if no two of its tags are the same (`tags.tag_key`)."""
    first: dict[str, str] = {}
    for tag in unique(tags):
        other = first.setdefault(tag_key(tag), tag)
        if other != tag:
            raise PydanticCustomError(
                "duplicate",
                "{tag} and {other} are the same tag: case, accents and signs without width don't count.",
                {"tag": tag, "other": other},
            )
    return tags


Tags = Annotated[list[Tag], Field(max_length=20), AfterValidator(_distinct)]


class CreateTicketRequest(Body):
    """The new ticket. A ticket that is linked to a conversation takes over its contact."""

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


class ChangeTicketRequest(Body):
    """The fields to change. `tags` replaces all tags. Null clears a field, except title, status, priority and tags."""

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


class TicketSelection(Body):
    """The tickets to change. With `limit`, only the first of `ids`."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=BULK_MAX), AfterValidator(unique)]
    limit: Annotated[int, Field(ge=1, le=BULK_MAX)] | None = None


class TicketChanges(Body):
    """The changes, at least one. `duration` snoozes for that many seconds, 0 ends a snooze. Null clears user or team."""

    processing_user: Id | None = None
    processing_team: Id | None = None
    priority: Priority | None = None
    duration: Annotated[float, Field(ge=0, le=SNOOZE_MAX_S, allow_inf_nan=False)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _changes_something(cls, value: Any) -> Any:
        if value == {}:
            raise PydanticCustomError("missing", "Give at least one field to change.")
        return value


class ChangeTicketsRequest(Body):
    """A change of many tickets at once."""

    selection: TicketSelection
    payload: TicketChanges


class TicketList(Paged):
    """The filters and order of a list of tickets, and its page.

    `assignee` is the id of a user or team, or `none`. `contact` is a con_ id or the backend's user id. `q` has
    words, or beginnings of words, of the title and description.
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
    order: SortOrder = "desc"


def new_values(body: CreateTicketRequest, now: int) -> dict[str, Any]:
    """Return the fields of a new ticket. Raises Invalid for a snooze that does not end in the future."""
    every = {name: getattr(body, name) for name in CreateTicketRequest.model_fields}
    return _values({name: value for name, value in every.items() if value is not None}, now)


def patch_values(body: ChangeTicketRequest, now: int) -> dict[str, Any]:
    """Return the fields of a PATCH. Raises Invalid for a null in a field that can't be null, and for no field at all."""
    return _values(given_fields(body, NULLABLE), now)


def bulk_values(body: TicketChanges, now: int) -> dict[str, Any]:
    """Return the fields of a bulk change. Raises Invalid as `patch_values` does."""
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
    """Return the end of a snooze in milliseconds. Raises Invalid if it is not in the future, or too far."""
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
