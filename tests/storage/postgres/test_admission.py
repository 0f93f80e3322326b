"""Of two nodes that can't share a database, one is refused with an explanation (ADR 61)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from deskwire.engine.cluster.cluster import NoBus
from deskwire.engine.cluster.membership import LEASE_DURATION_S, ClusterMembership
from deskwire.engine.cluster.ports import NotAdmitted
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.errors import Unavailable
from deskwire.storage.postgres.admin.installation import InstallationIdentity, claim
from deskwire.storage.postgres.commit.commit_log import delete_old_lanes
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.heartbeats import HeartbeatStore
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres_nodes import node, rows


@asynccontextmanager
async def candidate(url: str, name: str, files: str) -> AsyncIterator[ClusterMembership]:
    async with trio.open_nursery() as nursery:
        beats = HeartbeatStore(Database(url, name), nursery)
        try:
            yield ClusterMembership(beats, NoBus(), name, "test", wall_clock, files)
        finally:
            nursery.cancel_scope.cancel()
            beats.close()


async def lives(membership: ClusterMembership, scope: trio.CancelScope, outcomes: list[str]) -> None:
    """Note "lives" for each lease, or the reason of a refusal; cancel the scope after the second one."""

    async def note() -> None:
        await membership.until_valid()
        outcomes.append("lives")
        if len(outcomes) == 2:
            scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(note)
            nursery.start_soon(membership.run)
    except* NotAdmitted as refusals:
        outcomes.append(str(first_of(refusals)))
        if len(outcomes) == 2:
            scope.cancel()


def first_of(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (("a", "disk"), ("b", "disk"), "which no other node sees"),
        (("a", "disk"), ("b", "database"), "All need the same"),
        (("a", "database"), ("b", "s3://uploads"), "All need the same"),
        (("a", "database"), ("a", "database"), "DESKWIRE_NODE of its own"),
        (("a", "database"), ("b", "database"), "lives"),
    ],
)
async def test_one_of_two_nodes_that_start_together_is_refused(
    postgres_url: str, one: tuple[str, str], other: tuple[str, str], words: str
) -> None:
    outcomes: list[str] = []
    async with candidate(postgres_url, *one) as first, candidate(postgres_url, *other) as second:
        with trio.fail_after(HANG_TIMEOUT_S):
            async with trio.open_nursery() as nursery:
                for each in (first, second):
                    nursery.start_soon(lives, each, nursery.cancel_scope, outcomes)
    assert "lives" in outcomes
    outcomes.remove("lives")
    assert words in outcomes[0]


async def test_node_that_joins_again_is_not_refused_by_its_own_lease(postgres_url: str) -> None:
    """The node joins again because the response to its first attempt was lost."""
    async with candidate(postgres_url, "a", "disk") as a:
        for _ in range(2):
            await a._join()
    assert rows(postgres_url, "SELECT node FROM nodes") == [("a",)]


async def test_claim_waits_for_the_end_of_a_killed_nodes_lease(postgres_url: str) -> None:
    identity = InstallationIdentity(["an-id"], "disk")
    async with candidate(postgres_url, "a", "disk") as killed:
        began = trio.current_time()
        await killed._join()
    await trio.to_thread.run_sync(claim, postgres_url, identity, "a")
    assert LEASE_DURATION_S - 0.1 < trio.current_time() - began < LEASE_DURATION_S + 5
    async with candidate(postgres_url, "a", "disk") as next_one:
        await next_one._join()
    assert rows(postgres_url, "SELECT count(*) FROM nodes") == [(1,)], "that of the killed one is removed"


@pytest.mark.parametrize("name", ["a", "b"])
async def test_claim_beside_a_live_node_is_refused(postgres_url: str, name: str) -> None:
    async with candidate(postgres_url, "a", "disk") as first, trio.open_nursery() as nursery:
        await nursery.start(first.run)
        began = trio.current_time()
        with pytest.raises(NotAdmitted):
            await trio.to_thread.run_sync(claim, postgres_url, InstallationIdentity(["an-id"], "disk"), name)
        assert trio.current_time() - began < LEASE_DURATION_S
        nursery.cancel_scope.cancel()


async def test_lanes_of_dead_nodes_are_deleted_and_can_be_opened_again(
    postgres_url: str,
) -> None:
    async with (
        candidate(postgres_url, "here", "database") as alive,
        node(postgres_url, "here") as here,
        node(postgres_url, "gone") as gone,
        node(postgres_url, "young") as young,
    ):
        await alive._join()
        conversation = await here.new_conversation()
        for each in (gone, young):
            await each.post(conversation)
        aged = "UPDATE lanes SET touched = touched - interval '1 day 1 min' WHERE node <> 'young' RETURNING 1"
        assert rows(postgres_url, aged)
        connection = BlockingConnection(Database(postgres_url, "duty"), "setup")
        assert await trio.to_thread.run_sync(delete_old_lanes, connection) >= 1
        connection.close()
        left = {name for (name,) in rows(postgres_url, "SELECT DISTINCT node FROM lanes")}
        assert left == {"here", "young"}
        await here.post(conversation)
        with pytest.raises(Unavailable, match="nothing is stored"):
            await gone.post(conversation)
        await gone.post(conversation)
    assert rows(postgres_url, "SELECT count(*) FROM messages") == [(4,)]
