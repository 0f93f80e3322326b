"""Writes log lines in a separate thread, so that a reader that hangs or disappears blocks nothing (ADR 38).

Lines wait in a bounded queue. A line that does not fit is dropped and counted. As soon as writing succeeds again, a line
reports the number of dropped lines in their place.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

ROOM: Final = 2 << 20
"""Maximum queued characters: the lines of some 11,000 requests in half of it, or a pause of a second or two."""

GATHER_S: Final = 0.005
"""Delay after a write, in which lines are gathered: the thread wakes up at most 200 times a second."""

PIECE: Final = 4096
"""PIPE_BUF of Linux. A write to a pipe of at most this size is atomic (POSIX, `write`), so lines stay whole."""


class Lost(Struct, frozen=True):
    """Dropped lines: their number, and the time of the first one in milliseconds since the epoch."""

    lines: int
    since: int


class LineWriter:
    """The queue and its thread. The lines of all threads are written whole and in order.

    Args:
        descriptor: the file, pipe or terminal to write to.
        now: a clock in milliseconds since the epoch.
        notice: returns the line that reports dropped lines.
    """

    def __init__(self, descriptor: int, now: Callable[[], int], notice: Callable[[Lost], str]) -> None:
        self.dropped = 0
        self._descriptor = descriptor
        self._now = now
        self._notice = notice
        self._lock = threading.RLock()  # re-entrant, because a finalizer may log while a line is being queued
        self._wakeup = (
            threading.Lock()
        )  # held while waiting for lines: the cheapest primitive to wake a thread with
        self._wakeup.acquire()
        self._idle = True
        self._closing = False
        self._waiting: list[str] = []
        self._size = 0
        self._refused: Lost | None = None  # dropped after the queued lines
        self._owed: Lost | None = (
            None  # to be reported before the next write; owned by the thread, like the field below
        )
        self._cut_short = False
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, line: str, room: int = ROOM) -> None:
        """Queue a line, which includes its line break; never blocks.

        Args:
            room: maximum characters already queued for the line to be accepted.
        """
        with self._lock:
            if self._size > room:
                self.dropped += 1
                self._refused = _more(self._refused, 1, self._now())
                return
            self._waiting.append(line)
            self._size += len(line)
            if self._idle:
                self._idle = False
                self._wakeup.release()

    def close(self, within_s: float) -> None:
        """Write the queued lines and end the thread; lines not read within `within_s` are lost.

        Later writes of the process to the descriptor can't block its end either.
        """
        with self._lock:
            self._closing = True
            if self._idle:
                self._idle = False
                self._wakeup.release()
        self._thread.join(within_s)
        if self._thread.is_alive():
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._descriptor)  # the thread still waits for the original file
            os.close(nowhere)

    def _run(self) -> None:
        closing = False
        while not closing:
            self._wakeup.acquire()
            with self._lock:
                lines, self._waiting, self._size = self._waiting, [], 0
                refused, self._refused = self._refused, None
                self._idle, closing = True, self._closing
            for piece, count in packed(lines):
                self._put_out(piece, count)
            if refused is not None:
                self._owed = _more(self._owed, refused.lines, refused.since)
            self._put_out(b"", 0)
            if not closing:
                time.sleep(GATHER_S)

    def _put_out(self, piece: bytes, count: int) -> None:
        """Write a piece after a report of dropped lines; count its lines as dropped if the write fails."""
        try:
            if self._owed is not None:
                self._write_all(_encoded([self._notice(self._owed)]))
                self._owed = None
            self._write_all(piece)
        except OSError:  # a closed pipe or a full disk must not affect requests
            with self._lock:
                self.dropped += count
            if count:
                self._owed = _more(self._owed, count, self._now())

    def _write_all(self, piece: bytes) -> None:
        rest = memoryview(b"\n" + piece if self._cut_short and piece else piece)
        while rest:
            try:
                written = os.write(self._descriptor, rest)
            except BlockingIOError:  # another process has made the shared pipe or terminal non-blocking
                select.select([], [self._descriptor], [])
                continue
            rest = rest[written:]
            self._cut_short = bool(rest)


def packed(lines: Sequence[str]) -> Iterator[tuple[bytes, int]]:
    """Yield the lines in pieces of at most `PIECE` characters, or a single longer line; with their number."""
    first = size = 0
    for number, line in enumerate(lines):
        size += len(line)
        if size > PIECE and number > first:
            yield _encoded(lines[first:number]), number - first
            first, size = number, len(line)
    if lines:
        yield _encoded(lines[first:]), len(lines) - first


def _encoded(lines: Sequence[str]) -> bytes:
    return "".join(lines).encode(errors="backslashreplace")


def _more(before: Lost | None, lines: int, at: int) -> Lost:
    return Lost(lines, at) if before is None else Lost(before.lines + lines, before.since)
