"""Conversations for agents, signed in as users (decisions 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.conversations.activity import ConversationActivity, activity_view
from deskwire.engine.conversations.commands import Close, Delete, MarkRead, Reopen
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.conversations.typing import SetTyping, TypingAgent
from deskwire.http.api.calls import Answer, Call, RawJson
from deskwire.http.api.input.validation import Body, Query, nulls
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import LARGE, MEDIUM, Routes, Tag, dashboard, personal
from deskwire.http.resources.conversations import inbox, lists, operations, rewriting, starting, writing
from deskwire.http.resources.conversations.lists import ConversationLists, View
from deskwire.http.resources.conversations.requests import (
    AssignConversationRequest,
    DashboardReopenConversationRequest,
    RedactMessageRequest,
    SequenceList,
    SetTypingRequest,
    StartWorkflowRequest,
    TagList,
    ThreadList,
)
from deskwire.http.schemas import conversations as shapes
from deskwire.http.schemas.base import Deleted, page_of
from deskwire.http.schemas.events import Event
from deskwire.http.schemas.workflows import PendingStep
from deskwire.http.schemas.writing import HeldMessage

FOR_AGENTS: Final = Tag(
    "Conversations for agents", "Read and answer conversations as an agent, signed in as a user."
)
routes = Routes(
    FOR_AGENTS,
    unrecorded="The conversation's events show it, and messages name their authors.",
)
_ONE = "/conversations/<conversation_id>"
_READ = dashboard("conversations.read")
_REPLY = personal(dashboard("conversations.reply"))
_MANAGE = dashboard("conversations.manage")
_DELETE = dashboard("conversations.delete")


class Viewed(Query):
    """The view of the conversation."""

    view: View | None = None


@routes.add(
    "GET",
    "/conversations",
    _READ,
    operation_id="dashboardListConversations",
    query=ConversationLists,
    answer=page_of(shapes.Conversation) | page_of(shapes.AgentConversation),
    errors=("person_required",),
)
async def list_conversations(call: Call[Body, ConversationLists]) -> Answer:
    """List the conversations of a project, newest activity first by default (`sort`, `order`)."""
    return await lists.list_conversations(call)


@routes.add(
    "POST",
    "/conversations",
    _REPLY,
    operation_id="dashboardStartConversation",
    body=starting.StartConversationRequest,
    limit=LARGE,
    answer=shapes.AgentConversation,
    errors=("contact_not_found",),
    idempotent=True,
    further=(starting.check_start,),
)
async def start_conversation(call: Call[starting.StartConversationRequest, Query]) -> Answer:
    """Start a conversation with a contact as the signed-in agent."""
    return await starting.start(call)


@routes.add(
    "GET",
    _ONE,
    _READ,
    operation_id="dashboardGetConversation",
    query=Viewed,
    answer=shapes.Conversation | shapes.AgentConversation,
    errors=("person_required",),
)
async def get_conversation(call: Call[Body, Viewed]) -> Answer:
    """Fetch a conversation, with `view=agent` as agents see it."""
    if call.query.view == "agent":
        call.access.require_person("the view of agents")
        return await inbox.get_conversation(call)
    return await operations.get_conversation(call)


@routes.add(
    "PATCH",
    _ONE,
    _MANAGE,
    operation_id="dashboardChangeConversation",
    body=writing.DashboardChangeConversationRequest,
    query=Viewed,
    limit=LARGE,
    answer=shapes.Conversation | shapes.AgentConversation,
    errors=("conversation_closed", "conversation_merged", "person_required"),
    further=(nulls(*writing.NULLABLE), writing.check_snooze),
)
async def change_conversation(call: Call[writing.DashboardChangeConversationRequest, Viewed]) -> Answer:
    """Change the title, status, attributes or tags of a conversation, snooze or archive it, or make it visible."""
    if call.query.view == "agent":
        call.access.require_person("the view of agents")
    changed = await operations.carry_out(call, writing.patch_of(call))
    return await inbox.get_conversation(call) if call.query.view == "agent" else changed


@routes.add(
    "DELETE",
    _ONE,
    _DELETE,
    operation_id="dashboardDeleteConversation",
    answer=Deleted,
    forgets=True,
    records=("conversation.deleted",),
)
async def delete_conversation(call: Call[Body, Query]) -> Answer:
    """Delete a conversation permanently, with everything that belongs to it."""
    return await operations.delete_conversation(call, Delete("manual"))


@routes.add(
    "GET",
    f"{_ONE}/messages",
    _READ,
    operation_id="dashboardListMessages",
    query=ThreadList,
    answer=page_of(shapes.ThreadMessage),
    errors=("message_not_found",),
)
async def list_messages(call: Call[Body, ThreadList]) -> Answer:
    """List the messages and internal notes of a conversation, oldest first, or with `order=desc` newest first."""
    return await inbox.list_messages(call)


@routes.add(
    "POST",
    f"{_ONE}/messages",
    _REPLY,
    operation_id="dashboardPostMessage",
    body=writing.DashboardPostMessageRequest,
    limit=LARGE,
    answer=shapes.AgentMessage | HeldMessage,
    errors=(
        "conversation_closed",
        "conversation_merged",
        "conversation_moved_on",
        "held_message_limit_reached",
    ),
    idempotent=True,
    further=(writing.check_reply,),
)
async def post_message(call: Call[writing.DashboardPostMessageRequest, Query]) -> Answer:
    """Send a message to the customer, or with `internal` add a note for other agents. `then` is applied in the same commit."""
    return await writing.post_message(call)


@routes.add(
    "POST",
    f"{_ONE}/messages/<message_id>/redact",
    dashboard("conversations.manage", "conversations.read"),
    operation_id="dashboardRedactMessage",
    body=RedactMessageRequest,
    limit=MEDIUM,
    answer=shapes.AgentMessage,
    errors=("message_not_found",),
    idempotent=True,
    further=(rewriting.precheck(internal=True),),
    records=("message.redacted",),
)
async def redact_message(call: Call[RedactMessageRequest, Query]) -> Answer:
    """Redact a message or note: its text or parts of it, attachments. The removed content is erased wherever it is stored."""
    return await rewriting.redact(call, internal=True)


@routes.add(
    "DELETE",
    f"{_ONE}/messages/<message_id>",
    _DELETE,
    operation_id="dashboardDeleteMessage",
    answer=Deleted,
    errors=("message_not_found",),
    records=("message.deleted",),
)
async def delete_message(call: Call[Body, Query]) -> Answer:
    """Delete a message or note permanently. The other messages keep their index."""
    return await rewriting.delete(call, internal=True)


@routes.add(
    "POST",
    f"{_ONE}/typing",
    _REPLY,
    operation_id="dashboardSetTyping",
    errors=("conversation_merged",),
    body=SetTypingRequest,
    answer=shapes.Conversation,
)
async def set_typing(call: Call[SetTypingRequest, Query]) -> Answer:
    """Report that the signed-in agent is typing, or has stopped. Repeat it every few seconds while the agent types."""
    agent = TypingAgent(call.user.id, call.user.name)
    return await operations.carry_out(call, SetTyping(agent, call.body.typing, call.body.internal))


@routes.add(
    "POST",
    f"{_ONE}/close",
    _MANAGE,
    operation_id="dashboardCloseConversation",
    errors=("conversation_merged",),
    answer=shapes.Conversation,
)
async def close_conversation(call: Call[Body, Query]) -> Answer:
    """Close a conversation for the customer."""
    return await operations.carry_out(call, Close("agent"))


@routes.add(
    "POST",
    f"{_ONE}/reopen",
    _MANAGE,
    operation_id="dashboardReopenConversation",
    errors=("conversation_merged",),
    body=DashboardReopenConversationRequest,
    answer=shapes.Conversation,
)
async def reopen_conversation(call: Call[DashboardReopenConversationRequest, Query]) -> Answer:
    """Reopen a closed conversation. With `waitingSince`, its contact waits for an answer again."""
    since = writing.waited_since(call.body.waiting_since, call.services.clock())
    return await operations.carry_out(call, Reopen(since))


@routes.add(
    "POST",
    f"{_ONE}/assign",
    _MANAGE,
    operation_id="dashboardAssignConversation",
    errors=("conversation_merged",),
    body=AssignConversationRequest,
    answer=shapes.Conversation,
    further=(operations.check_assignee,),
)
async def assign_conversation(call: Call[AssignConversationRequest, Query]) -> Answer:
    """Assign a conversation to a user or team, or unassign it."""
    return await operations.carry_out(call, await operations.assign_of(call))


@routes.add("POST", f"{_ONE}/read", _MANAGE, operation_id="dashboardMarkRead", answer=shapes.Conversation)
async def mark_read(call: Call[Body, Query]) -> Answer:
    """Record that the contact has read everything."""
    return await operations.carry_out(call, MarkRead())


@routes.add(
    "GET", f"{_ONE}/network-logs", _READ, operation_id="dashboardGetNetworkLogs", answer=shapes.NetworkLogs
)
async def get_network_logs(call: Call[Body, Query]) -> Answer:
    """Fetch the latest snapshot of network requests. `requests` is empty if there is none."""
    identifier = operations.conversation_id(call)

    def snapshot(reader: ConversationReader) -> bytes | None:
        state, _ = operations.find(reader, call.project, identifier)
        return reader.network_logs(state.rowid)

    logs = await call.services.store.read(snapshot)
    return {"requests": []} if logs is None else RawJson(logs + b"\n")


@routes.add(
    "GET",
    f"{_ONE}/events",
    _READ,
    operation_id="dashboardListConversationEvents",
    query=SequenceList,
    answer=page_of(Event),
    errors=("window_passed",),
)
async def list_conversation_events(call: Call[Body, SequenceList]) -> Answer:
    """List the stored events of a conversation after a sequence."""
    return await operations.list_events(call)


@routes.add(
    "GET",
    f"{_ONE}/activity",
    _READ,
    operation_id="dashboardListConversationActivity",
    query=Paged,
    answer=page_of(shapes.ConversationActivity),
)
async def list_activity(call: Call[Body, Paged]) -> Answer:
    """List the activity of a conversation, newest first: each change with its author."""
    query, identifier = call.query, operations.conversation_id(call)

    def read(reader: ConversationReader) -> Sequence[ConversationActivity]:
        state, _ = operations.find(reader, call.project, identifier)
        return reader.conversation_activity(state.rowid, query.row, query.rows)

    entries = await call.services.store.read(read)
    return page(query, entries, activity_view, lambda entry: entry.rowid)


@routes.add(
    "GET",
    "/tags",
    _READ,
    operation_id="listConversationTags",
    query=TagList,
    answer=page_of(shapes.TagUsage),
)
async def list_tags(call: Call[Body, TagList]) -> Answer:
    """List the tags of a project's conversations by name, each with the number of conversations that have it."""
    return await operations.list_tags(call)


@routes.add("GET", f"{_ONE}/workflow", _READ, operation_id="dashboardGetWorkflowStep", answer=PendingStep)
async def get_workflow_step(call: Call[Body, Query]) -> Answer:
    """Fetch the workflow step that waits for the contact; null if none does."""
    return await operations.get_workflow_step(call)


@routes.add(
    "POST",
    f"{_ONE}/workflow/start",
    _MANAGE,
    operation_id="dashboardStartWorkflow",
    body=StartWorkflowRequest,
    answer=shapes.Conversation,
    errors=(
        "conversation_closed",
        "conversation_hidden",
        "conversation_merged",
        "workflow_not_manual",
        "workflow_running",
    ),
    idempotent=True,
)
async def start_workflow(call: Call[StartWorkflowRequest, Query]) -> Answer:
    """Start a workflow whose trigger is `manual`. Only one workflow at a time runs in a conversation."""
    return await operations.carry_out(call, await operations.start_of(call))
