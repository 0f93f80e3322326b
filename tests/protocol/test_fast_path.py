"""The fast path over sockets: it answers as the app does, and passes other requests on to the app (ADR 7)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import h11
import pytest
import trio

from deskwire.http.api.routing import Media
from deskwire.http.app import ROUTES
from tests.api.conventions.test_guards import Walk, walking
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S, fail_after_idle
from tests.support.sockets.server_process import free_port

BY_QUART: Final = ("TE", "trailers")
"""A header that changes no response, but excludes a request from the fast path."""
_VARIES: Final = frozenset(
    {b"date", b"x-request-id", b"ratelimit-remaining", b"ratelimit-reset", b"connection"}
)


class Peer:
    """A raw connection that reads one answer after the other."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._http = h11.Connection(h11.CLIENT)

    async def answer(self) -> tuple[h11.Response, bytes]:
        """Return the next complete response. Raises EndOfChannel if the server closes instead."""
        if self._http.our_state is h11.IDLE:
            self._http.send(h11.Request(method="POST", target="/", headers=[("Host", "x")]))
            self._http.send(h11.EndOfMessage())
        head, body = None, b""
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(bytes(await self.stream.receive_some()))
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                assert head is not None
                if self._http.their_state is h11.DONE:
                    self._http.start_next_cycle()
                return head, body
            else:
                raise trio.EndOfChannel

    async def closed(self) -> bool:
        """Return whether the server closes without another byte."""
        return not await self.stream.receive_some()


@asynccontextmanager
async def peer(service: Service, within_s: float = HANG_TIMEOUT_S) -> AsyncIterator[Peer]:
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        with trio.fail_after(within_s):
            yield Peer(stream)


def request(service: Service, target: str, body: bytes = b"", *lines: str, method: str = "POST") -> bytes:
    """A request with a server key, for the fast path unless a header line excludes it."""
    head = [
        f"{method} {target} HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {service.demo['serverKey']}",
        *lines,
    ]
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode() + body


def by_lane(head: h11.Response) -> bool:
    """Return whether the fast path wrote the response, because Hypercorn sends no reason phrase."""
    return bool(head.reason)


@pytest.fixture
async def walk(tmp_path: Path) -> AsyncIterator[Walk]:
    async with walking(tmp_path, user_rate_limit_per_minute=0) as started:
        yield started


def shown(body: bytes) -> Any:
    """A body without the fields that differ between requests."""
    document = json.loads(body) if body else None
    if isinstance(document, dict):
        now = ("computedAt", "to") if "computedAt" in document else ()  # a report ends now by default
        document = {
            name: value for name, value in document.items() if name not in ("requestId", "serverTime", *now)
        }
    return document


@pytest.mark.long
async def test_each_route_has_the_same_response_on_both_paths(walk: Walk) -> None:
    """Refusals of all kinds. Requests that change data are covered by all other tests, which run on the fast path."""
    compared = 0
    for route in ROUTES:
        if not route.direct or route.path.startswith("/v3/auth") or isinstance(route.answer, Media):
            continue
        for headers in (walk.headers(route), {}, {"Authorization": "Bearer nonsense"}):
            for content in (b"", b"{", b'{"nosuchfield": 1}'):
                for query in ("", "?nosuch=1&nosuch=2"):
                    given = {**headers, "Content-Type": "application/json"}
                    answers = []
                    for extra in ({}, dict([BY_QUART])):
                        answer = await walk.http.request(
                            route.method, walk.path(route) + query, headers=given | extra, content=content
                        )
                        stable_headers = {
                            name: value for name, value in answer.headers.raw if name.lower() not in _VARIES
                        }
                        answers.append(
                            (
                                answer.status_code,
                                shown(answer.content),
                                {k.lower(): v for k, v in stable_headers.items()},
                            )
                        )
                    if answers[0][0] >= 400 or route.method == "GET":
                        assert answers[0] == answers[1], (route.operation_id, content, query)
                        compared += 1
    assert compared > 1_000


