"""A check of a PostgreSQL database finds every kind of problem, and none in a sound database."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
import trio

from deskwire.engine.conversations.commands import Delete
from deskwire.engine.core.secret import Secrets
from deskwire.storage.check.rules import RULES
from deskwire.storage.files import DiskFiles
from deskwire.storage.postgres.admin.check import check
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from tests.storage.backup.conftest import SECRET, fill
from tests.storage.backup.test_check import BROKEN, TAGGED_ALIKE
from tests.support.builders import PROJECT
from tests.support.postgres_nodes import node
from tests.support.stores import choosing, url_of

# rules that SQLite must check, and PostgreSQL enforces by an index
OF_SQLITE = {"database_damaged", "events_of_project", "message_times_differ"}
# changes that break a rule although keys and positions differ from SQLite's
OTHERWISE = {
    "seen_ahead": "INSERT INTO agent_seen SELECT 1, rowid, 99, 0, 0 FROM conversations",
    "attributes_differ": "INSERT INTO conversation_attributes SELECT 1, 'plan', 'gold', rowid FROM conversations",
    "tags_differ": "INSERT INTO conversation_tags (project, folded, conversation, tag) "
    "SELECT 1, 'vip', rowid, 'vip' FROM conversations",
    "attempt_of_nothing": "INSERT INTO attempts VALUES (99, 1, 0, 0, NULL, NULL, '')",
    **{
        code: BROKEN[code].replace("x''", "''").replace("x'00'", "'0'")
        for code in ("session_of_nothing", "session_elsewhere")
    },
    "consumer_ahead": BROKEN["consumer_ahead"].replace("99,", f"{1 << 41},"),
}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Make a database with rows in every table."""
    with choosing("postgres"):
        trio.run(fill, tmp_path)
    return url_of(tmp_path)


def change(url: str, *statements: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")  # without triggers and foreign keys
        for statement in statements:
            connection.execute(statement.encode())


def codes(url: str, directory: Path, secret: str = SECRET) -> set[str]:
    """Return the codes of the problems that a check finds."""
    found = check(url, Secrets(secret), DiskFiles(directory), contents=True)
    return {each.code for each in found.problems}


def test_sound_database_has_no_problems(url: str, tmp_path: Path) -> None:
    report = check(url, Secrets(SECRET), DiskFiles(tmp_path), contents=True)
    assert report.problems == []
    assert report.rows["messages"] == 3


async def _erase(url: str) -> None:
    async with node(url) as here:
        await here.actors.ask(PROJECT, await here.new_conversation(), Delete("manual"))


def test_an_erasure_is_no_problem(url: str, tmp_path: Path) -> None:
    trio.run(_erase, url)
    assert check(url, Secrets(SECRET), DiskFiles(tmp_path), contents=True).problems == []


@pytest.mark.parametrize("code", sorted(BROKEN.keys() - OF_SQLITE))
def test_each_kind_of_problem_is_found(url: str, tmp_path: Path, code: str) -> None:
    change(url, *OTHERWISE.get(code, BROKEN[code]).split("; "))
    assert code in codes(url, tmp_path)


@pytest.mark.parametrize("holder", ["conversation", "contact", "ticket"])
def test_tag_under_a_wrong_key_is_found(url: str, tmp_path: Path, holder: str) -> None:
    change(url, *TAGGED_ALIKE)
    assert "tags_differ" not in codes(url, tmp_path)
    change(url, f"UPDATE {holder}_tags SET folded = '\u00e4rger'")
    assert "tags_differ" in codes(url, tmp_path)


def test_every_rule_is_covered() -> None:
    assert {rule.code for rule in RULES} <= BROKEN.keys()


def test_pruned_events_are_not_reported_as_missing(url: str, tmp_path: Path) -> None:
    change(
        url,
        BROKEN["sequence_start"],
        "DELETE FROM deliveries",
        "UPDATE project_heads SET pruned_id = 'evt_0'",
    )
    assert codes(url, tmp_path) == set()


def test_check_with_another_secret_reports_sealed_values(url: str, tmp_path: Path) -> None:
    assert codes(url, tmp_path, "another secret that is long enough, too") == {"secret_wrong"}


def test_database_without_tables_is_refused_with_advice(empty_postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusableError, match="deskwire migrate"):
        check(empty_postgres_url, None, DiskFiles(tmp_path), contents=False)
