"""Pages that follow the agents' stream, in a separate process, and only count events.

A line on stdin opens some; a line with a number has it answer once each has had that many stored events.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from dataclasses import dataclass
from typing import Final

_READ: Final = 1 << 18
_EVENT: Final = b"\nid: evt_"
_HELLO: Final = b"event: hello"


@dataclass(slots=True)
class Page:
    """A page: the tail of the last bytes, and the number of stored events received."""

    rest: bytes = b""
    events: int = 0

    def feed(self, data: bytes) -> None:
        """Count the events in these bytes; a mark that is split is found with the next bytes."""
        whole = self.rest + data
        self.events += whole.count(_EVENT)
        self.rest = whole[-(len(_EVENT) - 1) :] if not whole.endswith(_EVENT) else b""


def main() -> None:
    """Open pages, and count."""
    pages = selectors.DefaultSelector()
    asked = json.loads(sys.stdin.readline())
    for token in asked["tokens"]:
        _open(pages, asked, token)
    print("open", flush=True)
    for line in sys.stdin:
        began, wanted = time.perf_counter(), int(line)
        _count(pages, wanted)
        print(time.perf_counter() - began, flush=True)


def _open(pages: selectors.BaseSelector, asked: dict[str, str], token: str) -> None:
    wire = socket.create_connection(("127.0.0.1", int(asked["port"])))
    path = f"/v3/stream?project={asked['project']}" + (f"&after={asked['after']}" if asked["after"] else "")
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    wire.sendall(head.encode())
    page, seen = Page(), b""
    while _HELLO not in seen:
        seen += wire.recv(_READ)
    page.feed(seen[seen.index(_HELLO) :])
    wire.setblocking(False)
    pages.register(wire, selectors.EVENT_READ, page)


def _count(pages: selectors.BaseSelector, wanted: int) -> None:
    behind = sum(key.data.events < wanted for key in pages.get_map().values())
    while behind:
        for key, _ in pages.select():
            page, before = key.data, key.data.events
            assert isinstance(key.fileobj, socket.socket)
            page.feed(key.fileobj.recv(_READ))
            behind -= before < wanted <= page.events


if __name__ == "__main__":
    main()
