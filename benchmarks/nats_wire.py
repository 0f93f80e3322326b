"""The part of the NATS client protocol over plain sockets that the JetStream measurements need."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from typing import Any, Final

SUBJECT: Final = "bench"
"""Prefix of the subjects that are in the stream."""
PUSHED: Final = "pushed"
"""Delivery subject of the only consumer."""
INBOX: Final = "@inbox@"
"""Placeholder in a publication, replaced by the subject for its connection's acknowledgements."""
_READ: Final = 65_536
_MESSAGE: Final = re.compile(rb"MSG \S+ \S+ (?:\S+ )?(\d+)\r\n")
_OPTIONS: Final = json.dumps({"verbose": False, "pedantic": False, "headers": False, "lang": "benchmark"})


def greet(stream: socket.socket, listen_to: str = "") -> str:
    """Connect and subscribe to a new inbox, or to `listen_to`; return the inbox."""
    inbox = listen_to or f"inbox.{stream.getsockname()[1]}"
    stream.recv(_READ)  # the server's INFO
    stream.sendall(f"CONNECT {_OPTIONS}\r\nSUB {inbox} 1\r\nPING\r\n".encode())
    _until(stream, b"PONG\r\n")
    return inbox


def publication(subject: str, inbox: str, size: int) -> str:
    """Return the head of a publication of that size; a line's end follows the body."""
    return f"PUB {subject} {inbox} {size}\r\n"


def prepare(port: int, *, pushed: bool) -> None:
    """Create the stream, in a file, and a push consumer for new messages."""
    stream = {"name": SUBJECT, "subjects": [f"{SUBJECT}.>"], "storage": "file", "num_replicas": 1}
    with socket.create_connection(("127.0.0.1", port)) as connection:
        inbox = greet(connection)
        _ask(connection, inbox, f"$JS.API.STREAM.CREATE.{SUBJECT}", stream)
        if pushed:
            config = {"deliver_subject": PUSHED, "deliver_policy": "new", "ack_policy": "none"}
            wanted = {"stream_name": SUBJECT, "config": config}
            _ask(connection, inbox, f"$JS.API.CONSUMER.CREATE.{SUBJECT}", wanted)


def messages(data: bytes) -> tuple[list[bytes], bytes]:
    """Return the complete payloads, and the remaining bytes."""
    found, at = list[bytes](), 0
    while head := _MESSAGE.match(data, at) or _beyond_ping(data, at):
        end = head.end() + int(head[1])
        if len(data) < end + 2:
            break
        found.append(data[head.end() : end])
        at = end + 2
    return found, data[at:]


def _beyond_ping(data: bytes, at: int) -> re.Match[bytes] | None:
    """Return the message after a ping. Pings are not answered: one comes every two minutes, and two may be missed."""
    return _MESSAGE.match(data, at + 6) if data.startswith(b"PING\r\n", at) else None


def _ask(stream: socket.socket, inbox: str, subject: str, wanted: Mapping[str, Any]) -> None:
    """Raises RuntimeError if the server refuses."""
    body = json.dumps(wanted)
    stream.sendall(f"{publication(subject, inbox, len(body))}{body}\r\n".encode())
    data = b""
    while True:
        (*lines,), data = messages(data + stream.recv(_READ))
        if lines:
            break
    if "error" in (reply := json.loads(lines[0])):
        raise RuntimeError(f"NATS refuses: {reply['error']}")


def _until(stream: socket.socket, mark: bytes) -> None:
    data = b""
    while mark not in data:
        if not (more := stream.recv(_READ)):
            raise ConnectionError(f"the server has closed the connection: {data!r}")
        data += more
