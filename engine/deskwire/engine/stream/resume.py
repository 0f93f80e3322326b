"""The start of a consumer: behind what was confirmed, behind an event, or with what comes next (decisions 5)."""

from __future__ import annotations

from typing import Literal

from deskwire.engine.core.ids import id_time_ms, is_id
from deskwire.engine.core.store import Store
from deskwire.engine.events.log import EventLog
from deskwire.engine.stream.channel import Channel
from deskwire.engine.stream.ports import StreamReader, StreamTransaction
from deskwire.engine.stream.subscription import Start

Resume = Literal["auto", "live"] | str
"""`auto`, `live`, or an event id."""


def is_resume(text: str) -> bool:
    """Return whether `text` is a resume choice: `auto`, `live`, or an event id."""
    return text in ("auto", "live") or is_id(text, "evt")


async def find_start(
    store: Store[StreamReader, StreamTransaction],
    log: EventLog,
    channel: Channel,
    resume: Resume,
    confirmed: int | None,
    *,
    oldest_ms: int,
) -> Start:
    """Return the start that `resume` asks for.

    Args:
        confirmed: position the channel's last consumer had confirmed, None if it never had one.
        oldest_ms: how far back `auto` goes: if the oldest event that was missed was made before this
            (milliseconds since the epoch), the gap is too long. Only the channel's events count.
    """
    now = Start(log.position)
    if resume == "live" or (resume == "auto" and confirmed is None):
        return now
    if resume != "auto":
        return await store.read(lambda reader: _behind_event(reader, resume))
    assert confirmed is not None
    missed = (await log.read(channel.source, confirmed, 1)).events
    if missed and id_time_ms(missed[0].id) < oldest_ms:
        return Start(now.position, None, gap=True)
    return await store.read(lambda reader: _behind_position(reader, channel.project, confirmed))


def _behind_event(reader: StreamReader, event_id: str) -> Start:
    pruned, newest = reader.event_window()
    gap = (pruned is not None and event_id < pruned) or event_id > (newest or "")
    return Start(reader.event_position(event_id), event_id, gap)


def _behind_position(reader: StreamReader, project: int, position: int) -> Start:
    pruned, _ = reader.event_window()
    gap = pruned is not None and position < reader.event_position(pruned)
    return Start(position, reader.event_id_at(project, position), gap)
