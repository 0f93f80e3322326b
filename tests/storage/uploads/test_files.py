"""The file stores of uploads: the same operations wherever the files are stored."""

from __future__ import annotations

import errno
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256
from socket import IPPROTO_TCP, TCP_KEEPIDLE, TCP_USER_TIMEOUT, socket

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.uploads.ports import FileContent
from deskwire.storage import s3 as bucket
from deskwire.storage.postgres.files import PART_BYTES, SESSIONS_MAX, DatabaseFiles
from deskwire.storage.s3 import S3Files
from tests.storage.uploads.conftest import Shelves
from tests.support.postgres import fresh_database
from tests.support.properties import budget

SIZES = (1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 7, bucket.REQUEST_BYTES_MAX + 1)
UNKNOWN = sha256(b"unknown").hexdigest()


def bytes_of(size: int) -> bytes:
    """Return this many bytes, of which no two parts are equal."""
    return b"".join(sha256(str(at).encode()).digest() for at in range(size // 32 + 1))[:size]


@pytest.mark.parametrize("size", SIZES)
def test_stored_file_is_read_whole_and_in_any_range(shelves: Shelves, size: int) -> None:
    data = bytes_of(size)
    content = shelves.put(data)
    assert content.sha256 == sha256(data).hexdigest()
    assert shelves.files.size(content) == size
    for start, length in ((0, size), (0, 1), (size - 1, 1), (size // 2, 128 * 1024), (size // 3, PART_BYTES)):
        assert shelves.files.read(content, start, length) == data[start : start + length], (start, length)


def test_parts_of_a_file_in_the_database_at_any_edge() -> None:
    with fresh_database() as url:
        files = DatabaseFiles(url)
        try:
            _any_part_is_right(url, files)
        finally:
            files.close()


def _any_part_is_right(url: str, files: DatabaseFiles) -> None:
    data = bytes_of(2 * PART_BYTES + 100)
    draft = files.draft()
    draft.write(data)
    content = _entered(url, FileContent(1, draft.finish()))
    draft.keep(content)
    draft.discard()
    edges = st.sampled_from([0, 1, PART_BYTES, 2 * PART_BYTES, len(data)])
    positions = st.builds(lambda edge, by: max(0, edge + by), edges, st.integers(-2, 2))

    @given(positions, st.integers(1, 3 * PART_BYTES) | st.integers(1, 3))
    @budget(60)
    def check(start: int, length: int) -> None:
        assert files.read(content, start, length) == data[start : start + length]

    check()


def _entered(url: str, content: FileContent) -> FileContent:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "INSERT INTO contents (project, sha256, made_at, going) VALUES (%s, %s, 0, 0) RETURNING rowid",
            (content.project, content.sha256),
        ).fetchone()
    assert row is not None
    return FileContent(content.project, content.sha256, row[0])


def test_one_of_two_equal_files_stays_without_drafts(shelves: Shelves) -> None:
    drafts = [shelves.files.draft() for _ in range(4)]
    data = bytes_of(PART_BYTES + 5)
    for draft in drafts:
        draft.write(data)
    contents = [shelves.content(draft.finish()) for draft in drafts]
    with ThreadPoolExecutor(len(drafts)) as threads:
        for kept in [threads.submit(draft.keep, each) for draft, each in zip(drafts, contents, strict=True)]:
            kept.result()
    for draft in drafts:
        draft.discard()
    assert len(set(contents)) == 1
    assert shelves.files.read(contents[0], 0, len(data)) == data


def test_projects_do_not_share_a_file(shelves: Shelves) -> None:
    one, other = shelves.put(b"same", 1), shelves.put(b"same", 2)
    shelves.files.remove(one)
    assert shelves.files.size(one) is None
    assert shelves.files.read(other, 0, 10) == b"same"


def test_missing_file_has_no_size_and_can_be_removed(shelves: Shelves) -> None:
    content = shelves.content(UNKNOWN)
    assert shelves.files.size(content) is None
    with pytest.raises(OSError, match=r"gone|No such file"):
        shelves.files.read(content, 0, 10)
    shelves.files.remove(content)


def test_a_draft_that_is_discarded_leaves_nothing(shelves: Shelves, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "OLD", timedelta(0))
    draft = shelves.files.draft()
    draft.write(b"never kept")
    draft.discard()
    assert list(shelves.files.contents()) == []


def test_all_contents_are_listed(shelves: Shelves, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "OLD", timedelta(seconds=-5))
    put = {shelves.put(bytes_of(at + 1), at % 3 + 1) for at in range(12)}
    assert set(shelves.files.contents()) == put


def test_removed_file_is_not_listed_and_can_be_stored_again(
    shelves: Shelves, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "OLD", timedelta(seconds=-5))
    content = shelves.put(b"once")
    shelves.files.remove(content)
    assert list(shelves.files.contents()) == []
    assert shelves.files.read(shelves.put(b"once"), 0, 4) == b"once"


@pytest.mark.s3
def test_young_object_is_not_an_orphan(s3: str) -> None:
    files = S3Files(f"s3://uploads/young?endpoint={s3}")
    Shelves(files, lambda _: 1).put(b"young")
    assert list(files.contents()) == []


@pytest.mark.s3
def test_missing_bucket_is_reported_with_a_remedy(s3: str) -> None:
    with pytest.raises(OSError, match="there is no bucket missing: create it, or correct DESKWIRE_FILES"):
        S3Files(f"s3://missing/a?endpoint={s3}").clear_drafts()
    nobody = S3Files("s3://uploads/a?endpoint=http://127.0.0.1:1")
    with pytest.raises(
        OSError, match=r"s3://uploads/a at http://127.0.0.1:1 can't be used .* reached from here"
    ) as told:
        nobody.clear_drafts()
    assert told.value.errno == errno.EIO


def test_files_in_the_database_survive_its_restart_and_report_its_loss() -> None:
    with fresh_database() as url:
        files = DatabaseFiles(url)
        shelves = Shelves(files, lambda content: _entered(url, content).entry)
        content = shelves.put(b"kept")
        _end_sessions(url)
        assert files.read(content, 0, 4) == b"kept"
        files.close()
    with pytest.raises(OSError, match="the database can't keep or read files") as told:
        files.size(content)
    assert told.value.errno == errno.EIO


def _end_sessions(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_file_whose_entry_was_removed_is_discarded_without_error() -> None:
    with fresh_database() as url:
        files = DatabaseFiles(url)
        draft = files.draft()
        draft.write(b"late")
        content = FileContent(1, draft.finish(), 99)
        draft.keep(content)
        draft.discard()
        assert files.size(content) is None
        files.close()


def test_four_sessions_read_files_in_the_database_and_others_wait() -> None:
    with fresh_database() as url, ThreadPoolExecutor(12) as pool:
        files = DatabaseFiles(url)
        content = Shelves(files, lambda content: _entered(url, content).entry).put(b"kept")
        with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as beside:
            holder.execute("LOCK TABLE upload_parts IN ACCESS EXCLUSIVE MODE")
            reading = [pool.submit(files.read, content, 0, 4) for _ in range(12)]
            while _sessions(beside, "AND wait_event_type = 'Lock'") < SESSIONS_MAX:
                time.sleep(0.01)  # poll: there is no notification
            holder.rollback()
            assert {each.result() for each in reading} == {b"kept"}
            assert _sessions(beside) == SESSIONS_MAX
        files.close()


def _sessions(connection: psycopg.Connection, condition: str = "") -> int:
    row = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        f"AND application_name LIKE 'deskwire/files%' {condition}".encode()
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_session_for_files_notices_that_its_server_has_died() -> None:
    with fresh_database() as url:
        files = DatabaseFiles(url)
        with files._connected() as connection, socket(fileno=os.dup(connection.fileno())) as line:
            assert line.getsockopt(IPPROTO_TCP, TCP_KEEPIDLE) == 2
            assert line.getsockopt(IPPROTO_TCP, TCP_USER_TIMEOUT) == 5_000
