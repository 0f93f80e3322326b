"""The queries and changes of a store that drafts need."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from deskwire.engine.conversations.drafts.draft import Draft, Place
from deskwire.engine.conversations.writing_changes import WritingChange


class DraftReader(Protocol):
    """Queries on drafts. Authors, projects and conversations are given by their storage keys."""

    def drafts_in(self, author: int, conversation: int) -> Sequence[Draft]:
        """Return a user's drafts in a conversation: one, two or none."""

    def drafts(
        self, author: int, project: int, before: tuple[int, int] | None, limit: int
    ) -> Sequence[Draft]:
        """Return a user's drafts in a project, the newest first, after this time (ms) and storage key."""

    def drafts_size(self, author: int, project: int) -> tuple[int, int]:
        """Return the number of a user's drafts in a project, and of their characters."""


class DraftTransaction(DraftReader, Protocol):
    """Changes of drafts."""

    def claim_draft(self, place: Place) -> Draft | None:
        """Return the draft in this place, which no other node changes until this commit."""

    def insert_draft(self, draft: Draft) -> None:
        """Store a new draft."""

    def save_draft(self, draft: Draft) -> None:
        """Store the next version of a draft."""

    def delete_draft(self, draft: Draft) -> None:
        """Remove a draft."""

    def release_uploads(self, conversation: int, upload_ids: Collection[str]) -> None:
        """Remove a conversation's references to those uploads that none of its messages, held messages and drafts has.

        An upload without references expires like one that was never attached.
        """

    def note_writing(self, change: WritingChange) -> None:
        """Notify the author's pages of a changed draft or held message once this is committed."""
