"""The checks: everything that a replay promises to find out, as plain functions on what happened.

Each yields sentences that say what is missing or wrong; no sentence means that all is well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from tests.support.replay.effects import unanswered
from tests.support.replay.history import FEED, STREAM, WEBHOOK, Delivery, History
from tests.support.replay.signature import signature_fault
from tests.support.replay.timeline import Seen, Timeline, event_of, timeline

Timelines = Mapping[str, Timeline]


def timelines(history: History) -> Timelines:
    """Return every channel's arrivals in order."""
    return {name: timeline(arrivals, history.ours) for name, arrivals in history.channels.items()}


def problems(history: History, channels: Timelines) -> list[str]:
    """Return everything that is missing or wrong, a sentence each."""
    return list(
        chain(
            refusals(history),
            malformed(channels),
            forgeries(history),
            unidentified(history),
            mislabelled(history),
            differing_bytes(history),
            gaps(channels, last_sequences(history, channels)),
            inversions(channels),
            double_numbers(channels),
            wrong_predecessors(channels),
            unanswered(history, channels),
            outdated(history, channels),
        )
    )


def refusals(history: History) -> Iterator[str]:
    """Yield the commands that the service refused; a replay asks for nothing that it should refuse."""
    for each in history.commands:
        if each.outcome == "refused":
            yield f"{each.kind} in {each.conversation or 'a new conversation'} was refused: {each.detail}"


def malformed(channels: Timelines) -> Iterator[str]:
    """Yield the arrivals that are no event."""
    for name, channel in channels.items():
        for arrival in channel.malformed:
            yield f"{name}: this is no event: {arrival.body[:80]!r}"


def deliveries(history: History) -> Iterator[Delivery]:
    """Yield the deliveries that came by webhook."""
    return (each for each in history.channels.get(WEBHOOK, ()) if isinstance(each, Delivery))


def forgeries(history: History) -> Iterator[str]:
    """Yield the deliveries whose signature is not right (contract 6.3)."""
    for each in deliveries(history):
        if against := signature_fault(history.secret, each.signature, each.body, each.received_at):
            yield f"webhook: delivery {each.delivery_id or '(no id)'}: {against}"


def unidentified(history: History) -> Iterator[str]:
    """Yield the deliveries without a proper id."""
    for each in deliveries(history):
        if not each.delivery_id.startswith("dlv_"):
            yield f"webhook: {each.delivery_id!r} is no delivery id"


def mislabelled(history: History) -> Iterator[str]:
    """Yield the arrivals that the header or the frame calls something else than the envelope does."""
    for name in (WEBHOOK, STREAM):
        for arrival in history.channels.get(name, ()):
            seen = event_of(arrival)
            if seen is not None and arrival.label != seen.type:
                yield f"{name}: {seen.id} is a {seen.type} but was announced as {arrival.label!r}"


def differing_bytes(history: History) -> Iterator[str]:
    """Yield the events that are not the same bytes wherever and whenever they arrive."""
    first: dict[str, tuple[str, bytes]] = {}
    for name, arrivals in history.channels.items():
        for arrival in arrivals:
            seen = event_of(arrival)
            if seen is None:
                continue
            where, body = first.setdefault(seen.id, (name, arrival.body))
            if body != arrival.body:
                yield f"{name}: {seen.id} has other bytes than on {where}"


def last_sequences(history: History, channels: Timelines) -> dict[str, int]:
    """Return the highest sequence of each conversation that anything has shown: a channel, or a response."""
    last: dict[str, int] = {}
    for channel in channels.values():
        for conversation, numbered in channel.by_conversation().items():
            last[conversation] = max(last.get(conversation, 0), *numbered)
    for conversation, state in history.finals.items():
        if state is not None:
            last[conversation] = max(last.get(conversation, 0), state["sequence"])
    return last


def gaps(channels: Timelines, last: Mapping[str, int]) -> Iterator[str]:
    """Yield the numbers that a channel did not deliver."""
    for name, channel in channels.items():
        numbered = channel.by_conversation()
        for conversation, highest in last.items():
            if missing := sorted(set(range(1, highest + 1)) - numbered.get(conversation, {}).keys()):
                listed = ", ".join(map(str, missing))
                yield f"{name}: {conversation} has no event {listed} of {highest}"


def inversions(channels: Timelines) -> Iterator[str]:
    """Yield the events out of order where order is promised: not on webhooks (contract 6.4.4)."""
    for name in (STREAM, FEED):
        for seen in channels[name].inversions if name in channels else ():
            yield f"{name}: {seen.id} with sequence {seen.sequence} of {seen.conversation} came too late"


def double_numbers(channels: Timelines) -> Iterator[str]:
    """Different events with the same number in the same conversation, numbers below 1 among them."""
    holders: dict[tuple[str, int], str] = {}
    for name, channel in channels.items():
        for seen in channel.events:
            if seen.conversation is None or seen.sequence is None:
                continue
            if seen.sequence < 1:
                yield f"{name}: {seen.id} of {seen.conversation} has the number {seen.sequence}"
            holder = holders.setdefault((seen.conversation, seen.sequence), seen.id)
            if holder != seen.id:
                yield f"{name}: {seen.id} and {holder} are both {seen.sequence} of {seen.conversation}"


def wrong_predecessors(channels: Timelines) -> Iterator[str]:
    """Yield the deliveries that name another predecessor than the event before (decisions 6).

    The replay's endpoint is older than its conversations and gets all types: nothing is left out.
    """
    channel = channels.get(WEBHOOK, Timeline())
    for seen in chain(channel.events, channel.duplicates):
        assert isinstance(seen.arrival, Delivery)
        expected = None if seen.sequence is None else str(seen.sequence - 1)
        if seen.arrival.previous != expected:
            yield f"webhook: {seen.id} names {seen.arrival.previous} as its predecessor, not {expected}"


def outdated(history: History, channels: Timelines) -> Iterator[str]:
    """Yield the conversations whose last event does not show them as the API does."""
    for conversation, state in history.finals.items():
        if state is None:
            yield f"{conversation} can't be fetched"
    for name, channel in channels.items():
        numbered = channel.by_conversation()
        for conversation, state in history.finals.items():
            last = _last(numbered.get(conversation, {}))
            if state is not None and last is not None and last.data.get("conversation") != state:
                yield f"{name}: the last event of {conversation} shows another state than the API"


def _last(numbered: Mapping[int, Seen]) -> Seen | None:
    return numbered[max(numbered)] if numbered else None
