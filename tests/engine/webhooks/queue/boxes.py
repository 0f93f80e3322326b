"""Helpers to build outboxes and move deliveries through them."""

from __future__ import annotations

from collections.abc import Sequence

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.queue.backlog import Backlog
from deskwire.engine.webhooks.queue.outbox import Outbox, RowBatch
from deskwire.engine.webhooks.queue.retries import Retries
from tests.support.sockets.receivers import delivery

AHEAD_MAX_MS = 200_000


def outbox_of(
    memory: int = 100, *, share: int = 4, holds: bool = False, held_upto: int | None = None
) -> Outbox:
    retries, backlog = Retries(memory, AHEAD_MAX_MS), Backlog(1_000_000, 8, memory)
    return Outbox(memory, share, retries, backlog, holds=holds, held_upto=held_upto)


def read(outbox: Outbox, *rows: Delivery, now: int = 0, more: bool = False) -> RowBatch:
    """Complete the next requested batch with these rows."""
    batch = outbox.wants_batch(now)
    assert batch is not None
    outbox.end_batch(batch, rows, now, more=more)
    return batch


def caught_up(memory: int = 100, *, share: int = 4) -> Outbox:
    """Return an outbox that found no pending rows at its start."""
    outbox = outbox_of(memory, share=share)
    assert [read(outbox).part, read(outbox).part] == ["live", "redeliveries"]
    return outbox


def released(upto: int, *, memory: int = 100) -> Outbox:
    """Return an outbox whose circuit has just closed."""
    outbox = outbox_of(memory, holds=True)
    outbox.release(upto)
    return outbox


def take(outbox: Outbox, now: int = 0) -> list[int]:
    """Take all deliveries that may start now; return their positions.

    The backlog's rate is high enough for all.
    """
    found = list[int]()
    while (ready := outbox.take_next(now, 1.0)) is not None:
        found.append(ready.position)
    return found


def end(outbox: Outbox, *deliveries: Delivery) -> None:
    """End their attempts for good."""
    for each in deliveries:
        outbox.attempt_ended(each)
        outbox.end(each)


def fail(outbox: Outbox, sent: Delivery, due_at: int, now: int = 0) -> None:
    """Fail an attempt and plan the next one."""
    outbox.attempt_ended(sent)
    outbox.retry(retry(sent, due_at), now)


def retry(sent: Delivery, due_at: int = 0, attempts: int = 1) -> Delivery:
    return replace(sent, attempts=attempts, due_at=due_at, planned_from=1, failing_since=1)


def repeated(sent: Delivery, due_at: int = 0) -> Delivery:
    return replace(sent, due_at=due_at, planned_from=due_at)


def again(position: int, conversation: int | None = 7) -> Delivery:
    return replace(delivery(position, conversation), redelivery=True)


def deletion(position: int, conversation: int = 7) -> Delivery:
    made = delivery(position, conversation)
    return replace(made, event=replace(made.event, conversation=None))


def offered(outbox: Outbox, *deliveries: Delivery) -> Sequence[Delivery]:
    for each in deliveries:
        outbox.offer(each)
    return deliveries
