"""All couriers of typing events: one for each endpoint that lists a type of them, none for the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import trio

from deskwire.engine.events.types import CATALOG, EphemeralEvent, matches
from deskwire.engine.webhooks.context import DeliveryContext
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ephemeral import EphemeralWorker
from deskwire.engine.webhooks.isolation import RESTART_PAUSE_S, run_isolated
from deskwire.engine.webhooks.retry.breaker import Breaker

_PASSING: Final = frozenset(kind.type for kind in CATALOG.values() if kind.opt_in)


@dataclass(slots=True, eq=False)
class _Seat:
    """A courier's place: it outlives the courier that failed in it."""

    courier: EphemeralWorker
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)


class EphemeralDispatcher:
    """Delivers typing events to the endpoints that are there; see `Dispatcher`, whose part this is."""

    def __init__(self, means: DeliveryContext) -> None:
        self._means = means
        self._seats: dict[int, _Seat] = {}
        self._projects: dict[int, dict[int, _Seat]] = {}

    @property
    def held(self) -> int:
        """How many deliveries wait, over all endpoints."""
        return sum(seat.courier.held for seat in self._seats.values())

    def add(self, endpoint: Endpoint, breaker: Breaker, nursery: trio.Nursery) -> None:
        """Deliver to an endpoint, if it lists typing; what waits for it as it was before is gone."""
        self.remove(endpoint.rowid)
        if not endpoint.events & _PASSING:
            return
        seat = self._seats[endpoint.rowid] = _Seat(EphemeralWorker(endpoint, self._means, breaker))
        self._projects.setdefault(endpoint.project, {})[endpoint.rowid] = seat
        nursery.start_soon(self._keep, seat)

    def change(self, endpoint: Endpoint, breaker: Breaker, nursery: trio.Nursery) -> None:
        """Go on with an endpoint's changed fields, its URL being the same."""
        seat = self._seats.get(endpoint.rowid)
        if seat is None or not endpoint.events & _PASSING:
            self.add(endpoint, breaker, nursery)
        else:
            seat.courier.change(endpoint)

    def remove(self, endpoint_rowid: int) -> None:
        """Stop delivering to an endpoint at once."""
        seat = self._seats.pop(endpoint_rowid, None)
        if seat is not None:
            del self._projects[seat.courier.endpoint.project][endpoint_rowid]
            seat.scope.cancel()

    def forget(self, conversations: frozenset[int]) -> None:
        """Send nothing more of erased conversations."""
        for seat in self._seats.values():
            seat.courier.forget(conversations)

    def pass_on(self, event: EphemeralEvent) -> None:
        """Give the event to the endpoints of its project that list its type."""
        for seat in self._projects.get(event.project, {}).values():
            if matches(seat.courier.endpoint.events, event.type):
                seat.courier.offer(event)

    def clear(self) -> None:
        """Stop delivering to all endpoints."""
        for endpoint_rowid in list(self._seats):
            self.remove(endpoint_rowid)

    async def _keep(self, seat: _Seat) -> None:
        """Run the seat's courier; after a failure a new one, which knows nothing of what waited."""
        with seat.scope:
            while True:
                await run_isolated(seat.courier.endpoint, seat.courier.run)
                await trio.sleep(RESTART_PAUSE_S)
                last = seat.courier
                seat.courier = EphemeralWorker(last.endpoint, self._means, last.breaker)
