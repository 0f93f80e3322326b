"""The agents' stream: server-sent events, each message the `data` of one of them."""

from __future__ import annotations

from typing import Any, Final, get_args

import orjson

from deskwire.engine.agents.stream import Bye
from deskwire.engine.events.types import AGENTS, CATALOG, STORED
from deskwire.http.description.asyncapi.parts import AsyncApiParts, security, servers
from deskwire.http.description.asyncapi.sse_parts import SseMessages
from deskwire.http.description.event_examples import example_envelopes
from deskwire.http.description.extension_examples import extension_envelopes
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


def add(parts: AsyncApiParts) -> None:
    """Add the stream of agents."""
    messages = SseMessages(parts, "agents")
    messages.add_hello(
        "The first event: the start position of the stream, and the agents who are present.",
        {"streamId": {"type": "string", "examples": ["str_01KZ00000000000000000STR01"]}},
        {"presence": {"type": "array", "items": _PRESENT, "examples": [[]]}},
    )
    messages.add_passing(
        "An ephemeral event without an id, which is not stored: presence of agents and contacts, typing, reads, deliveries, and your "
        "own drafts and held messages.",
        {"type": "presence", "data": {"agents": []}},
    )
    messages.add_bye(get_args(Bye))
    kinds = {**{name: CATALOG[name] for name in CATALOG if name in STORED}, **AGENTS}
    for kind in kinds.values():
        model = {**ENVELOPES, **FOR_AGENTS}[kind.type]
        schema = parts.schemas.of(model)
        envelope = {**example_envelopes(), **extension_envelopes()}.get(kind.type)
        example: Any = (
            sample(schema, parts.schemas.components) if envelope is None else orjson.loads(envelope)
        )
        messages.add(kind.type, kind.when, schema, example)
    parts.channel(
        "agents",
        messages.names,
        address="/v3/stream",
        title="Agents' stream",
        description="Server-sent events. Stored events have an `id` and no field `event`; the others are named by `event`.",
        servers=servers("api"),
    )
    parts.operation(
        "sendToAgents",
        "agents",
        "send",
        messages.names,
        "Send agents the events of their project.",
        security=security("accessToken"),
        bindings={"http": {"method": "GET", "bindingVersion": "0.3.0"}},
    )
