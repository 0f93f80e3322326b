"""Connections after a request that was refused before its body was read (RFC 9112 9.6).

The connection either serves the next request, or the response announces its end, so no later request is lost silently.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from deskwire.http.transport.connection import DRAIN_BYTES_MAX, DRAIN_TIMEOUT_S
from tests.support.api.service import Service, running
from tests.support.api.staff import person
from tests.support.sockets.h11_oracle import Answer, answers

LANES: Final = {"lane": "", "hypercorn": "TE: trailers\r\n"}
NEXT: Final = "GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n"
SLACK_S: Final = 20.0
"""For a busy machine."""


@dataclass(frozen=True)
class Refusal:
    """A request that is refused because of its head."""

    status: int
    method: str
    path: str
    key: str = "{key}"
    kind: str = "application/json"
    more: str = ""


REFUSALS: Final = {
    "401": Refusal(401, "POST", "/s2s/conversations", key="sk_unknown"),
    "401 without": Refusal(401, "PUT", "/s2s/contacts/u1", key=""),
    "403": Refusal(403, "POST", "/teams", key="{viewer}", more="project: {project}\r\n"),
    "404 path": Refusal(404, "POST", "/s2s/nothing"),
    "405": Refusal(405, "DELETE", "/s2s/project"),
    "415": Refusal(415, "POST", "/s2s/conversations", kind="text/plain"),
    "400 query": Refusal(400, "POST", "/s2s/conversations?x=1"),
    "400 path": Refusal(400, "PUT", "/s2s/contacts/%ff"),
    "200 get": Refusal(200, "GET", "/s2s/project"),
}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with running(tmp_path, rate_limit_per_minute=0, body_limit_bytes=1 << 20) as started:
        yield started


class Wire:
    """A raw connection, whose answers are read as they come."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.data = b""
        self.ended = False
        self.answered = trio.Event()

    async def until(self, count: int, *methods: str) -> list[Answer]:
        """Return the responses, once there are this many or the connection has ended."""
        with trio.fail_after(DRAIN_TIMEOUT_S + SLACK_S):
            while not self.ended and len(answers(self.data, methods, ended=False)) < count:
                part = b""
                with suppress(trio.BrokenResourceError):
                    part = bytes(await self.stream.receive_some())
                self.data += part
                self.ended = not part
                self.answered.set()
        return answers(self.data, methods, ended=self.ended)


async def connected(service: Service) -> Wire:
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    return Wire(await trio.open_tcp_stream(host, int(port)))


def head(service: Service, refusal: Refusal, lane: str, framing: str, **names: str) -> bytes:
    named = {"key": service.demo["serverKey"], "project": service.demo["projectId"], **names}
    key = refusal.key.format(**named)
    lines = [
        f"{refusal.method} /v3{refusal.path} HTTP/1.1",
        "Host: x",
        *([f"Authorization: Bearer {key}"] if key else []),
        f"Content-Type: {refusal.kind}",
        framing,
    ]
    return ("\r\n".join(lines) + "\r\n" + refusal.more.format(**named) + LANES[lane] + "\r\n").encode()


