"""The signed-in agent's own data: the inbox counters, and the read position in each conversation."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from deskwire.engine.agents.presence import ephemeral_event
from deskwire.engine.conversations.conversation import Conversation, no_such_conversation
from deskwire.engine.conversations.inbox import InboxReader, counters, own_state
from deskwire.engine.conversations.listing import SeenMessages
from deskwire.engine.conversations.ports import ConversationReader, ConversationTransaction
from deskwire.engine.core.clock import iso_or_none, milliseconds
from deskwire.engine.core.errors import Invalid, Problem
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, Tag, dashboard, personal
from deskwire.http.resources.conversations.context import context_of
from deskwire.http.resources.conversations.operations import conversation_id, find
from deskwire.http.resources.fields import Time
from deskwire.http.schemas import inbox as shapes

routes = Routes(
    Tag(
        "Inbox",
        "See the number of waiting conversations, keep your read position in each, and fetch a conversation's context in one call.",
    ),
    personal(dashboard("conversations.read")),
    unrecorded="The read position is private to the agent.",
)


class PutSeenRequest(Body):
    """The index of the last message that you have seen; -1 for none, which marks all as unread."""

    index: Annotated[int, Field(ge=-1, lt=1 << 31)]


_SKEW_MS: Final = 5_000  # maximum clock difference to the node that wrote an event


class PutAllSeenRequest(Body):
    """The time up to which everything counts as seen; default now. null removes the mark."""

    until: Time | None = None


@routes.add("GET", "/inbox/counters", operation_id="getInboxCounters", answer=shapes.InboxCounters)
async def get_counters(call: Call[Body, Query]) -> Answer:
    """Count the conversations of your inbox, up to 1,000 of each kind."""

    def read(reader: InboxReader) -> dict[str, Any]:
        return counters(reader, call.project, call.user)

    return await call.services.store.read(read)


async def _check_index(call: Call[PutSeenRequest, Query]) -> None:
    await _seen(call)


async def _seen(call: Call[PutSeenRequest, Query]) -> tuple[Conversation, SeenMessages]:
    """Return the conversation and its seen part up to the index. Raises Invalid for an index without a message."""
    identifier, index = conversation_id(call), call.body.index

    def read(reader: ConversationReader) -> tuple[Conversation, SeenMessages]:
        state, _ = find(reader, call.project, identifier)
        if index is None or index >= state.messages:
            message = f"The newest message has index {state.messages - 1}."
            raise Invalid(Problem("/index", "too_large", message))
        unseen = reader.unseen_after(state.rowid, index)
        return state, SeenMessages(index, state.contact_messages - unseen)

    return await call.services.store.read(read)


@routes.add(
    "PUT",
    "/conversations/<conversation_id>/seen",
    operation_id="putSeen",
    body=PutSeenRequest,
    answer=shapes.SeenMark,
    further=(_check_index,),
)
async def put_seen(call: Call[PutSeenRequest, Query]) -> Answer:
    """Record the last message that you have seen in a conversation. A smaller index marks later messages as unread."""
    state, seen = await _seen(call)
    at, user = call.services.clock(), call.user.rowid

    def put(tx: ConversationTransaction) -> dict[str, Any]:
        if not tx.put_seen(user, state.rowid, seen, at):
            raise no_such_conversation()
        return own_state(tx, call.project, user, state)

    mine = await call.services.store.write(put)
    event = ephemeral_event("me.seen", {"conversationId": state.id, "index": seen.index, "mine": mine})
    call.services.agents.broadcast(call.project.rowid, event, to_user=user)
    return {"mine": mine}


@routes.add(
    "PUT",
    "/inbox/seen",
    operation_id="putAllSeen",
    body=PutAllSeenRequest,
    answer=shapes.AllSeenMarks,
)
async def put_all_seen(call: Call[PutAllSeenRequest, Query]) -> Answer:
    """Mark every conversation of the project as read, for yourself, up to a time; default now.

    It takes constant time for any number of conversations. Messages written or imported later are unread. To undo
    it, put the `before` of its response: your position in each conversation is kept.
    """
    now, user, project = call.services.clock(), call.user.rowid, call.project.rowid
    until = _until(call.body, now)

    def put(tx: ConversationTransaction) -> int | None:
        before = tx.seen_mark(user, project)
        tx.put_seen_mark(user, project, until)
        return before

    answer = {
        "until": iso_or_none(until),
        "before": iso_or_none(await call.services.store.write(put)),
    }
    call.services.agents.broadcast(project, ephemeral_event("me.all_seen", answer), to_user=user)
    return answer


def _until(body: PutAllSeenRequest, now: int) -> int | None:
    """Return the time (ms) of a body, which must be in the past. Raises Invalid."""
    if "until" not in body.model_fields_set:
        return now
    if body.until is None:
        return None
    until = milliseconds(body.until)
    if until > now + _SKEW_MS:
        raise Invalid(Problem("/until", "in_the_future", "The time must not be in the future."))
    return until


@routes.add(
    "GET",
    "/conversations/<conversation_id>/context",
    operation_id="getConversationContext",
    answer=shapes.ConversationContext,
)
async def get_context(call: Call[Body, Query]) -> Answer:
    """Fetch the context of a conversation from one snapshot. Parts that your role may not read are null."""
    return await context_of(call)
