"""The lanes' statements: whatever of them comes late, an outcome that was told holds."""

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

BEHIND: Final = {
    "ask 2": ("ask 1", "open"),
    "open": ("ask 1",),
    "late open": ("ask 1",),
    "commit 2": ("ask 1", "open"),
    "late ask 2": ("ask 1", "open"),
}
"""Before what a statement is not sent. What is not named here may come at any time, as the bytes of it are on their way."""


@pytest.fixture(scope="module")
def connection() -> Iterator[BlockingConnection]:
    with fresh_database() as url:
        connection = BlockingConnection(Database(url, "test"), "lone")
        yield connection
        connection.close()


def orders(steps: Iterable[str]) -> list[tuple[str, ...]]:
    """All orders in which the database may get what was sent."""
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
    """Carry out what was sent, and hold each outcome that was told to what is stored in the end."""
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
            assert error.sqlstate == LANE_TAKEN  # noqa: PT017  # it may be refused, and then so is its transaction
        else:
            stored[values[0]] = True

    def ask(values: tuple[Any, ...]) -> None:
        row = connection.execute(CHECK_COMMIT, values).fetchone()
        told[values[0]] = None if row is None else row[0] >= values[0]

    def ask_late(values: tuple[Any, ...]) -> None:
        connection.execute(CHECK_COMMIT, values)  # whose answer nobody hears

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


def test_whatever_of_two_commits_comes_late_each_is_stored_if_and_only_if_that_was_told(
    connection: BlockingConnection,
) -> None:
    found = orders(("commit 1", "ask 1", "late ask 1", "commit 2", "ask 2", "late ask 2"))
    assert len(found) > 100
    for order in found:
        carry_out(connection, order, opened_anew=False)


def test_so_it_is_when_the_lane_is_opened_anew_between_them(connection: BlockingConnection) -> None:
    found = orders(("commit 1", "ask 1", "late open", "open", "commit 2", "ask 2", "late ask 2"))
    assert len(found) > 100
    for order in found:
        carry_out(connection, order, opened_anew=True)
