"""Writes lines from a thread of its own, so that a reader who hangs or is gone holds nobody up (ADR 38).

Lines wait in a bounded queue. What finds no room there is dropped and counted, and as soon as something can be
written again, a line in the place of those that are lost tells of them.
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
"""Characters that may wait: the lines of some 11,000 requests, half of it for them; a pause of a second or two."""

GATHER_S: Final = 0.005
"""How long lines are gathered after a write; so however many there are, the thread wakes at most 200 times a second."""

PIECE: Final = 4096
"""PIPE_BUF of Linux. A write to a pipe that is no larger is never parted (POSIX, `write`): lines stay whole."""


class Lost(Struct, frozen=True):
    """Lines that were dropped: how many, and when the first of them was, in milliseconds since the epoch."""

    lines: int
    since: int


class LineWriter:
    """The queue and the thread behind it. Lines of all threads come out whole and in the order they were put in.

    Args:
        descriptor: of the file, pipe or terminal that they go to.
        now: the clock, in milliseconds since the epoch.
        notice: makes the line that tells of lost ones.
    """

    def __init__(self, descriptor: int, now: Callable[[], int], notice: Callable[[Lost], str]) -> None:
        self.dropped = 0
        self._descriptor = descriptor
        self._now = now
        self._notice = notice
        self._lock = threading.RLock()  # of the same thread's, if a finalizer logs while a line is put in
        self._news = (
            threading.Lock()
        )  # held by whoever waits for news: the cheapest thing to wake a thread with
        self._news.acquire()
        self._idle = True
        self._closing = False
        self._waiting: list[str] = []
        self._size = 0
        self._refused: Lost | None = None  # behind what is waiting
        self._owed: Lost | None = None  # before what is written next; the thread's own, as is the one below
        self._cut_short = False
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, line: str, room: int = ROOM) -> None:
        """Have a line written, which brings its end along; returns at once.

        Args:
            room: how much may be waiting already for it to be taken.
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
                self._news.release()

    def close(self, within_s: float) -> None:
        """Have what waits written and the thread ended; whoever does not read by then gets no more.

        After that nothing that the process itself writes there can hold up its end either.
        """
        with self._lock:
            self._closing = True
            if self._idle:
                self._idle = False
                self._news.release()
        self._thread.join(within_s)
        if self._thread.is_alive():
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._descriptor)  # the thread stays with the one that it waits for
            os.close(nowhere)

    def _run(self) -> None:
        closing = False
        while not closing:
            self._news.acquire()
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
        """Write a piece, and before it what is owed; count its lines as lost if that fails."""
        try:
            if self._owed is not None:
                self._write_all(_encoded([self._notice(self._owed)]))
                self._owed = None
            self._write_all(piece)
        except OSError:  # the reader is gone, or a disk is full: of no concern to those who are answered
            with self._lock:
                self.dropped += count
            if count:
                self._owed = _more(self._owed, count, self._now())

    def _write_all(self, piece: bytes) -> None:
        rest = memoryview(b"\n" + piece if self._cut_short and piece else piece)
        while rest:
            try:
                written = os.write(self._descriptor, rest)
            except BlockingIOError:  # others have the same pipe or terminal, and made it so
                select.select([], [self._descriptor], [])
                continue
            rest = rest[written:]
            self._cut_short = bool(rest)


def packed(lines: Sequence[str]) -> Iterator[tuple[bytes, int]]:
    """Yield the lines in pieces of at most `PIECE` characters, or one line if that alone has more; with their number."""
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
