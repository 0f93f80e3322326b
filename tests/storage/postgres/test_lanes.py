"""The statements of commit lanes: a reported outcome holds, however late a statement arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import permutations
from typing import Any, Final

import pytest

from deskwire.storage.postgres.commit.commit_log import CHECK_COMMIT, COUNT_COMMIT, OPEN_LANE, Lane
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.errors import LANE_TAKEN, DatabaseError
from deskwire.storage.postgres.driver.session import Database
from tests.support.postgres import fresh_database

# The statements before which each statement is never sent. Other statements may arrive at any time.
BEHIND: Final = {
    "ask 2": ("ask 1", "open"),
    "open": ("ask 1",),
    "late open": ("ask 1",),
    "commit 2": ("ask 1", "open"),
    "late ask 2": ("ask 1", "open"),
}


@pytest.fixture(scope="module")
def connection() -> Iterator[BlockingConnection]:
    with fresh_database() as url:
        connection = BlockingConnection(Database(url, "test"), "lone")
        yield connection
        connection.close()


def orders(steps: Iterable[str]) -> list[tuple[str, ...]]:
    """Return all orders in which the statements can arrive at the database."""
    return [
        order
        for order in permutations(steps)
        if all(
            order.index(before) < order.index(step)
            for step in order
            for before in BEHIND.get(step, ())
            if before in order
        )
    ]


def carry_out(connection: BlockingConnection, order: Iterable[str], *, opened_anew: bool) -> None:
    """Run the statements, and compare each reported outcome with the stored rows."""
    lane = Lane("a", 0)
    connection.execute(OPEN_LANE, lane.open_values())
    commit_1, ask_1 = lane.count_values(), lane.check_values()
    late_open, open_2 = lane.open_values(), lane.open_values()
    if not opened_anew:
        lane.run = ask_1[-1]
    commit_2, ask_2 = lane.count_values(), lane.check_values()
    stored: dict[int, bool] = {1: False, 2: False}
    told: dict[int, bool | None] = {}

    def commit(values: tuple[Any, ...]) -> None:
        try:
            connection.execute(COUNT_COMMIT, values)
        except DatabaseError as error:
            assert error.sqlstate == LANE_TAKEN  # noqa: PT017  # a refused statement aborts its transaction
        else:
            stored[values[0]] = True

    def ask(values: tuple[Any, ...]) -> None:
        row = connection.execute(CHECK_COMMIT, values).fetchone()
        told[values[0]] = None if row is None else row[0] >= values[0]

    def ask_late(values: tuple[Any, ...]) -> None:
        connection.execute(CHECK_COMMIT, values)  # its response is lost

    steps: dict[str, tuple[Callable[[Any], object], Any]] = {
        "commit 1": (commit, commit_1),
        "ask 1": (ask, ask_1),
        "late ask 1": (ask_late, ask_1),
        "late open": (lambda values: connection.execute(OPEN_LANE, values), late_open),
        "open": (lambda values: connection.execute(OPEN_LANE, values), open_2),
        "commit 2": (commit, commit_2),
        "ask 2": (ask, ask_2),
        "late ask 2": (ask_late, ask_2),
    }
    for step in order:
        do, values = steps[step]
        do(values)
    assert set(told) == {1, 2}
    for number, outcome in told.items():
        assert outcome in (None, stored[number]), (order, number)
    if "late open" not in order:
        assert None not in told.values()


def test_reported_outcome_of_two_commits_holds_whatever_arrives_late(
    connection: BlockingConnection,
) -> None:
    found = orders(("commit 1", "ask 1", "late ask 1", "commit 2", "ask 2", "late ask 2"))
    assert len(found) > 100
    for order in found:
        carry_out(connection, order, opened_anew=False)


def test_reported_outcome_holds_when_the_lane_is_opened_again_between(connection: BlockingConnection) -> None:
    found = orders(("commit 1", "ask 1", "late open", "open", "commit 2", "ask 2", "late ask 2"))
    assert len(found) > 100
    for order in found:
        carry_out(connection, order, opened_anew=True)
