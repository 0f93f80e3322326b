"""Keeps a copy of a project's conversations and messages: a snapshot, then the events after it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, Final, Protocol, cast

from deskwire_sdk import types
from deskwire_sdk._async.client import AsyncDeskwire
from deskwire_sdk.errors import Gone, NotFound

_PAGE_SIZE: Final = 200
_WAIT_S: Final = 30


class AsyncMirrorStore(Protocol):
    """The place of a mirror's copy: a database of yours.

    All changes between two calls of `commit` belong to one transaction. After a crash, the store continues with the
    last commit. Every method may be called again with the same values.
    """

    async def position(self) -> str | None:
        """Return the id of the last event that was committed; None in an empty store."""

    async def sequence(self, conversation_id: str) -> int | None:
        """Return the `sequence` of a stored conversation; None if it is not stored."""

    async def begin_snapshot(self) -> None:
        """Prepare for a snapshot, which puts each conversation that exists."""

    async def end_snapshot(self) -> None:
        """Delete each conversation, with its messages, that was not put since `begin_snapshot`."""

    async def put_conversation(self, conversation: types.Conversation) -> None:
        """Insert or replace a conversation by its `id`."""

    async def put_message(self, message: types.Message) -> None:
        """Insert or replace a message by its `id`."""

    async def replace_messages(self, conversation_id: str, messages: list[types.Message]) -> None:
        """Replace all messages of a conversation by these."""

    async def delete_conversation(self, conversation_id: str) -> None:
        """Delete a conversation with its messages, if it is stored."""

    async def put_contact(self, contact: dict[str, Any]) -> None:
        """Show a contact's `userId`, `name` and `email` in its conversations: they have no event for it."""

    async def commit(self, position: str | None) -> None:
        """Commit all changes since the last commit, with the position; None leaves the position as it is."""


class AsyncMirror:
    """Keeps a store equal to the conversations and messages of a project.

    The first `catch_up` copies everything (a snapshot); later ones apply the events since. It can be stopped or
    killed at any time, and continues with the last commit. If its position is no longer stored by the service
    (after 7 days, or after a restore from a backup), it takes a snapshot again.
    """

    def __init__(self, client: AsyncDeskwire, store: AsyncMirrorStore) -> None:
        self._client = client
        self._store = store

    async def run(self) -> None:
        """Keep the store current until an error.

        Raises:
            DeskwireError: the service could not be read, for longer than the client's retries.
        """
        while True:
            await self.catch_up(wait=_WAIT_S)

    async def catch_up(self, wait: float = 0) -> int:
        """Bring the store up to date: by a snapshot if it has no position, then by events.

        Args:
            wait: seconds to wait for an event if there is none, at most 30.

        Returns:
            The number of events that were applied.

        Raises:
            DeskwireError: the service could not be read. The next call continues after the last commit.
        """
        if await self._store.position() is None:
            await self.snapshot()
        count = 0
        while found := await self._next_events(0 if count else wait):
            count += found
        return count

    async def _next_events(self, wait: float) -> int:
        """Apply a page of events, and return their number; take a snapshot if they are no longer stored."""
        position = await self._store.position()
        try:
            page = await self._client.events.list(after=position, wait=wait, limit=_PAGE_SIZE)
        except (Gone, NotFound) as error:
            if error.code not in ("window_passed", "event_not_found"):
                raise
            await self.snapshot()
            return await self._next_events(0)
        for event in page.items:
            await self._apply(cast(dict[str, Any], event))
        if page.items:
            await self._store.commit(page.items[-1]["id"])
        return len(page.items)

    async def snapshot(self) -> None:
        """Copy all conversations with their messages, and delete what no longer exists.

        Raises:
            DeskwireError: the service could not be read; the position is unchanged, so the next call starts again.
        """
        await self._store.begin_snapshot()
        first = await self._client.conversations.list(sort="updated", order="asc", limit=_PAGE_SIZE)
        async for page in first.pages():
            for conversation in page.items:
                # The list is newer than every event that was applied, also after a restore from a backup, when
                # sequences are smaller than before.
                await self._store.put_conversation(cast(types.Conversation, conversation))
                await self._fetch_messages(conversation["id"])
            await self._store.commit(None)
        await self._store.end_snapshot()
        await self._store.commit(first.as_of)

    async def _apply(self, event: dict[str, Any]) -> None:
        data = event["data"]
        if event["type"] == "contact.updated":
            await self._store.put_contact(data["contact"])
        elif event["type"] == "conversation.deleted":
            await self._store.delete_conversation(data["conversation"]["id"])
        elif isinstance(data.get("conversation"), dict):
            await self._apply_change(data["conversation"], data)

    async def _apply_change(self, conversation: dict[str, Any], data: dict[str, Any]) -> None:
        """Store a conversation unless the stored one is newer, and the messages that the event names."""
        known = await self._store.sequence(conversation["id"])
        if known is None or conversation["sequence"] >= known:
            await self._store.put_conversation(cast(types.Conversation, conversation))
        if "message" in data:
            await self._store.put_message(data["message"])
        if "messages" in data.get("changed", ()):  # some were redacted or deleted
            await self._fetch_messages(conversation["id"])

    async def _fetch_messages(self, conversation_id: str) -> None:
        messages = self._client.messages.list(conversation_id, limit=_PAGE_SIZE)
        try:
            found = [message async for message in messages]
        except NotFound:  # it was deleted in the meantime
            await self._store.delete_conversation(conversation_id)
            return
        await self._store.replace_messages(conversation_id, found)


