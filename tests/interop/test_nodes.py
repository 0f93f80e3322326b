"""Published clients, unmodified, against several nodes behind a balancer, of which one is killed (ADR 60).

Each event arrives at least once and in order; twice only what was on its way when the node was killed. A webhook's
signature verifies whichever node has sent it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from tests.api.events.test_channels_agree import receiving
from tests.chaos.network import relaying
from tests.chaos.node import Balancer, Node
from tests.interop.client import Client, Launch
from tests.interop.stage import TYPES, event_id
from tests.interop.test_stripe import verdicts
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Receiver

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("node", "pysher")]

_SETTINGS: Final = {
    "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0",
    "DESKWIRE_WEBHOOK_RETRY_AFTER_S": "0.2,0.5,2",
    "DESKWIRE_ARGON2_MEMORY_KIB": "8192",
    "DESKWIRE_SECRET": "the secret of an installation with several nodes",
}
_TRIES: Final = 60


def _problem(text: str) -> None:
    raise AssertionError(text)


@dataclass(eq=False)
class Nodes:
    """Nodes on one PostgreSQL, and their load balancer."""

    nodes: Sequence[Node]
    balancer: Balancer
    demo: dict[str, Any]
    http: httpx.AsyncClient
    written: int = 0

    async def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post until an answer comes, with one idempotency key, as a client does that must not lose anything."""
        self.written += 1
        key = f"wish-{self.written}"
        for _ in range(_TRIES):
            try:
                answer = await self.http.post(f"/v3{path}", json=body, headers={"Idempotency-Key": key})
            except httpx.TransportError:
                await trio.sleep(0.2)  # the client's own pause
                continue
            if answer.is_success:
                done: dict[str, Any] = answer.json()
                return done
            assert answer.status_code in (409, 429, 502, 503), answer.text
            await trio.sleep(0.2)  # the client's own pause
        raise AssertionError(f"never answered: {path}")

    async def feed(self) -> list[str]:
        """Return the project's envelopes from any node."""
        answer = await self.http.get("/v3/s2s/events", params={"limit": "200"})
        assert answer.json()["nextCursor"] is None
        return [event["id"] for event in answer.json()["items"]]

    def options(self, consumer_id: str) -> dict[str, Any]:
        return {
            "key": self.demo["streamKey"],
            "port": self.balancer.relay.port,
            "endpoint": f"{self.balancer.url}/v3/s2s/stream/auth",
            "serverKey": self.demo["serverKey"],
            "fields": {"consumerId": consumer_id},
        }

    @property
    def project(self) -> str:
        return f"private-project-{self.demo['projectId']}"


@asynccontextmanager
async def several(directory: Path, url: str, count: int) -> AsyncIterator[Nodes]:
    nodes = [
        Node(
            directory / f"node-{number}",
            "--allow-private-webhooks",
            environ=_SETTINGS | {"DESKWIRE_NODE": f"node-{number}", "DESKWIRE_DATABASE_URL": url},
            complain=_problem,
            note=_problem,
        )
        for number in range(count)
    ]
    balancer = Balancer(nodes)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(relaying(balancer.relay))
        nursery = await stack.enter_async_context(trio.open_nursery())
        try:
            for node in nodes:
                await node.start()
            nursery.start_soon(balancer.watch)
            await balancer.all_reachable()
            demo = nodes[0].demo()
            headers = {"Authorization": f"Bearer {demo['serverKey']}", "Connection": "close"}
            http = await stack.enter_async_context(
                httpx.AsyncClient(
                    base_url=balancer.url, headers=headers, trust_env=False, timeout=HANG_TIMEOUT_S
                )
            )
            yield Nodes(nodes, balancer, demo, http)
        finally:
            for node in nodes:
                await node.stop()  # does nothing if it never started or was killed
            nursery.cancel_scope.cancel()


def arrived(client: Client) -> list[str]:
    """Return the ids of the received events, in order of arrival."""
    return [event_id(text) for text in client.events]


