"""Operations on conversations shared by the S2S and dashboard routes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final, TypeVar

from deskwire.engine.accounts.people import Assignee, AssigneeType, Project
from deskwire.engine.accounts.roles import assignable_user
from deskwire.engine.agents.presence import ephemeral_event
from deskwire.engine.audit.audited_changes import deleted
from deskwire.engine.audit.trail import AuditEntry, RecordingHook
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.actors import ActorCommand
from deskwire.engine.conversations.automation.lookup import published_workflow
from deskwire.engine.conversations.commands import (
    Assign,
    Command,
    Patch,
    PostMessage,
    Rate,
    ReplaceNetworkLogs,
    Reply,
    StartWorkflow,
)
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.conversation import Conversation, Message, no_such_conversation
from deskwire.engine.conversations.events import conversation_view, dashboard_message_view, message_view
from deskwire.engine.conversations.listing import NEWEST_FIRST, ConversationFilter, ConversationPageKey
from deskwire.engine.conversations.ports import CommitReader, ConversationReader
from deskwire.engine.conversations.threads import (
    ThreadQuery,
    no_such_message,
    read_thread,
    shows_others,
)
from deskwire.engine.core.actor import ANONYMOUS, SYSTEM, Actor
from deskwire.engine.core.commits import CommitHook, CommitHooks
from deskwire.engine.core.errors import Conflict, Gone, Invalid, Problem
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader
from deskwire.engine.uploads.ports import UploadReader
from deskwire.engine.uploads.upload import Attachment, Upload, unknown_upload
from deskwire.engine.workflows.workflow import Published
from deskwire.http.api.calls import NO_CONTENT, Answer, Call, RawJson
from deskwire.http.api.input.validation import given_fields
from deskwire.http.api.pagination import Paged, page
from deskwire.http.resources.conversations.requests import (
    AssignConversationRequest,
    AssigneeInput,
    ChangeConversationRequest,
    MessageList,
    SequenceList,
    SetContactTypingRequest,
    StartWorkflowRequest,
    TagList,
)

P = TypeVar("P", bound=Paged)
M = TypeVar("M", bound=MessageList)

_READ: Final = "conversations.read"

WRITE_AS_USER: Final = "members.manage"
"""The permission that a machine credential needs to write as a user of the project."""

NULLABLE = frozenset({"title"})
"""Fields of a patch that null clears; null in any other field is an error."""


def actor_of(call: Call[Any, Any]) -> Actor:
    """Return the actor of the call for a conversation's activity: the service, if no credential stands for one."""
    actor = call.access.actor
    return SYSTEM if actor is ANONYMOUS else actor


async def ask(
    call: Call[Any, Any], command: ActorCommand, hook: CommitHook[Receipt] | None = None
) -> Receipt:
    """Let the conversation in the path run a command; `hook` adds changes to its commit."""
    return await call.services.actors.ask(call.project, conversation_id(call), command, hook, actor_of(call))


async def ask_shown(call: Call[Any, Any], command: Rate | ReplaceNetworkLogs) -> Receipt:
    """Let the conversation in the path run a command, or the one that it is merged into."""
    actors = call.services.actors
    return await actors.ask_where_shown(call.project, conversation_id(call), command, by=actor_of(call))


async def post(
    call: Call[Any, Any],
    command: PostMessage | Reply,
    shown: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    by: Actor | None = None,
    further: CommitHook[Receipt] | None = None,
) -> Answer:
    """Add a message to the conversation in the path. Return the message object converted by `shown`.

    Args:
        by: the author of changes after the message.
        further: additional changes in the commit.
    """

    def response(receipt: Receipt) -> Mapping[str, Any]:
        assert receipt.message is not None
        return shown(receipt.message)

    identifier, directory = call.path["conversation_id"], call.services.actors
    kept: CommitHook[Receipt] | None = call.keeping(response, identifier)
    hook = kept if further is None else CommitHooks(kept, further)
    return response(await directory.ask(call.project, identifier, command, hook, by))


