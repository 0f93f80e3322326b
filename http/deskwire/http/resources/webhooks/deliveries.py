"""The delivery log, and deliveries on demand: test events, redelivery and recovery (decisions 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import trio
from pydantic import AfterValidator, Field

from deskwire.engine.audit.audited_changes import replayed
from deskwire.engine.conversations.events import webhook_test
from deskwire.engine.core.clock import iso, milliseconds
from deskwire.engine.core.errors import Conflict, Gone, NotFound
from deskwire.engine.core.ids import id_before, is_id
from deskwire.engine.events.types import CATALOG, EXTENSIONS
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.delivery import (
    Delivery,
    DeliveryFilter,
    DeliveryRecord,
    DeliveryStatus,
    FoundDeliveries,
    delivery_view,
)
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ports import DeliveryReader
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, Time
from deskwire.http.api.pagination import Paged, encode_cursor, page
from deskwire.http.api.routing import Routes, Tag, s2s
from deskwire.http.resources.webhooks.endpoints import ONE, endpoint_of, require_reading
from deskwire.http.schemas import webhooks as shapes

B = TypeVar("B", bound=Body)
Q = TypeVar("Q", bound=Query)

routes = Routes(
    Tag("Deliveries", "Inspect the delivery log, send events again, and send test events."),
    s2s("webhooks.manage"),
)
_DELIVERY: Final = "/s2s/deliveries/<delivery_id>"
BATCH: Final = 500
"""Deliveries that one commit of a recovery or a replay makes: a few milliseconds of the writer's time."""


def _event_before(text: str) -> str:
    """Return an event id as it is, or for a time an id that is older than all events since."""
    return text if is_id(text, "evt") else id_before("evt", milliseconds(text))


_TYPES: Final = (*CATALOG, *EXTENSIONS)


def _known_type(text: str) -> str:
    if text not in _TYPES:
        raise ValueError(f"There is no event type {text!r}.")
    return text


_CATALOG: Final[Any] = Field(json_schema_extra={"enum": [*_TYPES]})


class DeliveryList(Paged):
    """The filters of a list of deliveries, and its page: by status, event type, conversation and time."""

    status: DeliveryStatus | None = None
    type: Annotated[str, AfterValidator(_known_type), _CATALOG] | None = None
    conversation: str | None = None
    since: Time | None = None
    until: Time | None = None


class RecoverBody(Body):
    """The start of the recovery: a time, or the id of the last event that is not to be sent again."""

    since: Annotated[str, Field(max_length=40), AfterValidator(_event_before)]
    dry_run: bool = False


@routes.add(
    "GET",
    f"{ONE}/deliveries",
    operation_id="listDeliveries",
    query=DeliveryList,
    answer=shapes.DeliveryPage,
)
async def list_deliveries(call: Call[Body, DeliveryList]) -> Answer:
    """List the deliveries to an endpoint with their attempts, newest first.

    One call with `type` looks at some 10,000 deliveries. If there are more, its page may have fewer items than `limit`, or
    none: `searchedTo` says back to when it has looked, and `nextCursor` goes on from there.
    """
    query, find = call.query, endpoint_of(call)
    before = query.row
    criteria = DeliveryFilter(
        status=query.status,
        event_type=query.type,
        conversation_id=query.conversation,
        since=query.since,
        until=query.until,
    )

    def listed(reader: DeliveryReader) -> FoundDeliveries:
        return reader.delivery_records(call.project.rowid, find(reader).rowid, criteria, before, query.rows)

    found = await call.services.store.read(listed)
    shown = page(query, found.records, delivery_view, lambda record: record.position)
    if shown["nextCursor"] is None and found.reached is not None:
        position, at = found.reached
        return {**shown, "nextCursor": encode_cursor(position), "searchedTo": iso(at)}
    return shown


@routes.add("GET", _DELIVERY, operation_id="getDelivery", answer=shapes.Delivery)
async def get_delivery(call: Call[Body, Query]) -> Answer:
    """Fetch a delivery with its attempts."""
    return delivery_view(await call.services.store.read(_record_of(call)))


@routes.add(
    "POST",
    _DELIVERY + "/redeliver",
    operation_id="redeliver",
    answer=shapes.Delivery,
    errors=("delivery_pending", "webhook_disabled", "event_not_stored"),
    idempotent=True,
    records=("webhook.replayed",),
)
async def redeliver(call: Call[Body, Query]) -> Answer:
    """Send the event of a delivery again, whether it was delivered, dropped or skipped. Returns the new delivery.

    The new delivery has its own id and attempts. If the circuit of the endpoint is open, it serves as the probe.
    """
    find, now = _record_of(call), call.services.clock()

    def again(tx: Transaction) -> tuple[Delivery, DeliveryRecord]:
        record = find(tx)
        if record.status == "pending":
            raise Conflict("The delivery is still being tried.", code="delivery_pending")
        endpoint = _endpoint_by_id(tx, call.project.rowid, record.endpoint_id)
        require_reading(call, endpoint.events)
        require_enabled(endpoint)
        made = tx.redeliver(record.position, now)
        if made is None:
            raise Gone("The event is no longer stored.", code="event_not_stored")
        tx.record(replayed(record.endpoint_id, call.project.rowid, 1))
        return made, _record(tx, call.project.rowid, made)

    made, record = await call.services.store.write(
        call.around(again, lambda result: delivery_view(result[1]))
    )
    call.services.webhooks.probe(made.endpoint, made.position)
    return delivery_view(record)


