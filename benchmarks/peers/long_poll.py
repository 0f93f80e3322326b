"""A client of Synapse that waits for new messages and reports their ages when they arrive, by the clock that all processes share.

Reads `{"port": …, "token": …}` from stdin, prints a line when it is ready, and then for each line on stdin the ages in
milliseconds of the messages since the previous one.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any, Final
from urllib.parse import urlencode

from benchmarks.load import response_of_http
from benchmarks.observer import SENT, report_ages

_READ: Final = 262_144
_WAIT_MS: Final = 30_000
_FILTER: Final = json.dumps({"presence": {"types": []}, "room": {"timeline": {"limit": 20}}})


class _Poll:
    """A connection on which one request waits for new events."""

    def __init__(self, port: int, token: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self._token = token
        self._got = b""

    def ask(self, **query: Any) -> None:
        """Ask for the changes of all rooms."""
        path = f"/_matrix/client/v3/sync?{urlencode({'filter': _FILTER, **query})}"
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._token}\r\n\r\n"
        self.socket.sendall(head.encode())

    def take(self) -> bytes | None:
        """Return the answer once it is complete, and ask again; None until then. Raises ConnectionError if it is refused."""
        if not (data := self.socket.recv(_READ)):
            raise ConnectionError("the server has closed the connection")
        self._got += data
        if (answer := response_of_http(self._got)) is None:
            return None
        self._got = b""
        good, _, body = answer
        if not good:
            raise ConnectionError(body.decode(errors="replace")[:2_000])
        self.ask(since=json.loads(body)["next_batch"], timeout=_WAIT_MS)
        return body


def main() -> None:
    """Poll until stdin ends."""
    poll = _Poll(**json.loads(sys.stdin.readline()))
    poll.ask(timeout=0)
    while poll.take() is None:  # all that is there already
        pass
    report_ages(poll.socket, lambda: SENT.findall(poll.take() or b""))


if __name__ == "__main__":
    main()
