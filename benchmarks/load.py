"""The load generator: requests over plain sockets, in a separate process; a job on stdin, its outcome on stdout.

It supports just enough of HTTP/1.1 and NATS for the servers measured here: keep-alive, which Hypercorn ends after 1,000
requests with `Connection: close`, answers with a Content-Length or in chunks, and a publication's acknowledgement. A client
library would be slower than the servers, so the benchmark would measure the client.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

from benchmarks.job import BEGUN, NUMBER, SENT, Job, Outcome, full_size
from benchmarks.nats_wire import INBOX, greet, publication

_READ: Final = 65_536
_PATIENCE_S: Final = 30.0
"""Timeout of a response in seconds, after which the run fails."""
_LEAST: Final = 4
"""The fewest answers of a run without a fixed rate, however long they take, because fewer give no meaningful rate."""
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_CLOSE: Final = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_MESSAGE: Final = re.compile(rb"MSG \S+ \S+ (\d+)\r\n")
_SENT, _NUMBER, _INBOX = SENT.encode(), NUMBER.encode(), INBOX.encode()

_Response = tuple[bool, bool, bytes]
"""Whether the response is a success, whether the connection ends with it, and its body."""


class _Requests:
    """Requests as bytes; those of one kind differ in the two numbers only."""

    def __init__(self, job: Job) -> None:
        self._made: list[bytes] = []
        end = "" if job.wire == "http" else "\r\n"
        for call in job.each():
            size = full_size(call.body)
            head = job.head(call, size) if job.wire == "http" else publication(call.path, INBOX, size)
            self._made.append(f"{head}{call.body}{end}".encode())
        self._timed = any(_SENT in each for each in self._made)
        self._numbered = any(_NUMBER in each for each in self._made)

    def make(self, number: int) -> bytes:
        request = self._made[number % len(self._made)]
        if self._timed:
            request = request.replace(_SENT, b"%019d" % time.monotonic_ns())
        return request.replace(_NUMBER, b"%08d" % number) if self._numbered else request


def response_of_http(data: bytes) -> _Response | None:
    """Return the answer once it is complete, else None."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    size = _LENGTH.search(data, 0, end + 2)
    if size is None and _CHUNKED.search(data, 0, end + 2):
        body = _joined(data, end + 4)
    else:
        body = data[end + 4 :] if len(data) >= end + 4 + (int(size[1]) if size else 0) else None
    if body is None:
        return None
    ends = _CLOSE.search(data, 0, end + 2) is not None
    return (True, ends, body) if data.startswith(b"HTTP/1.1 20") else (False, ends, data)


def _joined(data: bytes, start: int) -> bytes | None:
    """Return a body that comes in chunks, once the last of them is there (RFC 9112, section 7.1); trailers are not known here."""
    parts = list[bytes]()
    while (line := data.find(b"\r\n", start)) >= 0:
        size = int(data[start:line].partition(b";")[0], 16)
        start = line + 2 + size + 2
        if len(data) < start:
            return None
        if size == 0:
            return b"".join(parts)
        parts.append(data[line + 2 : start - 2])
    return None


def response_of_nats(data: bytes) -> _Response | None:
    """Return JetStream's response to a publication once it is complete, else None."""
    found = _MESSAGE.search(data)
    if found is None:
        if b"-ERR" in data:
            return False, True, data
        return None
    start, size = found.end(), int(found[1])
    if len(data) < start + size + 2:
        return None
    body = data[start : start + size]
    return b'"error"' not in body, False, body


