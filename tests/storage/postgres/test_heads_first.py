"""Batches under load at several nodes, which lock the project's head before they choose jobs (ADR 105)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
import trio

from deskwire.engine.conversations.commands import Close
from deskwire.engine.core.store import InlineJob
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from tests.support.builders import NOON, PROJECT, create
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres_nodes import NodeHere, check_whole, node, rows, until_one_waits

LOCK = "SELECT 1 FROM project_heads WHERE project = %s FOR UPDATE"


class Adding:
    """A job that appends an event to the project's log, after an optional first step."""

    order = "of the same"

    def __init__(self, before: Callable[[Any], object] = bool, log: int | None = PROJECT.rowid) -> None:
        self.log = log
        self._before = before
        self.runs = 0

    def needs(self, *, again: bool) -> Iterable[Callable[[Any], object]]:
        return [self]

    def __call__(self, tx: Any) -> None:
        self.runs += 1
        self._before(tx)
        tx.append_event(PROJECT, EventDraft("conversation.created", None, {}), None, NOON)

    def again(self, tx: Transaction) -> None:
        raise NotImplementedError


@asynccontextmanager
async def waiting_batch(
    url: str, here: NodeHere, first: Callable[[], None], count: int = 1
) -> AsyncIterator[psycopg.Connection]:
    """Make a batch wait for the head that the connection has locked.

    The jobs submitted by `first` arrive during the batch before. Another node must have added to the
    project's log, or the batch would lock the head last.
    """
    ended = trio.Event()
    with psycopg.connect(url) as other:

        def lock_again(_: object) -> None:
            other.execute(LOCK, (PROJECT.rowid,))
            ended.set()

        other.execute(LOCK, (PROJECT.rowid,))
        here.store.submit(InlineJob(Adding(log=None)), lock_again)
        await until_one_waits(url)
        first()
        await until_queued(here, count)
        other.rollback()  # the batch before is committed now, and this locks the head again
        await ended.wait()
        await until_one_waits(url)
        yield other
        other.rollback()


