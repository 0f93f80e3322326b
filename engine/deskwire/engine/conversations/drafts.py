"""Drafts: the unsent reply and note of each agent in each conversation, and the merge of concurrent writes (ADR 53).

- A draft is private to its author. There is one reply and one note in each conversation.
- A write names the version that its author has seen. If a newer version is stored, the write is merged into it and
  never overwrites it.
- A draft without text and attachments is removed. A write that changes nothing makes no new version.
- Versions grow, also from one draft to the next with the same key, so that a page can't mistake one for an earlier one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, get_args

from msgspec import Struct

from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.conversation import Conversation, Mention
from deskwire.engine.conversations.draft_merge import merged_attachments, merged_text
from deskwire.engine.conversations.mentions import mention_view
from deskwire.engine.conversations.writing_changes import DraftChanged, WritingChange
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Conflict, Invalid
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.links import AttachmentsView
from deskwire.engine.uploads.ports import UploadTransaction
from deskwire.engine.uploads.upload import Attachment, unknown_upload

DraftMode = Literal["reply", "note"]

DRAFT_TEXT_MAX: Final = 100_000
"""Characters of a draft: five times those of a message, so that a text that is too long to send is kept."""

DRAFT_ATTACHMENTS_MAX: Final = 100
"""Attachments of a draft."""

DRAFT_MENTIONS_MAX: Final = 100
"""Users and teams that the note of a draft mentions."""

DRAFTS_MAX: Final = 1_000
"""Drafts that a user may have in a project."""

DRAFT_CHARACTERS_MAX: Final = 4_000_000
"""Characters of all drafts that a user has in a project."""


class DraftKey(Struct, frozen=True):
    """The key of a draft: the storage keys of author, project and conversation, and whether it is a note."""

    author: int
    project: int
    conversation: int
    conversation_id: str
    internal: bool

    @property
    def mode(self) -> DraftMode:
        """The mode in the API."""
        return "note" if self.internal else "reply"


class Draft(Struct, frozen=True):
    """A stored draft.

    Args:
        base_sequence: the conversation's sequence that the author had seen on starting the draft, if known.
        updated_at: milliseconds.
        rowid: the storage key.
        mentions: the users and teams that the author has picked for the note, with the names that the text has.
    """

    key: DraftKey
    text: str
    attachments: tuple[Attachment, ...]
    version: int
    base_sequence: int | None
    updated_at: int
    rowid: int = 0
    mentions: tuple[Mention, ...] = ()


class DraftWrite(Struct, frozen=True):
    """A new version, as its author wrote it.

    Args:
        version: the version that the author has seen, 0 for none; None to merge with any version.
        base_text: the text of that version, if the client sent it.
    """

    text: str
    attachments: tuple[Attachment, ...]
    version: int | None
    base_text: str | None = None
    base_sequence: int | None = None
    mentions: tuple[Mention, ...] = ()

    @property
    def empty(self) -> bool:
        """True without text and attachments."""
        return not self.text and not self.attachments


class DraftDecision(Struct, frozen=True):
    """The draft after a write, None if it is removed; `merged` is True if a newer version was stored."""

    draft: Draft | None
    merged: bool = False


def decide_draft(key: DraftKey, stored: Draft | None, written: DraftWrite, at: int) -> DraftDecision:
    """Return the draft after a write at this time (ms); `stored` itself if the write changes nothing."""
    if stored is not None and _same(stored, written):
        return DraftDecision(stored)
    if stored is None or written.version == stored.version:
        return DraftDecision(None if written.empty else _next(key, stored, written, at))
    if written.empty:
        return DraftDecision(stored, merged=True)
    united = replace(
        written,
        text=merged_text(stored.text, written.text, written.base_text),
        attachments=merged_attachments(stored.attachments, written.attachments),
        base_sequence=_earlier(stored.base_sequence, written.base_sequence),
        mentions=_united(stored.mentions, written.mentions),
    )
    return DraftDecision(stored if _same(stored, united) else _next(key, stored, united, at), merged=True)


def check_size(draft: Draft) -> None:
    """Raise Conflict (`draft_too_long`) if a merged draft is too long to store."""
    if len(draft.text) > DRAFT_TEXT_MAX or len(draft.attachments) > DRAFT_ATTACHMENTS_MAX:
        raise Conflict(
            f"A newer version of this draft is stored, and both together have more than {DRAFT_TEXT_MAX:,} characters or "
            f"{DRAFT_ATTACHMENTS_MAX} attachments. Nothing was changed: read the stored one, and send what you want to keep.",
            code="draft_too_long",
        )


def draft_view(draft: Draft, show: AttachmentsView) -> dict[str, Any]:
    """Return the draft as its author sees it."""
    return {
        "mode": draft.key.mode,
        "text": draft.text,
        "attachments": show(draft.attachments) if draft.attachments else [],
        "version": draft.version,
        "baseSequence": draft.base_sequence,
        "mentions": [mention_view(each) for each in draft.mentions],
        "updatedAt": iso(draft.updated_at),
    }


def drafts_view(drafts: Mapping[DraftMode, Draft], show: AttachmentsView) -> dict[str, Any]:
    """Return the two drafts of a conversation, null for one that does not exist."""
    modes: tuple[DraftMode, ...] = get_args(DraftMode)
    return {mode: draft_view(drafts[mode], show) if mode in drafts else None for mode in modes}


def _same(stored: Draft, written: DraftWrite) -> bool:
    one = (stored.text, stored.attachments, stored.base_sequence, stored.mentions)
    return one == (written.text, written.attachments, written.base_sequence, written.mentions)


def _next(key: DraftKey, stored: Draft | None, written: DraftWrite, at: int) -> Draft:
    """Return the next version. Its number is at least the time, because a removed draft leaves no number to continue from."""
    version = max(at, (written.version or 0) + 1, 0 if stored is None else stored.version + 1)
    rowid = 0 if stored is None else stored.rowid
    return Draft(
        key, written.text, written.attachments, version, written.base_sequence, at, rowid, written.mentions
    )


def _united(stored: Sequence[Mention], written: Sequence[Mention]) -> tuple[Mention, ...]:
    """Return the mentions of both versions, each once; their author removes the ones that the text no longer has."""
    return tuple({(each.id, each.name): each for each in (*stored, *written)}.values())[-DRAFT_MENTIONS_MAX:]


def _earlier(one: int | None, other: int | None) -> int | None:
    """Return the smaller sequence, because the older part of a merged text may answer an older state."""
    known = [each for each in (one, other) if each is not None]
    return min(known, default=None)


class DraftReader(Protocol):
    """Queries on drafts. Authors, projects and conversations are storage keys."""

    def drafts_in(self, author: int, conversation: int) -> Sequence[Draft]:
        """Return a user's drafts in a conversation, at most two."""

    def drafts_of(self, conversation: int) -> Sequence[Draft]:
        """Return all users' drafts in a conversation."""

    def drafts(
        self, author: int, project: int, before: tuple[int, int] | None, limit: int
    ) -> Sequence[Draft]:
        """Return a user's drafts in a project, the newest first, after this time (ms) and storage key."""

    def drafts_size(self, author: int, project: int) -> tuple[int, int]:
        """Return the number of a user's drafts in a project, and of their characters."""


