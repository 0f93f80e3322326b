"""One project, or one machine without a credential, leaves others their places (ADR 41)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.engine.ports import Reader
from deskwire.storage.postgres.transaction import PostgresReader
from deskwire.storage.sqlite.transaction import SqliteReader
from tests.api.operating.test_metrics import scrape
from tests.api.stream.test_authorization import foreign_key
from tests.support.api.import_lines import NDJSON
from tests.support.api.service import Service, running, tapping
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.seeing import seen
from tests.support.stores import AnyStore, chosen

TOO_MANY: Final = (429, "too_many_at_once", "1")


def told(answer: httpx.Response) -> tuple[int, str, str | None]:
    return answer.status_code, answer.json()["code"], answer.headers.get("Retry-After")


@asynccontextmanager
async def two(directory: Path, **settings: object) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """Yield a service whose demo project is the greedy one, and a client of another project."""
    async with running(directory, **settings) as service:
        headers = {"Authorization": f"Bearer {await foreign_key(service)}"}
        async with httpx.AsyncClient(
            base_url=f"{service.url}/v3", headers=headers, timeout=HANG_TIMEOUT_S
        ) as other:
            yield service, other


@asynccontextmanager
async def half_sent(service: Service, path: str, length: int, sent: int, *lines: str) -> AsyncIterator[None]:
    """Open a request that has sent a part of its body, and continues to send for as long as it may."""
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    head = [f"POST /v3{path} HTTP/1.1", "Host: x", f"Content-Length: {length}", *lines]
    if not any(line.startswith("Content-Type") for line in lines):
        head.append("Content-Type: application/json")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        await stream.send_all("\r\n".join([*head, "", ""]).encode() + b" " * sent)
        yield


async def until(service: Service, name: str, least: int) -> None:
    """Return once a figure is as high."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while (await scrape(service))(name) < least:
            pass


async def test_slow_anonymous_bodies_leave_memory_for_authenticated_callers(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, request_bodies_bytes=64 * 1024) as service, AsyncExitStack() as attack:
        await attack.enter_async_context(half_sent(service, "/auth/token", 8_000, 7_000))
        await until(service, "http_request_bodies_bytes", 7_000)
        login = {"email": service.demo["user"]["email"], "password": "x" * 1_000}
        async with httpx.AsyncClient() as another:
            refused = await another.post(f"{service.url}/v3/auth/token", content=b" " * 7_000, headers=JSON)
            assert told(refused) == TOO_MANY
            assert (await another.post(f"{service.url}/v3/auth/token", json=login)).status_code == 401
        for _ in range(5):
            await service.create(message={"text": "x" * 20_000})
        assert (await scrape(service))("http_rate_limited_total", reason="at_once") == 1


JSON: Final = {"Content-Type": "application/json"}


async def test_a_project_that_sends_large_bodies_slowly_leaves_room_for_another(tmp_path: Path) -> None:
    async with two(tmp_path, request_bodies_bytes=256 * 1024) as (service, other), AsyncExitStack() as attack:
        key = f"Authorization: Bearer {service.demo['serverKey']}"
        for number in range(1, 3):
            await attack.enter_async_context(half_sent(service, "/s2s/conversations", 400_000, 65_000, key))
            await until(service, "http_request_bodies_bytes", 65_000 * number)
        large = {"contact": {"userId": "u"}, "message": {"text": "x" * 20_000}}
        assert told(await service.http.post("/s2s/conversations", json=large)) == TOO_MANY
        for _ in range(5):
            assert (await other.post("/s2s/conversations", json=large)).status_code == 200


async def test_a_project_that_has_all_its_imports_under_way_leaves_one_for_another(tmp_path: Path) -> None:
    async with two(tmp_path) as (service, other), AsyncExitStack() as attack:
        lines = (f"Authorization: Bearer {service.demo['serverKey']}", "Content-Type: application/x-ndjson")
        await attack.enter_async_context(half_sent(service, "/s2s/import", 1_000, 10, *lines))
        await until(service, "http_requests_under_way", 1)
        headers = NDJSON
        assert told(await service.http.post("/s2s/import", content=b"", headers=headers)) == TOO_MANY
        assert (await other.post("/s2s/import", content=b"", headers=headers)).status_code == 200


