"""Conversations for a project's own backend (contract 4.3, decisions 4)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from deskwire.engine.contacts.blocks import require_not_blocked
from deskwire.engine.conversations.automation.answers import answer_problems
from deskwire.engine.conversations.automation.lookup import running_workflow
from deskwire.engine.conversations.commands import (
    AnswerStep,
    Close,
    ContactRef,
    Create,
    Delete,
    MarkRead,
    PostMessage,
    Rate,
    Reopen,
    ReplaceNetworkLogs,
)
from deskwire.engine.conversations.conversation import Author, AuthorType, Closer
from deskwire.engine.conversations.ports import CommitReader
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Invalid, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.workflows.definition import Buttons, Form
from deskwire.engine.workflows.validation.shape import ACTION_ID_MAX
from deskwire.http.api.calls import NO_CONTENT, Answer, Call
from deskwire.http.api.input.validation import Body, PlainText, Query, nulls
from deskwire.http.api.routing import LARGE, MEDIUM, NOTHING, Routes, Tag, s2s
from deskwire.http.resources.contacts.contacts import may_change_contacts
from deskwire.http.resources.conversations import backend_lists, operations
from deskwire.http.resources.conversations.backend_lists import BackendConversationLists, BackendView
from deskwire.http.resources.conversations.requests import (
    PLAIN_CONTACT,
    AssignConversationRequest,
    ChangeConversationRequest,
    FormattedMessageInput,
    MessageList,
    PutContactIdentityRequest,
    SequenceList,
    SetContactTypingRequest,
    StartWorkflowRequest,
)
from deskwire.http.resources.fields import Attributes, Name, RatingComment, Title, UserId
from deskwire.http.schemas import conversations as shapes
from deskwire.http.schemas.base import Deleted, page_as_of, page_of
from deskwire.http.schemas.events import Event
from deskwire.http.schemas.workflows import PendingStep

routes = Routes(
    Tag("Conversations", "Start and manage conversations from the backend of a project."),
    unrecorded="The conversation's events show it, and messages name their authors.",
)
_ONE = "/s2s/conversations/<conversation_id>"
_READ = s2s("conversations.read")
_REPLY = s2s("conversations.reply")
_MANAGE = s2s("conversations.manage")
_DELETE = s2s("conversations.delete")


class ContactInput(PutContactIdentityRequest):
    """The contact of the conversation. Given identity fields update the contact."""

    user_id: UserId


class AuthorInput(Body):
    """The author of a message. A contact is always the conversation's; the id of an agent must be a member's.

    With the id of an agent, a machine credential also needs the permission `members.manage`.
    """

    type: AuthorType = "contact"
    id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    name: Name | None = None


_CONTACT: Final = AuthorInput()
_THE_CONTACT: Final = Author("contact")


class PostMessageRequest(FormattedMessageInput):
    """The message to add."""

    author: Annotated[
        AuthorInput, Field(default_factory=lambda: _CONTACT)
    ]  # shared, because it is never changed


class CreateConversationRequest(Body):
    """The new conversation. With `visible: false` it emits no events until it is made visible."""

    contact: ContactInput
    title: Title | None = None
    attributes: Annotated[Attributes, Field(default_factory=dict)]
    visible: bool = True
    message: PostMessageRequest | None = None


class CloseConversationRequest(Body):
    """The agent, bot or system that closes the conversation."""

    closed_by: Closer = "system"


class RateConversationRequest(Body):
    """The contact's rating of the conversation (CSAT), with an optional comment. Null removes it."""

    rating: Annotated[int, Field(ge=0, le=10)]
    comment: RatingComment | None = None


class NetworkRequestInput(Body):
    """A request that a customer's client made (contract 2.3). Only `request` and `response` can be null."""

    url: PlainText
    type: PlainText = ""
    date: PlainText = ""
    duration: Annotated[float, Field(allow_inf_nan=False)] = 0
    success: bool = False
    request: Any = None
    response: Any = None
    initiator_type: PlainText = ""


class ReplaceNetworkLogsRequest(Body):
    """The snapshot of network requests, which replaces the previous one. Numbers keep all digits (contract 2.3: any JSON value)."""

    as_sent = True

    requests: Annotated[list[NetworkRequestInput], Field(max_length=100)]


