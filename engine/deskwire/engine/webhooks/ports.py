"""The parts of the store and of commits that webhook deliveries need."""

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
from deskwire.engine.webhooks.outcome import Outcome, SequenceRange
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit


class EndpointLease(Struct, frozen=True):
    """The lease of the node that delivers to an enabled endpoint.

    Args:
        endpoint: the endpoint's storage key.
        changed_at: when the endpoint was changed last (ms).
        incarnation: the incarnation of the node; None if no node holds the lease.
        generation: number of times that the lease was acquired.
    """

    endpoint: int
    changed_at: int
    incarnation: int | None
    generation: int


class DeliveryReader(Protocol):
    """Queries on endpoints and deliveries."""

    def endpoints(self, project: int | None = None) -> Sequence[Endpoint]:
        """Return the endpoints of one project or of all, without removed ones.

        Oldest first.
        """

    def secret_id(self) -> str | None:
        """Return the id of the secret that the database belongs to.

        None until the first start has stored it.
        """

    def unserved_endpoints(self) -> Sequence[int]:
        """Return the disabled endpoints, and the removed ones that still have deliveries."""

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
        """Return pending deliveries in the order of their positions.

        The positions are greater than `after` and at most `upto`.

        Args:
            redeliveries: True for redeliveries only, False for other deliveries only, None for both.
            other_than: leave out deliveries with this ordering key.
        """

    def due_retries(
        self, endpoint: int, limit: int, *, upto: int, unread: tuple[int, int], redelivered_upto: int
    ) -> Sequence[Delivery]:
        """Return pending deliveries that had an attempt, in the order of their due times.

        Args:
            upto: the last position, except for redeliveries.
            unread: leave out positions in this range (the first excluded), except redeliveries.
            redelivered_upto: the last position for redeliveries.
        """

    def endpoint_leases(self) -> Sequence[EndpointLease]:
        """Return the lease of each enabled endpoint."""

    def endpoint_lease_generation(self, endpoint: int) -> int | None:
        """Return the generation of an endpoint's lease, None if it never had one."""

    def is_untried(self, delivery: Delivery) -> bool:
        """Return whether a delivery is pending without a recorded attempt."""

    def outage_counts(self, endpoint: int) -> OutageCounts:
        """Return how many of the endpoint's deliveries wait because of an outage."""

    def outstanding(self, endpoint: int, bound: int) -> int:
        """Return the number of the endpoint's pending deliveries, at most `bound`."""

    def dropped_since(self, project: int, endpoint: int, since: int, bound: int) -> int:
        """Count dropped deliveries created since a time (ms) and not redelivered.

        The count stops at `bound`.
        """

    def delivery_records(
        self, project: int, endpoint: int, wanted: DeliveryFilter, before: int | None, limit: int
    ) -> FoundDeliveries:
        """Return a page of an endpoint's delivery log, newest first.

        Positions are smaller than `before`. A search for an event type examines a limited number of
        deliveries and returns where it stopped (ADR 54).
        """

    def delivery_record(self, project: int, delivery_id: str) -> DeliveryRecord | None:
        """Return the project's delivery with this id, None if there is none."""

    def conversation_id(self, conversation: int) -> str | None:
        """Return the id of the conversation with this storage key, None if there is none."""

    def outcomes(
        self, conversation: int, wanted: SequenceRange, before: tuple[int, int] | None, limit: int
    ) -> Sequence[Outcome]:
        """Return the outcomes of a conversation's events, newest first.

        An event has one outcome per endpoint: the first delivery that arrived, else the newest one. Removed
        endpoints are left out.

        Args:
            before: the sequence and position where the previous page ended.
        """

    def recoverable(self, endpoint: int, after: str) -> tuple[int, int]:
        """Count deliveries to recover: dropped or skipped, and not redelivered.

        Their events come after the id `after`.

        Returns two numbers: those whose event is stored, and those whose event is no longer stored.
        """

    def replayable(self, endpoint: int, conversation: int, wanted: ReplayRange) -> ReplayCounts:
        """Count the events that `replay` would send to an endpoint."""

    def delivery_figures(
        self, project: int, endpoint: int, starts: Sequence[int], until: int | None
    ) -> Figures:
        """Count the endpoint's deliveries in buckets by creation time.

        Args:
            project: storage key of the endpoint's project.
            starts: starts of the buckets (ms), ascending, at least one.
            until: end of the last bucket (ms); None for no end.
        """


