"""A check of a PostgreSQL database finds what is wrong, says all of it, and finds nothing where all is well."""

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

OF_SQLITE = {"database_damaged", "events_of_project", "message_times_differ"}
"""What SQLite has to look at itself, and what is an index here."""
OTHERWISE = {
    "seen_ahead": "INSERT INTO agent_seen SELECT 1, rowid, 99, 0, 0 FROM conversations",
    "attributes_differ": "INSERT INTO conversation_attributes SELECT 1, 'plan', 'gold', rowid FROM conversations",
    "tags_differ": "INSERT INTO conversation_tags (project, folded, conversation, tag) "
    "SELECT 1, 'vip', rowid, 'vip' FROM conversations",
    "attempt_of_nothing": "INSERT INTO attempts VALUES (99, 1, 0, 0, NULL, NULL, '')",
    "consumer_ahead": BROKEN["consumer_ahead"].replace("99,", f"{1 << 41},"),
}
"""What spoils a database whose keys and positions are others."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with something of everything."""
    with choosing("postgres"):
        trio.run(fill, tmp_path)
    return url_of(tmp_path)


def change(url: str, *statements: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")  # no trigger, no foreign key
        for statement in statements:
            connection.execute(statement.encode())


def codes(url: str, directory: Path, secret: str = SECRET) -> set[str]:
    """Return the codes of what a check finds."""
    found = check(url, Secrets(secret), DiskFiles(directory), contents=True)
    return {each.code for each in found.problems}


def test_a_database_that_is_well_has_no_problems(url: str, tmp_path: Path) -> None:
    report = check(url, Secrets(SECRET), DiskFiles(tmp_path), contents=True)
    assert report.problems == []
    assert report.rows["messages"] == 2


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
def test_a_tag_under_another_key_than_its_own_is_found(url: str, tmp_path: Path, holder: str) -> None:
    change(url, *TAGGED_ALIKE)
    assert "tags_differ" not in codes(url, tmp_path)
    change(url, f"UPDATE {holder}_tags SET folded = '\u00e4rger'")
    assert "tags_differ" in codes(url, tmp_path)


def test_every_rule_is_tried_above() -> None:
    assert {rule.code for rule in RULES} <= BROKEN.keys()


def test_events_that_were_pruned_leave_no_hole(url: str, tmp_path: Path) -> None:
    change(
        url,
        BROKEN["sequence_start"],
        "DELETE FROM deliveries",
        "UPDATE project_heads SET pruned_id = 'evt_0'",
    )
    assert codes(url, tmp_path) == set()


def test_another_secret_does_not_open_what_was_sealed(url: str, tmp_path: Path) -> None:
    assert codes(url, tmp_path, "another secret that is long enough, too") == {"secret_wrong"}


def test_a_database_without_tables_is_refused_with_what_to_do(
    empty_postgres_url: str, tmp_path: Path
) -> None:
    with pytest.raises(DatabaseUnusableError, match="deskwire migrate"):
        check(empty_postgres_url, None, DiskFiles(tmp_path), contents=False)
