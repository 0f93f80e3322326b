"""The unused parts of pages: found by the file format, zeroed, and nothing else touched."""

from __future__ import annotations

import errno
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.storage.sqlite.scrub import RETRY_DELAY_S, SLICE, Scrubber, scrubbed

PAGE = 4096


def opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode = WAL", "secure_delete = ON", f"page_size = {PAGE}"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def scrub(connection: sqlite3.Connection, path: Path) -> int:
    """Make a whole pass, and return the number of its steps."""
    file = os.open(path, os.O_RDWR)
    try:
        scrubber = Scrubber(connection, file, lambda: 0.0)
        scrubber.want()
        steps = 0
        while scrubber.due:
            assert scrubber.step() == 0
            steps += 1
        return steps
    finally:
        connection.close()  # before the file: POSIX locks
        os.close(file)


@given(st.sampled_from([2, 5, 10, 13]), st.integers(0, 2**32))
def test_no_page_however_broken_raises_or_changes_its_size(kind: int, seed: int) -> None:
    page = bytes([kind]) + random.Random(seed).randbytes(PAGE - 1)
    assert len(scrubbed(page, 0, PAGE)) == PAGE


@given(st.sampled_from([2, 5, 10, 13]), st.binary(min_size=7, max_size=11), st.binary(max_size=64))
def test_a_broken_header_never_raises(kind: int, header: bytes, rest: bytes) -> None:
    page = (bytes([kind]) + header + rest).ljust(PAGE, b"x")
    once = scrubbed(page, 0, PAGE)
    assert scrubbed(once, 0, PAGE) == once


def test_a_page_of_no_tree_is_left_alone() -> None:
    for kind in (0, 1, 3, 83, 255):
        page = bytes([kind]) + os.urandom(PAGE - 1)
        assert scrubbed(page, 0, PAGE) == page


@pytest.mark.thorough
@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_scrubbing_keeps_tables_and_indexes_and_leaves_no_deleted_text(seed: int) -> None:
    """Compare with SQLite: the rows it reads are equal, its integrity check passes, and deleted text is gone."""
    import tempfile

    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "db"
        connection = opened(path)
        connection.execute("CREATE TABLE event_window (one INTEGER PRIMARY KEY, scrub_due INTEGER)")
        connection.execute("INSERT INTO event_window VALUES (1, 0)")
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT, other TEXT UNIQUE)")
        alive: dict[int, str] = {}
        ever: set[str] = set()
        for number in range(chance.randint(50, 400)):
            marker = f"<{seed:x}-{number}>"
            action = chance.random()
            if action < 0.5 or not alive:
                connection.execute(
                    "INSERT INTO rows VALUES (?, ?, ?)",
                    (number, marker * chance.randint(1, 300), marker[::-1]),
                )
                alive[number] = marker
            elif action < 0.8:
                chosen = chance.choice(list(alive))
                connection.execute(
                    "UPDATE rows SET text = ?, other = ? WHERE id = ?", (marker, marker[::-1], chosen)
                )
                alive[chosen] = marker
            else:
                connection.execute("DELETE FROM rows WHERE id = ?", (alive.popitem()[0],))
            ever.add(marker)
        before = connection.execute("SELECT * FROM rows ORDER BY id").fetchall()
        scrub(connection, path)
        with closing(sqlite3.connect(path)) as again:
            assert again.execute("SELECT * FROM rows ORDER BY id").fetchall() == before
            assert again.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        content = path.read_bytes()
        for marker in ever - set(alive.values()):
            assert marker.encode() not in content
            assert marker[::-1].encode() not in content


def test_a_large_file_takes_several_steps(tmp_path: Path) -> None:
    connection = opened(tmp_path / "db")
    connection.execute("CREATE TABLE event_window (one INTEGER PRIMARY KEY, scrub_due INTEGER)")
    connection.execute("INSERT INTO event_window VALUES (1, 1)")
    connection.execute("CREATE TABLE rows (text TEXT)")
    connection.executemany("INSERT INTO rows VALUES (?)", [("x" * 3_000,)] * (2 * SLICE))
    assert scrub(connection, tmp_path / "db") == 3