class ReplyToStepRequest(Body):
    """The answer to a workflow step: the id of an option, a text, or an object with a form's fields."""

    action_id: Annotated[int, Field(ge=0, le=ACTION_ID_MAX)]
    value: Any


async def _check_message(call: Call[PostMessageRequest, Query]) -> None:
    await _refuse_unfit(call, call.body, "")


async def _check_first_message(call: Call[CreateConversationRequest, Query]) -> None:
    if call.body.message is not None:
        await _refuse_unfit(call, call.body.message, "/message")


async def _refuse_unfit(call: Call[Any, Any], body: PostMessageRequest, pointer: str) -> None:
    """Raise Invalid with the problems of a message that its model can't detect."""
    _, problems = await operations.attached(call, body.attachments, pointer)
    _, refused = (None, []) if body.author is None else await _author(call, body.author, f"{pointer}/author")
    if problems or refused:
        raise Invalid(*problems, *refused)


@routes.add(
    "POST",
    "/s2s/conversations",
    _REPLY,
    operation_id="createConversation",
    body=CreateConversationRequest,
    limit=LARGE,
    answer=shapes.Conversation,
    errors=("contact_blocked",),
    idempotent=True,
    further=(_check_first_message,),
)
async def create_conversation(call: Call[CreateConversationRequest, Query]) -> Answer:
    """Start a conversation for a contact. The contact is created or updated.

    To update an existing contact, a machine credential also needs the permission `contacts.manage`.
    """
    body, now = call.body, call.services.clock()
    given = body.contact.model_fields_set - {"user_id"}
    identity = {name: getattr(body.contact, name) for name in given}
    message = None if body.message is None else await _message(call, body.message, "/message")
    receipt = await call.services.actors.create(
        call.project,
        Create(
            new_id("cnv", now),
            call.project.rowid,
            ContactRef(body.contact.user_id, identity, may_change=may_change_contacts(call)),
            body.title,
            body.attributes,
            body.visible,
            message,
        ),
        call.keeping(operations.shown),
    )
    return operations.shown(receipt)


@routes.add(
    "GET",
    "/s2s/conversations",
    _READ,
    operation_id="listConversations",
    query=BackendConversationLists,
    answer=page_as_of(shapes.ListedConversation),
)
async def list_conversations(call: Call[Body, BackendConversationLists]) -> Answer:
    """List the conversations of the project, newest activity first, or by the time of their last change.

    To mirror all conversations, fetch all pages with `sort=updated&order=asc`, then follow the event feed from `asOf`.
    """
    return await backend_lists.list_conversations(call)


@routes.add(
    "GET", _ONE, _READ, operation_id="getConversation", query=BackendView, answer=shapes.ListedConversation
)
async def get_conversation(call: Call[Body, BackendView]) -> Answer:
    """Fetch a conversation. After a 404, remove the conversation from every mirror."""
    return await backend_lists.get_conversation(call)


@routes.add(
    "PATCH",
    _ONE,
    _MANAGE,
    operation_id="changeConversation",
    body=ChangeConversationRequest,
    limit=LARGE,
    answer=shapes.Conversation,
    errors=("conversation_closed", "conversation_merged"),
    further=(nulls(*operations.NULLABLE),),
)
async def change_conversation(call: Call[ChangeConversationRequest, Query]) -> Answer:
    """Change the title, status or attributes of a conversation, archive it, or make it visible."""
    return await operations.carry_out(call, operations.patch_of(call.body))


@routes.add(
    "DELETE",
    _ONE,
    _DELETE,
    operation_id="deleteConversation",
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
    operation_id="listMessages",
    query=MessageList,
    answer=page_of(shapes.Message),
    errors=("message_not_found",),
)
async def list_messages(call: Call[Body, MessageList]) -> Answer:
    """List the messages of a conversation, oldest first, after or before a given message."""
    return await operations.list_messages(call, internal=False)


