"""The opening handshake of a stream connection, sans I/O (RFC 6455 4.2; Pusher protocol, connecting).

The upgrade is accepted before anything is checked: clients handle a refusal by close code far better than
one by HTTP status. Only a request that is no websocket request at all gets an HTTP response.
"""

from __future__ import annotations

import binascii
from typing import Final
from urllib.parse import parse_qs, unquote

import h11
from msgspec import Struct
from wsproto.utilities import generate_accept_token

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.http1 import phrase
from deskwire.engine.core.ids import new_id
from deskwire.http.api.problems import raw_problem
from deskwire.http.stream import pusher

PREFIX: Final = "/app/"
_VERSION: Final = b"13"
_LIMIT: Final = 16 * 1024
_NONCE_BYTES: Final = 16
_OLD: Final = (
    "A websocket is asked for in HTTP/1.1, not HTTP/1.0. A proxy in front may have to be told so: in nginx it is "
    "`proxy_http_version 1.1`."
)


class Opening(Struct, frozen=True):
    """A websocket request: the app key it names, its protocol parameter, and the 101 that accepts it.

    Args:
        protocol: the query's `protocol`, None if missing.
        forwarded_for: values of `X-Forwarded-For`, in the order of the headers.
        response: bytes to send.
        rest: bytes the client sent behind its request, already frames.
    """

    stream_key: str
    protocol: str | None
    forwarded_for: tuple[str, ...]
    response: bytes
    rest: bytes

    @property
    def refusal(self) -> pusher.Close | None:
        """The refusal of the protocol parameter, None if it is supported. A missing one counts as 7 (hand-written clients)."""
        return None if self.protocol in (None, *pusher.PROTOCOLS) else pusher.BAD_PROTOCOL


class NoWebsocket(Struct, frozen=True):
    """A request that can't be upgraded: the bytes of the response to send before closing."""

    response: bytes


class Handshake:
    """The parser of one request: `feed` it bytes until it gives a result."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LIMIT)

    def feed(self, data: bytes) -> Opening | NoWebsocket | None:
        """Return the result, or None as long as the request is not complete; empty `data` is its end."""
        try:
            self._http.receive_data(data)
            request = self._http.next_event()
            if isinstance(request, h11.Request):
                return self._judge(request)
        except h11.RemoteProtocolError as error:
            return self._refuse(error.error_status_hint, "bad_request", f"Malformed request: {error}")
        return None if request is h11.NEED_DATA else NoWebsocket(b"")

    def _judge(self, request: h11.Request) -> Opening | NoWebsocket:
        headers = {name: value for name, value in request.headers}
        upgrade = headers.get(b"upgrade", b"").lower()
        tokens = {token.strip() for token in headers.get(b"connection", b"").lower().split(b",")}
        keys = [value for name, value in request.headers if name == b"sec-websocket-key"]
        if upgrade != b"websocket" or b"upgrade" not in tokens or not keys:
            return self._refuse(426, "upgrade_required", "This address takes websocket connections only.")
        if request.http_version != b"1.1":
            return self._refuse(426, "upgrade_required", _OLD)
        if headers.get(b"sec-websocket-version") != _VERSION:
            return self._refuse(426, "upgrade_required", "Only websocket version 13 is spoken here.")
        if len(keys) > 1 or not _is_nonce(keys[0]):
            return self._refuse(400, "bad_request", "`Sec-WebSocket-Key` must be 16 bytes in base64, once.")
        if not isinstance(self._http.next_event(), h11.EndOfMessage):
            return self._refuse(400, "bad_request", "A websocket request has no body.")
        path, _, query = request.target.decode("ascii").partition("?")
        protocol = parse_qs(query, keep_blank_values=True, errors="replace").get("protocol")
        response = self._accept(keys[0], headers.get(b"sec-websocket-protocol", b""))
        rest = self._http.trailing_data[0]
        stream_key = unquote(path.removeprefix(PREFIX))
        forwarded_for = tuple(
            value.decode("latin-1") for name, value in request.headers if name == b"x-forwarded-for"
        )
        return Opening(stream_key, protocol[-1] if protocol else None, forwarded_for, response, rest)

    def _accept(self, key: bytes, offered: bytes) -> bytes:
        headers = [
            (b"Upgrade", b"websocket"),
            (b"Connection", b"Upgrade"),
            (b"Sec-WebSocket-Accept", generate_accept_token(key)),
        ]
        if pusher.SUBPROTOCOL.encode() in {name.strip() for name in offered.split(b",")}:
            headers.append((b"Sec-WebSocket-Protocol", pusher.SUBPROTOCOL.encode()))
        switch = h11.InformationalResponse(status_code=101, headers=headers, reason=b"Switching Protocols")
        return self._http.send(switch) or b""

    def _refuse(self, status: int, code: str, detail: str) -> NoWebsocket:
        headers, body = raw_problem(status, code, detail, new_id("req", wall_clock()))
        if status == 426:  # RFC 9110 15.5.22: it says to what
            headers += [(b"connection", b"close, Upgrade"), (b"upgrade", b"websocket")]
            headers.append((b"sec-websocket-version", _VERSION))
        else:
            headers.append((b"connection", b"close"))
        response = h11.Response(status_code=status, headers=headers, reason=phrase(status).encode())
        fresh = h11.Connection(h11.SERVER)  # the one that read the request may be in its error state
        parts = (fresh.send(part) for part in (response, h11.Data(data=body), h11.EndOfMessage()))
        return NoWebsocket(b"".join(part or b"" for part in parts))


def _is_nonce(key: bytes) -> bool:
    """Return whether this is a valid `Sec-WebSocket-Key` (RFC 6455 4.2.1)."""
    try:
        return len(binascii.a2b_base64(key, strict_mode=True)) == _NONCE_BYTES
    except binascii.Error:
        return False
