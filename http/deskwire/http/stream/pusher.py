"""The Pusher Channels protocol, version 7 (also 5 and 6), as values and bytes.

No I/O (decisions 5).

Inbound text that is not a message of the protocol becomes a value as well: `decode` never raises. Outbound,
`data` is a JSON *string* in every message but `pusher:error`, where it is an object: no other choice works
with all published clients.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

import orjson
from msgspec import Struct

PROTOCOLS: Final = frozenset({"5", "6", "7"})
SUBPROTOCOL: Final = "pusher-channels-protocol-7"
ACTIVITY_TIMEOUT_S: Final = 30
_NAME_LIMIT: Final = 200
_SOCKET_NUMBERS: Final = 10**10


class CloseCode(IntEnum):
    """The codes of close frames and of `pusher:error` (Pusher protocol, close codes).

    They tell the client how to continue. Codes below 4000 are websocket's own (RFC 6455 7.4.1). After 4000
    to 4099 a client stays disconnected, after 4100 to 4199 it reconnects after a pause, after 4200 to 4299 at once;
    4301 refuses a message and does not end the connection.
    """

    UNSUPPORTED_DATA = 1003
    MESSAGE_TOO_BIG = 1009
    APP_UNKNOWN = 4001
    PROTOCOL_UNSUPPORTED = 4007
    UNAUTHORIZED = 4009
    RECONNECT_LATER = 4100
    RECONNECT_NOW = 4200
    PONG_MISSING = 4201
    CLIENT_EVENT_REFUSED = 4301


# Codes below are websocket's own.
FIRST_OWN_CODE: Final = 4000


class StreamClose(Struct, frozen=True):
    """An end of a connection as sent to the client.

    It has a close code, wsproto's or one of `CloseCode`, and a text.
    """

    code: int
    message: str


def too_big(limit: int) -> StreamClose:
    """Return the end for a message of more than `limit` bytes."""
    return StreamClose(CloseCode.MESSAGE_TOO_BIG, f"A message may have {limit} bytes.")


TEXT_ONLY: Final = StreamClose(CloseCode.UNSUPPORTED_DATA, "Only text messages are spoken here.")
UNKNOWN_APP: Final = StreamClose(CloseCode.APP_UNKNOWN, "There is no app with this key.")
BAD_PROTOCOL: Final = StreamClose(CloseCode.PROTOCOL_UNSUPPORTED, "The protocol version must be 5, 6 or 7.")
SUPERSEDED: Final = StreamClose(CloseCode.UNAUTHORIZED, "Superseded by another consumer")
ENDED: Final = StreamClose(CloseCode.UNAUTHORIZED, "This consumer has been ended by a call to the API.")
PARTLY_ENDED: Final = StreamClose(
    CloseCode.RECONNECT_LATER,
    "A consumer of this connection has been ended by a call to the API; connect again.",
)
REVOKED: Final = StreamClose(
    CloseCode.UNAUTHORIZED, "The server key that authorized this connection has been revoked."
)
CREDENTIAL_ENDED: Final = StreamClose(
    CloseCode.UNAUTHORIZED,
    "The machine credential that authorized this connection was revoked or rotated, or has expired.",
)
PARTLY_REVOKED: Final = StreamClose(
    CloseCode.RECONNECT_LATER, "A server key that authorized some of this has been revoked; connect again."
)
OVER_CAPACITY: Final = StreamClose(CloseCode.RECONNECT_LATER, "Over capacity; connect again.")
NEVER_SUBSCRIBED: Final = StreamClose(CloseCode.RECONNECT_LATER, "No subscription was made; connect again.")
CROWDED: Final = StreamClose(
    CloseCode.RECONNECT_LATER,
    "Too many connections from this address have not subscribed; connect again.",
)
TOO_MANY_FRAMES: Final = StreamClose(
    CloseCode.RECONNECT_LATER, "More websocket frames than a connection may send; connect again."
)
TOO_MANY_MESSAGES: Final = StreamClose(
    CloseCode.RECONNECT_LATER, "More messages than a connection may send; connect again."
)
TOO_MANY_BYTES: Final = StreamClose(
    CloseCode.RECONNECT_LATER, "More bytes than a connection may send; connect again."
)
UNREADABLE: Final = StreamClose(CloseCode.RECONNECT_LATER, "The events can't be read now; connect again.")
LAPSED: Final = StreamClose(
    CloseCode.RECONNECT_LATER, "This node can no longer hold the channel; connect again."
)
REAUTHORIZE: Final = StreamClose(
    CloseCode.RECONNECT_LATER, "The authorization of a channel was refused for now; connect again."
)
STANDBY: Final = StreamClose(CloseCode.RECONNECT_LATER, "The channel is free again; connect and subscribe.")
SHUTTING_DOWN: Final = StreamClose(
    CloseCode.RECONNECT_LATER, "The server is shutting down; connect again in a moment."
)
RESTARTING: Final = StreamClose(CloseCode.RECONNECT_NOW, "The server is restarting; connect again.")
NO_PONG: Final = StreamClose(CloseCode.PONG_MISSING, "No pong came back to the server's pings.")


class Subscribe(Struct, frozen=True):
    """`pusher:subscribe`."""

    channel: str
    auth: str


class Unsubscribe(Struct, frozen=True):
    """`pusher:unsubscribe`.

    It has no response.
    """

    channel: str


class Ping(Struct, frozen=True):
    """`pusher:ping`, which is answered by `pusher:pong` at once."""


class Pong(Struct, frozen=True):
    """`pusher:pong`.

    Never required, because some clients do not send it.
    """


class ClientEvent(Struct, frozen=True):
    """A `client-…` event, which is refused."""

    name: str


class Signin(Struct, frozen=True):
    """`pusher:signin`, which is refused."""


class Ignored(Struct, frozen=True):
    """An event of an unknown name."""

    name: str


class MalformedMessage(Struct, frozen=True):
    """A frame without a valid message.

    `reason` is for the client's developer.
    """

    reason: str


Inbound = Subscribe | Unsubscribe | Ping | Pong | ClientEvent | Signin | Ignored | MalformedMessage


def decode(text: str) -> Inbound:
    """Return the message in a text frame.

    Any text gives a value.
    """
    try:
        message = orjson.loads(text)
    except ValueError:
        return MalformedMessage("The message is not JSON.")
    match message:
        case {"event": str(name)} if 0 < len(name) <= _NAME_LIMIT:
            return _named(name, _fields(message.get("data")))
        case _:
            return MalformedMessage("A message is an object with the text field `event`.")


def _named(name: str, data: Mapping[str, Any]) -> Inbound:
    match name:
        case "pusher:ping":
            return Ping()
        case "pusher:pong":
            return Pong()
        case "pusher:signin":
            return Signin()
        case "pusher:subscribe" | "pusher:unsubscribe":
            return _subscription(name, data)
        case _ if name.startswith("client-"):
            return ClientEvent(name)
        case _:
            return Ignored(name)


def _subscription(name: str, data: Mapping[str, Any]) -> Subscribe | Unsubscribe | MalformedMessage:
    channel, auth = data.get("channel"), data.get("auth")
    if not isinstance(channel, str) or not 0 < len(channel) <= _NAME_LIMIT:
        return MalformedMessage(f"`{name}` needs `data.channel`, a text of at most {_NAME_LIMIT} characters.")
    if name == "pusher:unsubscribe":
        return Unsubscribe(channel)
    return Subscribe(channel, auth if isinstance(auth, str) else "")


def _fields(data: object) -> Mapping[str, Any]:
    """Return `data` as an object.

    Clients send an object, its JSON text, an empty text, or nothing.
    """
    if isinstance(data, str) and data:
        try:
            data = orjson.loads(data)
        except ValueError:
            return {}
    return data if isinstance(data, dict) else {}


def new_socket_id() -> str:
    r"""Return a new, unguessable socket id.

    It consists of two decimal numbers with a dot (`\d+\.\d+`).
    """
    return f"{secrets.randbelow(_SOCKET_NUMBERS)}.{secrets.randbelow(_SOCKET_NUMBERS)}"


def connection_established(socket_id: str) -> bytes:
    """Return the first message of every connection."""
    data = {"socket_id": socket_id, "activity_timeout": ACTIVITY_TIMEOUT_S}
    return _message("pusher:connection_established", None, data)


def subscription_succeeded(channel: str, resumed_after: str | None, gap: bool) -> bytes:
    """Return the response to a subscription.

    It has the start, and whether stored events reach back to the requested one.
    """
    data = {"resumedAfter": resumed_after, "gap": gap}
    return _message("pusher_internal:subscription_succeeded", channel, data)


def subscription_error(channel: str, kind: str, error: str, status: int) -> bytes:
    """Return the refusal of a subscription.

    The connection stays open.
    """
    return _message("pusher:subscription_error", channel, {"type": kind, "error": error, "status": status})


def error(message: str, code: int | None = None) -> bytes:
    """Return `pusher:error`. Without a code clients stay connected.

    With a code of 4000 to 4299 they act on it.
    """
    data = {"message": message} if code is None else {"code": code, "message": message}
    return orjson.dumps({"event": "pusher:error", "data": data})


def pong() -> bytes:
    """Return the response to `pusher:ping`."""
    return _message("pusher:pong", None, {})


def event(kind: str, channel: str, envelope: bytes) -> bytes:
    """Return an event, with its stored envelope as the JSON text in `data`."""
    return orjson.dumps({"event": kind, "channel": channel, "data": envelope.decode()})


def _message(name: str, channel: str | None, data: Mapping[str, Any]) -> bytes:
    message = {"event": name} if channel is None else {"event": name, "channel": channel}
    return orjson.dumps({**message, "data": orjson.dumps(data).decode()})
