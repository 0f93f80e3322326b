"""The store and the commits as the deliveries to webhooks need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks.delivery import (
    Attempt,
    Delivery,
    DeliveryFilter,
    DeliveryRecord,
    DeliveryStatus,
    FoundDeliveries,
    OutageCounts,
    ReplayCounts,
    ReplayRange,
)
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.figures import Figures
from deskwire.engine.webhooks.outcome import Outcome, Sequences
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit


class EndpointLease(Struct, frozen=True):
    """The node that delivers to an enabled endpoint.

    Args:
        endpoint: the endpoint, by its storage key.
        changed_at: when the endpoint was changed last (ms).
        incarnation: the life of the node; None if nobody delivers.
        generation: how often that has changed.
    """

    endpoint: int
    changed_at: int
    incarnation: int | None
    generation: int


class DeliveryReader(Protocol):
    """Queries on endpoints and on what is delivered to them."""

    def endpoints(self, project: int | None = None) -> Sequence[Endpoint]:
        """Return the webhook endpoints of one project or of all, oldest first, without removed ones."""

    def secret_id(self) -> str | None:
        """Return the id of the secret that the database belongs to; None until a start has stored it."""

    def unserved_endpoints(self) -> Sequence[int]:
        """Return the endpoints that are disabled, or removed with deliveries left."""

    def pending_deliveries(
        self,
        endpoint: int,
        after: int,
        limit: int,
        *,
        upto: int | None = None,
        redeliveries: bool | None = None,
        other_than: int | None = None,
    ) -> Sequence[Delivery]:
        """Return pending deliveries at positions larger than `after` and up to `upto`, in that order.

        Args:
            other_than: the ordering key of those that are left out.
            redeliveries: True for those alone that repeat another one, False for those that do not, None for both.
        """

    def due_retries(
        self, endpoint: int, limit: int, *, upto: int, unread: tuple[int, int], redelivered_upto: int
    ) -> Sequence[Delivery]:
        """Return pending deliveries of which an attempt was made, in the order in which they are due.

        Args:
            upto: the last position, except for redeliveries.
            unread: the positions, the first excluded, between which nothing is returned except redeliveries.
            redelivered_upto: the last position for redeliveries.
        """

    def endpoint_leases(self) -> Sequence[EndpointLease]:
        """Return who delivers to each enabled endpoint."""

    def endpoint_lease_generation(self, endpoint: int) -> int | None:
        """Return the generation of the lease on an endpoint's deliveries; None if there has been none."""

    def is_untried(self, delivery: Delivery) -> bool:
        """Return whether a delivery waits for the result of its first attempt."""

    def outage_counts(self, endpoint: int) -> OutageCounts:
        """Return the numbers of the endpoint's deliveries that an outage keeps waiting."""

    def outstanding(self, endpoint: int, bound: int) -> int:
        """Return the number of the endpoint's deliveries that still have to be made, counted up to a bound."""

    def dropped_since(self, project: int, endpoint: int, since: int, bound: int) -> int:
        """Count the endpoint's deliveries from this time (ms) on that were dropped and not repeated, up to a bound."""

    def delivery_records(
        self, project: int, endpoint: int, wanted: DeliveryFilter, before: int | None, limit: int
    ) -> FoundDeliveries:
        """Return an endpoint's delivery log, newest first, at positions smaller than `before`.

        A search for an event type looks at a bounded number of deliveries, and says where it stopped (ADR 54).
        """

    def delivery_record(self, project: int, delivery_id: str) -> DeliveryRecord | None:
        """Return the project's delivery with this id, None if it has none."""

    def conversation_id(self, conversation: int) -> str | None:
        """Return the id of the conversation with this storage key, None if there is none."""

    def outcomes(
        self, conversation: int, wanted: Sequences, before: tuple[int, int] | None, limit: int
    ) -> Sequence[Outcome]:
        """Return what became of a conversation's events, newest first, behind a sequence and a position.

        An event has one outcome at each endpoint: the first delivery that arrived, else the last one that was made. Those at
        endpoints that were removed are left out.
        """

    def recoverable(self, endpoint: int, after: str) -> tuple[int, int]:
        """Count the deliveries of events behind this event id that ended dropped or skipped and were not repeated.

        Returns two numbers: those whose event is stored, and those whose event is not stored any more.
        """

    def replayable(self, endpoint: int, conversation: int, wanted: ReplayRange) -> ReplayCounts:
        """Count what `replay` would send of a conversation's events to an endpoint."""

    def delivery_figures(
        self, project: int, endpoint: int, starts: Sequence[int], until: int | None
    ) -> Figures:
        """Count the endpoint's deliveries in buckets by the time at which they were made.

        Args:
            project: storage key of the endpoint's project.
            starts: where the buckets begin (ms), in ascending order, at least one.
            until: where the last one ends (ms); None if it has no end.
        """


