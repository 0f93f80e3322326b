"""The events of a customer's own conversations: as server-sent events, and by long poll where a proxy buffers streams."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field

from deskwire.engine.customers.session import CustomerSession
from deskwire.engine.customers.stream import StreamCustomer, page_in
from deskwire.http.api.calls import Answer, Call, RawJson, Streamed
from deskwire.http.api.input.validation import Body
from deskwire.http.api.routing import Media, Routes, customer
from deskwire.http.resources.customers.sessions import CUSTOMERS
from deskwire.http.resources.stream.resuming import NOT_BUFFERED, AfterQuery, resumed_after
from deskwire.http.schemas.customer_events import CustomerEvents
from deskwire.http.stream.sse import EVENT_STREAM, CustomerStreamBody, preferred_heartbeat

routes = Routes(CUSTOMERS, customer(), unrecorded="It changes no stored data.")

_WAIT_MAX_S = 25  # below the timeouts of proxies, which are 30 s and more


class CustomerEventsQuery(AfterQuery):
    """The event after which to continue, and the seconds to wait for the first one."""

    wait: Annotated[float, Field(ge=0, le=_WAIT_MAX_S, allow_inf_nan=False)] = 0


@routes.add(
    "GET",
    "/customer/stream",
    operation_id="followMyEvents",
    query=AfterQuery,
    whole=False,
    answer=Media(EVENT_STREAM, endless=True),
    errors=("too_many_streams",),
    held=True,
)
async def follow_my_events(call: Call[Body, AfterQuery]) -> Answer:
    """Follow the events of your own conversations, as server-sent events, from now on or after a given event.

    Every event is sent once, in commit order. Its `id` is for `after`, or the header `Last-Event-ID`, which overrides it. An
    event that shows you nothing is an `id` without data. The first event is `hello`; with `gap` in it, missed events are no longer
    stored, so fetch the conversations again. The typing of agents comes as `passing`, and the last event is `bye`, with the time
    after which to connect again.

    Any number of tabs and devices follow the same events, up to 10 for each session. Before the first message of a visitor the
    stream waits, and continues with the events of that message. `Prefer: heartbeat=1` is as for agents' streams.
    """
    streams, caller = call.services.customer_streams, stream_customer(call.customer)
    after = resumed_after(call)
    streams.check_room(caller)
    call.incoming.detect_dead_peer()
    opening = partial(streams.open, caller, after, call.incoming.drop, page_in(call.customer.context))
    heartbeat_s = preferred_heartbeat(call.incoming.headers.get("prefer"))
    return Streamed(CustomerStreamBody(streams, opening, heartbeat_s), EVENT_STREAM, NOT_BUFFERED)


@routes.add(
    "GET",
    "/customer/events",
    operation_id="listMyEvents",
    query=CustomerEventsQuery,
    answer=CustomerEvents,
    errors=("too_many_streams",),
    held=True,
)
async def list_my_events(call: Call[Body, CustomerEventsQuery]) -> Answer:
    """List the events of your own conversations after a given event, oldest first, with long polling.

    Without `after`, from now on. Continue after `cursor`, also if the list is empty: events that show you nothing are not listed.
    With `gap`, missed events are no longer stored, so fetch the conversations again and continue after `cursor`.
    """
    streams, caller, query = call.services.customer_streams, stream_customer(call.customer), call.query
    query.further(query.model_dump(exclude_none=True))
    streams.check_room(caller)
    with call.services.admission.waiting(call.access.tenant):
        found = await streams.poll(
            caller, query.after, query.wait, call.incoming.drop, page_in(call.customer.context)
        )
    return RawJson(
        b'{"events":[%b],"cursor":"%b","gap":%b}\n'
        % (b",".join(found.events), found.cursor.encode(), b"true" if found.gap else b"false")
    )


def stream_customer(session: CustomerSession) -> StreamCustomer:
    """Return the customer of a session, as streams know them."""
    contact = session.contact
    return StreamCustomer(
        session.id,
        session.token_hash,
        session.project,
        session.channel.id,
        session.user_id,
        None if contact is None else contact.id,
        session.verified,
    )