@routes.add(
    "POST",
    f"{_ONE}/messages",
    _REPLY,
    operation_id="postMessage",
    body=PostMessageRequest,
    limit=LARGE,
    answer=shapes.Message,
    errors=("contact_blocked",),
    idempotent=True,
    further=(_check_message,),
)
async def post_message(call: Call[PostMessageRequest, Query]) -> Answer:
    """Add a message to a conversation. A message of the contact reopens a closed conversation."""
    return await operations.post_where_shown(call, await _message(call, call.body, ""))


@routes.add(
    "POST",
    f"{_ONE}/close",
    _MANAGE,
    operation_id="closeConversation",
    errors=("conversation_merged",),
    body=CloseConversationRequest,
    answer=shapes.Conversation,
)
async def close_conversation(call: Call[CloseConversationRequest, Query]) -> Answer:
    """Close a conversation for the customer."""
    return await operations.carry_out(call, Close(call.body.closed_by))


@routes.add(
    "POST",
    f"{_ONE}/reopen",
    _MANAGE,
    operation_id="reopenConversation",
    errors=("conversation_merged",),
    answer=shapes.Conversation,
)
async def reopen_conversation(call: Call[Body, Query]) -> Answer:
    """Reopen a closed conversation."""
    return await operations.carry_out(call, Reopen())


@routes.add(
    "POST",
    f"{_ONE}/assign",
    _MANAGE,
    operation_id="assignConversation",
    errors=("conversation_merged",),
    body=AssignConversationRequest,
    answer=shapes.Conversation,
    further=(operations.check_assignee,),
)
async def assign_conversation(call: Call[AssignConversationRequest, Query]) -> Answer:
    """Assign a conversation to a user or team, or unassign it."""
    return await operations.carry_out(call, await operations.assign_of(call))


@routes.add("POST", f"{_ONE}/read", _MANAGE, operation_id="markRead", answer=shapes.Conversation)
async def mark_read(call: Call[Body, Query]) -> Answer:
    """Record that the contact has read everything."""
    return await operations.carry_out(call, MarkRead())


@routes.add(
    "POST",
    f"{_ONE}/typing",
    _REPLY,
    operation_id="setContactTyping",
    body=SetContactTypingRequest,
    answer=NOTHING,
    errors=("contact_blocked",),
)
async def set_contact_typing(call: Call[SetContactTypingRequest, Query]) -> Answer:
    """Report to the present agents that the contact is typing, or has stopped. Repeat it every few seconds.

    Nothing is stored, and neither webhooks nor consumers of the realtime stream are notified.
    """
    identifier = operations.conversation_id(call)
    state, contact = await call.services.store.read(
        InlineQuery(lambda reader: operations.find(reader, call.project, identifier))
    )
    require_not_blocked(contact)
    return operations.report_typing(call, state.merged_into or identifier, contact)


@routes.add(
    "POST",
    f"{_ONE}/rating",
    _REPLY,
    operation_id="rateConversation",
    body=RateConversationRequest,
    limit=MEDIUM,
    answer=shapes.ConversationRating,
    errors=("contact_blocked",),
)
async def rate_conversation(call: Call[RateConversationRequest, Query]) -> Answer:
    """Record the contact's rating of a conversation, from 0 to 10, with an optional comment.

    A different rating without a comment removes the comment; the same rating keeps it.
    """
    body = call.body
    kept = "comment" not in body.model_fields_set
    command = Rate(body.rating, body.comment, keeps_comment=kept)
    state = (await operations.ask_shown(call, command)).after
    assert state.rated_at is not None
    rated = {"rating": state.rating, "ratedAt": iso(state.rated_at)}
    return rated if state.rating_comment is None else {**rated, "comment": state.rating_comment}


@routes.add(
    "PUT",
    f"{_ONE}/network-logs",
    _MANAGE,
    operation_id="replaceNetworkLogs",
    body=ReplaceNetworkLogsRequest,
    limit="network_logs_limit_bytes",
    answer=NOTHING,
)
async def replace_network_logs(call: Call[ReplaceNetworkLogsRequest, Query]) -> Answer:
    """Attach a snapshot of the network requests of the customer's client. Only agents see it."""
    await operations.ask_shown(call, ReplaceNetworkLogs(call.raw))
    return NO_CONTENT