async def post_where_shown(call: Call[Any, Any], command: PostMessage) -> Answer:
    """Add a backend's message to the conversation in the path, or to the one that it is merged into. Return the message object."""

    def response(receipt: Receipt) -> Mapping[str, Any]:
        assert receipt.message is not None
        return receipt.message

    identifier, actors = call.path["conversation_id"], call.services.actors
    kept: CommitHook[Receipt] | None = call.keeping(response, itemgetter("conversationId"))
    return response(await actors.ask_where_shown(call.project, identifier, command, kept))


def report_typing(call: Call[SetContactTypingRequest, Any], identifier: str, contact: Contact) -> Answer:
    """Report to the present agents that the contact of a conversation is typing, or has stopped."""
    about = {"conversationId": identifier, "contact": {"id": contact.id, "name": contact.name}}
    kind = "contact.typing.started" if call.body.typing else "contact.typing.stopped"
    call.services.agents.broadcast(call.project.rowid, ephemeral_event(kind, about))
    return NO_CONTENT


async def carry_out(call: Call[Any, Any], command: ActorCommand) -> Answer:
    """Run a command like `ask`, and return the conversation afterwards."""
    return shown(await ask(call, command, call.keeping(shown)))


def shown(receipt: Receipt) -> Mapping[str, Any]:
    """Return the conversation after a command."""
    return receipt.conversation


def conversation_id(call: Call[Any, Any]) -> str:
    """Return the id in the path. Raises NotFound for a malformed id, before an actor is created for it."""
    identifier = call.path["conversation_id"]
    if not is_id(identifier, "cnv"):
        raise no_such_conversation()
    return identifier


def find(reader: ConversationReader, project: Project, identifier: str) -> tuple[Conversation, Contact]:
    """Return the stored conversation and its contact. Raises NotFound."""
    conversation = reader.conversation(project.rowid, identifier)
    if conversation is None:
        raise no_such_conversation()
    return conversation


async def get_conversation(call: Call[Any, Any]) -> Answer:
    """Return the conversation object."""
    identifier = conversation_id(call)
    state, contact = await call.services.store.read(
        InlineQuery(lambda reader: find(reader, call.project, identifier))
    )
    return conversation_view(state, contact, call.project.id)


async def list_conversations(call: Call[Any, P], criteria: ConversationFilter) -> Answer:
    """Return a page of conversations, newest activity first."""
    query = call.query
    after = ConversationPageKey(*query.place) if query.place else None
    listed = await call.services.store.read(
        lambda reader: reader.conversations(call.project.rowid, criteria, NEWEST_FIRST, after, query.rows)
    )
    return page(
        query,
        listed,
        lambda each: conversation_view(each.conversation, each.contact, call.project.id),
        lambda each: (each.at.value, each.at.rowid),
    )


async def attached(
    call: Call[Any, Any], upload_ids: list[str], pointer: str
) -> tuple[tuple[Attachment, ...], list[Problem]]:
    """Return the attachments of a message, and their problems: an unknown upload, or a duplicate.

    Raises Forbidden for another message's file, because the response links to it, if the caller may not read that message.
    """
    if not upload_ids:
        return (), []
    uploads = await call.services.store.read(
        InlineQuery(lambda reader: _uploads(reader, call.project, upload_ids))
    )
    if _READ not in call.access.permissions:
        known_ids = [each.id for each in uploads if each is not None]
        if await call.services.store.read(
            InlineQuery(lambda reader: any(map(reader.is_attached, known_ids)))
        ):
            call.access.require(_READ)
    problems: list[Problem] = []
    for index, (upload_id, upload) in enumerate(zip(upload_ids, uploads, strict=True)):
        place = f"{pointer}/attachments/{index}"
        if upload is None:
            problems.append(unknown_upload(place, upload_id))
        elif upload_id in upload_ids[:index]:
            problems.append(Problem(place, "repeated", "A message can have an upload only once."))
    known = (upload for upload in uploads if upload is not None)
    return tuple(Attachment(each.id, each.name, each.type, each.size) for each in known), problems


def _uploads(reader: UploadReader, project: Project, ids: list[str]) -> list[Upload | None]:
    return [reader.upload(project.rowid, each) if is_id(each, "upl") else None for each in ids]


