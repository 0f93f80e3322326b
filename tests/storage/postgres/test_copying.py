"""An installation that was copied from SQLite into PostgreSQL is complete and continues there (ADR 22)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import trio

from deskwire.engine.conversations.commands import Close, Rate, Reopen
from deskwire.engine.conversations.events import contact_updated
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EventDraft, Topic
from deskwire.engine.uploads.ports import FileContent
from deskwire.storage.check.counts import NOT_COUNTED, counted
from deskwire.storage.copying.run import Copied, CopyRequest, copy
from deskwire.storage.copying.source import RowDigest, escaped
from deskwire.storage.postgres.admin.check import check
from deskwire.storage.postgres.admin.installation import InstallationIdentity, claim
from deskwire.storage.postgres.commit.positions import PROJECT_SHIFT
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.postgres.files import DatabaseFiles
from deskwire.storage.postgres.store import open_postgres
from deskwire.storage.sqlite.backup.snapshot import CopyError, row_counts
from deskwire.storage.sqlite.directory import FILE_NAME
from tests.storage.backup.conftest import CONTENT, FILE, SECRET, fill
from tests.support.builders import CONTACT, NOON, PROJECT, post, running
from tests.support.postgres import fresh_database

IDENTITY = InstallationIdentity(["an-id"], "database")
IDENTITIES = (
    "SELECT table_name, column_name, pg_get_serial_sequence(quote_ident(table_name), column_name) "
    "FROM information_schema.columns WHERE is_identity = 'YES' AND table_schema = current_schema()"
)
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
ODD = "a NUL \0, its mark \ue000, and \ue0000 \U0001f600"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Make a data directory with rows in every table, and a text that PostgreSQL stores in another form."""
    directory = tmp_path / "data"
    trio.run(_filled, directory)
    return directory


async def _filled(directory: Path) -> None:
    conversation = await fill(directory)
    async with running(directory) as engine:
        await engine.directory.ask(PROJECT, conversation, post("agent", ODD))
        for command in (Rate(9, "Quick."), Close("agent"), Reopen()):
            await engine.directory.ask(PROJECT, conversation, command)
        erased = contact_updated(replace(CONTACT, user_id="erased-1"))
        await engine.store.write(lambda tx: tx.append_event(PROJECT, erased, None, NOON))


@pytest.fixture
def url() -> Iterator[str]:
    """Make an empty database."""
    with fresh_database(migrated=False) as made:
        yield made


def copied(data: Path, url: str) -> Copied:
    return copy(CopyRequest(data / FILE_NAME, data, url, IDENTITY, None, lambda _: None))


def sqlite_rows(data: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(data / FILE_NAME)) as connection:
        return connection.execute(query).fetchall()


def postgres_rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


def test_backup_copy_and_check_count_the_same_rows(data: Path, url: str) -> None:
    done = copied(data, url)
    with closing(sqlite3.connect(data / FILE_NAME)) as connection:
        lite = row_counts(connection)
    with closing(DatabaseFiles(url)) as files:
        shared = check(url, None, files, contents=False).rows
    assert {table: count for table, count in lite.items() if table not in NOT_COUNTED} == done.rows
    assert {table: count for table, count in shared.items() if table not in NOT_COUNTED} == done.rows
    assert counted(lite) == counted(shared) == counted(done.rows) > 0


def test_copy_keeps_ids_order_texts_and_files(data: Path, url: str) -> None:
    done = copied(data, url)
    assert done.rows["events"] > 2
    assert done.rows["deliveries"] > 0
    assert done.rows["milestones"] == 4, "an answer, a rating, a closing and a reopening"
    assert (done.files, done.file_bytes, done.missing, done.problems) == (1, len(FILE), [], [])
    for query in (
        "SELECT id FROM events ORDER BY position",
        "SELECT id, status FROM deliveries ORDER BY position",
        "SELECT rowid, id, sequence, revision FROM conversations ORDER BY rowid",
        "SELECT rowid, asked_at, answered_at, opened_at, replier_id, team_id FROM conversations ORDER BY rowid",
        "SELECT * FROM milestones ORDER BY rowid",
        "SELECT rowid, project FROM messages ORDER BY rowid",
        "SELECT name, sealed FROM kept_answers ORDER BY name",
        "SELECT * FROM drafts ORDER BY rowid",
        "SELECT * FROM held_messages ORDER BY rowid",
        "SELECT rowid, id, setup_hidden FROM projects ORDER BY rowid",
    ):
        assert postgres_rows(url, query) == sqlite_rows(data, query), query
    texts = "SELECT text FROM messages ORDER BY rowid"
    assert [escaped(row) for row in sqlite_rows(data, texts)] == postgres_rows(url, texts)
    places = "SELECT position FROM events ORDER BY position"
    shifted = [
        (int(str(place)) + (PROJECT.rowid << PROJECT_SHIFT),) for (place,) in sqlite_rows(data, places)
    ]
    assert postgres_rows(url, places) == shifted
    [(entry,)] = postgres_rows(url, "SELECT rowid FROM contents")
    files = DatabaseFiles(url)
    content = FileContent(CONTENT.project, CONTENT.sha256, int(str(entry)))
    assert files.read(content, 0, 1_000) == FILE
    report = check(url, Secrets(SECRET), files, contents=True)
    files.close()
    assert report.problems == []


