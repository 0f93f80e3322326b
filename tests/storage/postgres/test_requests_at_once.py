"""Concurrent requests with one `Idempotency-Key` on several nodes (ADR 60)."""

from __future__ import annotations

import threading

import pytest
import trio

from deskwire.engine.core.errors import AlreadyAnswered
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.store import InlineJob, InlineQuery
from deskwire.engine.idempotency.idempotent_requests import IdempotentRequest, InProgress, StoredResponses
from deskwire.engine.ports import Transaction
from tests.support.builders import NOON
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres_nodes import NodeHere, node, rows


def once_of(key: str) -> IdempotentRequest:
    answers = StoredResponses(Secrets("secret"), lambda: NOON, 100, several=True)
    with answers.in_flight("a caller", key) as once:
        return once.with_body(b"{}")


def made(tx: Transaction) -> str:
    tx.try_out()
    return "con_1"


async def test_request_running_on_another_node_is_refused_and_later_replayed(
    postgres_url: str,
) -> None:
    once, held, go_on = once_of("k1"), threading.Event(), threading.Event()

    def slow(tx: Transaction) -> str:
        held.set()
        assert go_on.wait(8)
        return made(tx)

    def shown(identifier: str) -> dict[str, str]:
        return {"id": identifier}

    async with node(postgres_url, "a") as a, node(postgres_url, "b") as b, trio.open_nursery() as nursery:
        await b.store.write(
            InlineJob(made)
        )  # opens the session now, because a job that takes too long is ended
        nursery.start_soon(a.store.write, once.around(slow, shown))
        await trio.to_thread.run_sync(held.wait)
        job = once.around(made, shown)
        with pytest.raises(InProgress):
            await b.store.write(InlineJob(job))
        go_on.set()
        await _answered(b, once)
        with pytest.raises(AlreadyAnswered) as found:
            await b.store.write(InlineJob(job))
        assert found.value.body == b'{"id":"con_1"}'
    assert rows(postgres_url, "SELECT count(*) FROM kept_answers") == [(1,)]


async def _answered(here: NodeHere, once: IdempotentRequest) -> None:
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            try:
                await here.store.read(InlineQuery(once.check))
            except AlreadyAnswered:
                return
            await trio.lowlevel.checkpoint()


async def test_one_of_many_concurrent_requests_on_two_nodes_is_carried_out(postgres_url: str) -> None:
    """Each request is carried out once, refused as still running, or answered like the first."""
    done, others = list[str](), list[type[BaseException]]()
    async with node(postgres_url, "a") as a, node(postgres_url, "b") as b:

        async def ask(here: NodeHere, key: str) -> None:
            job = once_of(key).around(made, lambda identifier: {"id": identifier})
            try:
                await here.store.write(InlineJob(job))
            except (AlreadyAnswered, InProgress) as refused:
                others.append(type(refused))
            else:
                done.append(key)

        keys = [f"k{number}" for number in range(20)]
        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(ask, a, key)
                nursery.start_soon(ask, b, key)
    assert sorted(done) == sorted(keys)
    assert len(others) == 20


async def test_replay_is_sent_after_a_commit(postgres_url: str) -> None:
    """Rows that were read may be lost when the standby takes over; rows before an acknowledged commit are
    not.
    """
    once = once_of("k1")
    async with node(postgres_url, "a") as a:
        await a.store.write(InlineJob(once.around(made, lambda identifier: {"id": identifier})))
        before = rows(postgres_url, "SELECT max(batch) FROM lanes")
        with pytest.raises(AlreadyAnswered):
            await a.store.write(InlineJob(once.check))
        assert rows(postgres_url, "SELECT max(batch) FROM lanes") > before
