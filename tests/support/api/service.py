"""A real service in this process, on a real port with a real database, and a client for it."""

from __future__ import annotations

import json
import sqlite3
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg
import pytest
import trio

from deskwire.config.config import Config
from deskwire.engine.events.versions import EVENT_VERSIONS, EventVersions
from deskwire.program import opening
from deskwire.program import serve as program
from deskwire.storage.postgres.store import open_postgres
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.store import open_store
from tests.support.api.openapi_check import caller, exact
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.stores import AnyStore, settings_of

SMALL: dict[str, Any] = {
    "port": 0,
    "allow_private_webhooks": True,
    "argon2_memory_kib": 8 * 1024,
    "shutdown_s": 2.0,
}

_NAMELESS: Final = "SELECT action, id FROM audit WHERE actor_type = 'unknown'"


@dataclass
class Service:
    """A running service with its demo project's credentials."""

    url: str
    demo: dict[str, Any]
    http: httpx.AsyncClient
    dashboard: httpx.AsyncClient
    directory: Path
    stop: Callable[[], None]

    async def create(self, user: str = "u1", **fields: Any) -> dict[str, Any]:
        """Create a conversation; return it."""
        answer = await self.http.post("/s2s/conversations", json={"contact": {"userId": user}, **fields})
        assert answer.status_code == 200, answer.text
        conversation: dict[str, Any] = answer.json()
        return conversation

    async def say(self, conversation: dict[str, Any], text: str, **fields: Any) -> dict[str, Any]:
        """Post a message; return it."""
        path = f"/s2s/conversations/{conversation['id']}/messages"
        answer = await self.http.post(path, json={"text": text, **fields})
        assert answer.status_code == 200, answer.text
        message: dict[str, Any] = answer.json()
        return message

    async def do(self, conversation: dict[str, Any], action: str, **body: Any) -> dict[str, Any]:
        """POST an action on a conversation; return the answer."""
        answer = await self.http.post(f"/s2s/conversations/{conversation['id']}/{action}", json=body)
        assert answer.status_code == 200, answer.text
        done: dict[str, Any] = answer.json()
        return done

    async def fetch(self, conversation: dict[str, Any]) -> dict[str, Any]:
        """Return the conversation's current state."""
        answer = await self.http.get(f"/s2s/conversations/{conversation['id']}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def declare(self, method: str, path: str, length: int) -> tuple[int, bytes]:
        """Send only a head that announces a body of `length`; return status and answer."""
        head = f"{method} /v3{path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}"
        return await self.talk(f"{head}\r\nAuthorization: Bearer {self.demo['serverKey']}\r\n\r\n".encode())

    async def talk(self, first: bytes, then: Iterable[bytes] = ()) -> tuple[int, bytes]:
        """Send raw bytes, and more while the service accepts them; return status and body of its answer."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        with trio.fail_after(HANG_TIMEOUT_S):
            async with await trio.open_tcp_stream(host, int(port)) as stream:
                await stream.send_all(first)
                answer = b""
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_send_while_possible, stream, then)
                    with suppress(
                        trio.BrokenResourceError
                    ):  # the service closed before it had read everything
                        async for data in stream:
                            answer += data
                    nursery.cancel_scope.cancel()
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body

    async def events(self, **params: str) -> list[dict[str, Any]]:
        """Return the project's feed from its start."""
        answer = await self.http.get("/s2s/events", params={"limit": "200", **params})
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    async def types(self) -> list[str]:
        """Return the types of all events so far."""
        return [event["type"] for event in await self.events()]


async def _send_while_possible(stream: trio.SocketStream, parts: Iterable[bytes]) -> None:
    try:
        for part in parts:
            await stream.send_all(part)
    except trio.BrokenResourceError:
        return  # the service has closed the connection


def nameless(directory: Path, database_url: str | None) -> list[tuple[str, str]]:
    """Return records of the audit trail without an actor; no test may cause one."""
    if database_url is not None:
        with psycopg.connect(database_url) as shared:
            return shared.execute(_NAMELESS).fetchall()
    with closing(sqlite3.connect(f"file:{directory / FILE_NAME}?mode=ro", uri=True)) as connection:
        return connection.execute(_NAMELESS).fetchall()


@asynccontextmanager
async def running(
    directory: Path,
    trust: ssl.SSLContext | None = None,
    versions: EventVersions = EVENT_VERSIONS,
    /,
    **settings: Any,
) -> AsyncIterator[Service]:
    """Run a service on `directory` until the context ends; clients verify its certificate with `trust`."""
    exact()  # takes seconds once; during the service, its node's lease might expire in that time
    async with trio.open_nursery() as nursery:
        config = Config(data_dir=directory, **{**SMALL, **settings_of(directory), **settings})
        serving = await nursery.start(partial(program.serve, config, versions=versions))
        demo = json.loads((directory / "demo.json").read_text())
        key = {"Authorization": f"Bearer {demo['serverKey']}"}
        user = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
        async with (
            caller(f"{serving.url}/v3", key, verify=trust or True) as http,
            caller(f"{serving.url}/v3", user, verify=trust or True) as dashboard,
        ):
            yield Service(serving.url, demo, http, dashboard, directory, serving.stop)
        serving.stop()
    assert nameless(directory, config.database_url) == [], (
        "the audit trail does not say who did this: see `Route.records`"
    )


def tapping(monkeypatch: pytest.MonkeyPatch) -> list[AnyStore]:
    """Return a list that receives the store of each service started later, for operations that the API lacks."""
    stores: list[AnyStore] = []

    def tapped(
        open_it: Callable[..., AbstractAsyncContextManager[AnyStore]],
    ) -> Callable[..., AbstractAsyncContextManager[AnyStore]]:
        @asynccontextmanager
        async def opened(*args: Any, **settings: Any) -> AsyncIterator[AnyStore]:
            async with open_it(*args, **settings) as store:
                stores.append(store)
                yield store

        return opened

    monkeypatch.setattr(opening, "open_store", tapped(open_store))
    monkeypatch.setattr("deskwire.storage.postgres.store.open_postgres", tapped(open_postgres))
    return stores
