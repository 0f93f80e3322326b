"""Holding messages and taking them back, each in one transaction."""

from __future__ import annotations

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.conversation import no_such_conversation
from deskwire.engine.conversations.drafts.draft import Draft, Written
from deskwire.engine.conversations.drafts.saving import place_in, remove_sent, save_written
from deskwire.engine.conversations.held.held import (
    HELD_MAX,
    HeldMessage,
    already_sent,
    no_such_held_message,
    too_many_held,
)
from deskwire.engine.conversations.held.ports import HoldingTransaction
from deskwire.engine.conversations.writing_changes import HeldEnded, MessageHeld
from deskwire.engine.core.errors import Invalid
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.upload import unknown_upload


def hold(
    tx: HoldingTransaction, project: Project, message: HeldMessage, draft_version: int | None
) -> HeldMessage:
    """Store a message that is to be sent later; return it as it is stored.

    Args:
        draft_version: the version of the draft that it was made of, which goes with this commit; None to leave the draft.

    Raises NotFound (`conversation_not_found`), Conflict (`held_message_limit_reached`), and Invalid for an upload that is gone.
    """
    found = tx.conversation(project.rowid, message.conversation_id)
    if found is None:
        raise no_such_conversation()
    number = tx.count_held(message.author, project.rowid)
    if number >= HELD_MAX:
        raise too_many_held(number)
    state = found[0]
    held = replace(message, conversation=state.rowid)
    ids = [each.id for each in held.attachments]
    missing = tx.attach_uploads(project.rowid, state.rowid, ids) if ids else ()
    if missing:
        raise Invalid(*(unknown_upload(f"/attachments/{ids.index(each)}", each) for each in missing))
    tx.insert_held(held)
    if draft_version is not None:
        remove_sent(tx, place_in(state, held.author, internal=held.internal), draft_version)
    tx.note_writing(MessageHeld(held.author, held.project, held.conversation_id, held))
    return held


def take_back(
    tx: HoldingTransaction, project: Project, author: tuple[int, str], message_id: str, at: int
) -> Draft:
    """Remove a held message, and put its words and attachments into its author's draft; return that.

    Args:
        author: storage key and id of the user who asks.
        at: the time, in milliseconds.

    Raises NotFound (`held_message_not_found`), and Conflict (`already_sent`).
    """
    held = tx.claim_held(project.rowid, message_id)
    if held is None or held.author != author[0]:
        if tx.message_by(project.rowid, author[1], message_id) is not None:
            raise already_sent()
        raise no_such_held_message()
    found = tx.conversation(project.rowid, held.conversation_id)
    assert found is not None, "a held message goes with its conversation"
    tx.delete_held(held)
    written = Written(held.text, held.attachments, None, None, held.if_sequence)
    place = place_in(found[0], held.author, internal=held.internal)
    draft = save_written(tx, place, written, at, bounded=False).draft
    assert draft is not None, "a message says something"
    tx.note_writing(HeldEnded(held.author, held.project, held.conversation_id, held.id, "taken_back", None))
    return draft
