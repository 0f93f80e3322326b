"""The verdict on a chaos run finds each kind of broken promise in a history in which it is planted."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from tests.chaos.rivals import Hold
from tests.chaos.run import Report
from tests.chaos.tenants import Told
from tests.chaos.verdict import Fault, History, Mailbox, Rows, problems
from tests.crash.ledger import Ask, Found, Ledger
from tests.support.replay.history import Delivery

CNV = "cnv_1"
SECRET = "whsec_of_a_test"
NOW = time.time()


def conversation(sequence: int) -> dict[str, Any]:
    return {"id": CNV, "sequence": sequence, "contact": {"userId": "c"}}


def message(number: int) -> dict[str, Any]:
    return {"id": f"msg_{number}", "index": number, "text": f"m{number}"}


def event(number: int) -> dict[str, Any]:
    """Return the events of a conversation: the creation has number 1, and each message the next number."""
    data = {"conversation": conversation(number)} | ({"message": message(number - 2)} if number > 1 else {})
    kind = "message.created" if number > 1 else "conversation.created"
    return {"id": f"evt_{number}", "type": kind, "sequence": number, "data": data}


EVENTS = [event(number) for number in (1, 2, 3, 4)]
BODIES = [orjson.dumps(each) for each in EVENTS]
IDS = [each["id"] for each in EVENTS]


def posted(number: int, at: float, **other: Any) -> Delivery:
    """An arrival of an event's delivery."""
    body = BODIES[number - 1]
    signature = hmac.new(SECRET.encode(), f"{int(NOW)}.".encode() + body, hashlib.sha256).hexdigest()
    given: dict[str, Any] = {
        "delivery_id": f"dlv_{number}",
        "attempt": 1,
        "signature": f"t={int(NOW)},v1={signature}",
    } | other
    return Delivery(at, body, "message.created", received_at=NOW, previous=None, **given)


def mailbox(arrivals: Sequence[Delivery] = ()) -> Mailbox:
    listed = [(f"dlv_{number}", f"evt_{number}", "delivered") for number in (1, 2, 3, 4)]
    return Mailbox(SECRET, arrivals or [posted(n, 10 + n) for n in (1, 2, 3, 4)], frozenset(), listed)


def ask(number: int, client: str, sent_at: float, settled_at: float) -> Ask:
    """The request that caused an event."""
    made: dict[str, Any] = {"client": client, "sent_at": sent_at, "settled_at": settled_at}
    if number == 1:
        return Ask("create", "c", "k", CNV, "acknowledged", orjson.dumps(conversation(1)), **made)
    answer = orjson.dumps(message(number - 2))
    return Ask("message", f"m{number - 2}", f"k{number}", CNV, "acknowledged", answer, **made)


def whole() -> History:
    """Return a correct history: two writers, two endpoints, two rivals, and a fault."""
    asks = [ask(1, "a", 0, 1), ask(2, "a", 1, 3), ask(3, "b", 2, 4), ask(4, "a", 5, 6)]
    found = Found(
        events=BODIES,
        followed=BODIES,
        messages={CNV: [message(0), message(1), message(2)]},
        states={CNV: conversation(4)},
        deliveries=mailbox().deliveries,
        received=IDS,
        streamed=IDS,
        connections=1,
    )
    first = Hold("one", 0.2, [(IDS[0], 1), (IDS[1], 3)])
    second = Hold("two", 3.8, [(IDS[1], 4), (IDS[2], 4), (IDS[3], 6)])
    rows = Rows(list(enumerate(IDS, 7)), 10)
    fault = Fault("a fault", 3.0, 3.5, 2.0)
    return History(Ledger(asks), found, [mailbox(), mailbox()], [first, second], IDS, [fault], rows)


def found_in(history: History, words: str) -> bool:
    return any(words in each for each in problems(history))


def test_correct_history_has_no_problems() -> None:
    assert problems(whole()) == []


