"""Checks of the promises of several nodes against the final state. Each check yields a sentence for each broken promise.

`tests.crash.verdict` checks the promises that a single node makes as well: nothing lost, nothing twice, numbers and
order. This module checks those that only several nodes, a remote database and its standby can break.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from math import inf
from typing import Any, Final

import orjson

from tests.chaos.rivals import Hold
from tests.chaos.tenancy import tenancy
from tests.chaos.tenants import Told
from tests.crash.ledger import Ask, Found, Ledger
from tests.crash.verdict import delivered, mark_of, verdict
from tests.support.floors import Floor, shortfalls
from tests.support.replay.history import Delivery
from tests.support.replay.signature import signature_fault

_SECONDS_A_FAULT: Final = 60.0
"""The longest average duration of a random fault; the loss of the standby alone takes a minute."""
_WRITES_A_SECOND: Final = 2.5
"""The fewest acknowledged writes that prove anything; a busy machine has had six a second, outages included."""
_WRITES_A_FAULT: Final = 30
"""The same for each fault of a script."""
_SECONDS_AN_ERASURE: Final = 40.0


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the installation.

    Args:
        from_s, until_s: when it began and when it was over, by the monotonic clock.
        pause_s: the longest allowed time without an acknowledged write, from its begin on; infinite if not judged.
    """

    name: str
    from_s: float
    until_s: float
    pause_s: float = inf


@dataclass(frozen=True, slots=True)
class Mailbox:
    """The deliveries of an endpoint as its receiver and the service saw them.

    Args:
        arrivals: all posts, in order.
        refused: (delivery id, attempt) of posts that the receiver refused.
        deliveries: each delivery's id, event id and status.
    """

    secret: str
    arrivals: Sequence[Delivery]
    refused: frozenset[tuple[str, int]]
    deliveries: list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Rows:
    """The project's rows in the database.

    Args:
        events: position and id of each event, in the order of the positions, including events of no feed.
        head: the position in the project's head.
        doubled: attempts that are recorded twice.
    """

    events: Sequence[tuple[int, str]]
    head: int
    doubled: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class History:
    """The history of a whole run.

    Args:
        found: see `Found`; its deliveries are those of the first mailbox.
        holds: each connection of a rival for the contested channel.
        channel: ids of the events of the contested channel.
        seen: envelopes that a published client received on that conversation's channel, in order.
        subscriptions: how often the published client has subscribed.
        scripted: the number of scripted faults.
        seconds: how long random faults were caused after them.
    """

    ledger: Ledger
    found: Found
    mailboxes: Sequence[Mailbox]
    holds: Sequence[Hold]
    channel: Sequence[str]
    faults: Sequence[Fault]
    rows: Rows | None = None
    seen: Sequence[str] = ()
    subscriptions: int = 0
    tenants: Sequence[Told] = ()
    left: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scripted: int = 0
    seconds: float = 0.0


def least_writes(scripted: int, seconds: float) -> int:
    """Return the number of acknowledged writes that a run needs; the arguments are those of `History`."""
    return scripted * _WRITES_A_FAULT + int(seconds * _WRITES_A_SECOND)


def floors(history: History) -> Sequence[Floor]:
    """Return the amounts that the verdict rests on, each with the least that a busy machine reaches."""
    found, writes = history.found, least_writes(history.scripted, history.seconds)
    chosen = max(1, int(history.seconds / _SECONDS_A_FAULT)) if history.seconds else 0
    erasures = int(history.seconds / _SECONDS_AN_ERASURE) if history.tenants else 0
    least = writes // 2  # closing a closed conversation makes no event
    received = (len({_event(each) for each in box.arrivals}) for box in history.mailboxes)
    return (
        Floor("faults done", len(history.faults), history.scripted + chosen),
        Floor("writes acknowledged", history.ledger.count("acknowledged"), writes),
        Floor("events read", len(found.events), least),
        Floor("events received by the endpoint with the fewest", min(received, default=0), least),
        Floor("events received by the consumer", len(set(found.streamed)), least),
        Floor("erasures answered in other projects", erased(history), erasures),
    )


