"""The project feed: every stored event in commit order, with long polling (decisions 4)."""

from __future__ import annotations

from typing import Annotated, Any, Final

import trio
from pydantic import Field

from deskwire.engine.errors import BadRequest, Gone, NotFound, Problem
from deskwire.engine.events import STORED
from deskwire.engine.ids import is_id
from deskwire.engine.log import Chunk
from deskwire.engine.ports import Reader
from deskwire.http.conversations import raw_list
from deskwire.http.routing import S2S, Answer, Call, Routes
from deskwire.http.shapes.base import page_of
from deskwire.http.shapes.events import Event
from deskwire.http.validation import Body, Query

routes = Routes(S2S)
_EVENT_ID: Final[dict[str, Any]] = {"pattern": "^evt_[0-7][0-9A-HJKMNP-TV-Z]{25}$"}
_NAME: Final = "|".join(sorted(STORED)).replace(".", "[.]")
_TYPES: Final[dict[str, Any]] = {
    "description": "Event types, separated by commas.",
    "pattern": f"^({_NAME})(,({_NAME}))*$",
    "examples": ["message.created,conversation.closed"],
}


class Feed(Query):
    """Which events to list, and how long to wait for the first of them."""

    after: str | None = Field(None, json_schema_extra=_EVENT_ID)
    cursor: str | None = Field(None, json_schema_extra=_EVENT_ID)
    types: str | None = Field(None, json_schema_extra=_TYPES)
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    wait: Annotated[float, Field(ge=0, le=30, allow_inf_nan=False)] = 0


@routes.add(
    "GET", "/s2s/events", query=Feed, answer=page_of(Event), errors=("event_not_found", "window_passed")
)
async def list_events(call: Call[Body, Feed]) -> Answer:
    """List the project's events behind one that is known, oldest first.

    `nextCursor` is the last event's id if more are there already, for `cursor` or `after`; with none, ask again
    with `wait` after the last event you have.
    """
    query = call.query
    types = _types(query.types)
    after = await call.services.store.read(lambda reader: _position(reader, query.cursor or query.after))
    chunk = await _read(call, after, types)
    bodies = [event.body for event in chunk.events[: query.limit]]
    more = len(chunk.events) > query.limit
    return raw_list(bodies, chunk.events[query.limit - 1].id if more else None)


async def _read(call: Call[Body, Feed], after: int, types: frozenset[str]) -> Chunk:
    log, project, limit = call.services.log, call.project.rowid, call.query.limit + 1
    chunk = await log.read(project, after, limit, types)
    if chunk.events or not call.query.wait:
        return chunk
    with trio.move_on_after(call.query.wait):
        while not chunk.events:
            with call.services.load.waiting():
                await log.wait(project, chunk.upto)
            chunk = await log.read(project, chunk.upto, limit, types)
    return chunk


def _types(listed: str | None) -> frozenset[str]:
    names = [name.strip() for name in listed.split(",")] if listed else []
    unknown = [name for name in names if name not in STORED]
    if unknown:
        problems = tuple(
            Problem("?types", "unknown_event_type", f"There is no stored event type {name!r}.")
            for name in unknown
        )
        raise BadRequest(f"Unknown event types: {', '.join(unknown)}.", code="bad_query", problems=problems)
    return frozenset(names)


def _position(reader: Reader, event_id: str | None) -> int:
    """The position to read from. Raises BadRequest, NotFound or Gone for an id that gives none."""
    if event_id is None:
        return 0
    if not is_id(event_id, "evt"):
        problem = Problem("?after", "bad_event_id", "An event id is evt_ and 26 characters.")
        raise BadRequest("Query parameters are not right: after.", code="bad_query", problems=(problem,))
    pruned, newest = reader.event_window()
    if newest is None or event_id > newest:
        raise NotFound("There is no such event yet.", code="event_not_found")
    if pruned is not None and event_id < pruned:
        raise Gone("Events behind that one are no longer stored; fetch the conversations anew.")
    return reader.event_position(event_id)
