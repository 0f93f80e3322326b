"""The stream's protocol, as far as a consumer needs it: texts to values and back, without I/O."""

from __future__ import annotations

from typing import Any, Final

import orjson
from msgspec import Struct

FINAL_CODES: Final = range(4000, 4100)
"""Codes of `pusher:error` after which a client must not reconnect automatically."""
SUPERSEDED: Final = 4009


class Established(Struct, frozen=True):
    """The connection is up; the socket id is what an authorization is bound to."""

    socket_id: str


class Subscribed(Struct, frozen=True):
    """Events follow; with `gap` some that were missed can no longer be sent."""

    gap: bool


class Refused(Struct, frozen=True):
    """The subscription was refused."""

    reason: str


class Failure(Struct, frozen=True):
    """An error of the connection; `code` says whether to come back."""

    code: int | None
    message: str


class Event(Struct, frozen=True):
    """An event: the name the frame gives it, and the envelope's bytes."""

    name: str
    body: bytes


Frame = Established | Subscribed | Refused | Failure | Event


def decode(text: str) -> Frame | None:
    """Return the frame in a message from the service; None for one that a consumer may ignore.

    A message that is not understood comes back as an event with all of its text, so that it is found to be none.
    """
    try:
        match orjson.loads(text):
            case {"event": "pusher:connection_established", "data": str(data)}:
                return Established(str(orjson.loads(data)["socket_id"]))
            case {"event": "pusher_internal:subscription_succeeded", "data": str(data)}:
                return Subscribed(bool(orjson.loads(data).get("gap")))
            case {"event": "pusher:subscription_error", "data": data}:
                return Refused(data if isinstance(data, str) else orjson.dumps(data).decode())
            case {"event": "pusher:error", "data": {"message": str(message)} as data}:
                code = data.get("code")
                return Failure(code if isinstance(code, int) else None, message)
            case {"event": str(name), "data": str(data)} if not name.startswith("pusher"):
                return Event(name, data.encode())
            case {"event": str()}:
                return None
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        pass
    return Event("", text.encode())


def subscribe(channel: str, auth: str) -> str:
    """Return the message that subscribes."""
    message: dict[str, Any] = {"event": "pusher:subscribe", "data": {"channel": channel, "auth": auth}}
    return orjson.dumps(message).decode()
