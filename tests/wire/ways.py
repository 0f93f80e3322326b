"""The ways on which a request reaches the service: the lane, Hypercorn's HTTP/1.1, HTTP/2, each with its target as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import h2.config
import h2.connection
import h2.events
import trio

from .conftest import Service
from .judging import answers

Way = Literal["lane", "hypercorn", "http2"]
WAYS: Final[tuple[Way, ...]] = ("lane", "hypercorn", "http2")
"""What is not plain goes on from the lane to Hypercorn by itself."""


@dataclass(frozen=True)
class Said:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.content)

    @property
    def code(self) -> str | None:
        """The problem's code; None if it is none."""
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
    """Send one request with this target below `/v3`, not changed in any way; with the project's server key.

    Args:
        whole: the target is all of it.
        more: headers, in place of the usual ones.
    """
    target = target if whole else f"/v3{target}"
    content = b"" if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {service.demo['serverKey']}"} | more
    if body is not None:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
    host, _, port = service.url.removeprefix("http://").rpartition(":")
    with trio.fail_after(10):
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            if way == "http2":
                return await _by_http2(stream, method, target, headers, content)
            if way == "hypercorn":
                headers["TE"] = "trailers"
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{lines}\r\n"
            await stream.send_all(head.encode("latin-1") + content)
            data = b"".join([bytes(part) async for part in stream])
    (answer,) = answers(data, [method], ended=True)
    return Said(answer.status, answer.headers, answer.body)


async def _by_http2(
    stream: trio.SocketStream, method: str, target: str, headers: Mapping[str, str], content: bytes
) -> Said:
    config = h2.config.H2Configuration(header_encoding="latin-1", validate_outbound_headers=False)
    wire = h2.connection.H2Connection(config)
    wire.initiate_connection()
    pseudo = [(":method", method), (":scheme", "http"), (":authority", "x"), (":path", target)]
    wire.send_headers(1, [*pseudo, *((name.lower(), value) for name, value in headers.items())], not content)
    if content:
        wire.send_data(1, content, end_stream=True)
    status, told, received = 0, dict[str, str](), b""
    while True:
        await stream.send_all(wire.data_to_send())
        data = await stream.receive_some()
        assert data, "the connection ended without an answer"
        for event in wire.receive_data(bytes(data)):
            if isinstance(event, h2.events.ResponseReceived):
                told = {str(name): str(value) for name, value in event.headers}
                status = int(told[":status"])
            elif isinstance(event, h2.events.DataReceived):
                received += event.data
                wire.acknowledge_received_data(event.flow_controlled_length, 1)
            elif isinstance(event, h2.events.StreamEnded):
                return Said(status, told, received)
            assert not isinstance(event, h2.events.StreamReset | h2.events.ConnectionTerminated), event
