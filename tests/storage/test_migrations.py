"""Opening data directories of all ages and kinds."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database, Migrations

from deskwire.engine.accounts.teams import Team
from deskwire.engine.core.build import version
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit
from deskwire.storage.sqlite import database
from deskwire.storage.sqlite.database import connect_reader, connect_writer, migrate
from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError
from deskwire.storage.sqlite.migrations import apply
from deskwire.storage.sqlite.migrations import list as list_
from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.migrations.list import SCRIPTS
from deskwire.storage.sqlite.migrations.records import applying_programs
from deskwire.storage.sqlite.transaction import SqliteReader
from tests.support.shortcuts import migrated_step_by_step


@pytest.fixture(autouse=True)
def _step_by_step() -> Iterator[None]:
    with migrated_step_by_step():
        yield


def tables(path: Path) -> dict[str, str]:
    """Return the name and definition of everything in the schema."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_schema").fetchall())


def later(*steps: str) -> Migrations:
    """Return the program's migrations with one more at the end."""
    longer = Migrations("deskwire")
    with closing(Database(memory=True)) as empty:
        for known in migrations.pending(empty):
            longer(name=known.name)(known.fn)

    def m9999_from_the_future(db: Database) -> None:
        for step in steps:
            db.execute(step)

    longer()(m9999_from_the_future)
    return longer


def test_names_that_databases_have_recorded_stay_and_each_is_a_module() -> None:
    """Fix the names: a renamed migration would be applied twice, and its old name refused as a newer program's."""
    names = [
        "m0001_the_main_job",
        "m0002_webhooks_that_explain_themselves",
        "m0003_what_outlives_its_subject",
        "m0004_people_and_what_projects_choose",
        "m0005_tickets_and_teams",
        "m0006_uploads_and_attachments",
        "m0007_surveys",
        "m0008_memory_and_translations",
        "m0009_workflows",
        "m0010_what_has_passed_its_retention",
        "m0011_kept_answers",
        "m0012_imports",
        "m0013_what_an_outage_keeps_waiting",
        "m0014_audit_trail",
        "m0015_the_homes_of_accounts",
        "m0016_sessions_of_browsers",
        "m0017_events_for_agents_alone",
        "m0018_what_agents_note",
        "m0019_the_agents_inbox",
        "m0020_what_the_search_has_to_look_at",
        "m0021_finding_contacts",
        "m0022_snippets",
        "m0023_deliveries_by_sequence",
        "m0024_seats",
        "m0025_leases",
        "m0026_the_entries_of_a_shared_shelf",
        "m0027_refreshes",
        "m0028_lists_by_change",
        "m0029_machine_credentials",
        "m0030_contacts_as_a_resource",
        "m0031_redacted_messages",
        "m0032_events_for_those_who_name_them",
        "m0033_what_reports_count",
        "m0035_comments_with_ratings",
        "m0036_moved_conversations_by_their_key",
        "m0037_deleted_organisations",
        "m0038_where_workflows_wait",
        "m0039_kept_answers_beside_what_they_are_about",
        "m0040_lists_by_the_hour",
        "m0042_which_step_did_it",
        "m0044_attributes_of_conversations",
        "m0045_the_times_of_messages",
        "m0046_events_of_projects",
        "m0047_times_out_of_order",
        "m0048_the_end_of_what_was_pruned",
        "m0049_drafts_and_held_messages",
        "m0050_refused_deliveries",
        "m0051_text_folding",
        "m0052_ids_of_imported_messages",
        "m0053_scopes_of_machine_credentials",
        "m0054_tokens_one_by_one_and_a_pushed_trail",
        "m0055_marks_of_what_was_seen",
        "m0056_the_installation_of_a_database",
        "m0059_folded_tags",
        "m0060_versions_of_events",
    ]
    with closing(Database(memory=True)) as empty:
        assert [migration.name for migration in migrations.pending(empty)] == names
    assert sorted(path.stem for path in Path(list_.__file__).parent.glob("m*.py")) == names


