"""The record of a replay: its commands and what they caused, for the checks to judge.

Moments called `at` are seconds of one steady clock, the same for commands and arrivals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from msgspec import Struct, field

Outcome = Literal["acknowledged", "unacknowledged", "refused"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)

WEBHOOK: Final = "webhook"
STREAM: Final = "stream"
FEED: Final = "feed"


class Arrival(Struct, frozen=True):
    """One event as a channel delivered it.

    Args:
        body: the envelope's raw bytes.
        label: the event type that the channel named beside the body; None if it names none.
    """

    at: float
    body: bytes
    label: str | None = None


class Delivery(Arrival, frozen=True):
    """An arrival by webhook, with the headers to check it by.

    Args:
        received_at: the wall clock, in seconds since the epoch, for the signature's tolerance.
        previous: `Service-Previous-Sequence`, None if the header is missing.
        attempt: `Service-Attempt`, 0 if that is missing.
    """

    received_at: float = 0.0
    signature: str = ""
    delivery_id: str = ""
    previous: str | None = None
    attempt: int = 0


class Effect(Struct, frozen=True):
    """An event that an acknowledged command must have caused.

    Args:
        data: the values that the event's `data` must have, by path, such as `conversation.rating`.
    """

    type: str
    data: Mapping[str, Any]


class Command(Struct, frozen=True):
    """One request that should change something.

    Args:
        conversation: its id, None if a creation was not acknowledged.
        sent_at: when the request was sent whose response came, or was lost.
        outcome: `unacknowledged` if the response was lost: it may have happened or not.
        effects: those that must follow, in order; empty unless acknowledged.
        detail: why it was refused or not acknowledged.
    """

    kind: str
    conversation: str | None
    sent_at: float
    outcome: Outcome
    effects: tuple[Effect, ...] = ()
    detail: str = ""


class History(Struct, frozen=True):
    """The facts that the checks look at.

    Args:
        ours: the beginning of the user ids of this replay's contacts; other events are not judged.
        channels: arrivals by channel, in the order of arrival; a channel that was not used is missing.
        secret: the webhook endpoint's signing secret.
        finals: conversations as `GET` answered at the end, by id; a sample.
        exact: no other client writes, so that an event without a command is a fault.
    """

    ours: str
    commands: Sequence[Command]
    channels: Mapping[str, Sequence[Arrival]]
    secret: str = ""
    finals: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True
