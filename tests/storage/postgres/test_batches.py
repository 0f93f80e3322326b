"""Batches on PostgreSQL: one commit for many jobs, also while other nodes write."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg
import pytest
import trio

from deskwire.engine.conversations.commands import Close, Delete
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import AlreadyAnswered, Conflict, DomainError, NotFound, StaleState
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.store import InlineJob, InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EventDraft
from deskwire.engine.idempotency.idempotent_requests import InProgress, ResponseHook, StoredResponses
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.webhooks.delivery import Attempt
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, endpoint, post
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres_nodes import NodeHere, check_whole, node, rows, until_one_waits


async def at_once(here: NodeHere, jobs: list[Callable[[Transaction], Any]]) -> list[Any]:
    """Submit all jobs before the first one begins; return their results and exceptions."""
    outcomes: list[Any] = [None] * len(jobs)
    waiting = [*range(len(jobs))]
    all_done = trio.Event()

    def end(number: int, outcome: Any) -> None:
        outcomes[number] = outcome
        waiting.remove(number)
        if not waiting:
            all_done.set()

    for number, job in enumerate(jobs):
        here.store.submit(InlineJob(job), partial(end, number))
    await all_done.wait()
    return outcomes


def exchanges(here: NodeHere) -> dict[str, int]:
    """Return the number of round trips of batches, by purpose."""
    return {name: [*each.cumulative()][-1][1] for name, each in here.store.shared.rounds.items()}


async def test_messages_of_many_conversations_share_a_commit(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        conversations = [await here.new_conversation(f"user-{number}") for number in range(8)]
        here.commits.clear()

        async with trio.open_nursery() as nursery:
            for conversation in conversations:
                nursery.start_soon(here.post, conversation)

        assert len(here.commits) < 8
        events = [event for commit in here.commits for event in commit.events]
        assert [event.type for event in events] == ["message.created"] * 8
        assert [event.position for event in events] == sorted(event.position for event in events)
        stored = rows(
            postgres_url, "SELECT position, id, body FROM events WHERE sequence = 2 ORDER BY position"
        )
        assert [(event.position, event.id, event.body) for event in events] == stored
        assert all(event.body.startswith(b'{"id":"%b",' % event.id.encode()) for event in events)
    check_whole(postgres_url)


async def test_single_message_takes_two_round_trips_also_with_an_idempotency_key(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        conversation = await here.new_conversation()
        await here.post(conversation)  # now the endpoints and the conversation's last state are cached
        with StoredResponses(Secrets("s" * 32), lambda: NOON, 3_600).in_flight(
            "caller", "post", "key"
        ) as once:
            keeping: Any = ResponseHook(once.with_body(b"body"), lambda receipt: receipt.message)
            for wrappers in ((), (keeping,)):
                before = exchanges(here)
                await here.actors.ask(PROJECT, conversation, post(), *wrappers)
                taken = {name: count - before[name] for name, count in exchanges(here).items()}
                assert taken == {"read": 0, "heads": 1, "commit": 1}
    assert rows(postgres_url, "SELECT count(*) FROM kept_answers") == [(1,)]
    check_whole(postgres_url)


async def test_batch_locks_heads_after_all_other_locks(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        conversation = await here.new_conversation()
        known = await here.store.read(lambda reader: reader.conversation(PROJECT.rowid, conversation))
        assert known is not None

        def job(tx: Any) -> None:
            tx.claim(known[0])
            tx.append_event(PROJECT, EventDraft("conversation.created", None, {}), None, NOON)
            tx.conn.execute("UPDATE organisations SET name = ? WHERE rowid = ?", ("Another", 1))

        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT 1 FROM organisations FOR UPDATE")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(here.store.write, InlineJob(job))
                await until_one_waits(postgres_url)
                other.execute("SELECT 1 FROM project_heads FOR UPDATE NOWAIT")
                other.rollback()
        assert here.store.commits.refused == 0
    assert rows(postgres_url, "SELECT name FROM organisations WHERE rowid = 1") == [("Another",)]
    check_whole(postgres_url)


async def test_concurrent_messages_of_one_conversation_are_stored_in_order(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        conversation = await here.new_conversation()
        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(here.post, conversation, f"{number}")
                await trio.lowlevel.checkpoint()
        assert here.store.commits.refused == 0
    texts = [text for (text,) in rows(postgres_url, "SELECT text FROM messages ORDER BY rowid")]
    assert sorted(texts, key=int) == [f"{number}" for number in range(40)]
    assert [row[0] for row in rows(postgres_url, "SELECT sequence FROM messages ORDER BY rowid")] == [
        *range(2, 42)
    ]
    check_whole(postgres_url)


async def test_two_nodes_write_to_the_same_conversations(postgres_url: str) -> None:
    async with node(postgres_url, "a") as one, node(postgres_url, "b") as two:
        conversations = [await one.new_conversation(f"user-{number}") for number in range(4)]
        await one.store.write(lambda tx: tx.insert_endpoint(endpoint()))
        sent: list[str] = []

        async def talk(here: NodeHere, conversation: str) -> None:
            for _ in range(12):
                sent.append(await here.post(conversation))

        async with trio.open_nursery() as nursery:
            for conversation in conversations:
                for here in (one, two, one, two):
                    nursery.start_soon(talk, here, conversation)

        assert len(sent) == 4 * 4 * 12
        published = [event for here in (one, two) for commit in here.commits for event in commit.events]
    stored = [message for (message,) in rows(postgres_url, "SELECT id FROM messages")]
    assert sorted(stored) == sorted(sent)
    assert sorted(event.position for event in published) == [
        position for (position,) in rows(postgres_url, "SELECT position FROM events ORDER BY position")
    ]
    check_whole(postgres_url)
    assert rows(postgres_url, "SELECT count(*) FROM deliveries") == [(len(sent),)]


@pytest.mark.parametrize("together", [1, 2, 5], ids="{} under way".format)
@pytest.mark.parametrize("batch", [1, 64], ids="batches of {}".format)
async def test_job_on_a_state_lost_in_a_failover_is_decided_again(
    postgres_url: str, batch: int, together: int
) -> None:
    """Jobs that were decided on such a state are decided again as well."""
    after = [f"after it {number}" for number in range(together)]
    async with node(postgres_url, batch=batch) as here:
        conversation = await here.new_conversation()
        for text in ("kept", "lost"):
            await here.post(conversation, text)
        with psycopg.connect(
            postgres_url
        ) as connection:  # leaves the state of another history with as many changes
            connection.execute("DELETE FROM messages WHERE text = 'lost'")
            connection.execute(
                "UPDATE conversations SET messages = messages - 1, updated_at = updated_at - 1"
            )
        async with trio.open_nursery() as nursery:
            for text in after:
                nursery.start_soon(here.post, conversation, text)
    numbers = rows(postgres_url, "SELECT number, text FROM messages ORDER BY number")
    assert [number for number, _ in numbers] == [*range(together + 1)]
    assert numbers[0] == (0, "kept")
    assert sorted(text for _, text in numbers[1:]) == after


async def test_message_to_a_conversation_closed_by_another_node_is_decided_again(
    postgres_url: str,
) -> None:
    async with node(postgres_url, "a") as one, node(postgres_url, "b") as two:
        conversation = await one.new_conversation()
        await two.post(conversation)
        await one.actors.ask(PROJECT, conversation, Close("agent"))

        receipt = await two.actors.ask(PROJECT, conversation, post())

        assert receipt.after.sequence > 3
        assert not receipt.after.closed_by
        assert two.store.commits.refused == 0
    check_whole(postgres_url)


async def test_refused_job_stores_nothing_and_the_others_are_committed(postgres_url: str) -> None:
    def refused(tx: Transaction) -> None:
        tx.append_event(PROJECT, EventDraft("conversation.created", None, {}), None, NOON)
        raise Conflict("no")

    def kept(tx: Transaction) -> str:
        return tx.append_event(PROJECT, EventDraft("conversation.created", None, {}), None, NOON).type

    async with node(postgres_url) as here:
        first, second, third = await at_once(here, [kept, refused, kept])

        assert (first, third) == ("conversation.created", "conversation.created")
        assert isinstance(second, Conflict)
        assert [len(commit.events) for commit in here.commits] == [2]
    check_whole(postgres_url)


async def test_job_refused_by_the_database_does_not_fail_the_others(postgres_url: str) -> None:
    def kept(tx: Transaction) -> None:
        tx.append_event(PROJECT, EventDraft("conversation.created", None, {}), None, NOON)

    def twice(tx: Any) -> None:
        tx.conn.execute("INSERT INTO contact_words (project, word, contact) VALUES (?, ?, ?)", (1, "a", -1))

    async with node(postgres_url) as here:
        outcomes = await at_once(here, [kept, twice, kept])

        assert (outcomes[0], outcomes[2]) == (None, None)
        assert isinstance(outcomes[1], DomainError)
        assert outcomes[1].reason == "storage_failed"
    assert rows(postgres_url, "SELECT count(*) FROM events") == [(2,)]
    check_whole(postgres_url)


async def test_job_that_reads_its_own_writes_gets_its_own_transaction(postgres_url: str) -> None:
    def job(tx: Transaction) -> int:
        tx.append_event(PROJECT, EventDraft("conversation.created", None, {}), None, NOON)
        key = tx.insert_organisation("org_01M3250V000000000000000NEW", "New", NOON)
        return len([each for each in tx.organisations() if each.rowid == key])

    async with node(postgres_url) as here:
        assert await here.store.write(InlineJob(job)) == 1
    check_whole(postgres_url)


async def test_new_endpoint_gets_all_later_events_of_every_node(postgres_url: str) -> None:
    async with node(postgres_url, "a") as one, node(postgres_url, "b") as two:
        conversation = await one.new_conversation()
        await two.post(conversation)  # now both nodes have cached that there is no endpoint
        added = await one.store.write(lambda tx: tx.insert_endpoint(endpoint()))

        await two.post(conversation)
        await one.post(conversation)
        disabled = replace(added, status="disabled", status_reason="requested")
        await one.store.write(lambda tx: tx.save_endpoint(disabled))
        await two.post(conversation)

    assert rows(postgres_url, "SELECT sequence, status FROM deliveries ORDER BY position") == [
        (3, "pending"),
        (4, "pending"),
        (5, "skipped"),
    ]
    check_whole(postgres_url)


async def test_request_sent_to_two_nodes_is_carried_out_once(postgres_url: str) -> None:
    async def ask(here: NodeHere, conversation: str, outcomes: list[str]) -> None:
        with StoredResponses(Secrets("s" * 32), lambda: NOON, 3_600).in_flight(
            "caller", "post", "key"
        ) as once:
            keeping: Any = ResponseHook(once.with_body(b"body"), lambda receipt: receipt.message)
            outcome = None
            while outcome is None:  # a client repeats a request that is refused as still running
                try:
                    await here.actors.ask(PROJECT, conversation, post(), keeping)
                except InProgress:
                    continue
                except AlreadyAnswered:
                    outcome = "replayed"
                else:
                    outcome = "carried out"
            outcomes.append(outcome)

    async with node(postgres_url, "a") as one, node(postgres_url, "b") as two:
        conversations = [await one.new_conversation("user-1"), await one.new_conversation("user-2")]
        outcomes: list[str] = []
        async with trio.open_nursery() as nursery:
            for here in (one, two):
                for conversation in conversations:
                    nursery.start_soon(ask, here, conversation, outcomes)

        assert sorted(outcomes) == ["carried out", *["replayed"] * 3]
    assert rows(postgres_url, "SELECT count(*) FROM messages") == [(1,)]
    check_whole(postgres_url)


async def test_results_of_deliveries_are_recorded_once(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        await here.store.write(lambda tx: tx.insert_endpoint(endpoint()))
        conversation = await here.new_conversation()
        await here.post(conversation)
        made = [delivery for commit in here.commits for delivery in commit.deliveries]
        attempt = Attempt(1, NOON, 5, 200, None, b"")

        def record(tx: Transaction) -> list[bool]:
            return [tx.record_end(delivery, attempt, "delivered", None) for delivery in (*made, made[0])]

        assert await here.store.write(InlineJob(record)) == [True, True, False]
        assert await here.store.write(InlineJob(record)) == [False, False, False]
    assert rows(postgres_url, "SELECT DISTINCT status FROM deliveries") == [("delivered",)]
    assert rows(postgres_url, "SELECT count(*) FROM attempts") == [(2,)]


async def test_locked_conversation_does_not_block_other_conversations(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        locked, free = [await here.new_conversation(f"user-{number}") for number in range(2)]
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT 1 FROM conversations WHERE id = %s FOR UPDATE", (locked,))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(here.post, locked)
                with trio.fail_after(HANG_TIMEOUT_S):
                    await here.post(free)
                    await here.post(free)
                assert rows(postgres_url, "SELECT count(*) FROM messages") == [(2,)]
                other.rollback()
        assert rows(postgres_url, "SELECT count(*) FROM messages") == [(3,)]
    check_whole(postgres_url)


async def test_conversation_deleted_by_one_node_is_gone_for_the_other(postgres_url: str) -> None:
    async with node(postgres_url, "a") as one, node(postgres_url, "b") as two:
        conversation = await one.new_conversation()
        await two.post(conversation)
        await one.actors.ask(PROJECT, conversation, Delete("manual"))

        with pytest.raises(NotFound):
            await two.post(conversation)

        assert [commit.erased for commit in one.commits if commit.erased] != []
    assert rows(postgres_url, "SELECT count(*) FROM messages") == [(0,)]
    found = rows(postgres_url, "SELECT type, about_conversation FROM events WHERE project = 1")
    assert found == [("conversation.deleted", conversation)]


async def test_erasure_removes_an_attempt_that_is_recorded_concurrently(
    postgres_url: str,
) -> None:
    """The erasure waits for the other node's record, and must remove it."""
    async with node(postgres_url) as here:
        await here.store.write(lambda tx: tx.insert_endpoint(endpoint()))
        conversation = await here.new_conversation()
        with psycopg.connect(postgres_url) as other:
            other.execute("UPDATE deliveries SET status = 'delivered'")
            other.execute(
                "INSERT INTO attempts SELECT position, 1, 0, 0, 200, NULL, 'thanks, Ada', day FROM deliveries"
            )
            async with trio.open_nursery() as nursery:
                nursery.start_soon(here.actors.ask, PROJECT, conversation, Delete("manual"))
                await until_one_waits(postgres_url)
                other.commit()
    assert rows(postgres_url, "SELECT count(*) FROM deliveries WHERE type = 'conversation.created'") == [(0,)]
    assert rows(postgres_url, "SELECT * FROM attempts") == []


