"""The event feed of a project: every stored event in commit order, with long polling (decisions 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import trio
from pydantic import Field

from deskwire.engine.core.errors import Gone, NotFound, Problem
from deskwire.engine.core.ids import is_id
from deskwire.engine.events.log import NO_EVENT_ID, Chunk
from deskwire.engine.events.ports import EventReader
from deskwire.engine.events.types import NAMEABLE, STORED, NamedTypesSource, permissions_to_read
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, bad_query
from deskwire.http.api.routing import Routes, Tag, s2s
from deskwire.http.resources.conversations.operations import raw_list
from deskwire.http.schemas.base import page_of
from deskwire.http.schemas.extensions import AnyEvent

routes = Routes(
    Tag("Events", "Read the stored events of a project in commit order, with long polling."),
    s2s("conversations.read"),
)
_EVENT_ID: Final[dict[str, Any]] = {"pattern": "^evt_[0-7][0-9A-HJKMNP-TV-Z]{25}$"}
_NAME: Final = "|".join(sorted(STORED | NAMEABLE)).replace(".", "[.]")
_TYPES: Final[dict[str, Any]] = {
    "description": "Event types, separated by commas. Extensions are listed only if named here.",
    "pattern": f"^({_NAME})(,({_NAME}))*$",
    "examples": ["message.created,conversation.closed"],
}


class FeedQuery(Query):
    """The range of events to list, and the seconds to wait for the first one."""

    after: str | None = Field(None, json_schema_extra=_EVENT_ID)
    cursor: str | None = Field(None, json_schema_extra=_EVENT_ID)
    types: str | None = Field(None, json_schema_extra=_TYPES)
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    wait: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] = 0

    @classmethod
    def further(cls, given: Mapping[str, str]) -> None:
        """Check the event ids and types. Raises BadRequest."""
        problems = [
            Problem("?types", "unknown_event_type", f"There is no stored event type {name!r}.")
            for name in _names(given.get("types"))
            if name not in STORED and name not in NAMEABLE
        ]
        for name in ("cursor", "after"):
            if name in given and not is_id(given[name], "evt"):
                problems.append(Problem(f"?{name}", "bad_event_id", "An event id is evt_ and 26 characters."))
        if problems:
            raise bad_query(*problems)


@routes.add(
    "GET",
    "/s2s/events",
    operation_id="listEvents",
    query=FeedQuery,
    answer=page_of(AnyEvent),
    errors=("event_not_found", "window_passed"),
)
async def list_events(call: Call[Body, FeedQuery]) -> Answer:
    """List the events of a project after a given event, oldest first.

    Extensions are listed if `types` names them; a machine credential needs the permission to read their objects.

    If more events are stored, `nextCursor` is the id of the last one listed, for `cursor` or `after`. If it is null,
    call again with `wait`, after your last event.
    """
    query = call.query
    query.further(query.model_dump(exclude_none=True))
    types = frozenset(_names(query.types))
    for permission in permissions_to_read(types):
        call.access.require(permission)
    after = await call.services.store.read(
        lambda reader: _position(reader, call.project.rowid, query.cursor or query.after)
    )
    chunk = await _read(call, after, types)
    bodies = [event.body for event in chunk.events[: query.limit]]
    more = len(chunk.events) > query.limit
    return raw_list(bodies, chunk.events[query.limit - 1].id if more else None)


async def _read(call: Call[Body, FeedQuery], after: int, types: frozenset[str]) -> Chunk:
    log, project, limit = call.services.log, call.project.rowid, call.query.limit + 1
    source = project if types <= STORED else NamedTypesSource(project)
    chunk = await log.read(source, after, limit, types)
    if chunk.events or not call.query.wait:
        return chunk
    with trio.move_on_after(call.query.wait):
        async with log.waiting(source):
            while not chunk.events:
                with call.services.admission.waiting(project):
                    await log.wait(source, chunk.upto)
                chunk = await log.read_after_wait(source, chunk.upto, limit, types)
    if call.access.machine is not None:  # the credential may have ended during the wait
        needed = {"conversations.read", *permissions_to_read(types)}
        await call.services.machines.check(call.access.authorizes_as, needed, call.services.clock())
    return chunk


def _names(listed: str | None) -> list[str]:
    return [name.strip() for name in listed.split(",")] if listed else []


def _position(reader: EventReader, project: int, event_id: str | None) -> int:
    """Return the position to read from. Raises NotFound or Gone if the event has none."""
    if event_id is None:
        return 0
    pruned, newest = reader.event_window(project)
    if event_id > (newest or NO_EVENT_ID):
        raise NotFound("There is no such event yet.", code="event_not_found")
    if pruned is not None and event_id < pruned:
        raise Gone("Events after that one are no longer stored; fetch the conversations again.")
    return reader.event_position(project, event_id)
