"""Webhook endpoints: registered, listed, removed (contract 4.5, 6.2; decisions 6)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.delivery.signature import new_secret
from deskwire.engine.endpoint import ENDPOINTS_MAX, Endpoint, endpoint_view
from deskwire.engine.errors import Conflict, Invalid, NotFound, Problem
from deskwire.engine.events import CATALOG
from deskwire.engine.ids import new_id
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.routing import S2S, Answer, Call, Routes
from deskwire.http.validation import Body, Query

routes = Routes(S2S)
_ONE = "/s2s/webhooks/<endpoint_id>"
_TAIL = 4


class EndpointBody(Body):
    """Where to post which events. No `events` means all but typing."""

    url: Annotated[str, Field(min_length=1, max_length=2_048)]
    events: Annotated[list[str], Field(max_length=50, default_factory=list)]
    description: Annotated[str, Field(max_length=500)] | None = None


@routes.add("POST", "/s2s/webhooks", body=EndpointBody)
async def create_endpoint(call: Call[EndpointBody, Query]) -> Answer:
    """Register an endpoint. The answer shows the signing secret, this once."""
    services, body, now = call.services, call.body, call.services.clock()
    problems = [*_unknown(body.events), *await services.webhooks.check_url(body.url)]
    if problems:
        raise Invalid(*problems)
    secret = new_secret()
    endpoint = Endpoint(
        rowid=0,
        id=new_id("whk", now),
        project=call.project.rowid,
        url=body.url,
        events=frozenset(body.events),
        sealed_secret=services.webhooks.seal(secret),
        secret_tail=secret[-_TAIL:],
        created_at=now,
        updated_at=now,
        description=body.description,
    )
    endpoint = await services.store.write(lambda tx: _insert(tx, endpoint))
    services.webhooks.add(endpoint)
    return endpoint_view(endpoint, secret)


@routes.add("GET", "/s2s/webhooks")
async def list_endpoints(call: Call[Body, Query]) -> Answer:
    """List the endpoints, oldest first, secrets masked."""
    endpoints = call.services.store.peek(lambda reader: reader.endpoints(call.project.rowid))
    return {"items": [endpoint_view(endpoint) for endpoint in endpoints], "nextCursor": None}


@routes.add("GET", _ONE)
async def get_endpoint(call: Call[Body, Query]) -> Answer:
    """Fetch one endpoint, its secret masked."""
    project, endpoint_id = call.project.rowid, call.path["endpoint_id"]
    return endpoint_view(call.services.store.peek(lambda reader: _find(reader, project, endpoint_id)))


@routes.add("DELETE", _ONE)
async def delete_endpoint(call: Call[Body, Query]) -> Answer:
    """Remove an endpoint; its pending deliveries stop."""
    project, endpoint_id = call.project.rowid, call.path["endpoint_id"]
    endpoint = await call.services.store.write(lambda tx: _delete(tx, project, endpoint_id))
    call.services.webhooks.remove(endpoint.rowid)
    return {"id": endpoint.id, "deleted": True}


def _unknown(types: list[str]) -> list[Problem]:
    return [
        Problem(f"/events/{index}", "unknown_event_type", f"There is no event type {name!r}.")
        for index, name in enumerate(types)
        if name not in CATALOG
    ]


def _find(reader: Reader, project: int, endpoint_id: str) -> Endpoint:
    for endpoint in reader.endpoints(project):
        if endpoint.id == endpoint_id:
            return endpoint
    raise NotFound("There is no such webhook endpoint.", code="webhook_not_found")


def _insert(tx: Transaction, endpoint: Endpoint) -> Endpoint:
    if len(tx.endpoints(endpoint.project)) >= ENDPOINTS_MAX:
        raise Conflict(f"A project has at most {ENDPOINTS_MAX} endpoints.", code="webhook_limit_reached")
    return tx.insert_endpoint(endpoint)


def _delete(tx: Transaction, project: int, endpoint_id: str) -> Endpoint:
    endpoint = _find(tx, project, endpoint_id)
    tx.delete_endpoint(endpoint)
    return endpoint