BACK: Final = "before:"
"""Prefix of the cursor of a list that is paged backwards."""


async def list_messages(call: Call[Any, MessageList], *, internal: bool) -> Answer:
    """Return a page of messages, oldest first. `nextCursor` continues in the same direction."""
    identifier, query = conversation_id(call), from_cursor(call.query)

    def read(reader: ConversationReader) -> Sequence[tuple[Message, str]]:
        state, _ = find(reader, call.project, identifier)

        def place(message_id: str | None) -> int | None:
            return None if message_id is None else place_of(reader, state, message_id, internal=internal)

        if shows_others(state):
            limit, newest = query.limit + 1, query.before is not None and query.after is None
            wanted = ThreadQuery(internal, query.after, query.before, newest, limit)
            found = read_thread(reader, state, wanted)
            united = [(each.message, own.id) for own, each in found]
            return united[::-1] if newest else united
        messages = reader.messages(
            state.rowid,
            internal=internal,
            after=place(query.after),
            before=place(query.before),
            limit=query.limit + 1,
        )
        return [(each, state.id) for each in messages]

    messages = await call.services.store.read(read)
    backwards = query.before is not None and query.after is None
    shown = messages[-query.limit :] if backwards else messages[: query.limit]
    more = len(messages) > query.limit
    view = dashboard_message_view if internal else message_view
    show = partial(call.services.uploads.links.shown, now=call.services.clock())
    return {
        "items": [view(message, own, show) for message, own in shown],
        "nextCursor": (f"{BACK}{shown[0][0].id}" if backwards else shown[-1][0].id) if more else None,
    }


def from_cursor(query: M) -> M:
    """Return the query with `after` or `before` from its cursor, if any."""
    if query.cursor is None:
        return query
    if query.cursor.startswith(BACK):
        return query.model_copy(update={"after": None, "before": query.cursor.removeprefix(BACK)})
    return query.model_copy(update={"after": query.cursor})


def place_of(reader: ConversationReader, state: Conversation, message_id: str, *, internal: bool) -> int:
    """Return the position of a message in its conversation. Raises NotFound."""
    rowid = reader.message_rowid(state.rowid, message_id, internal=internal)
    if rowid is None:
        raise no_such_message(message_id)
    return rowid


async def list_events(call: Call[Any, SequenceList]) -> Answer:
    """Return the stored envelopes after a sequence, as the bytes that were sent (decisions 4).

    Raises Gone if the first of them are no longer stored, so that the caller must fetch the conversation again.
    """
    identifier, limit = conversation_id(call), call.query.limit
    after = call.query.after if call.query.cursor is None else call.query.cursor

    def read(reader: ConversationReader) -> tuple[Conversation, Sequence[bytes]]:
        state, _ = find(reader, call.project, identifier)
        return state, reader.conversation_events(state.rowid, after, limit + 1)

    state, bodies = await call.services.store.read(read)
    if state.sequence > after and not (bodies and starts_with(bodies[0], after + 1)):
        raise Gone(
            "Events after that sequence are no longer stored; fetch the conversation and its messages."
        )
    return raw_list(bodies[:limit], str(after + limit) if len(bodies) > limit else None)


def starts_with(body: bytes, sequence: int) -> bool:
    """Return whether the envelope has this sequence; `sequence` precedes `data` in it (contract 6.3.3)."""
    return f'"sequence":{sequence},'.encode() in body[: body.index(b'"data":')]


def raw_list(bodies: Sequence[bytes], next_cursor: str | None) -> RawJson:
    """Return a page of a list whose items are already JSON."""
    cursor = b"null" if next_cursor is None else b'"' + next_cursor.encode() + b'"'
    return RawJson(b'{"items":[' + b",".join(bodies) + b'],"nextCursor":' + cursor + b"}\n")


def patch_of(body: ChangeConversationRequest) -> Patch:
    """Return the command of a PATCH. Raises Invalid for null in another field than `NULLABLE`, and for an empty patch."""
    return Patch(given_fields(body, NULLABLE))


async def assign_of(call: Call[AssignConversationRequest, Any]) -> Assign:
    """Return the command of an assignment. Raises Invalid for an unknown user or team."""
    return Assign(await assignee_of(call, call.body.assignee, "/assignee"))


