"""Bytes on the port compared with h11: both agree on the end of each request, and no invalid request is executed.

The tests hold for any HTTP/1.1 parser in the service. The service may be stricter than h11, but never more lenient.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from hypothesis import given, note
from hypothesis import strategies as st

from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.properties import budget, here, hold
from tests.support.sockets.h11_oracle import Answer, answers, check_problem, explain, judge
from tests.support.sockets.request_bytes import (
    CHUNKED,
    CUTS,
    KEY,
    LAST,
    Draft,
    bad,
    cut,
    fetched,
    garbled,
    good,
    started,
)


class Port:
    """The port of a service, and the responses from it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._key = service.demo["serverKey"].encode()
        self._newest: str | None = None

    async def exchange(self, pieces: list[bytes], methods: list[str], enough: int | None) -> list[Answer]:
        """Send these pieces on one connection; return the responses up to its end, or this number of them."""
        host, _, port = self.service.url.removeprefix("http://").rpartition(":")
        with trio.fail_after(HANG_TIMEOUT_S):
            async with await trio.open_tcp_stream(host, int(port)) as stream, trio.open_nursery() as nursery:
                nursery.start_soon(self._send, stream, pieces)
                data = b""
                with suppress(trio.BrokenResourceError):  # closed while there was more to read
                    async for part in stream:
                        data += part
                        if enough is not None and len(answers(data, methods, ended=False)) >= enough:
                            nursery.cancel_scope.cancel()
                            return answers(data, methods, ended=False)
                nursery.cancel_scope.cancel()
        return answers(data, methods, ended=True)

    async def _send(self, stream: trio.SocketStream, pieces: list[bytes]) -> None:
        with suppress(trio.BrokenResourceError):  # refused before everything was sent
            for piece in pieces:
                await stream.send_all(piece)
                for _ in range(5):  # lets the service read it before the next one comes
                    await trio.lowlevel.checkpoint()

    async def started(self) -> list[str]:
        """Return the contacts whose conversations were started since the last call, in order."""
        params = {"types": "conversation.created"} | ({"after": self._newest} if self._newest else {})
        events = await self.service.events(**params)
        if events:
            self._newest = events[-1]["id"]
        return [event["data"]["conversation"]["contact"]["userId"] for event in events]

    async def hold(self, data: bytes, marks: list[int]) -> list[Answer]:
        """Send the bytes, and check that the executed requests are those that h11 finds, or fewer."""
        data = data.replace(KEY, self._key)
        judged = judge(data)
        methods = [request.method for request in judged.requests]
        enough = len(judged.requests) if judged.end == "waiting" else None
        found = [] if enough == 0 else await self.exchange(cut(data, marks), methods, enough)
        explain(judged, found, await self.started())
        for answer, method in zip(found, [*methods, "GET"], strict=False):
            if answer.status >= 400 and method != "HEAD":
                check_problem(answer)
        return found


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[Port]:
    async with running(tmp_path, rate_limit_per_minute=0) as service:
        yield Port(service)


@pytest.mark.parametrize("behind", [b"\r\n", b"\x00", bytes(started("b"))], ids=["line", "zero", "request"])
@pytest.mark.parametrize("marks", [[], [900]], ids=["whole", "cut"])
async def test_trailing_bytes_do_not_change_the_response(port: Port, behind: bytes, marks: list[int]) -> None:
    last = replace(started("a"), headers=(*started("a").headers, b"Connection: close"))
    (answer,) = await port.hold(bytes(last) + behind, marks)
    assert answer.status == 200


async def test_lower_case_method_is_unknown(port: Port) -> None:
    small = replace(started("a"), line=b"post /v3/s2s/conversations HTTP/1.1")
    (answer,) = await port.hold(several([bytes(small)]), [])
    assert answer.status == 400


@pytest.mark.parametrize(
    "line", [b"POST  /v3/s2s/conversations HTTP/1.1", b"POST /v3/s2s/conversations  HTTP/1.1"]
)
async def test_extra_spaces_in_a_request_line_are_refused(port: Port, line: bytes) -> None:
    (answer,) = await port.hold(several([bytes(replace(started("a"), line=line))]), [])
    assert answer.status == 400


@pytest.mark.parametrize("key", [b"a", b"dGhlIHNhbXBsZSBub25jZQ=="])
async def test_an_upgrade_of_any_form_is_refused_with_a_problem_document(port: Port, key: bytes) -> None:
    asked = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13")
    upgrade = replace(fetched(), headers=(b"Host: x", *asked, b"Sec-WebSocket-Key: " + key))
    (answer,) = await port.hold(several([bytes(upgrade)]), [])
    assert (answer.status, answer.closes) == (404, True)


async def test_started_response_is_finished_despite_trailing_bytes(port: Port) -> None:
    for at in range(60, 1000, 90):
        broken = replace(fetched(), framing=(CHUNKED,), body=b"5\r\nabcXX0\r\n\r\n")
        found = await port.hold(several([bytes(started("a")), bytes(broken)]), [at])
        assert len(found) == 2


def several(each: list[bytes]) -> bytes:
    return b"".join(each) + bytes(LAST)


async def test_valid_requests_are_answered_in_order_for_any_segmentation(port: Port) -> None:
    @budget(20)
    @given(st.tuples(good("a"), good("b"), good("c")), CUTS)
    def run(requests: tuple[Draft, ...], marks: list[int]) -> None:
        data = several([bytes(each) for each in requests])
        note(f"await port.hold({data!r}, {marks})")
        found = here(lambda: port.hold(data, marks))
        assert [answer.status for answer in found] == [200] * 4

    await hold(run)


async def test_bad_requests_are_not_executed_and_their_end_is_unambiguous(port: Port) -> None:
    @budget(80)
    @given(st.booleans(), bad("a"), bad("b"), CUTS)
    def run(warm: bool, first: bytes, second: bytes, marks: list[int]) -> None:
        ahead = [bytes(started("ahead"))] if warm else []
        data = several([*ahead, first, second])
        note(f"await port.hold({data!r}, {marks})")
        here(lambda: port.hold(data, marks))

    await hold(run)


async def test_no_single_byte_makes_the_service_and_h11_disagree(port: Port) -> None:
    @budget(80)
    @given(garbled("a"), CUTS)
    def run(first: bytes, marks: list[int]) -> None:
        data = several([first, bytes(started("b"))])
        note(f"await port.hold({data!r}, {marks})")
        here(lambda: port.hold(data, marks))

    await hold(run)


async def test_arbitrary_bytes_do_not_stop_the_service(port: Port) -> None:
    @budget(40)
    @given(st.binary(min_size=1, max_size=200), CUTS)
    def run(noise: bytes, marks: list[int]) -> None:
        data = noise + b"\r\n\r\n" + bytes(LAST)
        note(f"await port.hold({data!r}, {marks})")
        here(lambda: port.hold(data, marks))

    await hold(run)