def test_interrupted_pass_is_due_again(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with closing(opened(path)) as connection:
        connection.execute("CREATE TABLE event_window (one INTEGER PRIMARY KEY, scrub_due INTEGER)")
        connection.execute("INSERT INTO event_window VALUES (1, 1)")
        file = os.open(path, os.O_RDWR)
        assert Scrubber(connection, file, lambda: 0.0).due
    os.close(file)


SLICES = 4


@contextmanager
def steady(path: Path) -> Iterator[tuple[sqlite3.Connection, Scrubber, list[float]]]:
    """Make a file of several slices whose rows leave their text behind when deleted, and a clock that can be set."""
    connection = sqlite3.connect(
        path, isolation_level=None
    )  # without secure_delete: only the scrubber overwrites
    for pragma in ("journal_mode = WAL", "secure_delete = OFF", f"page_size = {PAGE}"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("CREATE TABLE event_window (one INTEGER PRIMARY KEY, scrub_due INTEGER)")
    connection.execute("INSERT INTO event_window VALUES (1, 0)")
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
    each = PAGE // 20
    rows = ((number, f"<{number}>".ljust(each, "x")) for number in range(SLICES * SLICE * 18))
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO rows VALUES (?, ?)", rows)
    connection.execute("COMMIT")
    file = os.open(path, os.O_RDWR)
    clock = [0.0]
    yield connection, Scrubber(connection, file, lambda: clock[0]), clock
    connection.close()
    os.close(file)


def delete(connection: sqlite3.Connection, scrubber: Scrubber, number: int) -> list[bytes]:
    """Delete one row in each part of the file; return the texts that must be gone after scrubbing."""
    chosen = [number * 19 + part * SLICE * 4 for part in range(SLICES * 4)]
    connection.execute("BEGIN")
    connection.executemany("DELETE FROM rows WHERE id = ?", [(each,) for each in chosen])
    connection.execute("UPDATE event_window SET scrub_due = 1")
    connection.execute("COMMIT")
    scrubber.want()
    return [f"<{each}>".encode() for each in chosen]


@pytest.mark.thorough
def test_each_of_steady_deletions_is_overwritten_within_one_round_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with steady(path) as (connection, scrubber, clock):
        deleted: list[list[bytes]] = []
        for turn in range(3 * (SLICES + 1)):
            clock[0] = float(turn)
            deleted.append(delete(connection, scrubber, turn))
            assert scrubber.step() == 0
            content = path.read_bytes()
            for marks in deleted[: max(0, turn - SLICES)]:
                assert not [mark for mark in marks if mark in content], turn
            assert scrubber.since is not None
            assert clock[0] - scrubber.since <= SLICES + 1
        steps = 0
        while scrubber.due:
            scrubber.step()
            steps += 1
        assert steps <= SLICES + 1  # only the last deletion's round
        content = path.read_bytes()
        assert not [mark for marks in deleted for mark in marks if mark in content]
        assert connection.execute("SELECT scrub_due FROM event_window").fetchone() == (0,)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_deletions_of_one_round_share_it(tmp_path: Path) -> None:
    with steady(tmp_path / "db") as (connection, scrubber, _):
        for number in range(3):
            for other in range(100):
                delete(connection, scrubber, 100 * number + other)
            scrubber.step()
        rest = 0
        while scrubber.due:
            scrubber.step()
            rest += 1
        assert rest <= SLICES + 1


def test_a_disk_that_refuses_for_a_moment_keeps_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with steady(tmp_path / "db") as (connection, scrubber, _):
        marks = delete(connection, scrubber, 1)
        scrubber.step()
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", refused)
            assert scrubber.step() == RETRY_DELAY_S
            assert scrubber.step() == RETRY_DELAY_S
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refused)
            steps = 0
            while scrubber.step() == 0:
                steps += 1
        assert steps <= SLICES
        assert scrubber.due
        assert scrubber.step() == 0
        assert not scrubber.due
        content = (tmp_path / "db").read_bytes()
        assert not [mark for mark in marks if mark in content]


def refused(*_: object) -> None:
    """Refuse every write, as a full disk does."""
    raise OSError(errno.EIO, "no")


@pytest.mark.parametrize("size", [512, 65_536])
def test_other_page_sizes_are_understood(tmp_path: Path, size: int) -> None:
    path = tmp_path / "db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {size}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE event_window (one INTEGER PRIMARY KEY, scrub_due INTEGER)")
    connection.execute("INSERT INTO event_window VALUES (1, 1)")
    connection.execute("CREATE TABLE rows (text TEXT)")
    connection.executemany("INSERT INTO rows VALUES (?)", [(f"text {number}",) for number in range(500)])
    connection.execute("DELETE FROM rows WHERE rowid % 2")  # without secure_delete: all of it would stay
    scrub(connection, path)
    content = path.read_bytes()
    assert b"text 100" not in content.replace(b"text 101", b"")
    with closing(sqlite3.connect(path)) as again:
        assert again.execute("SELECT count(*) FROM rows").fetchone() == (250,)
        assert again.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
