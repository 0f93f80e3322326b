"""The data of an older database after its upgrade."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database, Migrations

from deskwire.engine.accounts.teams import Team
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit
from deskwire.storage.sqlite.database import connect_reader, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.transaction import SqliteReader
from tests.support.shortcuts import migrated_step_by_step


@pytest.fixture(autouse=True)
def _step_by_step() -> Iterator[None]:
    with migrated_step_by_step():
        yield


def test_old_deliveries_get_the_data_of_their_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / FILE_NAME
    first = Migrations("deskwire")
    with closing(Database(memory=True)) as empty:
        known = next(iter(migrations.pending(empty)))
    first(name=known.name)(known.fn)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        first.apply(Database(connection, execute_plugins=False))
        connection.execute("INSERT INTO events VALUES (7, 'evt_7', 1, 5, 3, 'message.created', 0, x'7b7d')")
        columns = "(position, id, endpoint, event, lane, status, attempts, due_at, created_at)"
        for event in (7, 6):  # the sixth is no longer stored
            row = (event, f"dlv_{event}", 1, event, 5, "delivered", 1, 0, 0)
            connection.execute(f"INSERT INTO deliveries {columns} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    migrate(path)
    with closing(sqlite3.connect(path)) as connection:
        sql = "SELECT id, event_id, type, sequence FROM deliveries ORDER BY position"
        assert connection.execute(sql).fetchall() == [
            ("dlv_6", None, None, None),
            ("dlv_7", "evt_7", "message.created", 3),
        ]


def test_teams_that_were_there_before_tickets_are_kept_and_can_be_listed(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before="m0005_tickets_and_teams")
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_1', 'Acme', 0)"
        )
        connection.execute(
            "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
            "VALUES (1, 'prj_1', 1, 'Shop', 'key', 0)"
        )
        connection.execute("INSERT INTO teams VALUES (1, 'team_1', 1, 'Support', 7)")
    migrate(path)
    with closing(connect_reader(path)) as connection:
        (team,) = SqliteReader(connection).teams(1, None, 10)
    assert team == Team("team_1", 1, "Support", 7, 7, (), 1)


def test_endpoints_and_deliveries_from_before_circuits_held_go_on(tmp_path: Path) -> None:
    """Probe an open circuit at once, and make a retry that was planned by its pause when it was planned."""
    path = tmp_path / FILE_NAME
    before = "m0013_what_an_outage_keeps_waiting"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before=before)
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_1', 'Acme', 0)"
        )
        connection.execute(
            "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
            "VALUES (1, 'prj_1', 1, 'Shop', 'key', 0)"
        )
        for rowid, circuit in ((1, (20, 5, 9_000, "why")), (2, (7, 2, None, None))):
            connection.execute(
                "INSERT INTO endpoints (rowid, id, project, url, events, sealed_secret, secret_tail, created_at, "
                "updated_at, status, failed_attempts, exhausted, open_until, open_reason) "
                "VALUES (?, ?, 1, 'https://example.org', '[]', x'00', 'tail', 0, 0, 'enabled', ?, ?, ?, ?)",
                (rowid, f"whk_{rowid}", *circuit),
            )
        for position in (1, 2, 3):
            connection.execute(
                "INSERT INTO events (position, id, project, conversation, sequence, type, created_at, body) "
                "VALUES (?, ?, 1, 5, ?, 'message.created', 0, x'7b7d')",
                (position, f"evt_{position}", position),
            )
        rows = ((1, "pending", 0, 100), (2, "pending", 2, 4_000), (3, "dropped", 4, 9_000))
        for position, status, attempts, due_at in rows:
            connection.execute(
                "INSERT INTO deliveries (position, id, endpoint, event, lane, status, attempts, due_at, created_at) "
                "VALUES (?, ?, 1, ?, 5, ?, ?, ?, 50)",
                (position, f"dlv_{position}", position, status, attempts, due_at),
            )
    migrate(path)
    with closing(connect_reader(path)) as connection:
        reader = SqliteReader(connection)
        opened, failing = reader.endpoints()
        new, retry = reader.pending_deliveries(1, 0, 10)
        due = reader.due_retries(1, 10, upto=9, unread=(0, 0), redelivered_upto=0)
        held = reader.outage_counts(1)
    assert opened.circuit == Circuit(20, None, 0, 0, "why")
    assert opened.circuit.state(9_000) == "half_open"
    assert (opened.catch_up, opened.held_upto, opened.last_success_at) == ("automatic", None, None)
    assert (failing.circuit.state(0), failing.circuit.failed_attempts) == ("closed", 7)
    assert failing.circuit.failing_since is None  # the minute begins with its next failure
    assert (new.attempts, new.due_at, new.planned_from, new.failing_since) == (0, 100, None, None)
    assert (retry.attempts, retry.due_at, retry.planned_from, retry.failing_since) == (2, 4_000, 4_000, 4_000)
    assert [row.position for row in due] == [2]
    assert (held.held, held.missed) == (2, 0)


@pytest.mark.parametrize("organisations", [1, 2])
def test_accounts_from_before_homes_are_at_home_where_they_were_first_members(
    tmp_path: Path, organisations: int
) -> None:
    """End the password of an account that is a member of nothing, if several organisations could have made it."""
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrations.apply(
            Database(connection, execute_plugins=False), stop_before="m0015_the_homes_of_accounts"
        )
        for number in range(1, organisations + 1):
            connection.execute(
                "INSERT INTO organisations (rowid, id, name, created_at) VALUES (?, ?, 'Acme', 0)",
                (number, f"org_{number}"),
            )
        for user in (1, 2, 3):
            connection.execute(
                "INSERT INTO users (rowid, id, email, name, password_hash, created_at) VALUES (?, ?, ?, 'N', 'h', 0)",
                (user, f"usr_{user}", f"{user}@b.example"),
            )
        joined = [(1, 1, 9), (organisations, 2, 5)] + ([(2, 1, 4)] if organisations == 2 else [])
        connection.executemany("INSERT INTO memberships VALUES (?, ?, 'agent', ?)", joined)
    migrate(path)
    with closing(connect_reader(path)) as connection:
        first, second, loner = SqliteReader(connection).users()
    assert (first.home, first.password_hash, first.generation) == (organisations, "h", 0)
    assert (second.home, second.password_hash) == (organisations, "h")
    assert (loner.home, loner.password_hash) == (None, "h" if organisations == 1 else None)


_BEFORE_NOTES = "m0018_what_agents_note"


def test_upgraded_conversations_get_waiting_and_network_log_times(
    tmp_path: Path,
) -> None:
    """The contact waits since its first message after the newest answer; a note is not an answer."""
    path = tmp_path / FILE_NAME
    threads = {
        "cnv_answered": ("OPEN", ["contact", "agent"]),
        "cnv_waiting": ("PENDING", ["contact", "bot", "contact", "note", "contact", "system"]),
        "cnv_never_answered": ("OPEN", ["system", "contact", "contact"]),
        "cnv_closed": ("CLOSED", ["contact"]),
        "cnv_empty": ("OPEN", []),
    }
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before=_BEFORE_NOTES)
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_1', 'Acme', 0)"
        )
        connection.execute(
            "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
            "VALUES (1, 'prj_1', 1, 'Shop', 'key', 0)"
        )
        connection.execute(
            "INSERT INTO contacts (rowid, id, project, user_id, created_at, updated_at) VALUES (1, 'con_1', 1, 'u', 0, 0)"
        )
        for thread, (conversation, (status, authors)) in enumerate(threads.items(), 1):
            connection.execute(
                "INSERT INTO conversations (rowid, id, project, contact, revision, sequence, status, unread, archived, "
                "attributes, visible, human, messages, routed, activity, created_at, updated_at) "
                "VALUES (?, ?, 1, 1, 0, 4, ?, 0, 0, '{}', 1, 0, 0, '{}', 0, 0, 0)",
                (thread, conversation, status),
            )
            for number, author in enumerate(authors):
                connection.execute(
                    "INSERT INTO messages (id, conversation, author_type, text, internal, created_at) "
                    "VALUES (?, ?, ?, 'x', ?, ?)",
                    (
                        f"msg_{thread}_{number}",
                        thread,
                        author.replace("note", "agent"),
                        author == "note",
                        100 + number,
                    ),
                )
        connection.execute("INSERT INTO network_logs VALUES (2, x'00', 77)")
    migrate(path)
    with closing(connect_reader(path)) as connection:
        reader = SqliteReader(connection)
        stored = {each: reader.conversation(1, each) for each in threads}
    waiting = {each: row and row[0].waiting_since for each, row in stored.items()}
    assert waiting == {
        "cnv_answered": None,
        "cnv_waiting": 102,
        "cnv_never_answered": 101,
        "cnv_closed": None,
        "cnv_empty": None,
    }
    assert [row and row[0].network_logs_at for row in stored.values()] == [None, 77, None, None, None]
    assert {row and row[0].last_turn for row in stored.values()} == {4}


def test_upgraded_conversations_get_contact_message_counts_and_their_hour(tmp_path: Path) -> None:
    """Count messages of the contact that have a number."""
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before="m0019_the_agents_inbox")
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_1', 'Acme', 0)"
        )
        connection.execute(
            "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
            "VALUES (1, 'prj_1', 1, 'Shop', 'key', 0)"
        )
        connection.execute(
            "INSERT INTO contacts (rowid, id, project, user_id, created_at, updated_at) VALUES (1, 'con_1', 1, 'u', 0, 0)"
        )
        connection.execute(
            "INSERT INTO conversations (rowid, id, project, contact, revision, sequence, status, unread, archived, "
            "attributes, visible, human, messages, routed, activity, created_at, updated_at) "
            "VALUES (1, 'cnv_1', 1, 1, 0, 0, 'OPEN', 0, 0, '{}', 1, 0, 3, '{}', 7200001, 0, 0)"
        )
        for number, author in ((0, "contact"), (1, "agent"), (None, "agent"), (2, "contact")):
            connection.execute(
                "INSERT INTO messages (id, conversation, number, author_type, text, internal, created_at) "
                "VALUES (?, 1, ?, ?, 'Hello', ?, 0)",
                (f"msg_{number}", number, author, number is None),
            )
    migrate(path)
    with closing(connect_reader(path)) as connection:
        found = connection.execute("SELECT contact_messages, hour FROM conversations").fetchone()
        thread = SqliteReader(connection).thread(1, after=None, before=None, newest_first=False, limit=9)
    assert found == (2, 2)
    assert [each.sequence for each in thread] == [None] * 4


def test_upgraded_conversations_get_the_milestones_that_can_be_derived(tmp_path: Path) -> None:
    """Of two closings the first was noted with who did it; between them the contact wrote, which has opened it again."""
    path = tmp_path / FILE_NAME
    user, team = '{"type":"user","id":"usr_1","name":"Ada"}', '{"type":"team","id":"team_1","name":"Returns"}'
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before="m0033_what_reports_count")
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_1', 'Acme', 0)"
        )
        connection.execute(
            "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
            "VALUES (7, 'prj_1', 1, 'Shop', 'key', 0)"
        )
        connection.execute(
            "INSERT INTO contacts (rowid, id, project, user_id, created_at, updated_at) VALUES (1, 'con_1', 7, 'u', 0, 0)"
        )
        for thread, status, closed_at, rating in (
            (1, "CLOSED", 900, 9),
            (2, "OPEN", None, None),
            (3, "OPEN", None, None),
        ):
            connection.execute(
                "INSERT INTO conversations (rowid, id, project, contact, revision, sequence, status, closed_at, rating, rated_at, "
                "unread, archived, attributes, visible, human, messages, routed, activity, created_at, updated_at) "
                "VALUES (?, 'cnv_' || ?, 7, 1, 0, 0, ?, ?, ?, ?, 0, 0, '{}', 1, 0, 0, '{}', 0, 100, 950)",
                (thread, thread, status, closed_at, rating, rating and 950),
            )
        for thread, at, action, changes in (
            (1, 110, "assigned", f'[["assignee",null,{team}]]'),
            (1, 120, "assigned", f'[["assignee",{team},{user}]]'),
            (1, 500, "closed", "[]"),
            (1, 900, "closed", "[]"),
            (2, 300, "closed", "[]"),
            (2, 400, "reopened", "[]"),
        ):
            connection.execute(
                "INSERT INTO conversation_activity (id, conversation, at, actor_type, action, changes) "
                "VALUES ('act_' || ? || '_' || ?, ?, ?, 'agent', ?, ?)",
                (thread, at, thread, at, action, changes),
            )
        connection.execute(
            "UPDATE conversations SET assignee_type = 'user', assignee_id = 'usr_1', assignee_name = 'Ada' WHERE rowid = 1"
        )
        for thread, at, author, author_id, internal in (
            (1, 130, "agent", "usr_2", 0),
            (1, 140, "contact", None, 0),
            (1, 150, "bot", None, 0),
            (1, 160, "agent", "usr_3", 1),
            (1, 170, "agent", "usr_2", 0),
            (1, 600, "contact", None, 0),
            (2, 200, "contact", None, 0),
            (3, 210, "agent", "usr_2", 0),
        ):
            connection.execute(
                "INSERT INTO messages (id, conversation, author_type, author_id, text, internal, created_at) "
                "VALUES ('msg_' || ? || '_' || ?, ?, ?, ?, 'x', ?, ?)",
                (thread, at, thread, author, author_id, internal, at),
            )
    migrate(path)
    with closing(connect_reader(path)) as connection:
        found = connection.execute(
            "SELECT conversation, kind, at, since, score, agent_id, team_id FROM milestones ORDER BY conversation, at, kind"
        ).fetchall()
        projects = connection.execute(
            "SELECT DISTINCT project FROM milestones UNION SELECT project FROM messages"
        ).fetchall()
        noted = connection.execute(
            "SELECT asked_at, answered_at, opened_at, replier_id, team_id FROM conversations ORDER BY rowid"
        ).fetchall()
    assert found == [
        (1, "answered", 170, 140, None, "usr_2", "team_1"),
        (1, "closed", 500, 100, None, "usr_1", "team_1"),
        (1, "reopened", 600, None, None, "usr_1", "team_1"),
        (1, "closed", 900, 600, None, "usr_1", "team_1"),
        (1, "rated", 950, None, 9, "usr_1", "team_1"),
        (2, "closed", 300, 100, None, None, None),
        (2, "reopened", 400, None, None, None, None),
    ]
    assert projects == [(7,)]
    assert noted == [
        (140, 170, 600, "usr_2", "team_1"),
        (200, None, 400, None, None),
        (None, None, None, "usr_2", None),
    ]


def test_every_table_by_key_alone_has_its_key_in_front(tmp_path: Path) -> None:
    """SQLite 3.40 takes any other one for damaged, once it has rows."""
    with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as connection:
        migrations.apply(Database(connection, execute_plugins=False))
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%WITHOUT ROWID%'"
        ).fetchall()
        assert len(tables) > 5
        for (table,) in tables:
            keys = [bool(row[5]) for row in connection.execute(f"PRAGMA table_info({table})")]
            assert keys == sorted(keys, reverse=True), table


def test_conversation_moved_before_an_upgrade_is_found_after_it(
    tmp_path: Path,
) -> None:
    with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as connection:
        name = "m0036_moved_conversations_by_their_key"
        migrations.apply(Database(connection, execute_plugins=False), stop_before=name)
        connection.execute("PRAGMA foreign_keys = OFF")  # its conversation and contact are beside the point
        connection.execute("INSERT INTO moved_conversations VALUES (1, 2, '', 'evt_1')")
        migrations.apply(Database(connection, execute_plugins=False))
        moved = connection.execute(
            "SELECT conversation, contact, since, upto FROM moved_conversations"
        ).fetchall()
        assert moved == [(1, 2, "", "evt_1")]
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_projects_find_the_events_of_before_an_upgrade(tmp_path: Path) -> None:
    """Only public events are found, not internal ones and not those for one endpoint alone."""
    path = tmp_path / FILE_NAME
    rows = [(position, (1, 2, 0)[position % 3], position % 5 == 0) for position in range(1, 200)]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before="m0046_events_of_projects")
        connection.executemany(
            "INSERT INTO events (position, id, project, internal, type, created_at, body) "
            "VALUES (?1, 'evt_' || ?1, ?2, ?3, 'message.created', 0, x'7b7d')",
            rows,
        )
    migrate(path)
    with closing(connect_reader(path)) as connection:
        reader = SqliteReader(connection)
        for project in (0, 1, 2):
            found = [event.position for event in reader.events(project, 0, 300, frozenset())]
            behind = [position for position in found if position > 50]
            assert reader.count_events_after(project, 50, 300) == len(behind)
            expected = [position for position, of, internal in rows if of == project and not internal]
            assert found == (expected if project else [position for position in expected if position >= 192])
        assert connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE name = 'events_by_project'"
        ).fetchone() == (0,)
