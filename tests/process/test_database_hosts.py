"""Nodes on a primary and its standby: they continue on the standby however the primary dies, and stop in time."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import httpx
import pytest
import trio

from tests.support.database_pair import DATABASE, Death, Pair, database_pair
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.node_processes import ENVIRON, Nodes, running_nodes
from tests.support.postgres import USER
from tests.support.postgres_nodes import rows
from tests.support.sockets.server_process import LOOK_S, EndedError, Server

DEATHS = get_args(Death)
BACK_S = 6.0
"""Time from the promotion to the first change that is stored, and to the readiness of a node that starts then: two more."""
SLACK = float(os.environ.get("DESKWIRE_TEST_SLACK", "2.5"))
"""How much slower a machine may be that does much else."""
SHUTDOWN_S = 8.0


@dataclass
class Writer:
    """A client that creates one conversation after the other at a node, and notes when each was acknowledged."""

    nodes: Nodes
    acknowledged: list[tuple[float, str]] = field(default_factory=list)

    async def run(self) -> None:
        number = 0
        while True:
            number += 1
            with trio.move_on_after(3):
                async with self.nodes.client(0, self.nodes.key) as http:
                    while True:
                        await self._write(http, f"user-{number}")
                        number += 1
            await trio.sleep(0.05)  # a short pause before a new connection, as a client makes

    async def _write(self, http: httpx.AsyncClient, user: str) -> None:
        try:
            made = await http.post("/s2s/conversations", json={"contact": {"userId": user}})
        except httpx.TransportError:
            return
        if made.is_success:
            self.acknowledged.append((trio.current_time(), made.json()["id"]))
        else:
            await trio.sleep(
                0.05
            )  # its Retry-After is longer, but this test measures when writes succeed again

    async def first_after(self, moment: float) -> float:
        """Return the seconds from a moment to the first acknowledgement after it."""
        while True:
            for at, _ in self.acknowledged:
                if at > moment:
                    return at - moment
            await trio.sleep(0.02)  # poll: the writer runs in another task


@asynccontextmanager
async def written_to(pair: Pair, directory: Path) -> AsyncIterator[tuple[Nodes, Writer]]:
    """A node on the pair that is written to, for the block."""
    environ = {"DESKWIRE_SHUTDOWN_S": str(SHUTDOWN_S)}
    async with running_nodes(directory, "a", environ, pair.url) as nodes, trio.open_nursery() as nursery:
        writer = Writer(nodes)
        nursery.start_soon(writer.run)
        with trio.fail_after(HANG_TIMEOUT_S):
            await writer.first_after(trio.current_time())
        yield nodes, writer
        nursery.cancel_scope.cancel()


def fresh_node(nodes: Nodes, directory: Path) -> Server:
    """A node that has not run before."""
    server = Server(
        directory / "fresh",
        "--allow-private-webhooks",
        environ={
            **ENVIRON,
            "DESKWIRE_DATABASE_URL": nodes.url,
            "DESKWIRE_NODE": "fresh",
        },
    )
    server.directory.mkdir()
    return server


@pytest.mark.parametrize("death", DEATHS)
async def test_writers_are_back_soon_after_a_promotion(tmp_path: Path, death: Death) -> None:
    with database_pair() as pair:
        async with written_to(pair, tmp_path) as (nodes, writer):
            await trio.to_thread.run_sync(pair.catch_up)
            await trio.to_thread.run_sync(pair.let_die, death)
            await trio.sleep(2)  # an HA manager needs a moment to notice
            before = [each for _, each in writer.acknowledged]
            await trio.to_thread.run_sync(pair.promote)
            promoted = trio.current_time()
            with trio.fail_after(HANG_TIMEOUT_S):
                back_s = await writer.first_after(promoted)
            fresh = fresh_node(nodes, tmp_path)
            began = trio.current_time()
            try:
                await fresh.start()
                ready_s = trio.current_time() - began
            finally:
                await fresh.stop()
            load = os.getloadavg()[0]
            print(f"{death}: first write {back_s:.1f} s, fresh node {ready_s:.1f} s, load {load:.0f}")
            assert back_s < BACK_S * SLACK
            assert ready_s < (BACK_S + 2) * SLACK
            url = pair.url.replace(str(pair.gates[0].port), str(pair.gates[1].port))
            stored = {each for (each,) in rows(url, "SELECT id FROM conversations")}
            assert {each for at, each in writer.acknowledged if at > promoted} <= stored
            assert len(set(before) - stored) <= 1, (
                "the standby had caught up, except for the change under way"
            )


@pytest.mark.parametrize("death", DEATHS)
async def test_node_stops_in_time_after_any_failure_of_the_database(tmp_path: Path, death: Death) -> None:
    with database_pair() as pair:
        async with written_to(pair, tmp_path) as (nodes, _):
            await trio.to_thread.run_sync(pair.let_die, death)
            began = trio.current_time()
            status = await nodes.servers[0].stop()
            took_s = trio.current_time() - began
            print(f"{death}: ended after {took_s:.1f} s, load {os.getloadavg()[0]:.0f}")
            assert status == 0
            assert took_s < SHUTDOWN_S + 1 * SLACK


async def test_start_on_a_hanging_database_ends_with_the_signal(tmp_path: Path) -> None:
    with database_pair() as pair:
        await trio.to_thread.run_sync(pair.let_die, "hung")
        pair.gates[1].vanish()
        node = Server(tmp_path / "a", environ={**ENVIRON, "DESKWIRE_DATABASE_URL": pair.url})
        node.directory.mkdir()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_ends_before_it_is_ready, node)
            with trio.fail_after(HANG_TIMEOUT_S):
                await _takes_sigterm(node)
            await trio.sleep(2)  # then it waits for the database
            began = trio.current_time()
            assert await node.stop() == 0
            assert trio.current_time() - began < 2 * SLACK


async def _takes_sigterm(node: Server) -> None:
    """Wait until the process handles SIGTERM; before that the signal would end the interpreter at once."""
    while not _handles_sigterm(node):  # noqa: ASYNC110
        await trio.sleep(LOOK_S)  # poll: there is no notification


def _handles_sigterm(node: Server) -> bool:
    if not node.started:
        return False
    lines = Path(f"/proc/{node.pid}/status").read_text().splitlines()
    caught = next(line for line in lines if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


async def _ends_before_it_is_ready(node: Server) -> None:
    with pytest.raises(EndedError):
        await node.start()


async def test_nodes_leave_an_old_primary_and_never_go_back_to_it(tmp_path: Path) -> None:
    """A standby is promoted while the primary lives on, and then dies: two primaries, and then the wrong one alone."""
    with database_pair() as pair:
        async with written_to(pair, tmp_path) as (nodes, writer):
            old, new = (
                f"postgresql://{USER}@127.0.0.1:{server.port}/{DATABASE}" for server in (pair.old, pair.new)
            )
            await trio.to_thread.run_sync(pair.promote)
            await nodes.servers[0].wait_for_log("database.identity_refused")
            left_at = trio.current_time()
            with trio.fail_after(HANG_TIMEOUT_S):
                await writer.first_after(left_at)
            assert await _metric(nodes, "older_timeline") == 1
            assert (await _ready(nodes)).status_code == 200, "the right one is there"
            stored = {each for (each,) in rows(new, "SELECT id FROM conversations")}
            assert {each for at, each in writer.acknowledged if at > left_at} <= stored
            count = "SELECT count(*) FROM conversations"
            frozen = rows(old, count)

            fresh = fresh_node(nodes, tmp_path)
            try:
                await fresh.start()
                assert rows(new, "SELECT count(*) FROM nodes WHERE node = 'fresh'") == [(1,)]
            finally:
                await fresh.stop()

            await trio.to_thread.run_sync(pair.new.kill)
            with trio.fail_after(HANG_TIMEOUT_S):
                while (await _ready(nodes)).json().get("code") != "wrong_database":  # noqa: ASYNC110
                    await trio.sleep(0.1)  # poll: another process detects it
            answer = await _ready(nodes)
            assert answer.status_code == 503
            assert "timeline 1" in answer.json()["detail"]
            assert rows(old, count) == frozen, "nothing was written to a primary that was replaced"
            await trio.to_thread.run_sync(pair.new.start)
            back_at = trio.current_time()
            with trio.fail_after(HANG_TIMEOUT_S):
                await writer.first_after(back_at)


async def _ready(nodes: Nodes) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=HANG_TIMEOUT_S) as http:
        return await http.get(f"{nodes.servers[0].url}/readyz")


async def _metric(nodes: Nodes, reason: str) -> float:
    async with httpx.AsyncClient(trust_env=False, timeout=HANG_TIMEOUT_S) as http:
        text = (await http.get(f"{nodes.servers[0].url}/metrics")).text
    line = next(each for each in text.splitlines() if f'identity_refused{{reason="{reason}"}}' in each)
    return float(line.rpartition(" ")[2])