@routes.add(
    "POST",
    f"{ONE}/recover",
    operation_id="recover",
    body=RecoverBody,
    answer=shapes.Recovery,
    errors=("webhook_disabled",),
    records=("webhook.replayed",),
)
async def recover(call: Call[RecoverBody, Query]) -> Answer:
    """Send all events again that were dropped or skipped since a time or event, oldest first.

    `count` is the number of new deliveries, with `dryRun` the number there would be. `notStored` is the number of
    events that can't be sent again, as they are no longer stored. If a call is cut off, the next one continues.
    """
    services, find, after = call.services, endpoint_of(call), call.body.since

    def counted(reader: DeliveryReader) -> tuple[Endpoint, int, int]:
        endpoint = find(reader)
        require_reading(call, endpoint.events)
        return endpoint, *reader.recoverable(endpoint.rowid, after)

    endpoint, count, not_stored = await services.store.read(counted)
    if not call.body.dry_run:
        require_enabled(endpoint)
        count = await _recover_all(call, endpoint, after, count)
    return {"count": count, "notStored": not_stored, "dryRun": call.body.dry_run}


@routes.add(
    "POST",
    f"{ONE}/test",
    operation_id="testEndpoint",
    answer=shapes.Delivery,
    errors=("webhook_disabled", "delivery_not_found"),
    unrecorded="It sends an event of its own, which the delivery log has.",
)
async def test_endpoint(call: Call[Body, Query]) -> Answer:
    """Send a `webhook.test` event to the endpoint. Returns the delivery after its first attempt.

    The event is signed, retried and logged like any other, but it is not on the stream or in the feed.
    """
    services, find, now = call.services, endpoint_of(call), call.services.clock()

    def send(tx: Transaction) -> Delivery:
        endpoint = find(tx)
        require_reading(call, endpoint.events)
        require_enabled(endpoint)
        draft = webhook_test(endpoint.id, endpoint.url)
        event = tx.append_event(call.project, draft, None, now, directed=True)
        return tx.insert_delivery(endpoint.rowid, event, None, None, now)

    delivery = await services.store.write(send)
    services.webhooks.probe(delivery.endpoint, delivery.position)
    await services.webhooks.first_result(delivery)
    return delivery_view(
        await services.store.read(lambda reader: _record(reader, call.project.rowid, delivery))
    )


async def _recover_all(call: Call[B, Q], endpoint: Endpoint, after: str, upto: int) -> int:
    """Make the deliveries of a recovery, in batches with pauses; failures in the meantime are not added."""
    services, made = call.services, 0
    services.webhooks.probe(endpoint.rowid, None)
    while made < upto:
        limit = min(BATCH, upto - made)
        part = await services.store.write(_part(endpoint, after, services.clock(), limit))
        made += part
        if part < limit:
            break
        await trio.lowlevel.checkpoint()
    return made


def _part(endpoint: Endpoint, after: str, now: int, limit: int) -> Callable[[Transaction], int]:
    def again(tx: Transaction) -> int:
        made = tx.recover(endpoint.rowid, after, now, limit)
        if made:
            tx.record(replayed(endpoint.id, endpoint.project, made))
        return made

    return again


def require_enabled(endpoint: Endpoint) -> None:
    """Raise Conflict (`webhook_disabled`) unless the endpoint is enabled."""
    if endpoint.status != "enabled":
        raise Conflict("The endpoint is disabled; enable it first.", code="webhook_disabled")


def _endpoint_by_id(reader: DeliveryReader, project: int, endpoint_id: str) -> Endpoint:
    return next(each for each in reader.endpoints(project) if each.id == endpoint_id)


def _record_of(call: Call[B, Q]) -> Callable[[DeliveryReader], DeliveryRecord]:
    """Return the query for the delivery in the path; it raises NotFound."""
    project, delivery_id = call.project.rowid, call.path["delivery_id"]

    def find(reader: DeliveryReader) -> DeliveryRecord:
        record = reader.delivery_record(project, delivery_id) if is_id(delivery_id, "dlv") else None
        if record is None:
            raise NotFound("There is no such delivery.", code="delivery_not_found")
        return record

    return find


def _record(reader: DeliveryReader, project: int, made: Delivery) -> DeliveryRecord:
    record = reader.delivery_record(project, made.id)
    if record is None:
        raise NotFound(
            "The delivery is gone; its endpoint or conversation was removed.", code="delivery_not_found"
        )
    return record
