"""A transaction pooler, like PgBouncer's transaction mode: all clients share one session."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PROTOCOL = 196_608
READY = b"Z"
TERMINATE = b"X"


def _read(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = source.recv(count - len(data))
        if not piece:
            raise ConnectionError
        data += piece
    return data


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    kind = _read(source, 1)
    length = _read(source, 4)
    return kind, kind + length + _read(source, struct.unpack("!i", length)[0] - 4)


class _Pooler:
    def __init__(self, port: int, user: str, database: str) -> None:
        self._server = socket.create_connection(("127.0.0.1", port))
        words = b"".join(
            part.encode() + b"\0" for pair in (("user", user), ("database", database)) for part in pair
        )
        head = struct.pack("!i", PROTOCOL) + words + b"\0"
        self._server.sendall(struct.pack("!i", len(head) + 4) + head)
        self._greeting = b""
        kind = b""
        while kind != READY:
            kind, whole = _message(self._server)
            self._greeting += whole
        self._turn = threading.Lock()

    def close(self) -> None:
        """End the session."""
        self._server.close()

    def serve(self, client: socket.socket) -> None:
        """Pass a client's messages to the shared session until the client disconnects."""
        with client, suppress(ConnectionError, OSError):
            while True:
                length, code = struct.unpack("!ii", _read(client, 8))
                _read(client, length - 8)
                if code == PROTOCOL:
                    break
                client.sendall(b"N")  # no encryption
            client.sendall(self._greeting)
            while True:
                kind, whole = _message(client)
                if kind == TERMINATE:
                    return
                with self._turn:
                    self._transaction(client, kind, whole)

    def _transaction(self, client: socket.socket, kind: bytes, whole: bytes) -> None:
        while True:
            self._server.sendall(whole)
            if kind in b"QS":
                answer, state = b"", b""
                while answer != READY:
                    answer, said = _message(self._server)
                    client.sendall(said)
                    state = said[-1:]
                if state == b"I":
                    return
            kind, whole = _message(client)


@contextmanager
def pooled(port: int, user: str, database: str, *, shared: bool = True) -> Iterator[int]:
    """Run a pooler for the server at `port`, and yield its port.

    Unless `shared`, each client has a session of its own.
    """
    poolers = [_Pooler(port, user, database)]
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):  # the client has disconnected
            while True:
                client, _ = listening.accept()
                if not shared:
                    poolers.append(_Pooler(port, user, database))
                threading.Thread(target=poolers[-1].serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for pooler in poolers:
            pooler.close()
