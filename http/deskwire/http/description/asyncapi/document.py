"""The AsyncAPI document as a whole."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import orjson

from deskwire.engine.core.build import version
from deskwire.http.api.output.static import Static
from deskwire.http.app import ROUTES
from deskwire.http.description.asyncapi import agents, customers, stream, webhooks
from deskwire.http.description.asyncapi.parts import (
    AsyncApiParts,
    capitalized,
    in_async,
    named_message,
)
from deskwire.http.description.openapi.document import shown_types
from deskwire.http.description.openapi.open_schemas import Opener
from deskwire.http.description.openapi.schemas import Schema, Schemas
from deskwire.http.schemas.agent_events import ENVELOPES
from deskwire.http.schemas.customer_events import CustomerEvent

_INTRODUCTION: Final = """\
The events of a Deskwire installation, on each channel that carries them. Every event has the same envelope on all of them, and
stored ones the same bytes, except for customers.

- **Webhooks**: signed requests to the endpoints of a project.
- **The realtime stream**: the Pusher Channels protocol, version 7, over a websocket. It is for backends.
- **The agents' stream**: server-sent events for pages of agents.
- **Customers' streams**: server-sent events for the browsers of customers, who see a part of each event.

The calls of the API are in the OpenAPI document, `/v3/openapi.json`.
"""
_HOST: Final[Schema] = {
    "description": "The host of the installation.",
    "default": "support.example.com",
}
_SERVERS: Final[Schema] = {
    "stream": {
        "host": "{host}",
        "pathname": "/app/{streamKey}",
        "protocol": "wss",
        "description": "The realtime stream. Connect with `?protocol=7`, like Pusher clients.",
        "variables": {
            "host": _HOST,
            "streamKey": {
                "description": "The stream key of the project, from `GET /v3/s2s/project`.",
                "examples": ["x7Gt2kQ1bVnA"],
            },
        },
    },
    "api": {
        "host": "{host}",
        "protocol": "https",
        "description": "The service itself.",
        "variables": {"host": _HOST},
    },
    "receiver": {
        "host": "crm.example.org",
        "protocol": "https",
        "description": "Your receiver of webhooks, at the URL of an endpoint.",
    },
}
_SCHEMES: Final[Schema] = {
    "signature": {
        "type": "httpApiKey",
        "in": "header",
        "name": "Service-Signature",
        "description": "HMAC-SHA256 over `<t>.<raw body>` with the whole secret of the endpoint as the key. Compare in constant time, and "
        "reject a `t` that differs by more than 5 minutes. Libraries of Standard Webhooks verify `webhook-signature` instead.",
    },
    "serverKey": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "sk_…",
        "description": "The server key of a project, with which `POST /v3/s2s/stream/auth` authorizes a subscription.",
    },
    "customerToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "ct_…",
        "description": "The token of a customer's session, from `POST /v3/customer/session`.",
    },
    "accessToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "The access token of a user; a page may send the cookie of its session instead.",
    },
}


@cache
def description() -> Static:
    """Return the document as served. It is built once, which takes a moment."""
    return Static.of("application/json", orjson.dumps(document()))


def document() -> dict[str, Any]:
    """Return the document."""
    schemas = Schemas([*shown_types(ROUTES), *ENVELOPES.values(), CustomerEvent])
    parts = AsyncApiParts(schemas)
    for section in (webhooks, stream, agents, customers):
        section.add(parts)
    opener = Opener(schemas.components)
    messages = {
        name: named_message(each, capitalized(name), opener.made) for name, each in parts.messages.items()
    }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Deskwire events",
            "version": version(),
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
            "tags": [{"name": "Events", "description": "The events of a project as they happen."}],
        },
        "defaultContentType": "application/json",
        "servers": _SERVERS,
        "channels": parts.channels,
        "operations": parts.operations,
        "components": {
            "messages": messages,
            "schemas": in_async(opener.reachable(messages)),
            "securitySchemes": _SCHEMES,
        },
    }