def large() -> History:
    """Return a run with one scripted fault and enough of everything to judge; its repetitions are problems of their own."""
    one = whole()
    asks = [replace(each) for each in one.ledger.asks for _ in range(10)]
    found = replace(
        one.found,
        events=[orjson.dumps({**each, "id": f"{each['id']}_{at}"}) for each in EVENTS for at in range(10)],
        streamed=[f"{each}_{at}" for each in IDS for at in range(10)],
    )
    posts = [Delivery(float(at), body, "message.created") for at, body in enumerate(found.events)]
    boxes = [replace(each, arrivals=posts) for each in one.mailboxes]
    return replace(one, ledger=Ledger(asks), found=found, mailboxes=boxes, channel=[], scripted=1)


def judged_too_little(history: History) -> list[str]:
    return [each for each in problems(history) if each.startswith("judged too little: ")]


def test_a_run_that_judged_enough_reaches_each_floor() -> None:
    assert judged_too_little(large()) == []


def without(history: History, what: str) -> History:
    """Return a run that has too little of one kind."""
    few, found = history.mailboxes[0].arrivals[:3], history.found
    match what:
        case "faults done":
            return replace(history, faults=[])
        case "writes acknowledged":
            return replace(history, ledger=Ledger(history.ledger.asks[:3]))
        case "events read":
            return replace(history, found=replace(found, events=found.events[:3]))
        case "events received by the endpoint with the fewest":
            return replace(
                history, mailboxes=[history.mailboxes[0], replace(history.mailboxes[1], arrivals=few)]
            )
        case "events received by the consumer":
            return replace(history, found=replace(found, streamed=found.streamed[:3] * 20))
    raise AssertionError(what)


@pytest.mark.parametrize(
    "what",
    [
        "faults done",
        "writes acknowledged",
        "events read",
        "events received by the endpoint with the fewest",
        "events received by the consumer",
    ],
)
def test_run_below_a_floor_fails(what: str) -> None:
    history = without(large(), what)
    (problem,) = judged_too_little(history)
    assert f" {what} (at least " in problem
    assert problem.removeprefix("judged too little: ") in str(Report(history, [], []))


def test_a_run_of_a_minute_needs_more_faults_and_writes_and_an_erasure() -> None:
    history = replace(large(), seconds=60.0, tenants=[Told("word")])
    assert judged_too_little(history) == [
        "judged too little: 1 faults done (at least 2)",
        "judged too little: 40 writes acknowledged (at least 180)",
        "judged too little: 40 events read (at least 90)",
        "judged too little: 40 events received by the endpoint with the fewest (at least 90)",
        "judged too little: 40 events received by the consumer (at least 90)",
        "judged too little: 0 erasures answered in other projects (at least 1)",
    ]


def test_a_lost_write_is_found() -> None:
    history = whole()
    history.ledger.asks.append(replace(ask(4, "b", 7, 8), mark="m9"))
    assert found_in(history, "was acknowledged and is there 0 times")


def test_misordered_writes_of_different_writers_are_found() -> None:
    history = whole()
    history.ledger.asks[3].settled_at = 1.5
    assert found_in(history, "m1 comes before m2, which was acknowledged before it was asked for")


def test_misordered_writes_of_one_writer_are_found() -> None:
    history = whole()
    asks = history.ledger.asks
    asks[1], asks[3] = asks[3], asks[1]
    assert found_in(history, "which was settled first")


@pytest.mark.parametrize(
    ("box", "words"),
    [
        (replace(mailbox(), deliveries=mailbox().deliveries[:3]), "evt_4 has no delivery"),
        (
            replace(mailbox(), deliveries=[*mailbox().deliveries[:3], ("dlv_4", "evt_4", "dropped")]),
            "the delivery of evt_4 is dropped",
        ),
        (mailbox([posted(n, 10 + n) for n in (1, 2, 3)]), "was delivered, they say, and has not arrived"),
        (mailbox([posted(n, 10 + n) for n in (1, 3, 2, 4)]), "first arrived behind 3"),
        (
            replace(mailbox(), deliveries=[*mailbox().deliveries, ("dlv_5", "evt_4", "delivered")]),
            "has several deliveries of an event",
        ),
        (mailbox([*mailbox().arrivals, posted(4, 15, signature="t=1,v1=0")]), "came with a wrong signature"),
        (
            mailbox([*mailbox().arrivals[:3], posted(4, 15, delivery_id="dlv_3")]),
            "brought evt_4, and is of evt_3",
        ),
        (
            mailbox([*mailbox().arrivals, posted(4, 30)]),
            "came again 16.0 s after it was taken, for no reason",
        ),
    ],
)
def test_faulty_deliveries_of_an_endpoint_are_found(box: Mailbox, words: str) -> None:
    history = whole()
    assert found_in(replace(history, mailboxes=[history.mailboxes[0], box]), words)


