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
    known: str | None = None,
    shared: bool = False,
) -> Start:
    """Return the start that `resume` asks for.

    Args:
        confirmed: position the channel's last consumer had confirmed, None if it never had one.
        oldest_ms: how far back `auto` goes: if the oldest event that was missed was made before this
            (milliseconds since the epoch), the gap is too long. Only the channel's events count.
        known: id of the newest event at that position, as it was confirmed; None if that is not known, empty if it
            has been told of a gap that nobody has confirmed since.
        shared: whether the log's end is that of the store, so that nothing that lies behind it was of this log.
    """
    now = Start(await log.newest(channel.project))
    if resume == "live" or (resume == "auto" and confirmed is None):
        return now
    if resume != "auto":
        return await store.read(lambda reader: _behind_event(reader, channel.project, resume))
    assert confirmed is not None
    ahead = shared and confirmed > now.position
    if ahead or (
        known is not None
        and await store.read(lambda reader: is_lost(reader, channel.project, confirmed, known))
    ):
        return Start(now.position, None, gap=True, lost=True)
    missed = (await log.read(channel.source, confirmed, 1)).events
    if missed and id_time_ms(missed[0].id) < oldest_ms:
        return Start(now.position, None, gap=True)
    return await store.read(lambda reader: _behind_position(reader, channel.project, confirmed))


def _behind_event(reader: StreamReader, project: int, event_id: str) -> Start:
    pruned, newest = reader.event_window(project)
    gap = (pruned is not None and event_id < pruned) or event_id > (newest or "")
    return Start(reader.event_position(project, event_id), event_id, gap)


def _behind_position(reader: StreamReader, project: int, position: int) -> Start:
    return Start(
        position, reader.event_id_at(project, position), gap=position < reader.pruned_position(project)
    )


def is_lost(reader: StreamReader, project: int, position: int, known: str) -> bool:
    """Return whether the log is another than the one in which `known` was the newest event at `position`.

    A database that was replaced by its copy may lack the newest events, and gives their positions once more: to
    events with later ids. What was erased since only makes the newest one there an earlier one.
    """
    _, newest = reader.event_window(project)
    if known == "" or known > (newest or ""):
        return True
    there = reader.event_id_at(project, position)
    return there is not None and there > known