async def test_connection_moves_to_the_app_with_all_following_bytes(
    service: Service,
) -> None:
    messages = f"/v3/s2s/conversations/{(await service.create())['id']}/messages"
    chunked = request(service, messages, b"", "Content-Type: application/json", "Transfer-Encoding: chunked")
    async with peer(service) as connection:
        await connection.stream.send_all(
            request(service, messages, b'{"text": "1"}')
            + request(service, messages, b'{"text": "2"}')
            + chunked
            + b'd\r\n{"text": "3"}\r\n0\r\n\r\n'
            + request(service, messages, b'{"text": "4"}')
        )
        answers = [await connection.answer() for _ in range(4)]
        assert [json.loads(body)["text"] for _, body in answers] == ["1", "2", "3", "4"]
        assert [by_lane(head) for head, _ in answers] == [True, True, False, True]


async def test_plain_request_moves_the_connection_back_to_the_fast_path(service: Service) -> None:
    messages = f"/v3/s2s/conversations/{(await service.create())['id']}/messages"
    quart = ": ".join(BY_QUART)
    async with peer(service) as connection:
        for number in range(20):
            for lines in ((), (quart,), (quart,)):
                text = json.dumps({"text": f"{number} {lines}" + "x" * 3_000 * (number % 3)}).encode()
                await connection.stream.send_all(request(service, messages, text, *lines))
                head, body = await connection.answer()
                assert (head.status_code, by_lane(head)) == (200, not lines)
                assert json.loads(body)["text"] == json.loads(text)["text"]
        stored = (await service.http.get(messages.removeprefix("/v3"), params={"limit": 200})).json()["items"]
    assert len(stored) == 60


async def test_fast_path_takes_a_split_body_but_no_hostile_head(
    service: Service,
) -> None:
    messages = f"/v3/s2s/conversations/{(await service.create())['id']}/messages"
    async with peer(service) as connection:
        await connection.stream.send_all(request(service, messages, b'{"text": "1"}', ": ".join(BY_QUART)))
        assert not by_lane((await connection.answer())[0])
        data = request(service, messages, json.dumps({"text": "y" * 8_000}).encode())
        for at in range(0, len(data), 999):
            await connection.stream.send_all(data[at : at + 999])
            await trio.testing.wait_all_tasks_blocked(0.01)
        head, body = await connection.answer()
        assert (head.status_code, by_lane(head), len(json.loads(body)["text"])) == (200, True, 8_000)
        await connection.stream.send_all(request(service, messages, b'{"text": "3"}', ": ".join(BY_QUART)))
        assert not by_lane((await connection.answer())[0])
        both = request(service, messages, b"", "Content-Length: 5", "Transfer-Encoding: chunked")
        await connection.stream.send_all(both + b"0\r\n\r\n")
        head, _ = await connection.answer()
        assert (head.status_code, dict(head.headers)[b"connection"]) == (400, b"close")


async def test_fast_path_takes_a_head_in_several_quick_segments(service: Service) -> None:
    data = request(service, "/v3/s2s/project", method="GET")
    async with peer(service) as connection:
        for cuts in ((20,), (10, 30, 50), (len(data) - 1,), (len(data) - 3, len(data) - 2)):
            for begin, end in pairwise((0, *cuts, len(data))):
                await connection.stream.send_all(data[begin:end])
                await trio.testing.wait_all_tasks_blocked(0.02)
            head, _ = await connection.answer()
            assert (head.status_code, by_lane(head)) == (200, True)


async def test_app_takes_a_late_head_and_the_fast_path_later_requests(service: Service) -> None:
    data = request(service, "/v3/s2s/project", method="GET")
    async with peer(service) as connection:
        await connection.stream.send_all(data[:20])
        await trio.sleep(0.8)  # longer than the fast path waits
        await connection.stream.send_all(data[20:])
        head, _ = await connection.answer()
        assert (head.status_code, by_lane(head)) == (200, False)
        await connection.stream.send_all(data)
        head, _ = await connection.answer()
        assert (head.status_code, by_lane(head)) == (200, True)


async def test_client_that_ends_within_its_head_is_answered_at_once(service: Service) -> None:
    async with peer(service) as connection:
        await connection.stream.send_all(request(service, "/v3/s2s/project", method="GET")[:20])
        await connection.stream.send_eof()
        with fail_after_idle(5):
            head, _ = await connection.answer()
            assert (head.status_code, by_lane(head)) == (400, True)
            assert await connection.closed()


