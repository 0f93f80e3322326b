"""The rows of a batch, and its events if they are wanted.

Without events a conversation keeps its sequence, 0 for a new one: its next event has number 1, as of every other. One event
beyond the contract names what the batch has stored, for exports and for those who name its type. With
events, these are ordinary ones: `conversation.created` shows the conversation as it was imported, and each message that
the customer may see is a `message.created`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.events import public_events
from deskwire.engine.conversations.facts import Created, MessagePosted
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import conversations_imported
from deskwire.engine.events.types import EventDraft
from deskwire.engine.importing.ports import ConversationMark, ImportBatchTransaction, MessageMark, MessageRow
from deskwire.engine.importing.thread import Addition, ConversationImport, milestones, with_messages
from deskwire.engine.uploads.links import AttachmentsView
from deskwire.engine.webhooks.publish import publish_event, publish_extension, recipients


def store_silently(
    tx: ImportBatchTransaction, project: Project, threads: Sequence[ConversationImport], at: int
) -> None:
    """Store the conversations without their own events; emit one `conversations.imported` event for the batch."""
    for thread in threads:
        thread.state = with_messages(thread.state, [addition.record for addition in thread.additions])
    _store(tx, project, threads)
    imported = [_imported(thread) for thread in threads if thread.before is None or thread.shown]
    if imported:
        publish_extension(tx, project, conversations_imported(imported), None, at, lane=None)


def _imported(thread: ConversationImport) -> Mapping[str, Any]:
    """Return the entry of a conversation in `conversations.imported`; notes are left out."""
    shown = [addition.id for addition in thread.additions if not addition.record.internal]
    return {
        "id": thread.state.id,
        "sequence": thread.state.sequence,
        "messages": thread.state.messages,
        "imported": len(shown),
        "firstMessageId": shown[0] if shown else None,
    }


def store_with_events(
    tx: ImportBatchTransaction,
    project: Project,
    threads: Sequence[ConversationImport],
    at: int,
    show: AttachmentsView,
) -> None:
    """Store the conversations with their events and deliveries.

    Args:
        show: gives attachments their URLs.
    """
    drafts = [(thread, list(_drafts(thread, project, show))) for thread in threads]
    plan = [
        (thread, draft, recipients(tx.routed_endpoints(project.rowid), draft, thread.routed))
        for thread, of_thread in drafts
        for draft in of_thread
    ]
    _store(tx, project, threads)
    for thread, draft, endpoints in plan:
        publish_event(tx, project, draft, thread.state.rowid, endpoints, at, lane=thread.state.rowid)


def _drafts(thread: ConversationImport, project: Project, show: AttachmentsView) -> Iterator[EventDraft]:
    """Yield the events of a conversation, and advance its state with each."""
    if thread.before is None:
        thread.state = replace(thread.state, sequence=1)
        yield from public_events(Created(thread.state), thread.state, thread.contact, project.id, (), show)
    for place, addition in enumerate(thread.additions):
        state = with_messages(thread.state, [addition.record])
        posted, sequence = MessagePosted(addition.message()), state.sequence + (not addition.record.internal)
        is_turn = not addition.record.internal and addition.record.author_type != "system"
        turn = sequence if is_turn else state.last_turn
        thread.state = state = replace(state, sequence=sequence, last_turn=turn)
        if not addition.record.internal:
            thread.additions[place] = addition._replace(sequence=sequence)
        yield from public_events(posted, state, thread.contact, project.id, (), show)


def _store(tx: ImportBatchTransaction, project: Project, threads: Sequence[ConversationImport]) -> None:
    messages: list[MessageRow] = []
    marks: list[MessageMark] = []
    begun: list[ConversationMark] = []
    for thread in threads:
        if thread.before is None:
            thread.state = tx.insert_conversation(thread.state, thread.contact.rowid, thread.routed)
            mark = (project.rowid, thread.external_id, thread.state.rowid, thread.fingerprint)
            begun.append(ConversationMark(*mark))
            if thread.state.client_id is not None:
                tx.insert_conversation_client_id(thread.contact.rowid, thread.state.client_id, thread.state)
        else:
            tx.save_conversation(thread.before, thread.state, thread.routed)
        key = thread.state.rowid
        for addition in thread.additions:
            messages.append(_row(key, addition))
            marks.append(MessageMark(key, addition.record.external_id, addition.fingerprint, addition.id))
    tx.insert_imported(messages, marks, begun)
    for thread in threads:
        _attach(tx, thread)
        for milestone in milestones(thread):
            tx.put_milestone(thread.state, milestone)


def _row(conversation: int, addition: Addition) -> MessageRow:
    record = addition.record
    return MessageRow(
        addition.id,
        conversation,
        addition.number,
        record.author_type,
        addition.author_id,
        addition.author_name,
        record.text,
        record.internal,
        record.created_at,
        addition.attachments or None,
        addition.sequence,
        record.client_id,
        record.format,
    )


def _attach(tx: ImportBatchTransaction, thread: ConversationImport) -> None:
    """Attach the uploads of the messages; this transaction has checked that they exist."""
    ids = {attachment.id for addition in thread.additions for attachment in addition.attachments}
    if ids:
        missing = tx.attach_uploads(thread.state.project, thread.state.rowid, ids)
        assert not missing, "an upload can't disappear while its message is being stored"
