"""Channels. The methods implement `channels.ports`.

A removed channel keeps its row, because sessions refer to it, without secrets and keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import orjson

from deskwire.engine.audit.audited_changes import channel_changed, channel_deleted, channel_made
from deskwire.engine.channels.channel import Channel, Look, PublicKey
from deskwire.engine.core.values import replace
from deskwire.storage.connection import Connection
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

CHANNEL: Final = (
    "c.rowid, c.id, c.project, c.type, c.name, c.enabled, c.origins, c.identity_mode, c.public_keys, c.visitors_allowed, "
    "c.ask, c.look, c.starts_workflow, c.survey, c.native, c.sealed_secret, c.secret_tail, c.created_at, c.updated_at, "
    "c.old_secret, c.old_secret_until"
)
CHANNEL_WIDTH: Final = len(CHANNEL.split(", "))
_CHANGED: Final = (
    "name, enabled, origins, identity_mode, public_keys, visitors_allowed, ask, look, starts_workflow, survey, native, "
    "sealed_secret, secret_tail, updated_at, old_secret, old_secret_until"
)
_INSERT: Final = (
    f"INSERT INTO channels (id, project, type, created_at, {_CHANGED}) "
    f"VALUES (?, ?, ?, ?, {', '.join('?' * len(_CHANGED.split(', ')))})"
)
_SAVE: Final = (
    f"UPDATE channels SET {', '.join(f'{name} = ?' for name in _CHANGED.split(', '))} WHERE rowid = ?"
)
_NO_ROW: Final = (1 << 63) - 1


def as_channel(row: Sequence[Any]) -> Channel:
    """Return the channel in a row of the columns CHANNEL."""
    rowid, channel_id, project, kind, name, enabled, origins, mode, keys, visitors, ask, look, *rest = row
    workflow, survey, native, sealed, tail, created_at, updated_at, old, old_until = rest
    return Channel(
        rowid,
        channel_id,
        project,
        kind,
        name,
        bool(enabled),
        tuple(orjson.loads(origins)),
        mode,
        tuple(msgspec.convert(orjson.loads(keys), list[PublicKey])),
        bool(visitors),
        tuple(orjson.loads(ask)),
        msgspec.convert(orjson.loads(look), Look),
        workflow,
        survey,
        bool(native),
        bytes(sealed),
        tail,
        created_at,
        updated_at,
        None if old is None else bytes(old),
        old_until,
    )


class ChannelReads(Queries):
    """Queries on channels."""

    def channel(self, channel_id: str) -> Channel | None:
        row = self.conn.execute(
            f"SELECT {CHANNEL} FROM channels c WHERE c.id = ? AND c.removed_at IS NULL", (channel_id,)
        ).fetchone()
        return None if row is None else as_channel(row)

    def channels(self, project: int, before: int | None, limit: int) -> Sequence[Channel]:
        rows = self.conn.execute(
            f"SELECT {CHANNEL} FROM channels c WHERE c.project = ? AND c.removed_at IS NULL AND c.rowid < ? "
            "ORDER BY c.rowid DESC LIMIT ?",
            (project, before or _NO_ROW, limit),
        )
        return [as_channel(row) for row in rows]

    def count_channels(self, project: int) -> int:
        sql = "SELECT count(*) FROM channels WHERE project = ? AND removed_at IS NULL"
        return int(self.conn.execute(sql, (project,)).fetchone()[0])


class ChannelWrites(ChannelReads, AuditWrites):
    """Changes of channels."""

    def lock_channels(self, project: int) -> None:
        """See the port. SQLite has a single writer, so there is nothing to lock."""

    def insert_channel(self, channel: Channel) -> Channel:
        own = (channel.id, channel.project, channel.type, channel.created_at)
        rowid = self.inserted(_INSERT, (*own, *_changed(channel)))
        self.record(channel_made(channel))
        return replace(channel, rowid=rowid)

    def save_channel(self, channel: Channel) -> None:
        before = self.channel(channel.id)
        assert before is not None, "only a stored one is changed"
        self.conn.execute(_SAVE, (*_changed(channel), channel.rowid))
        self.record(*channel_changed(before, channel))

    def remove_channel(self, channel: Channel, at: int) -> None:
        self.conn.execute(
            "UPDATE channels SET removed_at = ?, enabled = 0, public_keys = '[]', sealed_secret = ?, secret_tail = '', "
            "old_secret = NULL, old_secret_until = NULL WHERE rowid = ?",
            (at, b"", channel.rowid),
        )
        self.record(channel_deleted(channel))


def renew_channel_seals(connection: Connection, renewed: Callable[[bytes], bytes]) -> int:
    """Reseal the secrets of channels with `renewed`. Returns the number of changed channels."""
    changed = 0
    for rowid, *before in connection.execute(
        "SELECT rowid, sealed_secret, old_secret FROM channels WHERE removed_at IS NULL"
    ).fetchall():
        after = [None if sealed is None else renewed(sealed) for sealed in before]
        if after != before:
            changed += 1
            connection.execute(
                "UPDATE channels SET sealed_secret = ?, old_secret = ? WHERE rowid = ?", (*after, rowid)
            )
    return changed


def _changed(channel: Channel) -> tuple[Any, ...]:
    """Return the values of the columns that a change may write."""
    return (
        channel.name,
        int(channel.enabled),
        _json(channel.origins),
        channel.identity_mode,
        _json([msgspec.to_builtins(each) for each in channel.public_keys]),
        int(channel.visitors_allowed),
        _json(channel.visitors_ask),
        _json(msgspec.to_builtins(channel.look)),
        channel.starts_workflow,
        channel.survey,
        int(channel.native),
        channel.sealed_secret,
        channel.secret_tail,
        channel.updated_at,
        channel.old_secret,
        channel.old_secret_until,
    )


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
