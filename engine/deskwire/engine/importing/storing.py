"""The rows of a batch, and if they are wanted its events.

Without events a conversation's sequence stays what it was, 0 for a new one: what happens to it from now on begins with 1, as
with every other. With events they are ordinary ones: `conversation.created` shows it as it was brought in, and each message
that the customer may see is a `message.created`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.emit import announce
from deskwire.engine.conversations.facts import Created, MessagePosted
from deskwire.engine.core.record import changed
from deskwire.engine.events.types import Draft
from deskwire.engine.importing.ports import BatchTransaction, ConversationMark, MessageMark, MessageRow
from deskwire.engine.importing.thread import Addition, Thread, with_messages
from deskwire.engine.uploads.links import Shown
from deskwire.engine.webhooks.publish import append, targets


def store_silently(tx: BatchTransaction, project: Project, threads: Sequence[Thread]) -> None:
    """Store what the threads say, and tell nobody."""
    for thread in threads:
        thread.state = with_messages(thread.state, [each.record for each in thread.additions])
    _store(tx, project, threads)


def store_with_events(
    tx: BatchTransaction, project: Project, threads: Sequence[Thread], at: int, show: Shown
) -> None:
    """Store what the threads say with its events and their deliveries.

    Args:
        show: gives attachments their URLs.
    """
    drafts = [(thread, list(_drafts(thread, project, show))) for thread in threads]
    plan = [
        (thread, draft, targets(tx, project, draft, thread.routed))
        for thread, each in drafts
        for draft in each
    ]
    _store(tx, project, threads)
    for thread, draft, found in plan:
        append(tx, project, draft, thread.state.rowid, found, at, lane=thread.state.rowid)


def _drafts(thread: Thread, project: Project, show: Shown) -> Iterator[Draft]:
    """The events of a thread, whose state moves on with them."""
    if thread.before is None:
        thread.state = changed(thread.state, sequence=1)
        yield from announce(Created(thread.state), thread.state, thread.contact, project.id, (), show)
    for each in thread.additions:
        state = with_messages(thread.state, [each.record])
        thread.state = state = changed(state, sequence=state.sequence + (not each.record.internal))
        yield from announce(MessagePosted(each.message()), state, thread.contact, project.id, (), show)


def _store(tx: BatchTransaction, project: Project, threads: Sequence[Thread]) -> None:
    messages: list[MessageRow] = []
    marks: list[MessageMark] = []
    begun: list[ConversationMark] = []
    for thread in threads:
        if thread.before is None:
            thread.state = tx.insert_conversation(thread.state, thread.contact.rowid, thread.routed)
            mark = (project.rowid, thread.external_id, thread.state.rowid, thread.fingerprint)
            begun.append(ConversationMark(*mark))
        else:
            tx.save_conversation(thread.before, thread.state, thread.routed)
        key = thread.state.rowid
        for each in thread.additions:
            messages.append(_row(key, each))
            marks.append(MessageMark(key, each.record.external_id, each.fingerprint))
    tx.insert_imported(messages, marks, begun)
    for thread in threads:
        _attach(tx, thread)


def _row(conversation: int, added: Addition) -> MessageRow:
    record = added.record
    return MessageRow(
        added.id,
        conversation,
        added.number,
        record.author_type,
        added.author_id,
        added.author_name,
        record.text,
        record.internal,
        record.created_at,
        added.attachments or None,
    )


def _attach(tx: BatchTransaction, thread: Thread) -> None:
    """Note which uploads the messages refer to; that they are there was seen in this very transaction."""
    ids = {each.id for added in thread.additions for each in added.attachments}
    if ids:
        missing = tx.attach_uploads(thread.state.project, thread.state.rowid, ids)
        assert not missing, "an upload can't go while its message is being stored"
