"""Bugs of webhooks and merges."""

from __future__ import annotations

from typing import Any

import trio

from deskwire.engine.events.log import EventLog
from deskwire.engine.merging import merges
from deskwire.engine.webhooks.outage import Outage
from deskwire.engine.webhooks.queue.ordering import OrderedDeliveries
from deskwire.engine.webhooks.queue.outbox import Outbox
from deskwire.engine.webhooks.recorder import AttemptResult
from deskwire.engine.webhooks.retry import verdict
from deskwire.engine.webhooks.retry.schedule import DeliveryEnd, Schedule
from deskwire.engine.webhooks.worker import EndpointWorker
from deskwire.storage.sqlite.log import LogWrites
from deskwire.storage.tables.webhooks.deliveries import DeliveryReads
from tests.plants.registry import Patch, plant


@plant("simulation", "nodes", "crash", thorough=("simulation", "crash"))
def forget_what_is_pending_at_a_restart(patch: Patch) -> None:
    """A worker does not read the pending rows of an earlier process."""
    patch.setattr(DeliveryReads, "pending_deliveries", lambda *_, **__: [])


@plant("simulation", "crash", thorough=("crash",))
def forget_a_row(patch: Patch) -> None:
    """Every twentieth delivery reaches the dispatcher, but is not stored."""
    insert = LogWrites.add_delivery
    count = [0]

    def forgetting(self: Any, *values: Any, **named: Any) -> Any:
        delivery = insert(self, *values, **named)
        count[0] += 1
        if count[0] % 20 == 0:
            self.conn.execute("DELETE FROM deliveries WHERE position = ?", (delivery.position,))
        return delivery

    patch.setattr(LogWrites, "add_delivery", forgetting)


@plant("simulation", "crash", thorough=("simulation", "crash"))
def say_delivered_whatever_the_answer(patch: Patch) -> None:
    """Any answer counts as a delivery."""
    after = Schedule.after_failure

    def lenient(self: Schedule, attempt: Any, *values: Any) -> Any:
        verdict = after(self, attempt, *values)
        return DeliveryEnd("delivered") if attempt.status is not None else verdict

    patch.setattr(Schedule, "after_failure", lenient)


@plant("simulation", "crash", thorough=("crash",))
def send_a_conversation_out_of_order(patch: Patch) -> None:
    """A conversation's next delivery does not wait for the one before."""

    def add(self: Any, delivery: Any) -> None:
        self.held[delivery.position] = delivery
        self._ready.appendleft(delivery)

    patch.setattr(OrderedDeliveries, "add", add)


@plant("simulation", thorough=("simulation",))
def send_what_is_erased(patch: Patch) -> None:
    """Deliveries of erased conversations stay in memory."""
    patch.setattr(EndpointWorker, "forget", lambda *_: None)
    patch.setattr(EventLog, "_erase", lambda *_: None)


@plant("simulation")
def hold_up_all_for_one(patch: Patch) -> None:
    """All workers share a single slot for attempts."""
    places = trio.Semaphore(1)
    post = EndpointWorker._post

    async def queued(self: Any, delivery: Any, may_send: Any) -> Any:
        async with places:
            return await post(self, delivery, may_send)

    patch.setattr(EndpointWorker, "_post", queued)


@plant("simulation", thorough=("simulation",))
def hold_everything_in_memory(patch: Patch) -> None:
    """An outbox has no bound."""
    begin = Outbox.__init__
    patch.setattr(Outbox, "__init__", lambda self, _, *parts, **named: begin(self, 1 << 30, *parts, **named))


@plant("simulation")
def say_that_a_merge_is_over(patch: Patch) -> None:
    """A merge ends when its conversations have moved, without its event."""
    patch.setattr(merges, "end_merge", lambda *_: True)


@plant("simulation", "nodes")
def send_what_was_delivered_again(patch: Patch) -> None:
    """Every tenth accepted delivery is sent again, as if its answer had been lost."""
    record = AttemptResult.record
    count = [0]

    def repeating(self: AttemptResult, tx: Any) -> bool:
        count[0] += self.delivered
        if self.delivered and count[0] % 10 == 0:
            return True  # its row stays pending
        return record(self, tx)

    patch.setattr(AttemptResult, "record", repeating)


@plant("simulation")
def never_probe_a_quiet_endpoint(patch: Patch) -> None:
    """An endpoint's missed events wait until a new event is sent to it."""
    patch.setattr(Outage, "quiet_probe_at", lambda *_: None)


@plant("simulation", thorough=("simulation",))
def wait_without_end_for_one_event(patch: Patch) -> None:
    """A `Retry-After` never counts as an attempt, even if it is for one event only."""
    patch.setattr(
        verdict,
        "_refused",
        lambda attempt, plan, schedule, *_: schedule.after_pause_asked(attempt, plan),
    )
