"""The effects of a batch of an import: its retention, its workflows, and its deliveries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.accounts.people import Project
from deskwire.engine.conversations.commands import ConversationRetention, Expire
from deskwire.engine.conversations.decide import decide
from deskwire.engine.conversations.events import conversation_view
from deskwire.engine.conversations.facts import Deleted
from deskwire.engine.core.errors import NotFound
from deskwire.engine.importing.batch import import_batch
from deskwire.engine.importing.records import (
    ContactRecord,
    ConversationRecord,
    ImportOutcome,
    MessageRecord,
    Record,
)
from deskwire.engine.uploads.links import no_links
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.storage.check.rules import broken_rules
from deskwire.storage.sqlite.database import connect_writer, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.transaction import SqliteTransaction
from tests.support.builders import NOON, OTHER_PROJECT, PROJECT, InlineStore, found_projects
from tests.support.seeing import seen

DAY_MS = 86_400_000
LONG_AGO = NOON - 700 * DAY_MS
WINDOWS = ConversationRetention(33 * DAY_MS, 365 * DAY_MS)


def thread(name: str, **fields: Any) -> ConversationRecord:
    return ConversationRecord(1, name, ContactRecord(f"user of {name}"), LONG_AGO, {}, **fields)


def said(name: str, number: int, author: Any = "contact", *, internal: bool = False) -> MessageRecord:
    at = LONG_AGO + number * 1_000
    return MessageRecord(1, f"{name}-{number}", name, author, None, None, f"{number}", internal, at)


async def bring(
    store: InlineStore, *records: Record, at: int = NOON, events: bool = False, project: Project = PROJECT
) -> ImportOutcome:
    show = partial(no_links().shown, now=at) if events else None
    return await store.write(lambda tx: import_batch(tx, project, records, at, show))


def state(store: InlineStore, name: str) -> Any:
    known = seen(store, lambda reader: reader.imported_conversations(PROJECT.rowid, {name}))
    found = seen(store, lambda reader: reader.conversation(PROJECT.rowid, known[name].id))
    assert found is not None
    return found


def events(store: InlineStore) -> list[dict[str, Any]]:
    found = seen(store, lambda reader: reader.events(PROJECT.rowid, 0, 1_000, frozenset()))
    return [orjson.loads(each.body) for each in found]


async def test_imported_bot_only_history_has_the_retention_of_a_local_one(inline_store: InlineStore) -> None:
    await bring(inline_store, thread("a"), said("a", 0, "bot"))
    due = seen(inline_store, lambda reader: reader.bot_only_before(NOON, (-1, -1), 10))
    assert due == []
    due = seen(inline_store, lambda reader: reader.bot_only_before(NOON + 1, (-1, -1), 10))
    assert [each.place[0] for each in due] == [NOON]
    conversation, _ = state(inline_store, "a")
    assert decide(conversation, Expire(WINDOWS), NOON + 33 * DAY_MS) == ()
    assert decide(conversation, Expire(WINDOWS), NOON + 33 * DAY_MS + 1) == (Deleted("retention"),)


async def test_an_archived_history_is_kept_for_the_whole_window_from_now(inline_store: InlineStore) -> None:
    await bring(inline_store, thread("a", archived=True), said("a", 0, "agent"))
    conversation, _ = state(inline_store, "a")
    assert conversation.archived_at == NOON
    assert decide(conversation, Expire(WINDOWS), NOON + 365 * DAY_MS) == ()


@pytest.mark.parametrize("internal", [False, True])
async def test_an_agents_word_in_it_makes_it_one_of_people(inline_store: InlineStore, internal: bool) -> None:
    await bring(inline_store, thread("a"))
    await bring(inline_store, said("a", 0, "agent", internal=internal))
    conversation, _ = state(inline_store, "a")
    assert conversation.human
    assert conversation.messages == (0 if internal else 1)
    assert seen(inline_store, lambda reader: reader.bot_only_before(1 << 60, (-1, -1), 10)) == []


async def test_newest_message_dates_a_conversation_in_any_order(inline_store: InlineStore) -> None:
    await bring(inline_store, thread("a", unread=True), said("a", 9), said("a", 3))
    await bring(inline_store, said("a", 5))
    conversation, _ = state(inline_store, "a")
    assert conversation.last_message_at == conversation.updated_at == LONG_AGO + 9_000
    assert conversation.unread


async def test_removed_project_refuses_imports(inline_store: InlineStore) -> None:
    with pytest.raises(NotFound):
        await bring(inline_store, thread("a"), project=Project(99, "prj_none", 1, "x", "x"))
    assert events(inline_store) == []


async def test_endpoints_are_sent_imported_events_with_the_sequence_before_each(
    inline_store: InlineStore,
) -> None:
    wanted = frozenset({"message.created"})
    new = Endpoint(0, "whk_1", PROJECT.rowid, "https://a.test/", wanted, b"", "tail", NOON, NOON)
    endpoint = await inline_store.write(lambda tx: tx.insert_endpoint(new))
    await bring(inline_store, thread("quiet"), said("quiet", 0))
    await bring(inline_store, thread("a"), said("a", 0), said("a", 1), events=True)
    await bring(inline_store, said("a", 2), events=True)
    pending = seen(inline_store, lambda reader: reader.pending_deliveries(endpoint.rowid, 0, 10))
    assert [(each.event.sequence, each.previous) for each in pending] == [(2, 0), (3, 2), (4, 3)]


@pytest.fixture(scope="module")
def writing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteTransaction]:
    """Return a transaction over a store of its own; it is never committed."""
    path = tmp_path_factory.mktemp("store") / FILE_NAME
    migrate(path)
    with closing(connect_writer(path)) as connection:
        connection.execute("BEGIN")
        tx = SqliteTransaction(connection)
        found_projects(tx)
        yield tx


RECORDS = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(0, 6), st.sampled_from(["contact", "agent"]), st.booleans()
    ),
    max_size=40,
)
CUTS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 2), st.booleans()), max_size=8)


@given(RECORDS, CUTS)
@settings(max_examples=40)
def test_however_a_file_is_cut_and_repeated_it_leaves_the_same(
    writing: SqliteTransaction, messages: list[Any], cuts: list[tuple[int, int, bool]]
) -> None:
    records: list[Record] = [thread(name) for name in "abc"]
    records += [said(name, number, who, internal=note) for name, number, who, note in messages]
    writing.conn.execute("SAVEPOINT example")
    whole = import_batch(writing, PROJECT, records, NOON, None)
    start = 0
    for size, times, told in [*cuts, (len(records), 2, False)]:
        for _ in range(times):
            show = partial(no_links().shown, now=NOON) if told else None
            import_batch(writing, OTHER_PROJECT, records[start : start + size], NOON, show)
        start += size
    conversations, stored = content(writing, PROJECT)
    assert (conversations, stored) == content(writing, OTHER_PROJECT)
    assert (whole.imported["conversation"], whole.imported["message"]) == (3, len(stored))
    assert list(broken_rules(writing.conn, writing.dialect)) == []
    writing.conn.execute("ROLLBACK TO example")
    writing.conn.execute("RELEASE example")
    writing.published.clear()


def content(tx: SqliteTransaction, project: Project) -> tuple[list[Any], list[Any]]:
    """Return what a project has stored, without ids and sequences."""
    conversations = tx.conn.execute(
        "SELECT i.external_id, c.messages, c.last_message_at, c.updated_at, c.human, c.status FROM conversations c "
        "JOIN imported_conversations i ON i.conversation = c.rowid WHERE c.project = ? ORDER BY 1",
        (project.rowid,),
    ).fetchall()
    messages = tx.conn.execute(
        "SELECT i.external_id, m.number, m.text, m.internal, m.author_type FROM messages m "
        "JOIN imported_conversations i ON i.conversation = m.conversation WHERE i.project = ? "
        "ORDER BY i.external_id, m.rowid",
        (project.rowid,),
    ).fetchall()
    return conversations, messages


async def test_last_imported_event_shows_the_stored_state(inline_store: InlineStore) -> None:
    await bring(inline_store, thread("a"), said("a", 0), said("a", 1, "agent"), events=True)
    last = events(inline_store)[-1]
    conversation, contact = state(inline_store, "a")
    assert last["data"]["conversation"] == conversation_view(conversation, contact, PROJECT.id)
    assert last["sequence"] == 3