async def test_acknowledged_change_is_read_by_every_node(postgres_url: str) -> None:
    async with node(postgres_url, "a") as one, node(postgres_url, "b") as two:
        conversation = await one.new_conversation()

        def own(reader: Reader) -> Any:
            return reader.conversation(PROJECT.rowid, conversation)

        def others(reader: Reader) -> Any:
            return reader.conversation(OTHER_PROJECT.rowid, conversation)

        for number in range(5):
            await one.post(conversation)
            for row in (await two.store.read(InlineQuery(own)), await two.store.read(own)):
                assert row is not None
                assert row[0].messages == number + 1
        assert await two.store.read(InlineQuery(others)) is None


async def test_undone_writes_do_not_count_towards_the_size_of_a_batch(postgres_url: str) -> None:
    """Each job misses a read only after it has written much.

    Together they write more than one batch sends.
    """
    note = {"note": "x" * 3_000}

    def talk(number: int) -> Callable[[Transaction], int]:
        def job(tx: Any) -> int:
            (first,) = tx.conn.execute("SELECT CAST(? AS bigint)", (number,)).fetchone()
            tx.append_event(PROJECT, EventDraft("conversation.created", None, note), None, NOON)
            (second,) = tx.conn.execute("SELECT CAST(? AS bigint) + 1000", (first,)).fetchone()
            return int(second)

        return job

    async with node(postgres_url, batch=200) as here:
        with trio.fail_after(HANG_TIMEOUT_S):
            outcomes = await at_once(here, [talk(number) for number in range(150)])
        assert outcomes == [*range(1_000, 1_150)]
        assert len(here.commits) == 2
        assert sum(len(commit.events) for commit in here.commits) == 150
    check_whole(postgres_url)


