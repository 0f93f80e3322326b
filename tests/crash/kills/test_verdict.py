"""The judge of the crash loop finds each kind of broken promise."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import orjson
import pytest

from tests.crash.ledger import Ask, Found, Ledger
from tests.crash.verdict import verdict

CNV = "cnv_1"


def conversation(sequence: int) -> dict[str, Any]:
    return {"id": CNV, "sequence": sequence, "contact": {"userId": "c"}}


def event(number: int, **data: Any) -> dict[str, Any]:
    kind = "message.created" if "message" in data else "conversation.created"
    return {
        "id": f"evt_{number}",
        "type": kind,
        "sequence": number,
        "data": {"conversation": conversation(number), **data},
    }


def message(number: int) -> dict[str, Any]:
    return {"id": f"msg_{number}", "index": number, "text": f"m{number}"}


EVENTS = [event(1), event(2, message=message(0)), event(3, message=message(1))]
IDS = [each["id"] for each in EVENTS]


def made(events: list[dict[str, Any]]) -> Found:
    """Return the final state if nothing has gone wrong."""
    bodies = [orjson.dumps(each) for each in events]
    return Found(
        events=bodies,
        followed=bodies,
        messages={CNV: [message(0), message(1)]},
        states={CNV: conversation(3)},
        deliveries=[(f"dlv_{each}", each, "delivered") for each in IDS],
        received=IDS,
        streamed=[*IDS[:2], *IDS[1:]],
        connections=2,
    )


def asked() -> Ledger:
    """Return the requests, all acknowledged, the first message with a key and replayed."""
    first = orjson.dumps(message(0))
    return Ledger(
        [
            Ask("create", "c", None, CNV, "acknowledged", orjson.dumps(conversation(1))),
            Ask("message", "m0", "key", CNV, "acknowledged", first, replays=[first]),
            Ask("message", "m1", None, CNV, "acknowledged", orjson.dumps(message(1))),
        ]
    )


def test_a_history_without_fault_is_not_objected_to() -> None:
    assert verdict(asked(), made(EVENTS)) == []


def test_unacknowledged_write_may_be_stored_or_not() -> None:
    ledger = asked()
    ledger.asks[2].outcome = "unknown"
    ledger.asks.append(Ask("message", "m2", None, CNV, "unknown"))
    assert verdict(ledger, made(EVENTS)) == []


def _doubled(events: list[dict[str, Any]]) -> None:
    events[2]["data"]["message"]["text"] = "m0"


def _renumbered(events: list[dict[str, Any]]) -> None:
    events[2]["sequence"] = 4


def _altered(events: list[dict[str, Any]]) -> None:
    events[1]["data"]["message"]["index"] = 7


def _swapped(events: list[dict[str, Any]]) -> None:
    one, two = events[1]["data"], events[2]["data"]
    events[1]["data"], events[2]["data"] = two, one


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda events: events.pop(), "was acknowledged and is there 0 times"),
        (_doubled, "was acknowledged and is there 2 times"),
        (_renumbered, "are numbered [1, 2, 4]"),
        (_altered, "and its event shows"),
        (_swapped, "comes before"),
    ],
)
def test_a_broken_log_is_found(change: Callable[[list[dict[str, Any]]], Any], words: str) -> None:
    events = deepcopy(EVENTS)
    change(events)
    assert any(words in each for each in verdict(asked(), made(events)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"followed": [b"{}"]}, "a reader of the feed over all crashes"),
        ({"messages": {CNV: [message(0)]}}, "lists 1 messages"),
        ({"states": {CNV: conversation(2)}}, "says 2 and has 3 events"),
        ({"streamed": [IDS[0], IDS[2]]}, "left out 1 events"),
        ({"streamed": IDS[:2]}, "has not shown the last 1"),
        ({"streamed": IDS, "received": [IDS[0], IDS[2], IDS[1]]}, "first arrived behind 3"),
        ({"streamed": [*IDS[:2], *IDS[1:2], *IDS[1:]]}, "went back 2 times"),
        ({"received": IDS[:2]}, "was delivered, they say, and has not arrived"),
        ({"deliveries": []}, "has no delivery"),
        ({"deliveries": [(f"dlv_{each}", each, "pending") for each in IDS]}, "is pending"),
    ],
)
def test_a_broken_channel_is_found(change: dict[str, Any], words: str) -> None:
    assert any(words in each for each in verdict(asked(), replace(made(EVENTS), **change)))


def test_another_answer_to_the_same_key_is_found() -> None:
    ledger = asked()
    ledger.asks[1].replays.append(b"{}")
    assert any("key was answered with" in each for each in verdict(ledger, made(EVENTS)))


def test_refusal_and_unrequested_write_are_found() -> None:
    ledger = asked()
    ledger.asks[0].outcome = "refused"
    del ledger.asks[2]
    found = verdict(ledger, made(EVENTS))
    assert any("was refused" in each for each in found)
    assert "nobody asked for m1" in found
