"""What the S2S and the dashboard routes of conversations have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from deskwire.engine.accounts.people import Assignee, Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.actor import Asked
from deskwire.engine.conversations.automation.lookup import published
from deskwire.engine.conversations.commands import Assign, Command, Patch, PostMessage, StartWorkflow
from deskwire.engine.conversations.conversation import Conversation, Message, no_such_conversation
from deskwire.engine.conversations.emit import conversation_view, dashboard_message_view, message_view
from deskwire.engine.conversations.listing import ConversationFilter, Page
from deskwire.engine.conversations.plan import Receipt
from deskwire.engine.core.errors import Conflict, Gone, Invalid, NotFound, Problem
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import Inline
from deskwire.engine.core.wrapper import Wrapper
from deskwire.engine.ports import Reader
from deskwire.engine.uploads.upload import Attachment, Upload, unknown_upload
from deskwire.engine.workflows.workflow import Published
from deskwire.http.api.input.validation import given_fields
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import Answer, Call, RawJson
from deskwire.http.resources.bodies import (
    AssignBody,
    ConversationPatch,
    MessageList,
    SequenceList,
    StartWorkflowBody,
)

P = TypeVar("P", bound=Paged)

NULLABLE = frozenset({"title"})
"""Fields of a patch that null clears; for the others null is an error."""


async def ask(call: Call[Any, Any], command: Asked, wrapper: Wrapper[Receipt] | None = None) -> Receipt:
    """Have the conversation in the path carry out a command; `wrapper` is what else its commit does."""
    return await call.services.directory.ask(call.project, conversation_id(call), command, wrapper)


async def post(
    call: Call[Any, Any], command: PostMessage, shown: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Answer:
    """Add a message to the conversation in the path; answers what `shown` makes of the message object."""

    def answer(receipt: Receipt) -> Mapping[str, Any]:
        assert receipt.message is not None
        return shown(receipt.message)

    identifier, directory = conversation_id(call), call.services.directory
    return answer(await directory.ask(call.project, identifier, command, call.keeping(answer, identifier)))


async def carry_out(call: Call[Any, Any], command: Asked) -> Answer:
    """As `ask`; answers the conversation as it then is."""
    return shown(await ask(call, command, call.keeping(shown)))


def shown(receipt: Receipt) -> Mapping[str, Any]:
    """The conversation that a command has left."""
    return receipt.conversation


def conversation_id(call: Call[Any, Any]) -> str:
    """The id in the path. Raises NotFound if it can't be one: no actor is made for it."""
    identifier = call.path["conversation_id"]
    if not is_id(identifier, "cnv"):
        raise no_such_conversation()
    return identifier


def find(reader: Reader, project: Project, identifier: str) -> tuple[Conversation, Contact]:
    """The stored conversation. Raises NotFound."""
    found = reader.conversation(project.rowid, identifier)
    if found is None:
        raise no_such_conversation()
    return found


async def get_conversation(call: Call[Any, Any]) -> Answer:
    """The conversation object."""
    identifier = conversation_id(call)
    state, contact = await call.services.store.read(
        Inline(lambda reader: find(reader, call.project, identifier))
    )
    return conversation_view(state, contact, call.project.id)


async def list_conversations(call: Call[Any, P], wanted: ConversationFilter) -> Answer:
    """A page of conversations, newest activity first."""
    query = call.query
    after = Page(*query.place) if query.place else None
    listed = await call.services.store.read(
        lambda reader: reader.conversations(call.project.rowid, wanted, after, query.rows)
    )
    return page(
        query,
        listed,
        lambda each: conversation_view(each.conversation, each.contact, call.project.id),
        lambda each: (each.at.activity, each.at.rowid),
    )


async def attached(
    call: Call[Any, Any], upload_ids: list[str], pointer: str
) -> tuple[tuple[Attachment, ...], list[Problem]]:
    """A message's attachments, and all that is wrong with them: unknown ones, one twice."""
    if not upload_ids:
        return (), []
    uploads = await call.services.store.read(
        Inline(lambda reader: _uploads(reader, call.project, upload_ids))
    )
    problems: list[Problem] = []
    for index, (upload_id, upload) in enumerate(zip(upload_ids, uploads, strict=True)):
        place = f"{pointer}/attachments/{index}"
        if upload is None:
            problems.append(unknown_upload(place, upload_id))
        elif upload_id in upload_ids[:index]:
            problems.append(Problem(place, "repeated", "A message has an upload once."))
    known = (upload for upload in uploads if upload is not None)
    return tuple(Attachment(each.id, each.name, each.type, each.size) for each in known), problems


def _uploads(reader: Reader, project: Project, ids: list[str]) -> list[Upload | None]:
    return [reader.upload(project.rowid, each) if is_id(each, "upl") else None for each in ids]


_BACK: Final = "before:"
"""Marks the cursor of a list that is paged backwards."""


async def list_messages(call: Call[Any, MessageList], *, internal: bool) -> Answer:
    """A page of messages, oldest first. `nextCursor` goes on in the same direction."""
    identifier, query = conversation_id(call), _from_cursor(call.query)

    def read(reader: Reader) -> Sequence[Message]:
        state, _ = find(reader, call.project, identifier)

        def place(message_id: str | None) -> int | None:
            return None if message_id is None else _place(reader, state, message_id, internal=internal)

        return reader.messages(
            state.rowid,
            internal=internal,
            after=place(query.after),
            before=place(query.before),
            limit=query.limit + 1,
        )

    found = await call.services.store.read(read)
    backwards = query.before is not None and query.after is None
    shown = found[-query.limit :] if backwards else found[: query.limit]
    more = len(found) > query.limit
    view = dashboard_message_view if internal else message_view
    show = partial(call.services.shelf.links.shown, now=call.services.clock())
    return {
        "items": [view(message, identifier, show) for message in shown],
        "nextCursor": (f"{_BACK}{shown[0].id}" if backwards else shown[-1].id) if more else None,
    }


