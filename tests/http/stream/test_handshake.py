"""The opening of a stream's connection, as bytes (RFC 6455 4.2)."""

from __future__ import annotations

import pytest

from deskwire.http.stream.websocket import Handshake, UpgradeRefusal
from tests.support.sockets.raw_peer import upgrade

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="


@pytest.mark.parametrize(
    ("framing", "body"),
    [(b"Transfer-Encoding: chunked", b"XX\r\n"), (b"Content-Length: 3", b""), (b"Content-Length: 3", b"abc")],
    ids=["malformed", "missing", "complete"],
)
def test_request_with_a_body_gets_400_also_if_it_is_malformed(framing: bytes, body: bytes) -> None:
    head = upgrade().removesuffix(b"\r\n") + framing + b"\r\n\r\n"
    refused = Handshake().feed(head + body)
    assert isinstance(refused, UpgradeRefusal)
    assert refused.response.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"a",
        b"dGhlIHNhbXBsZSBub25jZQ",  # no padding
        b"dGhlIHNhbXBsZSBub25j",  # 15 bytes
        b"dGhlIHNhbXBsZSBub25jZXM=",  # 17 bytes
        b"dGhlIHNhbXBs ZSBub25jZQ==",
        b"dGhlIHNhbXBsZSBub25jZQ==, dGhlIHNhbXBsZSBub25jZQ==",
        b"_-_-IHNhbXBsZSBub25jZQ==",  # of another alphabet
    ],
)
def test_key_that_is_not_sixteen_bytes_in_base64_gets_400(key: bytes) -> None:
    """RFC 6455 4.2.1."""
    refused = Handshake().feed(upgrade().replace(KEY, key))
    assert isinstance(refused, UpgradeRefusal)
    assert refused.response.startswith(b"HTTP/1.1 400 ")
    assert b"Sec-WebSocket-Key" in refused.response


def test_two_keys_are_answered_with_400() -> None:
    """RFC 6455 11.3.1."""
    refused = Handshake().feed(upgrade("", "k", f"Sec-WebSocket-Key: {KEY.decode()}"))
    assert isinstance(refused, UpgradeRefusal)
    assert refused.response.startswith(b"HTTP/1.1 400 ")


def test_an_upgrade_in_http_1_0_is_refused_in_words_that_help() -> None:
    """RFC 6455 4.2.1; RFC 9110 7.8: a server ignores `Upgrade` in it. It is what nginx sends when not told better."""
    refused = Handshake().feed(upgrade().replace(b" HTTP/1.1", b" HTTP/1.0"))
    assert isinstance(refused, UpgradeRefusal)
    assert refused.response.startswith(b"HTTP/1.1 426 ")
    assert b"HTTP/1.1, not HTTP/1.0" in refused.response
