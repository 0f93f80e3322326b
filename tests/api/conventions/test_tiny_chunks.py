"""Bodies in tiny chunks, heads of more than 16 KiB, and bodies in another encoding: they cost strangers, not the service."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
import trio

from deskwire.http.server.adapters.quart_app import BackpressureBody
from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S

JSON = b"Content-Type: application/json\r\n"
LOGIN = json.dumps({"email": "a@example.com", "password": "certainly not the password"}).encode()


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]) + b"0\r\n\r\n"


async def sent(service: Service, *parts: bytes) -> tuple[int, bytes]:
    """Return the status and the rest of the response to a request in parts, up to the connection's end."""
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    answer = b""
    with trio.fail_after(HANG_TIMEOUT_S):
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            for part in parts:
                await stream.send_all(part)
            async for piece in stream:
                answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def post(path: bytes = b"/v3/auth/token", more: bytes = JSON) -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%bTransfer-Encoding: chunked\r\n\r\n" % (
        path,
        more,
    )


@pytest.fixture
def appended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the pieces that are handed to requests."""
    sizes: list[int] = []
    append = BackpressureBody.append

    def noting(self: BackpressureBody, data: bytes) -> None:
        if data:
            sizes.append(len(data))
        append(self, data)

    monkeypatch.setattr(BackpressureBody, "append", noting)
    return sizes


async def test_chunks_of_one_read_are_one_piece(service: Service, appended: list[int]) -> None:
    padded = LOGIN + b" " * (500 - len(LOGIN))
    status, body = await sent(service, post() + chunked(padded, 1))
    assert (status, json.loads(body)["code"]) == (401, "invalid_login")
    assert sum(appended) == 500
    assert len(appended) <= 3, "one for each read of the connection"


async def test_a_body_in_thousands_of_tiny_chunks_is_refused_before_it_is_read(
    service: Service, appended: list[int]
) -> None:
    status, body = await sent(service, post() + chunked(LOGIN + b" " * 7_900, 1))
    assert (status, json.loads(body)["code"]) == (400, "chunks_too_small")
    assert sum(appended) <= 512
    assert len(appended) <= 3


async def test_tiny_chunks_that_come_one_by_one_are_refused_alike(service: Service) -> None:
    body = LOGIN + b" " * 600
    parts = [b"1\r\n%c\r\n" % byte for byte in body]
    status, answer = await sent(service, post(), *grouped(parts, 40))
    assert (status, json.loads(answer)["code"]) == (400, "chunks_too_small")


def grouped(parts: list[bytes], size: int) -> Iterable[bytes]:
    return (b"".join(parts[at : at + size]) for at in range(0, len(parts), size))


async def test_tiny_chunks_cannot_hide_between_larger_ones(service: Service) -> None:
    piece = chunked(b"x" * 100, 100)[: -len(b"0\r\n\r\n")] + b"1\r\n \r\n"
    upload = b"Content-Type: multipart/form-data; boundary=b\r\nAuthorization: Bearer %b\r\n"
    head = post(b"/v3/uploads", upload % service.demo["serverKey"].encode())
    status, answer = await sent(service, head + piece * 513)
    assert (status, json.loads(answer)["code"]) == (400, "chunks_too_small")


@pytest.mark.parametrize("size", [64, 100, 4_096])
async def test_chunks_of_a_proper_size_are_as_many_as_they_are(service: Service, size: int) -> None:
    text = "x" * 19_000
    body = json.dumps({"contact": {"userId": "u1"}, "message": {"text": text}}).encode()
    body += b" " * (65_000 - len(body))
    key = b"Authorization: Bearer %b\r\n" % service.demo["serverKey"].encode()
    status, answer = await sent(service, post(b"/v3/s2s/conversations", JSON + key) + chunked(body, size))
    assert status == 200, answer


async def test_a_count_of_tiny_chunks_is_of_one_request(service: Service) -> None:
    padded = LOGIN + b" " * (400 - len(LOGIN))
    open_ = post().replace(b"Connection: close\r\n", b"")
    status, answer = await sent(service, open_ + chunked(padded, 1), post() + chunked(padded, 1))
    assert status == 401
    assert answer.count(b'"code":"invalid_login"') == 2


@pytest.mark.parametrize(
    "lines",
    [
        b"Accept-Encoding: " + b"a," * 30_000 + b"\r\n",
        b"".join(b"X%d: 1\r\n" % number for number in range(5_000)),
        b"X: " + b"y" * 16_400 + b"\r\n",
    ],
    ids=["long", "many", "just too long"],
)
@pytest.mark.parametrize("path", [b"/desk", b"/v3/s2s/project", b"/nowhere"])
async def test_a_head_of_more_than_16_kib_is_refused(service: Service, path: bytes, lines: bytes) -> None:
    head = b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%b\r\n" % (path, lines)
    status, answer = await sent(service, head)
    assert (status, json.loads(answer)["code"]) == (431, "header_too_large")


async def test_a_later_head_on_a_connection_has_the_same_bound(service: Service) -> None:
    first = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    second = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 20_000 + b"\r\n\r\n"
    _, answer = await sent(service, first + second)
    assert b"header_too_large" in answer


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 401),
        ("application/json; charset=utf-8", 401),
        ('application/json; charset="UTF-8"', 401),
        ("application/json;charset=utf8", 401),
        ("application/json; profile=x", 401),
        ("application/json; charset=utf-7", 415),
        ("application/json; Charset=ISO-8859-1", 415),
        ('application/json; charset="utf-16"', 415),
        ("application/json; charset=", 415),
        ("application/json; charset=utf-8; charset=utf-7", 415),
    ],
)
@pytest.mark.parametrize("framed", ["length", "chunked"])
async def test_json_is_utf_8(service: Service, content_type: str, status: int, framed: str) -> None:
    line = f"Content-Type: {content_type}\r\n".encode()
    if framed == "chunked":
        found, answer = await sent(service, post(more=line) + chunked(LOGIN, 64))
    else:
        head = b"POST /v3/auth/token HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + line
        found, answer = await sent(service, head + b"Content-Length: %d\r\n\r\n" % len(LOGIN) + LOGIN)
    assert found == status, answer
    if status == 415:
        assert json.loads(answer)["code"] == "unsupported_media_type"


@pytest.mark.parametrize("charset", ["utf-7", "latin1"])
async def test_other_bodies_of_text_are_utf_8_too(service: Service, charset: str) -> None:
    for path, kind in (
        ("/s2s/import", "application/x-ndjson"),
        ("/s2s/stream/auth", "application/x-www-form-urlencoded"),
        ("/s2s/stream/auth", "application/json"),
    ):
        headers = {"Content-Type": f"{kind}; charset={charset}"}
        answer = await service.http.post(path, content=b"{}", headers=headers)
        assert answer.status_code == 415, path