class DeliveryTransaction(DeliveryReader, Protocol):
    """Changes of endpoints and deliveries."""

    def acquire_endpoint_lease(self, endpoint: int, generation: int, incarnation: int) -> int | None:
        """Acquire an endpoint's lease for a node.

        Returns the new generation; None if a live node holds the lease or its generation has changed.

        Args:
            generation: the generation as it was read.
        """

    def release_endpoint_lease(self, endpoint: int, generation: int) -> None:
        """Release an endpoint's lease if its generation is still this one."""

    def delete_stale_endpoint_leases(self) -> None:
        """Delete the leases of endpoints that no longer exist."""

    def routed_endpoints(self, project: int) -> Sequence[Endpoint]:
        """Return a project's endpoints for routing new events, including disabled ones.

        Endpoints are cached, so their circuits may be stale.
        """

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
        """Store a delivery: pending and due at once, or `skipped` for this reason."""

    def redeliver(self, position: int, at: int) -> Delivery | None:
        """Store a pending delivery that repeats the one at this position.

        Returns None if its event is no longer stored.
        """

    def recover(self, endpoint: int, after: str, at: int, limit: int) -> int:
        """Redeliver deliveries that `recoverable` counts; return their number.

        The oldest come first, up to `limit`.
        """

    def replay(
        self, endpoint: int, conversation: int, wanted: ReplayRange, at: int, limit: int
    ) -> tuple[int, int | None]:
        """Store pending deliveries of a conversation's events, in their order.

        Earlier outcomes do not matter, except that an event with a pending delivery is left out. An event
        that the endpoint never got has its first delivery.

        Args:
            limit: maximum number of events to examine.

        Returns the number of deliveries, and the sequence of the last event examined, after which the next
        call continues; None if there are no further events.
        """

    def prefetch_results(self, endpoint: int, deliveries: Sequence[Delivery]) -> None:
        """Prefetch the rows needed to record these results in one database exchange.

        This is an optimization only. A local database does nothing.
        """

    def record_retry(self, planned: Delivery, attempt: Attempt) -> bool:
        """Store an attempt and the new plan.

        Returns False, with nothing stored, if the delivery is not pending.
        """

    def record_end(
        self,
        delivery: Delivery,
        attempt: Attempt,
        status: DeliveryStatus,
        reason: str | None,
        *,
        missed: bool = False,
    ) -> bool:
        """Store a delivery's last attempt and its end.

        Returns False, with nothing stored, if the delivery is not pending.

        Args:
            missed: whether it will be sent again, see `catch_up`.
        """

    def end_delivery(self, delivery: Delivery, status: DeliveryStatus, reason: str, at: int) -> bool:
        """End a delivery without an attempt.

        Returns False, with nothing stored, if the delivery is not pending.
        """

    def end_too_old(self, endpoint: int, before: int, reason: str, at: int, limit: int) -> int:
        """Skip up to `limit` pending deliveries created before this time (ms).

        Returns their number.
        """

    def catch_up(self, endpoint: int, after: str, at: int, limit: int, *, beyond: int = 0) -> int:
        """Redeliver up to `limit` missed deliveries, oldest first; return their number.

        Missed deliveries of events up to the id `after`, and of events that are no longer stored, stop
        counting as missed.

        Args:
            beyond: start after the event at this position.
        """

    def close_deliveries(self, endpoint: int, at: int, limit: int) -> int:
        """End or delete a batch of an unserved endpoint's deliveries.

        For a disabled endpoint, up to `limit` pending deliveries end as skipped. For a removed endpoint, up
        to `limit` deliveries are deleted, and finally the endpoint itself. Returns the number of rows, 0 when
        none is left.
        """

    def insert_endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Store a new endpoint; return it with its `rowid`."""

    def save_endpoint(self, endpoint: Endpoint) -> None:
        """Store a changed endpoint, except for its last delivery and its circuit."""

    def reset_circuit(self, endpoint: int) -> None:
        """Close an endpoint's circuit and release the deliveries that it held."""

    def record_last_delivery(
        self, endpoint: int, at: int, status: DeliveryStatus, succeeded_at: int | None
    ) -> None:
        """Store the end (ms) and status of the last delivery, and the last success.

        Args:
            succeeded_at: start of the last successful attempt (ms).
        """

    def circuit_changes(self, endpoint: int, *, closed: bool) -> bool:
        """Return whether the stored circuit is open and should be closed, or vice versa.

        Locks the endpoint's circuit until the transaction ends.
        """

    def save_circuit(self, endpoint: int, circuit: Circuit) -> None:
        """Store the circuit."""

    def release_held(self, endpoint: int, upto: int | None) -> int:
        """Store and return the position up to which a closed circuit had held deliveries.

        Args:
            upto: that position; None for the position of the newest pending delivery.
        """

    def clear_held_position(self, endpoint: int) -> None:
        """Store that all deliveries held by a circuit are sent."""

    def set_secret_id(self, secret_id: str) -> None:
        """Store the id of the installation's new secret."""

    def renew_seals(self, renewed: Callable[[bytes], bytes]) -> int:
        """Reseal the endpoints' secrets with `renewed`; return the number of changes."""

    def forget_old_secrets(self, now: int) -> int:
        """Delete old secrets that no longer sign at `now` (ms); return their number."""

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        """Delete up to `limit` finished deliveries created before `older_than` (ms).

        Returns their number.
        """


class DeliveryCommit(Protocol):
    """The parts of a commit that concern deliveries."""

    @property
    def deliveries(self) -> Sequence[Delivery]:
        """The new deliveries, in their order."""

    @property
    def erased(self) -> frozenset[int]:
        """Storage keys of erased conversations, whose deliveries are no longer sent."""

    @property
    def rewritten(self) -> Sequence[StoredEvent]:
        """Earlier events whose content was redacted, with the new content."""
