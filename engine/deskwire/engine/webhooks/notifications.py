"""Notifications of delivery outcomes, for agents with the conversation open.

While no agent has a conversation open, a delivery costs one check. Changes are collected and published in
batches, which limits the rate for each conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import structlog
import trio

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import ENDPOINTS_MAX
from deskwire.engine.webhooks.outcome import Outcome, SequenceRange, outcome_view
from deskwire.engine.webhooks.ports import DeliveryReader

log: Final = structlog.get_logger(__name__)

# Changes are collected for this long, so that the attempts of one message at all endpoints usually give one
# notification.
BATCH_INTERVAL_S: Final = 0.2

# Events of one conversation per notification. With five endpoints each, this is as many as the queue of a
# slow reader holds.
_EVENT_BATCH_SIZE: Final = 6

# Events in the queue. When it is full, further changes are ignored, and agents see them when they fetch the
# deliveries.
_QUEUE_MAX: Final = 5_000


class Viewers(Protocol):
    """The agents who have conversations open."""

    @property
    def has_viewers(self) -> bool:
        """True if any agent has any conversation open; checked for each delivery."""

    def viewed(self, project: int, conversation: str) -> bool:
        """Return whether an agent has this conversation open."""


class ConversationKey(NamedTuple):
    """A conversation with changed deliveries, by storage keys."""

    project: int
    conversation: int


class DeliveryNotifier:
    """Collects changes of deliveries and publishes them to viewers.

    Args:
        publish: called with a project's storage key, a conversation's id and the outcome of one of its events
            at an endpoint.
    """

    def __init__(
        self,
        store: Store[DeliveryReader, object],
        clock: Clock,
        viewers: Viewers,
        publish: Callable[[int, str, Mapping[str, Any]], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._viewers = viewers
        self._publish = publish
        self._noted: dict[ConversationKey, dict[int, None]] = {}
        self._waiting = 0
        self._due = trio.Event()

    def enqueue(self, delivery: Delivery) -> None:
        """Enqueue a delivery that was created, or whose attempt was recorded."""
        if not self._viewers.has_viewers or self._waiting >= _QUEUE_MAX:
            return
        conversation, sequence = delivery.event.conversation, delivery.event.sequence
        if conversation is None or sequence is None:  # a deletion or an event of a contact
            return
        events = self._noted.setdefault(ConversationKey(delivery.event.project, conversation), {})
        if sequence not in events:
            events[sequence] = None
            self._waiting += 1
            self._due.set()

    async def run(self) -> None:
        """Publish the queued changes until cancelled."""
        while True:
            await self._due.wait()
            await trio.sleep(BATCH_INTERVAL_S)
            self._due = trio.Event()
            try:
                await self._publish_all()
            except Unavailable as refusal:
                log.warning("delivery.news_not_read", reason=refusal.reason)
            if self._noted:
                self._due.set()

    async def _publish_all(self) -> None:
        noted = [*self._noted]
        known = await self._store.read(
            lambda reader: {each: reader.conversation_id(each.conversation) for each in noted}
        )
        for each, conversation in known.items():
            if conversation is None or not self._viewers.viewed(each.project, conversation):
                self._waiting -= len(self._noted.pop(each))
            else:
                await self._publish_outcomes(each, conversation)

    async def _publish_outcomes(self, noted: ConversationKey, conversation: str) -> None:
        sequences = [*self._noted[noted]][:_EVENT_BATCH_SIZE]
        for sequence in sequences:
            del self._noted[noted][sequence]
        self._waiting -= len(sequences)
        if not self._noted[noted]:
            del self._noted[noted]
        for item in await self._store.read(lambda reader: self._items(reader, noted, sequences)):
            self._publish(noted.project, conversation, item)

    def _items(
        self, reader: DeliveryReader, noted: ConversationKey, sequences: Sequence[int]
    ) -> Sequence[Mapping[str, Any]]:
        endpoints = {endpoint.rowid: endpoint for endpoint in reader.endpoints(noted.project)}
        found: list[Outcome] = []
        for sequence in sequences:
            wanted = SequenceRange(sequence, sequence)
            found += reader.outcomes(noted.conversation, wanted, None, ENDPOINTS_MAX)
        now = self._clock()
        return [outcome_view(each, endpoints[each.endpoint], now) for each in found]