def test_repeated_delivery_around_a_fault_is_no_problem() -> None:
    history = replace(whole(), mailboxes=[mailbox([*mailbox().arrivals, posted(4, 15)])])
    fault = Fault("a fault", 14.5, 14.8)
    assert problems(replace(history, faults=[fault])) == []


def test_repeated_delivery_after_a_refusal_is_no_problem() -> None:
    box = mailbox([posted(1, 11), posted(2, 12), posted(3, 13), posted(4, 14), posted(4, 60, attempt=2)])
    box = replace(box, refused=frozenset({("dlv_4", 1)}))
    assert problems(replace(whole(), mailboxes=[box])) == []


def test_event_sent_to_a_superseded_consumer_is_found() -> None:
    history = whole()
    history.holds[0].events.append((IDS[2], 5))
    history.holds[0].events.append((IDS[3], 7))
    assert found_in(history, "one was given evt_4 although two held the channel by then")
    assert not found_in(history, "one was given evt_3")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([IDS[1], IDS[3]], "two was given evt_4 behind evt_2"),
        ([IDS[1], IDS[2], IDS[2], IDS[3]], "two was given evt_3 behind evt_3"),
        ([IDS[3]], "no consumer of the channel was given ['evt_3']"),
        ([IDS[1], IDS[2]], "no consumer of the channel was given ['evt_4']"),
        (["evt_other"], "two was given what is no event of its channel"),
    ],
)
def test_a_hole_in_the_channel_is_found(events: list[str], words: str) -> None:
    history = whole()
    history.holds[1].events[:] = [(each, 6) for each in events]
    assert found_in(history, words)


def test_unnecessary_gap_is_found() -> None:
    history = whole()
    history.holds[1].gap = True
    assert found_in(history, "two was told of a gap")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (Rows([(7, IDS[0]), (9, IDS[1])], 9), "behind position 7 comes 9"),
        (Rows([(7, IDS[1]), (8, IDS[0])], 8), "evt_1 at 8 is not greater than evt_2 at 7"),
        (Rows([(7, IDS[0])], 8), "the head of the project is 8, its last event has 7"),
        (Rows([(7, IDS[0])], 7, ["5 attempt 1"]), "an attempt is recorded twice: 5 attempt 1"),
    ],
)
def test_positions_that_are_not_dense_are_found(rows: Rows, words: str) -> None:
    assert found_in(replace(whole(), rows=rows), words)


def test_a_pause_that_is_too_long_is_found() -> None:
    history = replace(whole(), faults=[Fault("a fault", 4.0, 4.5, 1.0)])
    assert found_in(history, "a fault: nobody was answered for 2.0 s, 1.0 are allowed")


def test_a_pause_under_two_faults_at_once_is_not_judged() -> None:
    faults = [Fault("one", 4.0, 4.5, 1.0), Fault("other", 4.2, 9.0, 5.0)]
    assert problems(replace(whole(), faults=faults)) == []


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([], "the published client was given nothing"),
        ([1, 2, 4], "was given evt_4 behind evt_2"),
        ([1, 2, 3], "was not given the last 1 events"),
        ([1, 2, 1, 2, 1, 2, 3, 4], "was sent back 2 times, and has subscribed 2 times"),
    ],
)
def test_events_missing_at_a_published_client_are_found(numbers: list[int], words: str) -> None:
    seen = [BODIES[number - 1].decode() for number in numbers]
    assert found_in(replace(whole(), seen=seen, subscriptions=2), words)


def test_a_published_client_may_begin_late_and_be_sent_back_when_it_returns() -> None:
    seen = [BODIES[number - 1].decode() for number in (2, 3, 2, 3, 4)]
    assert problems(replace(whole(), seen=seen, subscriptions=2)) == []