async def assignee_of(call: Call[Any, Any], given: AssigneeInput | None, pointer: str) -> Assignee | None:
    """Return the assignee of a body with its name.

    Raises Invalid for an unknown user or team, and for a viewer.
    """
    if given is None or given.type is None or given.id is None:
        return None
    find = _TO_ASSIGN[given.type](call.project, given.id, f"{pointer}/id")
    name, problem = await call.services.store.read(InlineQuery(find))
    if name is None:
        assert problem is not None
        raise Invalid(problem)
    return Assignee(given.type, given.id, name)


async def check_assignee(call: Call[AssignConversationRequest, Any]) -> None:
    """Check the assignee of a body; see `assign_of`."""
    await assignee_of(call, call.body.assignee, "/assignee")


Named = tuple[str, None] | tuple[None, Problem]
"""The name of an assignee, or the problem with the assignee."""


def _user_to_assign(project: Project, user_id: str, pointer: str) -> Callable[[Reader], Named]:
    return lambda reader: assignable_user(reader, project.organisation, user_id, pointer)


def _team_to_assign(project: Project, team_id: str, pointer: str) -> Callable[[Reader], Named]:
    def find(reader: Reader) -> Named:
        name = reader.team_name(project.rowid, team_id)
        unknown = Problem(pointer, "unknown", "There is no such team in this project.")
        return (None, unknown) if name is None else (name, None)

    return find


_TO_ASSIGN: Final[Mapping[AssigneeType, Callable[[Project, str, str], Callable[[Reader], Named]]]] = {
    "user": _user_to_assign,
    "team": _team_to_assign,
}


async def delete_conversation(call: Call[Any, Any], command: Command) -> Answer:
    """Delete a conversation; the response has its id."""
    await ask(call, command, RecordingHook(call.origin, _deleted))
    return {"id": conversation_id(call), "deleted": True}


def _deleted(receipt: Receipt) -> Sequence[AuditEntry]:
    gone = receipt.after
    return (deleted("conversation", gone.id, gone.project, messages=gone.messages),)


async def list_tags(call: Call[Any, TagList]) -> Answer:
    """Return a page of the tags of the project's conversations."""
    query, project = call.query, call.project.rowid
    tags = await call.services.store.read(
        lambda reader: reader.conversation_tags(project, query.cursor or "", query.limit + 1)
    )
    items = [{"name": name, "conversations": count} for name, count in tags[: query.limit]]
    return {"items": items, "nextCursor": items[-1]["name"] if len(tags) > query.limit else None}


async def get_workflow_step(call: Call[Any, Any]) -> Answer:
    """Return the pending step of the conversation's workflow (contract 4.3)."""
    identifier = conversation_id(call)
    state, _ = await call.services.store.read(
        InlineQuery(lambda reader: find(reader, call.project, identifier))
    )
    return {"step": None if state.run is None else state.run.step}


async def start_of(call: Call[StartWorkflowRequest, Any]) -> StartWorkflow:
    """Return the command that starts a workflow.

    Raises NotFound without such a conversation, Invalid without such a workflow, Conflict for a workflow
    that starts automatically.
    """
    identifier = conversation_id(call)
    return StartWorkflow(
        await call.services.store.read(InlineQuery(lambda reader: _startable(reader, call, identifier)))
    )


async def check_workflow(call: Call[StartWorkflowRequest, Any]) -> None:
    """Check the workflow of a body; see `start_of`."""
    if call.body.workflow_id is not None:
        await start_of(call)


def _startable(reader: CommitReader, call: Call[StartWorkflowRequest, Any], identifier: str) -> Published:
    find(reader, call.project, identifier)
    workflow = reader.workflow(call.project.rowid, call.body.workflow_id)
    if workflow is None:
        raise Invalid(Problem("/workflowId", "unknown", "There is no such workflow in this project."))
    if workflow.trigger != "manual":
        raise Conflict("This workflow starts automatically in new conversations.", code="workflow_not_manual")
    return published_workflow(reader, call.project, workflow)
