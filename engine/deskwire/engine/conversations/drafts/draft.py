"""A draft: the unsent reply or note of one agent in one conversation, and the decision that a new version of it takes.

Rules (ADR 53):

- A draft is its author's own. There is one reply and one note in each conversation.
- A write names the version that its author has seen. Against a newer one it is merged, and never overwrites it.
- A draft without text and attachments is removed. A write that changes nothing makes no new version.
- Versions grow, also from one draft to the next in the same place, so that none is taken for an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from deskwire.engine.conversations.drafts.merge import merged_attachments, merged_text
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Conflict
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.links import AttachmentsView
from deskwire.engine.uploads.upload import Attachment

Mode = Literal["reply", "note"]

DRAFT_TEXT_MAX: Final = 100_000
"""Characters of a draft: five messages, as a text over the limit of a message is still kept."""

DRAFT_ATTACHMENTS_MAX: Final = 100
"""Attachments of a draft."""

DRAFTS_MAX: Final = 1_000
"""Drafts that a user may have in a project."""

DRAFT_CHARACTERS_MAX: Final = 4_000_000
"""Characters of all drafts that a user has in a project."""


class Place(Struct, frozen=True):
    """The place of a draft: its author and conversation by their storage keys, and whether it is a note.

    `conversation_id` and `project` are the conversation's.
    """

    author: int
    project: int
    conversation: int
    conversation_id: str
    internal: bool

    @property
    def mode(self) -> Mode:
        """The mode as the API has it."""
        return "note" if self.internal else "reply"


class Draft(Struct, frozen=True):
    """A draft as it is stored; `updated_at` in milliseconds, `rowid` is its storage key.

    `base_sequence` is the sequence of the conversation that its author had seen when it was begun, if that is known.
    """

    place: Place
    text: str
    attachments: tuple[Attachment, ...]
    version: int
    base_sequence: int | None
    updated_at: int
    rowid: int = 0


class Written(Struct, frozen=True):
    """A new version as its author wrote it.

    Args:
        version: the one that the author has seen, 0 for none; None if the words are added, whatever was seen.
        base_text: the text of that version, if it was sent.
    """

    text: str
    attachments: tuple[Attachment, ...]
    version: int | None
    base_text: str | None = None
    base_sequence: int | None = None

    @property
    def empty(self) -> bool:
        """True if there is nothing to keep."""
        return not self.text and not self.attachments


class Decided(Struct, frozen=True):
    """The draft after a write, None if there is none; `merged` says that a newer version was there and counts as well."""

    draft: Draft | None
    merged: bool = False


def decide_draft(place: Place, stored: Draft | None, written: Written, at: int) -> Decided:
    """Return the draft that a write at this time (ms) leads to; `stored` itself if that stays as it is."""
    if stored is not None and _same(stored, written):
        return Decided(stored)
    if stored is None or written.version == stored.version:
        return Decided(None if written.empty else _next(place, stored, written, at))
    if written.empty:
        return Decided(stored, merged=True)
    united = replace(
        written,
        text=merged_text(stored.text, written.text, written.base_text),
        attachments=merged_attachments(stored.attachments, written.attachments),
        base_sequence=_earlier(stored.base_sequence, written.base_sequence),
    )
    return Decided(stored if _same(stored, united) else _next(place, stored, united, at), merged=True)


def check_size(draft: Draft) -> None:
    """Raise Conflict (`draft_too_long`) for what a merge has made too long to be kept; nothing is cut off."""
    if len(draft.text) > DRAFT_TEXT_MAX or len(draft.attachments) > DRAFT_ATTACHMENTS_MAX:
        raise Conflict(
            f"A newer version of this draft is stored, and both together have more than {DRAFT_TEXT_MAX:,} characters or "
            f"{DRAFT_ATTACHMENTS_MAX} attachments. Nothing was changed: read the stored one, and send what you want to keep.",
            code="draft_too_long",
        )


def draft_view(draft: Draft, show: AttachmentsView) -> dict[str, Any]:
    """Return the draft as its author sees it."""
    return {
        "mode": draft.place.mode,
        "text": draft.text,
        "attachments": show(draft.attachments) if draft.attachments else [],
        "version": draft.version,
        "baseSequence": draft.base_sequence,
        "updatedAt": iso(draft.updated_at),
    }


def drafts_view(drafts: Mapping[Mode, Draft], show: AttachmentsView) -> dict[str, Any]:
    """Return the two drafts of a conversation, null for one that there is not."""
    modes: tuple[Mode, ...] = get_args(Mode)
    return {mode: draft_view(drafts[mode], show) if mode in drafts else None for mode in modes}


def _same(stored: Draft, written: Written) -> bool:
    one = (stored.text, stored.attachments, stored.base_sequence)
    return one == (written.text, written.attachments, written.base_sequence)


def _next(place: Place, stored: Draft | None, written: Written, at: int) -> Draft:
    """Return the next version. Its number is at least the time, because a removed draft leaves no number to count on from."""
    version = max(at, (written.version or 0) + 1, 0 if stored is None else stored.version + 1)
    rowid = 0 if stored is None else stored.rowid
    return Draft(place, written.text, written.attachments, version, written.base_sequence, at, rowid)


def _earlier(one: int | None, other: int | None) -> int | None:
    """Return the smaller sequence: a merged text may answer the state that the earlier part has seen."""
    known = [each for each in (one, other) if each is not None]
    return min(known, default=None)
