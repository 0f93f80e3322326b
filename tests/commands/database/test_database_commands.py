"""The commands for a database that nodes share: their effects, and their refusals in a sentence (ADR 61)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
import pytest
import trio
from click.testing import CliRunner, Result

from deskwire.cli import cli
from deskwire.storage.postgres.admin import installation
from deskwire.storage.postgres.admin.scrub import VacuumDuty
from deskwire.storage.postgres.migrations.list import MIGRATIONS
from tests.storage.backup.conftest import FILE, SECRET, back_up, fill
from tests.support.postgres import PostgresServer, fresh_database, shared_server
from tests.support.sockets.server_process import environment

PASSWORD = "hunter2-and-more"


@pytest.fixture
def url() -> Iterator[str]:
    """Make an empty database."""
    with fresh_database(migrated=False) as made:
        yield made


def run(url: str, *arguments: str, secret: str = SECRET) -> Result:
    environ = {"DESKWIRE_DATABASE_URL": url, "DESKWIRE_SECRET": secret}
    return CliRunner(env=environ).invoke(cli, arguments)


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


@pytest.fixture
def copied(tmp_path: Path, url: str) -> str:
    """Return the URL of a database with a copied installation."""
    directory = tmp_path / "data"
    trio.run(fill, directory)
    done = run(url, "copy", "--from", str(directory))
    assert done.exit_code == 0, done.output
    return url


def test_a_copied_installation_passes_the_check_with_its_files(copied: str) -> None:
    checked = run(copied, "check", "--files")
    assert checked.exit_code == 0, checked.output
    assert "has no problems" in checked.output
    assert "1 files" in checked.output


OTHER = "another secret that is long enough for one"


@pytest.mark.parametrize("what", ["directory", "secret apart", "backup", "backup with its secret"])
def test_a_copy_with_another_secret_than_the_installations_is_refused(
    tmp_path: Path, url: str, what: str
) -> None:
    source = tmp_path / "data"
    trio.run(fill, source)
    if what.startswith("backup"):
        back_up(source, tmp_path / "try.tar", with_secret=what != "backup")
        source = tmp_path / "try.tar"
    elif what == "secret apart":
        (source / "secret").unlink()
    refused = run(url, "copy", "--from", str(source), secret=OTHER)
    assert refused.exit_code == 1, refused.output
    assert "DESKWIRE_SECRET" in refused.output
    assert "Nothing was copied" in refused.output
    assert rows(url, "SELECT to_regclass('schema_migrations')") == [(None,)]
    done = run(url, "copy", "--from", str(source))
    assert done.exit_code == 0, done.output


def test_check_finds_faults_of_rows_secret_and_files(copied: str) -> None:
    with psycopg.connect(copied) as connection:
        connection.execute("UPDATE conversations SET messages = 9")
        connection.execute("UPDATE upload_parts SET data = 'other'")
    checked = run(copied, "check", "--files", secret=OTHER)
    assert checked.exit_code == 1
    for code in ("message_count", "upload_file", "secret_wrong"):
        assert code in checked.output


def test_backup_and_restore_are_refused_with_the_tool_to_use_instead(copied: str, tmp_path: Path) -> None:
    for arguments, advice in (("backup", "pg_dump"), ("restore", "deskwire restored")):
        refused = run(copied, arguments, str(tmp_path / "file"))
        assert refused.exit_code == 1
        assert advice in refused.output
    assert not (tmp_path / "file").exists()


def test_restore_drops_old_nodes_and_sessions_and_on_request_pending_deliveries(
    copied: str,
) -> None:
    with psycopg.connect(copied) as connection:
        connection.execute(
            "INSERT INTO nodes (node, expires, version, epoch_seen) VALUES ('a', lease_end(60000), '1', 0)"
        )
    refused = run(copied, "restored")
    assert refused.exit_code == 1
    assert "Nodes run on the database (a)" in refused.output
    with psycopg.connect(copied) as connection:
        connection.execute("UPDATE nodes SET expires = lease_end(-1)")
    pending = rows(copied, "SELECT count(*) FROM deliveries WHERE status = 'pending'")
    assert pending != [(0,)]
    done = run(copied, "restored", "--skip-pending")
    assert done.exit_code == 0, done.output
    assert rows(copied, "SELECT count(*) FROM deliveries WHERE status = 'skipped'") == pending
    assert rows(copied, "SELECT count(*) FROM nodes") == [(0,)]


def test_a_new_database_is_migrated_once(url: str) -> None:
    assert run(url, "migrate").output == "".join(f"Applied {each.name}.\n" for each in MIGRATIONS)
    assert run(url, "migrate").output == "The database is up to date.\n"


def in_files(server: PostgresServer, marker: bytes) -> int:
    """Return how often the tables' files have it."""
    server.run("CHECKPOINT")
    return sum(
        path.read_bytes().count(marker) for path in (server.data / "base").rglob("*") if path.is_file()
    )


def test_scrub_leaves_no_erased_byte_in_the_tables_files(copied: str) -> None:
    server = shared_server()
    assert in_files(server, FILE) > 0
    with psycopg.connect(copied) as connection:
        connection.execute("DELETE FROM upload_parts")
        connection.execute("UPDATE event_window SET scrub_due = 1")
    assert in_files(server, FILE) > 0
    done = run(copied, "scrub")
    assert done.exit_code == 0, done.output
    assert in_files(server, FILE) == 0
    assert rows(copied, "SELECT scrub_due FROM event_window") == [(0,)]


FILE_OF: Final = "SELECT pg_relation_filenode('theirs')"


