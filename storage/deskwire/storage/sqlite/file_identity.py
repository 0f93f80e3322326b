"""The identity of the open database file: whether it is still the one at its path, with the content that SQLite has written.

SQLite goes on with a file that was deleted, replaced or overwritten, and reports nothing
(https://www.sqlite.org/howtocorrupt.html, sections 2.4 and 4). So the writer compares before each transaction, and writes
nothing after the first difference.

A name is gone or leads to another file (`file_gone`, `file_replaced`): nothing is lost yet, because the descriptors still have
the content; `rescue` saves it, and if the name comes back the writer goes on. A file was cut (`file_truncated`) or has content
that is not from SQLite (`file_damaged`): that stands until the process ends.

A checkpoint is the only change that SQLite makes to the database file, and it leaves marks in the WAL index
(https://www.sqlite.org/walformat.html, section 2.1). A change without one comes from another program.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from deskwire.engine.core.database_identity import DatabaseIdentity, IdentityRefusal, Reason
from deskwire.storage.sqlite.directory import LOCK_NAME

log: Final = structlog.get_logger(__name__)

_HEADER: Final = 100  # bytes of the database file's header
_INDEX: Final = struct.Struct("=14xHI12x8s56xI28xI")  # of the WAL index: see `_Marks`
_WAL_HEADER: Final = 32  # bytes at the beginning of the WAL
_FRAME_HEADER: Final = 24  # bytes before each page in the WAL
_FULL_LOOK_S: Final = 1.0  # after which names are compared although the directory seems unchanged
_EXAMINE_S: Final = 2.0  # for which the content of a doubtful file is read; writes wait
_EXAMINE_PAUSE_S: Final = 300.0  # between two such readings: a file system may have times of its own
_STEPS: Final = 10_000  # of SQLite's machine between two looks at the clock

_RESTORE: Final = "Stop the service, keep this directory aside, and restore the newest backup into an empty one with `deskwire restore`."


class _Marks(NamedTuple):
    """The marks in the WAL index: page size, frames in the WAL, its salts, frames folded into the file, and meant to be."""

    page_size: int
    frames: int
    salts: bytes
    folded: int
    folding: int

    @property
    def settled(self) -> bool:
        """True if no checkpoint is under way."""
        return self.folded == self.folding

    @property
    def checkpoint(self) -> tuple[bytes, int, int]:
        """The marks that a checkpoint changes before it writes to the database file, or after."""
        return self.salts, self.folded, self.folding

    @property
    def wal_size(self) -> int:
        """The bytes that the WAL has at least."""
        size = 65_536 if self.page_size == 1 else self.page_size
        return _WAL_HEADER + self.frames * (_FRAME_HEADER + size) if self.frames else 0


class _Content(NamedTuple):
    """The state of the database file after SQLite has written to it: its size, time and header, and the marks of that."""

    size: int
    changed_ns: int
    header: bytes
    marks: _Marks


class DatabaseFile(DatabaseIdentity):
    """The database file that the store has open, compared with the file at its path and with its last known content.

    Made after all connections are open. `close` it after they are closed, because closing a descriptor drops the locks that
    SQLite has on the file (POSIX). `doubtful` says whether `examine` has to read the content.

    Args:
        path: of the database.
        file: a descriptor of it.
        hold_lock: holds the lock of the data directory again if its file was removed; returns why it can't, else None.
        on_refused: called in Trio's thread when a name is gone or leads to another file.
    """

    def __init__(
        self,
        path: Path,
        file: int,
        hold_lock: Callable[[], str | None] = lambda: None,
        on_refused: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self.doubtful = False
        self.on_refused = on_refused
        self._path = path
        self._file = file
        self._hold_lock = hold_lock
        self._wal, self._index = (_opened(_beside(path, end)) for end in ("-wal", "-shm"))
        opened = zip(("", "-wal", "-shm"), (file, self._wal, self._index), strict=True)
        self._names = [(_beside(path, end), os.fstat(each)) for end, each in opened]
        self._folder, self._name = os.fspath(path.parent), os.fspath(path)
        self._names_seen: tuple[int, int, int] | None = None
        self._names_seen_at = 0.0
        self._noticed: tuple[Reason, str] | None = None
        self._stands = False
        self._examined_at = -_EXAMINE_PAUSE_S
        self._content = self._present()
        self._wal_size = 0

    def close(self) -> None:
        """Close the descriptors of the WAL and its index."""
        os.close(self._wal)
        os.close(self._index)

    @property
    def path(self) -> Path:
        """The path of the database."""
        return self._path

    @property
    def lost(self) -> bool:
        """True if the content ends with the process: the path leads elsewhere, and no directory that was moved has the file."""
        opened = os.fstat(self._file)
        moved = opened.st_nlink > 0 and not self._path.parent.exists()
        return not self._stands and not moved and not _leads_to(self._path, opened)

    @property
    def shared(self) -> bool:
        """True if another process may have the same file, so that this one leaves it alone."""
        return self._noticed is not None and self._noticed[1].startswith(str(self._path.parent / LOCK_NAME))

    def remove_sides(self) -> None:
        """Remove the WAL and its index if they are the ones of the open file. Raises OSError."""
        for path, opened in self._names[1:]:
            if _leads_to(path, opened):
                path.unlink()

    def look(self) -> None:
        """Compare the names. For any moment, in Trio's thread."""
        self._names_seen = None
        self._compare_names()

    def before_write(self) -> IdentityRefusal | None:
        """Compare names and content; return the refusal if there is one. For the writer, between two transactions."""
        status = self._compare_names()
        if status is not None and not self._stands:
            self._compare_content(status)
        return self.refusal

    def note(self) -> None:
        """Take over the present content: the program itself has written to the file, and not by a checkpoint."""
        if self.refusal is None:
            self._content = self._present()

    def note_folded(self) -> None:
        """Take over the present content after a checkpoint while a name is away."""
        self._content, self._wal_size = self._present(), 0

    def examine(self) -> IdentityRefusal | None:
        """Read the doubtful file for `_EXAMINE_S` at most; return the refusal if it is damaged. Blocks."""
        self.doubtful = False
        whole, fault = self.read_through()
        if fault is not None:
            self._refuse_content(
                f"holds damaged pages ({fault}), because another program has written into it"
            )
            return self.refusal
        log.warning(
            "database.file_touched",
            whole=whole,
            advice="another program has written into the database file or set its time; run `deskwire check`",
        )
        self._content = self._present()
        return None

    def read_through(self) -> tuple[bool, str | None]:
        """Return whether the whole database could be read in `_EXAMINE_S`, and the first fault in it. Blocks.

        At most once in `_EXAMINE_PAUSE_S`, because a file system may have times of its own.
        """
        now = time.monotonic()
        if now - self._examined_at < _EXAMINE_PAUSE_S:
            return False, None
        self._examined_at = now
        return _quick_check(self._path, now + _EXAMINE_S)

    def met_damage(self, error: sqlite3.Error) -> IdentityRefusal:
        """Refuse all further writes because SQLite has met a damaged page. May be called from any thread."""
        cut = self._cut_size()
        if cut is None:
            self._refuse_content(f"holds damaged pages ({error})")
        else:  # a read may meet the missing pages before the writer compares
            self._refuse_content(f"was cut to {cut:,} bytes", "file_truncated")
        assert self.refusal is not None, "just refused"
        return self.refusal

    # Names

    def _compare_names(self) -> os.stat_result | None:
        """Compare the names; return the status of the database file, None if it is not at its path."""
        try:
            folder, status = os.stat(self._folder), os.stat(self._name)
        except OSError:
            self._compare_each_name()
            return None
        # A name that comes or goes changes the time of the directory, which some programs set back.
        seen, now = (folder.st_mtime_ns, folder.st_ino, status.st_ino), time.monotonic()
        if seen != self._names_seen or now - self._names_seen_at > _FULL_LOOK_S:
            if not self._compare_each_name():
                return None
            self._names_seen, self._names_seen_at = seen, now
        return status

    def _compare_each_name(self) -> bool:
        self._names_seen = None
        found = self._different_name()
        if found is None:
            return self._names_are_back()
        if found != self._noticed and not self._stands:
            self._noticed = found
            reason, state = found
            self.refuse(
                reason,
                f"{state} while the service had it open. Nothing is stored from now on. {self._way_out()}",
            )
            self.on_refused()
        return False

    def _different_name(self) -> tuple[Reason, str] | None:
        """Return the first name that does not lead to its open file."""
        for path, opened in self._names:
            try:
                if not os.path.samestat(os.stat(path), opened):
                    return "file_replaced", f"{path} was replaced by another file"
            except FileNotFoundError:
                return "file_gone", f"{path} was deleted or moved"
            except OSError as error:
                return "file_gone", f"{path} can't be reached any longer ({error.strerror})"
        held = self._hold_lock()
        return None if held is None else ("file_replaced", held)

    def _way_out(self) -> str:
        if self.shared:
            return "Stop this service: the other process has the directory."
        if self.lost:
            return "Its content is being saved; keep the process running until then."
        return (
            "All that was answered is in the database file: put it back to its path, or restart the service."
        )

    def _names_are_back(self) -> bool:
        """Accept the file again if nothing was written to it while its name was away."""
        if self._noticed is not None and not self._stands:
            now = self._present()
            # A checkpoint of this process may have been under way; another one had the moved file under another index.
            if now[:3] != self._content[:3] and now.marks.checkpoint == self._content.marks.checkpoint:
                self._refuse_content("was changed by another program while its name was away")
                return False
            self._noticed = None
            self.accept()
        return not self._stands

    # Content

    def _present(self) -> _Content:
        marks, status = self._marks(), os.fstat(self._file)
        return _Content(status.st_size, status.st_mtime_ns, os.pread(self._file, _HEADER, 0), marks)

    def _marks(self) -> _Marks:
        data = os.pread(self._index, _INDEX.size, 0)
        return _Marks(*_INDEX.unpack(data.ljust(_INDEX.size, b"\0")))

    def _compare_content(self, status: os.stat_result) -> None:
        wal_size = os.fstat(self._wal).st_size
        if wal_size < self._wal_size and self._wal_was_cut():
            self._refuse_content(
                "lacks changes: its WAL was cut, and with it the changes that were not yet in the database file",
                "file_truncated",
            )
            return
        self._wal_size = wal_size
        if status.st_mtime_ns != self._content.changed_ns or status.st_size != self._content.size:
            self._judge()

    def _wal_was_cut(self) -> bool:
        """Return whether the WAL lacks frames that its index counts. Another process may empty it at any time."""
        before, size = self._marks(), os.fstat(self._wal).st_size
        return size < before.wal_size and before == self._marks()

    def _judge(self) -> None:
        """Say whether the change of the database file is from a checkpoint."""
        before, now = self._marks(), self._present()
        settled = (
            now.marks.settled and before == now.marks == self._marks()
        )  # no checkpoint of another process
        page_size, pages = _sizes(now.header)
        if now.size < _HEADER or (settled and now.size < page_size * pages):
            self._refuse_content(f"was cut to {now.size:,} bytes", "file_truncated")
        elif (difference := _foreign(self._content, now, settled=settled)) is not None:
            self._refuse_content(difference)
        elif settled:
            self.doubtful = not _checkpointed(self._content.marks, now.marks)
            if not self.doubtful:
                self._content = now

    def _cut_size(self) -> int | None:
        """Return the size of the file if it lacks pages that its header counts; None if not, or while a checkpoint runs."""
        before, now = self._marks(), self._present()
        if now.size < _HEADER:
            return now.size
        page_size, pages = _sizes(now.header)
        settled = now.marks.settled and before == now.marks == self._marks()
        known = now.header[:18] == self._content.header[:18]  # another header has no number of pages
        return now.size if settled and known and now.size < page_size * pages else None

    def _refuse_content(self, state: str, reason: Reason = "file_damaged") -> None:
        if not self._stands:
            self._stands = True
            self.refuse(
                reason, f"The database {self._path} {state}. Nothing is stored from now on. {_RESTORE}"
            )


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether SQLite has met a page that it can't have written."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)  # an error of Python's module has none
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _foreign(known: _Content, now: _Content, *, settled: bool) -> str | None:
    """Return how the header shows that other content was written over the file; None if it does not."""
    if now.header[:18] != known.header[:18]:  # the format's name and the page size
        return "was overwritten with something that is not its content"
    if settled and not _checkpointed(known.marks, now.marks) and now.header != known.header:
        return "was overwritten with the content of another file"
    if _counter(now.header) < _counter(known.header):
        return "was overwritten with an older copy"
    return None


def _checkpointed(known: _Marks, now: _Marks) -> bool:
    """Return whether the marks show a checkpoint between two looks."""
    if now.salts == known.salts:
        return now.folded != known.folded
    # The WAL began again. Once that needs no further checkpoint, if all of it was in the file already.
    again = int.from_bytes(now.salts[:4]) - int.from_bytes(known.salts[:4])
    return again != 1 or known.folded < known.frames or now.folded > 0


def _counter(header: bytes) -> int:
    return int.from_bytes(header[24:28])


def _sizes(header: bytes) -> tuple[int, int]:
    """Return page size and number of pages as the header has them."""
    size = int.from_bytes(header[16:18])
    return 65_536 if size == 1 else size, int.from_bytes(header[28:32])


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}{ending}")


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _leads_to(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), opened)
    except OSError:
        return False


def _quick_check(path: Path, until: float) -> tuple[bool, str | None]:
    """Return whether the whole file was read in time, and the first fault in it."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        line = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError:
        return False, None
    except sqlite3.DatabaseError as error:
        return True, str(error)
    else:
        return True, None if line == "ok" else line
    finally:
        connection.close()