_TABLES: Final = """
CREATE TABLE IF NOT EXISTS position (one INTEGER PRIMARY KEY CHECK (one = 1), event TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS conversations (
  id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, contact TEXT NOT NULL, snapshot INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS conversations_by_contact ON conversations (contact);
CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, conversation TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS messages_by_conversation ON messages (conversation);
"""
_SHOWN: Final = ("id", "userId", "name", "email")


class AsyncSQLiteStore:
    """A mirror's store in a SQLite file: the objects are JSON in the column `body`."""

    def __init__(self, path: str | Path) -> None:
        """Open the file, and create it and its tables if they are missing.

        Raises:
            sqlite3.Error: the file cannot be opened, or is no database.
        """
        self.connection = sqlite3.connect(path)
        self.connection.executescript(_TABLES)
        self._snapshot = self._one("SELECT coalesce(max(snapshot), 0) FROM conversations")

    def _one(self, statement: str, *values: object) -> Any:
        """Return the first column of the first row; None without one."""
        row = self.connection.execute(statement, values).fetchone()
        return None if row is None else row[0]

    async def position(self) -> str | None:
        """Return the id of the last event that was committed; None in an empty store."""
        return cast(str | None, self._one("SELECT event FROM position"))

    async def sequence(self, conversation_id: str) -> int | None:
        """Return the `sequence` of a stored conversation; None if it is not stored."""
        return cast(int | None, self._one("SELECT sequence FROM conversations WHERE id = ?", conversation_id))

    async def begin_snapshot(self) -> None:
        """Prepare for a snapshot."""
        self.connection.rollback()
        self._snapshot = self._one("SELECT coalesce(max(snapshot), 0) + 1 FROM conversations")

    async def end_snapshot(self) -> None:
        """Delete each conversation that was not put since `begin_snapshot`."""
        old = self.connection.execute("SELECT id FROM conversations WHERE snapshot < ?", (self._snapshot,))
        for (conversation_id,) in old.fetchall():
            await self.delete_conversation(conversation_id)

    async def put_conversation(self, conversation: types.Conversation) -> None:
        """Insert or replace a conversation."""
        self.connection.execute(
            "INSERT OR REPLACE INTO conversations (id, sequence, contact, snapshot, body) VALUES (?, ?, ?, ?, ?)",
            (
                conversation["id"],
                conversation["sequence"],
                conversation["contact"]["id"],
                self._snapshot,
                json.dumps(conversation),
            ),
        )

    async def put_message(self, message: types.Message) -> None:
        """Insert or replace a message."""
        self.connection.execute(
            "INSERT OR REPLACE INTO messages (id, conversation, body) VALUES (?, ?, ?)",
            (message["id"], message["conversationId"], json.dumps(message)),
        )

    async def replace_messages(self, conversation_id: str, messages: list[types.Message]) -> None:
        """Replace all messages of a conversation."""
        self.connection.execute("DELETE FROM messages WHERE conversation = ?", (conversation_id,))
        for message in messages:
            await self.put_message(message)

    async def delete_conversation(self, conversation_id: str) -> None:
        """Delete a conversation with its messages."""
        self.connection.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))
        self.connection.execute("DELETE FROM messages WHERE conversation = ?", (conversation_id,))

    async def put_contact(self, contact: dict[str, Any]) -> None:
        """Show a contact in its conversations."""
        rows = self.connection.execute(
            "SELECT id, body FROM conversations WHERE contact = ?", (contact["id"],)
        )
        for conversation_id, body in rows.fetchall():
            shown = json.loads(body) | {"contact": {name: contact.get(name) for name in _SHOWN}}
            self.connection.execute(
                "UPDATE conversations SET body = ? WHERE id = ?", (json.dumps(shown), conversation_id)
            )

    async def commit(self, position: str | None) -> None:
        """Commit all changes since the last commit."""
        if position is not None:
            self.connection.execute("INSERT OR REPLACE INTO position VALUES (1, ?)", (position,))
        self.connection.commit()

    async def conversations(self) -> list[types.Conversation]:
        """Return all stored conversations, by id."""
        rows = self.connection.execute("SELECT body FROM conversations ORDER BY id")
        return [json.loads(body) for (body,) in rows]

    async def messages(self, conversation_id: str) -> list[types.Message]:
        """Return the stored messages of a conversation, oldest first."""
        statement = (
            "SELECT body FROM messages WHERE conversation = ? ORDER BY json_extract(body, '$.createdAt'), id"
        )
        return [json.loads(body) for (body,) in self.connection.execute(statement, (conversation_id,))]

    def close(self) -> None:
        """Close the file; changes since the last commit are lost."""
        self.connection.close()
