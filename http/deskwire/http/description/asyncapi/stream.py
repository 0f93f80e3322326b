"""The realtime stream: its channels, and the messages of the Pusher protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from deskwire.engine.events.types import CATALOG, STORED, EventSpec
from deskwire.http.description.asyncapi.parts import AsyncApiParts, security, servers
from deskwire.http.description.event_examples import example_envelopes
from deskwire.http.description.openapi.schemas import Schema
from deskwire.http.schemas.events import ENVELOPES
from deskwire.http.stream import pusher

_SOCKET: Final = "1234.5678"
_CHANNEL: Final = "private-project-prj_01KZ000000000000000000SH0P"
_NAME: Final[Schema] = {
    "type": "string",
    "pattern": "^private-(project|conversation|contact)-[A-Za-z0-9_=@,.;-]+$",
}
_EVENT: Final = "evt_01KZ00000000000000000000E1"

_CHANNELS: Final = (
    ("project", "projectId", "The id of the project.", "prj_01KZ000000000000000000SH0P", "Every event of the project."),
    ("conversation", "conversationId", "The id of the conversation.", "cnv_01KZ00000000000000000000C1", "The events of one conversation."),
    ("contact", "userId", "The id of the contact in your own system.", "u1", "The events of one contact and its conversations."),
)  # fmt: skip
"""The channels: kind, parameter with its description and example, and what the channel carries."""


def _object(properties: Mapping[str, Schema], *optional: str) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required}


_DATA: Final[Mapping[str, Schema]] = {
    "pusher:connection_established": _object(
        {"socket_id": {"type": "string", "pattern": "^[0-9]+\\.[0-9]+$"}, "activity_timeout": {"type": "integer"}}
    ),
    "pusher_internal:subscription_succeeded": _object(
        {"resumedAfter": {"type": ["string", "null"]}, "gap": {"type": "boolean"}}
    ),
    "pusher:subscription_error": _object(
        {"type": {"type": "string"}, "error": {"type": "string"}, "status": {"type": "integer"}}
    ),
    "pusher:pong": {"type": "object"},
}  # fmt: skip
"""The schema of the JSON text in `data`, for each message of the protocol that has one."""

_SENT: Final[tuple[tuple[str, str, bytes], ...]] = (
    ("pusher:connection_established", "The first message of every connection.", pusher.connection_established(_SOCKET)),
    ("pusher:pong", "The answer to a ping.", pusher.pong()),
    (
        "pusher:error",
        "An error. With a code of 4000 to 4299 the connection is closed with that code.",
        pusher.error(pusher.UNKNOWN_APP.message, pusher.UNKNOWN_APP.code),
    ),
    (
        "pusher_internal:subscription_succeeded",
        "The subscription succeeded. `resumedAfter` is the event after which it continues; with `gap`, events are missing since then.",
        pusher.subscription_succeeded(_CHANNEL, _EVENT, False),
    ),
    (
        "pusher:subscription_error",
        "The subscription was refused; the connection stays open.",
        pusher.subscription_error(_CHANNEL, "AuthError", "The project has no such channel.", 403),
    ),
)  # fmt: skip
"""Messages of the service: name, meaning and an example."""

_TAKEN: Final[tuple[tuple[str, str, Schema, Any], ...]] = (
    (
        "pusher:subscribe",
        "Subscribe to a channel. `auth` is what `POST /v3/s2s/stream/auth` has returned for this socket and channel.",
        _object({"channel": _NAME, "auth": {"type": "string"}}),
        {"channel": _CHANNEL, "auth": "x7Gt2kQ1bVnA:eyJhbGciOi…"},
    ),
    ("pusher:unsubscribe", "Leave a channel. There is no response.", _object({"channel": _NAME}), {"channel": _CHANNEL}),
    ("pusher:ping", "Ask for a pong.", {"type": ["object", "string"]}, {}),
    ("pusher:pong", "Optional answer to a websocket ping.", {"type": ["object", "string"]}, {}),
)  # fmt: skip
"""Messages of clients: name, meaning, the schema of `data`, and an example."""


def carried() -> list[EventSpec]:
    """Return the types of events for consumers of the stream, including the optional ones."""
    return [
        kind for kind in CATALOG.values() if kind.type in STORED or (kind.opt_in and kind.type in ENVELOPES)
    ]


def add(parts: AsyncApiParts) -> None:
    """Add the channels of events and the protocol's messages."""
    events = [_add_event(parts, kind) for kind in carried()]
    for kind, parameter, described, example, carries in _CHANNELS:
        name = f"{kind}Events"
        parts.channel(
            name,
            events,
            address=f"private-{kind}-{{{parameter}}}",
            title=f"Events of a {kind}",
            description=f"{carries} Typing is sent only to consumers that asked for it with `typingEvents`.",
            parameters={parameter: {"description": described, "examples": [example]}},
            servers=servers("stream"),
        )
        parts.operation(f"send{name[0].upper()}{name[1:]}", name, "send", events, carries)
    _add_protocol(parts)


def _add_event(parts: AsyncApiParts, kind: EventSpec) -> str:
    name, envelope = f"stream.{kind.type}", example_envelopes()[kind.type]
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "x-contentSchema": parts.schemas.of(ENVELOPES[kind.type]),
    }
    properties = {"event": {"type": "string", "const": kind.type}, "channel": _NAME, "data": data}
    shown = orjson.loads(pusher.event(kind.type, _CHANNEL, envelope))
    parts.messages[name] = _message(kind.type, kind.when, _object(properties), shown)
    return name  # fmt: skip


def _add_protocol(parts: AsyncApiParts) -> None:
    sent = [_add_sent(parts, *each) for each in _SENT]
    taken = [_add_taken(parts, *each) for each in _TAKEN]
    parts.channel(
        "connection",
        [*sent, *taken],
        address=None,
        title="Connection",
        description="The protocol's own messages, on the same websocket as the events of all channels.",
        servers=servers("stream"),
    )
    parts.operation("sendOnConnection", "connection", "send", sent, "Send messages about the connection.")
    parts.operation(
        "receiveOnConnection",
        "connection",
        "receive",
        taken,
        "Receive subscriptions and pings.",
        security=security("serverKey"),
    )


def _add_sent(parts: AsyncApiParts, event: str, meaning: str, example: bytes) -> str:
    shown = orjson.loads(example)
    properties: dict[str, Schema] = {"event": {"type": "string", "const": event}}
    if "channel" in shown:
        properties["channel"] = _NAME
    if event in _DATA:
        properties["data"] = {
            "type": "string",
            "contentMediaType": "application/json",
            "x-contentSchema": _DATA[event],
        }
    else:
        properties["data"] = _object({"code": {"type": "integer"}, "message": {"type": "string"}}, "code")
    name = f"sent.{event.replace(':', '.')}"
    parts.messages[name] = _message(event, meaning, _object(properties), shown)
    return name


def _add_taken(parts: AsyncApiParts, event: str, meaning: str, data: Schema, example: Any) -> str:
    payload = _object({"event": {"type": "string", "const": event}, "data": data}, "data")
    name = f"received.{event.replace(':', '.')}"
    parts.messages[name] = _message(event, meaning, payload, {"event": event, "data": example})
    return name


def _message(name: str, summary: str, payload: Schema, example: Any) -> Schema:
    return {
        "name": name,
        "title": name,
        "summary": summary,
        "contentType": "application/json",
        "payload": payload,
        "examples": [{"name": "frame", "payload": example}],
    }
