"""Many stream consumers in one process, on plain sockets that only count frames; a websocket library would be
slower than the server, and then it is the library that is measured.

Takes a job on stdin, says `in place` once every consumer has its channel, and then for each number on stdin how long
it took from the first frame to that one. Pings get a pong, as from every client.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import socket
import sys
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Final

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.stream.token import Grant, issue

_READ: Final = 256 * 1024
_AT_ONCE: Final = 64
_PATIENCE_S: Final = 30.0
_TEXT, _PING, _PONG = 0x1, 0x9, 0xA
_TOKEN_S: Final = 300.0
_HEAD: Final = 4
"""The longest head of a frame of up to 64 KiB; no frame with a payload is shorter than this."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Consumers and their channels.

    Args:
        path: path of the upgrade.
        channels: channels to hold; for a server without channels only their number counts.
        each: number of channels that a consumer holds.
        project, stream_key, key_id, token_key: to subscribe with; a server without channels has no token key.
        resume: position at which the consumers begin.
    """

    port: int
    path: str
    channels: list[str]
    project: str = ""
    stream_key: str = ""
    key_id: str = ""
    token_key: str = ""
    resume: str = "live"
    each: int = 1

    def encode(self) -> str:
        """Return the job as one line."""
        return json.dumps(asdict(self))


class Consumer:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), _PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""
        self._messages: deque[bytes] = deque()

    def upgrade(self, path: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )

    def upgraded(self) -> None:
        """Wait for the response to the upgrade."""
        while b"\r\n\r\n" not in self._rest:
            self._rest += self._receive()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise RuntimeError(f"no websocket: {head!r}")

    def send(self, payload: bytes, opcode: int = _TEXT) -> None:
        """Send a frame, masked with zeros."""
        size = len(payload)
        length = bytes((0x80 | size,)) if size < 126 else b"\xfe" + size.to_bytes(2)
        self.socket.sendall(bytes((0x80 | opcode,)) + length + bytes(4) + payload)

    def message(self) -> bytes:
        """Return the next text message of a sequential exchange."""
        self._take()
        while not self._messages:
            self.hear()
        return self._messages.popleft()

    def take(self) -> list[bytes]:
        """Yield the text messages that were not taken yet."""
        taken = list(self._messages)
        self._messages.clear()
        return taken

    def hear(self) -> None:
        """Receive, and respond to pings."""
        self._rest += self._receive()
        self._take()

    def _take(self) -> None:
        data, at = self._rest, 0
        while len(data) - at >= _HEAD:
            size, start = data[at + 1], at + 2
            if size == 126:
                size, start = int.from_bytes(data[start : start + 2]), start + 2
            if len(data) < start + size:
                break
            opcode, payload = data[at] & 0xF, data[start : start + size]
            at = start + size
            if opcode == _TEXT:
                self._messages.append(payload)
            elif opcode == _PING:
                self.send(payload, _PONG)
        self._rest = data[at:]

    def _receive(self) -> bytes:
        data = self.socket.recv(_READ)
        if not data:
            raise ConnectionError("the server has closed a connection")
        return data


def gather(crowd: Crowd) -> list[Consumer]:
    """Connect all consumers, several at a time, so that they share commits."""
    consumers: list[Consumer] = []
    held = [crowd.channels[start : start + crowd.each] for start in range(0, len(crowd.channels), crowd.each)]
    for start in range(0, len(held), _AT_ONCE):
        shares = held[start : start + _AT_ONCE]
        joining = [Consumer(crowd.port) for _ in shares]
        for consumer in joining:
            consumer.upgrade(crowd.path)
        for consumer in joining:
            consumer.upgraded()
        if crowd.token_key:
            _subscribe(crowd, joining, shares)
        consumers += joining
    return consumers


def _subscribe(crowd: Crowd, consumers: list[Consumer], shares: list[list[str]]) -> None:
    for consumer, channels in zip(consumers, shares, strict=True):
        socket_id = json.loads(json.loads(consumer.message())["data"])["socket_id"]
        for channel in channels:
            consumer.send(_subscription(crowd, channel, socket_id))
    for consumer, channels in zip(consumers, shares, strict=True):
        for _ in channels:
            confirmed = consumer.message()
            if b"subscription_succeeded" not in confirmed:
                raise RuntimeError(f"a subscription was refused: {confirmed!r}")


def _subscription(crowd: Crowd, channel: str, socket_id: str) -> bytes:
    grant = Grant(crowd.project, crowd.key_id, socket_id, channel, "benchmark", False, crowd.resume)
    token = issue(bytes.fromhex(crowd.token_key), grant, now_ms=wall_clock(), token_s=_TOKEN_S)
    data = {"channel": channel, "auth": f"{crowd.stream_key}:{token}"}
    return json.dumps({"event": "pusher:subscribe", "data": data}).encode()


def _count(selector: selectors.BaseSelector, wanted: int) -> tuple[float, float]:
    """Return the seconds from the first frame to the last one wanted, and the share of a core that counting took."""
    found, began, cpu = 0, 0.0, 0.0
    while found < wanted:
        ready = selector.select(_PATIENCE_S)
        if not ready:
            raise TimeoutError(f"{found} of {wanted} frames have come")
        if not found:
            began, cpu = time.perf_counter(), time.process_time()
        for key, _ in ready:
            if key.data is not None:
                key.data.hear()
                found += len(key.data.take())
    elapsed = time.perf_counter() - began
    return elapsed, (time.process_time() - cpu) / elapsed


def _serve(selector: selectors.BaseSelector) -> None:
    """Count as often as asked, and respond to pings in between."""
    while True:
        for key, _ in selector.select():
            if key.data is not None:
                key.data.hear()
            elif line := sys.stdin.readline():
                print(json.dumps(_count(selector, int(line))), flush=True)
            else:
                return


def main() -> None:
    """Gather, then count."""
    with selectors.DefaultSelector() as selector:
        for consumer in gather(Crowd(**json.loads(sys.stdin.readline()))):
            selector.register(consumer.socket, selectors.EVENT_READ, consumer)
        selector.register(sys.stdin, selectors.EVENT_READ)
        print("in place", flush=True)
        _serve(selector)


if __name__ == "__main__":
    main()
