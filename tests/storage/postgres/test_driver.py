"""The driver: values, placeholders, merged statements, exchanges and shared reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery
from deskwire.storage.postgres.commit.batch_statements import (
    PARENT_TABLES,
    BufferedWrite,
    Planner,
    group_writes,
    shape_of,
)
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.codec import rows_of, translate_placeholders
from deskwire.storage.postgres.driver.errors import ConnectionLost, DatabaseError
from deskwire.storage.postgres.driver.pipeline import PipelineConnection, Statement, bound_statement
from deskwire.storage.postgres.driver.session import Database
from tests.support.builders import PROJECT
from tests.support.postgres import fresh_database
from tests.support.postgres_nodes import line_to, node, rows


@pytest.fixture(scope="module")
def connection() -> Iterator[BlockingConnection]:
    with fresh_database(migrated=False) as url:
        connection = BlockingConnection(Database(url, "test"), "read")
        yield connection
        connection.close()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint", [0, -1, 2**63 - 1, -(2**63), None]),
        ("smallint", [0, 1, -(2**15), None]),
        ("integer", [2**31 - 1, None]),
        ("text", ["", "a\0b", "\ue000", "\ue0000", "\0\ue000\0", "ä€😀", "\\x00", "{}", '"', None]),
        ("bytea", [b"", b"\0\xff", b"\\x41", None]),
        ("double precision", [0.1, -1e300, None]),
        ("numeric", [0, 1, -1, 10**20, -(10**20), 10_000, 9_999, 100_000_000, 12.5, -0.001, None]),
        ("bigint[]", []),
    ],
)
def test_value_is_read_as_it_was_written(
    connection: BlockingConnection, kind: str, values: list[Any]
) -> None:
    for value in values:
        assert connection.execute(f"SELECT CAST(? AS {kind})", (value,)).fetchone() == (value,)


@settings(max_examples=200)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=20))
def test_text_is_read_as_it_was_written(connection: BlockingConnection, text: str) -> None:
    assert connection.execute("SELECT CAST(? AS text)", (text,)).fetchone() == (text,)


@settings(max_examples=100)
@given(
    st.lists(st.text(alphabet="a\"\\{},\0\ue000 'NULL", max_size=6), max_size=5), st.lists(st.integers(-9, 9))
)
def test_lists_are_arrays(connection: BlockingConnection, texts: list[str], numbers: list[int]) -> None:
    found = connection.execute("SELECT * FROM unnest(CAST(? AS text[]))", (texts,)).fetchall()
    assert [text for (text,) in found] == texts
    found = connection.execute("SELECT * FROM unnest(CAST(? AS bigint[]))", (numbers,)).fetchall()
    assert [number for (number,) in found] == numbers


def test_unknown_result_type_is_reported(connection: BlockingConnection) -> None:
    with pytest.raises(TypeError, match="cast it"):
        connection.execute("SELECT clock_timestamp()")
    with pytest.raises(TypeError, match="is not stored"):
        connection.execute("SELECT CAST(? AS text)", (object(),))


@pytest.mark.parametrize(
    ("sql", "text", "names"),
    [
        ("a = ? AND b = ?", "a = $1 AND b = $2", ()),
        ("a = ?2 AND b = ?1 AND c = ?2", "a = $2 AND b = $1 AND c = $2", ()),
        ("a = :x AND b = :y AND c = :x", "a = $1 AND b = $2 AND c = $1", ("x", "y")),
        ("'?' || \"?\" || ':x' || x::text || ?", "'?' || \"?\" || ':x' || x::text || $1", ()),
        ("'it''s ?' = ?", "'it''s ?' = $1", ()),
    ],
)
def test_placeholders_become_numbers(sql: str, text: str, names: tuple[str, ...]) -> None:
    assert translate_placeholders(sql) == (text, names)


def _write(sql: str, *values: Any) -> BufferedWrite:
    text, _ = translate_placeholders(sql)
    return BufferedWrite(text, values, shape_of(text))


def test_rows_of_one_statement_are_grouped_and_never_reordered_within_a_table() -> None:
    insert, update = "INSERT INTO a (x) VALUES (?)", "UPDATE a SET y = ? WHERE x = ?"
    other, delete = "INSERT INTO b (x) VALUES (?)", "DELETE FROM a WHERE x = ?"
    groups = group_writes(
        [
            _write(insert, 1),
            _write(other, 1),
            _write(insert, 2),
            _write(update, 0, 1),
            _write(update, 0, 2),
            _write(update, 1, 1),  # the same row again
            _write(insert, 3),
            _write(delete, 1),
            _write(other, 2),
            _write(insert, 4),
        ]
    )
    assert [(text.split()[0] + text.split()[2], found) for text, found in groups] == [
        ("INSERTa", [(1,), (2,)]),
        ("INSERTb", [(1,)]),
        ("UPDATESET", [(0, 1), (0, 2)]),
        ("UPDATESET", [(1, 1)]),
        ("INSERTa", [(3,)]),
        ("DELETEa", [(1,)]),
        ("INSERTb", [(2,)]),
        ("INSERTa", [(4,)]),
    ]


def test_grouping_keeps_rows_after_those_they_refer_to() -> None:
    contact, conversation = (
        "INSERT INTO contacts (rowid) VALUES (?)",
        "INSERT INTO conversations (c) VALUES (?)",
    )
    tag, word = "INSERT INTO conversation_tags (c) VALUES (?)", "INSERT INTO contact_words (c) VALUES (?)"
    groups = group_writes(
        [
            *(_write(conversation, 1), _write(tag, 1)),
            *(_write(contact, 2), _write(word, 2), _write(conversation, 2), _write(tag, 2)),
            *(_write(conversation, 3), _write(tag, 3)),
            *(_write(contact, 4), _write(word, 4), _write(conversation, 4), _write(tag, 4)),
        ]
    )
    assert [(text.split()[2], [values[0] for values in found]) for text, found in groups] == [
        ("conversations", [1]),
        ("conversation_tags", [1]),
        ("contacts", [2, 4]),
        ("contact_words", [2]),
        ("conversations", [2, 3, 4]),
        ("conversation_tags", [2, 3, 4]),
        ("contact_words", [4]),
    ]


def test_parent_tables_list_matches_the_foreign_keys(postgres_url: str) -> None:
    found = rows(
        postgres_url,
        "SELECT DISTINCT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint WHERE contype = 'f' "
        "AND conrelid <> confrelid",  # a contact is merged into an earlier one
    )
    for child, parent in found:
        assert parent in PARENT_TABLES
        assert child not in PARENT_TABLES or PARENT_TABLES.index(parent) < PARENT_TABLES.index(child)


async def test_merged_statement_writes_the_same_rows_as_single_ones(empty_postgres_url: str) -> None:
    wire, planner = PipelineConnection(Database(empty_postgres_url, "test"), "batch"), Planner()
    await wire.exchange(
        [Statement("CREATE TABLE t (k bigint PRIMARY KEY, a text, b bytea, c smallint, d double precision)")]
    )
    insert = translate_placeholders("INSERT INTO t (k, a, b, c, d) VALUES (?, ?, ?, 7, ?)")[0]
    update = translate_placeholders("UPDATE t SET a = ?, c = ? WHERE k = ?")[0]
    query = translate_placeholders("SELECT a, c FROM t WHERE k = ?")[0]
    made = [(1, "a\0", b"\0", 0.5), (2, None, None, None), (3, "ü", b"x" * 100_000, -1.0)]
    await planner.learn(wire, [insert, update, query])
    await wire.exchange(
        [planner.merged(insert, made), planner.merged(update, [("new", 1, 2), (None, None, 3)])]
    )
    ((fetch, keys),) = planner.queries([(query, (key,)) for key in (1, 2, 9)])
    (answer,) = await wire.exchange([fetch])
    found = [(keys[number - 1][1][0], *rest) for number, *rest in rows_of(answer)]
    assert sorted(found) == [(1, "a\0", 7), (2, "new", 1)]
    await wire.exchange([bound_statement("DELETE FROM t WHERE k = $1", (1,))])
    wire.close()
    assert rows(empty_postgres_url, "SELECT k, a, length(b), c, d FROM t ORDER BY k") == [
        (2, "new", None, 1, None),
        (3, None, 100_000, None, -1.0),
    ]


async def test_statements_after_a_refused_one_are_skipped_and_the_next_exchange_works(
    empty_postgres_url: str,
) -> None:
    wire = PipelineConnection(Database(empty_postgres_url, "test"), "batch")
    await wire.exchange([Statement("CREATE TABLE t (k bigint PRIMARY KEY)")])
    insert = "INSERT INTO t VALUES ($1)"
    with pytest.raises(DatabaseError) as refused:
        await wire.exchange(
            [
                Statement("BEGIN"),
                bound_statement(insert, (1,)),
                bound_statement(insert, (1,)),
                bound_statement("SELECT $1::int", (2,)),
                Statement("COMMIT"),
            ]
        )
    assert refused.value.sqlstate == "23505"
    await wire.exchange([Statement("ROLLBACK")])
    answers = await wire.exchange(
        [bound_statement("SELECT $1::int", (2,)), Statement("SELECT count(*) FROM t")]
    )
    assert [rows_of(answer) for answer in answers] == [[(2,)], [(0,)]]
    wire.close()


async def test_exchange_works_with_full_buffers_in_both_directions(empty_postgres_url: str) -> None:
    wire, large = PipelineConnection(Database(empty_postgres_url, "test"), "batch"), "x" * 8_000_000
    answers = await wire.exchange([bound_statement("SELECT CAST($1 AS text)", (large,))] * 4)
    assert [rows_of(answer) == [(large,)] for answer in answers] == [True] * 4
    wire.close()


async def test_cancelled_exchange_ends_the_session(empty_postgres_url: str) -> None:
    wire = PipelineConnection(Database(empty_postgres_url, "test"), "batch")
    with trio.move_on_after(0.1):
        await wire.exchange([Statement("SELECT pg_sleep(60)")])
    assert not wire.is_open
    with pytest.raises(ConnectionLost):
        await wire.exchange([Statement("SELECT pg_sleep(60)")], timeout_s=0.1)
    (answer,) = await wire.exchange([Statement("SELECT 1")])
    assert rows_of(answer) == [(1,)]
    wire.close()


async def test_notices_are_those_of_the_last_exchange(empty_postgres_url: str) -> None:
    wire = PipelineConnection(Database(empty_postgres_url, "test"), "batch")
    await wire.exchange([Statement("COMMIT")])
    assert wire.notices == ["25P01"]
    await wire.exchange([Statement("SELECT 1")])
    assert wire.notices == []
    wire.close()


async def test_query_of_several_statements_uses_one_snapshot(postgres_url: str) -> None:
    async with node(postgres_url) as here:

        def names(reader: Any) -> list[Any]:
            found: list[Any] = []
            for _ in range(4):
                found.append(
                    reader.conn.execute("SELECT count(*), ? FROM messages", (len(found),)).fetchone()[0]
                )
                rows(postgres_url, "INSERT INTO messages (id, conversation, author_type, text, internal, created_at, project) "
                     f"SELECT gen_random_uuid()::text, 0, 'bot', '{len(found)}', 0, 0, 1 RETURNING 1")  # fmt: skip
            return found

        found = await here.store.read(InlineQuery(names))
        assert len(set(found)) == 1


async def test_failing_read_does_not_fail_others_in_its_exchange(postgres_url: str) -> None:
    async with node(postgres_url) as here:
        outcomes: list[Any] = []

        async def ask(sql: str) -> None:
            def query(reader: Any) -> Any:
                return reader.conn.execute(sql).fetchone()

            try:
                outcomes.append(await here.store.read(InlineQuery(query)))
            except Unavailable as refusal:
                outcomes.append(refusal.reason)

        async with trio.open_nursery() as nursery:
            for sql in ("SELECT 1", "SELECT 1 / 0", "SELECT 2"):
                nursery.start_soon(ask, sql)
        assert sorted(map(str, outcomes)) == ["(1,)", "(2,)", "storage_failed"]


async def test_reads_of_one_and_of_several_statements_share_an_exchange(postgres_url: str) -> None:
    def one(reader: Any) -> Any:
        return reader.conn.execute("SELECT 1").fetchone()

    def several(reader: Any) -> Any:
        return [reader.conn.execute(sql).fetchone() for sql in ("SELECT 2", "SELECT 3")]

    sessions = "SELECT pid, backend_start FROM pg_stat_activity WHERE application_name LIKE 'deskwire/look/%'"
    async with node(postgres_url) as here:
        await here.store.read(InlineQuery(several))
        before = rows(postgres_url, sessions)
        found: list[Any] = []

        async def look(query: Any) -> None:
            for _ in range(5):
                found.append(await here.store.read(InlineQuery(query)))

        async with trio.open_nursery() as nursery:
            for query in (one, several) * 4:
                nursery.start_soon(look, query)
        assert sorted(map(str, found)) == ["(1,)"] * 20 + ["[(2,), (3,)]"] * 20
        assert rows(postgres_url, sessions) == before, "none of them has spoiled it for the others"


async def test_read_with_too_many_statements_gets_its_own_connection(postgres_url: str) -> None:
    def count(reader: Any) -> int:
        return sum(reader.conn.execute("SELECT CAST(? AS int)", (n,)).fetchone()[0] for n in range(40))

    async with node(postgres_url) as here:
        assert await here.store.read(InlineQuery(count)) == sum(range(40))


async def test_read_is_repeated_after_a_lost_connection(postgres_url: str) -> None:
    def project(reader: Any) -> Any:
        return reader.project(PROJECT.id)

    with line_to(postgres_url) as line:
        async with node(line.url) as here:
            for _ in range(3):
                line.cut()
                assert await here.store.read(InlineQuery(project)) == PROJECT
                assert await here.store.read(project) == PROJECT


def test_queued_statements_share_the_round_trip_of_the_next_one(connection: BlockingConnection) -> None:
    connection.queue("BEGIN")
    connection.queue("SELECT set_config('application_name', $1, true)", ("within",))
    assert not connection.in_transaction
    assert connection.execute("SHOW application_name").fetchone() == ("within",)
    assert connection.in_transaction
    connection.roll_back()
    assert connection.execute("SHOW application_name").fetchone() == ("deskwire/read/test",)
    assert not connection.in_transaction


def test_statement_that_is_queued_twice_is_prepared_once(postgres_url: str) -> None:
    connection = BlockingConnection(Database(postgres_url, "test"), "read")
    for number in range(3):
        for _ in range(2):
            connection.queue("SELECT set_config('application_name', $1, false)", (f"name {number}",))
        assert connection.execute(f"SELECT {number}, current_setting('application_name')").fetchone() == (
            number,
            f"name {number}",
        )
    assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (5,)
    connection.close()


def test_failed_queued_statement_fails_the_next_one_and_no_later_one(connection: BlockingConnection) -> None:
    for _ in range(2):  # the second time, all statements are prepared
        connection.queue("BEGIN")
        connection.queue("SELECT CAST($1 AS int)", ("none",))
        with pytest.raises(DatabaseError) as refused:
            connection.execute("SELECT CAST(? AS text)", ("later",))
        assert refused.value.sqlstate == "22P02"
        connection.roll_back()
        assert connection.execute("SELECT CAST(? AS text)", ("later",)).fetchone() == ("later",)
        assert not connection.in_transaction


def test_statements_that_are_queued_and_not_sent_are_discarded_with_the_transaction(
    connection: BlockingConnection,
) -> None:
    connection.queue("BEGIN")
    connection.roll_back()
    assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not connection.in_transaction


def test_session_that_ends_after_its_rollback_is_lost_at_the_next_statement(postgres_url: str) -> None:
    connection = BlockingConnection(Database(postgres_url, "test"), "read")
    for _ in range(2):
        connection.queue("BEGIN")
        (session,) = connection.execute("SELECT pg_backend_pid()").fetchone()
        connection.roll_back()
        assert rows(postgres_url, f"SELECT pg_terminate_backend({session}, 10000)") == [(True,)]
        connection.queue("BEGIN")
        with pytest.raises(ConnectionLost, match="terminat"):
            connection.execute("SELECT 1")
        connection.roll_back()
        assert not connection.is_open
    assert connection.execute("SELECT 1").fetchone() == (1,)
    connection.close()


def test_more_statements_than_are_kept_prepared_are_run(connection: BlockingConnection) -> None:
    for number in range(520):
        connection.queue(f"SELECT {number}, $1", ("x",))
        assert connection.execute(f"SELECT {number}").fetchone() == (number,)
