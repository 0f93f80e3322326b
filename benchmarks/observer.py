"""A stream consumer that reports the ages of messages when they arrive: from one of Deskwire's streams or a NATS subject.

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
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Final

from benchmarks.crowd import Consumer, Crowd, gather
from benchmarks.nats_wire import PUSHED, greet, messages

SENT: Final = re.compile(rb"sent (\d{19}) ")
"""The time (ns) at which a message was sent, in its text."""

_READ: Final = 262_144
_HELLO: Final = b"event: hello"
_EVENT_END: Final = b"\n\n"


@dataclass(frozen=True, slots=True)
class Watch:
    """The source to consume: a channel of Deskwire's, the stream of an agent, or without either the messages that NATS pushes.

    Args:
        agent_token: the agent's access token.
    """

    port: int
    channel: str = ""
    project: str = ""
    stream_key: str = ""
    key_id: str = ""
    token_key: str = ""
    agent_token: str = ""

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


def _agents(watch: Watch) -> tuple[socket.socket, Callable[[], list[bytes]]]:
    stream = socket.create_connection(("127.0.0.1", watch.port))
    head = f"GET /v3/stream?project={watch.project} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {watch.agent_token}\r\n\r\n"
    stream.sendall(head.encode())
    rest = b""
    while _HELLO not in rest:
        if not (data := stream.recv(_READ)):
            raise ConnectionError(rest.decode(errors="replace"))
        rest += data
    rest = b""

    def hear() -> list[bytes]:
        nonlocal rest
        if not (data := stream.recv(_READ)):
            raise ConnectionError("the server has closed the connection")
        *found, rest = (rest + data).split(_EVENT_END)
        return found

    return stream, hear


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
    stream, hear = (_deskwire if watch.channel else _agents if watch.agent_token else _nats)(watch)
    report_ages(stream, lambda: (sent[1] for each in hear() if (sent := SENT.search(each))))


def report_ages(stream: socket.socket, heard: Callable[[], Iterable[bytes]]) -> None:
    """Print the ages (ms) of the messages of a stream, as JSON for each line of the standard input, until that ends.

    Args:
        heard: reads the messages that have come; returns the times (ns) when they were sent.
    """
    ages: list[float] = []
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ, True)
        selector.register(sys.stdin, selectors.EVENT_READ, False)
        print("in place", flush=True)
        while True:
            for key, _ in selector.select():
                if key.data:
                    times = [*heard()]
                    now = time.monotonic_ns()
                    ages += [(now - int(sent)) / 1e6 for sent in times]
                elif sys.stdin.readline():
                    print(json.dumps(ages), flush=True)
                    ages = []
                else:
                    return


if __name__ == "__main__":
    main()
