"""Bugs to plant: each breaks one promise of the service, and the simulation has to see it.

A bug is a change of one function for as long as its context lasts, in the way somebody might get it wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pytest
import trio

from deskwire.engine.core.values import replace
from deskwire.engine.events.log import EventLog
from deskwire.engine.idempotency.once import Answers
from deskwire.engine.merging import merges
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.subscription import Subscription
from deskwire.engine.webhooks.queue.ordering import OrderedDeliveries
from deskwire.engine.webhooks.queue.outbox import Outbox
from deskwire.engine.webhooks.retry.schedule import Ended, Schedule
from deskwire.engine.webhooks.worker import EndpointWorker
from deskwire.storage.sqlite import database
from deskwire.storage.sqlite.log import LogWrites
from deskwire.storage.sqlite.writer import Writer
from deskwire.storage.tables.webhooks.deliveries import DeliveryReads

Patch = pytest.MonkeyPatch


def _answer_before_the_disk_has_it(patch: Patch) -> None:
    """`synchronous = NORMAL`: a commit is answered before it is synced."""
    pragmas = tuple(each.replace("synchronous = FULL", "synchronous = NORMAL") for each in database._PRAGMAS)
    patch.setattr(database, "_PRAGMAS", pragmas)


def _answer_a_failed_commit(patch: Patch) -> None:
    """A commit that failed is answered as if it had not."""

    def told(_: Any, batch: Any, error: Any) -> None:
        for job in batch:
            job.done.set()

    patch.setattr(Writer, "_refuse", told)


def _skip_a_sequence(patch: Patch) -> None:
    """Every thirtieth event takes the number after the next."""
    append = LogWrites.append_event
    count = [0]

    def skipping(self: Any, project: Any, draft: Any, *rest: Any) -> Any:
        count[0] += 1
        if count[0] % 30 == 0 and draft.sequence is not None:
            draft = replace(draft, sequence=draft.sequence + 1)
        return append(self, project, draft, *rest)

    patch.setattr(LogWrites, "append_event", skipping)


def _forget_what_is_pending_at_a_restart(patch: Patch) -> None:
    """A worker that does not read the rows that an earlier process has left."""
    patch.setattr(DeliveryReads, "pending_deliveries", lambda *_, **__: [])


def _forget_a_row(patch: Patch) -> None:
    """Every twentieth delivery is told to the dispatcher, and not stored."""
    insert = LogWrites.add_delivery
    count = [0]

    def forgetting(self: Any, *values: Any, **named: Any) -> Any:
        delivery = insert(self, *values, **named)
        count[0] += 1
        if count[0] % 20 == 0:
            self.conn.execute("DELETE FROM deliveries WHERE position = ?", (delivery.position,))
        return delivery

    patch.setattr(LogWrites, "add_delivery", forgetting)


def _say_delivered_whatever_the_answer(patch: Patch) -> None:
    """Any answer counts as a delivery."""
    after = Schedule.after_failure

    def lenient(self: Schedule, attempt: Any, *values: Any) -> Any:
        verdict = after(self, attempt, *values)
        return Ended("delivered") if attempt.status is not None else verdict

    patch.setattr(Schedule, "after_failure", lenient)


def _send_a_conversation_out_of_order(patch: Patch) -> None:
    """A conversation's next delivery does not wait for the one before."""

    def add(self: Any, delivery: Any) -> None:
        self.held[delivery.position] = delivery
        self._ready.appendleft(delivery)

    patch.setattr(OrderedDeliveries, "add", add)


def _send_what_is_erased(patch: Patch) -> None:
    """Deliveries of erased conversations stay in memory."""
    patch.setattr(EndpointWorker, "forget", lambda *_: None)
    patch.setattr(EventLog, "_erase", lambda *_: None)


def _hold_up_all_for_one(patch: Patch) -> None:
    """All workers share one place for an attempt."""
    places = trio.Semaphore(1)
    post = EndpointWorker._post

    async def queued(self: Any, delivery: Any, may_send: Any) -> Any:
        async with places:
            return await post(self, delivery, may_send)

    patch.setattr(EndpointWorker, "_post", queued)


def _hold_everything_in_memory(patch: Patch) -> None:
    """An outbox without a bound."""
    begin = Outbox.__init__
    patch.setattr(Outbox, "__init__", lambda self, _, *parts, **named: begin(self, 1 << 30, *parts, **named))


def _answer_a_key_twice(patch: Patch) -> None:
    """A key is looked up before the commit alone, so two at once, or one after a crash, are both carried out."""
    patch.setattr(Answers, "refuse", lambda *_: None)


def _drop_the_fence(patch: Patch) -> None:
    """One that was superseded may come back at once."""
    patch.setattr(ChannelLease, "fenced", lambda *_: False)


def _lose_an_event_of_the_stream(patch: Patch) -> None:
    """Every tenth look at the log that finds something passes over its first event."""
    take = Subscription._take
    count = [0]

    def passing_over(self: Any, events: Any, newest: int) -> Any:
        count[0] += bool(events)
        return take(self, events[1:] if events and count[0] % 10 == 0 else events, newest)

    patch.setattr(Subscription, "_take", passing_over)


def _write_to_who_lost_the_channel(patch: Patch) -> None:
    """One that is superseded stays current, and is not told to go."""
    take = ChannelLease.take

    def taken(self: Any, *values: Any) -> Any:
        previous = take(self, *values)
        if previous is not None:
            previous.current, previous.lost = True, lambda _: None
        return previous

    patch.setattr(ChannelLease, "take", taken)


def _leave_erased_text(patch: Patch) -> None:
    """Nothing is overwritten after an erasure."""
    pragmas = tuple(each.replace("secure_delete = ON", "secure_delete = OFF") for each in database._PRAGMAS)
    patch.setattr(database, "_PRAGMAS", pragmas)
    patch.setattr("deskwire.storage.sqlite.scrub.scrubbed", lambda page, *_: page)


def _say_that_a_merge_is_over(patch: Patch) -> None:
    """A merge ends when its conversations have moved, and is told to nobody."""
    patch.setattr(merges, "end_merge", lambda *_: True)


PLANTS: Final[Mapping[str, Callable[[Patch], None]]] = {
    bug.__name__.strip("_"): bug
    for bug in (
        _answer_before_the_disk_has_it,
        _answer_a_failed_commit,
        _skip_a_sequence,
        _forget_what_is_pending_at_a_restart,
        _forget_a_row,
        _say_delivered_whatever_the_answer,
        _send_a_conversation_out_of_order,
        _send_what_is_erased,
        _hold_up_all_for_one,
        _hold_everything_in_memory,
        _answer_a_key_twice,
        _drop_the_fence,
        _lose_an_event_of_the_stream,
        _write_to_who_lost_the_channel,
        _leave_erased_text,
        _say_that_a_merge_is_over,
    )
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The service with this bug."""
    with pytest.MonkeyPatch.context() as patch:
        PLANTS[name](patch)
        yield