class DraftTransaction(DraftReader, Protocol):
    """Changes of drafts."""

    def claim_draft(self, key: DraftKey) -> Draft | None:
        """Return the draft with this key, locked against other nodes until this commit."""

    def insert_draft(self, draft: Draft) -> None:
        """Store a new draft."""

    def save_draft(self, draft: Draft) -> None:
        """Store the next version of a draft."""

    def delete_draft(self, draft: Draft) -> None:
        """Remove a draft."""

    def release_uploads(self, conversation: int, upload_ids: Collection[str]) -> None:
        """Remove a conversation's references to uploads that none of its messages, held messages and drafts has.

        An upload without references expires like one that was never attached.
        """

    def note_writing(self, change: WritingChange) -> None:
        """Notify the author's pages of a changed draft or held message once this is committed."""


class SavingTransaction(DraftTransaction, UploadTransaction, Protocol):
    """Changes of drafts, and of the uploads that they refer to."""


def draft_key(state: Conversation, author: int, *, internal: bool) -> DraftKey:
    """Return the key of an author's draft in a stored conversation."""
    return DraftKey(author, state.project, state.rowid, state.id, internal)


def write_draft(
    tx: SavingTransaction, key: DraftKey, written: DraftWrite, at: int, *, bounded: bool = True
) -> DraftDecision:
    """Store a new version at this time (ms), merged with a stored version that its author has not seen.

    Args:
        bounded: whether the limits apply; they do not to the text of a held message that is taken back.

    Raises Conflict (`draft_too_long`, `draft_limit_reached`), and Invalid for an upload that is gone.
    """
    stored = tx.claim_draft(key)
    decided = decide_draft(key, stored, written, at)
    draft = decided.draft
    if draft == stored:
        return decided
    if draft is None:
        assert stored is not None, "without a draft before and after, nothing has changed"
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
    tx.note_writing(DraftChanged(key.author, key.project, key.conversation_id, key.internal, draft))
    return decided