async def test_conversations_of_known_and_of_new_contacts_share_a_commit(postgres_url: str) -> None:
    """Each row is sent after the rows that it refers to, and rows of one table are still merged."""
    async with node(postgres_url) as here:
        await here.new_conversation("known")
        here.commits.clear()

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(here.new_conversation, "known" if number % 2 == 0 else f"new-{number}")

        assert [len(commit.events) for commit in here.commits if len(commit.events) > 1] == [6]
    assert rows(postgres_url, "SELECT count(*), count(DISTINCT contact) FROM conversations") == [(7, 4)]
    check_whole(postgres_url)


async def test_rows_that_refer_to_events_are_merged(postgres_url: str) -> None:
    """They are sent while the heads are locked, so one statement each would block other nodes for long."""
    async with node(postgres_url) as here:
        conversations = [await here.new_conversation(f"user-{number}") for number in range(6)]
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("CREATE SEQUENCE statements")
            connection.execute(
                "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN PERFORM nextval('statements'); RETURN NULL; END $$"
            )
            connection.execute(
                "CREATE TRIGGER noted AFTER INSERT ON conversation_activity FOR EACH STATEMENT EXECUTE FUNCTION noted()"
            )
        here.commits.clear()
        async with trio.open_nursery() as nursery:
            for conversation in conversations:
                nursery.start_soon(
                    partial(
                        here.actors.ask,
                        PROJECT,
                        conversation,
                        Close("agent"),
                        by=Actor("user", "usr_1", "Ada"),
                    )
                )
        assert len(here.commits) < 3
        assert rows(postgres_url, "SELECT last_value FROM statements") == [(len(here.commits),)]
    named = (
        "SELECT count(*), count(e.id) FROM conversation_activity a LEFT JOIN events e ON e.id = a.event_id"
    )
    assert rows(postgres_url, named) == [(6, 6)]
    check_whole(postgres_url)


async def test_job_decided_again_is_counted_once(postgres_url: str) -> None:
    class Stale:
        order = log = None

        def needs(self, *, again: bool) -> list[Callable[[Transaction], object]]:
            return []

        def __call__(self, tx: Transaction) -> int:
            raise StaleState("another node was first")

        def again(self, tx: Any) -> int:
            (first,) = tx.conn.execute("SELECT CAST(? AS bigint)", (1,)).fetchone()
            (second,) = tx.conn.execute("SELECT CAST(? AS bigint) + 1", (first,)).fetchone()
            return int(second)

    async with node(postgres_url) as here:
        before = here.store.shared.decided_again
        assert await at_once(here, [Stale()]) == [2]
        assert here.store.shared.decided_again == before + 1
