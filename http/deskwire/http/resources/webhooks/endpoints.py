"""Routes of webhook endpoints: create, list, change, delete (contract 4.5, 6.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Final, TypeVar

import trio
from pydantic import Field

from deskwire.engine.core.errors import Conflict, Forbidden, Invalid, NotFound, Problem, Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import API_VERSION, CONFIDENTIAL, LISTABLE, STORED
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.delivery import NO_OUTAGE
from deskwire.engine.webhooks.endpoint import (
    DROPPED_COUNT_MAX,
    DROPPED_WINDOW_MS,
    ENDPOINTS_MAX,
    CatchUp,
    Endpoint,
    endpoint_view,
    secret_tail,
)
from deskwire.engine.webhooks.ownership import lapsed_reason, permissions_of_endpoint
from deskwire.engine.webhooks.ports import DeliveryReader, DeliveryTransaction
from deskwire.engine.webhooks.publish import HealthTransaction, publish_transition
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED
from deskwire.engine.webhooks.signature import new_secret
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, nulls, refuse_null
from deskwire.http.api.routing import MEDIUM, Routes, Tag, s2s
from deskwire.http.schemas import webhooks as shapes
from deskwire.http.schemas.base import Deleted, page_of

B = TypeVar("B", bound=Body)
Q = TypeVar("Q", bound=Query)

routes = Routes(
    Tag("Webhooks", "Manage the webhook endpoints that events are sent to."), s2s("webhooks.manage")
)
ENDPOINT_PATH: Final = "/s2s/webhooks/<endpoint_id>"
_DEFAULT_TYPES: Final = [name for name in LISTABLE if name in STORED]
_DISABLED_BY_API: Final = "by the API"
_NEEDS_INTERNAL: Final = (
    "{} is sent only to endpoints that ask for internal events: it needs `internal` to be true."
)

Url = Annotated[str, Field(min_length=1, max_length=2_048)]
Types = Annotated[list[str], Field(max_length=50)]
Internal = Annotated[
    bool, Field(description="Whether it may list types that hold what agents write for agents.")
]
ApiVersion = Annotated[
    str,
    Field(
        max_length=32,
        description="The version in which events are sent to the endpoint, the date in their `apiVersion`.",
        examples=[API_VERSION],
    ),
]
Description = Annotated[str, Field(max_length=500)]


class CreateWebhookEndpointRequest(Body):
    """The URL to send events to, and their types. An empty `events` means all types of the contract except typing.

    Extensions are sent to the endpoints that list them. `note.created` can be listed only with `internal`. Without
    `apiVersion` the endpoint is pinned to the newest version of events.
    """

    url: Url
    events: Annotated[Types, Field(default_factory=list)]
    description: Description | None = None
    catch_up: CatchUp = "automatic"
    internal: Internal = False
    api_version: ApiVersion | None = None


class ChangeWebhookEndpointRequest(Body):
    """The fields to change. A new URL closes the circuit of the endpoint, and so does enabling it."""

    url: Url | None = None
    events: Types | None = None
    description: Description | None = None
    status: shapes.EndpointStatus | None = None
    catch_up: CatchUp | None = None
    internal: Internal | None = None
    api_version: ApiVersion | None = None


async def _precheck_url_and_events(call: Call[Any, Query]) -> None:
    await _require_valid(call, _internal_problems(call.body, None))


@routes.add(
    "POST",
    "/s2s/webhooks",
    operation_id="createEndpoint",
    tells="webhooks",
    body=CreateWebhookEndpointRequest,
    limit=MEDIUM,
    answer=shapes.WebhookEndpoint,
    errors=("webhook_limit_reached",),
    idempotent=True,
    further=(_precheck_url_and_events,),
    records=("webhook.created",),
)
async def create_endpoint(call: Call[CreateWebhookEndpointRequest, Query]) -> Answer:
    """Create a webhook endpoint. The response shows the signing secret, only once.

    A machine credential also needs the permissions to read the events that the endpoint receives, and the
    endpoint ends with it. A repeated request with the same `Idempotency-Key` returns the endpoint with its
    secret masked.
    """
    services, body, now = call.services, call.body, call.services.clock()
    require_reading(call, body.events)
    await _require_valid(call, _internal_problems(body, None))
    secret = new_secret()
    kept = partial(endpoint_view, now=now)
    endpoint = Endpoint(
        rowid=0,
        id=new_id("whk", now),
        project=call.project.rowid,
        url=body.url,
        events=frozenset(body.events),
        sealed_secret=services.webhooks.seal(secret),
        secret_tail=secret_tail(secret),
        created_at=now,
        updated_at=now,
        description=body.description,
        catch_up=body.catch_up,
        internal=body.internal,
        credential=_machine(call),
        api_version=body.api_version or services.webhooks.versions.newest,
    )
    return endpoint_view(
        await _commit_and_apply(call, call.around(lambda tx: _insert(tx, endpoint, now), kept)),
        now,
        secret=secret,
    )


@routes.add("GET", "/s2s/webhooks", operation_id="listEndpoints", answer=page_of(shapes.WebhookEndpoint))
async def list_endpoints(call: Call[Body, Query]) -> Answer:
    """List the webhook endpoints of a project, oldest first, with masked secrets."""
    now, project = call.services.clock(), call.project.rowid
    return {
        "items": await call.services.store.read(
            lambda reader: [_view(reader, each, now) for each in reader.endpoints(project)]
        ),
        "nextCursor": None,
    }


@routes.add("GET", ENDPOINT_PATH, operation_id="getEndpoint", answer=shapes.WebhookEndpoint)
async def get_endpoint(call: Call[Body, Query]) -> Answer:
    """Fetch a webhook endpoint, with a masked secret."""
    return await _shown(call, endpoint_of(call))


@routes.add(
    "PATCH",
    ENDPOINT_PATH,
    operation_id="changeEndpoint",
    tells="webhooks",
    body=ChangeWebhookEndpointRequest,
    limit=MEDIUM,
    answer=shapes.WebhookEndpoint,
    further=(nulls("description"), _precheck_url_and_events),
    records=("webhook.changed", "webhook.enabled", "webhook.disabled"),
)
async def change_endpoint(call: Call[ChangeWebhookEndpointRequest, Query]) -> Answer:
    """Change, enable or disable a webhook endpoint. Pending deliveries to a disabled endpoint are skipped.

    To change the URL or the events, or to enable the endpoint, a machine credential also needs the
    permissions to read the events that the endpoint receives. The endpoint then ends with that credential; if
    anyone else makes the change, it belongs to no credential.
    """
    body, now, find = call.body, call.services.clock(), endpoint_of(call)
    refuse_null(body, frozenset({"description"}))
    before = await call.services.store.read(
        InlineQuery(find)
    )  # a 404 takes precedence over problems of the body
    _require_reading_to_change(call, before)
    await _require_valid(call, _internal_problems(body, before))

    def change(tx: Transaction) -> Endpoint:
        found = find(tx)
        _require_reading_to_change(call, found)  # the endpoint may have changed since
        return _change(tx, found, body, _machine(call), now)

    changed = await _commit_and_apply(call, change)
    return await _shown(call, lambda _reader: changed)


@routes.add(
    "POST",
    f"{ENDPOINT_PATH}/rotate-secret",
    operation_id="rotateSecret",
    tells="webhooks",
    answer=shapes.WebhookEndpoint,
    idempotent=True,
    records=("webhook.secret_rotated",),
)
async def rotate_secret(call: Call[Body, Query]) -> Answer:
    """Replace the signing secret of an endpoint. The new one is shown only once; the old one also signs for 24 hours.

    A repeated request with the same `Idempotency-Key` rotates nothing, and its response has the secret
    masked. A machine credential also needs the permissions to read the events that the endpoint receives, and
    the endpoint ends with it from then on.
    """
    services, now, find = call.services, call.services.clock(), endpoint_of(call)
    secret = new_secret()
    sealed = services.webhooks.seal(secret)

    waiting, dropped = NO_OUTAGE, 0

    def rotate(tx: Transaction) -> Endpoint:
        nonlocal waiting, dropped  # a read after the commit could fail, and the new secret would be lost
        before = find(tx)
        waiting, dropped = tx.outage_counts(before.rowid), _dropped(tx, before, now)
        require_reading(call, before.events)
        owner = _machine(call) or before.credential
        endpoint = replace(before.with_secret(sealed, secret_tail(secret), now), credential=owner)
        _check_owner(tx, endpoint, now)
        tx.save_endpoint(endpoint)
        return endpoint

    def view(endpoint: Endpoint, secret: str | None = None) -> dict[str, Any]:
        return endpoint_view(endpoint, now, waiting, secret, dropped=dropped)

    return view(await _commit_and_apply(call, call.around(rotate, view)), secret)


@routes.add(
    "DELETE",
    ENDPOINT_PATH,
    operation_id="deleteEndpoint",
    tells="webhooks",
    answer=Deleted,
    records=("webhook.deleted",),
)
async def delete_endpoint(call: Call[Body, Query]) -> Answer:
    """Delete a webhook endpoint. Its pending deliveries stop."""
    find = endpoint_of(call)

    def remove(tx: DeliveryTransaction) -> Endpoint:
        endpoint = replace(find(tx), status="removed")
        tx.save_endpoint(endpoint)
        return endpoint

    return {"id": (await _commit_and_apply(call, remove)).id, "deleted": True}


async def _shown(call: Call[B, Q], find: Callable[[DeliveryReader], Endpoint]) -> Answer:
    """Return the endpoint object with a masked secret. Raises the errors of `find`."""
    now = call.services.clock()

    def view(reader: DeliveryReader) -> Answer:
        return _view(reader, find(reader), now)

    return await call.services.store.read(view)


def _view(reader: DeliveryReader, endpoint: Endpoint, now: int) -> Answer:
    """Return the endpoint object with its held, missed and dropped deliveries."""
    waiting = reader.outage_counts(endpoint.rowid)
    return endpoint_view(endpoint, now, waiting, dropped=_dropped(reader, endpoint, now))


def _dropped(reader: DeliveryReader, endpoint: Endpoint, now: int) -> int:
    return reader.dropped_since(endpoint.project, endpoint.rowid, now - DROPPED_WINDOW_MS, DROPPED_COUNT_MAX)


async def _commit_and_apply(call: Call[B, Q], job: Callable[[Transaction], Endpoint]) -> Endpoint:
    """Commit a change of an endpoint and apply it to its worker.

    The change is applied even if the caller has disconnected. Notices of two concurrent changes may arrive in
    either order, so the state that is stored by then is applied.
    """
    services = call.services
    with trio.CancelScope(shield=True):
        endpoint = await services.store.write(job)
        stored = endpoint if endpoint.status != "removed" else None
        async with services.webhooks.following:
            with suppress(Unavailable):  # if the disk can't be read, this change is the newest known
                stored = await services.store.read(InlineQuery(lambda reader: _stored(reader, endpoint)))
            if stored is None:
                services.webhooks.remove(endpoint.rowid)
            else:
                services.webhooks.change(stored)
    return endpoint


def _stored(reader: DeliveryReader, endpoint: Endpoint) -> Endpoint | None:
    same = (each for each in reader.endpoints(endpoint.project) if each.rowid == endpoint.rowid)
    return next(same, None)


def endpoint_of(call: Call[B, Q]) -> Callable[[DeliveryReader], Endpoint]:
    """Return the query for the endpoint in the path; it raises NotFound."""
    project, endpoint_id = call.project.rowid, call.path["endpoint_id"]

    def find(reader: DeliveryReader) -> Endpoint:
        for endpoint in reader.endpoints(project):
            if endpoint.id == endpoint_id:
                return endpoint
        raise NotFound("There is no such webhook endpoint.", code="webhook_not_found")

    return find


async def _require_valid(call: Call[Any, Any], problems: list[Problem]) -> None:
    """Raise Invalid with these problems and those of the body's URL, event types and version."""
    body: CreateWebhookEndpointRequest | ChangeWebhookEndpointRequest = call.body
    problems += [
        Problem(f"/events/{index}", "unknown_event_type", _unknown(name))
        for index, name in enumerate(body.events or ())
        if name not in LISTABLE
    ]
    versions = call.services.webhooks.versions.names
    if body.api_version is not None and body.api_version not in versions:
        text = f"Events have no version {body.api_version!r}. There is {', '.join(versions)}."
        problems.append(Problem("/apiVersion", "unknown_api_version", text))
    if body.url is not None:
        problems += await call.services.webhooks.check_url(body.url)
    if problems:
        raise Invalid(*problems)