async def test_shutdown_closes_a_connection_that_returned_to_the_fast_path(tmp_path: Path) -> None:
    async with running(tmp_path) as service, peer(service) as connection:
        for lines in ((": ".join(BY_QUART),), ()):
            await connection.stream.send_all(request(service, "/v3/s2s/project", b"", *lines, method="GET"))
            assert by_lane((await connection.answer())[0]) is not bool(lines)
        service.stop()
        with fail_after_idle(5):
            assert await connection.closed()


async def test_split_body_is_read_completely_before_the_next_request(service: Service) -> None:
    messages = f"/v3/s2s/conversations/{(await service.create())['id']}/messages"
    text = "x" * 8_000
    data = request(service, messages, json.dumps({"text": text}).encode()) + request(
        service, messages, b'{"text":"2"}'
    )
    async with peer(service) as connection:
        for at in range(0, len(data), 999):
            await connection.stream.send_all(data[at : at + 999])
            await trio.lowlevel.checkpoint()
        head, body = await connection.answer()
        assert (head.status_code, by_lane(head), json.loads(body)["text"] == text) == (200, True, True)
        assert json.loads((await connection.answer())[1])["text"] == "2"


async def test_a_refused_body_is_not_read_and_ends_the_connection(service: Service) -> None:
    head_alone = request(
        service, "/v3/s2s/conversations", b"", "Content-Length: 99999999", "Content-Type: application/json"
    )
    async with peer(service) as connection:
        await connection.stream.send_all(head_alone + b"{")
        head, body = await connection.answer()
        assert (head.status_code, by_lane(head), json.loads(body)["code"]) == (413, True, "body_too_large")
        assert (b"connection", b"close") in head.headers
        assert await connection.closed()


async def test_connection_close_request_is_honoured(service: Service) -> None:
    async with peer(service) as connection:
        await connection.stream.send_all(request(service, "/healthz", b"", "Connection: close", method="GET"))
        head, _ = await connection.answer()
        assert by_lane(head)
        assert (b"connection", b"close") in head.headers
        assert await connection.closed()


async def test_client_that_disconnects_within_its_body_is_dropped(service: Service) -> None:
    async with peer(service) as connection:
        half = request(
            service, "/v3/s2s/conversations", b"", "Content-Length: 50", "Content-Type: application/json"
        )
        await connection.stream.send_all(half + b'{"contact"')
        await connection.stream.send_eof()
        assert await connection.closed()
        assert await service.events() == []


