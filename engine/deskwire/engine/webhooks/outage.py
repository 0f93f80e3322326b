"""An endpoint's outage: probes, and catching up afterwards (ADR 10).

Two kinds of deliveries wait. *Held* deliveries are pending because the circuit was open. *Missed* deliveries
used up their attempts while the endpoint had no success. They are dropped, and sent again after the
endpoint's next 2xx, unless its `catchUp` is off.

An endpoint that gets no deliveries would have no next 2xx. If deliveries were missed and none is pending, a
redelivery of a missed one is made as the *quiet probe*, one at a time and at the intervals of the circuit's
probes. The circuit does not count these probes.

Consecutive probes use different conversations if possible, because a single event may be the one that the
receiver can't process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.ids import id_before
from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.context import DeliveryContext
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ports import DeliveryReader, DeliveryTransaction
from deskwire.engine.webhooks.queue.outbox import Outbox, RowBatch
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit, CircuitBreaker, probe_pause_ms
from deskwire.engine.webhooks.retry.schedule import DeliveryEnd, Retry

log: Final = structlog.get_logger(__name__)

# Rows that one commit ends as too old; a few milliseconds of the writer's time.
_BATCH_SIZE: Final = 500


class Outage:
    """Outage state of one endpoint.

    Attributes:
        held: number of deliveries held by the open circuit and not sent yet, as far as known.
        missed: number of deliveries that will be sent again, as far as known.
        probe_position: position of the delivery that a caller asked to be probed next; None for any.
        quiet_probe: position of the delivery that probes a quiet endpoint, if there is one.
    """

    def __init__(self, context: DeliveryContext, breaker: CircuitBreaker, outbox: Outbox) -> None:
        self.held = 0
        self.missed = 0
        self.probe_position: int | None = None
        self._context = context
        self._breaker = breaker
        self._outbox = outbox
        self._may_have_missed = True  # assumed until the first count
        self._catching_up = breaker.held_upto is not None
        self._probed_after = 0
        self._probed_lane: int | None = None
        self.quiet_probe: int | None = None
        self._quiet_event = 0
        self._quiet_failures = 0
        self._quiet_since: int | None = None
        self._expects_probe = False

    async def count(self, endpoint: Endpoint) -> None:
        """Count the waiting deliveries. Raises Unavailable."""
        waiting = await self._context.store.read(lambda reader: reader.outage_counts(endpoint.rowid))
        self.held, self.missed = waiting.held, waiting.missed
        self._may_have_missed = self._may_have_missed and waiting.missed > 0

    def note_offered(self, delivery: Delivery) -> None:
        """Record a delivery that was committed while the circuit was open."""
        self.held += self._outbox.holds
        if self._expects_probe and delivery.redelivery:
            self._expects_probe = False
            self.quiet_probe, self._quiet_event = delivery.position, delivery.event.position

    def circuit_changed(self, endpoint: Endpoint, before: Circuit, after: Circuit) -> None:
        """Hold the outbox if the circuit has opened, and log the change."""
        if after.probe_at is None:
            return
        if before.probe_at is None:
            self._probed_after, self._probed_lane = 0, None
            self._outbox.hold()
            self._catching_up = False
            log.warning("delivery.circuit_opened", endpoint=endpoint.id, reason=after.reason)
        elif after.probes > before.probes:
            log.info("delivery.probe_failed", endpoint=endpoint.id, probes=after.probes, reason=after.reason)

    def released(self, endpoint: Endpoint) -> None:
        """Record that the held deliveries are being sent."""
        self._catching_up = True
        log.info("delivery.circuit_closed", endpoint=endpoint.id, held=self.held)

    # Probes

    async def next_probe(self, endpoint: Endpoint, now: int) -> Delivery | None:
        """Return the delivery to send as a probe, None if none is pending.

        It is the one that a caller asked for, or the oldest. Deliveries that are too old are ended first.
        Raises Unavailable.
        """
        self._breaker.release_upto = None
        await self._end_too_old(endpoint, now)
        await self.count(endpoint)
        self._breaker.release_upto = self._outbox.newest
        position, self.probe_position = self.probe_position, None
        if position is not None and (delivery := await self._pending(endpoint, position - 1, position)):
            return delivery
        return await self._next_in_turn(endpoint)

    async def _next_in_turn(self, endpoint: Endpoint) -> Delivery | None:
        """Return the next delivery to probe: the oldest pending one.

        After a failed probe, it is the next one of another conversation. If there is no other conversation, a
        missed delivery is redelivered for the probe.
        """
        delivery = await self._pending(endpoint, self._probed_after, None, other_than=self._probed_lane)
        if delivery is None and self.missed and endpoint.catch_up == "automatic":
            await self.make_quiet_probe(endpoint)
            delivery = await self._pending(endpoint, self._probed_after, None, other_than=self._probed_lane)
        if delivery is None and self._probed_after:
            delivery = await self._pending(endpoint, 0, None)
        if delivery is not None:
            self._probed_after, self._probed_lane = delivery.position, delivery.ordering_key
        return delivery

    async def _pending(
        self, endpoint: Endpoint, after: int, upto: int | None, other_than: int | None = None
    ) -> Delivery | None:
        batch = self._outbox.ask_for_probe()
        rows = await self._context.store.read(
            lambda reader: reader.pending_deliveries(
                endpoint.rowid, after, batch.limit, upto=upto, other_than=other_than
            )
        )
        return self._outbox.take_probe(batch, rows)

    async def _end_too_old(self, endpoint: Endpoint, now: int) -> None:
        schedule, store = self._context.schedule, self._context.store
        horizon, reason = schedule.horizon(now), schedule.too_late_reason()
        oldest = await store.read(lambda reader: reader.pending_deliveries(endpoint.rowid, 0, 1))
        while oldest and oldest[0].created_at < horizon:
            ended = await store.write(
                lambda tx: tx.end_too_old(endpoint.rowid, horizon, reason, now, _BATCH_SIZE)
            )
            self._context.counters.skipped += ended
            if ended < _BATCH_SIZE:
                return

    # Quiet endpoints

    def quiet_probe_at(self, endpoint: Endpoint, now: int) -> int | None:
        """Return when to probe a quiet endpoint (ms).

        None if no delivery was missed, or if another delivery is pending.
        """
        if not self._may_have_missed or endpoint.catch_up == "off" or not self._outbox.idle:
            self._quiet_since = None
            return None
        if self._quiet_since is None or self._quiet_since > now:
            self._quiet_since = now
        return self._quiet_since + self.quiet_pause_ms

    @property
    def quiet_pause_ms(self) -> int:
        """The time from the start of one probe to the next, in milliseconds."""
        return probe_pause_ms(self._quiet_failures)

    async def make_quiet_probe(self, endpoint: Endpoint) -> None:
        """Redeliver a missed delivery: first the oldest, then the others in turn.

        Raises Unavailable.
        """
        now, made = self._context.clock(), 0
        oldest = id_before("evt", self._context.schedule.horizon(now))
        self._expects_probe = True  # the commit may be announced before or after `write` returns
        for beyond in dict.fromkeys((self._quiet_event, 0)):
            if not made:
                made = await self._context.store.write(_repeating_one(endpoint.rowid, oldest, now, beyond))
        self._expects_probe = self._expects_probe and bool(made)
        self._quiet_since = None
        await self.count(endpoint)
        self._may_have_missed = bool(made or self.missed)

    def quiet_probe_ended(self, *, well: bool) -> None:
        """Record the result of an attempt that probed a quiet endpoint."""
        self._quiet_failures = 0 if well else self._quiet_failures + 1

    # Catching up

    def apply_catch_up(self, follows: Retry | DeliveryEnd, endpoint: Endpoint) -> Retry | DeliveryEnd:
        """Return the verdict under `catchUp`; a success starts catching up."""
        if not isinstance(follows, DeliveryEnd) or endpoint.catch_up == "off":
            return replace(follows, missed=False) if isinstance(follows, DeliveryEnd) else follows
        if follows.missed:
            return replace(follows, reason=f"{follows.reason}; it is sent again after the next success")
        if follows.status == "delivered" and self._may_have_missed:
            self._outbox.backlog.missed = self._catching_up = True
            self._quiet_event = self._quiet_failures = 0
            if self.quiet_probe is not None:
                self._outbox.expedite(self.quiet_probe, self._context.clock())
        return follows

    def ended(self, verdict: DeliveryEnd) -> None:
        """Record a delivery whose end is stored."""
        if verdict.missed:
            self._may_have_missed = True
            self.missed += 1

    async def read(self, endpoint: Endpoint, batch: RowBatch) -> None:
        """Load a batch of rows into the outbox, or redeliver missed deliveries.

        Raises Unavailable.
        """
        if batch.part == "missed":
            await self._make_redeliveries(endpoint, batch)
            return
        rows = await self._context.store.read(lambda reader: _read_rows(reader, endpoint.rowid, batch))
        self._outbox.end_batch(batch, rows, self._context.clock(), more=len(rows) == batch.limit)
        if batch.part == "held":
            self.held = max(0, self.held - len(rows))

    async def _make_redeliveries(self, endpoint: Endpoint, batch: RowBatch) -> None:
        now = self._context.clock()
        oldest = id_before("evt", self._context.schedule.horizon(now))
        self._may_have_missed = False
        try:
            count = await self._context.store.write(
                lambda tx: tx.catch_up(endpoint.rowid, oldest, now, batch.limit)
            )
        except Unavailable:
            self._may_have_missed = True
            raise
        more = count == batch.limit
        self._may_have_missed = self._may_have_missed or more
        self.missed = max(0, self.missed - count) if more else 0
        self._outbox.end_batch(batch, (), now, more=more)

    @property
    def finished(self) -> bool:
        """True if all held and missed deliveries are sent, so that `end` must be called."""
        return self._catching_up and not self._outbox.holds and self._outbox.backlog.empty

    async def end(self, endpoint: Endpoint) -> None:
        """Store and log that no held delivery is left. Raises Unavailable."""
        if self._breaker.held_upto is not None:
            await self._context.store.write(lambda tx: tx.clear_held_position(endpoint.rowid))
            self._breaker.clear_held()
        sent, self._outbox.backlog.started = self._outbox.backlog.started, 0
        self.held, self._catching_up = 0, False
        if sent:
            log.info("delivery.caught_up", endpoint=endpoint.id, sent=sent)


def _repeating_one(endpoint: int, oldest: str, now: int, beyond: int) -> Callable[[DeliveryTransaction], int]:
    return lambda tx: tx.catch_up(endpoint, oldest, now, 1, beyond=beyond)


def _read_rows(reader: DeliveryReader, endpoint: int, batch: RowBatch) -> Sequence[Delivery]:
    if batch.part == "retries":
        return reader.due_retries(
            endpoint, batch.limit, upto=batch.upto, unread=batch.unread, redelivered_upto=batch.after
        )
    again = batch.part == "redeliveries"
    return reader.pending_deliveries(endpoint, batch.after, batch.limit, upto=batch.upto, redeliveries=again)
