"""What many nodes have promised, held against what there is in the end. Each check yields sentences; none is good news.

`tests.crash.verdict` judges what one node promises as well: nothing lost, nothing twice, numbers and order. Here is
what only several nodes, a database that is somewhere else, and its standby can break.
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
"""The longest that a fault picked by chance takes on average; the loss of the standby alone takes a minute."""
_WRITES_A_SECOND: Final = 2.5
"""The fewest acknowledged writes that prove anything; a machine full of work has had six a second, outages included."""
_WRITES_A_FAULT: Final = 30
"""The same for each fault of a script."""
_SECONDS_AN_ERASURE: Final = 40.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that was done to the installation.

    Args:
        from_s, until_s: when it began and when all was as before, by one steady clock.
        pause_s: how long at most nothing may be acknowledged because of it, from its begin on; infinite if it is not judged.
    """

    name: str
    from_s: float
    until_s: float
    pause_s: float = inf


@dataclass(frozen=True, slots=True)
class Mailbox:
    """An endpoint as its receiver and the service saw it.

    Args:
        arrivals: everything that was posted, in order.
        refused: (delivery id, attempt) of those that were not taken.
        deliveries: each delivery's id, event id and status.
    """

    secret: str
    arrivals: Sequence[Delivery]
    refused: frozenset[tuple[str, int]]
    deliveries: list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class Rows:
    """What stands in the database of the project.

    Args:
        events: position and id of each event, in the order of the positions; those of no feed included.
        head: the position in the project's head.
        doubled: attempts that are there twice.
    """

    events: Sequence[tuple[int, str]]
    head: int
    doubled: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class History:
    """A whole run.

    Args:
        found: see there; its deliveries are those of the first mailbox.
        holds: of the channel that rivals have fought for, each connection.
        channel: ids of the events that this channel carries.
        seen: envelopes that a published client was given of that conversation's channel, in their order.
        subscriptions: how often it has subscribed.
        scripted: how many faults were to be done one after the other.
        seconds: for how long after them faults were picked by chance.
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
    """Return how many acknowledged writes a run needs; the arguments are those of `History`."""
    return scripted * _WRITES_A_FAULT + int(seconds * _WRITES_A_SECOND)


def floors(history: History) -> Sequence[Floor]:
    """Return how much of everything the verdict rests on, with the least that a machine full of work reaches."""
    found, writes = history.found, least_writes(history.scripted, history.seconds)
    chosen = max(1, int(history.seconds / _SECONDS_A_FAULT)) if history.seconds else 0
    erasures = int(history.seconds / _SECONDS_AN_ERASURE) if history.tenants else 0
    least = writes // 2  # a close of what is closed has no event
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
    """Yield what was acknowledged before something else was first sent, and has the higher place.

    Whatever node answered: who hears of one thing and then asks for another finds them in this order.
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
    """Yield what is wrong with each endpoint's deliveries: whole, in order, signed, the same id for the same event."""
    bodies = {event["id"]: body for event, body in zip(events, history.found.events, strict=True)}
    for number, box in enumerate(history.mailboxes):
        received = list(dict.fromkeys(_event(each) for each in box.arrivals))
        found = replace(history.found, deliveries=box.deliveries, received=received)
        if number:  # the first one was judged with all else
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
    """Yield what came again though it was taken, and nothing had happened meanwhile that explains it."""
    for box in history.mailboxes:
        taken: dict[str, float] = {}
        for each in box.arrivals:
            before = taken.get(each.delivery_id)
            if before is not None and not _something_happened(history.faults, before, each.at):
                yield f"{each.delivery_id} came again {each.at - before:.1f} s after it was taken, for no reason"
            if (each.delivery_id, each.attempt) not in box.refused:
                taken.setdefault(each.delivery_id, each.at)


_UNDER_WAY_S = 5.0
"""An answer may be under way for so long before it is recorded."""


def _something_happened(faults: Sequence[Fault], since: float, until: float) -> bool:
    return any(fault.from_s <= until and fault.until_s >= since - _UNDER_WAY_S for fault in faults)


def one_holder(history: History, events: list[dict[str, Any]]) -> Iterator[str]:
    """Yield events that a superseded consumer was given though they were asked for only after its successor had begun."""
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
    """Yield events of the fought-for channel that a hold left out, that came in another order, or that nobody was given."""
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
    """Yield what a published client was not given, in another order, or more often than it has subscribed."""
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
    """Yield holes in the project's positions, ids that do not grow with them, and a head that is not the last one."""
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
    """Yield faults behind which nobody was answered for longer than they may cost."""
    times = sorted(ask.settled_at for ask in ledger.asks if ask.outcome == "acknowledged")
    for fault in faults:
        longest = pause(times, fault)
        others = [each for each in faults if each is not fault and each.from_s < fault.from_s + longest]
        if longest > fault.pause_s and not any(each.until_s > fault.from_s for each in others):
            yield f"{fault.name}: nobody was answered for {longest:.1f} s, {fault.pause_s:.1f} are allowed"


def pause(times: Sequence[float], fault: Fault) -> float:
    """The longest time without an answer that began behind the fault's begin and before its end."""
    last, longest = fault.from_s, 0.0
    for at in times[bisect_right(times, fault.from_s) :]:
        longest = max(longest, at - last)
        last = at
        if at > fault.until_s:
            break
    return longest


def holders(history: History) -> Counter[str]:
    """How often each rival has held the channel."""
    return Counter(hold.consumer for hold in history.holds if hold.from_s < inf)


def erased(history: History) -> int:
    """How many erasures were answered in the further projects."""
    return sum(life.erased_at < inf for told in history.tenants for life in told.lives)


def _event(arrival: Delivery) -> str:
    return str(orjson.loads(arrival.body)["id"])
