"""Posts events to the receiver, signed like the service's webhooks (contract 6.3, 6.4).

A failed attempt is retried on the service's schedule, and the event is given up after the fourth attempt. Its conversation
waits in the meantime. Conversations whose attempts fail have their own workers, so that they never delay the others. A
receiver that answers 429 or 503 with `Retry-After` gets the pause without using up an attempt. Attempts are used up from the
third such answer in a row if another event was accepted in between, and from the tenth in any case. A receiver that accepts
no connection uses up no attempts: all events wait until it is back, so that none is skipped.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, Literal, assert_never

import trio
from msgspec import Struct

from deskwire.commands.listen.feed import FeedEvent
from deskwire.commands.listen.window import WindowEvent
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.http.failure import is_unreachable
from deskwire.engine.webhooks.retry.schedule import DEFAULT_RETRY_DELAYS_S, DeliveryEnd, Retry, Schedule

WORKERS: Final = (
    8  # for healthy conversations, and as many for failing ones: together the service's bound for an endpoint
)
RETRY_SCHEDULE: Final = Schedule(DEFAULT_RETRY_DELAYS_S, jitter=0.2, horizon_s=86_400.0)  # decisions 6
FREE_PAUSES: Final = 3
"""Answers with `Retry-After` after which attempts are used up if another event was accepted in between, as in the service."""
FREE_PAUSES_MAX: Final = 10
"""Answers with `Retry-After` after which attempts are used up in any case: half an hour at most."""
_RETRY_CONNECTION_S: Final = 0.5

ForwardState = Literal["sending", "waiting", "retrying", "delivered", "failed"]


class ForwardedEvent(Struct, frozen=True):
    """A delivery of an event; see `client.Postable` and `schedule.AttemptPlan`.

    Args:
        refusals: answers with `Retry-After` in a row.
        taken_before: number of events that the receiver had accepted before the first of these answers.
    """

    id: str
    event: FeedEvent
    attempts: int
    previous: int | None
    due_at: int
    planned_from: int | None = None
    failing_since: int | None = None
    refusals: int = 0
    taken_before: int = 0


class ForwardStep(Struct, frozen=True):
    """The state of a delivery after a step.

    Args:
        attempt: the last attempt that reached the receiver, if any.
        again_in_s: delay until the next attempt, if there is one.
    """

    delivery: ForwardedEvent
    state: ForwardState
    attempt: Attempt | None = None
    again_in_s: float = 0


class ForwardResult(Struct, frozen=True):
    """The result of an attempt, with the delay of the next one."""

    state: Literal["delivered", "failed", "retrying"]
    pause_s: float = 0


class Forwarder:
    """Delivers events to the receiver.

    Args:
        client, secret: post to the receiver and sign.
        show: receives each step of each delivery.
        note: receives a line for people.
        schedule: the retry schedule.
    """

    def __init__(
        self,
        client: Client,
        secret: str,
        show: Callable[[ForwardStep], None],
        note: Callable[[str], None],
        schedule: Schedule = RETRY_SCHEDULE,
    ) -> None:
        self._client = client
        self._secrets = (secret,)
        self._show = show
        self._note = note
        self._schedule = schedule
        self._taken = 0
        self._begun: dict[WindowEvent, ForwardedEvent] = {}
        """Deliveries that are waiting for their next attempt."""
        self._back: trio.Event | None = None
        """Set when the receiver accepts connections again; None while it does."""

    async def attempt(self, held: WindowEvent) -> ForwardResult:
        """Make one attempt to deliver an event, after waiting for a receiver that is down."""
        delivery = self._begun.pop(held, None) or _new(held)
        self._show(ForwardStep(delivery, "sending"))
        attempt = await self._reach(delivery)
        if attempt.error is None:
            self._taken += 1
            self._show(ForwardStep(delivery, "delivered", attempt))
            return ForwardResult("delivered")
        delivery = self._counted(attempt, delivery)
        match self._after(attempt, delivery):
            case Retry() as again:
                pause_s = max(0, again.due_at - wall_clock()) / 1000
                self._show(ForwardStep(delivery, "retrying", attempt, pause_s))
                self._begun[held] = replace(
                    delivery,
                    attempts=delivery.attempts + (not again.repeats),
                    due_at=again.due_at,
                    planned_from=again.planned_from,
                    failing_since=again.failing_since,
                )
                return ForwardResult("retrying", pause_s)
            case DeliveryEnd():
                if delivery.refusals:
                    self._note(f"{_named(held.event)} is given up: {_refused(attempt, delivery)}.")
                self._show(ForwardStep(delivery, "failed", attempt))
                return ForwardResult("failed")
            case never:
                assert_never(never)

    def _counted(self, attempt: Attempt, delivery: ForwardedEvent) -> ForwardedEvent:
        """Return the delivery with its number of consecutive answers with `Retry-After`."""
        if attempt.wait_ms is None:
            return replace(delivery, refusals=0)
        if not delivery.refusals:
            self._note(f"The receiver asks for a pause for {_named(delivery.event)} ({attempt.error}).")
            delivery = replace(delivery, taken_before=self._taken)
        return replace(delivery, refusals=delivery.refusals + 1)

    def _after(self, attempt: Attempt, delivery: ForwardedEvent) -> Retry | DeliveryEnd:
        """Return the next attempt after a failure; requested pauses are free within the bounds of `FREE_PAUSES`."""
        if attempt.wait_ms is not None:
            bound = FREE_PAUSES if self._taken > delivery.taken_before else FREE_PAUSES_MAX
            if delivery.refusals >= bound:
                return self._schedule.after_refusal(attempt, delivery, random.random(), None)
            return self._schedule.after_pause_asked(attempt, delivery)
        return self._schedule.after_failure(attempt, delivery, random.random(), None)

    async def _reach(self, delivery: ForwardedEvent) -> Attempt:
        """Post until the receiver accepts a connection; one task probes it while the others wait."""
        while True:
            if self._back is None:
                attempt = await self._client.post(delivery, self._secrets)
                if not _down(attempt):
                    return attempt
            self._show(ForwardStep(delivery, "waiting"))
            if self._back is None:
                return await self._probe(delivery, attempt)
            await self._back.wait()

    async def _probe(self, delivery: ForwardedEvent, attempt: Attempt) -> Attempt:
        self._back = back = trio.Event()
        self._note(f"The receiver is down ({attempt.error}), waiting.")
        while _down(attempt):
            await trio.sleep(_RETRY_CONNECTION_S)
            attempt = await self._client.post(delivery, self._secrets)
        self._note("The receiver is back.")
        self._back = None
        back.set()
        return attempt


def _named(event: FeedEvent) -> str:
    where = event.conversation or event.subject
    return event.type if where is None else f"{event.type} of {where}"


def _refused(attempt: Attempt, delivery: ForwardedEvent) -> str:
    return f"the receiver asked for a pause {delivery.refusals} times in a row ({attempt.error})"


def _new(held: WindowEvent) -> ForwardedEvent:
    made_at = wall_clock()
    return ForwardedEvent(new_id("dlv", made_at), held.event, 0, held.previous, made_at)


def _down(attempt: Attempt) -> bool:
    return attempt.error is not None and attempt.status is None and is_unreachable(attempt.error)
