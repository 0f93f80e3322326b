"""Results of attempts on PostgreSQL: one commit with two exchanges stores many of them (ADR 105)."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest
import trio

from deskwire.engine.core.store import InlineJob
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.delivery import Attempt, Delivery
from deskwire.engine.webhooks.recorder import AttemptResult, Recorded, Recorder, Superseded
from deskwire.engine.webhooks.retry.circuit_breaker import CLOSED, CircuitBreaker
from deskwire.engine.webhooks.retry.schedule import DeliveryEnd, Retry
from tests.support.builders import NOON, endpoint
from tests.support.postgres_nodes import NodeHere, node, rows, until_one_waits

_RESULTS = 100


async def recorder_of(here: NodeHere) -> tuple[Recorder, int]:
    """Return the recorder of the endpoint, whose lease this node has, and the endpoint's storage key."""
    (whom,) = await here.store.read(lambda reader: reader.endpoints())
    generation = await here.store.write(lambda tx: tx.acquire_endpoint_lease(whom.rowid, 0, 1))
    assert generation == 1
    breaker = CircuitBreaker(CLOSED)
    return Recorder(here.store, whom, breaker, 0.1, lambda: NOON, generation), whom.rowid


async def deliveries_made(here: NodeHere, count: int) -> Sequence[Delivery]:
    """Make deliveries of that many conversations to one endpoint."""
    await here.store.write(lambda tx: tx.insert_endpoint(endpoint()))
    while sum(len(commit.deliveries) for commit in here.commits) < count:
        await here.new_conversation(f"user-{len(here.commits)}")
    return [delivery for commit in here.commits for delivery in commit.deliveries][:count]


def result(delivery: Delivery, *, retried: bool = False) -> AttemptResult:
    if not retried:
        return AttemptResult(
            delivery, Attempt(1, NOON, 5, 204, None, b""), DeliveryEnd("delivered"), NOON + 5
        )
    verdict = Retry(NOON + 2_000, NOON, NOON)
    return AttemptResult(delivery, Attempt(1, NOON, 5, 500, "status 500", b"no"), verdict, NOON + 5)


async def recorded(recorder: Recorder, results: Sequence[AttemptResult]) -> Recorded:
    for each in results:
        recorder.add(each)
    done = await recorder.next()
    assert done is not None
    return done


def rounds(here: NodeHere) -> dict[str, int]:
    return {name: [*each.cumulative()][-1][1] for name, each in here.store.shared.rounds.items()}


def commits(here: NodeHere) -> int:
    return [*here.store.commits.jobs.cumulative()][-1][1]


@pytest.mark.parametrize("retried", [False, True], ids=["delivered", "retried"])
async def test_a_hundred_results_take_one_commit_with_two_exchanges(
    postgres_url: str, *, retried: bool
) -> None:
    async with node(postgres_url) as here:
        made = await deliveries_made(here, _RESULTS)
        recorder, _ = await recorder_of(here)
        rounds_before, commits_before = rounds(here), commits(here)

        done = await recorded(recorder, [result(each, retried=retried) for each in made])

        assert [kept for _, kept in done.results] == [True] * _RESULTS
        taken = {name: count - rounds_before[name] for name, count in rounds(here).items()}
        assert taken == {"read": 1, "heads": 0, "commit": 1}
        assert commits(here) == commits_before + 1
    status = "pending" if retried else "delivered"
    stored = rows(postgres_url, "SELECT status, attempts FROM deliveries WHERE attempts > 0")
    assert stored == [(status, 1)] * _RESULTS
    assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(_RESULTS,)]


async def test_results_of_ended_deliveries_are_skipped(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        made = await deliveries_made(here, 6)
        recorder, _ = await recorder_of(here)
        with psycopg.connect(postgres_url) as other:
            other.execute(
                "UPDATE deliveries SET status = 'skipped' WHERE position = ANY(%s)",
                ([each.position for each in made[1::2]],),
            )
            async with trio.open_nursery() as nursery:

                async def record() -> None:
                    done = await recorded(recorder, [result(each) for each in made])
                    assert [kept for _, kept in done.results] == [True, False] * 3

                nursery.start_soon(record)
                await until_one_waits(postgres_url)
                other.commit()
    assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(3,)]


async def test_superseded_generation_records_nothing(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        made = await deliveries_made(here, 6)
        recorder, whom = await recorder_of(here)
        assert await here.store.write(lambda tx: tx.acquire_endpoint_lease(whom, 1, 2)) == 2
        with pytest.raises(Superseded):
            await recorded(recorder, [result(each) for each in made])
    assert rows(postgres_url, "SELECT DISTINCT status FROM deliveries") == [("pending",)]
    assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(0,)]


async def test_takeover_waits_for_a_running_record(postgres_url: str) -> None:
    """The generation is locked before the deliveries, so a takeover and a record never block each other."""
    async with node(postgres_url) as here:
        made = await deliveries_made(here, 3)
        recorder, whom = await recorder_of(here)
        with psycopg.connect(postgres_url) as other:
            other.execute("UPDATE couriers SET generation = 2, incarnation = 2 WHERE endpoint = %s", (whom,))
            async with trio.open_nursery() as nursery:

                async def record() -> None:
                    with pytest.raises(Superseded):
                        await recorded(recorder, [result(each) for each in made])

                nursery.start_soon(record)
                await until_one_waits(postgres_url)
                free = "SELECT 1 FROM deliveries WHERE status = 'pending' FOR UPDATE NOWAIT"
                assert len(rows(postgres_url, free)) == 3, "no delivery is locked while it waits"
                other.commit()
    assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(0,)]


async def test_results_of_two_recorders_share_a_commit(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        made = await deliveries_made(here, 8)
        (whom,) = {each.endpoint for each in made}
        before = rounds(here)
        jobs = [made[:4], made[4:]]
        attempt = Attempt(1, NOON, 5, 204, None, b"")
        kept: list[bool] = []

        async def record(part: Sequence[Delivery]) -> None:
            def job(tx: Transaction) -> list[bool]:
                tx.prefetch_results(whom, part)
                return [tx.record_end(each, attempt, "delivered", None) for each in part]

            kept.extend(await here.store.write(InlineJob(job)))

        async with trio.open_nursery() as nursery:
            for part in jobs:
                nursery.start_soon(record, part)
        assert kept == [True] * 8
        assert rounds(here)["commit"] == before["commit"] + 1
