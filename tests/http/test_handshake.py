"""The opening of a stream's connection, as bytes (RFC 6455 4.2)."""

from __future__ import annotations

import pytest

from deskwire.http.handshake import Handshake, NoWebsocket
from tests.rawpeer import upgrade


@pytest.mark.parametrize(
    ("framing", "body"),
    [(b"Transfer-Encoding: chunked", b"XX\r\n"), (b"Content-Length: 3", b""), (b"Content-Length: 3", b"abc")],
    ids=["malformed", "missing", "complete"],
)
def test_a_request_with_a_body_is_answered_with_400_also_if_that_is_malformed(
    framing: bytes, body: bytes
) -> None:
    head = upgrade().removesuffix(b"\r\n") + framing + b"\r\n\r\n"
    refused = Handshake().feed(head + body)
    assert isinstance(refused, NoWebsocket)
    assert refused.answer.startswith(b"HTTP/1.1 400 ")
