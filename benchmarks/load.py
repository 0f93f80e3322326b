"""The load generator: HTTP/1.1 over plain sockets, in a process of its own; a job on stdin, figures on stdout.

It knows just enough HTTP for the servers measured here: keep-alive, which Hypercorn ends after 1,000 requests
with `Connection: close`, and answers with a Content-Length. A client library would be slower than the servers, and then it is the client that is measured.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any, Final

_READ: Final = 65_536
_PATIENCE_S: Final = 30.0
"""How long any answer may take before the run is given up."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to send.

    Args:
        paths: taken in turn.
        key, project: the credential, and the project where that does not say it.
        body: `@number@` in it becomes a running number, `@sent@` the time of sending in nanoseconds.
        connections: each has one request under way at most.
        warm_s, for_s: not measured and measured time; with `count` instead, that many requests are all.
        rate: requests a second; None is as many as are answered. Latency counts from when one was due.
        keep: return the answers' bodies.
    """

    port: int
    paths: list[str]
    method: str = "POST"
    key: str = ""
    project: str = ""
    body: str = ""
    connections: int = 1
    warm_s: float = 0.0
    for_s: float = 0.0
    count: int | None = None
    rate: float | None = None
    keep: bool = False

    def encode(self) -> str:
        """The job as text."""
        return json.dumps(asdict(self))


@dataclass(slots=True)
class Outcome:
    """What came of a job: latencies in milliseconds, sorted; `busy` is the generator's own share of a core."""

    rate: float = 0.0
    latencies: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    busy: float = 0.0


_SENT: Final = b"@sent@"
_NUMBER: Final = b"@number@"


class _Requests:
    """Requests as bytes; those of one path differ in the two numbers only."""

    def __init__(self, job: Job) -> None:
        self._body = job.body.encode()
        size = len(self._body.replace(_SENT, b"0" * 19).replace(_NUMBER, b"0" * 8))
        kind = "Content-Type: application/json\r\n" if job.body else ""
        kind += f"project: {job.project}\r\n" if job.project else ""
        self._heads = [
            f"{job.method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {job.key}\r\n"
            f"{kind}Content-Length: {size}\r\n\r\n".encode()
            for path in job.paths
        ]

    def make(self, number: int) -> bytes:
        body = self._body.replace(_SENT, b"%019d" % time.monotonic_ns()).replace(_NUMBER, b"%08d" % number)
        return self._heads[number % len(self._heads)] + body


class _Connection:
    """A connection with at most one request under way."""

    def __init__(self, port: int, selector: selectors.BaseSelector) -> None:
        self._port = port
        self._selector = selector
        self.due = 0.0
        self._got = b""
        self._open()

    def _open(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self._port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(self.socket, selectors.EVENT_READ, self)

    def reopen(self) -> None:
        """Connect anew, as the server has asked for."""
        self._selector.unregister(self.socket)
        self.socket.close()
        self._open()

    def send(self, request: bytes, due: float) -> None:
        self.due = due
        self.socket.sendall(request)

    def receive(self) -> tuple[bytes, bytes] | None:
        """Head and body of the answer once it is whole."""
        data = self.socket.recv(_READ)
        if not data:
            raise ConnectionError("the server has closed a connection")
        self._got += data
        head, blank, rest = self._got.partition(b"\r\n\r\n")
        if not blank:
            return None
        size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(rest) < size:
            return None
        self._got = b""
        return head, rest


class _Run:
    """One job under way."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._requests = _Requests(job)
        self._selector = selectors.DefaultSelector()
        self._idle: deque[_Connection] = deque()
        for _ in range(job.connections):
            self._idle.append(_Connection(job.port, self._selector))
        self._sent = self._under_way = 0
        self._outcome = Outcome()

    def run(self) -> Outcome:
        job, outcome = self._job, self._outcome
        began, cpu = time.perf_counter(), time.process_time()
        self._from = began + job.warm_s
        self._until = float("inf") if job.count is not None else self._from + job.for_s
        while self._send_what_is_due(began) or self._under_way:
            self._receive(began)
        elapsed = time.perf_counter() - began
        outcome.busy = (time.process_time() - cpu) / elapsed
        outcome.rate = len(outcome.latencies) / (elapsed if job.count is not None else job.for_s)
        outcome.latencies.sort()
        return outcome

    def _send_what_is_due(self, began: float) -> bool:
        """Send on all idle connections what is due; whether there will be more to send."""
        while (due := self._next_due(began)) is not None:
            if not self._idle or due > (now := time.perf_counter()):
                return True
            request = self._requests.make(self._sent)
            self._idle.popleft().send(request, due if self._job.rate else now)
            self._sent += 1
            self._under_way += 1
        return False

    def _next_due(self, began: float) -> float | None:
        if self._job.count is not None and self._sent >= self._job.count:
            return None
        due = began + self._sent / self._job.rate if self._job.rate else time.perf_counter()
        return due if due < self._until else None

    def _receive(self, began: float) -> None:
        due = self._next_due(began)
        pause_s = max(0.0, due - time.perf_counter()) if due is not None and self._idle else _PATIENCE_S
        ready = self._selector.select(pause_s)
        if not ready and pause_s == _PATIENCE_S:
            raise TimeoutError("the server does not answer")
        for key, _ in ready:
            connection: _Connection = key.data
            if (answer := connection.receive()) is not None:
                self._note(connection, *answer)

    def _note(self, connection: _Connection, head: bytes, body: bytes) -> None:
        now = time.perf_counter()
        self._idle.append(connection)
        self._under_way -= 1
        if head.split(None, 2)[1] != b"200":
            self._outcome.failures.append(f"{head.decode()}\n{body.decode()}"[:2_000])
        elif self._measured(connection.due, now):
            self._outcome.latencies.append((now - connection.due) * 1000)
        if b"connection: close" in head.lower():
            connection.reopen()
        if self._job.keep:
            self._outcome.bodies.append(body.decode())

    def _measured(self, due: float, now: float) -> bool:
        """At a fixed rate whatever was due in the measured time counts; else what was answered in it."""
        return due >= self._from if self._job.rate else self._from <= now < self._until


def run(job: Job) -> Outcome:
    """Carry out the job. Raises ConnectionError or TimeoutError if the server gives up."""
    return _Run(job).run()


if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.stdin.read())
    print(json.dumps(asdict(run(Job(**given)))))