@routes.add(
    "GET",
    f"{_ONE}/events",
    _READ,
    operation_id="listConversationEvents",
    query=SequenceList,
    answer=page_of(Event),
    errors=("window_passed",),
)
async def list_conversation_events(call: Call[Body, SequenceList]) -> Answer:
    """List the stored events of a conversation after a sequence, to repair a gap."""
    return await operations.list_events(call)


@routes.add("GET", f"{_ONE}/workflow", _READ, operation_id="getWorkflowStep", answer=PendingStep)
async def get_workflow_step(call: Call[Body, Query]) -> Answer:
    """Fetch the workflow step that waits for the contact; null if none does."""
    return await operations.get_workflow_step(call)


async def _check_answer(call: Call[ReplyToStepRequest, Query]) -> None:
    body = call.body

    def problems(reader: CommitReader) -> list[Problem]:
        state, _ = operations.find(reader, call.project, operations.conversation_id(call))
        run = state.run
        if run is None or body.action_id not in (None, run.action_id):
            return []
        action = running_workflow(reader, call.project, run.version).definition.action((run.flow, run.action))
        return answer_problems(action, body.value) if isinstance(action, Buttons | Form) else []

    refused = await call.services.store.read(problems) if "value" in body.model_fields_set else []
    if refused:
        raise Invalid(*refused)


@routes.add(
    "POST",
    f"{_ONE}/workflow/reply",
    _REPLY,
    operation_id="replyToStep",
    body=ReplyToStepRequest,
    limit=LARGE,
    answer=shapes.Conversation,
    errors=("contact_blocked", "conversation_merged", "step_not_pending"),
    idempotent=True,
    further=(_check_answer,),
)
async def reply_to_step(call: Call[ReplyToStepRequest, Query]) -> Answer:
    """Answer the pending workflow step as the contact. An answer to any other step is refused."""
    return await operations.carry_out(call, AnswerStep(call.body.action_id, call.body.value))


@routes.add(
    "POST",
    f"{_ONE}/workflow/start",
    _MANAGE,
    operation_id="startWorkflow",
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
    further=(operations.check_workflow,),
)
async def start_workflow(call: Call[StartWorkflowRequest, Query]) -> Answer:
    """Start a workflow whose trigger is `manual`. Only one workflow at a time runs in a conversation."""
    return await operations.carry_out(call, await operations.start_of(call))


async def _message(call: Call[Any, Any], body: PostMessageRequest, pointer: str) -> PostMessage:
    if not body.attachments and body.author is _CONTACT and body.format is None:
        return PostMessage(new_id("msg", call.services.clock()), _THE_CONTACT, body.text)
    attachments, problems = await operations.attached(call, body.attachments, pointer)
    author, refused = await _author(call, body.author, f"{pointer}/author")
    problems = [*problems, *refused]
    if body.format is not None and author.type == "contact":
        problems.append(Problem(f"{pointer}/format", "not_allowed", PLAIN_CONTACT))
    if problems:
        raise Invalid(*problems)
    message_id = new_id("msg", call.services.clock())
    return PostMessage(message_id, author, body.text, attachments=attachments, format=body.format)


async def _author(call: Call[Any, Any], body: AuthorInput, pointer: str) -> tuple[Author, list[Problem]]:
    """Return the author of a message, with problems."""
    if body.type == "contact":
        if body.id is None and body.name is None:
            return Author("contact"), []
        given = [name for name in ("id", "name") if getattr(body, name) is not None]
        message = "Only other authors than the contact have this field: the contact is the conversation's."
        return Author("contact"), [Problem(f"{pointer}/{name}", "not_allowed", message) for name in given]
    if body.type == "agent" and body.id is not None:
        organisation, user_id = call.project.organisation, body.id
        name = await call.services.store.read(
            InlineQuery(lambda reader: reader.member_name(organisation, user_id))
        )
        if name is None:
            problem = Problem(f"{pointer}/id", "unknown", "There is no such user in this project.")
            return Author("agent"), [problem]
        if call.access.machine is not None:
            call.access.require(operations.WRITE_AS_USER)
        return Author("agent", body.id, body.name or name), []
    return Author(body.type, body.id, body.name), []
