"""Stream connections that have not subscribed: each network may have a few, independently of others (ADR 41)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import orjson
import pytest
import trio
from wsproto.events import TextMessage

from deskwire.http.stream import limits as bounds
from tests.support.api.service import Service, running
from tests.support.sockets.raw_peer import RawPeer, upgrade

EACH = 3
TOKEN = "m" * 32
A, B = "203.0.113.9", "203.0.113.10"


class Strangers:
    """Opens connections that come through a trusted proxy."""

    def __init__(self, service: Service, stack: AsyncExitStack) -> None:
        self.service, self._stack = service, stack

    async def dial(self, address: str, key: str | None = None) -> RawPeer:
        """Open a connection from this address, and upgrade it."""
        host, _, port = self.service.url.removeprefix("http://").rpartition(":")
        stream = await self._stack.enter_async_context(await trio.open_tcp_stream(host, int(port)))
        peer = RawPeer(stream)
        head = f"X-Forwarded-For: 198.51.100.7, {address}"
        await peer.open(upgrade("?protocol=7", key or self.service.demo["streamKey"], head))
        return peer

    async def come(self, address: str, key: str | None = None) -> dict[str, Any]:
        """Connect from this address; return the first message, with the connection as `peer`."""
        peer = await self.dial(address, key)
        return {**await peer.message(), "peer": peer}

    async def fill(self, address: str) -> list[RawPeer]:
        """Take all places that this address has."""
        received = [await self.come(address) for _ in range(EACH)]
        assert [each["event"] for each in received] == ["pusher:connection_established"] * EACH
        return [each["peer"] for each in received]


@pytest.fixture
async def strangers(tmp_path: Path) -> AsyncIterator[Strangers]:
    trusted = (ip_network("127.0.0.1/32"),)
    async with (
        running(
            tmp_path, trusted_proxies=trusted, stream_unsubscribed_each=EACH, metrics_token=TOKEN
        ) as service,
        AsyncExitStack() as stack,
    ):
        yield Strangers(service, stack)


async def refused(strangers: Strangers, address: str) -> bool:
    """Return whether a new connection is refused because of too many, with a code to reconnect."""
    received = await strangers.come(address)
    if received["event"] == "pusher:connection_established":
        return False
    assert (received["event"], received["data"]["code"]) == ("pusher:error", 4100)
    assert "from this address" in received["data"]["message"]
    assert await received["peer"].close_code() == 4100
    return True


async def test_address_full_of_strangers_does_not_block_other_addresses(
    strangers: Strangers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SLOT_WAIT_TIMEOUT_S", 0.05)
    await strangers.fill(A)
    assert await refused(strangers, A)
    assert not await refused(strangers, B)
    metrics = f"{strangers.service.url}/metrics"
    text = (await strangers.service.http.get(metrics, headers={"Authorization": f"Bearer {TOKEN}"})).text
    assert 'dropped_connections_total{reason="crowded"} 1.0' in text


async def test_ipv6_network_counts_as_one_address(
    strangers: Strangers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SLOT_WAIT_TIMEOUT_S", 0.05)
    for host in range(EACH):
        assert not await refused(strangers, f"2001:db8::{host}")
    assert await refused(strangers, "[2001:db8::ffff:1]:4711")
    assert not await refused(strangers, "2001:db8:0:1::1")


async def test_connections_with_a_wrong_app_key_count_as_well(
    strangers: Strangers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise they could reconnect at any rate."""
    monkeypatch.setattr(bounds, "SLOT_WAIT_TIMEOUT_S", 0.05)
    for _ in range(EACH):
        assert (await strangers.come(A, "unknown"))["data"]["code"] == 4001
    assert await refused(strangers, A)


async def test_subscribing_frees_a_place_for_a_waiting_connection(strangers: Strangers) -> None:
    service = strangers.service
    channel = f"private-project-{service.demo['projectId']}"
    received = await strangers.come(A)
    socket_id = orjson.loads(received["data"])["socket_id"]
    for _ in range(EACH - 1):
        await strangers.come(A)
    answers: list[str] = []

    async def wait() -> None:
        answers.append((await strangers.come(A))["event"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        asked = {"socket_id": socket_id, "channel_name": channel, "consumerId": "c1"}
        auth = (await service.http.post("/s2s/stream/auth", json=asked)).json()["auth"]
        assert answers == []
        message = {"event": "pusher:subscribe", "data": {"channel": channel, "auth": auth}}
        await received["peer"].send(TextMessage(orjson.dumps(message).decode()))
        assert (await received["peer"].message())["event"] == "pusher_internal:subscription_succeeded"
    assert answers == ["pusher:connection_established"]


async def test_old_stranger_is_evicted_for_a_waiting_connection(
    strangers: Strangers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SLOT_TIMEOUT_S", 0.05)
    first, *_ = await strangers.fill(A)
    assert not await refused(strangers, A)
    assert await first.close_code() == 4100


async def test_waiting_connection_gets_the_shutdown_code(
    strangers: Strangers,
) -> None:
    await strangers.fill(A)
    waiting = await strangers.dial(A)
    strangers.service.stop()
    received = (await waiting.message())["data"]
    assert received["code"] in (4100, 4200)
    assert "The server is" in received["message"]
    assert await waiting.close_code() == received["code"]
