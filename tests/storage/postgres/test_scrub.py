"""Erased data stays due for a vacuum until one is complete (guarantee 9)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Final

import psycopg
import pytest

from deskwire.engine.ports import Transaction
from deskwire.storage.postgres.admin import scrub
from deskwire.storage.postgres.admin.installation import InstallationIdentity, claim
from deskwire.storage.postgres.admin.scrub import VacuumDuty, rewrite_tables
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.migrations.apply import migrate
from deskwire.storage.postgres.retention import LogWrites
from deskwire.storage.postgres.search.index import PostgresIndex
from deskwire.storage.postgres.store import open_postgres
from tests.support.postgres import USER, fresh_database
from tests.support.root import ROOT

GUIDE: Final = ROOT / "docs" / "guide" / "nodes.md"

DUE: Final = "SELECT scrub_due FROM event_window"
ERASED: Final = "UPDATE event_window SET scrub_due = CASE scrub_due WHEN 0 THEN clock_ms() - 600 ELSE scrub_due END, erasures = erasures + 1"
WAITING: Final = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
    "AND application_name IN ('deskwire/vacuum', 'deskwire/scrub')"
)
Work = Callable[[str], object]


def vacuumed(url: str) -> object:
    return VacuumDuty(url, within_s=1).vacuum_if_due()


def rewritten(url: str) -> object:
    return list(rewrite_tables(url))


@pytest.fixture(params=[vacuumed, rewritten])
def work(request: pytest.FixtureRequest) -> Work:
    """Return one of the ways to remove erased bytes from the tables' files."""
    chosen: Work = request.param
    return chosen


@pytest.fixture
def url() -> Iterator[str]:
    """Make a database with erased rows."""
    with fresh_database() as made:
        with psycopg.connect(made) as connection:
            connection.execute(ERASED)
        yield made


def due(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(DUE).fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def held_up(url: str) -> Iterator[psycopg.Connection]:
    """Lock the largest table, so that the work stops before its last table; yield another session."""
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as beside:
        beside.execute("INSERT INTO contact_erasures SELECT generate_series(1, 50000), 0")
        holder.execute("LOCK TABLE contact_erasures IN SHARE UPDATE EXCLUSIVE MODE")
        yield beside


def wait_for_work(beside: psycopg.Connection) -> int:
    while (row := beside.execute(WAITING).fetchone()) is None:
        time.sleep(0.01)  # poll: there is no notification
    return int(row[0])


def test_interrupted_vacuum_leaves_erasures_due(url: str, work: Work) -> None:
    with ThreadPoolExecutor() as pool:
        with held_up(url) as beside:
            doing = pool.submit(work, url)
            beside.execute("SELECT pg_terminate_backend(%s)", (wait_for_work(beside),))
            with pytest.raises((psycopg.Error, DatabaseUnusableError)):
                doing.result()
        assert due(url)
        work(url)
        assert not due(url)


@contextmanager
def account(url: str, rights: str) -> Iterator[str]:
    """Make an account that owns nothing and has the guide's grants; yield its URL."""
    granted = re.findall(r"^ *(GRANT .*;)$", GUIDE.read_text(), re.MULTILINE)
    assert len(granted) == 3
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE ROLE node LOGIN")
        for grant in granted:
            owner.execute(grant.replace(", MAINTAIN", rights).encode())
        try:
            yield url.replace(f"{USER}@", "node@")
        finally:
            owner.execute("DROP OWNED BY node")
            owner.execute("DROP ROLE node")


def test_account_without_vacuum_rights_gets_advice_and_erasures_stay_due(url: str, work: Work) -> None:
    with account(url, "") as other:
        with pytest.raises(DatabaseUnusableError, match="GRANT MAINTAIN"):
            work(other)
        assert due(url)


async def test_the_rights_in_the_guide_are_enough_for_a_node_and_its_vacuums(url: str, work: Work) -> None:
    with account(url, ", MAINTAIN") as other:
        assert migrate(other) == []
        claim(other, InstallationIdentity(["an-id"], "database"), "a")
        with closing(PostgresIndex(Database(other, "a"))) as index:
            await index.bound()
            await index.write(lambda _: None)
        work(other)
        assert not due(url)


@pytest.mark.parametrize("how", ["reads", "has written"])
def test_erasure_that_an_older_transaction_sees_stays_due(
    url: str, work: Work, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub, "_READERS_TIMEOUT_S", 0.2)
    with psycopg.connect(url, application_name="a report") as reader:
        if how == "reads":
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT 1 FROM event_window")
        else:
            reader.execute("INSERT INTO contact_erasures VALUES (1, 0)")
        with psycopg.connect(url) as beside:
            beside.execute("DELETE FROM contact_erasures")
            beside.execute(ERASED)
        with pytest.raises(DatabaseUnusableError, match=r"session \d+ \(a report\)"):
            work(url)
        assert due(url)
        reader.rollback()
        work(url)
    assert not due(url)


def test_erasure_during_a_vacuum_is_due_afterwards(url: str, work: Work) -> None:
    with ThreadPoolExecutor() as pool:
        with held_up(url) as beside:
            doing = pool.submit(work, url)
            wait_for_work(beside)
            beside.execute(ERASED)
        doing.result()
    assert due(url)


def test_first_of_two_vacuums_leaves_later_erasures_to_the_second(url: str) -> None:
    with ThreadPoolExecutor() as pool:
        with held_up(url) as beside:
            doing = pool.submit(vacuumed, url)
            wait_for_work(beside)
            beside.execute(ERASED)
            others = rewrite_tables(url)
            next(others)
        doing.result()
    assert due(url)
    for _ in others:
        pass
    assert not due(url)


async def test_due_time_is_that_of_the_oldest_erasure(url: str) -> None:
    def noted() -> tuple[int, int]:
        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT scrub_due, erasures FROM event_window").fetchone()
            assert row is not None
            return row

    def erase(tx: Transaction) -> None:
        assert isinstance(tx, LogWrites)
        tx.note_spent()

    rewritten(url)
    _, before = noted()
    async with open_postgres(url, node="a", batch=16, readers=1, on_commit=lambda _: None) as store:
        await store.write(erase)
        first, count = noted()
        assert count == before + 1
        assert abs(first / 1_000 - time.time()) < 60
        await store.write(erase)
        assert noted() == (first, before + 2)