def _from_cursor(query: MessageList) -> MessageList:
    """The query with its cursor, if it has one, in the place that it goes on from."""
    if query.cursor is None:
        return query
    if query.cursor.startswith(_BACK):
        return query.model_copy(update={"after": None, "before": query.cursor.removeprefix(_BACK)})
    return query.model_copy(update={"after": query.cursor})


def _place(reader: Reader, state: Conversation, message_id: str, *, internal: bool) -> int:
    rowid = reader.message_rowid(state.rowid, message_id, internal=internal)
    if rowid is None:
        raise NotFound(f"This conversation has no message {message_id!r}.", code="message_not_found")
    return rowid


async def list_events(call: Call[Any, SequenceList]) -> Answer:
    """The stored envelopes behind a sequence, the very bytes that were sent (decisions 4).

    Raises Gone if the first of them are no longer stored: the caller must pull the conversation anew.
    """
    identifier, limit = conversation_id(call), call.query.limit
    after = call.query.after if call.query.cursor is None else call.query.cursor

    def read(reader: Reader) -> tuple[Conversation, Sequence[bytes]]:
        state, _ = find(reader, call.project, identifier)
        return state, reader.conversation_events(state.rowid, after, limit + 1)

    state, bodies = await call.services.store.read(read)
    if state.sequence > after and not (bodies and starts_with(bodies[0], after + 1)):
        raise Gone(
            "Events behind that sequence are no longer stored; fetch the conversation and its messages."
        )
    return raw_list(bodies[:limit], str(after + limit) if len(bodies) > limit else None)


def starts_with(body: bytes, sequence: int) -> bool:
    """Whether the envelope has this sequence; `sequence` comes before `data` in it (contract 6.3.3)."""
    return f'"sequence":{sequence},'.encode() in body[: body.index(b'"data":')]


def raw_list(bodies: Sequence[bytes], next_cursor: str | None) -> RawJson:
    """A list whose items are JSON already."""
    cursor = b"null" if next_cursor is None else b'"' + next_cursor.encode() + b'"'
    return RawJson(b'{"items":[' + b",".join(bodies) + b'],"nextCursor":' + cursor + b"}")


def patch_of(body: ConversationPatch) -> Patch:
    """The command of a PATCH. Raises Invalid for a null that clears nothing, and for no field at all."""
    return Patch(given_fields(body, NULLABLE))


async def contact_key(call: Call[Any, Any], wanted: str) -> int | None:
    """The storage key of a contact by either id, ours or the backend's; None if there is none."""
    project = call.project.rowid
    by_id = is_id(wanted, "con")
    contact = await call.services.store.read(
        Inline(
            lambda reader: reader.contact_by_id(project, wanted) if by_id else reader.contact(project, wanted)
        )
    )
    return None if contact is None else contact.rowid


async def assign_of(call: Call[AssignBody, Any]) -> Assign:
    """The command of an assignment. Raises Invalid if there is no such user or team in the project."""
    wanted = call.body.assignee
    if wanted is None:
        return Assign(None)
    lookup = _member(call.project, wanted.id) if wanted.type == "user" else _team(call.project, wanted.id)
    name = await call.services.store.read(Inline(lookup))
    if name is None:
        message = f"There is no such {wanted.type} in this project."
        raise Invalid(Problem("/assignee/id", "unknown", message))
    return Assign(Assignee(wanted.type, wanted.id, name))


async def look_at_assignee(call: Call[AssignBody, Any]) -> None:
    """See `assign_of`."""
    wanted = call.body.assignee
    if wanted is not None and wanted.type is not None and wanted.id is not None:
        await assign_of(call)


def _member(project: Project, user_id: str) -> Callable[[Reader], str | None]:
    return lambda reader: reader.member_name(project.organisation, user_id)


def _team(project: Project, team_id: str) -> Callable[[Reader], str | None]:
    return lambda reader: reader.team_name(project.rowid, team_id)


async def delete_conversation(call: Call[Any, Any], command: Command) -> Answer:
    """Delete it; answers its id."""
    await ask(call, command)
    return {"id": conversation_id(call), "deleted": True}


async def get_workflow_step(call: Call[Any, Any]) -> Answer:
    """The step that is pending (contract 4.3)."""
    identifier = conversation_id(call)
    state, _ = await call.services.store.read(Inline(lambda reader: find(reader, call.project, identifier)))
    return {"step": None if state.run is None else state.run.step}


async def start_of(call: Call[StartWorkflowBody, Any]) -> StartWorkflow:
    """The command that starts a workflow.

    Raises NotFound if there is no such conversation, Invalid if there is no such workflow in the project, Conflict
    for one that starts by itself.
    """
    identifier = conversation_id(call)
    return StartWorkflow(
        await call.services.store.read(Inline(lambda reader: _startable(reader, call, identifier)))
    )


async def look_at_workflow(call: Call[StartWorkflowBody, Any]) -> None:
    """See `start_of`."""
    if call.body.workflow_id is not None:
        await start_of(call)


def _startable(reader: Reader, call: Call[StartWorkflowBody, Any], identifier: str) -> Published:
    find(reader, call.project, identifier)
    workflow = reader.workflow(call.project.rowid, call.body.workflow_id)
    if workflow is None:
        raise Invalid(Problem("/workflowId", "unknown", "There is no such workflow in this project."))
    if workflow.trigger != "manual":
        raise Conflict("This workflow starts by itself in new conversations.", code="workflow_not_manual")
    return published(reader, call.project, workflow)
