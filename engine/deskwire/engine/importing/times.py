"""Impossible times of imported records: in the future, before 1970, or a closing before the creation.

Wrong clocks, time zones and migrations leave such times in old systems. The record is imported, the result names the
time, and reports count figures that depend on it as unknown.
"""

from __future__ import annotations

from typing import Final

from deskwire.engine.core.errors import Problem
from deskwire.engine.importing.records import ConversationRecord, MessageRecord

AHEAD_MS: Final = 5 * 60 * 1000
"""Milliseconds that a time may be in the future, because clocks differ."""

_CREATED: Final = "This time is before 1970 or in the future; {} stands in for it."
_DROPPED: Final = "This time is before 1970 or in the future; it counts as unknown."
_BEFORE: Final = "This time is before that of the creation."


def possible_message(record: MessageRecord, now: int) -> MessageRecord:
    """Return the record with a possible time, and with its doubts."""
    at = _nearest(record.created_at, now)
    if at == record.created_at:
        return record
    return record._replace(
        created_at=at, given_at=record.created_at, doubts=[_created("/createdAt", at, now)]
    )


def possible_conversation(record: ConversationRecord, now: int) -> ConversationRecord:
    """Return the record with possible times, and with its doubts."""
    doubts = []
    at = _nearest(record.created_at, now)
    if at != record.created_at:
        record = record._replace(created_at=at, given_at=record.created_at)
        doubts.append(_created("/createdAt", at, now))
    times = {
        "updatedAt": record.updated_at,
        "closedAt": record.closed_at,
        "ratedAt": record.rated_at,
    }
    for name, given in times.items():
        if not _is_possible(given, now):
            doubts.append(Problem(f"/{name}", "out_of_range", _DROPPED))
            times[name] = None
        elif given is not None and given < record.created_at:
            doubts.append(Problem(f"/{name}", "out_of_order", _BEFORE))
    if not _is_possible(record.contact.created_at, now):
        doubts.append(Problem("/contact/createdAt", "out_of_range", _DROPPED))
        record = record._replace(contact=record.contact._replace(created_at=None))
    if not doubts:
        return record
    return record._replace(
        updated_at=times["updatedAt"], closed_at=times["closedAt"], rated_at=times["ratedAt"], doubts=doubts
    )


def duration_known(record: ConversationRecord) -> bool:
    """Return whether the record gives the time from creation to closing."""
    closed_at = record.updated_at if record.closed_at is None else record.closed_at
    pointers = {each.pointer for each in record.doubts}
    return (
        closed_at is not None
        and closed_at >= record.created_at
        and not pointers & {"/createdAt", "/closedAt"}
    )


def _is_possible(at: int | None, now: int) -> bool:
    return at is None or 0 <= at <= now + AHEAD_MS


def _nearest(at: int, now: int) -> int:
    """Return the time if it is possible, else the nearest possible one."""
    return at if _is_possible(at, now) else 0 if at < 0 else now


def _created(pointer: str, at: int, now: int) -> Problem:
    return Problem(
        pointer, "out_of_range", _CREATED.format("the time of the import" if at == now else "1970")
    )
