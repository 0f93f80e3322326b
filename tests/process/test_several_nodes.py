"""Nodes as processes on one PostgreSQL: each node knows the changes of all, and deliveries go on when some nodes stop."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import orjson
import psycopg
import pytest
import trio

from deskwire.engine.cluster.membership import LEASE_DURATION_S
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.node_processes import SETTLE_S, Nodes, running_nodes
from tests.support.sockets.receivers import read_request

_ENDPOINTS: Final = 5


async def new_key(nodes: Nodes, http: httpx.AsyncClient) -> dict[str, Any]:
    made = await http.post(f"/projects/{nodes.project}/keys", json={"label": "to be revoked"})
    assert made.status_code == 200, made.text
    found: dict[str, Any] = made.json()
    return found


async def revoke(nodes: Nodes, http: httpx.AsyncClient, key: dict[str, Any]) -> float:
    """Revoke a key; the seconds until that was answered."""
    began = trio.current_time()
    gone = await http.post(f"/projects/{nodes.project}/keys/{key['id']}/revoke", json={})
    assert gone.status_code == 200, gone.text
    return trio.current_time() - began


async def used(http: httpx.AsyncClient) -> int:
    return (await http.get("/s2s/webhooks")).status_code


async def test_revoked_key_is_invalid_at_every_node_after_the_response(tmp_path: Path) -> None:
    async with running_nodes(tmp_path) as nodes, nodes.client(0, nodes.token) as owner:
        times = []
        for _ in range(20):
            key = await new_key(nodes, owner)
            async with nodes.client(1, key["key"]) as one, nodes.client(2, key["key"]) as other:
                assert (await used(one), await used(other)) == (200, 200), "both remember it now"
                times.append(await revoke(nodes, owner, key))
                assert (await used(one), await used(other)) == (401, 401)
        print(f"barrier: median {sorted(times)[10] * 1000:.1f} ms, longest {max(times) * 1000:.1f} ms")
        rest_s = max(0.0, SETTLE_S - sum(times))
        await trio.sleep(rest_s)  # a node judges others once it has been there for as long as a lease
        key = await new_key(nodes, owner)
        async with nodes.client(1, key["key"]) as one, nodes.client(2, key["key"]) as stopped:
            assert (await used(one), await used(stopped)) == (200, 200)
            with nodes.stopped(2):
                took = await revoke(nodes, owner, key)
                print(f"barrier with a stopped node: {took:.2f} s")
                assert took < LEASE_DURATION_S + 2, "the rest of its lease, and no more"
                assert await used(one) == 401
            assert await used(stopped) in (401, 503), "503 as long as it does not know what it has missed"
            with trio.fail_after(HANG_TIMEOUT_S):
                while (answer := await used(stopped)) != 401:
                    assert answer == 503
                    await trio.sleep(0.05)  # poll: there is no notification


async def test_revoked_machine_credential_is_invalid_at_every_node_after_the_response(
    tmp_path: Path,
) -> None:
    async with running_nodes(tmp_path) as nodes, nodes.client(0, nodes.token) as owner:
        path, body = (
            f"/projects/{nodes.project}/credentials",
            {"name": "sync", "permissions": ["webhooks.manage"]},
        )
        for number in range(10):
            made = (await owner.post(path, json=body)).json()
            async with nodes.client(1, made["secret"]) as one, nodes.client(2, made["secret"]) as other:
                assert (await used(one), await used(other)) == (200, 200), "both remember it now"
                if number % 2:
                    rotate = f"{path}/{made['id']}/rotate"
                    gone = await owner.post(rotate, json={"overlapSeconds": 0})
                else:
                    gone = await owner.delete(f"{path}/{made['id']}")
                assert gone.status_code == 200, gone.text
                assert (await used(one), await used(other)) == (401, 401)


@dataclass(frozen=True)
class Arrival:
    """An attempt at a delivery: its id, the endpoint's number, the event's sequence, the time."""

    delivery: str
    endpoint: int
    sequence: int
    at: float


@dataclass
class Endpoints:
    """Receivers of webhooks, which know the process that each request has come from, and whose it should have been."""

    nodes: Nodes
    port: int = 0
    arrived: list[Arrival] = field(default_factory=list)
    superseded: int = 0
    _limit: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(1))
    _database: Any = None

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        task_status.started()
        with psycopg.connect(self.nodes.url, autocommit=True) as self._database:
            await trio.serve_listeners(self._serve_one, [listener])

    async def _serve_one(self, stream: trio.SocketStream) -> None:
        sender = self._sender(stream.socket.getpeername()[1])
        data = b""
        try:
            while True:
                request, data = await read_request(stream, data, 0)
                endpoint = int(request.path.rpartition("/")[2])
                holder = await trio.to_thread.run_sync(self._holder, endpoint, limiter=self._limit)
                self.superseded += holder is not None and holder != sender
                sequence = orjson.loads(request.body)["sequence"]
                delivery = request.headers["Service-Delivery-Id"]
                self.arrived.append(Arrival(delivery, endpoint, sequence, trio.current_time()))
                await stream.send_all(b"HTTP/1.1 204 No Content\r\n\r\n")
        except (EOFError, trio.BrokenResourceError):
            pass  # the node has closed it, or was killed

    def _holder(self, endpoint: int) -> str | None:
        row = self._database.execute(
            "SELECT n.node FROM couriers c JOIN nodes n ON n.incarnation = c.incarnation "
            "JOIN endpoints e ON e.rowid = c.endpoint WHERE e.url LIKE %s",
            (f"%/{endpoint}",),
        ).fetchone()
        return None if row is None else row[0]

    def _sender(self, port: int) -> str:
        """The node that a connection has come from."""
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if (
                int(fields[1].rpartition(":")[2], 16) == port
                and int(fields[2].rpartition(":")[2], 16) == self.port
            ):
                for server in self.nodes.servers:
                    for file in Path(f"/proc/{server.pid}/fd").iterdir():
                        try:
                            if os.readlink(file) == f"socket:[{fields[9]}]":
                                return server.directory.name
                        except FileNotFoundError:
                            continue
        return "gone"

    def went_back(self) -> int:
        """Count the events that an endpoint first got after a later one of their conversation."""
        count, newest, seen = 0, Counter[int](), set[str]()
        for each in self.arrived:
            if each.delivery not in seen:
                seen.add(each.delivery)
                count += each.sequence < newest[each.endpoint]
                newest[each.endpoint] = max(newest[each.endpoint], each.sequence)
        return count

    def longest_pause(self) -> float:
        """The longest time between two arrivals at an endpoint."""
        last: dict[int, float] = {}
        longest = 0.0
        for each in self.arrived:
            longest = max(longest, each.at - last.get(each.endpoint, each.at))
            last[each.endpoint] = each.at
        return longest

    def twice(self) -> int:
        """Count the deliveries that were attempted more than once."""
        return sum(count > 1 for count in Counter(each.delivery for each in self.arrived).values())


@pytest.mark.long
async def test_deliveries_continue_when_nodes_stop_and_die_and_superseded_couriers_send_nothing(
    tmp_path: Path,
) -> None:
    """Figures of the faults are printed: pytest's `-s` shows them."""
    async with (
        running_nodes(tmp_path) as nodes,
        trio.open_nursery() as nursery,
        nodes.client(0, nodes.key) as http,
    ):
        endpoints, over = Endpoints(nodes), trio.Event()
        await nursery.start(endpoints.serve)
        for number in range(_ENDPOINTS):
            url = f"http://127.0.0.1:{endpoints.port}/{number}"
            made = await http.post("/s2s/webhooks", json={"url": url, "events": ["message.created"]})
            assert made.status_code == 200, made.text
        conversation = await http.post("/s2s/conversations", json={"contact": {"userId": "u"}})
        messages = f"/s2s/conversations/{conversation.json()['id']}/messages"
        sent = 0

        async def post() -> None:
            nonlocal sent
            while not over.is_set():
                answer = await http.post(messages, json={"text": "Hello"})
                assert answer.status_code == 200, answer.text
                sent += 1
                await trio.sleep(0.05)  # a pace that the machine keeps up with

        nursery.start_soon(post)
        await trio.sleep(SETTLE_S)  # a node judges others once it has been there for as long as a lease
        for stopped in (1, 2, 1, 2):
            with nodes.stopped(stopped):
                await trio.sleep(12)  # more than two leases
            await trio.sleep(SETTLE_S)  # it takes its share again
        await nodes.servers[2].kill()
        await trio.sleep(LEASE_DURATION_S + 3)  # it is given up
        over.set()
        with trio.fail_after(HANG_TIMEOUT_S):
            while len({each.delivery for each in endpoints.arrived}) < sent * _ENDPOINTS:  # noqa: ASYNC110
                await trio.sleep(0.1)  # poll: there is no notification
        print(
            f"{len(endpoints.arrived)} attempts at {sent * _ENDPOINTS} deliveries, by a superseded courier "
            f"{endpoints.superseded}, twice {endpoints.twice()}, order went back {endpoints.went_back()}, "
            f"longest pause of an endpoint {endpoints.longest_pause():.1f} s"
        )
        nursery.cancel_scope.cancel()
    assert endpoints.superseded == 0
    assert endpoints.went_back() == 0
    assert endpoints.twice() <= 5 * _ENDPOINTS, "what was under way when a node stopped"
    assert endpoints.longest_pause() < LEASE_DURATION_S + 4
