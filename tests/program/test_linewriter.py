"""Lines that a thread writes: whole, in order, bounded, and with a report of lost lines."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.logs.writer import PIECE, ROOM, LineWriter, Lost, packed
from tests.support.deadlines import HANG_TIMEOUT_S

AT = 1_700_000_000_000


def told(lost: Lost) -> str:
    return f"lost {lost.lines} since {lost.since}\n"


@dataclass
class Pipe:
    """A pipe whose reader reads when asked to."""

    writer: LineWriter
    reader: int
    got: bytes = field(default=b"")

    def read_until(self, words: bytes) -> list[str]:
        while words not in self.got:
            self.got += os.read(self.reader, 1 << 16)
        return self.got.decode().splitlines()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reader, writer = os.pipe()
    made = LineWriter(writer, lambda: AT, told)
    yield Pipe(made, reader)
    os.close(reader)
    made.close(HANG_TIMEOUT_S)
    os.close(writer)


def fill(writer: LineWriter) -> int:
    """Write lines until one is dropped, and return the number of those before it."""
    number = 0
    while writer.dropped == 0:
        writer.write(f"line {number} {'x' * 1_000}\n")
        number += 1
    return number - 1


def test_unread_lines_are_bounded_and_the_place_of_lost_ones_is_marked(pipe: Pipe) -> None:
    taken = fill(pipe.writer)
    for _ in range(9):
        pipe.writer.write("lost\n")
    assert taken * 1_000 < 2 * ROOM + 200_000  # the queue, what the thread is at, the pipe
    lines = pipe.read_until(b"lost ")
    assert lines[-1] == f"lost 10 since {AT}"
    assert [line.split()[1] for line in lines[:-1]] == [str(number) for number in range(taken)]
    pipe.writer.write("again\n")
    assert pipe.read_until(b"again\n")[-1] == "again"
    assert pipe.writer.dropped == 10


def test_others_still_find_room_when_lines_about_requests_do_not(pipe: Pipe) -> None:
    while pipe.writer.dropped == 0:
        pipe.writer.write("x" * 1_000 + "\n", ROOM // 2)
    pipe.writer.write("an error\n")
    assert pipe.writer.dropped == 1
    assert "an error" in pipe.read_until(b"lost 1 ")


def test_lines_of_several_threads_stay_whole_and_each_threads_in_order(pipe: Pipe) -> None:
    def write(name: int) -> None:
        for number in range(100):
            pipe.writer.write(f"{name} {number} {'x' * (number * 7 % 6_000)}\n")

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    reading = threading.Thread(target=pipe.read_until, args=(b"end\n",))
    reading.start()
    for thread in threads:
        thread.join()
    pipe.writer.write("end\n")
    reading.join(HANG_TIMEOUT_S)
    made = [line.split() for line in pipe.got.decode().splitlines()[:-1]]
    for name in range(4):
        assert [line[1] for line in made if line[0] == str(name)] == [str(number) for number in range(100)]


def test_reader_that_hangs_delays_only_the_end_and_within_its_bound(
    pipe: Pipe,
) -> None:
    fill(pipe.writer)
    pipe.writer.close(0.01)
    for _ in range(100):
        os.write(pipe.writer._descriptor, b"x" * 65_536)  # where the process itself would write: nowhere


def test_the_end_waits_for_a_reader_that_reads(pipe: Pipe) -> None:
    taken = fill(pipe.writer)
    reading = threading.Thread(target=pipe.read_until, args=(b"lost ",))
    reading.start()
    pipe.writer.close(HANG_TIMEOUT_S)
    reading.join(HANG_TIMEOUT_S)
    assert len(pipe.got.splitlines()) == taken + 1


def test_a_line_that_was_cut_short_does_not_swallow_the_next_one(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    course = iter([5, errno.ENOSPC])

    def write(descriptor: int, data: memoryview) -> int:
        """Write as on a disk that has room for five bytes, then for none, then for all."""
        match next(course, None):
            case 5:
                return real(descriptor, data[:5])
            case None:
                return real(descriptor, data)
            case number:
                raise OSError(number, "no space left")

    monkeypatch.setattr(os, "write", write)
    pipe.writer.write("first line\n")
    while pipe.writer.dropped == 0:
        pass  # the thread's turn
    pipe.writer.write("second line\n")
    assert pipe.read_until(b"second line\n") == ["first", f"lost 1 since {AT}", "second line"]


def test_pipe_that_another_process_made_non_blocking_loses_nothing(pipe: Pipe) -> None:
    os.set_blocking(pipe.writer._descriptor, False)
    for number in range(2_000):
        pipe.writer.write(f"line {number} {'x' * 200}\n")
    assert len(pipe.read_until(b"line 1999 ")) == 2_000
    assert pipe.writer.dropped == 0


@given(st.lists(st.text(st.characters(codec="ascii"), max_size=PIECE + 2), max_size=9))
def test_pieces_have_all_lines_and_only_a_long_line_exceeds_their_size(lines: list[str]) -> None:
    pieces = list(packed(lines))
    assert b"".join(piece for piece, _ in pieces) == "".join(lines).encode()
    assert sum(count for _, count in pieces) == len(lines)
    assert all(len(piece) <= PIECE or count == 1 for piece, count in pieces)