async def test_events_after_a_copy_have_later_positions(data: Path, url: str) -> None:
    await trio.to_thread.run_sync(copied, data, url)
    newest = max(str(row[0]) for row in sqlite_rows(data, "SELECT id FROM events"))
    async with open_postgres(url, node="test", batch=16, readers=1, on_commit=lambda _: None) as store:
        made = await store.write(
            lambda tx: tx.insert_project("prj_01M3250V000000000000000NEW", 1, "New", "new-stream", 1)
        )
        project = await store.read(lambda reader: reader.project(PROJECT.id))
        assert project is not None
        event = await store.write(
            lambda tx: tx.append_event(project, EventDraft("conversation.created", None, {}), None, NOON)
        )
    assert made.rowid > PROJECT.rowid + 1
    assert event.id > newest
    assert [str(event.id)] == [
        str(row[0]) for row in postgres_rows(url, "SELECT id FROM events ORDER BY position DESC LIMIT 1")
    ]


def test_new_rows_after_a_copy_have_larger_keys(data: Path, url: str) -> None:
    copied(data, url)
    with psycopg.connect(url) as connection:
        found = connection.execute(IDENTITIES).fetchall()
        assert {("audit", "position"), ("messages", "rowid")} <= {
            (table, column) for table, column, _ in found
        }
        for table, column, sequence in found:
            rows = connection.execute(
                f'SELECT nextval(%s), coalesce(max("{column}"), 0) FROM "{table}"'.encode(), (sequence,)
            )
            assert [table for following, newest in rows if following <= newest] == []
        assert connection.execute("SELECT count(*) > 0 FROM audit").fetchone() == (True,)


async def test_copied_event_that_outlives_its_conversation_is_found_by_id(data: Path, url: str) -> None:
    await trio.to_thread.run_sync(copied, data, url)
    lane = Topic(PROJECT.rowid, "contact", "erased-1")
    async with running(data) as engine:
        before = await engine.store.read(lambda reader: reader.topic_events(lane, 0, 10, frozenset()))
    async with open_postgres(url, node="test", batch=16, readers=1, on_commit=lambda _: None) as store:
        after = await store.read(lambda reader: reader.topic_events(lane, 0, 10, frozenset()))
    assert [each.type for each in before] == ["contact.updated"]
    assert [each.id for each in after] == [each.id for each in before]


def test_copy_into_a_database_with_an_installation_is_refused(data: Path, url: str) -> None:
    copied(data, url)
    with pytest.raises(DatabaseUnusableError, match="has an installation already"):
        copied(data, url)


def test_failed_copy_leaves_the_database_empty_and_can_be_repeated(data: Path, url: str) -> None:
    [upload] = [path for path in (data / "uploads").rglob("*") if path.is_file()]
    upload.write_bytes(b"others")
    with pytest.raises(CopyError, match="other bytes than were uploaded"):
        copied(data, url)
    assert postgres_rows(url, "SELECT secret_id FROM installation") == [(None,)]
    assert postgres_rows(url, "SELECT count(*) FROM events") == [(0,)]
    upload.write_bytes(FILE)
    assert copied(data, url).files == 1


def test_copy_fails_on_rows_with_broken_references(data: Path, url: str) -> None:
    with closing(sqlite3.connect(data / FILE_NAME)) as connection:
        connection.execute("UPDATE deliveries SET endpoint = 99 WHERE position = 1")
        connection.commit()
    with pytest.raises(CopyError):
        copied(data, url)
    assert postgres_rows(url, "SELECT count(*) FROM events") == [(0,)]


def test_a_node_with_another_secret_or_place_of_uploads_is_refused(data: Path, url: str) -> None:
    copied(data, url)
    claim(url, IDENTITY, "a")
    claim(url, replace(IDENTITY, secret_ids=["a-new-one", "an-id"]), "a")  # a rotation of the secret
    with pytest.raises(DatabaseUnusableError, match="another secret"):
        claim(url, IDENTITY, "a")
    with pytest.raises(DatabaseUnusableError, match="set DESKWIRE_FILES to database"):
        claim(url, InstallationIdentity(["a-new-one"], "s3://elsewhere"), "a")


def test_node_waits_for_a_running_copy_and_then_finds_the_installation(data: Path, url: str) -> None:
    with ThreadPoolExecutor() as pool:
        claims: list[Future[None]] = []

        def told(what: str) -> None:
            if what == "and checking it":
                claims.append(pool.submit(claim, url, IDENTITY, "a"))
                while postgres_rows(url, WAITING) == [(0,)]:
                    time.sleep(0.01)  # poll: there is no notification

        copy(CopyRequest(data / FILE_NAME, data, url, IDENTITY, None, told))
        claims[0].result()


def test_digest_depends_on_the_rows_and_not_on_their_order() -> None:
    rows: list[tuple[object, ...]] = [(1, "a", None), (2, "b", b"c"), (2, "b", b"c")]

    def digest(of: list[tuple[object, ...]], key: bytes = b"k") -> RowDigest:
        made = RowDigest(key)
        assert list(made.over(of)) == of
        return made

    assert digest(rows) == digest(rows[::-1])
    assert digest(rows) != digest(rows[:2])
    assert digest(rows) != digest([*rows[:2], (2, "b", "c")])
    assert digest(rows) != digest(rows, b"other")