def check_order(came: Sequence[str], feed: Sequence[str]) -> int:
    """Check that a consumer received the events in the order of the feed; return the number of repeated events."""
    place = {each: number for number, each in enumerate(feed)}
    newest, again = -1, 0
    for each in came:
        assert place[each] <= newest + 1, f"{each} came before {feed[newest + 1]}"
        again += place[each] <= newest
        newest = max(newest, place[each])
    assert newest == len(feed) - 1, "some never came"
    return again


async def delivered(receiver: Receiver, count: int) -> None:
    """Wait until the receiver has received this many different events."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while len({json.loads(each.body)["id"] for each in receiver.requests}) < count:
            await receiver.wait(len(receiver.requests) + 1)


@pytest.mark.parametrize("script", ["pysher_client.py", "client.mjs"])
async def test_a_consumer_and_a_receiver_miss_nothing_while_a_node_is_killed(
    script: str, tmp_path: Path, postgres_url: str, launch: Launch
) -> None:
    async with receiving() as receiver, several(tmp_path, postgres_url, 3) as stage:
        before = len(await stage.feed())
        endpoint = await stage.call("/s2s/webhooks", {"url": receiver.url})
        client = await launch(script)
        if script.endswith("py"):
            options = stage.options("one") | {"options": {"reconnect_interval": 1}}
            await client.do("connect", channel=stage.project, types=TYPES, authorization="query", **options)
        else:
            await client.do("connect", authorization="form", options={}, **stage.options("one"))
            await client.do("subscribe", channel=stage.project)
        await client.subscribed()
        (wire,) = stage.balancer.relay.wires[:1]
        victim = next(node for node in stage.nodes if node.port == wire.upstream)
        conversation = await stage.call("/s2s/conversations", {"contact": {"userId": "u1"}})
        messages = f"/s2s/conversations/{conversation['id']}/messages"
        for number in range(20):
            await stage.call(messages, {"text": f"{number}"})
        await victim.kill()
        for number in range(20, 40):
            await stage.call(messages, {"text": f"{number}"})
        feed = (await stage.feed())[before:]
        assert len(feed) == 41, "each wish has one effect, however often it was sent"
        await client.until(lambda: set(feed) <= set(arrived(client)), 60)
        again = check_order(arrived(client), feed)
        assert again <= 20, "what was confirmed did not come once more"
        await delivered(receiver, len(feed))
        cases = [
            {
                "body": request.body.decode(),
                "header": (header := request.headers["Service-Signature"]),
                "secret": endpoint["secret"],
                "now": int(header.partition(",")[0].removeprefix("t=")),
            }
            for request in receiver.requests
        ]
        assert all(await verdicts(cases))
        ids = [json.loads(request.body)["id"] for request in receiver.requests]
        check_order(ids, feed)


async def test_a_consumer_misses_nothing_while_each_node_is_restarted_in_turn(
    tmp_path: Path, postgres_url: str, launch: Launch
) -> None:
    async with several(tmp_path, postgres_url, 2) as stage:
        before = len(await stage.feed())
        client = await launch("client.mjs")
        await client.do("connect", authorization="form", options={}, **stage.options("one"))
        await client.do("subscribe", channel=stage.project)
        await client.subscribed()
        conversation = await stage.call("/s2s/conversations", {"contact": {"userId": "u1"}})
        messages, over = f"/s2s/conversations/{conversation['id']}/messages", trio.Event()

        async def talk() -> None:
            while not over.is_set():
                await stage.call(messages, {"text": "Hello"})
                await trio.sleep(0.1)  # a pace that the machine keeps up with

        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk)
            for node in stage.nodes:
                assert await node.leave(0.0) == 0
                await stage.balancer.all_reachable()
            over.set()
        feed = (await stage.feed())[before:]
        assert len(feed) == stage.written, "each wish has one effect, however often it was sent"
        await client.until(lambda: feed[-1] in arrived(client), 60)
        again = check_order(arrived(client), feed)
        assert len(client.told("subscribed")) > 1
        assert all(not each["data"]["gap"] for each in client.told("subscribed"))
        print(f"{len(feed)} events, {len(client.told('subscribed'))} subscriptions, {again} once more")
