"""The stream's consumer resumes, takes over, gives up when it must, and surfaces gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire_sdk import APIError, AsyncDeskwire, Deskwire, StreamEnded, Superseded, _reconnects
from deskwire_sdk._pusher import Closed, Message, PusherConnection, Send, message
from deskwire_sdk._reconnects import end_of, reconnect_delay
from deskwire_sdk.stream import AsyncStreamConsumer, Gap, StreamConsumer
from tests.api.events.test_mirror import _pruned
from tests.support.api.service import Service, running

from .conftest import in_thread, under_asyncio


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reconnects, "_DELAY_S", 0.02)


async def text(consumer: AsyncStreamConsumer) -> str:
    """Return the text of the next message."""
    with trio.fail_after(60):
        while True:
            event = await anext(consumer)
            assert not isinstance(event, Gap)
            if event["type"] == "message.created":
                return event["data"]["message"]["text"]


async def subscribed(consumer: AsyncStreamConsumer, service: Service) -> dict[str, Any]:
    """Create a conversation, have the consumer receive its message, and return it."""
    made = await service.create(message={"text": "first"})
    start = (await service.events())[0]["id"]
    consumer._resume = start  # as if given; the first event exists now
    assert await text(consumer) == "first"
    return made


async def test_a_consumer_receives_events_in_order(service: Service, client: AsyncDeskwire) -> None:
    async with AsyncStreamConsumer(client) as consumer:
        made = await subscribed(consumer, service)
        for number in range(20):
            await service.say(made, str(number))
        assert [await text(consumer) for _ in range(20)] == [str(number) for number in range(20)]


async def test_a_new_consumer_takes_over_from_the_confirmed_event(
    service: Service, client: AsyncDeskwire
) -> None:
    async with AsyncStreamConsumer(client) as first, AsyncStreamConsumer(client) as second:
        made = await subscribed(first, service)
        await service.say(made, "a")
        assert await text(first) == "a"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(expect_superseded, first)
            await service.say(made, "b")
            assert await text(second) in (
                "first",
                "a",
                "b",
            )  # unconfirmed events come again
        await service.say(made, "c")
        while await text(second) != "c":
            pass


async def expect_superseded(consumer: AsyncStreamConsumer) -> None:
    """Read until the consumer has lost its channel."""
    with pytest.raises(Superseded) as ended:
        await all_of(consumer)
    assert ended.value.code == 4009


async def all_of(consumer: AsyncStreamConsumer) -> None:
    """Read until the end."""
    while True:
        await text(consumer)


async def test_an_event_is_confirmed_when_the_next_one_is_asked_for(
    service: Service, client: AsyncDeskwire
) -> None:
    async with AsyncStreamConsumer(client, consumer_id="crashed") as first:
        made = await subscribed(first, service)
        await service.say(made, "in work")
        assert await text(first) == "in work"  # and the process dies here
    async with AsyncStreamConsumer(client) as second:
        texts = [await text(second)]
        while texts[-1] != "in work":
            texts.append(await text(second))


async def test_a_consumer_resumes_after_a_restart_of_the_service(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        port = int(service.url.rpartition(":")[2])
        client = AsyncDeskwire(service.demo["serverKey"], base_url=service.url)
        consumer = AsyncStreamConsumer(client)
        made = await subscribed(consumer, service)
    async with client, consumer, trio.open_nursery() as nursery:
        texts: list[str] = []
        complete = trio.Event()

        async def read() -> None:
            while len(texts) < 2:
                texts.append(await text(consumer))
            complete.set()

        nursery.start_soon(read)
        async with running(tmp_path, port=port) as service:
            await service.say(made, "a")
            await service.say(made, "b")
            with trio.fail_after(60):
                await complete.wait()
    assert texts == ["a", "b"]


async def test_a_consumer_surfaces_a_gap(tmp_path: Path) -> None:
    async with running(tmp_path, event_window_s=0.0, retention_interval_s=0.05) as service:
        await service.create(message={"text": "missed"})
        old = (await service.events())[0]["id"]
        await _pruned(service)
        async with (
            AsyncDeskwire(service.demo["serverKey"], base_url=service.url) as client,
            AsyncStreamConsumer(client, resume=old) as consumer,
        ):
            with trio.fail_after(60):
                gap = await anext(consumer)
            assert gap == Gap(f"private-project-{service.demo['projectId']}", None)


async def test_a_consumer_follows_one_conversation(service: Service, client: AsyncDeskwire) -> None:
    made, other = (
        await service.create(message={"text": "a"}),
        await service.create("u2", message={"text": "b"}),
    )
    channel = f"private-conversation-{made['id']}"
    start = (await service.events())[0]["id"]
    async with AsyncStreamConsumer(client, channel=channel, resume=start) as consumer:
        assert await text(consumer) == "a"
        await service.say(other, "c")
        await service.say(made, "d")
        assert await text(consumer) == "d"


async def test_typing_is_received_if_wanted(service: Service, client: AsyncDeskwire) -> None:
    async with AsyncStreamConsumer(client, typing_events=True) as consumer:
        made = await subscribed(consumer, service)
        await service.dashboard.post(f"/conversations/{made['id']}/typing", json={"typing": True})
        with trio.fail_after(60):
            event = await anext(consumer)
        assert not isinstance(event, Gap)
        assert event["type"] == "agent.typing.started"


async def test_an_unknown_channel_and_a_wrong_key_are_raised(service: Service, client: AsyncDeskwire) -> None:
    with pytest.raises(APIError, match="unknown_channel"), trio.fail_after(60):
        await anext(AsyncStreamConsumer(client, channel="private-cake"))
    with pytest.raises(APIError, match="401"), trio.fail_after(60):
        await anext(AsyncStreamConsumer(client.with_options(api_key="sk_wrong")))


async def test_a_consumer_that_is_ended_by_the_api_stops(service: Service, client: AsyncDeskwire) -> None:
    async with AsyncStreamConsumer(client) as consumer:
        await subscribed(consumer, service)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(expect_superseded, consumer)
            await client.stream.end_consumer(consumer.consumer_id)


async def test_a_consumer_works_in_threads_and_under_asyncio(service: Service, sync_client: Deskwire) -> None:
    await service.create(message={"text": "Hello"})
    start = (await service.events())[0]["id"]

    def main() -> str:
        with StreamConsumer(sync_client, resume=start) as consumer:
            event = next(consumer)
            assert not isinstance(event, Gap)
            return event["type"]

    async def asynchronous() -> str:
        async with (
            AsyncDeskwire(service.demo["serverKey"], base_url=service.url) as client,
            AsyncStreamConsumer(client, resume=start) as consumer,
        ):
            event = await anext(consumer)
            assert not isinstance(event, Gap)
            return event["type"]

    assert await in_thread(main) == "message.created"
    assert await under_asyncio(asynchronous) == "message.created"


@pytest.mark.parametrize(
    ("code", "end"),
    [
        (1000, None),
        (1006, None),
        (4001, StreamEnded),
        (4009, Superseded),
        (4100, None),
        (4201, None),
        (4301, StreamEnded),
    ],
)
def test_close_codes_say_whether_to_reconnect(code: int, end: type[Exception] | None) -> None:
    found = end_of(Closed(code, "x"))
    assert (None if found is None else type(found)) is end


def test_the_delay_of_reconnects_grows_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reconnects, "_DELAY_S", 1.0)
    assert [reconnect_delay(4100, each) for each in (0, 1, 4, 5, 99)] == [1, 2, 16, 30, 30]
    assert reconnect_delay(4200, 0) < 1


def test_a_broken_frame_ends_the_connection() -> None:
    for data in (b"\xff\xff\xff", b"\x81\x02[]", b"\x81\x01{", b""):
        pusher = PusherConnection()
        pusher.receive(data)
        assert any(isinstance(each, Closed) for each in pusher.items()), data


def test_a_ping_is_answered_after_the_messages_before_it() -> None:
    pusher = PusherConnection()
    pusher.receive(b'\x81\x0d{"event":"a"}\x89\x01x\x01\x08{"event"\x80\x05:"b"}')
    kinds = [each if isinstance(each, Message) else type(each) for each in pusher.items()]
    assert kinds == [Message("a", None, None), Send, Message("b", None, None)]


def test_a_text_that_is_no_message_is_refused() -> None:
    with pytest.raises(ValueError, match="no message"):
        message("[]")
