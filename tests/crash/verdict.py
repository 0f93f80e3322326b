"""The responses that clients got, compared with the state after the crashes. Each check yields sentences; none means success."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

import orjson

from tests.crash.held import MARK as HELD
from tests.crash.ledger import Ask, Found, Ledger


def verdict(ledger: Ledger, found: Found) -> list[str]:
    """Yield everything that is lost, doubled, out of order or different from its answer."""
    events = [orjson.loads(each) for each in found.events]
    return list(
        chain(
            _once(ledger, events),
            _sequences(events, found.states),
            _answers(ledger, events),
            _replays(ledger),
            _in_the_order_of_answers(ledger, events),
            _messages(events, found.messages),
            _followed(found),
            _streamed(events, found),
            delivered(events, found),
        )
    )


def _once(ledger: Ledger, events: list[dict[str, Any]]) -> Iterator[str]:
    """Check that acknowledged requests have one event, unacknowledged ones at most one without a key, refused ones none."""
    seen = Counter(mark for event in events if (mark := mark_of(event)) is not None)
    asked = {ask.mark for ask in ledger.asks}
    for ask in ledger.asks:
        count = seen[ask.mark]
        if ask.kind in ("close", "reopen"):
            continue
        if ask.outcome == "acknowledged" and count != 1:
            yield f"the {ask.kind} {ask.mark} was acknowledged and is there {count} times"
        if ask.outcome == "unknown" and count > 1:
            yield f"the {ask.kind} {ask.mark} was sent once and is there {count} times"
        if ask.outcome == "pending":
            yield f"the {ask.kind} {ask.mark} was never settled"
    for ask in ledger.asks:
        if ask.outcome == "refused":
            yield f"the {ask.kind} {ask.mark} was refused: {ask.detail}"
    for mark in seen.keys() - asked:
        if HELD in mark:
            continue  # an agent's message, which `tests.crash.held` judges
        yield f"nobody asked for {mark}"


def mark_of(event: dict[str, Any]) -> str | None:
    data = event["data"]
    match event["type"]:
        case "conversation.created":
            return str(data["conversation"]["contact"]["userId"])
        case "message.created":
            return str(data["message"]["text"])
        case "conversation.updated" if "title" in data["changed"]:
            return str(data["conversation"]["title"])
    return None


def _sequences(events: list[dict[str, Any]], states: dict[str, dict[str, Any]]) -> Iterator[str]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for event in events:
        numbers[event["data"]["conversation"]["id"]].append(event["sequence"])
    for conversation, found in numbers.items():
        if found != list(range(1, len(found) + 1)):
            yield f"the events of {conversation} are numbered {found}"
        if states[conversation]["sequence"] != len(found):
            yield f"{conversation} says {states[conversation]['sequence']} and has {len(found)} events"
    for earlier, later in pairwise(events):
        if later["id"] <= earlier["id"]:
            yield f"the event {later['id']} comes behind {earlier['id']}"


def _answers(ledger: Ledger, events: list[dict[str, Any]]) -> Iterator[str]:
    """Check that the event of a conversation's answer shows that state, and that of a message's answer that message."""
    by_number = {(event["data"]["conversation"]["id"], event["sequence"]): event for event in events}
    by_message = {event["data"]["message"]["id"]: event for event in events if "message" in event["data"]}
    for ask in ledger.asks:
        if ask.outcome != "acknowledged":
            continue
        answer = orjson.loads(ask.answer)
        if ask.kind == "message":
            event = by_message.get(answer["id"])
            shown = event and event["data"]["message"]
        else:
            event = by_number.get((answer["id"], answer["sequence"]))
            shown = event and event["data"]["conversation"]
        if shown != answer:
            yield f"the {ask.kind} {ask.mark} was answered with {answer}, and its event shows {shown}"


def _replays(ledger: Ledger) -> Iterator[str]:
    for ask in ledger.asks:
        for replay in ask.replays:
            if replay != ask.answer:
                yield f"{ask.key} was answered with {ask.answer!r} and then with {replay!r}"


def _in_the_order_of_answers(ledger: Ledger, events: list[dict[str, Any]]) -> Iterator[str]:
    """Check that a client's later requests have higher numbers, because it waits for each answer.

    A request without an answer may still be in flight, on a node that is stopped.
    """
    place = {mark: number for number, event in enumerate(events) if (mark := mark_of(event)) is not None}
    last: dict[tuple[str, str], Ask] = {}
    for ask in ledger.asks:
        if ask.conversation is None or ask.mark not in place:
            continue
        before = last.get(whose := (ask.client, ask.conversation))
        if before is not None and place[ask.mark] < place[before.mark]:
            yield f"{ask.mark} comes before {before.mark}, which was settled first"
        if ask.outcome == "acknowledged":
            last[whose] = ask


def _messages(events: list[dict[str, Any]], listed: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["type"] == "message.created":
            told[event["data"]["conversation"]["id"]].append(event["data"]["message"])
    for conversation, messages in listed.items():
        if messages != told[conversation]:
            yield f"{conversation} lists {len(messages)} messages, and its events show {len(told[conversation])}"
        if [message["index"] for message in messages] != list(range(len(messages))):
            yield f"the messages of {conversation} are numbered {[each['index'] for each in messages]}"


def _followed(found: Found) -> Iterator[str]:
    """Check that the feed always shows an event with the same bytes at the same place."""
    if found.followed != found.events:
        same = sum(1 for _ in _common(found.followed, found.events))
        yield (
            f"a reader of the feed over all crashes has got {len(found.followed)} events, there are "
            f"{len(found.events)}, and {same} are the same"
        )


def _common(these: list[bytes], those: list[bytes]) -> Iterator[bytes]:
    for this, that in zip(these, those, strict=False):
        if this != that:
            return
        yield this


def _streamed(events: list[dict[str, Any]], found: Found) -> Iterator[str]:
    """Check that the consumer's events are in log order without a gap; they may go back only where a connection began."""
    place = {event["id"]: number for number, event in enumerate(events)}
    backward, expected = 0, 0
    for event in found.streamed:
        at = place.get(event)
        if at is None:
            yield f"the stream has shown {event}, which is not in the feed"
            continue
        if at > expected:
            yield f"the stream went on with {event} and left out {at - expected} events"
        backward += at < expected
        expected = at + 1
    if expected < len(events):
        yield f"the stream has not shown the last {len(events) - expected} events"
    if backward > found.connections - 1:
        yield f"the stream went back {backward} times, over {found.connections} connections"


def delivered(events: list[dict[str, Any]], found: Found) -> Iterator[str]:
    """Check that each event's delivery has arrived or has a reason, with first arrivals in order in a conversation."""
    status = {event: status for _, event, status in found.deliveries}
    received = set(found.received)
    highest: dict[str, int] = {}
    by_id = {event["id"]: event for event in events}
    for event in by_id.keys() - status.keys():
        yield f"{event} has no delivery"
    for event, ended in status.items():
        if ended == "delivered" and event not in received:
            yield f"{event} was delivered, they say, and has not arrived"
        if ended != "delivered":
            yield f"the delivery of {event} is {ended}, although its receiver was there"
    for event in found.received:
        if event not in by_id:
            yield f"the webhook has shown {event}, which is not in the feed"
            continue
        conversation, number = by_id[event]["data"]["conversation"]["id"], by_id[event]["sequence"]
        if number < highest.get(conversation, 0):
            yield f"{event}, {number} of {conversation}, first arrived behind {highest[conversation]}"
        highest[conversation] = max(number, highest.get(conversation, 0))
