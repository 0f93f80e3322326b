"""The two paths of a request to the service, the fast lane and Hypercorn, with its target unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import trio

from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.h11_oracle import answers

Way = Literal["lane", "hypercorn"]
WAYS: Final[tuple[Way, ...]] = ("lane", "hypercorn")
"""The lane passes requests that are not plain to Hypercorn."""


@dataclass(frozen=True)
class Said:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.content)

    @property
    def code(self) -> str | None:
        """The code of a problem; None for another answer."""
        return self.json.get("code") if self.status >= 400 else None


async def ask(
    service: Service,
    way: Way,
    method: str,
    target: str,
    body: Any = None,
    *,
    whole: bool = False,
    **more: str,
) -> Said:
    """Send one request with this unchanged target below `/v3`, with the project's server key.

    Args:
        whole: whether the target is complete and gets no `/v3` prefix.
        more: headers, in place of the usual ones.
    """
    target = target if whole else f"/v3{target}"
    content = b"" if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {service.demo['serverKey']}"} | more
    if body is not None:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    with trio.fail_after(HANG_TIMEOUT_S):
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            if way == "hypercorn":
                headers["TE"] = "trailers"
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{lines}\r\n"
            await stream.send_all(head.encode("latin-1") + content)
            data = b"".join([bytes(part) async for part in stream])
    (answer,) = answers(data, [method], ended=True)
    return Said(answer.status, answer.headers, answer.body)
