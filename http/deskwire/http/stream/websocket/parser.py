"""The websocket's frames as wsproto reads them, with two rules that it does not have (RFC 6455).

* The largest frame: a longer one is refused at its head, not once that much has come.
* Close code 1014, Bad Gateway, which IANA has registered since.
"""

from __future__ import annotations

from typing import Final

from wsproto.connection import Connection, ConnectionType
from wsproto.frame_protocol import CloseReason, Frame, FrameDecoder, FrameProtocol, Opcode, ParseFailed

_BAD_GATEWAY: Final = 1014
_NORMAL: Final = CloseReason.NORMAL_CLOSURE.to_bytes(2)


class Wire(Connection):
    """The server's end of a connection after its handshake.

    Args:
        longest: bytes of a frame's payload at most; beyond it the connection is to be closed with 1009.
        rest: bytes that came behind the handshake.
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
