"""The identity of servers: promoted ones, replaced primaries, other systems, and missing rights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import pq
from structlog.testing import capture_logs

from deskwire.storage.files import DiskFiles
from deskwire.storage.postgres.admin.check import check
from deskwire.storage.postgres.admin.installation import (
    InstallationIdentity,
    accept_moved_database,
    claim,
    reset_restored_database,
)
from deskwire.storage.postgres.driver.errors import ConnectionLost, DatabaseUnusableError
from deskwire.storage.postgres.driver.server_identity import KnownServer, ServerIdentity
from deskwire.storage.postgres.driver.servers import Servers
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.migrations.apply import migrate
from tests.support.database_pair import DATABASE, Pair, database_pair
from tests.support.postgres import USER
from tests.support.postgres_nodes import rows

IDENTITY = InstallationIdentity(["an-id"], "database")
ASKED = (
    "pg_control_system()",
    "pg_control_checkpoint()",
    "pg_walfile_name(pg_lsn)",
    "pg_current_wal_lsn()",
)


@pytest.fixture(scope="module")
def promoted() -> Iterator[Pair]:
    """Promote a standby beside the living primary, so that one cluster has two primaries."""
    with database_pair() as pair:
        migrate(pair.old.url(DATABASE))
        pair.catch_up()
        pair.promote()
        yield pair


def seen_at(url: str, servers: Servers | None = None) -> KnownServer:
    database = Database(url, "test", servers or Servers())
    database.release(database.connect("setup"))
    return database.servers.seen


@pytest.mark.parametrize(
    ("seen", "found", "reason"),
    [
        (KnownServer(), ServerIdentity("1", 1), None),
        (KnownServer("1", 2), ServerIdentity("1", 2), None),
        (KnownServer("1", 2), ServerIdentity("1", 3), None),
        (KnownServer("1", 2), ServerIdentity("1", 1), "older_timeline"),
        (KnownServer("1", 2), ServerIdentity("2", 3), "other_system"),
        (KnownServer("1", 2), ServerIdentity(None, 1), "older_timeline"),
        (KnownServer("1", None), ServerIdentity("1", 1), None),
        (KnownServer("1", 2), ServerIdentity(), None),
        (KnownServer("1", 2), ServerIdentity("1", None, standby=True), None),
    ],
)
def test_server_is_refused_by_the_known_identity(
    seen: KnownServer, found: ServerIdentity, reason: str | None
) -> None:
    assert seen.refusal(found) == reason


def test_promotion_shows_at_once_in_the_timeline(promoted: Pair) -> None:
    old, new = (seen_at(server.url()) for server in (promoted.old, promoted.new))
    assert (old.system, old.timeline, new.timeline) == (new.system, 1, 2)


def test_newest_of_two_primaries_is_taken_whichever_is_named_first(promoted: Pair) -> None:
    for gates in (promoted.gates, promoted.gates[::-1]):
        hosts = ",".join(f"127.0.0.1:{gate.port}" for gate in gates)
        servers = Servers()
        with capture_logs() as logs:
            assert seen_at(f"postgresql://{USER}@{hosts}/postgres", servers).timeline == 2
        assert servers.current == f"127.0.0.1:{promoted.gates[1].port}"
        refused = [line for line in logs if line["event"] == "database.identity_refused"]
        assert [(line["reason"], line["blocking"]) for line in refused] == [("older_timeline", False)]
        assert servers.identity.refusal is None


def test_old_primary_alone_is_refused_with_advice(promoted: Pair) -> None:
    servers = Servers()
    servers.seen = KnownServer(None, 2)
    with pytest.raises(ConnectionLost, match=r"timeline 1, and this installation has seen 2.*pg_rewind"):
        seen_at(promoted.old.url(), servers)
    refusal = servers.identity.refusal
    assert refusal is not None
    assert refusal.reason == "older_timeline"


def test_sessions_with_an_old_primary_end_when_the_new_one_is_found(promoted: Pair) -> None:
    servers = Servers()
    database = Database(promoted.old.url(), "test", servers)
    session = database.connect("setup")
    both = Database(promoted.url.replace("/pair", "/postgres"), "test", servers)
    both.check_hosts(2)
    assert servers.seen.timeline == 2
    assert session.exec_(b"SELECT 1").status == pq.ExecStatus.FATAL_ERROR
    database.release(session)


def test_check_names_an_old_primary_beside_the_new_one(promoted: Pair, tmp_path: Path) -> None:
    with closing(DiskFiles(tmp_path)) as files:
        (problem,) = check(promoted.url, None, files, contents=False).problems
    assert problem.code == "database_identity"
    assert f"127.0.0.1:{promoted.gates[0].port} is a primary that was replaced" in problem.message


@contextmanager
def account(url: str, forbidden: tuple[str, ...]) -> Iterator[str]:
    with psycopg.connect(url, autocommit=True) as owner:
        for each in forbidden:
            owner.execute(f"REVOKE EXECUTE ON FUNCTION {each} FROM PUBLIC".encode())
        owner.execute("CREATE ROLE plain LOGIN")
        try:
            yield url.replace(f"{USER}@", "plain@")
        finally:
            owner.execute("DROP ROLE plain")


def test_account_that_may_query_one_part_of_the_identity_uses_that(postgres_url: str) -> None:
    whole = seen_at(postgres_url)
    with account(postgres_url, ASKED[:1]) as url:
        assert seen_at(url) == KnownServer(None, whole.timeline)
    with account(postgres_url, ASKED[2:3]) as url:
        assert seen_at(url) == KnownServer(None, whole.timeline), "by the checkpoint"
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
    with account(postgres_url, ASKED[1:]) as url:
        assert seen_at(url) == KnownServer(whole.system, None)


def test_account_that_may_not_query_the_identity_is_logged_once(postgres_url: str) -> None:
    with account(postgres_url, ASKED) as url, capture_logs() as logs:
        database = Database(url, "test")
        for _ in range(3):
            database.release(database.connect("setup"))
        assert database.servers.seen == KnownServer()
    assert [line["event"] for line in logs].count("database.identity_unknown") == 1


def test_first_node_records_the_server_and_later_a_promoted_one(postgres_url: str) -> None:
    kept = "SELECT system_id, timeline FROM installation"
    claim(postgres_url, IDENTITY, "a")
    system, timeline = rows(postgres_url, kept)[0]
    assert (system, timeline) == (seen_at(postgres_url).system, 1)
    rows(postgres_url, "UPDATE installation SET timeline = 0 RETURNING 1")
    claim(postgres_url, IDENTITY, "b")
    assert rows(postgres_url, kept) == [(system, 1)]


@pytest.mark.parametrize(
    ("change", "words"),
    [("system_id = '1'", "on another PostgreSQL"), ("timeline = 9", "installation has been on timeline 9")],
)
def test_moved_database_is_refused_until_the_operator_accepts_it(
    postgres_url: str, tmp_path: Path, change: str, words: str
) -> None:
    claim(postgres_url, IDENTITY, "a")
    rows(postgres_url, f"UPDATE installation SET {change} RETURNING 1")
    with pytest.raises(DatabaseUnusableError, match=f"{words}.*deskwire restored --moved"):
        claim(postgres_url, IDENTITY, "a")
    with pytest.raises(DatabaseUnusableError, match=words):
        claim(postgres_url, IDENTITY, None)
    with closing(DiskFiles(tmp_path)) as files:
        report = check(postgres_url, None, files, contents=False)
        assert [problem.code for problem in report.problems] == ["database_identity"]
        accept_moved_database(postgres_url)
        assert check(postgres_url, None, files, contents=False).problems == []
    claim(postgres_url, IDENTITY, "a")
    rows(postgres_url, f"UPDATE installation SET {change} RETURNING 1")
    reset_restored_database(postgres_url, skip_pending=False, now=0)
    claim(postgres_url, IDENTITY, "a")


def test_move_keeps_sessions_and_is_refused_while_nodes_run(empty_postgres_url: str) -> None:
    migrate(empty_postgres_url)
    claim(empty_postgres_url, IDENTITY, "a")
    rows(empty_postgres_url, "UPDATE installation SET system_id = '1' RETURNING 1")
    rows(
        empty_postgres_url,
        "INSERT INTO nodes (node, expires, version, epoch_seen) VALUES ('a', lease_end(60000), '1', 0) RETURNING 1",
    )
    with pytest.raises(DatabaseUnusableError, match="Nodes run on the database"):
        accept_moved_database(empty_postgres_url)
    assert rows(empty_postgres_url, "SELECT system_id FROM installation") == [("1",)]
