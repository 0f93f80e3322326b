"""Opening data directories of all ages and kinds."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database, Migrations

from deskwire.engine.core.build import version
from deskwire.storage.sqlite.database import connect_writer, migrate
from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError
from deskwire.storage.sqlite.migrations import apply
from deskwire.storage.sqlite.migrations import list as list_
from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.migrations.list import SCRIPTS
from deskwire.storage.sqlite.migrations.records import applying_programs
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


def use_later(patch: pytest.MonkeyPatch, longer: Migrations) -> None:
    """Let the program have the result of `later`."""
    patch.setattr(apply, "migrations", longer)
    patch.setitem(SCRIPTS, "m9999_from_the_future", "")


def test_start_on_a_current_database_does_not_load_the_library_of_migrations(tmp_path: Path) -> None:
    migrate(tmp_path / FILE_NAME)
    code = (
        "import sys; from pathlib import Path; from deskwire.storage.sqlite.database import migrate; "
        f"migrate(Path({str(tmp_path / FILE_NAME)!r})); assert 'sqlite_utils' not in sys.modules"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code], check=True, env=environ)


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
        "m0061_customers",
        "m0062_uploads_of_customers",
        "m0063_sign_in_of_sessions",
        "m0064_roles",
        "m0065_ends_of_sign_ins",
        "m0066_links_and_mails",
        "m0067_identities",
        "m0068_second_factors",
        "m0069_blocked_contacts",
        "m0070_conversations_by_channel",
        "m0071_formats_of_messages",
        "m0072_notification_settings",
        "m0073_mentions_and_followers",
        "m0074_saved_views",
        "m0075_scheduled_messages",
        "m0076_web_push",
        "m0077_conversations_without_messages",
        "m0078_indexes_of_deletions_without_internal_events",
        "m0079_no_answer_needed",
        "m0080_bulk_jobs",
        "m0081_merged_conversations",
        "m0082_split_conversations",
        "m0083_hidden_setup",
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
    use_later(monkeypatch, later("CREATE TABLE added (x)"))
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
        use_later(newer, later("CREATE TABLE added (x)"))
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
    use_later(monkeypatch, broken)
    with pytest.raises(DataDirectoryError, match="already exists"):
        migrate(path)
    assert tables(path) == before
    use_later(monkeypatch, later("CREATE TABLE added (x)"))
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
        patched.setattr(apply, "migrations", broken)
        with pytest.raises(DataDirectoryError):
            migrate(path)
    migrate(path)
    assert "conversations" in tables(path)
