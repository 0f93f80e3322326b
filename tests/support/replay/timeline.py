"""One channel's arrivals put in order, as a consumer would build its mirror from them (contract 6.4.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from msgspec import Struct, field

from tests.support.replay.history import Arrival


class Seen(Struct, frozen=True):
    """An arrival that is an event of this replay."""

    arrival: Arrival
    id: str
    type: str
    conversation: str | None
    sequence: int | None
    data: dict[str, Any]


class Timeline(Struct):
    """The events that a channel delivered.

    Args:
        events: each event of this replay once, in the order of first arrivals.
        duplicates: events that had arrived before.
        inversions: events that arrived behind a later one of their conversation.
        malformed: arrivals that are no event at all.
    """

    events: list[Seen] = field(default_factory=list)
    duplicates: list[Seen] = field(default_factory=list)
    inversions: list[Seen] = field(default_factory=list)
    malformed: list[Arrival] = field(default_factory=list)

    def by_conversation(self) -> dict[str, dict[int, Seen]]:
        """Return the numbered events by conversation and sequence; of two with one number, the first."""
        events: dict[str, dict[int, Seen]] = {}
        for seen in self.events:
            if seen.conversation is not None and seen.sequence is not None:
                events.setdefault(seen.conversation, {}).setdefault(seen.sequence, seen)
        return events


def timeline(arrivals: Iterable[Arrival], ours: str) -> Timeline:
    """Sort a channel's arrivals; events of contacts whose user id does not start with `ours` are left out."""
    found, known, highest = Timeline(), set[str](), dict[str, int]()
    for arrival in arrivals:
        seen = event_of(arrival)
        if seen is None:
            found.malformed.append(arrival)
        elif not is_ours(seen, ours):
            continue
        elif seen.id in known:
            found.duplicates.append(seen)
        else:
            known.add(seen.id)
            found.events.append(seen)
            if seen.conversation is not None and seen.sequence is not None:
                if seen.sequence < highest.get(seen.conversation, 0):
                    found.inversions.append(seen)
                highest[seen.conversation] = max(seen.sequence, highest.get(seen.conversation, 0))
    return found


def event_of(arrival: Arrival) -> Seen | None:
    """Return the event in an arrival; None if the body is none."""
    try:
        body = orjson.loads(arrival.body)
    except orjson.JSONDecodeError:
        return None
    match body:
        case {"id": str(event_id), "type": str(name), "sequence": int() | None as number, "data": dict(data)}:
            conversation = data.get("conversation")
            about = conversation.get("id") if isinstance(conversation, dict) else None
            return Seen(arrival, event_id, name, about, number, data)
    return None


def is_ours(seen: Seen, ours: str) -> bool:
    """Say whether the event is about a contact of this replay."""
    return any(user_id.startswith(ours) for user_id in _user_ids(seen.data))


def _user_ids(data: dict[str, Any]) -> Iterator[str]:
    match data:
        case {"conversation": {"contact": {"userId": str(user_id)}}} | {"contact": {"userId": str(user_id)}}:
            yield user_id
