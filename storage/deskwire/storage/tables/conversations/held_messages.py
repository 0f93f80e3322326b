"""Held messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import orjson

from deskwire.engine.conversations.conversation import Message
from deskwire.engine.conversations.held_messages import ATTACHMENT_GONE, HeldMessage, SendRefusal
from deskwire.engine.conversations.writing_changes import HeldEnded
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.upload import Attachment
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import IN_ORGANISATION, Queries
from deskwire.storage.tables.conversations.conversations import MESSAGE, attachments_json, message_of
from deskwire.storage.tables.conversations.drafts import DraftWrites, attachments_of
from deskwire.storage.tables.conversations.mentions import mentions_json, mentions_of

_HELD: Final = (
    "SELECT h.id, h.project, h.conversation, c.id, h.author, u.id, u.name, h.internal, h.text, h.attachments, "
    "h.if_sequence, h.follow, h.send_at, h.created_at, h.problem, h.rowid, h.format, h.mentions, h.scheduled, h.unless_replied FROM held_messages h "
    "JOIN conversations c ON c.rowid = h.conversation JOIN users u ON u.rowid = h.author"
)
_CLAIMED: Final = either(_HELD + " WHERE h.id = ? AND h.project = ? {locking[h]}")
_BY: Final = (
    f"SELECT c.id, {', '.join(f'm.{column}' for column in MESSAGE.split(', '))} FROM messages m "
    "JOIN conversations c ON c.rowid = m.conversation WHERE m.id = ? AND c.project = ? AND m.author_type = 'agent' "
    "AND m.author_id = ? AND m.deleted_at IS NULL"
)


class HeldReads(Queries):
    """See `engine.conversations.held_messages.HeldReader`."""

    def held_message(self, project: int, message_id: str) -> HeldMessage | None:
        row = self.conn.execute(f"{_HELD} WHERE h.id = ? AND h.project = ?", (message_id, project)).fetchone()
        return None if row is None else _held_of(row)

    def held_messages(self, author: int, project: int, conversation: int | None) -> Sequence[HeldMessage]:
        where, values = "h.author = ? AND h.project = ?", [author, project]
        if conversation is not None:
            where, values = f"{where} AND h.conversation = ?", [*values, conversation]
        rows = self.conn.execute(f"{_HELD} WHERE {where} ORDER BY h.rowid", values)
        return [_held_of(row) for row in rows]

    def held_in(self, conversation: int) -> Sequence[HeldMessage]:
        rows = self.conn.execute(f"{_HELD} WHERE h.conversation = ? ORDER BY h.rowid", (conversation,))
        return [_held_of(row) for row in rows.fetchall()]

    def count_held(self, author: int, project: int, *, scheduled: bool) -> int:
        row = self.conn.execute(
            "SELECT count(*) FROM held_messages WHERE author = ? AND project = ? AND scheduled = ?",
            (author, project, int(scheduled)),
        ).fetchone()
        return int(row[0])

    def next_held(self) -> int | None:
        row = self.conn.execute(
            "SELECT send_at FROM held_messages WHERE problem IS NULL ORDER BY send_at LIMIT 1"
        ).fetchone()
        return None if row is None else int(row[0])

    def due_held(self, until: int, limit: int) -> Sequence[HeldMessage]:
        rows = self.conn.execute(
            f"{_HELD} WHERE h.problem IS NULL AND h.send_at <= ? ORDER BY h.send_at, h.rowid LIMIT ?",
            (until, limit),
        )
        return [_held_of(row) for row in rows]

    def contact_wrote_since(self, conversation: int, sequence: int, at: int) -> bool:
        sql = (
            "SELECT 1 FROM messages WHERE conversation = ? AND author_type = 'contact' AND deleted_at IS NULL "
            "AND (sequence > ? OR (sequence IS NULL AND created_at > ?)) LIMIT 1"
        )
        return self.conn.execute(sql, (conversation, sequence, at)).fetchone() is not None

    def message_by(self, project: int, author_id: str, message_id: str) -> tuple[str, Message] | None:
        row = self.conn.execute(_BY, (message_id, project, author_id)).fetchone()
        return None if row is None else (row[0], message_of(row[1:]))


class HeldWrites(DraftWrites):
    """See `engine.conversations.held_messages.HeldTransaction`."""

    held_due: list[int]

    def claim_held(self, project: int, message_id: str) -> HeldMessage | None:
        row = self.conn.execute(_CLAIMED[self.dialect], (message_id, project)).fetchone()
        return None if row is None else _held_of(row)

    def insert_held(self, held: HeldMessage) -> None:
        self.inserted(
            "INSERT INTO held_messages (id, author, project, conversation, internal, if_sequence, follow, send_at, created_at, "
            "problem, attachments, mentions, text, format, scheduled, unless_replied) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                held.id,
                held.author,
                held.project,
                held.conversation,
                int(held.internal),
                held.if_sequence,
                None if held.then is None else orjson.dumps(held.then).decode(),
                held.send_at,
                held.created_at,
                None,
                attachments_json(held.attachments),
                mentions_json(held.mentions),
                held.text,
                held.format,
                int(held.scheduled),
                int(held.unless_replied),
            ),
        )
        self.held_due.append(held.send_at)

    def refuse_held(self, held: HeldMessage, problem: SendRefusal) -> None:
        sql = "UPDATE held_messages SET problem = ? WHERE rowid = ?"
        self.conn.execute(sql, (problem_as_stored(problem), held.rowid))

    def forget_held_messages(
        self, author: int, organisation: int | None
    ) -> Sequence[tuple[int, tuple[Attachment, ...]]]:
        """Remove a user's held messages; return the conversation and the attachments of each."""
        within = "" if organisation is None else IN_ORGANISATION
        sql = f"DELETE FROM held_messages WHERE author = ?{within} RETURNING conversation, attachments"
        values = (author,) if organisation is None else (author, organisation)
        return [(row[0], attachments_of(row[1])) for row in self.conn.execute(sql, values).fetchall()]

    def forget_writing(self, author: int, organisation: int | None) -> Mapping[str, int]:
        """Remove a user's drafts and held messages, in all projects or those of an organisation; return their numbers."""
        drafts = self.forget_drafts(author, organisation)
        held = self.forget_held_messages(author, organisation)
        for conversation, attachments in (*drafts, *held):
            if attachments:
                self.release_uploads(conversation, [each.id for each in attachments])
        if drafts or held:
            self.want_scrub()
        counted = {"drafts": len(drafts), "heldMessages": len(held)}
        return {name: number for name, number in counted.items() if number}

    def strip_held(self, conversation: int, upload_ids: Collection[str]) -> None:
        """Remove uploads that no longer exist from all held messages in a conversation, and refuse to send these messages."""
        rows = self.conn.execute(
            f"{_HELD} WHERE h.conversation = ? AND h.attachments IS NOT NULL", (conversation,)
        )
        for held in [_held_of(row) for row in rows.fetchall()]:
            left = tuple([each for each in held.attachments if each.id not in upload_ids])
            if left != held.attachments:
                self.conn.execute(
                    "UPDATE held_messages SET attachments = ? WHERE rowid = ?",
                    (attachments_json(left), held.rowid),
                )
                self.refuse_held(held, ATTACHMENT_GONE)
                kept = replace(held, attachments=left, problem=ATTACHMENT_GONE)
                self.note_writing(
                    HeldEnded(held.author, held.project, held.conversation_id, held.id, "refused", kept)
                )

    def move_held(self, held: HeldMessage) -> None:
        self.conn.execute(
            "UPDATE held_messages SET conversation = ?, if_sequence = ? WHERE rowid = ?",
            (held.conversation, held.if_sequence, held.rowid),
        )

    def delete_held(self, held: HeldMessage) -> None:
        self.conn.execute("DELETE FROM held_messages WHERE rowid = ?", (held.rowid,))


def problem_as_stored(problem: SendRefusal) -> str:
    """Return a refusal in the form of its column."""
    return orjson.dumps([problem.code, problem.detail]).decode()


def _held_of(row: Sequence[Any]) -> HeldMessage:
    ids, (internal, text, attachments, if_sequence, follow), rest = row[:7], row[7:12], row[12:]
    send_at, created_at, problem, rowid, text_format, mentions, scheduled, unless_replied = rest
    refusal = None if problem is None else SendRefusal(*orjson.loads(problem))
    then = None if follow is None else orjson.loads(follow)
    content = (bool(internal), text, attachments_of(attachments), if_sequence, then)
    kind = (bool(scheduled), bool(unless_replied))
    values = (*ids, *content, send_at, created_at, refusal, rowid, text_format, mentions_of(mentions), *kind)
    return HeldMessage(*values)
