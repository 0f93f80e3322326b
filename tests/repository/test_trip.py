"""A message takes a short way through the code, from the first byte of its POST to the frame at a consumer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import CodeType, FunctionType

import orjson
import pytest
import trio

from deskwire.config.parsers import integer
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import is_id
from deskwire.http.stream.socket_writer import SocketWriter
from deskwire.http.stream.websocket import text_frame
from tests.api.stream.test_revocation import Streams, project_channel
from tests.repository.ceilings import above, loose, read
from tests.repository.trip import CEILINGS, figures, lines, recorded
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S

TRIPS = 16
"""Messages that are recorded. The shortest counts: a trip is longer when Trio, which picks the order of tasks at random,
writes the response before the frame, and when a timer falls into it."""


SPREAD = 2  # calls by which the shortest trips differ on a busy machine


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the writer take the disk for a quick one however busy the machine is, so that it commits on Trio's thread."""
    monkeypatch.setattr("deskwire.storage.sqlite.writer.INLINE_COMMIT_MAX_S", 1_000.0)
    return iter([None])


@pytest.fixture
async def trip(quick_disk: None, tmp_path: Path) -> list[CodeType]:
    """Return the calls of the shortest of some equal trips; one before them has loaded and cached what they share."""
    async with running(tmp_path) as service, AsyncExitStack() as stack:
        request = _request(service, (await service.create())["id"])
        stream = await Streams(service, stack).open(service.demo["serverKey"])
        await stream.subscribe(project_channel(service))
        host, _, port = service.url.removeprefix("http://").rpartition(":")
        client = await stack.enter_async_context(await trio.open_tcp_stream(host, int(port)))
        frame_written = SocketWriter.put_now
        assert isinstance(frame_written, FunctionType)
        trips = []
        for number in range(1 + TRIPS):
            with trio.fail_after(HANG_TIMEOUT_S):
                with recorded(frame_written) as called:
                    await client.send_all(request)
                    assert (await stream.peer.message())["event"] == "message.created"
                await _answered(client)
            if number:
                trips.append(called)
    return min(trips, key=len)


def _request(service: Service, conversation: str) -> bytes:
    body = orjson.dumps({"text": "Where is my parcel?"})
    head = [
        f"POST /v3/s2s/conversations/{conversation}/messages HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {service.demo['serverKey']}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


async def _answered(client: trio.SocketStream) -> None:
    """Read the whole answer of a POST, which is a 200."""
    answer = b""
    while b"\r\n\r\n" not in answer or not answer.endswith(b"}\n"):
        answer += await client.receive_some(65_536)
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_figures_match_the_calls() -> None:
    functions = [wall_clock, is_id, text_frame, wall_clock, integer, integer]
    called = [each.__code__ for each in functions if isinstance(each, FunctionType)]
    assert figures(called) == {
        "calls": 6,
        "files": 4,
        "changes of file": 4,
        "crossings of layers": 3,
    }


def test_calls_are_recorded_until_the_last_function_returns() -> None:
    last = text_frame
    assert isinstance(last, FunctionType)
    with recorded(last) as called:
        wall_clock()
        text_frame(b"a")
        wall_clock()
    assert list(lines(called)) == [
        "engine/core/clock.py: wall_clock",
        "http/stream/websocket.py: text_frame",
    ]


@pytest.mark.sqlite
async def test_a_message_takes_no_longer_way_than_before(trip: list[CodeType]) -> None:
    now, limits = figures(trip), read(CEILINGS)
    assert {"engine", "http", "storage"} <= {str(each).partition("/")[0] for each in lines(trip)}
    if excess := above({**now, "calls": now["calls"] - SPREAD}, limits):
        pytest.fail(f"{now} exceed {CEILINGS} by {excess}:\n" + "\n".join(lines(trip)))
    if sys.version_info < (3, 12):  # the version whose counts the ceilings are; later ones call less
        assert loose(now, limits) == {}, f"the way is shorter: lower the ceilings in {CEILINGS} to {now}"
