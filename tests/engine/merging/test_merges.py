"""Merges with obstacles: the wait of the caller is bounded, and a merge survives refusals and crashes without losses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.contacts.memory import MemoryEntry
from deskwire.engine.conversations.actors import ActorFailed, ActorRegistry
from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.core.actor import SYSTEM
from deskwire.engine.core.actor import SYSTEM as NOBODY
from deskwire.engine.core.errors import NotFound, Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.types import StoredEvent, Topic
from deskwire.engine.merging.merges import ANSWER_TIMEOUT_S, MergeRequest, Merges
from deskwire.engine.privacy.erasure import Erasures
from deskwire.engine.surveys.validation.rules import VALID
from deskwire.engine.tickets.change import create_ticket
from deskwire.storage.check.rules import broken_rules
from deskwire.storage.dialect import SQLITE
from tests.engine.privacy.test_erasure import Unruly
from tests.stores.test_surveys import response, survey
from tests.support.builders import NOON, PROJECT, HandClock, InlineStore, create, post, running
from tests.support.seeing import seen

CONVERSATIONS, RESPONSES, TICKETS, ENTRIES = 5, 3, 3, 3
pytestmark = pytest.mark.sqlite  # it opens the file again, and looks into it

WANTED = MergeRequest("known", "visitor", by_id=False, actor=SYSTEM)


@asynccontextmanager
async def merging(store: InlineStore) -> AsyncIterator[tuple[Merges, Unruly]]:
    """Run merges over a store, as in a process of their own."""
    async with trio.open_nursery() as nursery:
        actors = ActorRegistry(nursery, store, HandClock(), mailbox=8, idle_s=60, live=10)
        unruly = Unruly(actors)
        yield Merges(nursery, store, HandClock(), cast(ActorRegistry, unruly)), unruly
        nursery.cancel_scope.cancel()


async def fill(store: InlineStore) -> None:
    """Store two contacts, one of them with rows of all kinds."""
    async with trio.open_nursery() as nursery:
        actors = ActorRegistry(nursery, store, HandClock(), mailbox=8, idle_s=60, live=10)
        store.at_once(lambda tx: put_contact(tx, PROJECT, ContactRef("known", {"name": "Ada"}), NOON))
        for number in range(CONVERSATIONS):
            visible = number > 0
            await actors.create(PROJECT, create("visitor", {"email": "a@x"}, visible=visible, message=post()))
        nursery.cancel_scope.cancel()
    store.at_once(_fill_beside)


def _fill_beside(tx: Any) -> None:
    visitor = tx.contact(PROJECT.rowid, "visitor")
    made = tx.insert_survey(survey(), VALID)
    for _ in range(RESPONSES):
        tx.insert_response(made.rowid, response(visitor))
    for _ in range(TICKETS):
        values = {"title": "T", "contact_id": visitor.id}
        create_ticket(tx, PROJECT, new_id("tkt", NOON), values, NOBODY, NOON)
    for number in range(ENTRIES):
        entry = MemoryEntry(0, new_id("mem", NOON), f"e{number}", "text", None, NOON, NOON)
        tx.put_memory_entry(visitor.rowid, entry)


def counted(store: InlineStore) -> dict[str, int]:
    """Return the target's numbers of rows."""
    conn = store.connection
    (known,) = conn.execute("SELECT rowid FROM contacts WHERE user_id = 'known'").fetchone()
    return {
        table: conn.execute(f"SELECT count(*) FROM {table} WHERE contact = ?", (known,)).fetchone()[0]
        for table in ("conversations", "survey_responses", "tickets", "memory")
    }


ALL = {"conversations": CONVERSATIONS, "survey_responses": RESPONSES, "tickets": TICKETS, "memory": ENTRIES}


def about(event: StoredEvent) -> str:
    """Return the user id of the contact in an event."""
    data = orjson.loads(event.body)["data"]
    user: str = data.get("conversation", data)["contact"]["userId"]
    return user


def check(store: InlineStore) -> None:
    """Check that all rows have moved once, with one event each, and that the database is consistent."""
    assert counted(store) == ALL
    assert [*broken_rules(store.connection, SQLITE)] == []
    events = seen(store, lambda reader: reader.events(PROJECT.rowid, 0, 200, frozenset()))
    told = [event.type for event in events]
    assert told.count("conversation.updated") == CONVERSATIONS - 1
    assert (
        told.count("contact.updated") == 2
    )  # the target with the fields of the source, and the end of the source
    for user in ("known", "visitor"):  # as the table has them for the channel of each
        topic = Topic(PROJECT.rowid, "contact", user)
        lane = seen(store, lambda reader, topic=topic: reader.topic_events(topic, 0, 200, frozenset()))  # type: ignore[misc]
        assert lane == [event for event in events if about(event) == user]
    assert seen(store, lambda reader: reader.merges()) == []
    (merged,) = store.connection.execute(
        "SELECT count(*) FROM events WHERE type = 'contact.merged'"
    ).fetchone()
    assert merged == 1


