"""Redaction and deletion of one message, shared by the routes of agents and backends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from deskwire.engine.audit.audited_changes import rewritten
from deskwire.engine.audit.trail import AuditTransaction
from deskwire.engine.conversations.commands import DeleteMessage, RedactMessage
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.conversation import Message
from deskwire.engine.conversations.facts import MessageRewritten
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.conversations.redaction import unfit
from deskwire.engine.core.commits import CommitHook
from deskwire.engine.core.errors import Invalid, NotFound, Problem
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.idempotency.idempotent_requests import StoredResponseTransaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.resources.conversations import operations
from deskwire.http.resources.conversations.requests import RedactMessageRequest
from deskwire.http.resources.conversations.writing import FOR_CUSTOMER


class BesideTransaction(AuditTransaction, StoredResponseTransaction, Protocol):
    """Writes in the commit of a redaction besides the conversation's."""


class RewriteEffects(Struct, frozen=True):
    """A commit hook: the audit record, stored responses that show the message, and last the response to this call.

    Args:
        keeping: stores the response, if the call has an `Idempotency-Key`.
    """

    call: Call[Any, Any]
    keeping: CommitHook[Receipt] | None

    def before(self, tx: BesideTransaction) -> None:
        """Check whether the call was answered before."""
        if self.keeping is not None:
            self.keeping.before(tx)

    def after(self, tx: BesideTransaction, receipt: Receipt) -> None:
        """Delete stored responses, write the record, and store the response."""
        conversation = receipt.after
        for fact in receipt.facts:
            if isinstance(fact, MessageRewritten):
                message = fact.message
                self.call.services.answers.erase_mentions(tx, conversation.id, message.id)
                entry = rewritten(message.id, conversation.id, conversation.project, deleted=message.deleted)
                with tx.signed(self.call.origin):
                    tx.record(entry)
        if self.keeping is not None:
            self.keeping.after(tx, receipt)


async def redact(call: Call[RedactMessageRequest, Any], *, internal: bool) -> Answer:
    """Redact the message in the path, and return the rest of it; `internal` includes notes."""
    body = call.body
    if not (body.text or body.ranges or body.attachments or body.all_attachments):
        raise Invalid(Problem("", "required", "Give at least one part of the message to redact."))
    ranges = tuple((each.start, each.end) for each in body.ranges)
    command = RedactMessage(
        _message_id(call), internal, body.text, ranges, tuple(body.attachments), body.all_attachments
    )
    return await _carry_out(call, command, _message if internal else _public_message)


async def delete(call: Call[Any, Any], *, internal: bool) -> Answer:
    """Delete the message in the path; the response has its id."""
    identifier = _message_id(call)
    return await _carry_out(
        call, DeleteMessage(identifier, internal), lambda _: {"id": identifier, "deleted": True}
    )


async def _carry_out(
    call: Call[Any, Any],
    command: RedactMessage | DeleteMessage,
    shown: Callable[[Receipt], Mapping[str, Any]],
) -> Answer:
    keeping: CommitHook[Receipt] | None = call.keeping(shown, operations.conversation_id(call))
    return shown(await operations.ask(call, command, RewriteEffects(call, keeping)))


def _message(receipt: Receipt) -> Mapping[str, Any]:
    assert receipt.message is not None, "the command changes a message"
    return receipt.message


def _public_message(receipt: Receipt) -> Mapping[str, Any]:
    return {name: value for name, value in _message(receipt).items() if name not in FOR_CUSTOMER}


def _message_id(call: Call[Any, Any]) -> str:
    """Return the id in the path. Raises NotFound for a malformed id."""
    identifier = call.path["message_id"]
    if not is_id(identifier, "msg"):
        raise NotFound(f"This conversation has no message {identifier!r}.", code="message_not_found")
    return identifier


def precheck(*, internal: bool) -> Callable[[Call[RedactMessageRequest, Any]], Any]:
    """Return a precheck (`Precheck`) of the ranges and attachments."""

    async def check(call: Call[RedactMessageRequest, Any]) -> None:
        body = call.body
        message = await call.services.store.read(InlineQuery(lambda reader: _found(reader, call, internal)))
        ranges = [] if body.ranges is None else [(each.start, each.end) for each in body.ranges]
        problems = [] if message is None else unfit(message, ranges, body.attachments or ())
        if problems:
            raise Invalid(*problems)

    return check


def _found(reader: ConversationReader, call: Call[Any, Any], internal: bool) -> Message | None:
    state, _ = operations.find(reader, call.project, operations.conversation_id(call))
    return reader.message(state.rowid, _message_id(call), internal=internal)