class DeliveryTransaction(DeliveryReader, Protocol):
    """Changes of endpoints and of deliveries."""

    def acquire_endpoint_lease(self, endpoint: int, generation: int, incarnation: int) -> int | None:
        """Make a node the one that delivers to an endpoint, if nobody does whose lease is not over; return the generation.

        Args:
            generation: the one before, as it was read; if it is another by now, None is returned.
        """

    def release_endpoint_lease(self, endpoint: int, generation: int) -> None:
        """Have nobody deliver to an endpoint, if this generation still does."""

    def delete_stale_endpoint_leases(self) -> None:
        """Remove the leases on endpoints that are gone."""

    def routed_endpoints(self, project: int) -> Sequence[Endpoint]:
        """Return the endpoints that new events are for, disabled ones too; cheap. Their circuits may be stale."""

    def insert_delivery(
        self,
        endpoint: int,
        event: StoredEvent,
        ordering_key: int | None,
        previous: int | None,
        at: int,
        *,
        skipped: str | None = None,
    ) -> Delivery:
        """Store a delivery with this ordering key: pending and due at once, or `skipped` for this reason."""

    def redeliver(self, position: int, at: int) -> Delivery | None:
        """Store a pending delivery that repeats this one; None if its event is no longer stored."""

    def recover(self, endpoint: int, after: str, at: int, limit: int) -> int:
        """Repeat up to `limit` of the deliveries that `recoverable` counts, oldest first; return their number."""

    def replay(
        self, endpoint: int, conversation: int, wanted: ReplayRange, at: int, limit: int
    ) -> tuple[int, int | None]:
        """Store pending deliveries of a conversation's events, whatever became of them before, in their order.

        An event that is on its way to the endpoint is left out. One that was never for it gets its first delivery.

        Args:
            limit: events that are looked at.

        Returns the number of deliveries, and the sequence of the last event that was looked at: the next part begins
        behind it. It is None once there is no further event.
        """

    def prefetch_results(self, endpoint: int, deliveries: Sequence[Delivery]) -> None:
        """Read the rows that recording the results of these deliveries needs, in one exchange with the database.

        Without effect on the outcome, and in a store that has no exchanges.
        """

    def record_retry(self, planned: Delivery, attempt: Attempt) -> bool:
        """Store an attempt and the new plan; return False, with nothing stored, if the delivery is not pending."""

    def record_end(
        self,
        delivery: Delivery,
        attempt: Attempt,
        status: DeliveryStatus,
        reason: str | None,
        *,
        missed: bool = False,
    ) -> bool:
        """Store a delivery's last attempt and its end; return False, with nothing stored, if it is not pending.

        Args:
            missed: whether it is to be sent once more, see `catch_up`.
        """

    def end_delivery(self, delivery: Delivery, status: DeliveryStatus, reason: str, at: int) -> bool:
        """End a delivery without an attempt; return False, with nothing stored, if it is not pending."""

    def end_too_old(self, endpoint: int, before: int, reason: str, at: int, limit: int) -> int:
        """End up to `limit` pending deliveries from before this time (ms) as skipped; return their number."""

    def catch_up(self, endpoint: int, after: str, at: int, limit: int, *, beyond: int = 0) -> int:
        """Repeat up to `limit` missed deliveries of events behind this event id, oldest first; return their number.

        Args:
            beyond: position of the event after which to begin.

        Those of older events, and of events that are not stored any more, stop counting as missed.
        """

    def close_deliveries(self, endpoint: int, at: int, limit: int) -> int:
        """Clear away a part of the deliveries that an endpoint leaves behind.

        Of a disabled endpoint up to `limit` pending deliveries end as skipped. Of a removed one that many
        deliveries are deleted, and at last the endpoint itself. Returns the number of rows, 0 when nothing is left.
        """

    def insert_endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Store a new endpoint; return it with its `rowid`."""

    def save_endpoint(self, endpoint: Endpoint) -> None:
        """Store a changed endpoint, except for its last delivery and its circuit."""

    def reset_circuit(self, endpoint: int) -> None:
        """Close an endpoint's circuit, and release the deliveries that it has held."""

    def record_last_delivery(
        self, endpoint: int, at: int, status: DeliveryStatus, succeeded_at: int | None
    ) -> None:
        """Store the last delivery's end (ms) and status, and the begin of the last attempt that succeeded (ms)."""

    def circuit_changes(self, endpoint: int, *, closed: bool) -> bool:
        """Tell whether a circuit that is closed, or is not, is another state than the one stored.

        Nobody else stores one until this transaction has ended.
        """

    def save_circuit(self, endpoint: int, circuit: Circuit) -> None:
        """Store the circuit."""

    def release_held(self, endpoint: int, upto: int | None) -> int:
        """Store and return the position up to which deliveries were held, now that the circuit is closed.

        Args:
            upto: that position; None for that of the newest pending delivery.
        """

    def clear_held_position(self, endpoint: int) -> None:
        """Store that all deliveries that a circuit had held are sent."""

    def set_secret_id(self, secret_id: str) -> None:
        """Store the id of the secret that the installation has from now on."""

    def renew_seals(self, renewed: Callable[[bytes], bytes]) -> int:
        """Store the endpoints' sealed secrets as `renewed` makes them; return the number of changed ones."""

    def forget_old_secrets(self, now: int) -> int:
        """Remove the secrets that do not sign any more at `now` (ms); return their number."""

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        """Remove up to `limit` finished deliveries made before `older_than` (ms); return their number."""


class DeliveryCommit(Protocol):
    """The part of a commit that concerns deliveries."""

    @property
    def deliveries(self) -> Sequence[Delivery]:
        """The new deliveries, in their order."""

    @property
    def erased(self) -> frozenset[int]:
        """The conversations that it erased, by their storage keys; nothing more of them is sent."""

    @property
    def rewritten(self) -> Sequence[StoredEvent]:
        """The events from before it of which something was redacted, as they are sent from now on."""
