"""pusher-js as published, during an outage of PostgreSQL: it receives events again when writes resume (ADR 60)."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from tests.chaos.network import steady_port
from tests.deploy.balancers import BALANCERS, balancing
from tests.interop.client import Client, Launch
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres import PostgresServer
from tests.support.sockets.server_process import Server

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("node")]

CONSUMERS: Final = 12
DEAF_MAX_S: Final = 3.0
"""How long after the first writer consumers may receive their first event."""
_SLACK_S: Final = 3.0  # of a machine with much else to do; before, it was 13 to 123 s
_DATABASE: Final = "outages"
_JOIN_S: Final = 0.5  # into the outage
_PACE_S: Final = 0.25
_OVER_S: Final = 150.0  # more than the longest silence that pusher-js tolerates


@dataclass(eq=False)
class Installation:
    """Two nodes on a PostgreSQL of their own, behind HAProxy where that is installed."""

    postgres: PostgresServer
    port: int
    demo: dict[str, Any]
    http: httpx.AsyncClient
    written: dict[str, float] = field(default_factory=dict)

    async def conversations(self, count: int) -> list[str]:
        """Create conversations; return their ids."""
        made = list[str]()
        for number in range(count):
            answer = await self.http.post(
                "/v3/s2s/conversations", json={"contact": {"userId": f"u{number}-{time.time_ns()}"}}
            )
            made.append(answer.raise_for_status().json()["id"])
        return made

    async def consume(self, launch: Launch, conversations: Sequence[str]) -> Client:
        """Start a pusher-js client for each conversation, each with its own connection."""
        client = await launch("client.mjs")
        url = f"http://127.0.0.1:{self.port}"
        await client.do(
            "crowd",
            key=self.demo["streamKey"],
            port=self.port,
            endpoint=f"{url}/v3/s2s/stream/auth",
            serverKey=self.demo["serverKey"],
            authorization="form",
            fields={"consumerId": "one"},
            options={},
            channels=[f"private-conversation-{each}" for each in conversations],
            each=1,
        )
        return client

    async def write(self, conversation: str) -> None:
        """Post to a conversation until cancelled; record the time of the first success since the outage began."""
        path = f"/v3/s2s/conversations/{conversation}/messages"
        while True:
            try:
                if (await self.http.post(path, json={"text": "Hello"})).is_success:
                    self.written.setdefault(conversation, time.time())
            except httpx.TransportError:
                pass  # the balancer, or the node, has ended it
            await trio.sleep(_PACE_S)  # a pace that the machine keeps up with


@asynccontextmanager
async def installed(folder: Path) -> AsyncIterator[Installation]:
    postgres = PostgresServer()
    postgres.port = steady_port()
    async with AsyncExitStack() as stack:
        stack.callback(postgres.close)
        await trio.to_thread.run_sync(postgres.create)
        await trio.to_thread.run_sync(postgres.start)
        await trio.to_thread.run_sync(postgres.run, f"CREATE DATABASE {_DATABASE}")
        environ = {
            "DESKWIRE_DATABASE_URL": postgres.url(_DATABASE),
            "DESKWIRE_SECRET": "the secret of an installation with several nodes",
            "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0",
            "DESKWIRE_ARGON2_MEMORY_KIB": "8192",
        }
        servers = [Server(folder / name, environ=environ | {"DESKWIRE_NODE": name}) for name in "ab"]
        for server in servers:
            await trio.Path(server.directory).mkdir()
            stack.push_async_callback(server.stop)
            await server.start()
        port = servers[0].port
        if not BALANCERS["haproxy"].missing:
            ports = [server.port for server in servers]
            port = await stack.enter_async_context(balancing("haproxy", folder / "haproxy", ports))
            await trio.sleep(2.5)  # until it has checked the nodes
        demo = servers[0].demo()
        headers = {"Authorization": f"Bearer {demo['serverKey']}"}
        http = await stack.enter_async_context(
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False, timeout=HANG_TIMEOUT_S
            )
        )
        yield Installation(postgres, port, demo, http)


def _arrived(client: Client, since_s: float) -> dict[str, float]:
    """Return when each conversation's channel received its first event after that time."""
    first = dict[str, float]()
    for each in client.told("arrived"):
        if each["at"] / 1000 >= since_s:
            first.setdefault(each["channel"].removeprefix("private-conversation-"), each["at"] / 1000)
    return first


async def deaf(
    stage: Installation, client: Client, conversations: Sequence[str], back_s: float
) -> list[float]:
    """Return how many seconds after the first writer each consumer received an event, in ascending order."""
    with trio.move_on_after(_OVER_S):
        await client.until(lambda: len(_arrived(client, back_s)) == len(conversations), _OVER_S)
    first = min(stage.written.values())
    return sorted(max(0.0, at - first) for at in _arrived(client, back_s).values())


@pytest.mark.parametrize("away_s", [4, 7, 12])
async def test_consumers_receive_events_soon_after_the_first_writer(
    away_s: int, tmp_path: Path, launch: Launch
) -> None:
    async with installed(tmp_path) as stage, trio.open_nursery() as nursery:
        old, new = await stage.conversations(CONSUMERS), await stage.conversations(CONSUMERS)
        before = await stage.consume(launch, old)
        await before.until(lambda: len(before.told("subscribed")) == CONSUMERS, 60)
        for conversation in (*old, *new):
            nursery.start_soon(stage.write, conversation)
        await before.until(lambda: len(_arrived(before, 0)) == CONSUMERS, 60)
        await trio.to_thread.run_sync(stage.postgres.kill)
        gone_s = time.time()
        stage.written.clear()
        await trio.sleep(_JOIN_S)  # the consumers start this long into the outage
        joined = await stage.consume(launch, new)
        await trio.sleep(away_s - _JOIN_S)  # the rest of the outage
        await trio.to_thread.run_sync(stage.postgres.start)
        back_s = time.time()
        deaf_before = await deaf(stage, before, old, gone_s + 1)
        deaf_joined = await deaf(stage, joined, new, gone_s + 1)
        load = os.getloadavg()[0]
        print(
            f"away {back_s - gone_s:.1f} s, writers {min(stage.written.values()) - back_s:.1f} s after the start; deaf: "
            f"there before {deaf_before[0]:.1f} to {deaf_before[-1]:.1f} s, came meanwhile {deaf_joined[0]:.1f} to "
            f"{deaf_joined[-1]:.1f} s; load {load:.1f}"
        )
        nursery.cancel_scope.cancel()
    assert len(deaf_before) == len(deaf_joined) == CONSUMERS
    assert max(*deaf_before, *deaf_joined) <= DEAF_MAX_S + _SLACK_S