async def test_a_project_that_uploads_as_much_as_it_can_leaves_places_for_another(tmp_path: Path) -> None:
    async with two(tmp_path) as (service, other), AsyncExitStack() as attack:
        form = "Content-Type: multipart/form-data; boundary=x"
        key = f"Authorization: Bearer {service.demo['serverKey']}"
        for _ in range(16):
            await attack.enter_async_context(half_sent(service, "/uploads", 1_000, 1, key, form))
        await until(service, "http_requests_under_way", 16)
        files = {"file": ("a.txt", b"a")}
        assert told(await service.http.post("/uploads", files=files)) == TOO_MANY
        assert (await other.post("/uploads", files=files)).status_code == 200


async def test_a_project_that_waits_in_the_feed_leaves_places_for_another(tmp_path: Path) -> None:
    async with two(tmp_path, feed_waits=4) as (service, other), trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(wait, service.http, 20)
        await until(service, "feed_waits", 2)
        assert told(await wait(service.http, 20)) == TOO_MANY
        assert (await wait(other, 0.01)).status_code == 200
        nursery.cancel_scope.cancel()


async def wait(http: httpx.AsyncClient, seconds: float) -> httpx.Response:
    return await http.get("/s2s/events", params={"wait": str(seconds)})


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> list[AnyStore]:
    return tapping(monkeypatch)


async def test_a_project_whose_reads_take_long_leaves_connections_for_another(
    stores: list[AnyStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(tmp_path, read_connections=2) as (service, other), trio.open_nursery() as nursery:
        held, project = threading.Event(), service.demo["projectId"]
        found = seen(stores[0], lambda reader: reader.project(project))
        assert found is not None
        slow_for(monkeypatch, found.rowid, held)
        for _ in range(10):
            nursery.start_soon(service.dashboard.get, "/teams")
        await until(service, "http_requests_under_way", 10)
        for _ in range(5):
            with trio.fail_after(HANG_TIMEOUT_S):
                assert (await other.get("/s2s/webhooks")).status_code == 200
        held.set()


def reader_kind() -> type[SqliteReader | PostgresReader]:
    """Return what the store that the test runs on reads with, in its threads."""
    return PostgresReader if chosen() == "postgres" else SqliteReader


def slow_for(monkeypatch: pytest.MonkeyPatch, project: int, held: threading.Event) -> None:
    """Have this project's lists of teams take until `held` is set."""
    kind = reader_kind()
    teams = kind.teams

    def slowly(reader: Reader, of: int, *place: int | None) -> object:
        if of == project:
            held.wait(30)
        return teams(reader, of, *place)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "teams", slowly)


async def test_a_project_whose_names_are_not_resolved_leaves_lookups_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, asked = threading.Event(), list[Any]()
    ask = socket.getaddrinfo

    def look_up(host: Any, *rest: Any, **more: Any) -> Any:
        if not host.endswith(b".test" if isinstance(host, bytes) else ".test"):
            return ask(host, *rest, **more)
        asked.append(host)
        if b"dead" in host:
            held.wait(30)
        return ask("127.0.0.1", *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    async with two(tmp_path) as (service, other), trio.open_nursery() as nursery:

        async def register(http: httpx.AsyncClient, host: str) -> httpx.Response:
            return await http.post("/s2s/webhooks", json={"url": f"https://{host}/", "events": []})

        for number in range(10):
            nursery.start_soon(register, service.http, f"{number}.dead.test")
        with trio.fail_after(HANG_TIMEOUT_S):
            while len(asked) < 4:  # noqa: ASYNC110  # a thread rings no bell
                await trio.sleep(0.01)  # poll: there is no notification
            assert (await register(other, "alive.test")).status_code == 200
        assert len(asked) == 5  # four of eight, and that one
        held.set()
        nursery.cancel_scope.cancel()


async def test_slow_read_is_refused_and_affects_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    async with running(tmp_path, read_timeout_s=0.1, read_connections=1) as service:
        with monkeypatch.context() as patch:
            patch.setattr(reader_kind(), "teams", lambda reader, *_: reader.conn.execute(endless).fetchall())
            for _ in range(3):
                assert told(await service.dashboard.get("/teams")) == (503, "read_timeout", "1")
        assert (await service.dashboard.get("/teams")).status_code == 200


async def test_the_statements_of_a_read_share_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000) SELECT count(*) FROM c"

    def ask_on(reader: Any, *_: object) -> None:
        end = time.monotonic() + 5
        while time.monotonic() < end:
            reader.conn.execute(some).fetchall()

    async with running(tmp_path, read_timeout_s=0.3, read_connections=1) as service:
        with monkeypatch.context() as patch, trio.fail_after(HANG_TIMEOUT_S):
            patch.setattr(reader_kind(), "teams", ask_on)
            assert told(await service.dashboard.get("/teams")) == (503, "read_timeout", "1")
        assert (await service.dashboard.get("/teams")).status_code == 200
