"""The agents' stream: server-sent events, each message the `data` of one of them."""

from __future__ import annotations

from typing import Any, Final, get_args

import orjson

from deskwire.engine.agents.stream import Bye
from deskwire.engine.events.types import AGENTS, CATALOG, STORED
from deskwire.http.description.asyncapi.parts import AsyncApiParts, security, servers
from deskwire.http.description.event_examples import example_envelopes
from deskwire.http.description.extension_examples import extension_envelopes
from deskwire.http.description.openapi.open_schemas import EXTENSIBLE
from deskwire.http.description.openapi.samples import sample
from deskwire.http.description.openapi.schemas import Schema
from deskwire.http.schemas.agent_events import ENVELOPES as FOR_AGENTS
from deskwire.http.schemas.events import ENVELOPES

_PRESENT: Final[Schema] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "online": {"type": "boolean"},
        "conversationIds": {"type": "array", "items": {"type": "string"}},
        "composing": {"type": ["string", "null"]},
    },
    "required": ["id", "name", "online", "conversationIds", "composing"],
}
_ABOUT: Final[tuple[tuple[str, str, Schema, Any], ...]] = (
    (
        "hello",
        "The first event: the start position of the stream, and the agents who are present.",
        {
            "type": "object",
            "properties": {
                "streamId": {"type": "string"},
                "resumedAfter": {"type": ["string", "null"]},
                "gap": {"type": "boolean"},
                "at": {"type": ["string", "null"]},
                "heartbeatS": {"type": "integer"},
                "presence": {"type": "array", "items": _PRESENT},
            },
            "required": ["streamId", "resumedAfter", "gap", "at", "heartbeatS", "presence"],
        },
        {
            "streamId": "str_01KZ00000000000000000STR01",
            "resumedAfter": None,
            "gap": False,
            "at": "evt_01KZ00000000000000000000E1",
            "heartbeatS": 15,
            "presence": [],
        },
    ),
    (
        "passing",
        "An ephemeral event without an id, which is not stored: presence, typing, reads, deliveries, and your own drafts and held messages.",
        {
            "type": "object",
            "properties": {"type": {"type": "string"}, "data": {"type": "object"}},
            "required": ["type", "data"],
        },
        {"type": "presence", "data": {"agents": []}},
    ),
    (
        "bye",
        "The last event: the reason for the end of the stream, and when to reconnect.",
        {
            "type": "object",
            "properties": {
                "reason": {"type": "string", EXTENSIBLE: [*get_args(Bye)]},
                "retryAfterMs": {"type": "integer"},
            },
            "required": ["reason", "retryAfterMs"],
        },
        {"reason": "shutdown", "retryAfterMs": 500},
    ),
)
"""The stream's own and ephemeral events: the field `event`, meaning, schema and example."""


def add(parts: AsyncApiParts) -> None:
    """Add the stream of agents."""
    names = [_add(parts, *each) for each in _ABOUT]
    kinds = {**{name: CATALOG[name] for name in CATALOG if name in STORED}, **AGENTS}
    for kind in kinds.values():
        model = {**ENVELOPES, **FOR_AGENTS}[kind.type]
        schema = parts.schemas.of(model)
        envelope = {**example_envelopes(), **extension_envelopes()}.get(kind.type)
        example: Any = (
            sample(schema, parts.schemas.components) if envelope is None else orjson.loads(envelope)
        )
        names.append(_add(parts, kind.type, kind.when, schema, example))
    parts.channel(
        "agents",
        names,
        address="/v3/stream",
        title="Agents' stream",
        description="Server-sent events. Stored events have an `id` and no field `event`; the others are named by `event`.",
        servers=servers("api"),
    )
    parts.operation(
        "sendToAgents",
        "agents",
        "send",
        names,
        "Send agents the events of their project.",
        security=security("accessToken"),
        bindings={"http": {"method": "GET", "bindingVersion": "0.3.0"}},
    )


def _add(parts: AsyncApiParts, event: str, meaning: str, payload: Schema, example: Any) -> str:
    name = f"agents.{event}"
    parts.messages[name] = {
        "name": event,
        "title": event,
        "summary": meaning,
        "contentType": "application/json",
        "payload": payload,
        "examples": [{"name": "data", "payload": example}],
    }
    return name