def test_a_fresh_database_has_the_tables_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    migrate(path)
    assert {"conversations", "messages", "events", "deliveries", "attempts"} <= set(tables(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_migrating_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    migrate(path)
    before = tables(path)
    content = path.read_bytes()
    migrate(path)
    assert tables(path) == before
    assert path.read_bytes() == content


def test_older_database_is_upgraded_and_keeps_its_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / FILE_NAME
    migrate(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO organisations (rowid, id, name, created_at) VALUES (1, 'org_1', 'Acme', 0)"
        )
    monkeypatch.setattr(database, "migrations", later("CREATE TABLE added (x)"))
    migrate(path)
    assert "added" in tables(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM organisations").fetchall() == [("Acme",)]


def test_database_of_a_newer_program_is_refused_by_name_unchanged(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        later("CREATE TABLE added (x)").apply(Database(connection, execute_plugins=False))
    before = tables(path)
    with pytest.raises(DataDirectoryError, match=r"newer Deskwire \(it has m9999_from_the_future\)"):
        migrate(path)
    assert tables(path) == before


def test_each_migration_is_recorded_with_the_program_that_applied_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 0.1.0 recorded no program: its migrations have none after an upgrade."""
    path, before = tmp_path / FILE_NAME, "m0033_what_reports_count"
    with closing(connect_writer(path)) as connection:
        migrations.apply(Database(connection, execute_plugins=False), stop_before=before)
        assert set(applying_programs(connection).values()) == {None}
    migrate(path)
    with closing(connect_writer(path)) as connection:
        programs = applying_programs(connection)
    assert {name for name, program in programs.items() if program is None} == {
        each for each in SCRIPTS if each < before
    }
    assert {programs[each] for each in SCRIPTS if each >= before} == {version()}


def test_refusal_after_a_downgrade_names_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / FILE_NAME
    migrate(path)
    with monkeypatch.context() as newer:
        newer.setattr(apply, "version", lambda: "9.9.0.dev0+g0123456789ab")
        newer.setattr(database, "migrations", later("CREATE TABLE added (x)"))
        migrate(path)
    with pytest.raises(DataDirectoryError) as refused:
        migrate(path)
    assert (
        f"was written by a newer Deskwire, 9.9.0.dev0+g0123456789ab (it has m9999_from_the_future). This is {version()}. "
        "Start that version, or restore a backup made before the upgrade."
    ) in str(refused.value)


def test_file_other_than_a_database_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b"these are my holiday notes\n" * 100)
    with pytest.raises(DataDirectoryError, match="not a database"):
        migrate(path)
    assert path.read_bytes() == b"these are my holiday notes\n" * 100


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files the Linux way")
def test_a_refused_file_is_not_held_open(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(b"these are my holiday notes\n" * 100)
    with pytest.raises(DataDirectoryError) as refused:
        migrate(path)
    held = [entry for entry in Path("/proc/self/fd").iterdir() if str(path) in os.path.realpath(entry)]
    assert (held, refused.type) == ([], DataDirectoryError)


def test_a_folder_in_the_databases_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(DataDirectoryError, match="unable to open"):
        migrate(tmp_path / FILE_NAME)


def test_a_migration_that_fails_half_way_leaves_nothing_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / FILE_NAME
    migrate(path)
    before = tables(path)
    broken = later("CREATE TABLE added (x)", "CREATE TABLE organisations (x)")
    monkeypatch.setattr(database, "migrations", broken)
    with pytest.raises(DataDirectoryError, match="already exists"):
        migrate(path)
    assert tables(path) == before
    monkeypatch.setattr(database, "migrations", later("CREATE TABLE added (x)"))
    migrate(path)
    assert set(tables(path)) - set(before) == {"added"}


def test_failed_first_migration_leaves_a_database_that_opens_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / FILE_NAME
    with monkeypatch.context() as patched:
        broken = Migrations("deskwire")

        def m0001_the_main_job(db: Database) -> None:
            db.execute("CREATE TABLE organisations (x)")
            db.execute("no such statement")

        broken()(m0001_the_main_job)
        patched.setattr(database, "migrations", broken)
        with pytest.raises(DataDirectoryError):
            migrate(path)
    migrate(path)
    assert "conversations" in tables(path)


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
