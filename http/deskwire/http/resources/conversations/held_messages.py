"""Held messages of the signed-in agent: listed, taken back, and sent early (ADR 53)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deskwire.engine.conversations.conversation import Message
from deskwire.engine.conversations.drafts import draft_view
from deskwire.engine.conversations.events import dashboard_message_view
from deskwire.engine.conversations.held_messages import (
    HeldMessage,
    held_view,
    no_such_held_message,
    take_back,
)
from deskwire.engine.conversations.held_sending import HeldSent, PreparedSend, prepare_send, send_held
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import InlineJob
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes
from deskwire.http.resources.conversations import operations
from deskwire.http.resources.conversations.drafts import OWN, UNRECORDED, WRITING, shown
from deskwire.http.resources.conversations.requests import IfSequence
from deskwire.http.resources.conversations.writing import FOR_CUSTOMER
from deskwire.http.schemas import conversations, writing
from deskwire.http.schemas.base import page_of

routes = Routes(WRITING, OWN, unrecorded=UNRECORDED)
_ONE = "/held-messages/<held_message_id>"


class TakeBackQuery(Query):
    """The parameter `discard` deletes the text and the attachments, and leaves your draft as it is."""

    discard: bool = False


class SendHeldMessageRequest(Body):
    """The precondition for sending now: with `ifSequence`, the message is refused if the conversation has newer messages or was closed.

    It replaces the precondition of the held message.
    """

    if_sequence: IfSequence | None = None


@routes.add(
    "GET",
    "/conversations/<conversation_id>/held-messages",
    operation_id="listHeldMessagesOfConversation",
    answer=page_of(writing.HeldMessage),
)
async def list_of_conversation(call: Call[Body, Query]) -> Answer:
    """List your held messages in a conversation, oldest first."""
    identifier = operations.conversation_id(call)

    def read(reader: Reader) -> Sequence[HeldMessage]:
        state, _ = operations.find(reader, call.project, identifier)
        return reader.held_messages(call.user.rowid, call.project.rowid, state.rowid)

    return _listed(call, await call.services.store.read(read))


@routes.add("GET", "/held-messages", operation_id="listHeldMessages", answer=page_of(writing.HeldMessage))
async def list_held(call: Call[Body, Query]) -> Answer:
    """List your held and scheduled messages in a project, oldest first: at most 100 of each, so there is one page."""
    author, project = call.user.rowid, call.project.rowid
    return _listed(
        call, await call.services.store.read(lambda reader: reader.held_messages(author, project, None))
    )


@routes.add(
    "DELETE",
    _ONE,
    operation_id="takeBackMessage",
    query=TakeBackQuery,
    answer=writing.WithdrawnMessage,
    errors=("already_sent",),
)
async def take_back_message(call: Call[Body, TakeBackQuery]) -> Answer:
    """Take a held message back: it is not sent, and its text and attachments return to your draft, unless you `discard` them."""
    message_id, now, discard = _message_id(call), call.services.clock(), call.query.discard

    def job(tx: Transaction) -> dict[str, Any]:
        author = (call.user.rowid, call.user.id)
        draft = take_back(tx, call.project, author, message_id, now, discard=discard)
        return {"id": message_id, "deleted": True, "draft": draft and draft_view(draft, shown(call))}

    return await call.services.store.write(InlineJob(job))


@routes.add(
    "POST",
    f"{_ONE}/send",
    operation_id="sendHeldMessage",
    body=SendHeldMessageRequest,
    answer=conversations.AgentMessage,
    errors=("attachment_gone", "conversation_closed", "conversation_moved_on"),
)
async def send_held_message(call: Call[SendHeldMessageRequest, Query]) -> Answer:
    """Send a held message now, also a refused one. A message that was already sent is returned unchanged."""
    message_id = _message_id(call)
    try:
        made = await call.services.store.read(lambda reader: _ready(reader, call, message_id))
        if isinstance(made, PreparedSend):
            receipt = await send_held(call.services.actors, made, HeldSent(made, refused=True))
            assert receipt.message is not None, "the command posts a message"
            return {**receipt.message, **({} if made.held.internal else FOR_CUSTOMER)}
    except NotFound:  # the timer has just sent it
        made = await call.services.store.read(lambda reader: _sent(reader, call, message_id))
    return made


def _ready(
    reader: Reader, call: Call[SendHeldMessageRequest, Any], message_id: str
) -> PreparedSend | Mapping[str, Any]:
    """Return the prepared message, or the message if it was already sent. Raises NotFound, and Invalid like `prepare_send`."""
    held = reader.held_message(call.project.rowid, message_id)
    if held is None:
        return _sent(reader, call, message_id)
    if held.author != call.user.rowid:
        raise no_such_held_message()
    return prepare_send(reader, held, call.services.clock(), if_sequence=call.body.if_sequence)


def _sent(reader: Reader, call: Call[Any, Any], message_id: str) -> Mapping[str, Any]:
    """Return the sent message. Raises NotFound if the user has sent none with this id."""
    found: tuple[str, Message] | None = reader.message_by(call.project.rowid, call.user.id, message_id)
    if found is None:
        raise no_such_held_message()
    return dashboard_message_view(found[1], found[0], shown(call))


def _message_id(call: Call[Any, Any]) -> str:
    """Return the id in the path. Raises NotFound for a malformed id."""
    message_id = call.path["held_message_id"]
    if not is_id(message_id, "msg"):
        raise no_such_held_message()
    return message_id


def _listed(call: Call[Any, Any], held: Sequence[HeldMessage]) -> Answer:
    show = shown(call)
    return {"items": [held_view(each, show) for each in held], "nextCursor": None}
