"""Drafts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import orjson

from deskwire.engine.conversations.drafts import Draft, DraftKey
from deskwire.engine.conversations.writing_changes import DraftChanged, WritingChange
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.upload import Attachment
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import IN_ORGANISATION, Changes, Queries
from deskwire.storage.tables.conversations.conversations import attachments_json
from deskwire.storage.tables.conversations.mentions import mentions_json, mentions_of

_DRAFT: Final = (
    "SELECT d.author, d.project, d.conversation, (SELECT c.id FROM conversations c WHERE c.rowid = d.conversation), d.internal, "
    "d.text, d.attachments, d.version, d.base_sequence, d.updated_at, d.rowid, d.mentions FROM drafts d"
)
_CLAIMED: Final = either(
    _DRAFT + " WHERE d.conversation = ? AND d.author = ? AND d.internal = ? {locking[d]}"
)
_KEPT: Final = (
    "SELECT attachments FROM messages WHERE conversation = ?1 AND attachments IS NOT NULL "
    "UNION ALL SELECT attachments FROM drafts WHERE conversation = ?1 AND attachments IS NOT NULL "
    "UNION ALL SELECT attachments FROM held_messages WHERE conversation = ?1 AND attachments IS NOT NULL"
)
_DETACHED: Final = "DELETE FROM attachments WHERE conversation = ? AND upload = (SELECT rowid FROM uploads WHERE id = ?) RETURNING upload"
_NO_PLACE: Final = ((1 << 63) - 1, 0)


class DraftReads(Queries):
    """See `engine.conversations.drafts.DraftReader`."""

    def drafts_in(self, author: int, conversation: int) -> Sequence[Draft]:
        rows = self.conn.execute(
            f"{_DRAFT} WHERE d.conversation = ? AND d.author = ?", (conversation, author)
        )
        return [_draft_of(row) for row in rows]

    def drafts_of(self, conversation: int) -> Sequence[Draft]:
        rows = self.conn.execute(f"{_DRAFT} WHERE d.conversation = ? ORDER BY d.rowid", (conversation,))
        return [_draft_of(row) for row in rows.fetchall()]

    def drafts(
        self, author: int, project: int, before: tuple[int, int] | None, limit: int
    ) -> Sequence[Draft]:
        rows = self.conn.execute(
            f"{_DRAFT} WHERE d.author = ? AND d.project = ? AND (d.updated_at, d.rowid) < (?, ?) "
            "ORDER BY d.updated_at DESC, d.rowid DESC LIMIT ?",
            (author, project, *(before or _NO_PLACE), limit),
        )
        return [_draft_of(row) for row in rows]

    def drafts_size(self, author: int, project: int) -> tuple[int, int]:
        row = self.conn.execute(
            "SELECT count(*), coalesce(sum(size), 0) FROM drafts WHERE author = ? AND project = ?",
            (author, project),
        ).fetchone()
        return int(row[0]), int(row[1])


class DraftWrites(Changes):
    """See `engine.conversations.drafts.DraftTransaction`."""

    writing: list[WritingChange]

    def claim_draft(self, key: DraftKey) -> Draft | None:
        row = self.conn.execute(
            _CLAIMED[self.dialect], (key.conversation, key.author, int(key.internal))
        ).fetchone()
        return None if row is None else _draft_of(row)

    def insert_draft(self, draft: Draft) -> None:
        key = draft.key
        self.inserted(
            "INSERT INTO drafts (author, project, conversation, internal, size, version, base_sequence, updated_at, attachments, "
            "mentions, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (key.author, key.project, key.conversation, int(key.internal), *_content(draft)),
        )

    def save_draft(self, draft: Draft) -> None:
        self.conn.execute(
            "UPDATE drafts SET size = ?, version = ?, base_sequence = ?, updated_at = ?, attachments = ?, mentions = ?, text = ? "
            "WHERE rowid = ?",
            (*_content(draft), draft.rowid),
        )

    def delete_draft(self, draft: Draft) -> None:
        self.conn.execute("DELETE FROM drafts WHERE rowid = ?", (draft.rowid,))

    def note_writing(self, change: WritingChange) -> None:
        self.writing.append(change)

    def forget_drafts(
        self, author: int, organisation: int | None
    ) -> Sequence[tuple[int, tuple[Attachment, ...]]]:
        """Remove a user's drafts; return the conversation and the attachments of each."""
        sql = f"DELETE FROM drafts WHERE author = ?{'' if organisation is None else IN_ORGANISATION} RETURNING conversation, attachments"
        values = (author,) if organisation is None else (author, organisation)
        return [(row[0], attachments_of(row[1])) for row in self.conn.execute(sql, values).fetchall()]

    def strip_drafts(self, conversation: int, upload_ids: Collection[str]) -> None:
        """Remove uploads that no longer exist from all drafts in a conversation, and drafts that are then empty."""
        rows = self.conn.execute(
            f"{_DRAFT} WHERE d.conversation = ? AND d.attachments IS NOT NULL", (conversation,)
        )
        for draft in [_draft_of(row) for row in rows.fetchall()]:
            left = tuple([each for each in draft.attachments if each.id not in upload_ids])
            if left == draft.attachments:
                continue
            after = (
                replace(draft, attachments=left, version=draft.version + 1) if left or draft.text else None
            )
            if after is None:
                self.delete_draft(draft)
            else:
                self.save_draft(after)
            key = draft.key
            self.note_writing(DraftChanged(key.author, key.project, key.conversation_id, key.internal, after))

    def release_uploads(self, conversation: int, upload_ids: Collection[str]) -> None:
        for upload_id in set(upload_ids) - self.referred_to_in(conversation):
            row = self.conn.execute(_DETACHED, (conversation, upload_id)).fetchone()
            if row is not None:
                self.conn.execute(
                    "UPDATE uploads SET attached = 0 WHERE rowid = ?1 "
                    "AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.upload = ?1)",
                    (row[0],),
                )

    def referred_to_in(self, conversation: int) -> set[str]:
        """Return the ids of the uploads that a conversation's messages, held messages and drafts refer to."""
        rows = self.conn.execute(_KEPT, (conversation,))
        return {each[0] for (attachments,) in rows for each in orjson.loads(attachments)}


def attachments_of(stored: str | None) -> tuple[Attachment, ...]:
    """Return the attachments in a value of `attachments_json`."""
    return () if stored is None else tuple(Attachment(*each) for each in orjson.loads(stored))


def _content(draft: Draft) -> tuple[Any, ...]:
    return (
        len(draft.text),
        draft.version,
        draft.base_sequence,
        draft.updated_at,
        attachments_json(draft.attachments),
        mentions_json(draft.mentions),
        draft.text,
    )


def _draft_of(row: Sequence[Any]) -> Draft:
    author, project, conversation, conversation_id, internal, text, attachments, *rest, mentions = row
    key = DraftKey(author, project, conversation, conversation_id, bool(internal))
    values = (text, attachments_of(attachments), *rest, mentions_of(mentions))
    return Draft(key, *values)
