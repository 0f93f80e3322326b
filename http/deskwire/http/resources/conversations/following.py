"""Followers of a conversation, and the mentions that the signed-in agent has seen."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from deskwire.engine.agents.presence import ephemeral_event
from deskwire.engine.conversations.commands import Follow
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.inbox import own_state
from deskwire.engine.conversations.ports import ConversationReader, ConversationTransaction
from deskwire.engine.core.store import InlineJob, InlineQuery
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, Tag, dashboard, personal
from deskwire.http.resources.conversations.operations import ask, conversation_id, find, place_of
from deskwire.http.schemas import inbox as shapes

routes = Routes(
    Tag(
        "Mentions and followers",
        "Follow conversations, and see the notes that mention you. Notes mention with `mentions`.",
    ),
    personal(dashboard("conversations.read")),
    unrecorded="Events show followers; which mentions an agent has seen is private to the agent.",
)
_FOLLOW = "/conversations/<conversation_id>/follow"


@routes.add(
    "PUT",
    _FOLLOW,
    operation_id="followConversation",
    answer=shapes.Followers,
    errors=("conversation_merged",),
)
async def follow_conversation(call: Call[Body, Query]) -> Answer:
    """Follow a conversation. You also follow one once a note mentions you, or once a note of yours mentions a colleague."""
    return await _change(call, follows=True)


@routes.add(
    "DELETE",
    _FOLLOW,
    operation_id="unfollowConversation",
    answer=shapes.Followers,
    errors=("conversation_merged",),
)
async def unfollow_conversation(call: Call[Body, Query]) -> Answer:
    """Stop following a conversation. Mentions of you stay, and a later one makes you follow it again."""
    return await _change(call, follows=False)


async def _change(call: Call[Body, Query], *, follows: bool) -> Answer:
    receipt = await ask(call, Follow(call.user.rowid, follows))
    key = receipt.after.rowid
    found = await call.services.store.read(InlineQuery(lambda reader: reader.followers([key])))
    followers = found.get(key, ())
    return {"following": call.user.id in followers, "followers": [*followers]}


class PutSeenMentionsRequest(Body):
    """The id of the newest message or note of the conversation that you have seen."""

    message_id: Annotated[str, Field(min_length=1, max_length=40)]


async def _check_message(call: Call[PutSeenMentionsRequest, Query]) -> None:
    if call.body.message_id is not None:
        await call.services.store.read(InlineQuery(lambda reader: _place(reader, call)))


def _place(reader: ConversationReader, call: Call[PutSeenMentionsRequest, Any]) -> tuple[Conversation, int]:
    """Return the conversation, and the place of the message. Raises NotFound."""
    state, _ = find(reader, call.project, conversation_id(call))
    return state, place_of(reader, state, call.body.message_id, internal=True)


@routes.add(
    "PUT",
    "/conversations/<conversation_id>/mentions/seen",
    operation_id="putSeenMentions",
    body=PutSeenMentionsRequest,
    answer=shapes.SeenMark,
    errors=("message_not_found",),
    further=(_check_message,),
)
async def put_seen_mentions(call: Call[PutSeenMentionsRequest, Query]) -> Answer:
    """Record that you have seen the notes that mention you, up to a message. Later mentions stay unseen."""
    at, user, project = call.services.clock(), call.user, call.project

    def see(tx: ConversationTransaction) -> tuple[Conversation, dict[str, Any]]:
        state, upto = _place(tx, call)
        tx.see_mentions(user.rowid, project.rowid, state.rowid, upto, at)
        return state, own_state(tx, project, user.rowid, state)

    state, mine = await call.services.store.write(InlineJob(see))
    data = {"conversationId": state.id, "index": mine["seenIndex"], "mine": mine}
    call.services.agents.broadcast(project.rowid, ephemeral_event("me.seen", data), to_user=user.rowid)
    return {"mine": mine}
