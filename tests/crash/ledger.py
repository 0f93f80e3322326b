"""The requests of clients and their outcomes: plain records, for the verdict to judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

Kind = Literal["create", "message", "close", "reopen", "patch"]
Outcome = Literal["pending", "acknowledged", "unknown", "refused"]


@dataclass(slots=True)
class Ask:
    """A request that should change something.

    Args:
        mark: identifies its event: a contact's user id, a message's text, or a title; empty for a close or reopen.
        key: its `Idempotency-Key`; with a key it is sent until it is answered, without one only once.
        conversation: id of the conversation; for a creation, once it is known.
        answer: the acknowledgement's bytes.
        detail: why it was refused.
        replays: answers to repetitions of the same request.
        client: the client that sent it, which sends the next request only once this one is settled.
        sent_at, settled_at: when it was first sent and when it was settled, in seconds of the monotonic clock.
    """

    kind: Kind
    mark: str
    key: str | None
    conversation: str | None
    outcome: Outcome = "pending"
    answer: bytes = b""
    detail: str = ""
    replays: list[bytes] = field(default_factory=list)
    client: str = ""
    sent_at: float = 0.0
    settled_at: float = inf


@dataclass(slots=True)
class Ledger:
    """All requests, in the order in which they were first sent."""

    asks: list[Ask] = field(default_factory=list)

    def count(self, outcome: Outcome) -> int:
        """Return the number of requests with this outcome."""
        return sum(ask.outcome == outcome for ask in self.asks)


@dataclass(frozen=True, slots=True)
class Found:
    """The final state.

    Args:
        events: the feed's envelopes, read in one go after the last restart.
        followed: the feed's envelopes as read continuously over all crashes.
        messages: the listed messages of each conversation.
        states: each conversation.
        deliveries: each delivery's id, event id and status, of one endpoint.
        received: ids of the events that the endpoint's receiver got, in order of first arrival.
        streamed: ids of the events that the consumer got, in order, including duplicates.
        connections: how often the consumer has subscribed.
    """

    events: list[bytes]
    followed: list[bytes]
    messages: dict[str, list[dict[str, Any]]]
    states: dict[str, dict[str, Any]]
    deliveries: list[tuple[str, str, str]]
    received: list[str]
    streamed: list[str]
    connections: int
