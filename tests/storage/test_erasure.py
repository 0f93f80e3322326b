"""After a deletion no byte of the deleted data is left in the database file or its WAL (decisions 4)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.commands import Assign, ContactRef, Delete, Patch, ReplaceNetworkLogs
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.errors import StaleState
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from deskwire.engine.privacy.erasure import Erasures
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.storage.sqlite.database import connect_reader
from deskwire.storage.sqlite.directory import FILE_NAME
from tests.support.builders import NOON, PROJECT, HandClock, Running, create, endpoint, post, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.seeing import seen

PLACES = (
    "TITLE", "OLDTITLE", "ATTRIBUTE", "OLDATTRIBUTE", "KEY", "MESSAGE", "LONGMESSAGE", "NOTE", "LOGS", "OLDLOGS",
    "ASSIGNEE", "ANSWER",
)  # fmt: skip
CONTACT_PLACES = ("NAME", "OLDNAME", "EMAIL", "PHONE", "AVATAR", "USERID")


def mark(place: str) -> str:
    """Return a text that occurs nowhere else."""
    return f"<<{place}-marker>>"


def left_in(directory: Path, places: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the markers that are still in a file of the data directory, with its name."""
    files = [file for file in directory.iterdir() if file.name.startswith(FILE_NAME)]
    assert files
    return [
        (file.name, place) for file in files for place in places if mark(place).encode() in file.read_bytes()
    ]


