"""The changes that triggers report: to the transaction, to all nodes, and to the routing of events."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

Connection = psycopg.Connection

BASE = """
INSERT INTO organisations (id, name, created_at) VALUES ('org_1', 'A', 0);
INSERT INTO projects (id, organisation, name, stream_key, created_at) VALUES ('prj_1', 1, 'P', 'p', 0);
INSERT INTO projects (id, organisation, name, stream_key, created_at) VALUES ('prj_2', 1, 'Q', 'q', 0);
INSERT INTO users (id, email, name, created_at) VALUES ('usr_1', 'a@b', 'A', 0);
INSERT INTO memberships VALUES (1, 1, 'owner', 0);
INSERT INTO server_keys (id, project, hash, tail, label, created_at) VALUES ('key_1', 1, 'h', 't', 'l', 0);
INSERT INTO sessions (id, "user", hash, client, created_at, last_seen_at) VALUES ('ses_1', 1, 's', 'c', 0, 0);
INSERT INTO endpoints (id, project, url, events, sealed_secret, secret_tail, status, created_at, updated_at)
    VALUES ('whk_1', 2, 'u', '[]', 's', 't', 'enabled', 0, 0);
INSERT INTO contacts (id, project, user_id, created_at, updated_at) VALUES ('con_1', 1, 'u', 0, 0)
"""


@pytest.fixture
def database(postgres_url: str) -> Iterator[Connection]:
    """Open a session with a database that has one row of each kind."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(BASE.encode())
        yield connection


def epoch(database: Connection) -> int:
    row = database.execute("SELECT epoch FROM installation").fetchone()
    assert row is not None
    return int(row[0])


def version(database: Connection, project: int) -> int:
    sql = "SELECT endpoints_version FROM project_heads WHERE project = %s"
    row = database.execute(sql, (project,)).fetchone()
    assert row is not None
    return int(row[0])


def told(database: Connection, *statements: str) -> list[str]:
    """Return the words that a transaction with this change gets."""
    with database.transaction():
        for statement in statements:
            database.execute(statement.encode())
        row = database.execute("SELECT current_setting('deskwire.changes', true)").fetchone()
    assert row is not None
    return (row[0] or "").split()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE server_keys SET revoked_at = 1", ["callers"]),
        ("INSERT INTO server_keys (id, project, hash, tail, label, created_at) VALUES ('k', 1, 'x', '', '', 0)", ["callers"]),
        ("DELETE FROM server_keys", ["callers"]),
        ("UPDATE projects SET name = 'R' WHERE rowid = 2", ["callers"]),
        ("UPDATE memberships SET role = 'member'", ["people"]),
        ("DELETE FROM memberships", ["people"]),
        ("INSERT INTO organisations (id, name, created_at) VALUES ('o', 'O', 0); INSERT INTO memberships VALUES (2, 1, 'agent', 0)", ["people"]),
        ("UPDATE organisations SET session_idle_s = 300", ["people"]),
        ("UPDATE users SET generation = 1", ["people", "session:ses_1"]),
        ("DELETE FROM sessions", ["session:ses_1"]),
        ("UPDATE endpoints SET status = 'removed'", ["endpoints"]),
    ],
)  # fmt: skip
def test_change_of_cached_data_begins_an_epoch_and_is_reported(
    database: Connection, statement: str, words: list[str]
) -> None:
    before = epoch(database)
    assert sorted(told(database, statement)) == sorted(words)
    assert epoch(database) == before + 1
    assert told(database, "SELECT 1") == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE server_keys SET last_used_at = 1",
        "UPDATE users SET name = 'B'",
        "UPDATE sessions SET last_seen_at = 1",
        "UPDATE endpoints SET last_delivery_at = 1",
        "INSERT INTO users (id, email, name, created_at) VALUES ('usr_2', 'b@b', 'B', 0)",
    ],
)
def test_change_of_uncached_data_begins_no_epoch(database: Connection, statement: str) -> None:
    before = epoch(database)
    assert told(database, statement) == []
    assert epoch(database) == before


def test_transaction_begins_at_most_one_epoch_and_none_if_rolled_back(database: Connection) -> None:
    before = epoch(database)
    told(
        database,
        "UPDATE server_keys SET revoked_at = 1",
        "UPDATE projects SET name = 'R'",
        "DELETE FROM sessions",
    )
    assert epoch(database) == before + 1
    with pytest.raises(psycopg.errors.DivisionByZero):
        told(database, "DELETE FROM server_keys", "SELECT 1 / 0")
    assert epoch(database) == before + 1


def test_epoch_row_is_locked_only_at_the_end(database: Connection, postgres_url: str) -> None:
    with database.transaction():
        database.execute("UPDATE server_keys SET revoked_at = 1")
        with psycopg.connect(postgres_url, options="-c lock_timeout=1s") as other:
            other.execute("UPDATE installation SET epoch = epoch + 1")


def test_change_of_endpoints_raises_the_version_of_the_projects_head(database: Connection) -> None:
    before = version(database, 1), version(database, 2)
    told(database, "UPDATE endpoints SET events = '[\"message.created\"]'")
    assert (version(database, 1), version(database, 2)) == (before[0], before[1] + 1)
    told(database, "UPDATE endpoints SET last_delivery_at = 5, failed_attempts = 1")
    assert version(database, 2) == before[1] + 1


def test_each_project_has_a_head_from_its_beginning(database: Connection) -> None:
    rows = database.execute(
        "SELECT project, position, delivery FROM project_heads ORDER BY project"
    ).fetchall()
    assert rows == [(1, 1 << 40, 1 << 40), (2, 2 << 40, 2 << 40)]


@pytest.mark.parametrize(
    ("subject", "statement"),
    [
        ("con_1", "DELETE FROM contacts"),
        ("whk_1", "UPDATE endpoints SET status = 'removed'"),
        ("key_1", "UPDATE server_keys SET revoked_at = 1"),
        ("usr_1", "DELETE FROM memberships"),
        ("usr_1", "UPDATE users SET deleted_at = 1"),
        ("prj_2", "UPDATE projects SET removed_at = 1 WHERE rowid = 2"),
    ],
)
def test_kept_answer_about_a_deleted_row_is_cleared(
    database: Connection, subject: str, statement: str
) -> None:
    for name, about in ((b"a", subject), (b"b", "another")):
        database.execute(
            "INSERT INTO kept_answers (name, fingerprint, subject, sealed, at) VALUES (%s, '', %s, 'sealed', 0)",
            (name, about),
        )
    database.execute(statement.encode())
    kept = database.execute("SELECT name, subject, sealed FROM kept_answers ORDER BY name").fetchall()
    assert kept == [(b"a", None, None), (b"b", "another", b"sealed")]
