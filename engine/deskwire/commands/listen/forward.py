"""Posting what the window holds to the receiver, signed as the service signs (contract 6.3, 6.4).

A failed attempt is repeated on the service's schedule, and the event is given up after the fourth; meanwhile
its conversation waits. Conversations whose attempts fail, or that were, have workers of their own, so that those that do well never
wait for them. A receiver that answers 429 or 503 with `Retry-After` gets the pause, and no attempt is used up, as long as that
may end: from the third such answer on if another event was taken in between, and from the tenth on in any case, attempts are
used up. A receiver that takes no connection is different: nothing it could have answered is counted, and
everything waits until it is back, so that nothing is missed.
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
from deskwire.engine.webhooks.http.failure import not_connected
from deskwire.engine.webhooks.retry.schedule import DEFAULT_RETRY_DELAYS_S, Ended, Retry, Schedule

WORKERS: Final = 8
"""Requests under way at the same time for conversations that do well, and as many for others: together the service's own
bound for one endpoint."""
RETRIES: Final = Schedule(DEFAULT_RETRY_DELAYS_S, jitter=0.2, horizon_s=86_400.0)  # decisions 6
REFUSALS: Final = 3
"""Answers with `Retry-After` from which on attempts are used up, if another event was taken in between. The service has the same bound."""
REFUSALS_MAX: Final = 10
"""Answers with `Retry-After` from which on attempts are used up also if nothing else was taken: at worst half an hour."""
_KNOCK_S: Final = 0.5
"""The pause between two looks whether the receiver is back."""

ForwardState = Literal["sending", "waiting", "retrying", "delivered", "failed"]


class ForwardedEvent(Struct, frozen=True):
    """An event under a delivery id; see `client.Postable` and `schedule.AttemptPlan`.

    Args:
        refusals: answers with `Retry-After` in a row.
        taken_before: number of events that the receiver had taken when the first of them came.
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
        attempt: the last one that reached the receiver, if any.
        again_in_s: when the next one is due, if it is retrying.
    """

    delivery: ForwardedEvent
    state: ForwardState
    attempt: Attempt | None = None
    again_in_s: float = 0


class ForwardResult(Struct, frozen=True):
    """The result of an attempt, and the pause after which the next one is due."""

    state: Literal["delivered", "failed", "retrying"]
    pause_s: float = 0


class Forwarder:
    """Makes deliveries of events.

    Args:
        client: posts to the receiver.
        secret: signs.
        show: takes each step of each delivery.
        note: takes a line for people.
        schedule: when a failed attempt is repeated.
    """

    def __init__(
        self,
        client: Client,
        secret: str,
        show: Callable[[ForwardStep], None],
        note: Callable[[str], None],
        schedule: Schedule = RETRIES,
    ) -> None:
        self._client = client
        self._secrets = (secret,)
        self._show = show
        self._note = note
        self._schedule = schedule
        self._taken = 0
        self._begun: dict[WindowEvent, ForwardedEvent] = {}
        """The deliveries that are to be tried again."""
        self._back: trio.Event | None = None
        """An event that is set when the receiver takes connections again; None while it does."""

    async def attempt(self, held: WindowEvent) -> ForwardResult:
        """Try to deliver an event, once, however long the receiver is down."""
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
            case Ended():
                if delivery.refusals:
                    self._note(f"{_named(held.event)} is given up: {_refused(attempt, delivery)}.")
                self._show(ForwardStep(delivery, "failed", attempt))
                return ForwardResult("failed")
            case never:
                assert_never(never)

    def _counted(self, attempt: Attempt, delivery: ForwardedEvent) -> ForwardedEvent:
        """Return the delivery with its number of refusals in a row."""
        if attempt.wait_ms is None:
            return replace(delivery, refusals=0)
        if not delivery.refusals:
            self._note(f"The receiver asks for a pause for {_named(delivery.event)} ({attempt.error}).")
            delivery = replace(delivery, taken_before=self._taken)
        return replace(delivery, refusals=delivery.refusals + 1)

    def _after(self, attempt: Attempt, delivery: ForwardedEvent) -> Retry | Ended:
        """Return what follows from a failure; a receiver that asks for a pause gets it, within the bounds of `REFUSALS`."""
        if attempt.wait_ms is not None:
            bound = REFUSALS if self._taken > delivery.taken_before else REFUSALS_MAX
            if delivery.refusals >= bound:
                return self._schedule.after_refusal(attempt, delivery, random.random(), None)
            return self._schedule.after_pause_asked(attempt, delivery)
        return self._schedule.after_failure(attempt, delivery, random.random(), None)

    async def _reach(self, delivery: ForwardedEvent) -> Attempt:
        """Attempt until a receiver is there; one task looks for it, the others wait."""
        while True:
            if self._back is None:
                attempt = await self._client.post(delivery, self._secrets)
                if not _down(attempt):
                    return attempt
            self._show(ForwardStep(delivery, "waiting"))
            if self._back is None:
                return await self._knock(delivery, attempt)
            await self._back.wait()

    async def _knock(self, delivery: ForwardedEvent, attempt: Attempt) -> Attempt:
        self._back = back = trio.Event()
        self._note(f"The receiver is down ({attempt.error}), waiting.")
        while _down(attempt):
            await trio.sleep(_KNOCK_S)
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
    return attempt.error is not None and attempt.status is None and not_connected(attempt.error)
