"""Consumers of the stream, listed and ended over HTTP (ADR 41)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from tests.api.accounts.test_tenants import stranger
from tests.api.stream.test_revocation import Stream, Streams, project_channel
from tests.support.api.service import Service


@pytest.fixture
async def stack() -> Any:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def streams(service: Service, stack: AsyncExitStack) -> Streams:
    return Streams(service, stack)


async def end(service: Service, consumer_id: str, **query: str) -> tuple[int, Any]:
    """Status, and the channels or the code."""
    path = f"/s2s/stream/consumers/{quote(consumer_id, safe='')}"
    answer = await service.http.delete(path, params=query)
    said = answer.json()
    if answer.status_code == 200:
        assert said["consumerId"] == consumer_id
    return answer.status_code, said.get("ended", said.get("code"))


async def opened(streams: Streams, service: Service) -> Stream:
    return await streams.open(service.demo["serverKey"])


@pytest.mark.parametrize("consumer_id", ["mirror-1", "a/b?c#d %41", "ü" * 128, "x" * 128])
async def test_ended_consumer_gets_a_final_code_and_another_can_subscribe(
    service: Service, streams: Streams, consumer_id: str
) -> None:
    channel = project_channel(service)
    old = await opened(streams, service)
    await old.subscribe(channel, consumer_id)
    assert await end(service, consumer_id) == (200, [channel])
    code, text, closed = await old.ended()
    assert (code, closed) == (4009, 4009)
    assert "ended by a call" in text
    new = await opened(streams, service)
    await new.subscribe(channel, "successor")
    await service.create()
    assert (await new.peer.message())["event"] == "conversation.created"


async def test_channel_is_free_before_the_ended_client_is_notified(
    service: Service, streams: Streams
) -> None:
    """End a client that no longer reads anything."""
    channel = project_channel(service)
    deaf, standby = await opened(streams, service), await opened(streams, service)
    await standby.subscribe(channel, "standby")
    await deaf.subscribe(channel, "deaf")
    assert (await standby.ended())[0] == 4009
    waiting = await opened(streams, service)
    received = await waiting.present(channel, await waiting.authorize(channel, "standby"))
    assert orjson.loads(received["data"])["status"] == 409
    assert await end(service, "deaf") == (200, [channel])
    code, text, _ = await waiting.ended()
    assert (code, "free again" in text) == (4100, True)
    await (await opened(streams, service)).subscribe(channel, "standby")


async def test_ending_again_changes_nothing_and_an_unknown_consumer_is_404(
    service: Service, streams: Streams
) -> None:
    channel = project_channel(service)
    stream = await opened(streams, service)
    await stream.subscribe(channel, "c1")
    assert await end(service, "c1") == (200, [channel])
    assert await end(service, "c1") == (200, [])
    assert await end(service, "c1", channel=channel) == (200, [])
    assert await end(service, "c2") == (404, "consumer_not_found")
    assert await end(service, "c1", channel="private-contact-u1") == (404, "consumer_not_found")
    assert (await end(service, "c1", chanel=channel))[0] in (400, 422)


async def test_ended_consumer_is_refused_for_now_but_a_new_id_is_not(
    service: Service, streams: Streams
) -> None:
    channel = project_channel(service)
    await (await opened(streams, service)).subscribe(channel, "c1")
    await end(service, "c1")
    back = await opened(streams, service)
    received = await back.present(channel, await back.authorize(channel, "c1"))
    refused = orjson.loads(received["data"])
    assert (received["event"], refused["status"]) == ("pusher:subscription_error", 409)
    await back.subscribe(channel, "c1-again")


async def test_connection_with_other_channels_is_asked_to_reconnect(
    service: Service, streams: Streams
) -> None:
    await service.create("u1")
    stream = await opened(streams, service)
    await stream.subscribe(project_channel(service), "c1")
    await stream.subscribe("private-contact-u1", "c2")
    assert await end(service, "c2") == (200, ["private-contact-u1"])
    code, text, closed = await stream.ended()
    assert (code, closed, "connect again" in text) == (4100, 4100, True)


async def test_all_channels_of_one_connection_are_ended_for_good(service: Service, streams: Streams) -> None:
    await service.create("u1")
    stream = await opened(streams, service)
    for channel in (project_channel(service), "private-contact-u1"):
        await stream.subscribe(channel, "c1")
    status, ended = await end(service, "c1")
    assert (status, sorted(ended)) == (200, ["private-contact-u1", project_channel(service)])
    assert (await stream.ended())[0] == 4009


async def test_another_project_can_not_end_a_consumer(service: Service, streams: Streams) -> None:
    stream = await opened(streams, service)
    await stream.subscribe(project_channel(service), "c1")
    async with stranger(service) as other:
        path = "/v3/s2s/stream/consumers/c1"
        for query in ({}, {"channel": project_channel(service)}):
            answer = await other.backend.delete(path, params=query)
            assert (answer.status_code, answer.json()["code"]) == (404, "consumer_not_found")
    await service.create()
    assert (await stream.peer.message())["event"] == "conversation.created"