def test_scrub_rewrites_no_table_of_another_program(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE theirs (name text)")
    before = rows(url, FILE_OF)
    refused = run(url, "scrub")
    assert refused.exit_code == 1
    assert "(it lacks m0001_baseline)" in refused.output
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA apart")
        connection.execute("ALTER TABLE theirs SET SCHEMA apart")
    assert run(url, "migrate").exit_code == 0
    with psycopg.connect(url) as connection:
        connection.execute("ALTER TABLE apart.theirs SET SCHEMA public")
    done = run(url, "scrub")
    assert done.exit_code == 0, done.output
    assert "messages" in done.output
    assert rows(url, FILE_OF) == before


def test_tables_are_vacuumed_within_the_time_after_an_erasure_and_not_before(copied: str) -> None:
    assert not VacuumDuty(copied, within_s=1_000).vacuum_if_due()
    with psycopg.connect(copied) as connection:
        connection.execute("UPDATE event_window SET scrub_due = clock_ms() - 300000")
    vacuums = VacuumDuty(copied, within_s=1_000)
    assert not vacuums.vacuum_if_due()
    assert 300 <= vacuums.delay_s < 400, "whoever looks knows when it was erased"
    assert vacuums.late_s == 0
    with psycopg.connect(copied) as connection:
        connection.execute("UPDATE event_window SET scrub_due = clock_ms() - 600000")
    assert vacuums.vacuum_if_due()
    assert (vacuums.delay_s, vacuums.late_s) == (0, 0)
    assert rows(copied, "SELECT scrub_due FROM event_window") == [(0,)]


def test_copy_needs_a_database_shared_files_and_a_source(tmp_path: Path) -> None:
    directory = tmp_path / "empty"
    directory.mkdir()
    runner = CliRunner(env={"DESKWIRE_DATABASE_URL": "", "DESKWIRE_SECRET": SECRET})
    assert "--to" in runner.invoke(cli, ["copy", "--from", str(directory)]).output
    assert "--to must be a URL" in runner.invoke(cli, ["copy", "--from", str(directory), "--to", "x"]).output
    somewhere = "postgresql://127.0.0.1:9/x"
    on_disk = runner.invoke(cli, ["copy", "--from", str(directory), "--to", somewhere, "--files", "disk"])
    assert "other nodes can't read" in on_disk.output
    nothing = runner.invoke(cli, ["copy", "--from", str(directory), "--to", somewhere])
    assert "There is no Deskwire" in nothing.output
    node = {"DESKWIRE_DATABASE_URL": somewhere, "DESKWIRE_NODE": "a", "DESKWIRE_REQUIRE_SYNC_STANDBY": "true"}
    beside_a_node = runner.invoke(cli, ["copy", "--from", str(directory)], env=node)
    assert "There is no Deskwire" in beside_a_node.output, "a node's settings are no hindrance"
    nowhere = runner.invoke(
        cli, ["copy", "--from", str(directory), "--to", somewhere], env={"DESKWIRE_FILES": "no"}
    )
    assert "DESKWIRE_FILES must be disk, database" in nowhere.output


def test_two_places_at_once_are_refused(tmp_path: Path) -> None:
    refused = run("postgresql://127.0.0.1:9/x", "org", "list", "--data", str(tmp_path))
    assert refused.exit_code == 2
    assert "give only one of them" in refused.output


def test_the_url_is_shown_without_its_password() -> None:
    shown = run(f"postgresql://deskwire:{PASSWORD}@db/deskwire?sslpassword={PASSWORD}", "config")
    assert shown.exit_code == 0, shown.output
    assert PASSWORD not in shown.output
    assert "postgresql://deskwire:***@db/deskwire" in "".join(shown.output.split())


@pytest.mark.parametrize(
    ("password", "query", "words"),
    [
        ("", "?ssl_mode=require", "the option ssl_mode, which PostgreSQL's client library does not know"),
        ("", "?connect_timeout=abc", "whole seconds, at least 1, as its connect_timeout"),
        ("%", "", "must have % as %25"),
        ("%00", "", "is written in a way that PostgreSQL's client library"),
    ],
)
def test_unreadable_url_is_refused_in_a_sentence_without_its_password(
    password: str, query: str, words: str
) -> None:
    refused = run(f"postgresql://deskwire:{PASSWORD}{password}@127.0.0.1:9/x{query}", "migrate")
    assert isinstance(refused.exception, SystemExit), refused.exception
    assert words in " ".join(refused.output.split())
    assert PASSWORD not in refused.output


def test_without_the_driver_the_program_starts_and_names_the_package_to_install(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['psycopg'] = None; from deskwire.__main__ import main; main()"
    environ = {
        **environment(),
        "DESKWIRE_SECRET": SECRET,
        "DESKWIRE_DATABASE_URL": "postgresql://127.0.0.1:9/x",
    }
    for arguments in (
        ["serve", "--port", "0", "--data", str(tmp_path)],
        ["org", "list"],
        ["migrate"],
        ["check"],
    ):
        refused = subprocess.run(
            [sys.executable, "-c", blocked, *arguments],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert refused.returncode == 1, refused.stderr
        assert "deskwire[postgres]" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_command_that_nodes_have_not_confirmed_is_stored_and_reported_so(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "_NOTIFY_TIMEOUT_S", 0.2)
    assert run(url, "migrate").exit_code == 0
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO nodes (node, expires, version, epoch_seen) VALUES ('a', lease_end(60000), '1', -1)"
        )
    made = run(url, "org", "create", "Ours", "--json")
    assert made.exit_code == 0, made.output
    assert "not every node has confirmed it" in made.stderr
    assert rows(url, "SELECT name FROM organisations") == [("Ours",)]
