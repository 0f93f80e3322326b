"""Commands that only look, on a PostgreSQL database: they change nothing, and read a database of this version alone."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from click.testing import CliRunner, Result

from deskwire.cli import cli
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.migrations.list import MIGRATIONS
from tests.commands.admin.conftest import good, listed
from tests.storage.backup.conftest import SECRET
from tests.support.postgres import fresh_database

LOOKING = [("org", "list"), ("project", "list"), ("user", "list"), ("audit", "list")]
LACKING = MIGRATIONS[-1]


@pytest.fixture
def url() -> Iterator[str]:
    """Make an empty database."""
    with fresh_database(migrated=False) as made:
        yield made


def run(url: str, *arguments: str) -> Result:
    return CliRunner(env={"DESKWIRE_DATABASE_URL": url, "DESKWIRE_SECRET": SECRET}).invoke(cli, arguments)


def contents(url: str) -> list[tuple[object, ...]]:
    """Return what there is: tables with their columns, and the migrations that are recorded."""
    with psycopg.connect(url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
        ).fetchall()
        if not columns:
            return []
        return columns + connection.execute("SELECT name FROM schema_migrations ORDER BY 1").fetchall()


@pytest.mark.parametrize("command", LOOKING, ids=" ".join)
def test_reading_command_leaves_empty_and_older_databases_unchanged_and_names_missing_migrations(
    url: str, command: tuple[str, ...]
) -> None:
    refused = run(url, *command)
    assert (refused.exit_code, contents(url)) == (1, [])
    assert "is of version 0" in refused.stderr
    migrate(url, MIGRATIONS[:-1])
    before = contents(url)
    refused = run(url, *command)
    assert (refused.exit_code, contents(url)) == (1, before)
    assert f"(it lacks {LACKING.name})" in refused.stderr
    assert "`deskwire migrate`" in refused.stderr


def test_read_only_account_can_list_created_objects(url: str) -> None:
    good(run(url, "org", "create", "Acme"))
    good(run(url, "project", "create", "Shop"))
    good(run(url, "user", "create", "ada@example.com", "--role", "owner", "--one-time"))
    good(run(url, "key", "create"))
    with psycopg.connect(url) as connection:
        connection.execute("DROP ROLE IF EXISTS looker")
        connection.execute("CREATE ROLE looker LOGIN")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO looker")
    whole, url = url, url.replace("//deskwire@", "//looker@")
    for command, name in (("org", "Acme"), ("project", "Shop"), ("user", "ada@example.com")):
        (found,) = listed(run(url, command, "list", "--json"))
        assert name in (found.get("name"), found.get("email"))
    assert len(listed(run(url, "key", "list", "--json"))) == 1
    assert listed(run(url, "credential", "list", "--json")) == []
    assert "key.created" in good(run(url, "audit", "list", "--json"))
    assert "Shop" in good(run(url, "project", "show"))
    with psycopg.connect(whole) as connection:
        connection.execute("DROP OWNED BY looker")
        connection.execute("DROP ROLE looker")


def test_an_organisation_is_deleted_on_a_database_too(url: str) -> None:
    good(run(url, "org", "create", "Acme"))
    good(run(url, "project", "create", "Shop"))
    good(run(url, "user", "create", "ada@example.com", "--role", "owner", "--one-time"))
    good(run(url, "org", "delete", "Acme", "--with-accounts", "--yes"))
    for command in ("org", "project", "user"):
        assert listed(run(url, command, "list", "--json")) == []
    checked = run(url, "check")
    assert checked.exit_code == 0, checked.output
