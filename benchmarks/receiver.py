"""Webhook receivers over plain sockets, healthy and faulty, in a separate process.

Started with the names of behaviours, and before them optionally a certificate file that makes all of them speak
TLS. Prints the ports in that order, and then for each line on stdin what has come to the measured ones since
the last one: how many requests, the ages in milliseconds of those that carry the time they were sent, and the
share of a core that receiving took.

- `prompt` responds with 204 at once, and so does `measured`, the only one whose requests are reported.
- `dead` accepts, and never responds.
- `dripping` sends its response at a byte a second.
- `slow` responds with 204 after 4.9 s, just within a receiver's time.
- `refusing` is a closed port.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import ssl
import sys
import time
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

ANSWER: Final = b"HTTP/1.1 204 No Content\r\n\r\n"
SLOW_S: Final = 4.9
DRIP_S: Final = 1.0
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_SENT: Final = re.compile(rb"sent (\d{19}) ")
_READ: Final = 65_536
_BACKLOG: Final = 1_024


class _Timers:
    """Scheduled calls."""

    def __init__(self) -> None:
        self._numbers = count()
        self._due: list[tuple[float, int, Callable[[], object]]] = []

    def after(self, pause_s: float, work: Callable[[], object]) -> None:
        heappush(self._due, (time.monotonic() + pause_s, next(self._numbers), work))

    def run(self) -> float | None:
        """Make the due calls; return the seconds until the next one."""
        while self._due:
            left_s = self._due[0][0] - time.monotonic()
            if left_s > 0:
                return left_s
            heappop(self._due)[2]()
        return None


class _Peer:
    """A connection, on which requests come one after the other."""

    def __init__(self, owner: Receiving, kind: str, stream: socket.socket) -> None:
        self._owner = owner
        self._kind = kind
        self.stream = stream
        self._got = b""

    def readable(self) -> None:
        try:
            while data := self.stream.recv(_READ):
                self._take(data)
                if not isinstance(self.stream, ssl.SSLSocket) or not self.stream.pending():
                    return
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except OSError:
            pass
        self._owner.drop(self)

    def _take(self, data: bytes) -> None:
        self._got = self._got + data if self._got else data
        head, blank, body = self._got.partition(b"\r\n\r\n")
        size = _LENGTH.search(head)
        if blank and size is not None and len(body) >= int(size[1]):
            self._got = b""
            self._answer(body)

    def _answer(self, body: bytes) -> None:
        match self._kind:
            case "measured":
                self._owner.note(body)
                self.stream.send(ANSWER)
            case "prompt":
                self.stream.send(ANSWER)
            case "slow":
                self._owner.timers.after(SLOW_S, lambda: self._send(ANSWER))
            case "dripping":
                self._drip(0)

    def _drip(self, at: int) -> None:
        if self._send(ANSWER[at : at + 1]):
            self._owner.timers.after(DRIP_S, lambda: self._drip(at + 1))

    def _send(self, data: bytes) -> bool:
        try:
            return self.stream.fileno() >= 0 and self.stream.send(data) > 0
        except OSError:
            return False


class Receiving:
    """All receivers of this process."""

    def __init__(self, kinds: list[str], context: ssl.SSLContext | None) -> None:
        self._context = context
        self._selector = selectors.DefaultSelector()
        self.timers = _Timers()
        self._requests = 0
        self._ages: list[float] = []
        self._since = time.perf_counter(), time.process_time()
        self._listeners = [self._listen(kind) for kind in kinds]
        self._selector.register(sys.stdin, selectors.EVENT_READ, self._asked)

    @property
    def ports(self) -> list[int]:
        """Return the receivers' ports, in order."""
        return [int(listener.getsockname()[1]) for listener in self._listeners]

    def run(self) -> None:
        """Receive until stdin ends."""
        self._going = True
        while self._going:
            for key, _ in self._selector.select(self.timers.run()):
                key.data()

    def note(self, body: bytes) -> None:
        """Count a request of a measured one."""
        now = time.monotonic_ns()
        self._requests += 1
        if found := _SENT.findall(body):  # some bodies have the earlier messages of their conversation, too
            self._ages.append((now - max(map(int, found))) / 1e6)

    def drop(self, peer: _Peer) -> None:
        """Close the connection of a peer."""
        self._selector.unregister(peer.stream)
        peer.stream.close()

    def _listen(self, kind: str) -> socket.socket:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        if kind != "refusing":
            listener.listen(_BACKLOG)
            self._selector.register(listener, selectors.EVENT_READ, lambda: self._accept(kind, listener))
        return listener

    def _accept(self, kind: str, listener: socket.socket) -> None:
        stream, _ = listener.accept()
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is not None:
            stream = self._context.wrap_socket(
                stream, server_side=True
            )  # the peer has connected already, so this does not block
        stream.setblocking(False)
        self._selector.register(stream, selectors.EVENT_READ, _Peer(self, kind, stream).readable)

    def _asked(self) -> None:
        if not sys.stdin.readline():
            self._going = False
            return
        since, self._since = self._since, (time.perf_counter(), time.process_time())
        busy = (self._since[1] - since[1]) / (self._since[0] - since[0])
        report: dict[str, Any] = {"requests": self._requests, "ages": self._ages, "busy": busy}
        self._requests, self._ages = 0, []
        print(json.dumps(report), flush=True)


def main(arguments: list[str]) -> None:
    """Print the receivers' ports, and receive."""
    context = None
    if arguments[0].endswith(".pem"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments.pop(0))
    receiving = Receiving(arguments, context)
    print(json.dumps(receiving.ports), flush=True)
    receiving.run()


if __name__ == "__main__":
    main(sys.argv[1:])
