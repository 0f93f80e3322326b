"""Nodes of a database that forbids LISTEN go on by looking, a little later, and say so."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Final

import httpx
import pytest
import trio

from tests.plants.plants import plants_for
from tests.support.frames import Listening, listen
from tests.support.node_processes import Nodes, running_nodes
from tests.support.postgres import fresh_database
from tests.support.postgres_nodes import line_to

pytestmark = pytest.mark.long

_SOON_S: Final = 5.0
_REVOCATIONS: Final = 5
_NO_LISTEN: Final = (b'LISTEN "', b'NOTHING"')
"""A statement that the server refuses in place of each LISTEN."""


async def used_after_its_end(nodes: Nodes, owner: httpx.AsyncClient) -> int:
    """Revoke a server key at the first node that the second one has just accepted; return what that answers to it then."""
    key = (await owner.post(f"/projects/{nodes.project}/keys", json={"label": "k"})).json()
    async with nodes.client(1, key["key"]) as other:
        assert (await other.get("/s2s/webhooks")).status_code == 200
        gone = await owner.post(f"/projects/{nodes.project}/keys/{key['id']}/revoke", json={})
        assert gone.status_code == 200, gone.text
        return (await other.get("/s2s/webhooks")).status_code


@pytest.mark.parametrize("bug", plants_for("processes"))
async def test_a_planted_bug_of_several_nodes_is_found_within_some_revocations(
    tmp_path: Path, bug: str
) -> None:
    with fresh_database() as database, line_to(database) as line:
        line.altered = _NO_LISTEN
        async with (
            running_nodes(tmp_path, "ab", url=line.url, bug=bug) as nodes,
            nodes.client(0, nodes.token) as owner,
        ):
            answers = [await used_after_its_end(nodes, owner) for _ in range(_REVOCATIONS)]
    assert 200 in answers, f"{_REVOCATIONS} revocations have not shown {bug}"


async def test_without_notifications_events_still_pass_between_nodes_and_the_log_warns(
    tmp_path: Path,
) -> None:
    with fresh_database() as database, line_to(database) as line:
        line.altered = _NO_LISTEN
        async with (
            running_nodes(tmp_path, "ab", url=line.url) as nodes,
            nodes.client(0, nodes.key) as first,
            nodes.client(0, nodes.token) as owner,
            trio.open_nursery() as nursery,
        ):
            for server in nodes.servers:
                await server.wait_for_log("storage.bus_lost")
                assert "nodes poll the database in the meantime" in server.log()
            consumer, channel = Listening("one"), f"private-project-{nodes.project}"
            url = nodes.servers[1].url
            nursery.start_soon(listen, url, first, nodes.stream_key, channel, consumer)
            await consumer.until(lambda: consumer.from_s < inf)
            made = await first.post("/s2s/conversations", json={"contact": {"userId": "u"}})
            for number in range(1, 4):
                path = f"/s2s/conversations/{made.json()['id']}/messages"
                assert (await first.post(path, json={"text": "Hello"})).status_code == 200
                await consumer.until_it_has_more(number, _SOON_S)
            began = trio.current_time()
            assert await used_after_its_end(nodes, owner) == 401
            assert trio.current_time() - began < _SOON_S
            taker = Listening("two")
            nursery.start_soon(listen, nodes.servers[0].url, first, nodes.stream_key, channel, taker)
            await taker.until_it_holds()
            await consumer.until_it_is_over()
            for server in nodes.servers:
                assert server.log().count("storage.bus_lost") == 1, "once, however often it is tried again"
            nursery.cancel_scope.cancel()
