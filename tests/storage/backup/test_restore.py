"""A restore recovers all data or changes nothing; a hostile archive is refused."""

from __future__ import annotations

import io
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import orjson
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.storage.files import DiskFiles
from deskwire.storage.sqlite.backup.archive import ArchiveMember, members
from deskwire.storage.sqlite.backup.snapshot import CopyError
from deskwire.storage.sqlite.database import DirectoryLock
from deskwire.storage.sqlite.directory import FILE_NAME, RESTORING, DataDirectoryError, DirectoryInUseError
from deskwire.storage.sqlite.store import open_store
from tests.storage.backup.conftest import (
    CONTENT,
    FILE,
    SECRET,
    TOTP,
    back_up,
    fill,
    left,
    names,
    restore,
    rewritten,
)
from tests.support.builders import PROJECT, post, running

Parts = list[tuple[tarfile.TarInfo, bytes]]


def query(directory: Path, sql: str) -> list[tuple[object, ...]]:
    """Return rows of a directory's database."""
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection:
        return connection.execute(sql).fetchall()


def test_everything_is_there_again(data: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    done = restore(back_up(data, tmp_path / "b.tar").path, new)
    assert done.contents.sealed
    assert left(new) == {"deskwire.sqlite3", "uploads", "secret", "deskwire.lock"}
    assert (new / "secret").read_text().strip() == SECRET
    assert DiskFiles(new).place(CONTENT).read_bytes() == FILE
    assert query(new, "SELECT setup_hidden FROM projects WHERE rowid = 1") == [(1,)]
    for table in ("messages", "events", "deliveries", "endpoints", "uploads", "projects"):
        assert query(new, f"SELECT * FROM {table}") == query(data, f"SELECT * FROM {table}")
    assert {path.stat().st_mode & 0o077 for path in new.rglob("*")} == {0}


async def test_the_restored_service_goes_on_with_the_next_sequence_and_larger_ids(tmp_path: Path) -> None:
    conversation_id = await fill(tmp_path / "data")
    back_up(tmp_path / "data", tmp_path / "b.tar")
    restore(tmp_path / "b.tar", tmp_path / "new")
    async with running(tmp_path / "new") as engine:
        receipt = await engine.directory.ask(PROJECT, conversation_id, post())
        assert receipt.state is not None
        events = await engine.store.read(lambda reader: reader.events(1, 0, 100, frozenset()))
    assert receipt.state.sequence == 4
    assert [event.id for event in events] == sorted(event.id for event in events)
    assert [event.sequence for event in events] == [1, 2, 3, 4]


def test_pending_deliveries_are_kept_or_skipped_with_a_reason(data: Path, tmp_path: Path) -> None:
    made = back_up(data, tmp_path / "b.tar")
    restore(made.path, tmp_path / "kept")
    assert query(tmp_path / "kept", "SELECT DISTINCT status FROM deliveries") == [("pending",)]
    assert restore(made.path, tmp_path / "skipped", skip_pending=True).skipped == 3
    assert query(tmp_path / "skipped", "SELECT DISTINCT status, reason FROM deliveries") == [
        ("skipped", "restored from a backup")
    ]


def test_with_pending_webhooks_skipped_nothing_that_an_outage_made_miss_is_sent_either(
    data: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(data / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE deliveries SET status = 'dropped', missed = 1 WHERE position = 1")
    made = back_up(data, tmp_path / "b.tar")
    restore(made.path, tmp_path / "kept")
    assert query(tmp_path / "kept", "SELECT count(*) FROM deliveries WHERE missed = 1") == [(1,)]
    restore(made.path, tmp_path / "skipped", skip_pending=True)
    assert query(tmp_path / "skipped", "SELECT count(*) FROM deliveries WHERE missed = 1") == [(0,)]


def test_with_pending_webhooks_skipped_held_messages_wait_for_their_authors(
    data: Path, tmp_path: Path
) -> None:
    made = back_up(data, tmp_path / "b.tar")
    restore(made.path, tmp_path / "kept")
    assert query(tmp_path / "kept", "SELECT text, problem FROM held_messages") == [("Soon", None)]
    restore(made.path, tmp_path / "skipped", skip_pending=True)
    ((text, problem),) = query(tmp_path / "skipped", "SELECT text, problem FROM held_messages")
    assert (text, orjson.loads(str(problem))[0]) == ("Soon", "restored")
    assert query(tmp_path / "skipped", "SELECT text FROM drafts") == [("She called twice.",)]


def test_sessions_of_browsers_end_as_some_may_have_ended_since(data: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(data / FILE_NAME)) as connection, connection:
        connection.execute(
            "INSERT INTO users (rowid, id, email, name, created_at) VALUES (9, 'usr_9', 'a@b.example', '', 0)"
        )
        connection.execute(
            "INSERT INTO sessions (id, user, hash, client, created_at, last_seen_at) VALUES ('ses_1', 9, x'00', '', 0, 0)"
        )
    restore(back_up(data, tmp_path / "b.tar").path, tmp_path / "new")
    assert query(data, "SELECT count(*) FROM sessions") == [(1,)]
    assert query(tmp_path / "new", "SELECT * FROM sessions") == []


def test_ways_in_that_may_have_been_used_since_end_and_invitations_and_factors_stay(
    data: Path, tmp_path: Path
) -> None:
    for table in ("one_time_links", "mails", "oidc_requests"):
        assert query(data, f"SELECT count(*) FROM {table}") != [(0,)]
    restore(back_up(data, tmp_path / "b.tar").path, tmp_path / "new")
    for table in ("one_time_links", "mails", "oidc_requests", "challenges"):
        assert query(tmp_path / "new", f"SELECT count(*) FROM {table}") == [(0,)]
    assert query(tmp_path / "new", "SELECT email, role FROM invitations") == [("ada@example.org", "agent")]
    ((sealed,),) = query(tmp_path / "new", "SELECT sealed_secret FROM totps WHERE confirmed = 1")
    assert isinstance(sealed, bytes)
    assert Encryption(Secrets(SECRET)).open(sealed) == TOTP


def test_restore_without_the_right_secret_needs_a_request_for_a_new_one(data: Path, tmp_path: Path) -> None:
    made, new = back_up(data, tmp_path / "b.tar", with_secret=False), tmp_path / "new"
    for secret in (None, "another secret that is long enough, too"):
        with pytest.raises(CopyError, match="--new-secret"):
            restore(made.path, new, secret=secret)
        assert not new.exists()
    assert restore(made.path, new, secret=SECRET).contents.sealed
    assert (new / "secret").read_text().strip() == SECRET
    assert not restore(made.path, tmp_path / "other", new_secret=True).contents.sealed
    assert not (tmp_path / "other" / "secret").exists()


def test_a_given_secret_that_is_not_the_backups_own_is_refused(data: Path, tmp_path: Path) -> None:
    made = back_up(data, tmp_path / "b.tar")
    with pytest.raises(CopyError, match="not the one in the backup"):
        restore(made.path, tmp_path / "new", secret="another secret that is long enough, too")


def test_restore_refuses_a_directory_that_is_not_empty_or_in_use(data: Path, tmp_path: Path) -> None:
    made = back_up(data, tmp_path / "b.tar")
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    with pytest.raises(DataDirectoryError, match="not empty"):
        restore(made.path, data)
    lock = DirectoryLock(data, "server")
    with pytest.raises(DirectoryInUseError):
        restore(made.path, data)
    lock.release()
    del before[data / "deskwire.lock"]
    assert {path: path.read_bytes() for path in before} == before


def test_an_empty_directory_of_the_operators_stays_and_is_used(data: Path, tmp_path: Path) -> None:
    made, new = back_up(data, tmp_path / "b.tar"), tmp_path / "new"
    (new / "lost+found").mkdir(parents=True)
    with pytest.raises(CopyError):
        restore(rewritten(made.path, lambda parts: parts.pop()), new)
    assert left(new) == {"deskwire.lock", "lost+found"}
    restore(made.path, new)


async def test_no_server_starts_on_an_interrupted_restore(tmp_path: Path) -> None:
    (tmp_path / RESTORING).mkdir()
    with pytest.raises(DataDirectoryError, match="not finished"):
        async with open_store(tmp_path, batch=1, readers=1, on_commit=lambda _: None):
            raise AssertionError("it was opened")


def test_next_restore_replaces_an_interrupted_one(data: Path, tmp_path: Path) -> None:
    made, new = back_up(data, tmp_path / "b.tar"), tmp_path / "new"
    (new / RESTORING).mkdir(parents=True)
    (new / RESTORING / FILE_NAME).write_text("half")
    (new / "secret").write_text("half")
    restore(made.path, new)
    assert left(new) == {"deskwire.sqlite3", "uploads", "secret", "deskwire.lock"}


def test_every_truncation_of_a_backup_is_refused(data: Path, tmp_path: Path) -> None:
    whole = back_up(data, tmp_path / "b.tar").path.read_bytes()
    short, new = tmp_path / "short.tar", tmp_path / "new"
    for size in (0, 100, 512, 5_000, len(whole) // 2, len(whole) - 3_000, len(whole) - 1_024, len(whole) - 1):
        short.write_bytes(whole[:size])
        with pytest.raises(CopyError, match="cut short"):
            restore(short, new)
        assert not new.exists()


def test_a_changed_byte_anywhere_is_found(data: Path, tmp_path: Path) -> None:
    made = back_up(data, tmp_path / "b.tar", with_secret=False)
    whole, altered, new = made.path.read_bytes(), tmp_path / "altered.tar", tmp_path / "new"
    for at in range(20, len(whole), len(whole) // 40):
        altered.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CopyError):
            restore(altered, new, secret=SECRET)
        assert not new.exists()


def member(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    """Make a member as a stranger would."""
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(content), kind, link
    return info, content


HOSTILE: list[tuple[str, Callable[[Parts], object]]] = [
    ("no place", lambda parts: parts.insert(1, member("../escaped", b"x"))),
    ("no place", lambda parts: parts.insert(1, member("/tmp/escaped", b"x"))),
    ("no place", lambda parts: parts.insert(1, member("uploads/1/aa/../../../escaped", b"x"))),
    ("no place", lambda parts: parts.insert(1, member("uploads/../secret", b"x"))),
    ("no place", lambda parts: parts.insert(1, member("demo.json", b"{}"))),
    ("no place", lambda parts: parts.insert(1, member("uploads/1/ab/" + "a" * 64, b"x"))),
    ("not an ordinary file", lambda parts: parts.insert(1, member(FILE_NAME, kind=tarfile.SYMTYPE, link="/etc/passwd"))),
    ("not an ordinary file", lambda parts: parts.insert(1, member("secret", kind=tarfile.LNKTYPE, link="x"))),
    ("not an ordinary file", lambda parts: parts.insert(1, member(FILE_NAME, kind=tarfile.FIFOTYPE))),
    ("no place", lambda parts: parts.insert(1, member("uploads", kind=tarfile.DIRTYPE))),
    ("altered", lambda parts: parts.insert(2, member("uploads/1/aa/" + "a" * 64, b"x"))),
    ("twice", lambda parts: parts.insert(2, member(FILE_NAME, b"x"))),
    ("begin", lambda parts: parts.reverse()),
    ("comes after the manifest", lambda parts: parts.append(member("secret", b"x"))),
    ("not those", lambda parts: parts.pop(2)),
    ("not complete", lambda parts: parts.pop(1)),
    ("seal", lambda parts: parts.pop()),
    ("secret was altered", lambda parts: parts.insert(-2, member("secret", b"x" * 40))),
    ("too large", lambda parts: parts.insert(0, member("backup.json", bytes(9 << 20)))),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "edit"), HOSTILE, ids=range(len(HOSTILE)))
def test_an_archive_that_no_backup_made_is_refused_and_nothing_is_written(
    data: Path, tmp_path: Path, reason: str, edit: Callable[[Parts], object]
) -> None:
    hostile = rewritten(back_up(data, tmp_path / "b.tar", with_secret=False).path, edit)
    with pytest.raises(CopyError, match=reason):
        restore(hostile, tmp_path / "new", secret=SECRET)
    assert left(tmp_path) == {"data", "b.tar", "altered.tar"}


def said(parts: Parts, name: str, **fields: object) -> None:
    """Change fields of a document in an archive."""
    at = names(parts).index(name)
    parts[at] = member(name, orjson.dumps({**orjson.loads(parts[at][1]), **fields}))


@pytest.mark.parametrize(
    ("reason", "name", "fields"),
    [
        ("format 2, made by Deskwire 0.1.0", "backup.json", {"format": 2}),
        ("newer Deskwire", "backup.json", {"migrations": ["m9999_future"]}),
        ("altered: the seal", "backup.json", {"createdAt": "2027-01-01T00:00:00.000Z"}),
        ("altered: the seal", "manifest.json", {"lastEvent": None}),
        ("database was altered", "manifest.json", {"databaseSha256": "0" * 64}),
        ("1 problems", "manifest.json", {"files": "many"}),
    ],
)
def test_mismatching_manifest_is_refused(
    data: Path, tmp_path: Path, reason: str, name: str, fields: dict[str, object]
) -> None:
    made = back_up(data, tmp_path / "b.tar", with_secret=False)
    altered = rewritten(made.path, lambda parts: said(parts, name, **fields))
    with pytest.raises(CopyError, match=reason):
        restore(altered, tmp_path / "new", secret=SECRET)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=2_000)
    | st.binary(max_size=300).map(lambda tail: tarfile.TarInfo("backup.json").tobuf() + tail)
)
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    with pytest.raises(CopyError):
        list(map(ArchiveMember.document, members(io.BytesIO(data))))


def test_a_backup_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CopyError, match="There is no backup"):
        restore(tmp_path / "b.tar", tmp_path / "new")
    assert not (tmp_path / "new").exists()


async def test_restored_service_sends_pending_webhooks(
    tmp_path: Path,
) -> None:
    await fill(tmp_path / "data")
    await trio.to_thread.run_sync(back_up, tmp_path / "data", tmp_path / "b.tar")
    restore(tmp_path / "b.tar", tmp_path / "new")
    async with open_store(tmp_path / "new", batch=1, readers=1, on_commit=lambda _: None) as store:
        pending = await store.read(lambda reader: reader.pending_deliveries(1, 0, 10))
    assert [delivery.event.sequence for delivery in pending] == [1, 2, 3]