async def test_a_merge_is_resumed_after_a_crash_before_any_commit(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    cut = 0
    while True:
        directory = tmp_path / str(cut)
        directory.mkdir()
        store = InlineStore(directory)
        await fill(store)
        whole = await merged_up_to(store, cut)
        store.close()
        again = InlineStore(directory)
        async with merging(again) as (merges, _):
            await merges.resume()
            await merges.merge(PROJECT, WANTED)
        check(again)
        again.close()
        if whole:
            break
        cut += 1
    assert cut > 8


async def merged_up_to(store: InlineStore, cut: int) -> bool:
    """Merge up to this number of commits and stop; return whether the merge had ended."""
    left, dead, whole = cut, trio.Event(), False

    async def until_dead() -> None:
        nonlocal left
        await trio.lowlevel.checkpoint()
        if not left:
            dead.set()
            raise Unavailable("The process is dead.")
        left -= 1

    async def merge(merges: Merges) -> None:
        nonlocal whole
        with suppress(Unavailable):
            await merges.merge(PROJECT, WANTED)
            whole = True
        dead.set()

    store.before_write = until_dead
    async with trio.open_nursery() as process, merging(store) as (merges, _):
        process.start_soon(merge, merges)
        await dead.wait()
        process.cancel_scope.cancel()
    return whole


async def test_an_actors_bug_and_a_full_mailbox_only_delay_a_merge(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    store = InlineStore(tmp_path)
    await fill(store)
    async with merging(store) as (merges, unruly):
        busy = Unavailable("busy", code="conversation_busy")
        unruly.failures = [ActorFailed("a bug"), busy, ActorFailed("a bug"), busy]
        survivor = await merges.merge(PROJECT, WANTED)
        assert (survivor.user_id, unruly.failed) == ("known", 4)
    check(store)
    store.close()


async def test_a_caller_of_a_long_merge_gets_unavailable_and_later_the_result(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    store = InlineStore(tmp_path)
    await fill(store)
    async with merging(store) as (merges, unruly):
        unruly.failures = [Unavailable("full", code="storage_failed")] * 200
        began = trio.current_time()
        with pytest.raises(Unavailable) as told:
            await merges.merge(PROJECT, WANTED)
        assert (told.value.reason, trio.current_time() - began) == ("merge_under_way", ANSWER_TIMEOUT_S)
        unruly.failures.clear()
        await merges.merge(PROJECT, WANTED)
    check(store)
    store.close()


async def test_a_merge_runs_to_its_end_if_its_caller_is_cancelled(tmp_path: Path) -> None:
    async with running(tmp_path) as service, trio.open_nursery() as nursery:
        await service.store.write(lambda tx: put_contact(tx, PROJECT, ContactRef("known", {}), NOON))
        await service.directory.create(PROJECT, create("visitor"))
        merges = Merges(nursery, service.store, HandClock(), service.directory)
        with trio.CancelScope() as caller:
            caller.cancel()
            await merges.merge(PROJECT, WANTED)
        assert caller.cancelled_caught
        with trio.fail_after(10):
            known = await merges.merge(PROJECT, WANTED)  # waits for it, if it has begun and not ended
        left = await service.store.read(
            lambda reader: (reader.merges(), reader.conversation_ids(known.rowid))
        )
        assert (left[0], len(left[1])) == ([], 1)


async def test_a_merge_waits_for_a_merge_into_its_source(tmp_path: Path, autojump_clock: MockClock) -> None:
    store = InlineStore(tmp_path)
    await fill(store)
    store.at_once(lambda tx: put_contact(tx, PROJECT, ContactRef("last", {}), NOON))
    async with merging(store) as (merges, unruly), trio.open_nursery() as nursery:
        unruly.failures = [Unavailable("full", code="storage_failed")] * 12
        nursery.start_soon(merges.merge, PROJECT, WANTED)
        await trio.sleep(0.1)
        began = trio.current_time()
        survivor = await merges.merge(PROJECT, MergeRequest("last", "known", by_id=False, actor=SYSTEM))
        assert survivor.user_id == "last"
        assert trio.current_time() > began
    (last,) = store.connection.execute("SELECT rowid FROM contacts WHERE user_id = 'last'").fetchone()
    rows = store.connection.execute("SELECT contact FROM conversations").fetchall()
    assert rows == [(last,)] * CONVERSATIONS
    assert [*broken_rules(store.connection, SQLITE)] == []
    store.close()


async def test_an_erasure_of_the_target_ends_a_merge_and_erases_the_rest(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    store = InlineStore(tmp_path)
    await fill(store)
    async with merging(store) as (merges, unruly), trio.open_nursery() as nursery:
        erasures = Erasures(nursery, store, HandClock(), cast(ActorRegistry, unruly))
        unruly.failures = [Unavailable("full", code="storage_failed")] * 3
        nursery.start_soon(merges.merge, PROJECT, WANTED)
        await trio.sleep(0.1)
        await erasures.erase(PROJECT, "known")
        with pytest.raises(NotFound):
            await merges.merge(PROJECT, WANTED)
    conn = store.connection
    for table in (
        "contacts",
        "conversations",
        "tickets",
        "survey_responses",
        "memory",
        "contact_erasures",
        "messages",
    ):
        assert conn.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    events = seen(store, lambda reader: reader.events(PROJECT.rowid, 0, 200, frozenset()))
    assert [event.type for event in events[-2:]] == ["contact.updated"] * 2
    assert [*broken_rules(conn, SQLITE)] == []
    store.close()
