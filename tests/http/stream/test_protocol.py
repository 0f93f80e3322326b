"""The messages of a connection, and their responses (Pusher protocol, messages)."""

from __future__ import annotations

import pytest

from tests.support.streaming import CHANNEL, Front, Stage


async def test_subscribing_again_on_the_same_connection_is_answered_and_changes_nothing(
    stage: Stage, front: Front
) -> None:
    client = await front.connect()
    await client.subscribe("c1")
    await client.subscribe("c1")
    await stage.emit(2)
    assert await client.numbers(2) == [0, 1]


async def test_another_consumer_on_the_same_connection_replaces_the_first(stage: Stage, front: Front) -> None:
    """The connection is not closed under itself, and the first may come back."""
    client = await front.connect()
    await client.subscribe("c1")
    await client.subscribe("c2")
    await stage.emit(1)
    assert await client.numbers(1) == [0]
    await client.subscribe("c1")


async def test_after_an_unsubscription_nothing_comes_and_the_fence_is_lifted(
    stage: Stage, front: Front
) -> None:
    """Pusher protocol, messages: no answer; it releases the stream."""
    first, second = await front.connect(), await front.connect()
    await first.subscribe("c1")
    await second.subscribe("c2")
    assert await first.closed() == 4009
    await second.say("pusher:unsubscribe", {"channel": CHANNEL})
    await second.say("pusher:unsubscribe", {"channel": CHANNEL})
    await second.say("pusher:ping", {})
    await second.expect("pusher:pong")
    again = await front.connect()
    await again.subscribe("c1")
    await stage.emit(1)
    assert await again.numbers(1) == [0]
    await second.say("pusher:ping", {})
    await second.expect("pusher:pong")


@pytest.mark.parametrize(
    "auth", ["", "x", "shop-stream", "shop-stream:", "shop-stream:x.y.z", "bank-stream:"]
)
async def test_a_subscription_without_a_good_token_is_refused_with_401(front: Front, auth: str) -> None:
    client = await front.connect()
    await client.say("pusher:subscribe", {"channel": CHANNEL, "auth": auth})
    refused = await client.expect("pusher:subscription_error")
    assert (refused["type"], refused["status"]) == ("AuthError", 401)


async def test_a_token_is_good_on_the_socket_it_was_issued_for_only(stage: Stage, front: Front) -> None:
    """Decisions 5: it binds the socket."""
    one, other = await front.connect(), await front.connect()
    auth = one.auth("c1", now_ms=stage.clock())
    await other.say("pusher:subscribe", {"channel": CHANNEL, "auth": auth})
    assert (await other.expect("pusher:subscription_error"))["status"] == 401


async def test_sign_in_is_refused_without_a_code_and_unknown_events_are_ignored(front: Front) -> None:
    client = await front.connect()
    await client.say("pusher:unknown", {})
    await client.say("pusher:pong", {})
    await client.say("pusher:signin", {"auth": "x"})
    assert "code" not in await client.expect("pusher:error")
