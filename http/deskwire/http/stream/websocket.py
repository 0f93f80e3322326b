"""Websockets without I/O: the opening handshake, frames and messages.

Sources: RFC 6455 and the Pusher protocol, connecting. The upgrade is accepted before the app key is
checked, because clients handle a refusal by close code far better than one by HTTP status. Only a request
that is no valid websocket request gets an HTTP response.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qs, unquote

import h11
import trio
from msgspec import Struct
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import Event, TextMessage
from wsproto.frame_protocol import CloseReason, Frame, FrameDecoder, FrameProtocol, Opcode, ParseFailed
from wsproto.utilities import generate_accept_token

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.http1 import phrase
from deskwire.engine.core.ids import new_id
from deskwire.http.api.problems import raw_problem
from deskwire.http.stream import pusher
from deskwire.http.stream.limits import InboundRate, ProtocolViolation

PREFIX: Final = "/app/"
_VERSION: Final = b"13"
_LIMIT: Final = 16 * 1024
_NONCE_BYTES: Final = 16
_OLD: Final = (
    "A websocket is asked for in HTTP/1.1, not HTTP/1.0. A proxy in front of the service may need a setting: in nginx it is "
    "`proxy_http_version 1.1`."
)


class UpgradeRequest(Struct, frozen=True):
    """A websocket request.

    It has the app key, the protocol parameter, and the 101 response that accepts it.

    Args:
        protocol: the query's `protocol`, None if missing.
        forwarded_for: values of `X-Forwarded-For`, in the order of the headers.
        response: bytes to send.
        rest: bytes received after the request, which are frames.
    """

    stream_key: str
    protocol: str | None
    forwarded_for: tuple[str, ...]
    response: bytes
    rest: bytes

    @property
    def refusal(self) -> pusher.StreamClose | None:
        """The refusal of the protocol parameter, None if it is supported.

        A missing one counts as 7 (hand-written clients).
        """
        return None if self.protocol in (None, *pusher.PROTOCOLS) else pusher.BAD_PROTOCOL


class UpgradeRefusal(Struct, frozen=True):
    """A request that can't be upgraded.

    `response` has the bytes to send before closing.
    """

    response: bytes


class Handshake:
    """The parser of one request: `feed` it bytes until it gives a result."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LIMIT)

    def feed(self, data: bytes) -> UpgradeRequest | UpgradeRefusal | None:
        """Return the result, or None while the request is incomplete.

        Empty `data` marks the end of the request.
        """
        try:
            self._http.receive_data(data)
            request = self._http.next_event()
            if isinstance(request, h11.Request):
                return self._judge(request)
        except h11.RemoteProtocolError as error:
            return self._refuse(error.error_status_hint, "bad_request", f"Malformed request: {error}")
        return None if request is h11.NEED_DATA else UpgradeRefusal(b"")

    def _judge(self, request: h11.Request) -> UpgradeRequest | UpgradeRefusal:
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
        return UpgradeRequest(stream_key, protocol[-1] if protocol else None, forwarded_for, response, rest)

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

    def _refuse(self, status: int, code: str, detail: str) -> UpgradeRefusal:
        headers, body = raw_problem(status, code, detail, new_id("req", wall_clock()))
        if status == 426:  # it must name the protocol (RFC 9110 15.5.22)
            headers += [(b"connection", b"close, Upgrade"), (b"upgrade", b"websocket")]
            headers.append((b"sec-websocket-version", _VERSION))
        else:
            headers.append((b"connection", b"close"))
        response = h11.Response(status_code=status, headers=headers, reason=phrase(status).encode())
        fresh = h11.Connection(h11.SERVER)  # the connection that read the request may be in its error state
        parts = (fresh.send(part) for part in (response, h11.Data(data=body), h11.EndOfMessage()))
        return UpgradeRefusal(b"".join(part or b"" for part in parts))


def _is_nonce(key: bytes) -> bool:
    """Return whether this is a valid `Sec-WebSocket-Key` (RFC 6455 4.2.1)."""
    try:
        return len(binascii.a2b_base64(key, strict_mode=True)) == _NONCE_BYTES
    except binascii.Error:
        return False


_TEXT: Final = 0x81
# The first byte of a close frame.
CLOSE_FRAME: Final = b"\x88"
_SHORT: Final = 125
_TWO_BYTES: Final = 0xFFFF


def text_frame(payload: bytes) -> bytes:
    """Return `payload`, which is UTF-8, as one unmasked, unfragmented text frame."""
    size = len(payload)
    if size <= _SHORT:
        return bytes((_TEXT, size)) + payload
    if size <= _TWO_BYTES:
        return bytes((_TEXT, 126)) + size.to_bytes(2) + payload
    return bytes((_TEXT, 127)) + size.to_bytes(8) + payload