def remove_draft_version(tx: DraftTransaction, key: DraftKey, version: int) -> None:
    """Remove the draft of a message that is sent or held, unless a newer version is stored."""
    stored = tx.claim_draft(key)
    if stored is not None and stored.version == version:
        _remove(tx, stored)


class DraftSent:
    """A `CommitHook` that removes the draft of a message in the message's commit; see `remove_draft_version`.

    Args:
        author: storage key.
        version: the version that was sent.
    """

    def __init__(self, author: int, version: int, *, internal: bool) -> None:
        self._author = author
        self._version = version
        self._internal = internal

    def before(self, tx: object) -> None:
        """Do nothing: a message that is refused leaves its draft as it is."""

    def after(self, tx: DraftTransaction, receipt: Receipt) -> None:
        """Remove the draft."""
        remove_draft_version(
            tx, draft_key(receipt.after, self._author, internal=self._internal), self._version
        )


def _remove(tx: DraftTransaction, stored: Draft) -> None:
    key = stored.key
    tx.delete_draft(stored)
    if stored.attachments:
        tx.release_uploads(key.conversation, [each.id for each in stored.attachments])
    tx.note_writing(DraftChanged(key.author, key.project, key.conversation_id, key.internal, None))


def _refer(tx: SavingTransaction, stored: Draft | None, draft: Draft) -> None:
    """Store references to the draft's uploads. Raises Invalid if one no longer exists."""
    known = set() if stored is None else {each.id for each in stored.attachments}
    ids = [each.id for each in draft.attachments]
    new = [each for each in ids if each not in known]
    missing = tx.attach_uploads(draft.key.project, draft.key.conversation, new) if new else ()
    if missing:
        raise Invalid(*(unknown_upload(f"/attachments/{ids.index(each)}", each) for each in missing))


def _release(tx: DraftTransaction, stored: Draft, draft: Draft) -> None:
    gone = {each.id for each in stored.attachments} - {each.id for each in draft.attachments}
    if gone:
        tx.release_uploads(draft.key.conversation, gone)


def _check_room(tx: DraftTransaction, stored: Draft | None, draft: Draft) -> None:
    """Raise Conflict (`draft_limit_reached`) if the author has too many drafts, or too many characters in them."""
    grown = len(draft.text) - (0 if stored is None else len(stored.text))
    if grown <= 0 and stored is not None:
        return
    number, characters = tx.drafts_size(draft.key.author, draft.key.project)
    if (stored is None and number >= DRAFTS_MAX) or characters + grown > DRAFT_CHARACTERS_MAX:
        raise Conflict(
            f"You have {number:,} drafts with {characters:,} characters in this project; {DRAFTS_MAX:,} and "
            f"{DRAFT_CHARACTERS_MAX:,} are the most. Send or empty some first.",
            code="draft_limit_reached",
        )