def problems(history: History) -> list[str]:
    """Return a sentence for each broken promise, and for each floor that was not reached."""
    events = [orjson.loads(each) for each in history.found.events]
    return list(
        chain(
            verdict(history.ledger, history.found),
            in_real_time(history.ledger, events),
            mail(history, events),
            repeats(history),
            one_holder(history, events),
            whole_channel(history),
            spectated(history),
            dense(history.rows),
            pauses(history.ledger, history.faults),
            tenancy(history.tenants, history.faults, history.left),
            shortfalls(floors(history)),
        )
    )


def in_real_time(ledger: Ledger, events: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield writes that come before another write that was acknowledged before they were sent.

    This order holds across nodes: a client that gets an acknowledgement and then sends a request finds both in this order.
    """
    place = {mark: number for number, event in enumerate(events) if (mark := mark_of(event)) is not None}
    settled = sorted(
        (ask.settled_at, place[ask.mark], ask.mark)
        for ask in ledger.asks
        if ask.outcome == "acknowledged" and ask.mark in place
    )
    times = [at for at, _, _ in settled]
    highest = list(_running_maximum((number, mark) for _, number, mark in settled))
    for ask in ledger.asks:
        known = bisect_right(times, ask.sent_at)
        if ask.mark in place and known and highest[known - 1][0] > place[ask.mark]:
            yield f"{ask.mark} comes before {highest[known - 1][1]}, which was acknowledged before it was asked for"


def _running_maximum(values: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    best = (-1, "")
    for each in values:
        best = max(best, each)
        yield best


def mail(history: History, events: list[dict[str, Any]]) -> Iterator[str]:
    """Yield faulty deliveries of each endpoint; they must be complete, in order, signed, and have one id for each event."""
    bodies = {event["id"]: body for event, body in zip(events, history.found.events, strict=True)}
    for number, box in enumerate(history.mailboxes):
        received = list(dict.fromkeys(_event(each) for each in box.arrivals))
        found = replace(history.found, deliveries=box.deliveries, received=received)
        if number:  # `verdict` has judged the first one
            yield from delivered(events, found)
        stored = {delivery: event for delivery, event, _ in box.deliveries}
        if len(stored) != len({event for _, event, _ in box.deliveries}):
            yield f"endpoint {number} has several deliveries of an event"
        for each in box.arrivals:
            if against := signature_fault(box.secret, each.signature, each.body, each.received_at):
                yield f"{each.delivery_id} came with a wrong signature: {against}"
            if stored.get(each.delivery_id) != _event(each):
                yield f"{each.delivery_id} brought {_event(each)}, and is of {stored.get(each.delivery_id)}"
            if bodies.get(_event(each), each.body) != each.body:
                yield f"{each.delivery_id} has other bytes than the feed"


def repeats(history: History) -> Iterator[str]:
    """Yield deliveries that were repeated after they were accepted, without a fault that explains it."""
    for box in history.mailboxes:
        taken: dict[str, float] = {}
        for each in box.arrivals:
            before = taken.get(each.delivery_id)
            if before is not None and not _something_happened(history.faults, before, each.at):
                yield f"{each.delivery_id} came again {each.at - before:.1f} s after it was taken, for no reason"
            if (each.delivery_id, each.attempt) not in box.refused:
                taken.setdefault(each.delivery_id, each.at)


_UNDER_WAY_S = 5.0
"""How long it may take until an answer is recorded."""


def _something_happened(faults: Sequence[Fault], since: float, until: float) -> bool:
    return any(fault.from_s <= until and fault.until_s >= since - _UNDER_WAY_S for fault in faults)


def one_holder(history: History, events: list[dict[str, Any]]) -> Iterator[str]:
    """Yield events that a superseded consumer received although they were requested after its successor had begun."""
    asked = {ask.mark: ask for ask in history.ledger.asks}
    made = {event["id"]: asked.get(mark_of(event) or "") for event in events}
    held = sorted((hold for hold in history.holds if hold.from_s < inf), key=lambda hold: hold.from_s)
    for number, hold in enumerate(held):
        later = next((each for each in held[number + 1 :] if each.consumer != hold.consumer), None)
        if later is None:
            continue
        for event, _ in hold.events:
            ask: Ask | None = made.get(event)
            if ask is not None and ask.sent_at > later.from_s:
                yield f"{hold.consumer} was given {event} although {later.consumer} held the channel by then"


def whole_channel(history: History) -> Iterator[str]:
    """Yield events of the contested channel that a hold skipped or misordered, or that no consumer received."""
    place = {event: number for number, event in enumerate(history.channel)}
    given: set[int] = set()
    starts: list[int] = []
    for hold in history.holds:
        places = [place[event] for event, _ in hold.events if event in place]
        if len(places) != len(hold.events):
            yield f"{hold.consumer} was given what is no event of its channel"
        for one, other in pairwise(places):
            if other != one + 1:
                yield f"{hold.consumer} was given {history.channel[other]} behind {history.channel[one]}"
        if hold.gap:
            yield f"{hold.consumer} was told of a gap, and there is no need of one"
        given.update(places)
        starts += places[:1]
    if starts and (lost := set(range(min(starts), len(history.channel))) - given):
        yield f"no consumer of the channel was given {sorted(history.channel[each] for each in lost)}"


def spectated(history: History) -> Iterator[str]:
    """Yield events that a published client missed, got out of order, or got more often than it has subscribed."""
    bodies = {str(orjson.loads(body)["id"]): body for body in history.found.events}
    place = {bodies[event].decode(): number for number, event in enumerate(history.channel)}
    if history.subscriptions and not history.seen:
        yield "the published client was given nothing"
    if unknown := [each for each in history.seen if each not in place]:
        yield f"the published client was given what is no event of its channel: {unknown[0]}"
    places = [place[each] for each in history.seen if each in place]
    back = 0
    for one, other in pairwise(places):
        back += other <= one
        if other > one + 1:
            yield f"the published client was given {history.channel[other]} behind {history.channel[one]}"
    if back >= max(1, history.subscriptions):
        yield f"the published client was sent back {back} times, and has subscribed {history.subscriptions} times"
    if places and max(places) != len(history.channel) - 1:
        yield f"the published client was not given the last {len(history.channel) - 1 - max(places)} events"


def dense(rows: Rows | None) -> Iterator[str]:
    """Yield gaps in the project's positions, ids that do not grow with them, and a head that is not the last position."""
    if rows is None:
        return
    for (one, first), (other, second) in pairwise(rows.events):
        if other != one + 1:
            yield f"behind position {one} comes {other}"
        if second <= first:
            yield f"{second} at {other} is not greater than {first} at {one}"
    if rows.events and rows.head != rows.events[-1][0]:
        yield f"the head of the project is {rows.head}, its last event has {rows.events[-1][0]}"
    yield from (f"an attempt is recorded twice: {each}" for each in rows.doubled)


def pauses(ledger: Ledger, faults: Sequence[Fault]) -> Iterator[str]:
    """Yield faults after which no client was answered for longer than allowed."""
    times = sorted(ask.settled_at for ask in ledger.asks if ask.outcome == "acknowledged")
    for fault in faults:
        longest = pause(times, fault)
        others = [each for each in faults if each is not fault and each.from_s < fault.from_s + longest]
        if longest > fault.pause_s and not any(each.until_s > fault.from_s for each in others):
            yield f"{fault.name}: nobody was answered for {longest:.1f} s, {fault.pause_s:.1f} are allowed"


def pause(times: Sequence[float], fault: Fault) -> float:
    """Return the longest time without an answer that began between the fault's begin and its end."""
    last, longest = fault.from_s, 0.0
    for at in times[bisect_right(times, fault.from_s) :]:
        longest = max(longest, at - last)
        last = at
        if at > fault.until_s:
            break
    return longest


def holders(history: History) -> Counter[str]:
    """Return how often each rival has held the channel."""
    return Counter(hold.consumer for hold in history.holds if hold.from_s < inf)


def erased(history: History) -> int:
    """Return the number of answered erasures in the additional projects."""
    return sum(life.erased_at < inf for told in history.tenants for life in told.lives)


def _event(arrival: Delivery) -> str:
    return str(orjson.loads(arrival.body)["id"])
