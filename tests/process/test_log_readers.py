"""A reader of the log that hangs, or is gone, stops nothing: the service answers, ends, and tells what was lost."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import LOOK_S, environment, free_port

pytestmark = pytest.mark.long

MANY = 20_000  # requests; the queue has room for the lines of about 7,000
AT_ONCE = 50
ASK = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
ID = re.compile(rb"(?i)\nx-request-id: (req_\w+)")


class Piped:
    """A server whose stdout and stderr are one pipe, which is read only on request."""

    def __init__(self, directory: Path, *wrapped: str) -> None:
        self.port = free_port()
        self.reader, writer = os.pipe()
        command = [sys.executable, "-m", "deskwire", "serve", "--data", str(directory)]
        self.process = subprocess.Popen(
            [*wrapped, *command, "--port", str(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=writer,
            env={**environment(), "DESKWIRE_ARGON2_MEMORY_KIB": "8192"},
        )
        os.close(writer)

    def connected(self) -> socket.socket:
        """A connection, as soon as it listens."""
        while True:
            assert self.process.poll() is None
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=HANG_TIMEOUT_S)
            except ConnectionRefusedError:
                time.sleep(LOOK_S)  # poll: there is no notification

    def answer(self, count: int) -> list[str]:
        """Make that many requests; return their ids."""
        ids: list[str] = []
        with self.connected() as peer:
            for _ in range(count // AT_ONCE):
                peer.sendall(ASK * AT_ONCE)
                got = b""
                while got.count(b'{"status":"ok"') < AT_ONCE:
                    chunk = peer.recv(1 << 16)
                    assert chunk, got
                    got += chunk
                ids += (each.decode() for each in ID.findall(got))
        return ids

    def lost(self) -> int:
        """How many lines its metrics say are lost."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{self.port}/metrics", timeout=HANG_TIMEOUT_S) as answer:
            found = re.search(r"^deskwire_log_dropped_total (\S+)$", answer.read().decode(), re.MULTILINE)
        assert found
        return int(float(found[1]))

    def read_until(self, words: bytes) -> list[str]:
        """Return the lines from the pipe up to the one with these words."""
        got = b""
        while words not in got or not got.endswith(b"\n"):
            chunk = os.read(self.reader, 1 << 16)
            assert chunk, got[-1_000:]
            got += chunk
        return got.decode().splitlines()

    def end(self) -> int:
        """Stop it; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HANG_TIMEOUT_S)


@contextmanager
def serving(directory: Path, *wrapped: str) -> Iterator[Piped]:
    """A server, killed at the end if it still runs; `wrapped` is a command that starts it."""
    server = Piped(directory, *wrapped)
    yield server
    server.process.kill()
    server.process.wait()
    os.close(server.reader)


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[Piped]:
    with serving(tmp_path / "data") as server:
        yield server


def entries(lines: list[str]) -> list[dict[str, Any]]:
    """Return the log's entries; each line is whole. The lines of stdout are left out."""
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_hanging_reader_stops_no_answer_and_gets_the_count_of_lost_lines(piped: Piped) -> None:
    ids = piped.answer(MANY)
    lost = piped.lost()
    assert lost > MANY // 4
    said = entries(piped.read_until(b"log.lines_lost"))
    requests = [entry for entry in said if entry["event"] == "http.request"]
    (notice,) = (entry for entry in said if entry["event"] == "log.lines_lost")
    assert [entry["request_id"] for entry in requests] == ids[: len(requests)]
    assert notice["lines"] == MANY - len(requests) + 1  # that of the scrape
    assert lost == notice["lines"] - 1
    assert notice["level"] == "warning"
    assert notice["since"] >= requests[-1]["timestamp"]

    (again, *_) = piped.answer(AT_ONCE)
    piped.read_until(again.encode())  # the log goes on
    assert piped.end() == 0
    assert "program.stopping" in os.read(piped.reader, 1 << 20).decode()


def test_a_reader_that_hangs_does_not_hold_the_stop(piped: Piped) -> None:
    piped.answer(MANY)
    assert piped.end() == 0


def test_lost_reader_stops_no_work(piped: Piped) -> None:
    kept = os.open(os.devnull, os.O_RDONLY)
    os.dup2(kept, piped.reader)
    os.close(kept)
    piped.answer(500)
    while piped.lost() < 500:
        pass  # the writing thread's turn
    assert piped.end() == 0


def test_a_pipe_that_is_full_before_the_start_holds_no_start(tmp_path: Path) -> None:
    """As with a service manager that keeps one pipe to its logger over restarts."""
    fill = 'head -c 65536 /dev/zero && exec "$@"'
    with serving(tmp_path / "data", "sh", "-c", fill, "sh") as server:
        server.answer(AT_ONCE)
        assert server.end() == 0


def test_start_with_closed_streams_serves_and_keeps_its_database_intact(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh") as server:
        server.answer(AT_ONCE)
        assert server.end() == 0
    assert (tmp_path / "data/deskwire.sqlite3").read_bytes().startswith(b"SQLite format 3")