def _unknown(name: str) -> str:
    """Return the message for an unknown event type, with similar types."""
    family = name.partition(".")[0]
    near = [each for each in LISTABLE if each.partition(".")[0] == family] or _DEFAULT_TYPES
    return f"There is no event type {name!r}. There is {', '.join(near)}."


def _internal_problems(
    body: CreateWebhookEndpointRequest | ChangeWebhookEndpointRequest, before: Endpoint | None
) -> list[Problem]:
    """Return a problem for each listed type that needs `internal`, if that is false.

    Args:
        before: the endpoint that is changed, None for a new one.
    """
    internal = before is not None and before.internal if body.internal is None else body.internal
    if internal:
        return []
    if body.events is None:
        listed = [] if before is None else [name for name in before.events if name in CONFIDENTIAL]
        return [
            Problem("/internal", "needs_internal", _NEEDS_INTERNAL.format(name)) for name in sorted(listed)
        ]
    return [
        Problem(f"/events/{index}", "needs_internal", _NEEDS_INTERNAL.format(name))
        for index, name in enumerate(body.events)
        if name in CONFIDENTIAL
    ]


def require_reading(call: Call[Any, Any], events: Iterable[str]) -> None:
    """Raise Forbidden unless the caller may read the events of this `events` list."""
    call.access.require(*permissions_of_endpoint(events))


