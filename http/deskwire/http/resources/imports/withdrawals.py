"""Applies deletions and redactions of the original service to imported objects, one by one (ADR 30)."""

from __future__ import annotations

from typing import Any, Literal

from deskwire.engine.conversations.commands import Delete
from deskwire.engine.core.errors import Conflict, NotFound, Problem
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.importing.records import DeletionRecord, MessageRecord
from deskwire.engine.importing.withdrawals import (
    UnlessWrittenHere,
    Withdrawn,
    deletion_of,
    find_pieces,
    find_withdrawn,
    redaction_of,
)
from deskwire.engine.ports import Reader
from deskwire.http.api.calls import Call
from deskwire.http.resources.conversations.operations import actor_of
from deskwire.http.resources.conversations.rewriting import RewriteEffects

Result = Literal["done", "nothing"] | Problem
"""The result of a withdrawal: done, nothing to do, or the reason for a refusal."""


async def withdraw(call: Call[Any, Any], record: DeletionRecord | MessageRecord) -> Result:
    """Delete or redact the imported object of a record, with all its pieces. Raises Unavailable."""
    results = [await _withdraw(call, record)]
    if isinstance(record, DeletionRecord) and record.message is not None and record.pieces:
        project, conversation, message = call.project.rowid, record.conversation, record.message
        pieces = await call.services.store.read(
            InlineQuery(lambda reader: find_pieces(reader, project, conversation, message))
        )
        results += [await _withdraw(call, record._replace(message=piece)) for piece in pieces]
    problem = next((each for each in results if isinstance(each, Problem)), None)
    return problem or ("done" if "done" in results else "nothing")


async def _withdraw(call: Call[Any, Any], record: DeletionRecord | MessageRecord) -> Result:
    """Delete or redact one conversation or message."""
    permission = "conversations.delete" if isinstance(record, DeletionRecord) else "conversations.manage"
    if permission not in call.access.permissions:
        return Problem("/type", "permission_denied", f"This line needs the permission {permission}.")
    message = record.message if isinstance(record, DeletionRecord) else record.external_id
    project, conversation = call.project.rowid, record.conversation

    def find(reader: Reader) -> Withdrawn | Problem | None:
        return find_withdrawn(reader, project, conversation, message)

    found = await call.services.store.read(InlineQuery(find))
    if not isinstance(found, Withdrawn):
        return "nothing" if found is None else found
    try:
        return await _carry_out(call, record, found)
    except NotFound:  # another call has deleted the conversation
        return "nothing"
    except Conflict as refusal:
        return Problem("/conversation", refusal.code, str(refusal))


async def _carry_out(
    call: Call[Any, Any], record: DeletionRecord | MessageRecord, found: Withdrawn
) -> Result:
    ask, by = call.services.actors.ask, actor_of(call)
    if found.message is None:
        await ask(
            call.project, found.conversation_id, Delete("manual"), UnlessWrittenHere(found.conversation), by
        )
        return "done"
    if isinstance(record, DeletionRecord):
        command: Any = deletion_of(found.message)
    else:
        command = redaction_of(found.message, record)
    receipt = await ask(call.project, found.conversation_id, command, RewriteEffects(call, None), by)
    return "done" if receipt.facts else "nothing"
