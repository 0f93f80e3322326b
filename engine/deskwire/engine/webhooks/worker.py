"""One endpoint's courier: it takes deliveries from an outbox, posts them, and has the results recorded.

A main task reads rows and starts attempts; each attempt has a task that goes on with the next delivery as
long as there is one; a recorder stores results. A conversation's next delivery starts when the answer is
there, not when it is recorded. On cancellation nothing new is started, and what is under way gets a short
grace to end and be recorded; whatever is not recorded by then is a pending row still.

While the circuit is open nothing is in memory. The main task reads a row for each probe, and ends rows that have become
too old; when a success is recorded, what is pending by then is released as a backlog.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import Final

import structlog
import trio

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.failure import contained
from deskwire.engine.webhooks.context import DeliveryContext
from deskwire.engine.webhooks.delivery import Attempt, Delivery
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.isolation import broken
from deskwire.engine.webhooks.queue.outage import Outage
from deskwire.engine.webhooks.queue.slots import AttemptSlots
from deskwire.engine.webhooks.recorder import Recorder, Result
from deskwire.engine.webhooks.retry.breaker import Breaker
from deskwire.engine.webhooks.retry.circuit import Circuit
from deskwire.engine.webhooks.retry.outcome import verdict
from deskwire.engine.webhooks.retry.schedule import Ended, Retry
from deskwire.engine.webhooks.signature import SigningSecrets
from deskwire.engine.webhooks.waiting import wait_for_work

log: Final = structlog.get_logger(__name__)

_CLOSE_S: Final = 1.0
"""Bound for closing connections at the end; it needs no network, so this is only for bugs."""

_NEVER: Final = float("inf")


class EndpointWorker:
    """Delivers to one endpoint. `offer` and `forget` never wait; `run` does the work.

    A courier is run once; after a failure a new one takes up the rows.
    """

    def __init__(self, endpoint: Endpoint, means: DeliveryContext, breaker: Breaker) -> None:
        self._endpoint = endpoint
        self._means = means
        self._breaker = breaker
        self._outbox = means.outbox(breaker)
        self._outage = Outage(means, breaker, self._outbox)
        self._recorder = Recorder(means.store, endpoint.rowid, breaker, means.pause_s)
        self._places = AttemptSlots(means.concurrency, means.waiting)
        self._bell = trio.Event()
        self._client: Final = means.client(endpoint.url)
        self._signing: SigningSecrets | None = None
        self._probe: int | None = None
        self._attempts: trio.Nursery | None = None
        self._tasks = 0
        self._relieving = False
        self._stopping = False
        self._grace_s = means.stop_grace_s

    @property
    def held(self) -> int:
        """How many deliveries are in memory."""
        return self._outbox.held

    @property
    def outage(self) -> Outage:
        """What an outage keeps waiting."""
        return self._outage

    def offer(self, delivery: Delivery) -> None:
        """Take in a delivery that was just committed."""
        self._outbox.offer(delivery)
        if self._outbox.holds or delivery.redelivery:
            self._outage.offered(delivery)
            self._bell.set()
        else:
            self._ring_if_useful()

    def forget(self, conversations: frozenset[int]) -> None:
        """Send nothing more of erased conversations."""
        self._outbox.forget(conversations)
        self._bell.set()

    def change(self, endpoint: Endpoint) -> None:
        """Go on with the endpoint's changed fields; its URL must be the same.

        Raises SealBroken if a secret can't be opened; nothing is changed then.
        """
        self._signing = self._means.signing(endpoint)
        self._endpoint = endpoint

    def probe(self, position: int | None) -> None:
        """Send a probe now if the circuit is open: the delivery at this position, if it is known."""
        self._outage.asked_for = position
        self._breaker.ask_for_probe(self._means.clock())
        self._bell.set()

    def _ring_if_useful(self) -> None:
        """Wake the main task if it can start an attempt or has rows to read, or has to watch those under way.

        With all attempts under way that may be it need not: each goes on with what is next by itself.
        """
        if self._places.free or not self._relieving or self._outbox.wants_live_rows:
            self._bell.set()

    def abandon(self) -> None:
        """Give attempts under way no grace when the courier is cancelled."""
        self._grace_s = 0.0
        self._bell.set()

    async def run(self) -> None:
        """Deliver until cancelled.

        Raises SealBroken if the endpoint's secret can't be opened; its deliveries stay pending.

        Cancellation: attempts under way have `stop_grace_s` to end and be recorded.
        """
        self._signing = self._means.signing(self._endpoint)
        self._breaker.notify = self._circuit_changed
        grace = trio.CancelScope(shield=True)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._run_attempts, grace)
                try:
                    await self._serve()
                finally:
                    self._stop(grace)
        finally:
            with trio.move_on_after(_CLOSE_S, shield=True):
                await self._client.aclose()

    async def _run_attempts(self, grace: trio.CancelScope) -> None:
        """Give attempts their nursery and record them; ends when stopped and nothing is under way."""
        with grace:
            async with trio.open_nursery() as self._attempts:
                self._bell.set()
                while (recorded := await self._recorder.next()) is not None:
                    for result, kept in recorded.results:
                        self._settle(result, kept)
                    if recorded.released is not None and self._breaker.closed:
                        self._outbox.release(recorded.released)
                        self._outage.released(self._endpoint)
                    self._bell.set()

    def _stop(self, grace: trio.CancelScope) -> None:
        self._stopping = True
        grace.deadline = trio.current_time() + self._grace_s
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._stopping and not self._tasks:
            self._recorder.close()

    async def _serve(self) -> None:
        await self._guarded(self._outage.count(self._endpoint))
        while True:
            self._bell = trio.Event()
            await self._tend()
            self._places.relieve(trio.current_time())
            if self._attempts is not None:
                self._start(self._attempts)
            await self._wait()
            self._relieving = False

    async def _tend(self) -> None:
        """Read the rows that are needed now, if any; with the circuit open, one for a probe."""
        now = self._means.clock()
        if self._outbox.holds:
            if self._breaker.gate(now) == "probe" and self._attempts is not None:
                await self._guarded(self._begin_probe(self._attempts, now))
        elif (page := self._outbox.wants_page(now)) is not None:
            if await self._guarded(self._outage.read(self._endpoint, page)):
                self._bell.set()
            else:
                self._outbox.give_up_page(page, now)
        elif self._outage.over:
            await self._guarded(self._outage.end(self._endpoint))

    async def _begin_probe(self, attempts: trio.Nursery, now: int) -> None:
        delivery = await self._outage.next_probe(self._endpoint, now)
        if delivery is None:
            return
        if self._breaker.begin(self._means.clock()):
            self._probe = delivery.position
            self._begin(attempts, delivery)
        else:  # meanwhile a typing event became the probe, or one succeeded
            self._outbox.repeat(delivery, now)

    async def _guarded(self, work: Awaitable[None]) -> bool:
        """Await what needs the store; False, after a pause, if that refused."""
        try:
            await work
        except Unavailable as refusal:
            log.warning("delivery.not_read", endpoint=self._endpoint.id, reason=str(refusal))
            await trio.sleep(self._means.pause_s)
            self._bell.set()
            return False
        return True

    def _start(self, attempts: trio.Nursery) -> None:
        while (delivery := self._next()) is not None:
            self._begin(attempts, delivery)

    def _begin(self, attempts: trio.Nursery, delivery: Delivery) -> None:
        self._tasks += 1
        self._places.begin(delivery.position, trio.current_time())
        attempts.start_soon(self._work, delivery)

    async def _wait(self) -> None:
        """Return when there may be something to do; close connections that nobody has used for long."""
        due_s = self._due_s(self._means.clock(), trio.current_time())
        await wait_for_work(self._bell, max(0.0, due_s), self._client, working=self._places.used)

    def _due_s(self, now: int, at: float) -> float:
        """In how many seconds there is something to do, unless the bell rings before."""
        if self._breaker.gate(now) != "go":
            opens_at = self._breaker.opens_at(now)
            return _NEVER if opens_at is None else (opens_at - now) / 1000
        due, backlog_at = self._outbox.next_due(), self._outbox.backlog.next_at()
        due_s = min(_NEVER if due is None else (due - now) / 1000, (backlog_at or _NEVER) - at)
        if self._places.free or due_s == _NEVER:
            return due_s
        self._relieving = True
        return max(due_s, (self._places.relief_at() or _NEVER) - at)

    def _next(self) -> Delivery | None:
        """Return what to send now, in a place that it has already; what is too late ends here."""
        now, at = self._means.clock(), trio.current_time()
        if self._outbox.holds or not self._places.free or self._breaker.gate(now) != "go":
            return None
        while not self._stopping and (delivery := self._outbox.take_next(now, at)) is not None:
            ended = self._means.schedule.too_late(delivery.created_at, now)
            if ended is None:
                return delivery
            self._answered(Result(delivery, None, ended, now))
        return None

    async def _work(self, delivery: Delivery | None) -> None:
        """Make attempts, one after the other, as long as there is something to send."""
        try:
            while delivery is not None:
                try:
                    self._answered(await self._attempt(delivery))
                finally:
                    self._places.end(delivery.position)
                delivery = self._next()
                if delivery is not None:
                    self._places.begin(delivery.position, trio.current_time())
                    if self._outbox.next_due() == 0:
                        self._ring_if_useful()  # there is more than this task can start
        finally:
            self._tasks -= 1
            self._bell.set()
            self._close_if_done()

    async def _attempt(self, delivery: Delivery) -> Result:
        probe, succeeded_at = delivery.position == self._probe, self._breaker.succeeded_at
        try:
            attempt = await self._post(delivery)
        finally:
            if probe:
                self._probe = None
                self._breaker.probe_over()
        if (
            now := self._means.clock()
        ) < attempt.at:  # it was set back meanwhile: the retry goes by the new time
            attempt = replace(attempt, at=now - attempt.latency_ms)
        follows = verdict(
            attempt,
            delivery,
            self._means.schedule,
            self._breaker,
            fraction=self._means.rng.random(),
            succeeded_at=succeeded_at,
            probe=probe,
        )
        follows = self._outage.judged(follows, self._endpoint)
        if self._outbox.backlog.missed:
            self._bell.set()
        self._count(attempt)
        return Result(delivery, attempt, follows, attempt.at + attempt.latency_ms)

    def _count(self, attempt: Attempt) -> None:
        counters = self._means.counters
        counters.attempts += 1
        counters.paused_attempts += attempt.wait_ms is not None
        counters.failed_attempts += attempt.error is not None and attempt.wait_ms is None
        counters.attempt_s.observe(attempt.latency_ms / 1000)

    async def _post(self, delivery: Delivery) -> Attempt:
        at, began = self._means.clock(), trio.current_time()
        assert self._signing is not None, "the courier runs"
        with contained(partial(self._tell, delivery)):  # what one delivery breaks is not the others' business
            return await self._client.post(delivery, self._signing.at(at))
        return broken(delivery.attempts + 1, at, began)

    def _tell(self, delivery: Delivery, failure: BaseException) -> None:
        log.error(
            "delivery.attempt_failed", endpoint=self._endpoint.id, delivery=delivery.id, exc_info=failure
        )

    def _answered(self, result: Result) -> None:
        if not (isinstance(result.verdict, Retry) and result.verdict.repeats):
            self._outbox.attempt_ended(result.delivery)
        self._recorder.add(result)

    def _settle(self, result: Result, kept: bool) -> None:
        match result.verdict:
            case Retry() if kept:
                self._plan(result)
            case Ended(status) as ended if kept:
                self._outbox.end(result.delivery)
                self._means.counters.delivered += status == "delivered"
                self._means.counters.dropped += status == "dropped"
                self._means.counters.skipped += status == "skipped"
                self._outage.ended(ended)
            case _:
                self._outbox.end(result.delivery)
        if (watcher := self._means.watched.pop(result.delivery.position, None)) is not None:
            watcher.set()

    def _plan(self, result: Result) -> None:
        now, planned = self._means.clock(), result.planned()
        self._outbox.heed_clock(now)
        set_back = max(0, result.at - now)  # while the result was being recorded
        planned = replace(planned, due_at=planned.due_at - set_back)
        if planned.attempts == result.delivery.attempts:
            self._outbox.repeat(planned, now)
        else:
            self._outbox.retry(planned, now)

    def _circuit_changed(self, before: Circuit, after: Circuit) -> None:
        self._outage.circuit_changed(self._endpoint, before, after)
        self._recorder.wake()
        self._bell.set()
