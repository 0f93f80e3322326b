"""The consumers of stream channels: the holder of each, and the position that it has confirmed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, Final

from deskwire.engine.stream.ports import StreamConsumer

_COLUMNS: Final = "project, channel, consumer, generation, position, superseded, since, updated_at"


def _consumer_of(row: Sequence[Any]) -> StreamConsumer:
    project, channel, consumer, generation, position, superseded, since, updated_at = row
    return StreamConsumer(
        project, channel, consumer, generation, position, tuple(json.loads(superseded)), since, updated_at
    )


class ConsumerReads:
    """Queries on stream consumers; the methods are those of `ports.Reader`."""

    conn: sqlite3.Connection

    def stream_consumer(self, project: int, channel: str) -> StreamConsumer | None:
        row = self.conn.execute(
            f"SELECT {_COLUMNS} FROM consumers WHERE project = ? AND channel = ?", (project, channel)
        ).fetchone()
        return None if row is None else _consumer_of(row)

    def stream_consumers(self, project: int) -> Sequence[StreamConsumer]:
        rows = self.conn.execute(
            f"SELECT {_COLUMNS} FROM consumers WHERE project = ? ORDER BY channel", (project,)
        )
        return [_consumer_of(row) for row in rows]


class ConsumerWrites:
    """Takeovers and positions; the methods are those of `ports.Transaction`."""

    conn: sqlite3.Connection

    def take_channel(
        self, project: int, channel: str, consumer_id: str, position: int, superseded: Sequence[str], at: int
    ) -> int:
        row = self.conn.execute(
            f"INSERT INTO consumers ({_COLUMNS}) VALUES (?, ?, ?, 1, ?, ?, ?, ?) "
            "ON CONFLICT (project, channel) DO UPDATE SET consumer = excluded.consumer, "
            "generation = generation + 1, position = excluded.position, superseded = excluded.superseded, "
            "since = excluded.since, updated_at = excluded.updated_at RETURNING generation",
            (project, channel, consumer_id, position, json.dumps(list(superseded)), at, at),
        ).fetchone()
        return int(row[0])

    def confirm_position(
        self, project: int, channel: str, generation: int, position: int, superseded: Sequence[str], at: int
    ) -> bool:
        changed = self.conn.execute(
            "UPDATE consumers SET position = ?, superseded = ?, updated_at = ? "
            "WHERE project = ? AND channel = ? AND generation = ?",
            (position, json.dumps(list(superseded)), at, project, channel, generation),
        )
        return changed.rowcount == 1

    def forget_contact_channel(self, contact: int) -> None:
        """Remove the row of a contact's channel, whose name holds the contact's user id."""
        self.conn.execute(
            "DELETE FROM consumers WHERE (project, channel) IN "
            "(SELECT project, 'private-contact-' || user_id FROM contacts WHERE rowid = ?)",
            (contact,),
        )

    def forget_consumers(self, before: int, kept: Collection[tuple[int, str]]) -> None:
        rows = self.conn.execute(
            "SELECT rowid, project, channel FROM consumers "
            "WHERE updated_at < ? AND channel NOT GLOB 'private-project-*'",
            (before,),
        ).fetchall()
        for rowid, project, channel in rows:
            if (project, channel) not in kept:
                self.conn.execute("DELETE FROM consumers WHERE rowid = ?", (rowid,))