class _Connection:
    """A connection with at most one request under way."""

    __slots__ = ("_greets", "_port", "_selector", "due", "got", "inbox", "socket")

    def __init__(self, job: Job, selector: selectors.BaseSelector) -> None:
        self._port, self._greets = job.port, job.wire == "nats"
        self._selector = selector
        self.due = 0.0
        self.open()

    def open(self) -> None:
        self.got = b""
        self.socket = socket.create_connection(("127.0.0.1", self._port), _PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.inbox = greet(self.socket).encode() if self._greets else b""
        self._selector.register(self.socket, selectors.EVENT_READ, self)

    def close(self) -> None:
        self._selector.unregister(self.socket)
        self.socket.close()


class _Run:
    """One job under way."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._holds = job.holds.encode()
        self._requests = _Requests(job)
        self._answer: Callable[[bytes], _Response | None] = (
            response_of_nats if job.wire == "nats" else response_of_http
        )
        self._selector = selectors.DefaultSelector()
        self._idle = deque(_Connection(job, self._selector) for _ in range(job.connections))
        self._sent = self._under_way = 0
        self._outcome = Outcome()

    def run(self) -> Outcome:
        job, outcome = self._job, self._outcome
        if job.until_cut:
            print(BEGUN, flush=True)
        self._began, cpu = time.perf_counter(), time.process_time()
        self._from = self._last = self._began + job.warm_s
        self._until = float("inf") if job.count is not None else self._from + job.for_s
        try:
            self._exchange()
        except ConnectionError:
            if not job.until_cut:
                raise
        elapsed = time.perf_counter() - self._began
        outcome.busy = (time.process_time() - cpu) / elapsed
        measured_s = elapsed if job.count is not None else max(job.for_s, self._last - self._from)
        outcome.rate = len(outcome.latencies) / measured_s
        outcome.latencies.sort()
        return outcome

    def _exchange(self) -> None:
        while True:
            pause_s = self._send(time.perf_counter())
            if pause_s is None and not self._under_way:
                return
            ready = self._selector.select(_PATIENCE_S if pause_s is None else pause_s)
            if not ready and pause_s is None:
                raise TimeoutError("the server does not answer")
            for key, _ in ready:
                self._receive(key.data)

    def _send(self, now: float) -> float | None:
        """Send the due requests; return the seconds until the next is due, or None while all wait for answers."""
        job, idle, make = self._job, self._idle, self._requests.make
        while idle and (job.count is None or self._sent < job.count):
            due = self._began + self._sent / job.rate if job.rate else now
            if due >= self._until and (job.rate or self._answered() >= _LEAST):
                return None
            if due > now:
                return due - now
            connection = idle.popleft()
            connection.due = due
            request = make(self._sent)
            if connection.inbox:
                request = request.replace(_INBOX, connection.inbox, 1)
            connection.socket.sendall(request)
            self._sent += 1
            self._under_way += 1
        return None

    def _answered(self) -> int:
        """Return the number of measured answers, refused ones included, so that a server that refuses all ends the run, too."""
        return len(self._outcome.latencies) + len(self._outcome.failures)

    def _receive(self, connection: _Connection) -> None:
        data = connection.socket.recv(_READ)
        if not data:
            raise ConnectionError("the server has closed a connection")
        if connection.got:
            data = connection.got + data
        answer = self._answer(data)
        if answer is None:
            connection.got = data
            return
        connection.got = b""
        self._note(connection, answer)

    def _note(self, connection: _Connection, answer: _Response) -> None:
        now, job, outcome = time.perf_counter(), self._job, self._outcome
        wanted, ends, body = answer
        self._under_way -= 1
        outcome.answers += 1
        if wanted and job.holds and (found := body.count(self._holds)) != job.times:
            wanted, body = False, b"%d times %s, not %d: %s" % (found, self._holds, job.times, body)
        if not wanted:
            outcome.failures.append(body.decode(errors="replace")[:2_000])
        elif self._measured(connection.due, now):
            outcome.latencies.append((now - connection.due) * 1000)
            self._last = now
        if job.keep:
            outcome.bodies.append(body.decode())
        if ends:
            connection.close()
            connection.open()
        self._idle.append(connection)

    def _measured(self, due: float, now: float) -> bool:
        """Return whether a request counts: at a fixed rate if it was due in the measured time, else if its response came in it."""
        if self._job.rate:
            return due >= self._from
        if now < self._from:
            return False
        return self._job.drained or now < self._until or len(self._outcome.latencies) < _LEAST


def run(job: Job) -> Outcome:
    """Carry out the job. Raises ConnectionError or TimeoutError if the server gives up."""
    return _Run(job).run()


if __name__ == "__main__":
    print(json.dumps(asdict(run(Job.decode(sys.stdin.read())))))
