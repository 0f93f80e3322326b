"""Merges of two conversations of a contact, and their undo."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from deskwire.engine.core.ids import is_id
from deskwire.engine.merging.conversations import ConversationMerges, unknown_target
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, dashboard
from deskwire.http.resources.conversations import operations
from deskwire.http.resources.conversations.dashboard import FOR_AGENTS
from deskwire.http.schemas import conversations as shapes

routes = Routes(FOR_AGENTS, dashboard("conversations.manage"))
_ONE: Final = "/conversations/<conversation_id>"
_REFUSALS: Final = (
    "conversation_has_merged",
    "conversation_hidden",
    "conversation_linked",
    "conversation_merged",
    "different_contacts",
    "merge_limit_reached",
    "workflow_running",
)


class MergeConversationRequest(Body):
    """The conversation that shows the messages of both from then on. It has the same contact."""

    into: Annotated[str, Field(min_length=1, max_length=40)]


@routes.add(
    "POST",
    f"{_ONE}/merge",
    operation_id="mergeConversation",
    body=MergeConversationRequest,
    answer=shapes.Conversation,
    errors=_REFUSALS,
    records=("conversation.merged",),
)
async def merge(call: Call[MergeConversationRequest, Query]) -> Answer:
    """Merge a conversation into another one of the same contact, which then shows the messages of both.

    No message moves: each keeps its id, index and conversation. The merged conversation is closed, and lists leave it out; later
    messages of the customer to it are stored in the other one. Agents can undo it for 30 days.
    """
    identifier, into = operations.conversation_id(call), call.body.into
    if not is_id(into, "cnv"):
        raise unknown_target()
    return operations.shown(await _merges(call).merge(identifier, into))


@routes.add(
    "POST",
    f"{_ONE}/unmerge",
    operation_id="unmergeConversation",
    answer=shapes.Conversation,
    errors=("merge_is_final",),
    records=("conversation.unmerged",),
)
async def unmerge(call: Call[Body, Query]) -> Answer:
    """Undo the merge of a conversation: it has its own thread again, and is open if it was before.

    Messages that were written since stay in the other conversation. Tags, followers, the ticket and the contact's wait are given
    back if the other one still has them.
    """
    return operations.shown(await _merges(call).unmerge(operations.conversation_id(call)))


def _merges(call: Call[Body, Query] | Call[MergeConversationRequest, Query]) -> ConversationMerges:
    services, by = call.services, operations.actor_of(call)
    return ConversationMerges(services.store, services.actors, services.clock, call.project, by, call.origin)