async def test_bug_is_answered_and_the_connection_continues(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a bug")

    async with peer(service) as connection:
        with monkeypatch.context() as broken:
            broken.setattr("deskwire.http.api.pipeline.parse_body", fails)
            await connection.stream.send_all(request(service, "/v3/s2s/conversations", b"{}"))
            head, body = await connection.answer()
        assert (head.status_code, json.loads(body)["code"]) == (500, "internal_error")
        assert json.loads(body)["requestId"] in capsys.readouterr().out
        await connection.stream.send_all(request(service, "/v3/s2s/conversations", b"{}"))
        assert (await connection.answer())[0].status_code == 422


async def test_idle_connection_is_closed_after_its_timeout(tmp_path: Path) -> None:
    async with running(tmp_path, idle_connection_s=0.2) as service, peer(service) as connection:
        for _ in range(2):
            await connection.stream.send_all(request(service, "/healthz", method="GET"))
            assert by_lane((await connection.answer())[0])
        with fail_after_idle(5):
            assert await connection.closed()


async def test_shutdown_closes_idle_connections_and_finishes_a_request(tmp_path: Path) -> None:
    async with running(tmp_path) as service, peer(service) as idle, peer(service) as busy:
        await idle.stream.send_all(request(service, "/healthz", method="GET"))
        await idle.answer()
        body = b'{"contact": {"userId": "u1"}}'
        data = request(service, "/v3/s2s/conversations", body)
        await busy.stream.send_all(data[:-5])
        await trio.testing.wait_all_tasks_blocked(0.05)
        service.stop()
        with fail_after_idle(5):
            assert await idle.closed()
            await busy.stream.send_all(data[-5:])
            head, _ = await busy.answer()
        assert head.status_code == 200
        assert (b"connection", b"close") in head.headers
        assert await busy.closed()


async def lanes(service: Service, *requests: bytes) -> list[bool]:
    """Return which of the requests, each on its own connection, the fast path answers."""
    found = []
    for each in requests:
        async with peer(service) as connection:
            await connection.stream.send_all(each)
            head, _ = await connection.answer()
            assert head.status_code == 200
            found.append(by_lane(head))
    return found


async def test_fast_path_answers_its_own_origin_and_the_app_all_others(tmp_path: Path) -> None:
    ours, listed = "https://Desk.example:8443/", "http://tool.example"
    async with running(
        tmp_path, public_url=ours, port=(port := free_port()), cors_origins=(listed,)
    ) as public:
        service = replace(public, url=f"http://127.0.0.1:{port}")

        def call(*origins: str) -> bytes:
            lines = [*(f"Origin: {each}" for each in origins), "Cookie: other=1; deskwire=x"]
            return request(service, "/v3/s2s/project", b"", *lines, method="GET")

        own = [call("http://x"), call("https://desk.example:8443"), call()]
        assert await lanes(service, *own) == [True, True, True]
        foreign = ["https://x", "http://x:1", "http://y", "null", "https://desk.example", listed]
        assert not any(await lanes(service, *map(call, foreign), call("http://x", "http://x")))


async def test_listed_own_origin_gets_cors_headers(tmp_path: Path) -> None:
    async with running(tmp_path, cors_origins=("http://x",)) as service, peer(service) as connection:
        lines = ("Origin: http://x",)
        user = {"serverKey": service.demo["token"]}
        asked = request(replace(service, demo=user), "/v3/users/me", b"", *lines, method="GET")
        await connection.stream.send_all(asked)
        head, _ = await connection.answer()
        assert (head.status_code, by_lane(head)) == (200, False)
        assert (b"access-control-allow-origin", b"http://x") in head.headers


async def test_fast_path_takes_an_encoded_query_and_no_long_poll(service: Service) -> None:
    demo = service.demo
    user = replace(service, demo={**demo, "serverKey": demo["token"]})
    project = f"project: {demo['projectId']}"
    searches = ("q=late%20order", "q=late+order&limit=5", "q=%C3%A9(!*')")
    found = [request(user, f"/v3/conversations?{each}", b"", project, method="GET") for each in searches]
    assert await lanes(service, *found) == [True, True, True]
    waits = ("wait=0", "%77ait=0", "wai%74=0&limit=1")
    found = [request(service, f"/v3/s2s/events?{each}", method="GET") for each in waits]
    assert await lanes(service, *found) == [False, False, False]


@pytest.mark.parametrize("path", ["/docs", "/v3/openapi.json"])
@pytest.mark.parametrize("accepted", ["gzip, br", "identity"])
async def test_pages_are_the_same_on_both_paths_and_keep_the_fast_path(
    service: Service, path: str, accepted: str
) -> None:
    async def asked(by: Peer, *extra: str) -> tuple[h11.Response, bytes]:
        lines = (f"Accept-Encoding: {accepted}", *extra)
        await by.stream.send_all(request(service, path, b"", *lines, method="GET"))
        head, body = await by.answer()
        assert by_lane(head) is not bool(extra)
        return head, body

    # The page is rendered on the first request, which may take longer than an idle connection is kept.
    async with peer(service, within_s=HANG_TIMEOUT_S) as connection:
        first, shown = await asked(connection)
        async with peer(service) as other:
            head, body = await asked(other, ": ".join(BY_QUART))
        assert (first.status_code, sorted(stable_headers(first)), shown) == (
            head.status_code,
            sorted(stable_headers(head)),
            body,
        )
        tag = dict(stable_headers(head))[b"etag"].decode()
        assert body
        lines = (f"If-None-Match: {tag}",)
        await connection.stream.send_all(request(service, path, b"", *lines, method="GET"))
        head, body = await connection.answer()
        assert (head.status_code, by_lane(head), body) == (304, True, b"")
        assert b"content-length" not in dict(stable_headers(head))
        await connection.stream.send_all(request(service, "/v3/s2s/project", method="GET"))
        head, _ = await connection.answer()
        assert (head.status_code, by_lane(head)) == (200, True)


def stable_headers(head: h11.Response) -> list[tuple[bytes, bytes]]:
    """The headers without those that differ between responses."""
    return [(name, value) for name, value in head.headers if name not in _VARIES]
