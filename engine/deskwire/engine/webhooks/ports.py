"""What the deliveries to webhooks need of a store, and of its commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks.delivery import (
    Attempt,
    Delivery,
    DeliveryFilter,
    DeliveryRecord,
    DeliveryStatus,
    HeldBack,
)
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.retry.circuit import Circuit


class DeliveryReader(Protocol):
    """Queries on endpoints and on what is delivered to them."""

    def endpoints(self, project: int | None = None) -> Sequence[Endpoint]:
        """Webhook endpoints, oldest first, of one project or of all; those removed left out."""

    def unserved_endpoints(self) -> Sequence[int]:
        """Those that are disabled, or removed with deliveries left."""

    def pending_deliveries(
        self,
        endpoint: int,
        after: int,
        limit: int,
        *,
        upto: int | None = None,
        redeliveries: bool | None = None,
    ) -> Sequence[Delivery]:
        """Deliveries still to be made, with positions larger than `after`, and not larger than `upto`, in that order.

        `redeliveries` chooses those that repeat another one, or those that do not.
        """

    def due_retries(
        self, endpoint: int, limit: int, *, upto: int, unread: tuple[int, int], redelivered_upto: int
    ) -> Sequence[Delivery]:
        """Pending deliveries of which an attempt was made, the one that is due first in front.

        Of redeliveries those up to the position `redelivered_upto`, of others those up to `upto` that are not between
        the positions `unread`, the first left out.
        """

    def held_back(self, endpoint: int) -> HeldBack:
        """How many of the endpoint's deliveries an outage keeps waiting."""

    def delivery_records(
        self, endpoint: int, wanted: DeliveryFilter, before: int | None, limit: int
    ) -> Sequence[DeliveryRecord]:
        """An endpoint's delivery log, newest first, of positions smaller than `before`."""

    def delivery_record(self, project: int, delivery_id: str) -> DeliveryRecord | None:
        """The delivery with this id, None if it is none of this project's."""

    def recoverable(self, endpoint: int, after: str) -> tuple[int, int]:
        """How many deliveries of events behind this event id ended dropped or skipped and were not repeated;
        and how many more of them carry an event that is no longer stored."""


class DeliveryTransaction(DeliveryReader, Protocol):
    """Changes of endpoints and of deliveries."""

    def routed_endpoints(self, project: int) -> Sequence[Endpoint]:
        """The endpoints that new events are for, disabled ones too; cheap. Their circuits may be stale."""

    def insert_delivery(
        self,
        endpoint: int,
        event: StoredEvent,
        lane: int | None,
        previous: int | None,
        at: int,
        *,
        skipped: str | None = None,
    ) -> Delivery:
        """Store a delivery in this lane: pending and due at once, or `skipped` for this reason."""

    def redeliver(self, position: int, at: int) -> Delivery | None:
        """Store a pending delivery that repeats this one; None if its event is no longer stored."""

    def recover(self, endpoint: int, after: str, at: int, limit: int) -> int:
        """Repeat up to `limit` of the deliveries that `recoverable` counts, oldest first; how many."""

    def record_retry(self, planned: Delivery, attempt: Attempt) -> bool:
        """Store an attempt, and the delivery as it is planned now; False, and nothing is stored, if it is not pending."""

    def record_end(
        self,
        delivery: Delivery,
        attempt: Attempt,
        status: DeliveryStatus,
        reason: str | None,
        *,
        missed: bool = False,
    ) -> bool:
        """Store a delivery's last attempt, and how it ended; False, and nothing is stored, if it is not pending.

        `missed` says that it is to be sent once more, see `catch_up`.
        """

    def end_delivery(self, delivery: Delivery, status: DeliveryStatus, reason: str, at: int) -> bool:
        """End a delivery without an attempt; False, and nothing is stored, if it is no longer pending."""

    def end_too_old(self, endpoint: int, before: int, reason: str, at: int, limit: int) -> int:
        """End up to `limit` pending deliveries as skipped that were made before this time (ms); how many."""

    def catch_up(self, endpoint: int, after: str, at: int, limit: int) -> int:
        """Repeat up to `limit` missed deliveries of events behind this event id, oldest first; how many.

        Those of older events, and of events that are no longer stored, are not missed any more.
        """

    def close_deliveries(self, endpoint: int, at: int, limit: int) -> int:
        """Do a part of what an endpoint leaves behind; how many rows it was, 0 when there is nothing left.

        Of a disabled one up to `limit` pending deliveries end as skipped. Of a removed one that many are
        deleted, and at last itself.
        """

    def insert_endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Store a new endpoint; returns it with its `rowid`."""

    def save_endpoint(self, endpoint: Endpoint) -> None:
        """Store a changed endpoint; its last delivery and its circuit stay as they are stored."""

    def reset_circuit(self, endpoint: int) -> None:
        """Close an endpoint's circuit; what it has held is released."""

    def note_deliveries(
        self, endpoint: int, at: int, status: DeliveryStatus, succeeded_at: int | None
    ) -> None:
        """Store when (ms) and how the last delivery ended, and when the last attempt began that succeeded."""

    def save_circuit(self, endpoint: int, circuit: Circuit) -> None:
        """Store the circuit."""

    def release_held(self, endpoint: int, upto: int | None) -> int:
        """Store, and return, up to which position deliveries were held, now that the circuit is closed.

        That is `upto`, or if it is None that of the newest pending one.
        """

    def forget_held(self, endpoint: int) -> None:
        """Store that all that a circuit had held is sent."""

    def renew_seals(self, renewed: Callable[[bytes], bytes]) -> int:
        """Store the endpoints' sealed secrets as `renewed` makes them; how many have changed."""

    def forget_old_secrets(self, now: int) -> int:
        """Remove the secrets that do not sign any more at `now` (ms); how many."""

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        """Remove up to `limit` finished deliveries made before `older_than` (ms); how many."""


class DeliveryCommit(Protocol):
    """What a commit has done to deliveries."""

    @property
    def deliveries(self) -> Sequence[Delivery]:
        """Those it made, in their order."""

    @property
    def erased(self) -> frozenset[int]:
        """The conversations that it erased, by their storage keys; nothing more of them is sent."""