async def until_queued(here: NodeHere, count: int) -> None:
    """Return once `count` jobs are queued."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while len(here.store.backlog) < count:  # noqa: ASYNC110
            await trio.sleep(0.001)  # poll: there is no notification


@asynccontextmanager
async def two_nodes(url: str) -> AsyncIterator[tuple[NodeHere, list[str]]]:
    """Yield a node with a few conversations, one of which another node has posted to."""
    async with node(url, "a") as here, node(url, "b") as other:
        conversations = [await here.new_conversation(f"user-{number}") for number in range(5)]
        await here.post(conversations[0])
        await other.post(conversations[0])
        here.commits.clear()
        yield here, conversations


async def test_messages_that_arrive_while_a_batch_waits_share_its_commit(
    postgres_url: str,
) -> None:
    async with two_nodes(postgres_url) as (here, conversations), trio.open_nursery() as nursery:
        first = partial(nursery.start_soon, here.post, conversations[1])
        async with waiting_batch(postgres_url, here, first):
            for conversation in (*conversations[1:], conversations[1]):
                nursery.start_soon(here.post, conversation)
            await until_queued(here, 5)
        nursery.cancel_scope.deadline = trio.current_time() + 20
    assert [len(commit.events) for commit in here.commits] == [1, 6]
    check_whole(postgres_url)


async def test_a_batch_that_waits_for_the_head_holds_no_conversation(postgres_url: str) -> None:
    async with two_nodes(postgres_url) as (here, conversations), trio.open_nursery() as nursery:
        first = partial(nursery.start_soon, here.post, conversations[1])
        async with waiting_batch(postgres_url, here, first) as other:
            assert len(other.execute("SELECT 1 FROM conversations FOR UPDATE NOWAIT").fetchall()) == 5
    assert rows(postgres_url, "SELECT count(*) FROM messages") == [(3,)]
    check_whole(postgres_url)


async def test_single_node_chooses_jobs_before_it_locks_the_head(postgres_url: str) -> None:
    async with node(postgres_url) as here, trio.open_nursery() as nursery:
        conversations = [await here.new_conversation(f"user-{number}") for number in range(3)]
        await here.post(conversations[0])
        here.commits.clear()
        first = partial(nursery.start_soon, here.post, conversations[1])
        async with waiting_batch(postgres_url, here, first):
            nursery.start_soon(here.post, conversations[2])
            await until_queued(here, 1)
    assert [len(commit.events) for commit in here.commits] == [1, 1, 1]
    check_whole(postgres_url)


def renames(tx: Any) -> None:
    tx.conn.execute("UPDATE organisations SET name = ? WHERE rowid = ?", ("Another", 1))


def locks(tx: Any) -> None:
    tx.conn.execute("SELECT name FROM organisations WHERE rowid = ? FOR UPDATE", (1,)).fetchone()


@pytest.mark.parametrize("before", [renames, locks])
async def test_job_that_may_block_is_left_to_a_batch_that_locks_the_head_last(
    postgres_url: str, before: Callable[[Any], None]
) -> None:
    outcomes: list[object] = []
    async with two_nodes(postgres_url) as (here, conversations), trio.open_nursery() as nursery:
        with psycopg.connect(postgres_url) as owner:
            owner.execute("SELECT 1 FROM organisations FOR UPDATE")

            def first() -> None:
                here.store.submit(InlineJob(Adding()), outcomes.append)
                here.store.submit(InlineJob(Adding(before)), outcomes.append)
                here.store.submit(InlineJob(Adding()), outcomes.append)
                nursery.start_soon(here.post, conversations[1])

            async with waiting_batch(postgres_url, here, first, count=4) as head_owner:
                head_owner.rollback()
            await until_one_waits(postgres_url)
            owner.execute(f"{LOCK} NOWAIT", (PROJECT.rowid,))  # the batch waits, and does not hold the head
            assert outcomes == [None]
            owner.rollback()
            await here.post(conversations[2])
    assert outcomes == [None, None, None]
    assert here.store.commits.refused == 0
    check_whole(postgres_url)


async def test_jobs_without_a_log_are_in_the_next_batch(postgres_url: str) -> None:
    async with two_nodes(postgres_url) as (here, conversations), trio.open_nursery() as nursery:
        outcomes: list[object] = []

        def first() -> None:
            here.store.submit(InlineJob(Adding(log=None)), outcomes.append)
            # It has the same order, so it comes after the first job.
            here.store.submit(InlineJob(Adding()), outcomes.append)
            nursery.start_soon(here.post, conversations[1])

        async with waiting_batch(postgres_url, here, first, count=3):
            nursery.start_soon(here.post, conversations[2])
            await until_queued(here, 1)
        await here.post(conversations[3])
    made = kinds(here)[1:]
    assert made[0][:2] == ["message.created"] * 2
    assert "conversation.created" not in made[0]
    assert made[1][:1] == ["conversation.created"]
    assert outcomes == [None, None]
    check_whole(postgres_url)


def kinds(here: NodeHere) -> list[list[str]]:
    return [[event.type for event in commit.events] for commit in here.commits]


async def test_job_of_several_logs_is_not_added_to_a_waiting_batch(postgres_url: str) -> None:
    async with two_nodes(postgres_url) as (here, conversations), trio.open_nursery() as nursery:
        first = partial(nursery.start_soon, here.post, conversations[1])
        async with waiting_batch(postgres_url, here, first):
            nursery.start_soon(here.actors.create, PROJECT, create("a new user"))
            await until_queued(here, 1)
            nursery.start_soon(here.post, conversations[2])
            await until_queued(here, 2)
    assert kinds(here)[1:] == [["message.created"] * 2, ["conversation.created"]]
    check_whole(postgres_url)


async def test_batch_that_loses_its_connection_commits_added_jobs_as_well(
    postgres_url: str,
) -> None:
    async with two_nodes(postgres_url) as (here, conversations), trio.open_nursery() as nursery:
        first = partial(nursery.start_soon, here.post, conversations[1])
        async with waiting_batch(postgres_url, here, first):
            nursery.start_soon(here.post, conversations[2])
            await until_queued(here, 1)
            rows(
                postgres_url,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'deskwire/batch/a'",
            )
    assert rows(postgres_url, "SELECT count(*) FROM messages") == [(4,)]
    check_whole(postgres_url)


async def test_messages_of_one_conversation_at_three_nodes_share_commits(
    postgres_url: str,
) -> None:
    each, rounds = 8, 6
    async with (
        node(postgres_url, "a") as one,
        node(postgres_url, "b") as two,
        node(postgres_url, "c") as three,
    ):
        conversation = await one.new_conversation()
        sent: list[str] = []

        async def talk(here: NodeHere) -> None:
            for _ in range(rounds):
                sent.append(await here.post(conversation))

        async with trio.open_nursery() as nursery:
            for here in (one, two, three) * each:
                nursery.start_soon(talk, here)
        commits = sum(len(here.commits) for here in (one, two, three))
    assert rows(postgres_url, "SELECT count(*), max(number) FROM messages") == [(len(sent), len(sent) - 1)]
    assert sorted(sent) == sorted(key for (key,) in rows(postgres_url, "SELECT id FROM messages"))
    assert commits * 3 < len(sent) * 2
    check_whole(postgres_url)


async def test_messages_decided_again_take_two_round_trips(
    postgres_url: str,
) -> None:
    async with node(postgres_url, "a") as one, node(postgres_url, "b") as two:
        conversation = await one.new_conversation()
        for _ in range(2):
            await one.post(conversation)
            await two.post(conversation)
        before = {name: [*each.cumulative()][-1][1] for name, each in one.store.shared.rounds.items()}
        await one.post(conversation)
        after = {name: [*each.cumulative()][-1][1] for name, each in one.store.shared.rounds.items()}
        await two.actors.ask(PROJECT, conversation, Close("agent"))
        receipt = await one.actors.ask(PROJECT, conversation, Close("agent"))
    assert {name: count - before[name] for name, count in after.items()} == {
        "read": 0,
        "heads": 1,
        "commit": 1,
    }
    assert receipt.facts == ()
    check_whole(postgres_url)
