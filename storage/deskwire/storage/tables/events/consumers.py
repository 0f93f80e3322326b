"""Queries on the consumers of stream channels: each channel's holder and its confirmed position."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Final

from msgspec.structs import astuple

from deskwire.engine.stream.ports import HolderRequest, StreamConsumer
from deskwire.storage.tables.base import Changes
from deskwire.storage.tables.cluster import ClusterReads

_COLUMNS: Final = (
    "project, channel, consumer, generation, position, superseded, since, updated_at, "
    "node, incarnation, connected, dropped_at, takeovers, event, wanted"
)
_SAME_HOLDER: Final = "project = ? AND channel = ? AND generation = ? AND incarnation = ?"
_FORGET: Final = json.dumps(astuple(HolderRequest("forget")))
_CHANNEL_OF_CONTACT: Final = (
    "(project, channel) IN (SELECT k.project, 'private-contact-' || k.user_id FROM contacts k WHERE k.rowid = ? "
    "AND NOT EXISTS (SELECT 1 FROM contacts o WHERE o.project = k.project AND o.user_id = k.user_id AND o.erasing = 0) "
    "UNION ALL SELECT k.project, 'private-contact-' || k.id FROM contacts k WHERE k.rowid = ?)"
)


def _consumer_of(row: Sequence[Any]) -> StreamConsumer:
    project, channel, consumer, generation, position, superseded, since, updated_at = row[:8]
    node, incarnation, connected, dropped_at, takeovers, event, wanted = row[8:]
    return StreamConsumer(
        project,
        channel,
        consumer,
        generation,
        position,
        tuple(json.loads(superseded)),
        since,
        updated_at,
        node,
        incarnation,
        bool(connected),
        dropped_at,
        tuple(json.loads(takeovers)),
        event,
        None if wanted is None else HolderRequest(*json.loads(wanted)),
    )


class ConsumerReads(ClusterReads):
    """Queries on stream consumers; the methods implement `ports.Reader`."""

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

    def consumers_with_requests(self, incarnation: int) -> Sequence[StreamConsumer]:
        rows = self.conn.execute(
            f"SELECT {_COLUMNS} FROM consumers WHERE incarnation = ? AND wanted IS NOT NULL "
            "ORDER BY project, channel",
            (incarnation,),
        )
        return [_consumer_of(row) for row in rows]


class ConsumerWrites(ConsumerReads, Changes):
    """Takeovers and positions; the methods implement `ports.Transaction`."""

    def take_channel(
        self, project: int, channel: str, consumer_id: str, position: int, superseded: Sequence[str], at: int
    ) -> int:
        row = self.conn.execute(
            "INSERT INTO consumers "
            "(project, channel, consumer, generation, position, superseded, since, updated_at, connected) "
            "VALUES (?, ?, ?, 1, ?, ?, ?, ?, 1) "
            "ON CONFLICT (project, channel) DO UPDATE SET consumer = excluded.consumer, "
            "generation = consumers.generation + 1, position = excluded.position, "
            "superseded = excluded.superseded, since = excluded.since, updated_at = excluded.updated_at, "
            "connected = 1, event = NULL RETURNING generation",
            (project, channel, consumer_id, position, json.dumps(list(superseded)), at, at),
        ).fetchone()
        return int(row[0])

    def change_consumer(self, seen: StreamConsumer | None, row: StreamConsumer) -> bool:
        superseded, takeovers = json.dumps(list(row.superseded)), json.dumps(list(row.takeovers))
        holder = (row.node, row.incarnation, int(row.connected), row.dropped_at, takeovers)
        if seen is None:
            changed = self.conn.execute(
                f"INSERT INTO consumers ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL) "
                "ON CONFLICT (project, channel) DO NOTHING",
                (
                    *(row.project, row.channel, row.consumer_id, row.generation, row.position, superseded),
                    *(row.since, row.updated_at, *holder, row.event),
                ),
            )
        else:
            changed = self.conn.execute(
                "UPDATE consumers SET consumer = ?, generation = ?, superseded = ?, since = ?, updated_at = ?, "
                "node = ?, incarnation = ?, connected = ?, dropped_at = ?, takeovers = ?, "
                "wanted = CASE WHEN wanted = ? THEN wanted END "
                f"WHERE {_SAME_HOLDER} AND connected = ? AND superseded = ?",
                (
                    *(row.consumer_id, row.generation, superseded, row.since, row.updated_at, *holder),
                    _FORGET,
                    *_holder_of(seen),
                    int(seen.connected),
                    json.dumps(list(seen.superseded)),
                ),
            )
        return changed.rowcount == 1

    def request_holder(self, seen: StreamConsumer, request: HolderRequest | None) -> bool:
        changed = self.conn.execute(
            f"UPDATE consumers SET wanted = ? WHERE {_SAME_HOLDER} AND connected = 1 "
            "AND (wanted IS NULL OR wanted <> ?)",
            (None if request is None else json.dumps(astuple(request)), *_holder_of(seen), _FORGET),
        )
        return changed.rowcount == 1

    def confirm_position(
        self, project: int, channel: str, generation: int, position: int, superseded: Sequence[str], at: int
    ) -> bool:
        changed = self.conn.execute(
            "UPDATE consumers SET position = ?, superseded = ?, updated_at = ? "
            "WHERE project = ? AND channel = ? AND generation = ?",
            (position, json.dumps(list(superseded)), at, project, channel, generation),
        )
        return changed.rowcount == 1

    def save_position(
        self, project: int, channel: str, generation: int, position: int, event: str | None, at: int
    ) -> bool:
        changed = self.conn.execute(
            "UPDATE consumers SET position = ?, event = ?, updated_at = ? "
            "WHERE project = ? AND channel = ? AND generation = ?",
            (position, event, at, project, channel, generation),
        )
        return changed.rowcount == 1

    def remove_consumer(self, seen: StreamConsumer) -> None:
        self.conn.execute(
            "DELETE FROM consumers WHERE project = ? AND channel = ? AND generation = ?",
            (seen.project, seen.channel, seen.generation),
        )

    def forget_contact_channel(self, contact: int) -> None:
        """Delete the row of a contact's channel, because its name contains the contact's user id.

        If a node holds the channel, it is asked to release the channel and delete the row.
        """
        self.conn.execute(
            f"DELETE FROM consumers WHERE (incarnation = 0 OR connected = 0) AND {_CHANNEL_OF_CONTACT}",
            (contact, contact),
        )
        self.conn.execute(
            f"UPDATE consumers SET wanted = ? WHERE {_CHANNEL_OF_CONTACT}", (_FORGET, contact, contact)
        )

    def forget_consumers(self, before: int, kept: Collection[tuple[int, str]]) -> None:
        rows = self.conn.execute(
            f"SELECT {_COLUMNS} FROM consumers "
            "WHERE (updated_at < ? AND substr(channel, 1, 16) <> 'private-project-') OR wanted = ?",
            (before, _FORGET),
        ).fetchall()
        for row in map(_consumer_of, rows):
            held = row.connected and self.is_live(row.incarnation)
            if not held and (row.project, row.channel) not in kept:
                self.remove_consumer(row)


def _holder_of(seen: StreamConsumer) -> tuple[int, str, int, int]:
    return seen.project, seen.channel, seen.generation, seen.incarnation
