"""Detects that the open database file was deleted, replaced, truncated or overwritten by another program.

SQLite continues with such a file without any error (https://www.sqlite.org/howtocorrupt.html, sections 2.4 and 4).
Therefore the writer checks the file before each transaction, and stops writing after the first difference.

If a path is missing or leads to another file (`file_gone`, `file_replaced`), nothing is lost yet, because the open
descriptors still reach the content: `rescue` saves it, and if the path is restored, the writer continues. A truncated
file (`file_truncated`) or content that SQLite did not write (`file_damaged`) is refused until the process ends.

SQLite changes the database file only in checkpoints, and a checkpoint changes fields of the WAL index
(https://www.sqlite.org/walformat.html, section 2.1). A change of the file without one is from another program.
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

_HEADER: Final = 100  # bytes of the header of the database file
_INDEX: Final = struct.Struct("=14xHI12x8s56xI28xI")  # fields of the WAL index: see `_WalIndex`
_WAL_HEADER: Final = 32  # bytes of the header of the WAL
_FRAME_HEADER: Final = 24  # bytes before each page in the WAL
_PATHS_INTERVAL_S: Final = 1.0  # paths are compared after this time even if the directory seems unchanged
_EXAMINE_TIMEOUT_S: Final = 2.0  # for reading a suspicious file, during which writes wait
_EXAMINE_INTERVAL_S: Final = (
    300.0  # between two such readings, because some file systems change times on their own
)
_STEPS: Final = 10_000  # of SQLite's virtual machine between two calls of the progress handler

_RESTORE: Final = "Stop the service, keep this directory aside, and restore the newest backup into an empty one with `deskwire restore`."


class _WalIndex(NamedTuple):
    """Fields of the WAL index.

    Args:
        frames: number of frames in the WAL.
        salts: random values that change when the WAL restarts.
        folded: frames that checkpoints have copied into the database file (nBackfill).
        folding: frames that the current checkpoint is copying (nBackfillAttempted).
    """

    page_size: int
    frames: int
    salts: bytes
    folded: int
    folding: int

    @property
    def settled(self) -> bool:
        """True if no checkpoint is running."""
        return self.folded == self.folding

    @property
    def whole(self) -> bool:
        """True if the database file has all pages that its header counts.

        A checkpoint stops at the snapshot of the oldest reader. It has then written the number of pages, but left out those
        with a newer frame in the WAL, which may be the last ones of the file.
        """
        return self.settled and self.folded in (0, self.frames)

    @property
    def checkpoint(self) -> tuple[bytes, int, int]:
        """The fields that a checkpoint changes, before and after it writes to the database file."""
        return self.salts, self.folded, self.folding

    @property
    def wal_size(self) -> int:
        """The minimum size of the WAL in bytes."""
        size = 65_536 if self.page_size == 1 else self.page_size
        return _WAL_HEADER + self.frames * (_FRAME_HEADER + size) if self.frames else 0


class _Content(NamedTuple):
    """The state of the database file after SQLite has written to it."""

    size: int
    changed_ns: int
    header: bytes
    wal_index: _WalIndex


class DatabaseFile(DatabaseIdentity):
    """Compares the open database file with the file at its path and with its last known state.

    Create it after all connections are open, and `close` it after they are closed, because closing a descriptor releases
    SQLite's locks on the file (POSIX). `doubtful` is True if `examine` must read the content.

    Args:
        path: of the database.
        file: a descriptor of the database.
        hold_lock: renews the lock of the data directory if its file was removed; returns the reason if it can't.
        on_refused: called in Trio's thread when a path is missing or leads to another file.
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
        self._paths = [(_beside(path, end), os.fstat(each)) for end, each in opened]
        self._folder, self._name = os.fspath(path.parent), os.fspath(path)
        self._paths_seen: tuple[int, int, int] | None = None
        self._paths_seen_at = 0.0
        self._noticed: tuple[Reason, str] | None = None
        self._stands = False
        self._examined_at = -_EXAMINE_INTERVAL_S
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
        """True if the content would be lost with the process: it is not at its path or in a moved directory."""
        opened = os.fstat(self._file)
        moved = opened.st_nlink > 0 and not self._path.parent.exists()
        return not self._stands and not moved and not _leads_to(self._path, opened)

    @property
    def shared(self) -> bool:
        """True if another process may have opened the same file, so that this one must not touch it."""
        return self._noticed is not None and self._noticed[1].startswith(str(self._path.parent / LOCK_NAME))

    def remove_sides(self) -> None:
        """Remove the WAL and its index if they belong to the open file. Raises OSError."""
        for path, opened in self._paths[1:]:
            if _leads_to(path, opened):
                path.unlink()

    def check(self) -> None:
        """Compare the paths. May be called at any time, in Trio's thread."""
        self._paths_seen = None
        self._compare_paths()

    def before_write(self) -> IdentityRefusal | None:
        """Compare paths and content; return the refusal, if any. For the writer, between transactions."""
        status = self._compare_paths()
        if status is not None and not self._stands:
            self._compare_content(status)
        return self.refusal

    def note(self) -> None:
        """Accept the current content after the program itself has written to the file without a checkpoint."""
        if self.refusal is None:
            self._content = self._present()

    def note_folded(self) -> None:
        """Accept the current content after a checkpoint while a path is missing."""
        self._content, self._wal_size = self._present(), 0

    def examine(self) -> IdentityRefusal | None:
        """Read the suspicious file for up to `_EXAMINE_TIMEOUT_S`; return the refusal if it is damaged. Blocks."""
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
        """Return whether the whole database was read within `_EXAMINE_TIMEOUT_S`, and its first fault. Blocks.

        Reads at most once in `_EXAMINE_INTERVAL_S`.
        """
        now = time.monotonic()
        if now - self._examined_at < _EXAMINE_INTERVAL_S:
            return False, None
        self._examined_at = now
        return _quick_check(self._path, now + _EXAMINE_TIMEOUT_S)

    def met_damage(self, error: sqlite3.Error) -> IdentityRefusal:
        """Refuse all further writes because SQLite has found a damaged page. May be called from any thread."""
        cut = self._cut_size()
        if cut is None:
            self._refuse_content(f"holds damaged pages ({error})")
        else:  # a read may find the missing pages before the writer checks
            self._refuse_content(f"was cut to {cut:,} bytes", "file_truncated")
        assert self.refusal is not None, "just refused"
        return self.refusal

    # Paths

    def _compare_paths(self) -> os.stat_result | None:
        """Compare the paths; return the status of the database file, None if it is not at its path."""
        try:
            folder, status = os.stat(self._folder), os.stat(self._name)
        except OSError:
            self._compare_each_path()
            return None
        # Creating and removing files changes the time of the directory, but some programs reset it.
        seen, now = (folder.st_mtime_ns, folder.st_ino, status.st_ino), time.monotonic()
        if seen != self._paths_seen or now - self._paths_seen_at > _PATHS_INTERVAL_S:
            if not self._compare_each_path():
                return None
            self._paths_seen, self._paths_seen_at = seen, now
        return status

    def _compare_each_path(self) -> bool:
        self._paths_seen = None
        found = self._different_path()
        if found is None:
            return self._paths_are_back()
        if found != self._noticed and not self._stands:
            self._noticed = found
            reason, state = found
            self.refuse(
                reason,
                f"{state} while the service had it open. Nothing is stored from now on. {self._remedy()}",
            )
            self.on_refused()
        return False

    def _different_path(self) -> tuple[Reason, str] | None:
        """Return the first path that does not lead to its open file."""
        for path, opened in self._paths:
            try:
                if not os.path.samestat(os.stat(path), opened):
                    return "file_replaced", f"{path} was replaced by another file"
            except FileNotFoundError:
                return "file_gone", f"{path} was deleted or moved"
            except OSError as error:
                return "file_gone", f"{path} can't be reached any longer ({error.strerror})"
        held = self._hold_lock()
        return None if held is None else ("file_replaced", held)

    def _remedy(self) -> str:
        if self.shared:
            return "Stop this service: the other process has the directory."
        if self.lost:
            return "Its content is being saved; keep the process running until then."
        return "All acknowledged changes are in the database file: put it back to its path, or restart the service."

    def _paths_are_back(self) -> bool:
        """Accept the file again unless it was changed while its path was missing."""
        if self._noticed is not None and not self._stands:
            now = self._present()
            # A checkpoint of this process is allowed; another process would have used another WAL index.
            if (
                now[:3] != self._content[:3]
                and now.wal_index.checkpoint == self._content.wal_index.checkpoint
            ):
                self._refuse_content("was changed by another program while it was not at its path")
                return False
            self._noticed = None
            self.accept()
        return not self._stands

    # Content

    def _present(self) -> _Content:
        wal_index, status = self._wal_index(), os.fstat(self._file)
        return _Content(status.st_size, status.st_mtime_ns, os.pread(self._file, _HEADER, 0), wal_index)

    def _wal_index(self) -> _WalIndex:
        data = os.pread(self._index, _INDEX.size, 0)
        return _WalIndex(*_INDEX.unpack(data.ljust(_INDEX.size, b"\0")))

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
            self._check_change()

    def _wal_was_cut(self) -> bool:
        """Return whether the WAL lacks frames of its index. A checkpoint of another process may truncate it at any time."""
        before, size = self._wal_index(), os.fstat(self._wal).st_size
        return size < before.wal_size and before == self._wal_index()

    def _check_change(self) -> None:
        """Decide whether a checkpoint has changed the database file, and refuse other changes."""
        before, now = self._wal_index(), self._present()
        settled = (
            now.wal_index.settled and before == now.wal_index == self._wal_index()
        )  # no checkpoint of another process
        page_size, pages = _sizes(now.header)
        if now.size < _HEADER or (settled and now.wal_index.whole and now.size < page_size * pages):
            self._refuse_content(f"was cut to {now.size:,} bytes", "file_truncated")
        elif (difference := _foreign(self._content, now, settled=settled)) is not None:
            self._refuse_content(difference)
        elif settled:
            self.doubtful = not _checkpointed(self._content.wal_index, now.wal_index)
            if not self.doubtful:
                self._content = now

    def _cut_size(self) -> int | None:
        """Return the size of the file if it is shorter than its header says; else, and if it may be so, None."""
        before, now = self._wal_index(), self._present()
        if now.size < _HEADER:
            return now.size
        page_size, pages = _sizes(now.header)
        settled = now.wal_index.whole and before == now.wal_index == self._wal_index()
        known = now.header[:18] == self._content.header[:18]  # a foreign header has no number of pages
        return now.size if settled and known and now.size < page_size * pages else None

    def _refuse_content(self, state: str, reason: Reason = "file_damaged") -> None:
        if not self._stands:
            self._stands = True
            self.refuse(
                reason, f"The database {self._path} {state}. Nothing is stored from now on. {_RESTORE}"
            )


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether SQLite has found a page that it can't have written."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)  # errors of Python's module have none
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _foreign(known: _Content, now: _Content, *, settled: bool) -> str | None:
    """Return the evidence in the header that the file was overwritten; None without any."""
    if now.header[:18] != known.header[:18]:  # magic string and page size
        return "was overwritten with something that is not its content"
    if settled and not _checkpointed(known.wal_index, now.wal_index) and now.header != known.header:
        return "was overwritten with the content of another file"
    if _counter(now.header) < _counter(known.header):
        return "was overwritten with an older copy"
    return None


def _checkpointed(known: _WalIndex, now: _WalIndex) -> bool:
    """Return whether the WAL index shows a checkpoint between two states."""
    if now.salts == known.salts:
        return now.folded != known.folded
    # The WAL was restarted. One restart needs no further checkpoint if all frames were in the file before.
    again = int.from_bytes(now.salts[:4]) - int.from_bytes(known.salts[:4])
    return again != 1 or known.folded < known.frames or now.folded > 0


def _counter(header: bytes) -> int:
    return int.from_bytes(header[24:28])


def _sizes(header: bytes) -> tuple[int, int]:
    """Return the page size and the number of pages in the header."""
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
    """Return whether the whole file was read in time, and its first fault."""
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