def framed(body: bytes, framing: str) -> tuple[str, bytes]:
    """The header of a body, and the body as it goes over the wire."""
    if framing == "length":
        return f"Content-Length: {len(body)}", body
    pieces = [body[at : at + 10_000] for at in range(0, len(body), 10_000)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return "Transfer-Encoding: chunked", chunks + b"0\r\n\r\n"


async def viewer_of(service: Service) -> str:
    """Return the token of a user who may only read."""
    async with person(service, "viewer") as viewer:
        return str(viewer.token)


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("lane", LANES)
async def test_small_body_is_discarded_and_the_next_request_is_answered(
    service: Service, lane: str, framing: str
) -> None:
    viewer = await viewer_of(service)
    body = b'{"contact": {"userId": "GET /healthz HTTP/1.1"}}' + b" " * 20_000
    header, content = framed(body, framing)
    for name, refusal in REFUSALS.items():
        following = NEXT.format(LANES[lane]).encode()
        first = head(service, refusal, lane, header, viewer=viewer)
        for pieces in (
            [first + content + following],
            [first, content, following],
            [first, content[:99], content[99:] + following],
        ):
            wire = await connected(service)
            async with wire.stream:
                for piece in pieces:
                    await wire.stream.send_all(piece)
                    for _ in range(20):  # lets the service take it up before the next one comes
                        await trio.lowlevel.checkpoint()
                found = await wire.until(2, refusal.method, "GET")
                assert [each.status for each in found] == [refusal.status, 200], (name, found)
                assert not any(each.closes for each in found), name
    assert await service.events() == []


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("lane", LANES)
async def test_large_body_closes_the_connection_with_a_header(
    service: Service, lane: str, framing: str
) -> None:
    viewer = await viewer_of(service)
    header, content = framed(b" " * (DRAIN_BYTES_MAX * 16), framing)
    for name, refusal in REFUSALS.items():
        if refusal.status == 415:
            continue  # its body has been read
        wire = await connected(service)
        async with wire.stream, trio.open_nursery() as nursery:
            data = head(service, refusal, lane, header, viewer=viewer) + content
            nursery.start_soon(sent_around_the_answer, wire, data, NEXT.format(LANES[lane]).encode())
            found = await wire.until(2, refusal.method, "GET")
            nursery.cancel_scope.cancel()
        assert [(each.status, each.closes) for each in found] == [(refusal.status, True)], name
        assert wire.ended, name


async def sent_around_the_answer(wire: Wire, data: bytes, following: bytes) -> None:
    """Send a request, its last bytes after the answer begins: a body that is complete by then closes nothing."""
    await sent_while_possible(wire, data[:-5])
    await wire.answered.wait()
    await sent_while_possible(wire, data[-5:] + following)


async def sent_while_possible(wire: Wire, data: bytes) -> None:
    with suppress(trio.BrokenResourceError):
        await wire.stream.send_all(data)


@pytest.mark.parametrize("framing", ["Content-Length: 50", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("lane", LANES)
async def test_missing_body_closes_the_connection_soon(service: Service, lane: str, framing: str) -> None:
    for sent in (b"", b"5\r\n{    "):
        wire = await connected(service)
        async with wire.stream:
            began = trio.current_time()
            await wire.stream.send_all(head(service, REFUSALS["401"], lane, framing) + sent)
            (answer,) = await wire.until(2, "POST", "GET")
            assert (answer.status, answer.closes, wire.ended) == (401, True, True)
            assert trio.current_time() - began < DRAIN_TIMEOUT_S + SLACK_S


@pytest.mark.parametrize("length", [50, 10_000_000])
@pytest.mark.parametrize("lane", LANES)
async def test_expect_continue_client_is_answered_in_order_or_closed(
    service: Service, lane: str, length: int
) -> None:
    """`Expect: 100-continue` (RFC 9110 10.1.1)."""
    wire = await connected(service)
    async with wire.stream:
        asking = f"Content-Length: {length}\r\nExpect: 100-continue"
        await wire.stream.send_all(head(service, REFUSALS["401"], lane, asking))
        with trio.fail_after(SLACK_S):
            while not wire.data:
                wire.data += bytes(await wire.stream.receive_some())
        if length == 50:
            assert wire.data.startswith(b"HTTP/1.1 100 ")
            await wire.stream.send_all(b" " * length + NEXT.format(LANES[lane]).encode())
        wire.data = wire.data[wire.data.index(b"\r\n\r\n") + 4 :] if b" 100 " in wire.data[:20] else wire.data
        found = await wire.until(2, "POST", "GET")
        told: list[Any] = [(each.status, each.closes) for each in found]
        assert told == ([(401, False), (200, False)] if length == 50 else [(401, True)])


@pytest.mark.parametrize("lane", LANES)
async def test_body_over_its_limit_closes_the_connection_with_a_problem(service: Service, lane: str) -> None:
    for framing in ("length", "chunked"):
        header, content = framed(b" " * (1 << 21), framing)
        refusal = Refusal(413, "POST", "/s2s/conversations")
        wire = await connected(service)
        async with wire.stream, trio.open_nursery() as nursery:
            nursery.start_soon(sent_while_possible, wire, head(service, refusal, lane, header) + content)
            found = await wire.until(1, "POST")
            nursery.cancel_scope.cancel()
        assert [(each.status, each.closes) for each in found] == [(413, True)], framing


@pytest.mark.parametrize("lane", LANES)
async def test_rate_limited_call_keeps_the_connection_open(tmp_path: Path, lane: str) -> None:
    async with running(tmp_path, rate_limit_per_minute=1, rate_limit_burst=1) as service:
        wire = await connected(service)
        header, content = framed(b'{"contact": {"userId": "u1"}}', "length")
        asked = head(service, REFUSALS["400 query"], lane, header)
        async with wire.stream:
            await wire.stream.send_all((asked + content) * 3)
            found = await wire.until(3, "POST", "POST", "POST")
        assert [(each.status, each.closes) for each in found] == [(400, False), (429, False), (429, False)]


EXPECTING: Final = "{}\r\nExpect: 100-continue"
TOO_LONG: Final = {
    "upload": Refusal(413, "POST", "/uploads", kind="multipart/form-data; boundary=x"),
    "json": Refusal(413, "POST", "/s2s/conversations"),
    "logs": Refusal(413, "PUT", f"/s2s/conversations/cnv_{'0' * 26}/network-logs"),
    **{name: each for name, each in REFUSALS.items() if name not in ("415", "200 get")},
}


@pytest.mark.parametrize("name", TOO_LONG)
async def test_refused_body_gets_no_100_continue(service: Service, name: str) -> None:
    """RFC 9110 10.1.1: the point of `Expect: 100-continue` is to learn of a refusal before the body is sent."""
    refusal, viewer = TOO_LONG[name], await viewer_of(service)
    wire = await connected(service)
    async with wire.stream:
        framing = EXPECTING.format("Content-Length: 99999999")
        await wire.stream.send_all(head(service, refusal, "lane", framing, viewer=viewer))
        (answer,) = await wire.until(1, refusal.method)
        assert wire.data.startswith(b"HTTP/1.1 %d " % refusal.status), wire.data[:80]
        assert (answer.status, answer.closes) == (refusal.status, True)


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_accepted_body_gets_one_100_continue(service: Service, framing: str) -> None:
    header, content = framed(b'{"contact": {"userId": "u1"}}', framing)
    request = Refusal(200, "POST", "/s2s/conversations")
    wire = await connected(service)
    async with wire.stream:
        for number in range(2):
            wire.data = b""
            await wire.stream.send_all(head(service, request, "lane", EXPECTING.format(header)))
            with trio.fail_after(SLACK_S):
                while b"\r\n\r\n" not in wire.data:
                    wire.data += await wire.stream.receive_some()
            assert wire.data.startswith(b"HTTP/1.1 100 "), number
            wire.data = b""
            await wire.stream.send_all(content)
            (answer,) = await wire.until(1, "POST")
            assert (answer.status, answer.closes) == (200, False)


async def test_client_that_does_not_wait_is_answered_normally(service: Service) -> None:
    header, content = framed(b'{"contact": {"userId": "u1"}}', "length")
    request = Refusal(200, "POST", "/s2s/conversations")
    wire = await connected(service)
    async with wire.stream:
        await wire.stream.send_all(head(service, request, "lane", EXPECTING.format(header)) + content)
        found = await wire.until(1, "POST")
        assert [each.status for each in found if each.status != 100] == [200]
