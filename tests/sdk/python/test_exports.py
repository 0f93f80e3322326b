"""Exports are streamed line by line, continued by cursor, and never end unnoticed."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from deskwire_sdk import AsyncDeskwire, ConnectionFailed, Deskwire, ExportCut
from tests.support.api.service import Service
from tests.support.sockets.receivers import Behaviour, Receiver, Request, answering

from .conftest import in_thread, serving, under_asyncio

END = {"nextCursor": "c1", "exportedAt": "2026-11-01T12:00:00.000Z", "deletions": True}


async def test_an_export_is_continued_by_its_cursor(client: AsyncDeskwire) -> None:
    made = await client.conversations.create(contact={"userId": "u1"}, message={"text": "one"})
    async with client.exports.messages() as export:
        assert export.next_cursor is None
        assert [each["text"] async for each in export] == ["one"]
        cursor = export.next_cursor
    await client.messages.create(made["id"], text="two")
    export = client.exports.messages(cursor=cursor)
    assert [each["text"] async for each in export] == ["two"]
    assert export.end is not None
    assert export.end["deletions"] is True
    assert [each async for each in export] == []


async def test_an_export_works_under_asyncio_and_in_threads(service: Service, sync_client: Deskwire) -> None:
    await service.create(message={"text": "one"})

    async def main() -> list[str]:
        async with AsyncDeskwire(service.demo["serverKey"], base_url=service.url) as client:
            return [each["text"] async for each in client.exports.messages()]

    assert await under_asyncio(main) == ["one"]
    assert await in_thread(lambda: [each["text"] for each in sync_client.exports.messages()]) == ["one"]


async def test_an_audit_trail_without_a_last_line_is_read_to_its_end(service: Service) -> None:
    organisation = (await service.dashboard.get(f"/projects/{service.demo['projectId']}")).json()
    async with AsyncDeskwire(service.demo["token"], base_url=service.url) as client:
        records = [each async for each in client.audit.export(organisation["organisationId"])]
    assert records[-1]["action"] == "audit.exported"


def client_of(server: Receiver) -> AsyncDeskwire:
    """Return a client of a server."""
    return AsyncDeskwire("sk_1", base_url=f"http://127.0.0.1:{server.port}")


def exporting(*lines: dict[str, Any]) -> Behaviour:
    """Return a behaviour that responds with these lines, some of which hold Unicode's other line ends."""
    body = b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in lines)
    return answering("200 OK", body, b"Content-Type: application/x-ndjson\r\n")


async def test_only_a_line_feed_ends_a_line() -> None:
    text = "a\u2028b\u2029c\x85d\u000be"
    async with serving(exporting({"text": text}, END)) as server, client_of(server) as client:
        assert [each["text"] async for each in client.exports.messages()] == [text]


async def cut(stream: trio.abc.Stream, _: Request) -> None:
    """Break the connection within an export."""
    await stream.send_all(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{"id":1}\n\r\n')
    await stream.aclose()


@pytest.mark.parametrize(("behaviour", "error"), [(cut, ConnectionFailed), (exporting({"id": 1}), ExportCut)])
async def test_an_export_that_was_cut_raises_after_its_lines(
    behaviour: Behaviour, error: type[Exception]
) -> None:
    async with serving(behaviour) as server, client_of(server) as client:
        export = client.exports.messages()
        assert await anext(export) == {"id": 1}
        with pytest.raises(error):
            await anext(export)
    assert export.next_cursor is None


async def test_an_export_that_is_left_early_closes_its_connection() -> None:
    closed = trio.Event()

    async def endless(stream: trio.abc.Stream, _: Request) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                await stream.send_all(b'9\r\n{"id":1}\n\r\n')
        except trio.BrokenResourceError:
            closed.set()

    async with serving(endless) as server, client_of(server) as client:
        async with client.exports.messages() as export:
            assert await anext(export) == {"id": 1}
        with trio.fail_after(30):
            await closed.wait()


async def test_the_agents_stream_is_read_as_server_sent_events(service: Service) -> None:
    async with (
        AsyncDeskwire(
            service.demo["token"], base_url=service.url, project=service.demo["projectId"]
        ) as client,
        client.dashboard.stream.follow() as events,
    ):
        first = await anext(events)
        await service.create(message={"text": "Hello"})
        second = await anext(events)
    assert first["event"] == "hello"
    assert second["data"]["type"] == "conversation.created"
    assert second["id"] == second["data"]["id"]
