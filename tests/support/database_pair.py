"""A primary and its standby, each at an address that can go silent as that of a machine without power does."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, Literal

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.postgres import USER, PostgresServer

Death = Literal["killed", "gone", "hung"]
DATABASE: Final = "pair"
_READ: Final = 65_536
_LOOK_S: Final = 0.02


class Gate:
    """A listener that passes bytes to a port until it vanishes; then it answers nothing, not even a SYN."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        self.port: Final = int(self._listener.getsockname()[1])
        self._vanished = threading.Event()
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._serve)

    def vanish(self) -> None:
        """Stop answering. Connections stay open, and bytes sent on them are lost."""
        self._vanished.set()
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            pass  # ends the wait for the next connection
        # Connections that are not accepted fill the queue; after that the kernel drops each SYN.
        for _ in range(8):
            waiting = socket.socket()
            waiting.setblocking(False)
            with suppress(BlockingIOError):
                waiting.connect(("127.0.0.1", self.port))
            self._ends.append(waiting)

    def close(self) -> None:
        """Close all connections and end the threads."""
        self._vanished.set()
        _close(self._listener)
        self._threads[0].join(5)  # it may be opening one more connection
        for end in self._ends:
            _close(end)
        for thread in self._threads:
            thread.join(5)

    def _start(self, work: object, *given: object) -> None:
        thread = threading.Thread(target=work, args=given, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        while not self._vanished.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._ends.append(client)
            try:
                server = socket.create_connection(("127.0.0.1", self._upstream))
            except OSError:
                client.close()
                continue
            self._ends.append(server)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._start(self._pass, client, server)
            self._start(self._pass, server, client)

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_READ):
                if self._vanished.is_set():
                    return
                sink.sendall(data)
        if not self._vanished.is_set():
            with suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


class Pair:
    """The two servers, `old` named first in the URL. Created by `database_pair`."""

    def __init__(self, old: PostgresServer, new: PostgresServer) -> None:
        self.old, self.new = old, new
        self.gates: Final = (Gate(old.port), Gate(new.port))
        self._stopped: list[int] = []

    @property
    def url(self) -> str:
        """The URL with both servers."""
        hosts = ",".join(f"127.0.0.1:{gate.port}" for gate in self.gates)
        return f"postgresql://{USER}@{hosts}/{DATABASE}"

    def let_die(self, death: Death) -> None:
        """Make the old primary fail: killed, with its machine, or hanging while its kernel lives."""
        if death == "killed":
            self.old.kill()
        elif death == "gone":
            self.gates[0].vanish()
        else:
            self._stopped = hang(self.old)

    def wake(self) -> None:
        """Resume a hanging server."""
        wake(self._stopped)
        self._stopped = []

    def catch_up(self) -> None:
        """Return once the standby has all commits."""
        position = self.old.run("SELECT pg_current_wal_lsn()")[0][0]
        end = time.monotonic() + HANG_TIMEOUT_S
        while not self.new.run(f"SELECT pg_last_wal_replay_lsn() >= '{position}'")[0][0]:
            assert time.monotonic() < end
            time.sleep(_LOOK_S)  # poll: there is no notification

    def promote(self) -> None:
        """Promote the standby to primary."""
        self.new.promote()

    def close(self) -> None:
        """End both servers."""
        self.wake()
        for gate in self.gates:
            gate.close()


def hang(server: PostgresServer) -> list[int]:
    """Stop all processes of a server, whose kernel lives; return them for `wake`."""
    server.hang()
    return [int(each.name) for each in server._processes()]


def wake(pids: list[int]) -> None:
    """Resume stopped processes."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def database_pair() -> Iterator[Pair]:
    """Yield a primary with a standby that follows it, with an empty database."""
    old, new = PostgresServer(), PostgresServer()
    with ExitStack() as stack:
        stack.callback(new.close)
        stack.callback(old.close)
        old.create()
        old.start()
        old.run(f"CREATE DATABASE {DATABASE}")
        new.create_standby(old)
        new.start()
        pair = Pair(old, new)
        stack.callback(pair.close)
        pair.catch_up()
        yield pair
