"""One endpoint's courier: it takes deliveries from an outbox, posts them, and has the results recorded.

A main task reads rows and starts attempts; each attempt has a task that goes on with the next delivery as
long as there is one; a recorder stores results. A conversation's next delivery starts when the answer is
there, not when it is recorded. On cancellation nothing new is started, and what is under way gets a short
grace to end and be recorded; whatever is not recorded by then is a pending row still.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import structlog
import trio

from deskwire.engine.deliveries import Attempt, Delivery
from deskwire.engine.delivery.breaker import Breaker
from deskwire.engine.delivery.means import Means
from deskwire.engine.delivery.outbox import Outbox
from deskwire.engine.delivery.recorder import Recorder, Result
from deskwire.engine.delivery.schedule import Ended, Retry
from deskwire.engine.delivery.signature import SigningSecrets
from deskwire.engine.delivery.waiting import wait_for_work
from deskwire.engine.endpoint import Endpoint
from deskwire.engine.errors import Unavailable

log: Final = structlog.get_logger(__name__)

_CLOSE_S: Final = 1.0
"""Bound for closing connections at the end; it needs no network, so this is only for bugs."""


class Courier:
    """Delivers to one endpoint. `offer` and `forget` never wait; `run` does the work.

    A courier is run once; after a failure a new one takes up the rows.
    """

    def __init__(self, endpoint: Endpoint, means: Means, breaker: Breaker) -> None:
        self._endpoint = endpoint
        self._means = means
        self._breaker = breaker
        self._outbox = Outbox(means.memory)
        self._recorder = Recorder(means.store, endpoint.rowid, breaker, means.pause_s)
        self._bell = trio.Event()
        self._client: Final = means.client(endpoint.url)
        self._signing: SigningSecrets | None = None
        self._probe: int | None = None
        self._attempts: trio.Nursery | None = None
        self._working = 0
        self._stopping = False
        self._unwanted = False
        self._grace_s = means.stop_grace_s

    @property
    def held(self) -> int:
        """How many deliveries are in memory."""
        return self._outbox.held

    def offer(self, delivery: Delivery) -> None:
        """Take in a delivery that was just committed."""
        self._outbox.offer(delivery)
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

    def _ring_if_useful(self) -> None:
        """Wake the main task if it can start an attempt or has rows to read.

        With all attempts under way that may be it need not: each goes on with what is next by itself.
        """
        if self._working < self._means.concurrency or self._outbox.wants_rows:
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
                    for result, kept in recorded:
                        self._settle(result, kept)
                    self._bell.set()

    def _stop(self, grace: trio.CancelScope) -> None:
        self._stopping = True
        grace.deadline = trio.current_time() + self._grace_s
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._stopping and not self._working:
            self._recorder.close()

    async def _serve(self) -> None:
        while True:
            self._bell = trio.Event()
            if self._outbox.wants_rows:
                await self._read_rows()
            if self._attempts is not None:
                self._start(self._attempts)
            await self._wait()

    def _start(self, attempts: trio.Nursery) -> None:
        while self._working < self._means.concurrency and (delivery := self._next()) is not None:
            self._working += 1
            attempts.start_soon(self._work, delivery)

    async def _wait(self) -> None:
        """Return when there may be something to do; close connections that nobody has used for long."""
        due = self._outbox.next_due() if self._may_start() else None
        due_s = float("inf") if due is None else max(0, due - self._means.clock()) / 1000
        await wait_for_work(self._bell, due_s, self._client, working=self._working > 0)

    async def _read_rows(self) -> None:
        endpoint, reading = self._endpoint.rowid, self._outbox.begin_reading()
        after, limit = reading.after, reading.limit
        try:
            rows = await self._means.store.read(
                lambda reader: reader.pending_deliveries(endpoint, after, limit)
            )
        except Unavailable as refusal:
            self._outbox.give_up_reading()
            log.warning("delivery.not_read", endpoint=self._endpoint.id, reason=str(refusal))
            await trio.sleep(self._means.pause_s)
            self._bell.set()
        else:
            self._outbox.end_reading(rows)
            if self._outbox.wants_rows:
                self._bell.set()

    def _may_start(self) -> bool:
        free = self._working < self._means.concurrency and not self._unwanted
        return free and self._breaker.gate(self._means.clock()) != "hold"

    def _next(self) -> Delivery | None:
        """What to send now; what is too late, or not to be sent as the circuit is open, ends here."""
        now = self._means.clock()
        gate = self._breaker.gate(now)
        if gate == "hold" or self._unwanted:
            return None
        while not self._stopping and (delivery := self._outbox.take_next(now)) is not None:
            ended = self._means.schedule.too_late(delivery.created_at, now)
            if ended is None and gate == "skip":
                ended = Ended("skipped", self._breaker.circuit.skip_reason())
            if ended is None:
                if self._breaker.begin(now):
                    self._probe = delivery.position
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
                    self._end_probe(delivery)
                delivery = self._next()
                if delivery is not None and self._outbox.next_due() == 0:
                    self._ring_if_useful()  # there is more than this task can start
        finally:
            self._working -= 1
            self._bell.set()
            self._close_if_done()

    def _end_probe(self, delivery: Delivery) -> None:
        if self._probe == delivery.position:
            self._probe = None
            self._breaker.probe_over()

    async def _attempt(self, delivery: Delivery) -> Result:
        attempt = await self._post(delivery)
        if (
            now := self._means.clock()
        ) < attempt.at:  # it was set back meanwhile: the retry goes by the new time
            attempt = replace(attempt, at=now - attempt.latency_ms)
        ended_at = attempt.at + attempt.latency_ms
        verdict = self._means.schedule.after_attempt(attempt, delivery.created_at, self._means.rng.random())
        self._unwanted = self._unwanted or (isinstance(verdict, Ended) and verdict.disables)
        self._breaker.attempt_ended(attempt.error, exhausted=isinstance(verdict, Ended), now=ended_at)
        counters = self._means.counters
        counters.attempts += 1
        counters.failed_attempts += attempt.error is not None
        counters.attempt_s.observe(attempt.latency_ms / 1000)
        return Result(delivery, attempt, verdict, ended_at)

    async def _post(self, delivery: Delivery) -> Attempt:
        at, began = self._means.clock(), trio.current_time()
        try:
            assert self._signing is not None, "the courier runs"
            return await self._client.post(delivery, self._signing.at(at))
        except Exception:  # the attempt's top: what one delivery breaks is not the others' business
            log.exception("delivery.attempt_failed", endpoint=self._endpoint.id, delivery=delivery.id)
            latency_ms = round((trio.current_time() - began) * 1000)
            return Attempt(delivery.attempts + 1, at, latency_ms, None, "internal error", b"")

    def _answered(self, result: Result) -> None:
        if result.delivery.attempts == 0:
            self._outbox.first_attempt_ended(result.delivery)
        self._recorder.add(result)

    def _settle(self, result: Result, kept: bool) -> None:
        match result.verdict:
            case Retry(due_at) if kept:
                now = self._means.clock()
                self._outbox.heed_clock(now)
                set_back = max(0, result.at - now)  # while the result was being recorded
                self._outbox.retry(result.delivery.after_attempt(due_at - set_back))
            case Ended(status) if kept:
                self._outbox.end(result.delivery)
                self._means.counters.delivered += status == "delivered"
                self._means.counters.dropped += status == "dropped"
                self._means.counters.skipped += status == "skipped"
            case _:
                self._outbox.end(result.delivery)
        if (watcher := self._means.watched.pop(result.delivery.position, None)) is not None:
            watcher.set()
        if isinstance(result.verdict, Ended) and result.verdict.disables:
            log.warning(
                "delivery.endpoint_disabled", endpoint=self._endpoint.id, reason=result.verdict.reason
            )
            self._means.disabled(self._endpoint.rowid)

    def _circuit_changed(self) -> None:
        circuit = self._breaker.circuit
        if circuit.open_until is not None:
            log.warning("delivery.circuit_open", endpoint=self._endpoint.id, reason=circuit.reason)
        self._recorder.wake()
        self._bell.set()