def close_frame(code: int, reason: str) -> bytes:
    """Return an unmasked close frame (RFC 6455 5.5.1).

    The reason is shortened to the size of a control frame.
    """
    payload = code.to_bytes(2) + reason.encode()[: _SHORT - 2].decode(errors="ignore").encode()
    return CLOSE_FRAME + bytes((len(payload),)) + payload


class InboundMessages:
    """The inbound side of one connection (RFC 6455 5.4).

    Frames are counted, and messages assembled from them.

    Args:
        largest: bytes of the largest message.
        rest: bytes received after the handshake.
        frames: the number of frames so far.
    """

    __slots__ = ("_assembler", "_inbound_rate", "_largest", "frames", "wire")

    def __init__(self, largest: int, rest: bytes) -> None:
        self.wire = WebsocketConnection(largest, rest)
        self.frames = 0
        self._largest = largest
        self._assembler = MessageAssembler(largest)
        self._inbound_rate = InboundRate(largest)

    def feed(self, data: bytes) -> None:
        """Parse data that was read. Raises ProtocolViolation."""
        if self.wire.state is not ConnectionState.CLOSED:
            self.wire.receive_data(data)
        self._inbound_rate.bytes(len(data), trio.current_time())

    def events(self) -> Iterator[Event]:
        """Yield received events.

        A read without a whole frame counts as one, because it costs as much. Raises ProtocolViolation.
        """
        before = self.frames
        for event in self.wire.events():
            self._count()
            yield event
        if self.frames == before:
            self._count()

    def text(self, event: TextMessage) -> str | None:
        """Return the whole message, if this is its last part. Raises ProtocolViolation."""
        try:
            text = self._assembler.add(event)
        except MessageTooLong:
            raise ProtocolViolation(pusher.too_big(self._largest)) from None
        if text is not None:
            self._inbound_rate.message(trio.current_time())
        return text

    def _count(self) -> None:
        self.frames += 1
        self._inbound_rate.frame(trio.current_time())


class MessageTooLong(Exception):
    """A message is longer than allowed."""


class MessageAssembler:
    """Assembles the messages of one connection.

    Buffers only the parts of an unfinished message.

    Args:
        limit: bytes of a whole message.
    """

    __slots__ = ("_buffer", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer: bytearray | None = None

    def add(self, event: TextMessage) -> str | None:
        """Return the whole message, if this is its last part. Raises MessageTooLong."""
        if self._buffer is None and event.message_finished:
            self._check(len(event.data.encode()))
            return event.data
        buffer = self._buffer = bytearray() if self._buffer is None else self._buffer
        buffer += event.data.encode()
        self._check(len(buffer))
        if not event.message_finished:
            return None
        self._buffer = None
        return buffer.decode()

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise MessageTooLong


_BAD_GATEWAY: Final = 1014
_NORMAL: Final = CloseReason.NORMAL_CLOSURE.to_bytes(2)


class WebsocketConnection(Connection):
    """The server's end of a websocket, with two rules that wsproto lacks.

    The largest frame: a longer frame is refused at its head, before its payload arrives. Close code 1014, Bad
    Gateway, is valid: IANA has registered it since.

    Args:
        longest: bytes of a frame's payload; a longer frame closes the connection with 1009.
        rest: bytes received after the handshake.
    """

    def __init__(self, longest: int, rest: bytes) -> None:
        super().__init__(ConnectionType.SERVER)
        self._proto = _Frames(longest)
        self.receive_data(rest)


class _Frames(FrameProtocol):
    def __init__(self, longest: int) -> None:
        super().__init__(client=False, extensions=[])
        self._frame_decoder = _Decoder(longest)

    def _process_close(self, frame: Frame) -> Frame:
        payload = frame.payload
        assert isinstance(payload, bytes), "a close frame comes whole, and is not decoded before"
        if payload[:2] != _BAD_GATEWAY.to_bytes(2):
            return super()._process_close(frame)
        read = super()._process_close(frame._replace(payload=_NORMAL + payload[2:]))
        return read._replace(payload=(_BAD_GATEWAY, payload[2:].decode()))


class _Decoder(FrameDecoder):
    def __init__(self, longest: int) -> None:
        super().__init__(client=False)
        self._longest = longest

    def parse_extended_payload_length(self, opcode: Opcode, payload_len: int) -> int | None:
        """Return the length, once it is known. Raises ParseFailed."""
        length = super().parse_extended_payload_length(opcode, payload_len)
        if length is not None and length > self._longest:
            raise ParseFailed(f"A message may have {self._longest} bytes.", CloseReason.MESSAGE_TOO_BIG)
        return length
