"""Requests that Hypercorn alone would accept, or refuse without a reason (ADR 25)."""

from __future__ import annotations

import json

import h11
import pytest
import trio

from deskwire.http.api.output.responses import BASELINE
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.streaming import Front

UPGRADE = b"Connection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n"
VERSION = "http_version_not_supported"
BOTH = b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"


async def asked(front: Front, request: bytes) -> tuple[h11.Response, bytes]:
    """Return the response to a request, up to the end of the connection."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    with trio.fail_after(HANG_TIMEOUT_S):
        stream = await front.raw()
        await stream.send_all(request)
        async for data in stream:
            client.receive_data(bytes(data))
    head, body = client.next_event(), b""
    assert isinstance(head, h11.Response), head
    while isinstance(part := client.next_event(), h11.Data):
        body += part.data
    return head, body


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        (b"GET /hello HTTP/1.1\r\n\r\n", 400, "bad_request"),
        (b"nonsense\r\n\r\n", 400, "bad_request"),
        (b"GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "bad_request"),
        (b"GET /hello HTTP/1.1\r\nHost: x\r\nX: a\r\n folded\r\n\x00\r\n\r\n", 400, "bad_request"),
        (b"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc", 400, "bad_request"),
        (
            b"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
            400,
            "bad_request",
        ),
        (b"POST /hello HTTP/1.1\r\nHost: x\r\n" + BOTH + b"\r\n0\r\n\r\n", 400, "bad_request"),
        (
            b"POST /hello HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
            501,
            "unsupported_transfer_encoding",
        ),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)), 505, VERSION),
        (b"GET /hello HTTP/2.0\r\nHost: x\r\n\r\n", 505, VERSION),
        (b"GET /hello HTTP/3.0\r\nHost: x\r\n\r\n", 505, VERSION),
        (b"GET /hello HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431, "header_too_large"),
    ],
    ids=[
        "host",
        "nonsense",
        "hosts",
        "control",
        "signed",
        "lengths",
        "both",
        "gzip",
        "preface",
        "version 2",
        "version 3",
        "large",
    ],
)
async def test_malformed_request_gets_a_problem_and_the_connection_closes(
    front: Front, request_: bytes, status: int, code: str
) -> None:
    head, body = await asked(front, request_)
    headers = {name.decode(): value.decode() for name, value in head.headers}
    document = json.loads(body)
    assert (head.status_code, document["status"], document["code"]) == (status, status, code)
    assert headers["content-type"] == "application/problem+json"
    assert headers["x-request-id"] == document["requestId"]
    assert headers["connection"] == "close"
    assert {name.lower(): value for name, value in BASELINE}.items() <= headers.items()


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        (b"Transfer-Encoding: chunked\r\n", b"zz\r\n"),
        (BOTH, b"abc"),
        (b"Content-Length: 3\r\nContent-Length: 4\r\n", b"abc"),
    ],
    ids=["chunk", "both", "lengths"],
)
async def test_the_refusal_of_a_head_has_no_body(front: Front, fields: bytes, body: bytes) -> None:
    """RFC 9110 9.3.2. One was sent before, in which h11 found its own writer at fault: nothing came back at all."""
    stream = await front.raw()
    with trio.fail_after(HANG_TIMEOUT_S):
        await stream.send_all(b"HEAD /hello HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n" + body)
        got = b"".join([bytes(part) async for part in stream])
    assert got.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    if b"Content-Length: 4" not in fields:  # there h11 does not report the method
        assert got.endswith(b"\r\n\r\n")


async def test_body_of_an_ambiguous_request_is_never_parsed_as_a_request(front: Front) -> None:
    """A proxy would not see the request in the body."""
    smuggled = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    head, body = await asked(front, b"POST /hello HTTP/1.1\r\nHost: x\r\n" + BOTH + b"\r\n" + smuggled)
    assert head.status_code == 400
    assert b"smuggled" not in body


@pytest.mark.parametrize("target", [b"/hello", b"/v3/../app/x"])
async def test_an_upgrade_to_http_2_is_left_alone(front: Front, target: bytes) -> None:
    """A proxy that passes the upgrade on would see no further request."""
    head, _ = await asked(front, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n" + UPGRADE + b"\r\n")
    assert head.status_code == 200


async def test_an_answer_has_the_headers_that_the_application_has_not_set(front: Front) -> None:
    head, _ = await asked(front, b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    headers = {name.decode(): value.decode() for name, value in head.headers}
    assert {name.lower(): value for name, value in BASELINE}.items() <= headers.items()
    assert "strict-transport-security" not in headers