def _require_reading_to_change(call: Call[ChangeWebhookEndpointRequest, Query], before: Endpoint) -> None:
    """Raise Forbidden if a change of the URL or events needs permissions to read."""
    body = call.body
    if _redirects(body):
        require_reading(call, before.events if body.events is None else body.events)


def _redirects(body: ChangeWebhookEndpointRequest) -> bool:
    """Return whether a change decides the endpoint's URL or events."""
    given = body.model_fields_set
    return bool(given & {"url", "events", "internal"}) or body.status == "enabled"


def _machine(call: Call[Any, Any]) -> str | None:
    return None if call.access.machine is None else call.access.machine.id


def _check_owner(tx: Transaction, endpoint: Endpoint, now: int) -> None:
    """Raise Forbidden if the credential that owns an enabled endpoint has lapsed.

    It may have ended or lost a permission since the request was authorized.
    """
    if endpoint.credential is not None and endpoint.status == "enabled":
        reason = lapsed_reason(endpoint, tx.machine(endpoint.credential), now)
        if reason is not None:
            raise Forbidden(f"The endpoint can't deliver: {reason}.")


def _insert(tx: Transaction, endpoint: Endpoint, now: int) -> Endpoint:
    _check_owner(tx, endpoint, now)
    if len(tx.endpoints(endpoint.project)) >= ENDPOINTS_MAX:
        raise Conflict(f"A project has at most {ENDPOINTS_MAX} endpoints.", code="webhook_limit_reached")
    return tx.insert_endpoint(endpoint)