async def scrubbed(engine: Running) -> None:
    """Return once the writer has scrubbed the file, which it does between commits after an erasure."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while seen(engine.store, _scrub_due):  # noqa: ASYNC110  # the writer scrubs in the background, without a notification
            await trio.sleep(0.01)  # poll: there is no notification


def _scrub_due(reader: Any) -> bool:
    return bool(reader.conn.execute("SELECT scrub_due FROM event_window").fetchone()[0])


async def plant(engine: Running) -> Conversation:
    """Create a conversation with a marker in every field that can hold text."""
    await engine.store.write(lambda tx: tx.insert_endpoint(endpoint()))
    identity = {"name": mark("OLDNAME")}
    command = create(mark("USERID"), identity, title=mark("OLDTITLE"), attributes={"k": mark("OLDATTRIBUTE")})
    await engine.directory.create(PROJECT, command)
    identity = {place.lower(): mark(place) for place in ("NAME", "EMAIL", "PHONE", "AVATAR")}
    await put(engine, mark("USERID"), identity)
    for asked in (
        Patch({"title": mark("TITLE"), "attributes": {"k": mark("ATTRIBUTE"), mark("KEY"): 1}}),
        post(text=mark("MESSAGE")),
        post(text=mark("LONGMESSAGE") * 500),
        post("agent", mark("NOTE"), internal=True),
        ReplaceNetworkLogs(mark("OLDLOGS").encode() * 2_000),
        ReplaceNetworkLogs(mark("LOGS").encode()),
        Assign(Assignee("user", "usr_1", mark("ASSIGNEE"))),
    ):
        receipt = await engine.directory.ask(PROJECT, command.conversation_id, asked)
    assert receipt.state is not None
    await answer_all(engine)
    return receipt.state


async def put(engine: Running, user_id: str, identity: Mapping[str, str]) -> None:
    """Create a contact, or change its identity."""
    await engine.store.write(lambda tx: put_contact(tx, PROJECT, ContactRef(user_id, identity), NOON))


async def answer_all(engine: Running) -> None:
    """Record an attempt for each pending delivery, with a response that repeats the request."""
    (target,) = seen(engine.store, lambda reader: reader.endpoints(PROJECT.rowid))
    for delivery in seen(engine.store, lambda reader: reader.pending_deliveries(target.rowid, 0, 100)):
        attempt = Attempt(1, NOON, 5, 200, None, mark("ANSWER").encode())
        stored = await engine.store.write(
            lambda tx, d=delivery, a=attempt: tx.record_end(d, a, "delivered", None)
        )
        assert stored


def contact_of(engine: Running) -> Contact | None:
    return seen(engine.store, lambda reader: reader.contact(PROJECT.rowid, mark("USERID")))


@asynccontextmanager
async def erasures(engine: Running) -> AsyncIterator[Erasures]:
    async with trio.open_nursery() as nursery:
        yield Erasures(nursery, engine.store, HandClock(), engine.directory)


@pytest.mark.sqlite  # looks into the pages of the file
async def test_the_markers_are_found_while_they_are_there(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await plant(engine)
        found = {place for _, place in left_in(tmp_path, PLACES + CONTACT_PLACES)}
        assert found == {*PLACES, *CONTACT_PLACES}


@pytest.mark.sqlite  # looks into the pages of the file
async def test_nothing_of_a_deleted_conversation_is_left(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        reader = connect_reader(tmp_path / FILE_NAME)
        reader.execute("SELECT count(*) FROM messages").fetchall()
        state = await plant(engine)
        await engine.directory.ask(PROJECT, state.id, Delete("manual"))
        await scrubbed(engine)
        # The answers to contact.updated belong to the contact, who is still there.
        places = tuple(place for place in PLACES if place != "ANSWER")
        assert left_in(tmp_path, places) == []
        assert reader.execute("SELECT count(*) FROM messages").fetchall() == [(0,)]
        reader.close()


@pytest.mark.sqlite  # looks into the pages of the file
async def test_open_reader_delays_scrubbing_but_does_not_prevent_it(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        state = await plant(engine)
        reader = connect_reader(tmp_path / FILE_NAME)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM messages").fetchall() == [(3,)]
        await engine.directory.ask(PROJECT, state.id, Delete("manual"))
        assert left_in(tmp_path, ("MESSAGE",)) != []  # the reader's snapshot still needs it
        await engine.directory.create(PROJECT, create())  # and commits go on
        reader.execute("COMMIT")
        await scrubbed(engine)
        assert left_in(tmp_path, ("MESSAGE", "NOTE", "TITLE", "LOGS")) == []
        reader.close()


async def test_a_deletion_leaves_the_deletions_event_and_its_delivery_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        state = await plant(engine)
        await engine.directory.ask(PROJECT, state.id, post())  # not delivered yet
        await engine.directory.ask(PROJECT, state.id, Delete("manual"))
        events = seen(engine.store, lambda reader: reader.events(PROJECT.rowid, 0, 100, frozenset()))
        assert [event.type for event in events] == ["contact.updated", "conversation.deleted"]
        (target,) = seen(engine.store, lambda reader: reader.endpoints())
        (delivery,) = seen(engine.store, lambda reader: reader.pending_deliveries(target.rowid, 0, 100))
        assert delivery.event == events[-1]
        chunk = await engine.log.read(PROJECT.rowid, 0, 100)
        assert list(chunk.events) == list(events)


async def test_deletion_that_would_erase_events_of_its_own_commit_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        command = create()
        receipt = await engine.directory.create(PROJECT, command)
        state = receipt.after

        def both(tx: Transaction) -> None:
            tx.append_event(PROJECT, EventDraft("message.created", 2, {}), state.rowid, NOON)
            with pytest.raises(StaleState):
                tx.erase_conversation(state)

        await engine.store.write(both)
        assert [event.sequence for event in engine.commits[-1].events] == [2]


async def test_erasure_removes_the_delivery_log_of_pruned_events(tmp_path: Path) -> None:
    """Events stay for 7 days and the delivery log for 30: a deletion in between must find it all."""
    async with running(tmp_path) as engine:
        state = await plant(engine)
        await engine.directory.create(PROJECT, create())
        assert await engine.store.write(lambda tx: tx.prune_events(NOON + 10**9, 1_000, NOON)) > 5
        await engine.directory.ask(PROJECT, state.id, Delete("manual"))
        sql = "SELECT DISTINCT type FROM deliveries WHERE lane = ?"
        rows = seen(engine.store, lambda reader: reader.conn.execute(sql, (state.rowid,)).fetchall())  # type: ignore[attr-defined]
        assert rows == [("conversation.deleted",)]


@pytest.mark.sqlite  # looks into the pages of the file
async def test_nothing_of_an_erased_contact_is_left(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await plant(engine)
        async with erasures(engine) as erasing:
            await erasing.erase(PROJECT, mark("USERID"))
        await scrubbed(engine)
        kept = ("USERID",)  # the last events name it, so that mirrors can prune
        places = tuple(place for place in PLACES + CONTACT_PLACES if place not in kept)
        assert left_in(tmp_path, places) == []
        assert contact_of(engine) is None


@pytest.mark.sqlite  # looks into the pages of the file
async def test_only_the_user_id_of_an_erased_contact_without_conversations_is_left(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as engine:
        await engine.store.write(lambda tx: tx.insert_endpoint(endpoint()))
        identity = {place.lower(): mark(place) for place in ("NAME", "EMAIL", "PHONE", "AVATAR")}
        for known in ({}, identity):
            await put(engine, mark("USERID"), known)
        await answer_all(engine)
        assert {place for _, place in left_in(tmp_path, CONTACT_PLACES)} == {*CONTACT_PLACES} - {"OLDNAME"}
        async with erasures(engine) as erasing:
            await erasing.erase(PROJECT, mark("USERID"))
        await scrubbed(engine)
        places = tuple(place for place in PLACES + CONTACT_PLACES if place != "USERID")
        assert left_in(tmp_path, places) == []


@pytest.mark.sqlite  # looks into the pages of the file
async def test_user_id_is_pruned_with_the_deletion_events(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await plant(engine)
        async with erasures(engine) as erasing:
            await erasing.erase(PROJECT, mark("USERID"))
        await scrubbed(engine)
        assert left_in(tmp_path, ("USERID",)) != []
        await engine.directory.create(PROJECT, create("somebody else"))
        await engine.store.write(lambda tx: tx.prune_events(NOON + 10**9, 1_000, NOON))
        await scrubbed(engine)
        assert left_in(tmp_path, ("USERID",)) == []


@pytest.mark.sqlite  # with positions that leave nothing out
async def test_erased_contacts_events_leave_the_window_and_positions_still_grow(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as engine:
        for user in ("one", "two"):
            for known in ({}, {"name": user}):
                await put(engine, user, known)
        async with erasures(engine) as erasing:
            await erasing.erase(PROJECT, "two")
        chunk = await engine.log.read(PROJECT.rowid, 0, 100)
        assert [event.position for event in chunk.events] == [1, 3]
        assert b'"name":null' in chunk.events[-1].body
    async with running(tmp_path) as engine:
        assert seen(engine.store, lambda reader: reader.last_event_position()) == 3
        await engine.directory.create(PROJECT, create())
        chunk = await engine.log.read(PROJECT.rowid, 3, 100)
        assert [event.position for event in chunk.events] == [4]


@pytest.mark.thorough
@pytest.mark.sqlite  # how SQLite moves rows
async def test_no_page_keeps_remains_of_a_moved_and_deleted_row(tmp_path: Path) -> None:
    """SQLite moves rows when pages split or merge, and `secure_delete` does not reach what it leaves behind."""
    chance = random.Random(0)
    count = 120
    doomed = chance.sample(range(count), 80)
    async with running(tmp_path) as engine:
        ids: list[str] = []
        for n in range(count):
            message = post(text=mark(f"G{n}") * chance.randint(1, 9))
            command = create(f"user-{n}", title=mark(f"G{n}"), message=message)
            await engine.directory.create(PROJECT, command)
            ids.append(command.conversation_id)
        for n in chance.choices(range(count), k=300):
            attributes = {"grows": mark(f"G{n}") * chance.randint(1, 60)}
            await engine.directory.ask(PROJECT, ids[n], Patch({"attributes": attributes}))
        for n in doomed:
            await engine.directory.ask(PROJECT, ids[n], Delete("manual"))
        await scrubbed(engine)
        with closing(connect_reader(tmp_path / FILE_NAME)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert len(left_in(tmp_path, tuple(f"G{n}" for n in range(count) if n not in doomed))) == 40
    assert left_in(tmp_path, tuple(f"G{n}" for n in doomed)) == []
