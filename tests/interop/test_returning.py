"""Published clients that lose their connection or server: they reconnect automatically and miss nothing."""

from __future__ import annotations

import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio

from tests.interop.client import Client, Launch
from tests.interop.proxy import Proxy, proxying
from tests.interop.stage import LONG, Stage, event_id, port_of
from tests.process.test_serve import Server
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S

pytestmark = pytest.mark.long


@pytest.fixture(params=["pusher_js", "pysher"])
def name(request: pytest.FixtureRequest) -> str:
    """Return the name of each client that can be run here."""
    name: str = request.param
    request.getfixturevalue({"pusher_js": "node", "pysher": "pysher"}[name])
    return name


async def start(stage: Stage, name: str) -> Client:
    """Start one of the clients and subscribe it."""
    return await (stage.pusher_js("one") if name == "pusher_js" else stage.pysher("one"))


def check(client: Client, sent: Sequence[str], resumed_after: str) -> None:
    """Check that all events came in order, and that the client resumed after the last event that it had confirmed."""
    before = client.events_before_its_return
    confirmed = [event_id(each) for each in sent].index(resumed_after) + 1
    assert confirmed <= before, "more was confirmed than received"
    assert client.events == [*sent[:before], *sent[confirmed:]]


async def test_events_sent_during_a_cut_come_once_and_in_order(stage: Stage, name: str) -> None:
    """Decisions 5: nothing is missed over a reconnect; confirmed events are not repeated."""
    client = await start(stage, name)
    sent = await stage.talk(5)
    await client.have(sent)
    last = await stage.confirmed()
    stage.proxy.cut()
    sent += await stage.talk(5)
    assert await client.subscribed(2) == {"resumedAfter": last, "gap": False}
    sent += await stage.talk(5)
    await client.have(sent)
    assert client.events == sent
    assert stage.proxy.connections == 2


@pytest.mark.usefixtures("node")
async def test_cut_of_a_slow_connection_repeats_only_events_in_flight(stage: Stage) -> None:
    """Decisions 5: only events in flight are duplicated."""
    client = await stage.pusher_js("one")
    stage.proxy.trickle = 512
    sent = await stage.talk(60, "x" * 1_500)
    await client.until(lambda: len(client.events) >= 30)
    stage.proxy.cut()
    stage.proxy.trickle = 0
    start = (await client.subscribed(2))["resumedAfter"]
    await client.have(sent)
    assert await stage.confirmed() == event_id(sent[-1])
    assert 30 <= client.events_before_its_return < len(sent)
    check(client, sent, start)


@pytest.mark.usefixtures("node")
async def test_a_client_on_a_frozen_connection_finds_out_and_returns(stage: Stage) -> None:
    """Decisions 5; Pusher protocol, heartbeat: `pusher:ping` without an answer makes the client reconnect."""
    client = await stage.pusher_js("one", activityTimeout=1_000, pongTimeout=1_000)
    sent = await stage.talk(5)
    await client.have(sent)
    await stage.confirmed()
    stage.proxy.links[0].freeze()
    sent += await stage.talk(5)
    await client.subscribed(2)
    sent += await stage.talk(5)
    await client.have(sent)
    assert client.events == sent
    assert stage.proxy.connections == 2


@asynccontextmanager
async def process(
    directory: Path, port: int = 0, handed: Sequence[socket.socket] = ()
) -> AsyncIterator[tuple[Server, Service]]:
    """Run the server in a separate process, which is killed after the block."""
    server = Server(directory, "--port", str(port), handed=handed)
    try:
        with trio.fail_after(HANG_TIMEOUT_S):
            await trio.to_thread.run_sync(server.wait_ready, abandon_on_cancel=True)
        url, key = server.demo["baseUrl"], {"Authorization": f"Bearer {server.demo['serverKey']}"}
        async with httpx.AsyncClient(base_url=f"{url}/v3", headers=key, timeout=HANG_TIMEOUT_S) as http:
            yield server, Service(url, server.demo, http, http, directory, server.process.terminate)
    finally:
        server.process.kill()
        server.process.communicate()


ROUTES = [
    "proxy",
    pytest.param("direct", marks=pytest.mark.skipif(not LONG, reason="takes 15 s; INTEROP_LONG=1 runs it")),
]
"""A proxy keeps the port open. A direct client finds it closed for a while, which costs pusher-js 15 s (ADR 38)."""
BACK_S = 2.0
"""How long a client may take to subscribe at a running server, with slack for a busy machine."""


@pytest.mark.parametrize("route", ROUTES)
async def test_no_event_is_missed_when_the_server_is_killed(
    tmp_path: Path, launch: Launch, name: str, route: str
) -> None:
    """Decisions 5: or either after the server's crash."""
    async with proxying(0) as proxy:
        async with process(tmp_path) as (server, service):
            stage = Stage(service, proxy, launch, route == "direct")
            proxy.upstream = port_of(service)
            client = await start(stage, name)
            await client.have(await stage.talk(5))
            await stage.confirmed()
            await stage.talk(20)
            server.process.send_signal(signal.SIGKILL)
        async with process(tmp_path, proxy.upstream) as (_, stage.service):
            await all_is_there(stage, client)


@pytest.mark.parametrize("route", ["proxy", "direct"])
async def test_a_stop_in_good_order_sends_clients_away_and_they_come_back(
    tmp_path: Path, launch: Launch, name: str, route: str
) -> None:
    """Decisions 5.11; ADR 38: close code 4100 if the port closes, after which clients reconnect automatically."""
    async with proxying(0) as proxy:
        async with running(tmp_path) as service:
            stage = Stage(service, proxy, launch, route == "direct")
            proxy.upstream = port_of(service)
            client = await start(stage, name)
            await client.have(await stage.talk(5))
        await client.error(4100)
        async with running(tmp_path, port=proxy.upstream) as stage.service:
            await all_is_there(stage, client)
            if name == "pusher_js":  # it answers the close frame, which confirms what came before
                assert client.events == await stage.feed()


async def test_clients_reconnect_at_once_after_a_restart_with_socket_handover(
    tmp_path: Path, launch: Launch, name: str
) -> None:
    """ADR 38: clients reconnect at once after 4200 and wait in the socket's backlog; with a closed socket it takes 15 s."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with process(tmp_path, handed=[listener]) as (server, service):
            stage = Stage(service, Proxy(port_of(service)), launch, direct=True)
            client = await start(stage, name)
            await client.have(await stage.talk(20))
            server.process.terminate()
            await client.error(4200)
            await trio.to_thread.run_sync(server.process.wait)
        async with process(tmp_path, handed=[listener]) as (server, stage.service):
            with trio.fail_after(BACK_S):
                await client.subscribed(2)
            await stage.talk(5)
            feed = await stage.feed()
            await client.have(feed)
    assert list(dict.fromkeys(client.events)) == feed
    if name == "pusher_js":  # it answers the close frame, which confirms what came before
        assert client.events == feed


async def all_is_there(stage: Stage, client: Client) -> None:
    """Check after a restart that the client is back and has all events from before, during and after the restart."""
    await stage.talk(5)
    resumed_after = (await client.subscribed(2))["resumedAfter"]
    await stage.talk(5)
    feed = await stage.feed()
    await client.have(feed)
    check(client, feed, resumed_after)
