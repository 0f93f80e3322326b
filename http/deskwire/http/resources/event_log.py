"""The stored events of a project for people: newest first, and single ones by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from deskwire.engine.core.errors import NotFound, Problem
from deskwire.engine.core.ids import is_id
from deskwire.engine.events.ports import EventReader
from deskwire.engine.events.types import NAMEABLE, STORED, StoredEvent, permissions_to_read
from deskwire.http.api.calls import Answer, Call, RawJson
from deskwire.http.api.input.validation import Body, Query, bad_query
from deskwire.http.api.pagination import Paged, encode_cursor
from deskwire.http.api.routing import Routes, dashboard
from deskwire.http.resources import events
from deskwire.http.resources.conversations.operations import raw_list
from deskwire.http.schemas.base import page_of
from deskwire.http.schemas.extensions import AnyEvent

routes = Routes(events.routes.tag, dashboard("conversations.read"))

_TYPES: Final = STORED | NAMEABLE
_NAME: Final = "|".join(sorted(_TYPES)).replace(".", "[.]")
_CHOSEN: Final[dict[str, Any]] = {
    "description": "Event types, separated by commas; default: all types that you may read.",
    "pattern": f"^({_NAME})(,({_NAME}))*$",
    "examples": ["message.created,conversation.closed"],
}


class EventLogQuery(Paged):
    """The types and the conversation of the events to list, and the page."""

    types: Annotated[str | None, Field(json_schema_extra=_CHOSEN)] = None
    conversation: str | None = None

    @classmethod
    def further(cls, given: Mapping[str, str]) -> None:
        """Check the types and the cursor. Raises BadRequest."""
        problems = [
            Problem("?types", "unknown_event_type", f"There is no stored event type {name!r}.")
            for name in (given["types"].split(",") if "types" in given else ())
            if name not in _TYPES
        ]
        if problems:
            raise bad_query(*problems)
        super().further(given)


@routes.add("GET", "/events", operation_id="listRecentEvents", query=EventLogQuery, answer=page_of(AnyEvent))
async def list_recent_events(call: Call[Body, EventLogQuery]) -> Answer:
    """List the stored events of a project, newest first, as sent to consumers.

    The default `types` are all that your role may read, including types beyond the contract. To follow new events,
    open the agents' stream.
    """
    query = call.query
    query.further(query.model_dump(exclude_none=True))
    named = frozenset(query.types.split(",")) if query.types else None
    types = named or frozenset(each for each in _TYPES if _may_read(call, each))
    for permission in permissions_to_read(types):
        call.access.require(permission)
    before = query.row

    def listed(reader: EventReader) -> list[StoredEvent]:
        return [*reader.newest_events(call.project.rowid, before, query.rows, types, query.conversation)]

    found = await call.services.store.read(listed)
    shown = found[: query.limit]
    more = len(found) > query.limit
    return raw_list([each.body for each in shown], encode_cursor(shown[-1].position) if more else None)


@routes.add("GET", "/events/<event_id>", operation_id="getEvent", answer=AnyEvent)
async def get_event(call: Call[Body, Query]) -> Answer:
    """Fetch a stored event, as sent to consumers."""
    event_id, project = call.path["event_id"], call.project.rowid
    found = (
        await call.services.store.read(lambda reader: reader.event(project, event_id))
        if is_id(event_id, "evt")
        else None
    )
    if found is None or found.type not in _TYPES:
        raise NotFound("There is no such event, or it is no longer stored.", code="event_not_found")
    for permission in permissions_to_read([found.type]):
        call.access.require(permission)
    return RawJson(found.body)


def _may_read(call: Call[Any, Any], event_type: str) -> bool:
    return call.access.permissions.issuperset(permissions_to_read([event_type]))
