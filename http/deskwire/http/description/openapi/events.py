"""The section `webhooks`: the request to a receiver for each event type."""

from __future__ import annotations

from typing import Any, Final

import orjson

from deskwire.engine.events.types import CATALOG, EXTENSIONS, EventSpec
from deskwire.http.description.event_examples import example_envelopes
from deskwire.http.description.extension_examples import extension_envelopes
from deskwire.http.description.openapi.samples import sample
from deskwire.http.description.openapi.schemas import Schema, Schemas
from deskwire.http.schemas.events import ENVELOPES
from deskwire.http.schemas.extensions import ENVELOPES as EXTENDED

_SIGNATURE: Final = (
    "The signature `t=<unix seconds>,v1=<hex>`: HMAC-SHA256 with the whole secret of the endpoint over `<t>.<raw body>`. "
    "A second `v1` is present while a replaced secret also signs."
)
_HEADERS: Final[tuple[tuple[str, str, Schema, str | int], ...]] = (
    (
        "Service-Signature",
        _SIGNATURE,
        {"type": "string", "pattern": "^t=[0-9]+(,v1=[0-9a-f]{64})+$"},
        f"t=1793534400,v1={'5f' * 32}",
    ),
    (
        "Service-Delivery-Id",
        "The id of the delivery, the same for all its attempts.",
        {"type": "string", "pattern": "^dlv_[0-9A-HJKMNP-TV-Z]{26}$"},
        "dlv_01KZ00000000000000000000D1",
    ),
    ("Service-Event", "The type of the event.", {"type": "string"}, ""),
    (
        "Service-Attempt",
        "The number of the attempt, from 1.",
        {"type": "integer", "minimum": 1},
        1,
    ),
)
_STANDARD_SIGNATURE: Final = (
    "The signature `v1,<base64>`: HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<raw body>`; the key is the secret after "
    "`whsec_`, decoded from base64. A second one follows after a blank while a replaced secret also signs (Standard Webhooks)."
)
_STANDARD: Final[tuple[tuple[str, str, Schema, str | int], ...]] = (
    (
        "webhook-id",
        "The id of the event, the same for all attempts, redeliveries and replays (Standard Webhooks).",
        {"type": "string", "pattern": "^evt_[0-9A-HJKMNP-TV-Z]{26}$"},
        "evt_01KZ0000000000000000000001",
    ),
    (
        "webhook-timestamp",
        "The time of the attempt in unix seconds, as in `Service-Signature` (Standard Webhooks).",
        {"type": "string", "pattern": "^[0-9]+$"},
        "1793534400",
    ),
    (
        "webhook-signature",
        _STANDARD_SIGNATURE,
        {"type": "string", "pattern": "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$"},
        f"v1,{'K7' * 21}g=",
    ),
)
_PREVIOUS: Final = (
    "Service-Previous-Sequence",
    "The sequence of the previous event of this conversation that was sent to this endpoint; 0 if there is none.",
    {"type": "integer", "minimum": 0},
    0,
)
TAG: Final[Schema] = {
    "name": "Webhook events",
    "description": "The requests to webhook endpoints, one for each event type, which your receiver answers.",
}


def webhooks(schemas: Schemas) -> dict[str, Schema]:
    """Return the requests to receivers, by event type."""
    examples = {**example_envelopes(), **extension_envelopes()}
    return {
        kind.type: {"post": _delivery(kind, schemas, examples.get(kind.type))}
        for kind in (*CATALOG.values(), *EXTENSIONS.values())
    }


def _delivery(kind: EventSpec, schemas: Schemas, envelope: bytes | None) -> Schema:
    schema = schemas.of({**ENVELOPES, **EXTENDED}[kind.type])
    example: Any = sample(schema, schemas.components) if envelope is None else orjson.loads(envelope)
    headers = (*_HEADERS, *((_PREVIOUS,) if kind.numbered else ()), *_STANDARD)
    return {
        "operationId": f"on{''.join(word.title() for word in kind.type.split('.'))}",
        "summary": kind.when,
        "tags": [TAG["name"]],
        "security": [],
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": description,
                "schema": {**schema_, "const": kind.type} if name == "Service-Event" else schema_,
                "example": kind.type if name == "Service-Event" else example_,
            }
            for name, description, schema_, example_ in headers
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "example": example}},
        },
        "responses": {
            "2XX": {
                "description": "The event was received. After any other status, or no response within 5 seconds, the delivery is retried."
            }
        },
    }
