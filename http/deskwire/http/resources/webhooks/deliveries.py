"""Routes of the delivery log, test events, redelivery, replays and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, TypeVar

import trio
from pydantic import AfterValidator, Field

from deskwire.engine.audit.audited_changes import replayed
from deskwire.engine.conversations.conversation import no_such_conversation
from deskwire.engine.conversations.events import webhook_test
from deskwire.engine.core.clock import iso, milliseconds
from deskwire.engine.core.errors import Conflict, Gone, NotFound
from deskwire.engine.core.ids import id_before, is_id
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import CATALOG, EXTENSIONS
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.webhooks.delivery import (
    Delivery,
    DeliveryFilter,
    DeliveryRecord,
    DeliveryStatus,
    FoundDeliveries,
    ReplayCounts,
    ReplayRange,
    delivery_view,
)
from deskwire.engine.webhooks.endpoint import Endpoint, replayed_types
from deskwire.engine.webhooks.figures import (
    Bucket,
    Figures,
    bucket_batches,
    bucket_starts,
    figures_view,
    merged_figures,
)
from deskwire.engine.webhooks.ports import DeliveryReader
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, Time
from deskwire.http.api.pagination import Paged, encode_cursor, page
from deskwire.http.api.routing import Routes, Tag, s2s
from deskwire.http.resources.conversations.operations import find as find_conversation
from deskwire.http.resources.webhooks.endpoints import ENDPOINT_PATH, endpoint_of, require_reading
from deskwire.http.schemas import webhooks as shapes

B = TypeVar("B", bound=Body)
Q = TypeVar("Q", bound=Query)

routes = Routes(
    Tag("Deliveries", "Inspect the delivery log, send events again, and send test events."),
    s2s("webhooks.manage"),
)
_DELIVERY: Final = "/s2s/deliveries/<delivery_id>"
# Deliveries per commit of a recovery or a replay; a few milliseconds of the writer's time.
BATCH_SIZE: Final = 500


def _event_before(text: str) -> str:
    """Return an event id; for a time, an id older than all events since."""
    return text if is_id(text, "evt") else id_before("evt", milliseconds(text))


_TYPES: Final = (*CATALOG, *EXTENSIONS)


def _known_type(text: str) -> str:
    if text not in _TYPES:
        raise ValueError(f"There is no event type {text!r}.")
    return text


_CATALOG: Final[Any] = Field(json_schema_extra={"enum": [*_TYPES]})


class DeliveryList(Paged):
    """Filters of the delivery log: status, event type, conversation and time."""

    status: DeliveryStatus | None = None
    type: Annotated[str, AfterValidator(_known_type), _CATALOG] | None = None
    conversation: str | None = None
    since: Time | None = None
    until: Time | None = None


class RecoverEventsRequest(Body):
    """The start of the recovery: a time, or the last event id not to send again."""

    since: Annotated[str, Field(max_length=40), AfterValidator(_event_before)]
    dry_run: bool = False


@routes.add(
    "GET",
    f"{ENDPOINT_PATH}/deliveries",
    operation_id="listDeliveries",
    query=DeliveryList,
    answer=shapes.DeliveryPage,
)
async def list_deliveries(call: Call[Body, DeliveryList]) -> Answer:
    """List the deliveries to an endpoint with their attempts, newest first.

    A call with `type` searches about 10,000 deliveries. If there are more, its page may have fewer items than
    `limit`, or none: `searchedTo` is the time back to which it has searched, and `nextCursor` continues from
    there.
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
    f"{ENDPOINT_PATH}/recover",
    operation_id="recover",
    body=RecoverEventsRequest,
    answer=shapes.RecoveryResult,
    errors=("webhook_disabled",),
    records=("webhook.replayed",),
)
async def recover(call: Call[RecoverEventsRequest, Query]) -> Answer:
    """Send all events again that were dropped or skipped since a time or event, oldest first.

    `count` is the number of new deliveries, with `dryRun` the number there would be. `notStored` is the
    number of events that can't be sent again because they are no longer stored. If a call is cut off, the
    next one continues.
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
    f"{ENDPOINT_PATH}/test",
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
    """Redeliver in batches with pauses, at most `upto` deliveries.

    Deliveries that fail in the meantime are not included.
    """
    services, made = call.services, 0
    services.webhooks.probe(endpoint.rowid, None)
    while made < upto:
        limit = min(BATCH_SIZE, upto - made)
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


class ReplayConversationRequest(Body):
    """The conversation to send again: all events, or `from` one sequence `to` another."""

    conversation_id: Annotated[str, Field(max_length=40)]
    first: Annotated[Annotated[int, Field(ge=1, lt=1 << 63)] | None, Field(alias="from")] = None
    last: Annotated[Annotated[int, Field(ge=1, lt=1 << 63)] | None, Field(alias="to")] = None
    dry_run: bool = False


@routes.add(
    "POST",
    f"{ENDPOINT_PATH}/replay",
    operation_id="replayConversation",
    body=ReplayConversationRequest,
    answer=shapes.ReplayResult,
    errors=("webhook_disabled", "conversation_not_found"),
    records=("webhook.replayed",),
)
async def replay(call: Call[ReplayConversationRequest, Query]) -> Answer:
    """Send the events of one conversation to an endpoint again, in order, even if they had arrived.

    `count` is the number of new deliveries, with `dryRun` the number there would be. Events that the endpoint
    is not subscribed to are left out, and so are the `pending` ones that will be sent to it anyway.
    `notStored` is the number of events that can't be sent again because they are no longer stored. An
    endpoint that was created later, or listed a type later, gets the earlier events too.
    """
    services, body, find = call.services, call.body, endpoint_of(call)

    def counted(reader: Reader) -> tuple[Endpoint, int, ReplayRange, ReplayCounts]:
        endpoint = find(reader)
        require_reading(call, endpoint.events)
        if not is_id(body.conversation_id, "cnv"):
            raise no_such_conversation()
        state, _ = find_conversation(reader, call.project, body.conversation_id)
        wanted = ReplayRange(replayed_types(endpoint), body.first, body.last)
        return endpoint, state.rowid, wanted, reader.replayable(endpoint.rowid, state.rowid, wanted)

    endpoint, conversation, wanted, found = await services.store.read(counted)
    count = found.count
    if not body.dry_run:
        require_enabled(endpoint)
        count = await _replay_all(call, endpoint, conversation, wanted)
    return {
        "count": count,
        "pending": found.pending,
        "notStored": found.not_stored,
        "dryRun": body.dry_run,
    }


async def _replay_all(
    call: Call[ReplayConversationRequest, Query], endpoint: Endpoint, conversation: int, wanted: ReplayRange
) -> int:
    """Store the deliveries in batches with pauses. Returns their number."""
    services, made = call.services, 0
    services.webhooks.probe(endpoint.rowid, None)
    while True:

        def part(tx: Transaction, wanted: ReplayRange = wanted) -> tuple[int, int | None]:
            now = services.clock()
            count, upto = tx.replay(endpoint.rowid, conversation, wanted, now, BATCH_SIZE)
            if count:
                tx.record(replayed(endpoint.id, endpoint.project, count))
            return count, upto

        count, upto = await services.store.write(part)
        made += count
        if upto is None:
            return made
        wanted = replace(wanted, first=upto + 1)
        await trio.lowlevel.checkpoint()


_DAY_MS: Final = 86_400_000


class FigureQuery(Query):
    """The start of the period, and the length of a bucket."""

    since: Annotated[Time | None, Field(description="The last 24 hours if it is not given.")] = None
    bucket: Bucket = "hour"


@routes.add(
    "GET",
    f"{ENDPOINT_PATH}/figures",
    operation_id="getEndpointFigures",
    query=FigureQuery,
    answer=shapes.EndpointFigures,
)
async def get_figures(call: Call[Body, FigureQuery]) -> Answer:
    """Count the deliveries to an endpoint by the hour or day in which they were created, oldest first.

    Buckets begin at whole hours or days of UTC, and there are at most 168: if `since` is earlier, the newest
    ones. A delivery counts with its current status; one that is held or retried is `pending`. `latency` is of
    the newest 1,000 deliveries that arrived, from the creation of the delivery.
    """
    query, find, now = call.query, endpoint_of(call), call.services.clock()
    since = now - _DAY_MS if query.since is None else query.since
    starts = bucket_starts(since, now, query.bucket)

    parts = [
        await call.services.store.read(_counted(call, find, part, until))
        for part, until in bucket_batches(starts, query.bucket)
    ]
    return figures_view(merged_figures(parts), query.bucket)


def _counted(
    call: Call[Body, FigureQuery],
    find: Callable[[DeliveryReader], Endpoint],
    starts: Sequence[int],
    until: int | None,
) -> Callable[[DeliveryReader], Figures]:
    project = call.project.rowid
    return lambda reader: reader.delivery_figures(project, find(reader).rowid, starts, until)
