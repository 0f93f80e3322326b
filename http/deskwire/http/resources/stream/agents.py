"""The agents' stream of server-sent events, and the view that a page reports (ADR 51)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

import jwt
from pydantic import Field

from deskwire.engine.accounts.proofs import vouched
from deskwire.engine.agents.presence import VIEWED_MAX, View
from deskwire.engine.agents.rights import PERMISSION, Viewer
from deskwire.engine.core.errors import Problem
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.customers.presence import ContactKey
from deskwire.engine.ports import Reader
from deskwire.http.api.calls import NO_CONTENT, Answer, Call, Streamed
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import NOTHING, Media, Routes, Tag, dashboard, personal
from deskwire.http.resources.stream.resuming import NOT_BUFFERED, AfterQuery, resumed_after
from deskwire.http.schemas.base import ConversationId
from deskwire.http.stream.sse import EVENT_STREAM, AgentStreamBody, preferred_heartbeat

routes = Routes(
    Tag("Agents' stream", "Follow the events for agents, as server-sent events."),
    personal(dashboard(PERMISSION)),
    unrecorded="It changes no stored data.",
)


class StreamQuery(AfterQuery):
    """The event after which to continue, and the project if no header names it."""

    project: str | None = Field(None, json_schema_extra={"pattern": "^prj_[0-7][0-9A-HJKMNP-TV-Z]{25}$"})

    @classmethod
    def problems(cls, given: Mapping[str, str]) -> list[Problem]:
        """See `AfterQuery.problems`."""
        wrong = "project" in given and not is_id(given["project"], "prj")
        problem = Problem("?project", "bad_project_id", "A project id is prj_ and 26 characters.")
        return [*([problem] if wrong else ()), *super().problems(given)]


class ShowViewRequest(Body):
    """The conversations that a page shows, and the one in which its agent is writing."""

    conversation_ids: Annotated[list[ConversationId], Field(max_length=VIEWED_MAX)]
    composing: ConversationId | None = None


@routes.add(
    "GET",
    "/stream",
    personal(replace(dashboard(PERMISSION), by_parameter=True)),
    operation_id="followStream",
    query=StreamQuery,
    whole=False,
    answer=Media(EVENT_STREAM, endless=True),
    errors=("too_many_streams",),
    held=True,
)
async def follow_stream(call: Call[Body, StreamQuery]) -> Answer:
    """Follow the events of a project, as server-sent events, from now on or after a given event.

    Every stored event is sent once, in commit order, including those for agents only. Its `id` is for `after`, or the header
    `Last-Event-ID`, which overrides it. The first event is `hello`; with `gap` in it, missed events are no longer
    stored, so fetch everything again. Ephemeral events such as typing and presence come as `passing`, and the last event is `bye`.
    A stream without events sends a comment every 15 seconds, or as often as the header `Prefer: heartbeat=1` requests
    for (1 to 15); `heartbeatS` in `hello` names the interval.
    """
    streams, viewer = call.services.agents, _viewer(call)
    after = resumed_after(call)
    streams.check_room(viewer)
    call.incoming.detect_dead_peer()
    opening = partial(streams.open, viewer, after, call.incoming.drop)
    heartbeat_s = preferred_heartbeat(call.incoming.headers.get("prefer"))
    pieces = AgentStreamBody(streams, opening, partial(_good_for, call), heartbeat_s)
    return Streamed(pieces, EVENT_STREAM, NOT_BUFFERED)


@routes.add(
    "PUT",
    "/stream/<stream_id>/view",
    operation_id="showView",
    body=ShowViewRequest,
    limit=16 * 1024,
    answer=NOTHING,
    errors=("stream_not_found",),
)
async def show_view(call: Call[ShowViewRequest, Query]) -> Answer:
    """Report to other agents the conversations that a page shows, and the one in which its agent is writing.

    The stream gets the presence of the conversations' contacts, now and after each change. The report ends with the stream.
    """
    body, stream_id, project = call.body, call.path["stream_id"], call.project.rowid
    view = View(tuple(dict.fromkeys(body.conversation_ids)), body.composing)
    added = call.services.agents.view(stream_id, call.user.rowid, project, view)
    if added:
        call.services.customer_streams.presence.show(stream_id, await _contacts(call, added))
    return NO_CONTENT


async def _contacts(
    call: Call[ShowViewRequest, Query], conversations: Sequence[str]
) -> dict[str, ContactKey]:
    """Return the contacts of these conversations, of those that exist."""
    project = call.project.rowid

    def read(reader: Reader) -> dict[str, ContactKey]:
        found = ((each, reader.conversation(project, each)) for each in conversations)
        return {each: ContactKey(project, known[1].id) for each, known in found if known is not None}

    return await call.services.store.read(InlineQuery(read))


def _viewer(call: Call[Body, StreamQuery]) -> Viewer:
    user = call.user
    return Viewer(
        user.rowid,
        user.id,
        user.name,
        user.generation,
        call.project,
        call.access.known_by,
        vouched(call.access.session),
    )


async def _good_for(call: Call[Body, StreamQuery]) -> float:
    """Return the seconds for which the caller's credential remains valid; 0 if it has expired."""
    now = call.services.clock()
    if call.access.session is not None:
        return await call.services.sessions.good_for(call.incoming, now) / 1000
    _, _, token = (call.incoming.headers.get("authorization") or "").partition(" ")
    claims = jwt.decode(token.strip(), options={"verify_signature": False})  # already verified for this call
    expires: float = claims["exp"]
    return max(0.0, expires - now / 1000)
