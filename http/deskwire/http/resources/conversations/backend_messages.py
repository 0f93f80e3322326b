"""Redaction and deletion of single messages, and tags of a conversation, for a project's own backend."""

from __future__ import annotations

from deskwire.engine.conversations.commands import Patch
from deskwire.engine.conversations.tags import normal_tags
from deskwire.engine.core.store import InlineQuery
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import MEDIUM, Routes, s2s
from deskwire.http.resources.conversations import operations, rewriting
from deskwire.http.resources.conversations.requests import RedactMessageRequest, ReplaceTagsRequest, TagList
from deskwire.http.resources.conversations.s2s import routes as conversations
from deskwire.http.schemas import conversations as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(conversations.tag, unrecorded="The conversation's activity has an entry.")
_ONE = "/s2s/conversations/<conversation_id>"
_READ = s2s("conversations.read")
_MANAGE = s2s("conversations.manage")
_REDACT = s2s("conversations.manage", "conversations.read")
"""The response shows the rest of the message."""
_DELETE = s2s("conversations.delete")


@routes.add(
    "POST",
    f"{_ONE}/messages/<message_id>/redact",
    _REDACT,
    operation_id="redactMessage",
    body=RedactMessageRequest,
    limit=MEDIUM,
    answer=shapes.Message,
    errors=("message_not_found",),
    idempotent=True,
    further=(rewriting.precheck(internal=False),),
    records=("message.redacted",),
)
async def redact_message(call: Call[RedactMessageRequest, Query]) -> Answer:
    """Redact a message: its text or parts of it, attachments. The removed content is erased wherever it is stored."""
    return await rewriting.redact(call, internal=False)


@routes.add(
    "DELETE",
    f"{_ONE}/messages/<message_id>",
    _DELETE,
    operation_id="deleteMessage",
    answer=Deleted,
    errors=("message_not_found",),
    records=("message.deleted",),
)
async def delete_message(call: Call[Body, Query]) -> Answer:
    """Delete a message permanently. The other messages keep their index."""
    return await rewriting.delete(call, internal=False)


@routes.add("GET", f"{_ONE}/tags", _READ, operation_id="getConversationTags", answer=shapes.ConversationTags)
async def get_tags(call: Call[Body, Query]) -> Answer:
    """Fetch the tags of a conversation. Consumers and webhooks never receive them."""
    identifier = operations.conversation_id(call)
    state, _ = await call.services.store.read(
        InlineQuery(lambda reader: operations.find(reader, call.project, identifier))
    )
    return {"tags": list(state.tags)}


@routes.add(
    "PUT",
    f"{_ONE}/tags",
    _MANAGE,
    operation_id="replaceConversationTags",
    errors=("conversation_merged",),
    limit=MEDIUM,
    body=ReplaceTagsRequest,
    answer=shapes.ConversationTags,
)
async def replace_tags(call: Call[ReplaceTagsRequest, Query]) -> Answer:
    """Replace all tags of a conversation. Agents see the tags and are notified of the change; webhooks receive no event."""
    receipt = await operations.ask(call, Patch({"tags": normal_tags(call.body.tags)}))
    return {"tags": list(receipt.after.tags)}


@routes.add(
    "GET", "/s2s/tags", _READ, operation_id="listTags", query=TagList, answer=page_of(shapes.TagUsage)
)
async def list_tags(call: Call[Body, TagList]) -> Answer:
    """List the tags of the project's conversations by name, each with the number of conversations that have it."""
    return await operations.list_tags(call)
