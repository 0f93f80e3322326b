"""The workers for typing events: one for each endpoint that lists such a type, none for the others."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import trio

from deskwire.engine.events.types import CATALOG, EphemeralEvent, matches
from deskwire.engine.webhooks.context import DeliveryContext
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ephemeral import EphemeralWorker
from deskwire.engine.webhooks.retry.breaker import Breaker
from deskwire.engine.webhooks.supervision import Supervised

_EPHEMERAL_TYPES: Final = frozenset(kind.type for kind in CATALOG.values() if kind.opt_in)


class EphemeralDispatcher:
    """Delivers typing events to the endpoints that it was given; a part of `Dispatcher`."""

    def __init__(self, context: DeliveryContext) -> None:
        self._context = context
        self._workers: dict[int, Supervised[EphemeralWorker]] = {}
        self._projects: dict[int, dict[int, Supervised[EphemeralWorker]]] = {}

    @property
    def held(self) -> int:
        """The number of deliveries that wait, over all endpoints."""
        return sum(supervised.worker.held for supervised in self._workers.values())

    @property
    def projects(self) -> Collection[int]:
        """The projects with an endpoint that lists such a type, by their storage keys."""
        return [project for project, workers in self._projects.items() if workers]

    def add(self, endpoint: Endpoint, breaker: Breaker, nursery: trio.Nursery) -> None:
        """Deliver to an endpoint if it lists typing, and drop what waits for it as it was before."""
        self.remove(endpoint.rowid)
        if not endpoint.events & _EPHEMERAL_TYPES:
            return
        supervised = Supervised(EphemeralWorker(endpoint, self._context, breaker))
        self._workers[endpoint.rowid] = supervised
        self._projects.setdefault(endpoint.project, {})[endpoint.rowid] = supervised
        supervised.start(nursery)

    def change(self, endpoint: Endpoint, breaker: Breaker, nursery: trio.Nursery) -> None:
        """Go on with an endpoint's changed fields; its URL must be the same."""
        supervised = self._workers.get(endpoint.rowid)
        if supervised is None or not endpoint.events & _EPHEMERAL_TYPES:
            self.add(endpoint, breaker, nursery)
        else:
            supervised.worker.change(endpoint)

    def remove(self, endpoint_rowid: int) -> None:
        """Stop delivering to an endpoint at once."""
        supervised = self._workers.pop(endpoint_rowid, None)
        if supervised is not None:
            del self._projects[supervised.worker.endpoint.project][endpoint_rowid]
            supervised.cancel()

    def forget(self, conversations: frozenset[int]) -> None:
        """Send nothing more of erased conversations."""
        for supervised in self._workers.values():
            supervised.worker.forget(conversations)

    def offer(self, event: EphemeralEvent) -> None:
        """Give an event to the endpoints of its project that list its type."""
        for supervised in self._projects.get(event.project, {}).values():
            if matches(supervised.worker.endpoint.events, event.type):
                supervised.worker.offer(event)

    def clear(self) -> None:
        """Stop delivering to all endpoints."""
        for endpoint_rowid in list(self._workers):
            self.remove(endpoint_rowid)
