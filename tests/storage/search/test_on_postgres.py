"""The index on PostgreSQL: commits out of order, other nodes, other versions, and erasures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import psycopg
import pytest
import trio

from deskwire.engine.conversations.commands import Delete
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.search.ingest import next_batch_to_ingest, take_in
from deskwire.engine.search.ports import EVERYTHING, IndexPosition
from deskwire.storage.postgres.search import index as module
from deskwire.storage.postgres.search.index import PostgresIndex
from tests.storage.search.test_both import Kept, on_postgres
from tests.support.builders import PROJECT, create, post

INSERT = (
    "INSERT INTO messages (id, conversation, project, number, author_type, text, internal, created_at, sequence) "
    "SELECT 'msg_' || %s, rowid, project, 1, 'contact', %s, 0, 0, 1 FROM conversations LIMIT 1"
)


@pytest.fixture
async def kept(nursery: trio.Nursery) -> object:
    """A store with one conversation."""
    async with on_postgres(nursery) as kept:
        await kept.actors.create(PROJECT, create(message=post(text="first")))
        yield kept
        nursery.cancel_scope.cancel()


@pytest.fixture
def late(kept: Kept) -> Iterator[psycopg.Connection[tuple[int]]]:
    """An open transaction that has allocated a message's key but has not committed."""
    with psycopg.connect(kept.store.database.url) as connection:
        connection.execute(INSERT, ("late", "tardy words"))
        yield connection


def insert(kept: Kept, text: str) -> None:
    """Store and commit a message with a greater key."""
    with psycopg.connect(kept.store.database.url) as connection:
        connection.execute(INSERT, (text, text))


async def found(kept: Kept, word: str) -> bool:
    """Return whether a search finds anything."""
    result = await kept.store.read(lambda reader: reader.found_conversations(PROJECT.rowid, (word,), 5))
    return bool(result.rows)


async def test_late_commit_with_a_smaller_key_is_found(
    kept: Kept, late: psycopg.Connection[tuple[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITERS_TIMEOUT_S", 0.05)
    await kept.take_in()
    insert(kept, "early")
    await kept.take_in()
    assert not await found(kept, "early")  # the index waits: the open transaction has a smaller key
    assert (await kept.store.read(lambda reader: reader.search_lag())).messages
    late.commit()
    await kept.take_in()
    assert await found(kept, "early")
    assert await found(kept, "tardy")


async def test_without_a_bound_it_would_never_be_found(
    kept: Kept, late: psycopg.Connection[tuple[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITERS_TIMEOUT_S", 0.05)
    looked = PostgresIndex.bound

    async def boundless(index: PostgresIndex) -> IndexPosition:
        await looked(index)
        return EVERYTHING

    monkeypatch.setattr(PostgresIndex, "bound", boundless)
    insert(kept, "early")
    await kept.take_in()
    late.commit()
    await kept.take_in()
    assert await found(kept, "early")
    assert not await found(kept, "tardy")


async def test_a_transaction_that_ends_soon_is_waited_for(
    kept: Kept, late: psycopg.Connection[tuple[int]], nursery: trio.Nursery
) -> None:
    async def commit() -> None:
        await trio.sleep(0.1)  # the index is waiting by then
        await trio.to_thread.run_sync(late.commit)

    nursery.start_soon(commit)
    insert(kept, "early")
    await kept.take_in()
    assert await found(kept, "tardy")


async def test_growth_of_the_index_refreshes_the_statistics(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANALYZED_MESSAGES_MIN", 3)

    def analyzed_rows() -> float:
        with psycopg.connect(kept.store.database.url) as connection:
            row = connection.execute("SELECT reltuples FROM pg_class WHERE relname = 'messages'").fetchone()
        assert row is not None
        return float(row[0])

    await kept.take_in()
    await kept.index.refresh_statistics()
    assert analyzed_rows() == -1  # PostgreSQL's mark of a table that was never analyzed
    insert(kept, "second")
    insert(kept, "third")
    await kept.take_in()
    await kept.index.refresh_statistics()
    assert analyzed_rows() == 3
    insert(kept, "fourth")
    await kept.take_in()
    await kept.index.refresh_statistics()
    assert analyzed_rows() == 3


async def test_node_with_a_stale_index_position_writes_nothing(kept: Kept) -> None:
    other = PostgresIndex(kept.store.database)
    bound = await other.bound()
    stale = await kept.store.read(
        partial(next_batch_to_ingest, position=other.position, complete=False, bound=bound)
    )
    assert stale is not None
    await kept.take_in()
    with pytest.raises(Unavailable, match="Another node has written the search index"):
        await other.write(partial(take_in, intake=stale))
    await other.bound()
    assert other.position == kept.index.position
    assert other.complete
    other.close()


async def test_index_of_another_version_is_rebuilt(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    await kept.take_in()
    monkeypatch.setattr(module, "VERSION", "2, Unicode 99")
    monkeypatch.setattr(module, "_RESET_INDEX", module._RESET_INDEX.replace("'1, ", "'2, "))
    await kept.index.bound()
    assert kept.index.position == IndexPosition(0, None, 0, 0)
    assert not await found(kept, "first")
    assert (await kept.store.read(lambda reader: reader.search_lag())).building


async def test_no_row_has_an_erased_word(kept: Kept) -> None:
    command = create(title="Secretive matters", message=post(text="clandestine words"))
    await kept.actors.create(PROJECT, command)
    await kept.take_in()
    assert await found(kept, "clandestine")
    await kept.actors.ask(PROJECT, command.conversation_id, Delete("manual"))
    assert not await found(kept, "clandestine")  # at once: the conversation is gone
    with psycopg.connect(kept.store.database.url) as connection:
        connection.execute("UPDATE event_window SET scrub_due = 0")  # as if a vacuum had run between the two
    await kept.take_in()
    with psycopg.connect(kept.store.database.url) as connection:
        assert connection.execute("SELECT scrub_due > 1 FROM event_window").fetchone() == (True,)
        rows = connection.execute("SELECT word FROM search_postings").fetchall()
        rows += connection.execute("SELECT body || title FROM search_words").fetchall()
    assert rows
    assert not [text for (text,) in rows if "clan" in text or "secre" in text]
