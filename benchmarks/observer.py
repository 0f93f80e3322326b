"""A stream consumer that reports the ages of messages when they arrive: from Deskwire's stream or a NATS subject.

Each message carries the time it was sent, by the clock that all processes of a machine share. Reads a `Watch` from
stdin, prints a line when it is ready, and then for each line on stdin the ages in milliseconds of the messages since
the previous one. It uses plain sockets, because a client library would be slower than the servers.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from benchmarks.crowd import Consumer, Crowd, gather
from benchmarks.nats_wire import PUSHED, greet, messages

_SENT: Final = re.compile(rb"sent (\d{19}) ")
_READ: Final = 262_144


@dataclass(frozen=True, slots=True)
class Watch:
    """The source to consume: a channel of Deskwire's, or without one the messages that NATS pushes."""

    port: int
    channel: str = ""
    project: str = ""
    stream_key: str = ""
    key_id: str = ""
    token_key: str = ""

    def encode(self) -> str:
        """Return the value as one line."""
        return json.dumps(asdict(self))


def _deskwire(watch: Watch) -> tuple[socket.socket, Callable[[], list[bytes]]]:
    crowd = Crowd(
        watch.port,
        f"/app/{watch.stream_key}",
        [watch.channel],
        watch.project,
        watch.stream_key,
        watch.key_id,
        watch.token_key,
    )
    consumer: Consumer = gather(crowd)[0]

    def hear() -> list[bytes]:
        consumer.hear()
        return consumer.take()

    return consumer.socket, hear


def _nats(watch: Watch) -> tuple[socket.socket, Callable[[], list[bytes]]]:
    stream = socket.create_connection(("127.0.0.1", watch.port))
    greet(stream, PUSHED)
    rest = b""

    def hear() -> list[bytes]:
        nonlocal rest
        if not (data := stream.recv(_READ)):
            raise ConnectionError("the server has closed the connection")
        found, rest = messages(rest + data)
        return found

    return stream, hear


def main() -> None:
    """Observe until stdin ends."""
    watch = Watch(**json.loads(sys.stdin.readline()))
    stream, hear = _deskwire(watch) if watch.channel else _nats(watch)
    ages: list[float] = []
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ, True)
        selector.register(sys.stdin, selectors.EVENT_READ, False)
        print("in place", flush=True)
        while True:
            for key, _ in selector.select():
                if key.data:
                    came = hear()
                    now = time.monotonic_ns()
                    ages += [(now - int(sent[1])) / 1e6 for each in came if (sent := _SENT.search(each))]
                elif sys.stdin.readline():
                    print(json.dumps(ages), flush=True)
                    ages = []
                else:
                    return


if __name__ == "__main__":
    main()