def _change(
    tx: Transaction, before: Endpoint, body: ChangeWebhookEndpointRequest, machine: str | None, now: int
) -> Endpoint:
    if problems := _internal_problems(body, before):  # the endpoint has changed since the first check
        raise Invalid(*problems)
    changes: dict[str, Any] = body.model_dump(exclude_unset=True)
    if "events" in changes:
        changes["events"] = frozenset(changes["events"])
    after = replace(before, **changes, credential=machine if _redirects(body) else before.credential)
    if after == before:
        return before
    if _redirects(body):
        _check_owner(tx, after, now)
    if after.status != before.status:
        after = replace(after, status_reason=None if after.status == "enabled" else _DISABLED_BY_API)
    tx.save_endpoint(replace(after, updated_at=now))
    if after.url != before.url or (after.status == "enabled" and before.status != "enabled"):
        after = _with_closed_circuit(tx, after, now)
    if after.status != before.status:
        publish_transition(tx, "enabled" if after.status == "enabled" else "disabled", after, now)
    return replace(after, updated_at=now)


def _with_closed_circuit(tx: HealthTransaction, endpoint: Endpoint, now: int) -> Endpoint:
    turns = tx.circuit_changes(endpoint.rowid, closed=True)
    tx.reset_circuit(endpoint.rowid)
    if turns:
        publish_transition(tx, "circuit.closed", endpoint, now)
    return replace(endpoint, circuit=CLOSED)
