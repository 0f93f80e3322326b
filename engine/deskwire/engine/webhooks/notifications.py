"""News of deliveries for those who look at their conversation now: what became of its events, as it is stored.

While nobody looks at anything, a delivery costs one look at that. What is noted is gathered, so that a conversation is told of
at a bounded rate, however many deliveries it has.
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
from deskwire.engine.webhooks.outcome import Outcome, Sequences, outcome_view
from deskwire.engine.webhooks.ports import DeliveryReader

log: Final = structlog.get_logger(__name__)

BATCH_INTERVAL_S: Final = 0.2
"""Time in which notifier is gathered: the attempts of a message at all endpoints are mostly one piece of notifier."""

_EVENT_BATCH_SIZE: Final = 6
"""Events of one conversation that are told of at a time: with five endpoints each, as many as wait for a slow reader."""

_QUEUE_MAX: Final = 5_000
"""Events that wait to be told of; with more, a page knows what it has fetched."""


class Viewers(Protocol):
    """The people who look at conversations now."""

    @property
    def anybody(self) -> bool:
        """Tell whether anybody looks at any; asked for each delivery."""

    def viewed(self, project: int, conversation: str) -> bool:
        """Return whether anybody looks at this one."""


class ConversationKey(NamedTuple):
    """The conversation that there is notifier of, by storage keys."""

    project: int
    conversation: int


class DeliveryNotifier:
    """Gathers what has happened to deliveries, and tells those who look at the conversation.

    Args:
        publish: is given a project's storage key, a conversation's id and what became of one of its events at an endpoint.
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
        """Take note that a delivery was made, or that an attempt at it is recorded."""
        if not self._viewers.anybody or self._waiting >= _QUEUE_MAX:
            return
        conversation, sequence = delivery.event.conversation, delivery.event.sequence
        if conversation is None or sequence is None:  # a deletion's, or a contact's
            return
        events = self._noted.setdefault(ConversationKey(delivery.event.project, conversation), {})
        if sequence not in events:
            events[sequence] = None
            self._waiting += 1
            self._due.set()

    async def run(self) -> None:
        """Tell of what is noted, until cancelled."""
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
            wanted = Sequences(sequence, sequence)
            found += reader.outcomes(noted.conversation, wanted, None, ENDPOINTS_MAX)
        now = self._clock()
        return [outcome_view(each, endpoints[each.endpoint], now) for each in found]
