"""Correct histories of replays, for tests to spoil."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from deskwire.engine.core.values import replace
from tests.support.replay.history import (
    FEED,
    STREAM,
    WEBHOOK,
    Arrival,
    Command,
    Delivery,
    Effect,
    History,
    Outcome,
)

SECRET: Final = "whsec_for_tests_only"
OURS: Final = "demo-test-"
NOW: Final = 1_790_000_000
LABELLED: Final = (WEBHOOK, STREAM)


def state(number: int, sequence: int, closed: bool = False) -> dict[str, Any]:
    """Return a conversation in the form that the API and events have."""
    return {
        "id": f"cnv_{number}",
        "contact": {"userId": f"{OURS}{number}"},
        "closed": closed,
        "sequence": sequence,
    }


def envelope(number: int, sequence: int, event_type: str, **data: Any) -> bytes:
    """Return an event's bytes."""
    return orjson.dumps(
        {
            "id": f"evt_{number}_{sequence}",
            "type": event_type,
            "apiVersion": "2026-11-01",
            "createdAt": "2026-11-21T10:00:00.000Z",
            "projectId": "prj_1",
            "sequence": sequence,
            "data": data,
        }
    )


def conversation(number: int, messages: int) -> tuple[list[Command], list[tuple[str, bytes]]]:
    """Return a conversation's commands, and its events with their types: created, messages, closed."""
    created = envelope(number, 1, "conversation.created", conversation=state(number, 1))
    events = [("conversation.created", created)]
    effects = [Effect("conversation.created", {"conversation": state(number, 1)})]
    for sequence in range(2, messages + 2):
        message = {"id": f"msg_{number}_{sequence}", "text": f"Line {sequence} \u2615"}
        body = envelope(
            number, sequence, "message.created", message=message, conversation=state(number, sequence)
        )
        events.append(("message.created", body))
        effects.append(Effect("message.created", {"message": message}))
    last = messages + 2
    closed = state(number, last, closed=True)
    events.append(
        (
            "conversation.closed",
            envelope(number, last, "conversation.closed", conversation=closed, closedBy="agent"),
        )
    )
    effects.append(Effect("conversation.closed", {"closedBy": "agent", "conversation": closed}))
    commands = [
        Command("step", f"cnv_{number}", float(at), "acknowledged", (effect,))
        for at, effect in enumerate(effects)
    ]
    return commands, events


def delivery(event_type: str, body: bytes, at: float, previous: int | None) -> Delivery:
    """Return an event delivered by webhook, correctly signed."""
    digest = hmac.digest(SECRET.encode(), b"%d." % NOW + body, "sha256").hex()
    return Delivery(
        at=at,
        body=body,
        label=event_type,
        received_at=NOW + 1.5,
        signature=f"t={NOW},v1={digest}",
        delivery_id=f"dlv_{at:g}",
        previous=None if previous is None else str(previous),
    )


def good_history(lengths: Sequence[int]) -> History:
    """Return a correct replay of conversations with these numbers of messages.

    The conversations are interleaved, as with several concurrent chats.
    """
    made = [conversation(number, messages) for number, messages in enumerate(lengths, 1)]
    order = list(_interleaved([events for _, events in made]))
    return History(
        ours=OURS,
        commands=[command for commands, _ in made for command in commands],
        channels={
            WEBHOOK: [
                delivery(event_type, body, at, orjson.loads(body)["sequence"] - 1)
                for at, (event_type, body) in enumerate(order, 10)
            ],
            STREAM: [Arrival(float(at), body, event_type) for at, (event_type, body) in enumerate(order, 5)],
            FEED: [Arrival(99.0, body) for _, body in order],
        },
        secret=SECRET,
        finals={f"cnv_{n}": state(n, messages + 2, closed=True) for n, messages in enumerate(lengths, 1)},
    )


def _interleaved(lists: Sequence[Sequence[tuple[str, bytes]]]) -> Iterator[tuple[str, bytes]]:
    for place in range(max(map(len, lists))):
        yield from (each[place] for each in lists if place < len(each))


def with_arrivals(history: History, channel: str, arrivals: Sequence[Arrival]) -> History:
    """Return the history with other arrivals on one channel."""
    return replace(history, channels={**history.channels, channel: arrivals})


def with_outcome(history: History, index: int, outcome: Outcome) -> History:
    """Return the history with another outcome of one command, which then has no expected effects."""
    commands = list(history.commands)
    commands[index] = replace(commands[index], outcome=outcome, effects=(), detail="for a test")
    return replace(history, commands=commands)
