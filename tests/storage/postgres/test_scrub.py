"""What was erased stays due for a vacuum until one is through (guarantee 9)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import psycopg
import pytest

from deskwire.storage.postgres.driver.unusable import DatabaseUnusableError
from deskwire.storage.postgres.operating.scrub import Vacuums, rewrite
from tests.support.postgres import fresh_database

DUE: Final = "SELECT scrub_due FROM event_window"
ERASED: Final = "UPDATE event_window SET scrub_due = 1"
WAITING: Final = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
    "AND application_name IN ('deskwire/vacuum', 'deskwire/scrub')"
)
Work = Callable[[str], object]


def vacuumed(url: str) -> object:
    return Vacuums(url, within_s=1).vacuum_if_due()


def rewritten(url: str) -> object:
    return list(rewrite(url))


@pytest.fixture(params=[vacuumed, rewritten])
def work(request: pytest.FixtureRequest) -> Work:
    """Return a way in which erased bytes go from the tables' files."""
    chosen: Work = request.param
    return chosen


@pytest.fixture
def url() -> Iterator[str]:
    """Make a database in which something was erased."""
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
    """Lock the largest table, so that the work comes to a stop before the last one; gives a session beside it."""
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as beside:
        beside.execute("CREATE TABLE largest AS SELECT generate_series(1, 100000)")
        holder.execute("LOCK TABLE largest IN SHARE UPDATE EXCLUSIVE MODE")
        yield beside


def wait_for_work(beside: psycopg.Connection) -> int:
    while (row := beside.execute(WAITING).fetchone()) is None:
        time.sleep(0.01)  # looks again: nothing announces it
    return int(row[0])


def test_what_is_due_stays_due_when_the_work_is_cut_off(url: str, work: Work) -> None:
    with ThreadPoolExecutor() as pool:
        with held_up(url) as beside:
            doing = pool.submit(work, url)
            beside.execute("SELECT pg_terminate_backend(%s)", (wait_for_work(beside),))
            with pytest.raises((psycopg.Error, DatabaseUnusableError)):
                doing.result()
        assert due(url)
        work(url)
        assert not due(url)


def test_what_is_erased_meanwhile_is_due_behind_it(url: str, work: Work) -> None:
    with ThreadPoolExecutor() as pool:
        with held_up(url) as beside:
            doing = pool.submit(work, url)
            wait_for_work(beside)
            beside.execute(ERASED)
        doing.result()
    assert due(url)


def test_of_two_at_once_the_first_one_to_end_leaves_what_was_erased_meanwhile_to_the_second(url: str) -> None:
    with ThreadPoolExecutor() as pool:
        with held_up(url) as beside:
            doing = pool.submit(vacuumed, url)
            wait_for_work(beside)
            beside.execute(ERASED)
            others = rewrite(url)
            next(others)
        doing.result()
    assert due(url)
    for _ in others:
        pass
    assert not due(url)
