"""New conversations with messages of another one: a split."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from deskwire.engine.conversations.split_decisions import MESSAGES_MAX
from deskwire.engine.core.ids import new_id
from deskwire.engine.merging.splits import ConversationSplits, SplitRequest
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, unique
from deskwire.http.api.routing import MEDIUM, Routes, dashboard
from deskwire.http.resources.conversations import operations
from deskwire.http.resources.conversations.dashboard import FOR_AGENTS
from deskwire.http.resources.fields import Title
from deskwire.http.schemas import conversations as shapes

routes = Routes(FOR_AGENTS, dashboard("conversations.manage"))
_REFUSALS: Final = ("conversation_hidden", "conversation_merged", "message_split", "split_limit_reached")


class SplitConversationRequest(Body):
    """The messages that the new conversation shows, and its title."""

    message_ids: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=40)]],
        Field(min_length=1, max_length=MESSAGES_MAX),
        AfterValidator(unique),
    ]
    title: Title | None = None


@routes.add(
    "POST",
    "/conversations/<conversation_id>/split",
    operation_id="splitConversation",
    body=SplitConversationRequest,
    limit=MEDIUM,
    answer=shapes.Conversation,
    errors=_REFUSALS,
    records=("conversation.split",),
    idempotent=True,
)
async def split(call: Call[SplitConversationRequest, Query]) -> Answer:
    """Start a new conversation of the same contact with messages of this one, and return it. Both show these messages.

    No message moves: each keeps its id, index and conversation. The new conversation takes over the assignee, the tags and the
    channel. To undo it, merge the new conversation into this one.
    """
    identifier, body, services = operations.conversation_id(call), call.body, call.services
    started = SplitRequest(new_id("cnv", services.clock()), tuple(body.message_ids), body.title)
    by = operations.actor_of(call)
    splits = ConversationSplits(
        services.store, services.actors, services.clock, call.project, by, call.origin
    )
    kept = call.keeping(operations.shown, started.conversation_id)
    return operations.shown(await splits.split(identifier, started, kept))
