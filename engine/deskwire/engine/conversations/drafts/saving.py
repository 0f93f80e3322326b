"""Saving drafts: a write is decided and carried out in one transaction."""

from __future__ import annotations

from typing import Protocol

from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.drafts.draft import (
    DRAFT_CHARACTERS_MAX,
    DRAFTS_MAX,
    Decided,
    Draft,
    Place,
    Written,
    check_size,
    decide_draft,
)
from deskwire.engine.conversations.drafts.ports import DraftTransaction
from deskwire.engine.conversations.plan import Receipt
from deskwire.engine.conversations.writing_changes import DraftChanged
from deskwire.engine.core.errors import Conflict, Invalid
from deskwire.engine.uploads.ports import UploadTransaction
from deskwire.engine.uploads.upload import unknown_upload


class SavingTransaction(DraftTransaction, UploadTransaction, Protocol):
    """Changes of drafts, and of the uploads that they refer to."""


def place_in(state: Conversation, author: int, *, internal: bool) -> Place:
    """Return the place of an author's draft in a stored conversation."""
    return Place(author, state.project, state.rowid, state.id, internal)


def save_written(
    tx: SavingTransaction, place: Place, written: Written, at: int, *, bounded: bool = True
) -> Decided:
    """Store a new version at this time (ms), merged with one that its author has not seen.

    Args:
        bounded: whether the limits hold; words that come back from a held message are kept whatever they are.

    Raises Conflict (`draft_too_long`, `draft_limit_reached`), and Invalid for an upload that is gone.
    """
    stored = tx.claim_draft(place)
    decided = decide_draft(place, stored, written, at)
    draft = decided.draft
    if draft == stored:
        return decided
    if draft is None:
        assert stored is not None, "nothing that becomes nothing is no change"
        _remove(tx, stored)
        return decided
    if bounded:
        check_size(draft)
        _check_room(tx, stored, draft)
    _refer(tx, stored, draft)
    if stored is None:
        tx.insert_draft(draft)
    else:
        tx.save_draft(draft)
        _release(tx, stored, draft)
    tx.note_writing(DraftChanged(place.author, place.project, place.conversation_id, place.internal, draft))
    return decided


def remove_sent(tx: DraftTransaction, place: Place, version: int) -> None:
    """Remove the draft of a message that is sent or held, if it is of this version; a newer one stays."""
    stored = tx.claim_draft(place)
    if stored is not None and stored.version == version:
        _remove(tx, stored)


class DraftSent:
    """A `CommitHook` that removes the draft of a message in the message's commit; see `remove_sent`.

    Args:
        author: storage key.
        version: the one that was sent.
    """

    def __init__(self, author: int, version: int, *, internal: bool) -> None:
        self._author = author
        self._version = version
        self._internal = internal

    def before(self, tx: object) -> None:
        """Do nothing: a message that is refused leaves its draft as it is."""

    def after(self, tx: DraftTransaction, receipt: Receipt) -> None:
        """Remove the draft."""
        remove_sent(tx, place_in(receipt.after, self._author, internal=self._internal), self._version)


def _remove(tx: DraftTransaction, stored: Draft) -> None:
    place = stored.place
    tx.delete_draft(stored)
    if stored.attachments:
        tx.release_uploads(place.conversation, [each.id for each in stored.attachments])
    tx.note_writing(DraftChanged(place.author, place.project, place.conversation_id, place.internal, None))


def _refer(tx: SavingTransaction, stored: Draft | None, draft: Draft) -> None:
    """Keep the uploads of the draft. Raises Invalid if one is gone."""
    known = set() if stored is None else {each.id for each in stored.attachments}
    ids = [each.id for each in draft.attachments]
    new = [each for each in ids if each not in known]
    missing = tx.attach_uploads(draft.place.project, draft.place.conversation, new) if new else ()
    if missing:
        raise Invalid(*(unknown_upload(f"/attachments/{ids.index(each)}", each) for each in missing))


def _release(tx: DraftTransaction, stored: Draft, draft: Draft) -> None:
    gone = {each.id for each in stored.attachments} - {each.id for each in draft.attachments}
    if gone:
        tx.release_uploads(draft.place.conversation, gone)


def _check_room(tx: DraftTransaction, stored: Draft | None, draft: Draft) -> None:
    """Raise Conflict (`draft_limit_reached`) if the author has as many drafts, or as long ones, as may be."""
    grown = len(draft.text) - (0 if stored is None else len(stored.text))
    if grown <= 0 and stored is not None:
        return
    number, characters = tx.drafts_size(draft.place.author, draft.place.project)
    if (stored is None and number >= DRAFTS_MAX) or characters + grown > DRAFT_CHARACTERS_MAX:
        raise Conflict(
            f"You have {number:,} drafts with {characters:,} characters in this project; {DRAFTS_MAX:,} and "
            f"{DRAFT_CHARACTERS_MAX:,} are the most. Send or empty some first.",
            code="draft_limit_reached",
        )
