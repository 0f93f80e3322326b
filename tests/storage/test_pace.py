"""Where a COMMIT is made: in a thread, or on Trio's thread when a job is alone and the disk is quick (ADR 4)."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from deskwire.engine.core.store import InlineJob
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from deskwire.storage.sqlite import writer
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.writer import INLINE_COMMIT_MAX_S, INLINE_COMMITS_MAX, CommitPlacement
from tests.storage.test_writer import Disk, bench
from tests.support.builders import NOON, PROJECT

_PAGE: Final = 4_096
_ALWAYS: Final = 1e9
_NEVER: Final = 1e-12


@pytest.fixture
def quick_disk() -> Iterator[CommitPlacement]:
    """Give a pace that has seen a quick disk for some time."""
    with closing(sqlite3.connect(":memory:")) as connection:
        found = CommitPlacement(connection)
        for _ in range(50):
            found.took(INLINE_COMMIT_MAX_S / 2)
        yield found


def folds_at(found: CommitPlacement) -> int:
    """Return the number of pages from which on a COMMIT folds the log; 0 if it never does."""
    return int(found._connection.execute("PRAGMA wal_autocheckpoint").fetchone()[0])


def test_a_disk_is_slow_until_it_has_shown_that_it_is_not() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        found = CommitPlacement(connection)
        assert not found.may_block(alone=True)
        for _ in range(50):
            found.took(INLINE_COMMIT_MAX_S / 2)
        assert found.may_block(alone=True)


def test_job_with_others_waiting_may_not_block(quick_disk: CommitPlacement) -> None:
    assert not quick_disk.may_block(alone=False)


def test_hanging_commit_sends_later_ones_into_the_thread(quick_disk: CommitPlacement) -> None:
    quick_disk.took(0.1)
    later = 0
    while not quick_disk.may_block(alone=True):
        quick_disk.took(INLINE_COMMIT_MAX_S / 2)
        later += 1
    assert 20 < later < 60


def test_inline_commits_run_no_checkpoint_and_regular_ones_in_a_thread_do(
    quick_disk: CommitPlacement,
) -> None:
    for _ in range(3):
        for _ in range(INLINE_COMMITS_MAX):
            assert quick_disk.may_block(alone=True)
            assert folds_at(quick_disk) == 0
        assert not quick_disk.may_block(alone=True)
        assert folds_at(quick_disk) == 1_000


class Watched(Disk):
    """A connection that knows which thread has committed."""

    by: int | None = None

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql == "COMMIT":
            Watched.by = threading.get_ident()
        return super().execute(sql, *values)


def event(tx: Transaction) -> int:
    return tx.append_event(
        PROJECT, EventDraft("contact.updated", None, {"t": "x" * 500}), None, NOON
    ).position


@pytest.mark.parametrize(
    ("quick_s", "jobs", "here"),
    [
        (_ALWAYS, [InlineJob(event)], True),
        (_ALWAYS, [event], False),
        (_ALWAYS, [InlineJob(event), InlineJob(event)], False),
        (_NEVER, [InlineJob(event)], False),
    ],
    ids=["alone and quick", "not brief", "two together", "slow"],
)
async def test_single_brief_job_is_committed_inline_while_the_disk_is_quick(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    quick_s: float,
    jobs: list[Callable[[Transaction], int]],
    here: bool,
) -> None:
    monkeypatch.setattr(writer, "INLINE_COMMIT_MAX_S", quick_s)
    monkeypatch.setattr("tests.storage.test_writer.Disk", Watched)
    async with bench(tmp_path) as desk:
        for _ in range(10):  # a disk is taken for a slow one at first
            await desk.writer.write(InlineJob(event))
        if len(jobs) > 1:
            await desk.together(*jobs)
        else:
            await desk.writer.write(jobs[0])
        assert (Watched.by == threading.get_ident()) is here


async def test_the_log_stays_short_however_many_commits_are_made_on_trios_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "INLINE_COMMIT_MAX_S", _ALWAYS)
    async with bench(tmp_path) as desk:
        desk.disk.execute("PRAGMA journal_mode = WAL")
        desk.disk.execute("PRAGMA synchronous = OFF")
        for _ in range(2_000):
            await desk.writer.write(InlineJob(event))
        log = (tmp_path / f"{FILE_NAME}-wal").stat().st_size
        assert log / _PAGE < 2_000, "were it never folded it would be four times as long"
