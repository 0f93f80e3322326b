"""Worker of one endpoint: posts the outbox's deliveries and records results.

The main task reads rows and starts attempts. Each attempt has a task, which continues with the next delivery
as long as there is one. A recorder stores the results. The next delivery of a conversation starts when the
response has arrived, before it is recorded. On cancellation no new attempt starts, and running attempts have
a short grace period to finish and be recorded. A delivery without a recorded result is still a pending row.

While the circuit is open, no delivery is kept in memory. The main task reads one row per probe and ends rows
that are too old. When a success is recorded, the deliveries pending at that time become the backlog.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Final, Self, assert_never

import structlog
import trio

from deskwire.engine.core.encryption import DecryptionFailed
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks.base_worker import BaseWorker
from deskwire.engine.webhooks.context import DeliveryContext
from deskwire.engine.webhooks.delivery import Attempt, Delivery
from deskwire.engine.webhooks.endpoint import Endpoint, may_receive, withheld_reason
from deskwire.engine.webhooks.outage import Outage
from deskwire.engine.webhooks.publish import save_circuit
from deskwire.engine.webhooks.queue.limits import AttemptSlots
from deskwire.engine.webhooks.recorder import AttemptResult, Recorder
from deskwire.engine.webhooks.retry.circuit_breaker import SECRET_LOST, Circuit, CircuitBreaker
from deskwire.engine.webhooks.retry.schedule import DeliveryEnd, Retry

log: Final = structlog.get_logger(__name__)

_NEVER: Final = float("inf")


class EndpointWorker(BaseWorker):
    """Sends the stored deliveries of one endpoint. `offer` and `forget` never wait.

    Args:
        generation: generation of the endpoint's lease, required to store results; None without a lease (a
            single node).

    `run`, when cancelled, gives running attempts `stop_grace_s` to finish and be recorded.
    """

    _failure_event = "delivery.attempt_failed"

    def __init__(
        self,
        endpoint: Endpoint,
        context: DeliveryContext,
        breaker: CircuitBreaker,
        generation: int | None = None,
    ) -> None:
        super().__init__(endpoint, context, breaker)
        self.generation: Final = generation
        self._outbox = context.outbox(breaker)
        self._outage = Outage(context, breaker, self._outbox)
        self._recorder = Recorder(
            context.store,
            endpoint,
            breaker,
            context.store_retry_delay_s,
            context.clock,
            generation,
            batch_size=max(1, context.memory // 4),
        )
        self._slots = AttemptSlots(context.concurrency, context.waiting)
        self._probe: int | None = None
        self._attempts: trio.Nursery | None = None
        self._tasks = 0
        self._relieving = False
        self._stopping = False
        self._grace_s = context.stop_grace_s
        self._grace: Final = trio.CancelScope(shield=True)

    async def run(self) -> None:
        """See `BaseWorker.run`.

        A secret that can't be opened opens the circuit, so that the endpoint object, metrics and alerts show
        it.
        """
        try:
            self._context.signing(self.endpoint)
        except DecryptionFailed:
            await self._open_unsigned()
            raise
        await super().run()

    async def _open_unsigned(self) -> None:
        now, before, endpoint = self._context.clock(), self.breaker.circuit, self.endpoint
        if before.reason == SECRET_LOST and before.state(now) == "open":
            return
        self.breaker.circuit = circuit = before.opened_unsigned(now)
        await self._context.store.write(lambda tx: save_circuit(tx, endpoint, before, circuit, now))

    @property
    def held(self) -> int:
        """The number of deliveries in memory."""
        return self._outbox.held

    def renewed(self) -> Self:
        """See `BaseWorker.renewed`."""
        return type(self)(self.endpoint, self._context, self.breaker, self.generation)

    @property
    def outage(self) -> Outage:
        """The deliveries that wait because of an outage."""
        return self._outage

    def offer(self, delivery: Delivery) -> None:
        """Enqueue a delivery that was just committed."""
        self._outbox.offer(delivery)
        if self._outbox.holds or delivery.redelivery:
            self._outage.note_offered(delivery)
            self._wakeup.set()
        else:
            self._wake_if_useful()

    def note_rows(self, upto: int, *, again: bool) -> None:
        """Announce rows up to this position that were not offered.

        Args:
            again: whether redeliveries may be among them.
        """
        self._outbox.note_rows(upto)
        if again:
            self._outbox.backlog.note_redelivery()
        self._wakeup.set()

    def forget(self, conversations: frozenset[int]) -> None:
        """Stop sending deliveries of erased conversations."""
        self._outbox.forget(conversations)
        self._wakeup.set()

    def rewrite(self, events: Mapping[int, StoredEvent]) -> None:
        """Send these events, given by position, with their new content."""
        self._outbox.rewrite(events)

    def probe(self, position: int | None) -> None:
        """Send a probe now if the circuit is open.

        Args:
            position: the delivery to send, None for the oldest.
        """
        self._outage.probe_position = position
        self.breaker.ask_for_probe(self._context.clock())
        self._wakeup.set()

    def _wake_if_useful(self) -> None:
        """Wake the main task if a new delivery gives it work.

        It may start an attempt, read rows, or move slow attempts to waiting slots.

        If every slot is in use, there is no need: the task of each attempt continues with the next delivery.
        """
        if self._slots.free or not self._relieving or self._outbox.wants_live_rows:
            self._wakeup.set()

    def _wake_if_due(self) -> None:
        """Wake the main task if an attempt's end or record gives it work.

        For example, a delivery after an erasure waits until the running attempts are recorded. The main task
        waits for the next retry without a wakeup, but for the backlog only while it has a free slot.
        """
        outbox = self._outbox
        if (
            self._relieving
            or (self._slots.free and outbox.next_due() == 0)
            or outbox.wants_rows(self._context.clock())
            or outbox.backlog.next_at() is not None
            or self._outage.finished
        ):
            self._wakeup.set()

    def abandon(self) -> None:
        """Give running attempts no grace period, even if the stop has begun."""
        self._grace_s = 0.0
        if self._stopping:
            self._grace.cancel()
        self._wakeup.set()

    async def _serve(self) -> None:
        self.breaker.notify = self._circuit_changed
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_attempts)
            try:
                await self._start_due()
            finally:
                self._stop()

    async def _run_attempts(self) -> None:
        """Run the attempts' nursery and the recorder until stopped and idle."""
        with self._grace:
            async with trio.open_nursery() as self._attempts:
                try:
                    self._wakeup.set()
                    await self._record()
                finally:
                    self._attempts = None  # the nursery is closed, and the main task may still run once

    async def _record(self) -> None:
        while (recorded := await self._recorder.next()) is not None:
            for result, kept in recorded.results:
                self._apply(result, kept)
            if recorded.released is not None and self.breaker.closed:
                self._outbox.release(recorded.released)
                self._outage.released(self.endpoint)
                self._wakeup.set()
            if all(result.delivered for result, _ in recorded.results):
                self._wake_if_due()
            else:
                self._wakeup.set()

    def _stop(self) -> None:
        self._stopping = True
        self._grace.deadline = trio.current_time() + self._grace_s
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._stopping and not self._tasks:
            self._recorder.close()

    async def _start_due(self) -> None:
        """Read rows and start attempts until cancelled."""
        await self._guarded(self._outage.count(self.endpoint))
        while True:
            self._wakeup = trio.Event()
            await self._read_rows()
            self._slots.relieve(trio.current_time())
            if self._attempts is not None:
                self._start(self._attempts)
            due_s = self._due_s(self._context.clock(), trio.current_time())
            await self._wait(max(0.0, due_s), working=self._working)
            self._relieving = False

    async def _read_rows(self) -> None:
        """Read the next batch of rows, or with an open circuit the next probe."""
        now = self._context.clock()
        if self._outbox.holds:
            if self.breaker.gate(now) == "probe" and self._attempts is not None:
                await self._guarded(self._begin_probe(now))
        elif (batch := self._outbox.wants_batch(now)) is not None:
            if await self._guarded(self._outage.read(self.endpoint, batch)):
                self._wakeup.set()
            else:
                self._outbox.give_up_batch(batch, now)
        elif self._outage.finished:
            await self._guarded(self._outage.end(self.endpoint))
        elif (probe_at := self._outage.quiet_probe_at(self.endpoint, now)) is not None and probe_at <= now:
            await self._guarded(self._outage.make_quiet_probe(self.endpoint))
            self._wakeup.set()

    async def _begin_probe(self, now: int) -> None:
        delivery = await self._outage.next_probe(self.endpoint, now)
        attempts = self._attempts
        if delivery is None or attempts is None:
            return
        if self.breaker.begin(self._context.clock()):
            self._probe = delivery.position
            self._begin(attempts, delivery)
        else:  # during the read a typing event became the probe or closed the circuit
            self._outbox.repeat(delivery, now)

    async def _guarded(self, work: Awaitable[None]) -> bool:
        """Await a database operation; return False, after a delay, if it failed."""
        try:
            await work
        except Unavailable as refusal:
            log.warning("delivery.not_read", endpoint=self.endpoint.id, reason=str(refusal))
            await trio.sleep(self._context.store_retry_delay_s)
            self._wakeup.set()
            return False
        return True

    def _working(self) -> bool:
        return self._slots.used

    def _start(self, attempts: trio.Nursery) -> None:
        while (delivery := self._next()) is not None:
            self._begin(attempts, delivery)

    def _begin(self, attempts: trio.Nursery, delivery: Delivery) -> None:
        self._tasks += 1
        self._slots.begin(delivery.position, trio.current_time())
        attempts.start_soon(self._work, delivery)

    def _due_s(self, now: int, at: float) -> float:
        """Return the seconds until there is work without a wakeup."""
        if self.breaker.gate(now) != "go":
            opens_at = self.breaker.opens_at(now)
            return _NEVER if opens_at is None else (opens_at - now) / 1000
        due, backlog_at = self._outbox.next_due(), self._outbox.backlog.next_at()
        probe_at = self._outage.quiet_probe_at(self.endpoint, now)
        due = min((each for each in (due, probe_at) if each is not None), default=None)
        due_s = min(_NEVER if due is None else (due - now) / 1000, (backlog_at or _NEVER) - at)
        if self._slots.free or due_s == _NEVER:
            return due_s
        self._relieving = True
        return max(due_s, (self._slots.relief_at() or _NEVER) - at)

    def _next(self) -> Delivery | None:
        """Return the next delivery to send, if any; end deliveries that are too old."""
        now, at = self._context.clock(), trio.current_time()
        self._slots.narrow(self.breaker.room)
        if self._outbox.holds or not self._slots.free or self.breaker.gate(now) != "go":
            return None
        while not self._stopping and (delivery := self._outbox.take_next(now, at)) is not None:
            ended = self._context.schedule.too_late(delivery.created_at, now)
            if ended is None:
                return delivery
            self._submit(AttemptResult(delivery, None, ended, now))
        return None

    async def _work(self, delivery: Delivery | None) -> None:
        """Make attempts one after the other while deliveries are ready."""
        try:
            while delivery is not None:
                try:
                    self._submit(await self._send(delivery))
                finally:
                    self._slots.end(delivery.position)
                delivery = self._next()
                if delivery is not None:
                    self._slots.begin(delivery.position, trio.current_time())
                    if self._outbox.next_due() == 0:
                        self._wake_if_useful()  # more deliveries are due than this task alone can send
        finally:
            self._tasks -= 1
            self._wake_if_due()
            self._close_if_done()

    async def _send(self, delivery: Delivery) -> AttemptResult:
        probe = delivery.position == self._probe
        if probe:
            self._probe = None
        outbox, position = self._outbox, delivery.position
        quiet = position == self._outage.quiet_probe and not probe
        made = await self._attempt(
            partial(outbox.current_delivery, position),
            partial(self._withheld, delivery),
            probe=probe,
            quiet_pause_ms=self._outage.quiet_pause_ms if quiet else None,
        )
        if made is None:  # the row of an erased delivery is gone, so nothing is stored for it
            reason = withheld_reason(self.endpoint, delivery.event.type)
            return AttemptResult(delivery, None, DeliveryEnd("skipped", reason), self._context.clock())
        attempt, follows = made
        if quiet:
            self._outage.quiet_probe_ended(well=attempt.error is None)
        outbox.backlog.note_result(position, trio.current_time(), well=attempt.error is None)
        if outbox.current_delivery(position).event is not delivery.event:
            attempt = replace(attempt, answer=b"")  # the response may quote redacted content
        follows = self._outage.apply_catch_up(follows, self.endpoint)
        if self._outbox.backlog.missed:
            self._wakeup.set()
        self._count(
            attempt, paused=attempt.wait_ms is not None and isinstance(follows, Retry) and follows.repeats
        )
        return AttemptResult(delivery, attempt, follows, attempt.at + attempt.latency_ms)

    def _withheld(self, delivery: Delivery) -> bool:
        """Return whether the delivery was erased or may no longer be sent."""
        return self._outbox.is_erased(delivery.position) or not may_receive(
            self.endpoint, delivery.event.type
        )

    def _count(self, attempt: Attempt, *, paused: bool) -> None:
        counters = self._context.counters
        counters.attempts += 1
        counters.paused_attempts += paused
        counters.failed_attempts += attempt.error is not None and not paused
        counters.attempt_s.observe(attempt.latency_ms / 1000)

    def _submit(self, result: AttemptResult) -> None:
        if not _blocks_conversation(result.verdict):
            self._outbox.attempt_ended(result.delivery)
        self._recorder.add(result)

    def _apply(self, result: AttemptResult, kept: bool) -> None:
        if not kept:
            self._outbox.end(result.delivery)
        else:
            self._finish(result)
            self._context.notify(result.delivery)
        if (watcher := self._context.watched.pop(result.delivery.position, None)) is not None:
            watcher.set()

    def _finish(self, result: AttemptResult) -> None:
        """Update the outbox after a result is stored."""
        match result.verdict:
            case Retry():
                self._plan(result)
            case DeliveryEnd(status) as ended:
                self._outbox.end(result.delivery)
                self._context.counters.delivered += status == "delivered"
                self._context.counters.dropped += status == "dropped"
                self._context.counters.skipped += status == "skipped"
                self._outage.ended(ended)
            case _:
                assert_never(result.verdict)

    def _plan(self, result: AttemptResult) -> None:
        now, planned = self._context.clock(), result.planned()
        self._outbox.adjust_clock(now)
        set_back = max(0, result.at - now)  # the clock moved back while the result was recorded
        planned = replace(planned, due_at=planned.due_at - set_back)
        if _blocks_conversation(result.verdict):
            self._outbox.repeat(planned, now)
        else:
            self._outbox.retry(planned, now)

    def _circuit_changed(self, before: Circuit, after: Circuit) -> None:
        self._outage.circuit_changed(self.endpoint, before, after)
        self._recorder.wake()
        self._wakeup.set()


def _blocks_conversation(verdict: Retry | DeliveryEnd) -> bool:
    """Return whether the conversation keeps waiting for the delivery."""
    return isinstance(verdict, Retry) and verdict.blocks_conversation
