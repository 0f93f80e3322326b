"""What an endpoint's outage keeps waiting: probes while it lasts, and what is to be made good when it is over (ADR 40).

Two kinds of deliveries wait. *Held* ones are pending, because the circuit was open. *Missed* ones have used up their
attempts without any success of the endpoint meanwhile: they are dropped, and with its next 2xx they are sent once more,
unless the endpoint's `catchUp` is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import structlog

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.ids import id_before
from deskwire.engine.webhooks.context import DeliveryContext
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ports import DeliveryReader
from deskwire.engine.webhooks.queue.outbox import Outbox, Page
from deskwire.engine.webhooks.retry.breaker import Breaker
from deskwire.engine.webhooks.retry.circuit import Circuit
from deskwire.engine.webhooks.retry.schedule import Ended, Retry

log: Final = structlog.get_logger(__name__)

_BATCH: Final = 500
"""Rows that one commit ends as too old; a few milliseconds of the writer's time."""


class Outage:
    """One endpoint's outage, if there is one.

    Attributes:
        held: how many deliveries the open circuit has held that are not sent yet, as far as is known.
        missed: how many are to be sent once more, as far as is known.
        asked_for: position of a delivery that somebody waits for; None for any.
    """

    def __init__(self, means: DeliveryContext, breaker: Breaker, outbox: Outbox) -> None:
        self.held = 0
        self.missed = 0
        self.asked_for: int | None = None
        self._means = means
        self._breaker = breaker
        self._outbox = outbox
        self._owes = True  # until it is known
        self._catching_up = breaker.held_upto is not None

    async def count(self, endpoint: Endpoint) -> None:
        """Count what waits. Raises Unavailable."""
        waiting = await self._means.store.read(lambda reader: reader.held_back(endpoint.rowid))
        self.held, self.missed = waiting.held, waiting.missed
        self._owes = self._owes and waiting.missed > 0

    def offered(self, delivery: Delivery) -> None:
        """Take note of a delivery that was committed while the circuit was open."""
        self.held += self._outbox.holds

    def circuit_changed(self, endpoint: Endpoint, before: Circuit, after: Circuit) -> None:
        """Hold what is in memory when the circuit opens, and tell."""
        if after.probe_at is None:
            return
        if before.probe_at is None:
            self._outbox.hold()
            self._catching_up = False
            log.warning("delivery.circuit_opened", endpoint=endpoint.id, reason=after.reason)
        elif after.probes > before.probes:
            log.info("delivery.probe_failed", endpoint=endpoint.id, probes=after.probes, reason=after.reason)

    def released(self, endpoint: Endpoint) -> None:
        """Take note that what was held is being sent."""
        self._catching_up = True
        log.info("delivery.circuit_closed", endpoint=endpoint.id, held=self.held)

    # Probes

    async def next_probe(self, endpoint: Endpoint, now: int) -> Delivery | None:
        """Return what to send as a probe, the oldest delivery unless somebody waits for one; None if none is pending.

        What has become too old is ended before. Raises Unavailable.
        """
        self._breaker.release_upto = None
        await self._end_too_old(endpoint, now)
        await self.count(endpoint)
        self._breaker.release_upto = self._outbox.newest
        asked_for, self.asked_for = self.asked_for, None
        if asked_for is not None and (found := await self._pending(endpoint, asked_for - 1, asked_for)):
            return found
        return await self._pending(endpoint, 0, None)

    async def _pending(self, endpoint: Endpoint, after: int, upto: int | None) -> Delivery | None:
        page = self._outbox.ask_for_probe()
        rows = await self._means.store.read(
            lambda reader: reader.pending_deliveries(endpoint.rowid, after, page.limit, upto=upto)
        )
        return self._outbox.take_probe(page, rows)

    async def _end_too_old(self, endpoint: Endpoint, now: int) -> None:
        schedule, store = self._means.schedule, self._means.store
        horizon, reason = schedule.horizon(now), schedule.too_late_reason()
        oldest = await store.read(lambda reader: reader.pending_deliveries(endpoint.rowid, 0, 1))
        while oldest and oldest[0].created_at < horizon:
            ended = await store.write(lambda tx: tx.end_too_old(endpoint.rowid, horizon, reason, now, _BATCH))
            self._means.counters.skipped += ended
            if ended < _BATCH:
                return

    # What is to be made good

    def judged(self, follows: Retry | Ended, endpoint: Endpoint) -> Retry | Ended:
        """Return what follows from an attempt as the endpoint's `catchUp` wants it; a success begins the catching up."""
        if not isinstance(follows, Ended) or endpoint.catch_up == "off":
            return replace(follows, missed=False) if isinstance(follows, Ended) else follows
        if follows.missed:
            return replace(follows, reason=f"{follows.reason}; it is sent once more with the next success")
        if follows.status == "delivered" and self._owes:
            self._outbox.backlog.missed = self._catching_up = True
        return follows

    def ended(self, verdict: Ended) -> None:
        """Take note of a delivery that has ended, once that is stored."""
        if verdict.missed:
            self._owes = True
            self.missed += 1

    async def read(self, endpoint: Endpoint, page: Page) -> None:
        """Give the outbox a page of rows, or make redeliveries of what was missed. Raises Unavailable."""
        if page.part == "missed":
            await self._make_redeliveries(endpoint, page)
            return
        rows = await self._means.store.read(lambda reader: _rows(reader, endpoint.rowid, page))
        self._outbox.end_page(page, rows, self._means.clock(), more=len(rows) == page.limit)
        if page.part == "held":
            self.held = max(0, self.held - len(rows))

    async def _make_redeliveries(self, endpoint: Endpoint, page: Page) -> None:
        now = self._means.clock()
        oldest = id_before("evt", self._means.schedule.horizon(now))
        self._owes = False
        try:
            made = await self._means.store.write(
                lambda tx: tx.catch_up(endpoint.rowid, oldest, now, page.limit)
            )
        except Unavailable:
            self._owes = True
            raise
        more = made == page.limit
        self._owes = self._owes or more
        self.missed = max(0, self.missed - made) if more else 0
        self._outbox.end_page(page, (), now, more=more)

    @property
    def over(self) -> bool:
        """Say whether all that was to be made good has been sent, and `end` is to be called."""
        return self._catching_up and not self._outbox.holds and self._outbox.backlog.empty

    async def end(self, endpoint: Endpoint) -> None:
        """Store that nothing is left of what was held, and tell. Raises Unavailable."""
        if self._breaker.held_upto is not None:
            await self._means.store.write(lambda tx: tx.forget_held(endpoint.rowid))
            self._breaker.caught_up()
        sent, self._outbox.backlog.started = self._outbox.backlog.started, 0
        self.held, self._catching_up = 0, False
        if sent:
            log.info("delivery.caught_up", endpoint=endpoint.id, sent=sent)


def _rows(reader: DeliveryReader, endpoint: int, page: Page) -> Sequence[Delivery]:
    if page.part == "retries":
        return reader.due_retries(
            endpoint, page.limit, upto=page.upto, unread=page.unread, redelivered_upto=page.after
        )
    again = page.part == "redeliveries"
    return reader.pending_deliveries(endpoint, page.after, page.limit, upto=page.upto, redeliveries=again)
