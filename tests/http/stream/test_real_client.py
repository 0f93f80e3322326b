"""The stream with a real listener, a real store and a published websocket client."""

from __future__ import annotations

from tests.support.deadlines import fail_after_idle
from tests.support.streaming import CHANNEL, Front, Stage


async def test_a_subscriber_gets_every_event_of_the_project_in_order(stage: Stage, front: Front) -> None:
    """Decisions 5: every event of the project, in commit order."""
    client = await front.connect()
    assert await client.subscribe("c1") == {"resumedAfter": None, "gap": False}
    await stage.emit(3)
    await stage.emit(2)
    assert await client.numbers(5) == [0, 1, 2, 3, 4]


async def test_takeover_closes_the_old_consumer_with_a_reason(stage: Stage, front: Front) -> None:
    """Contract 4.4; decisions 5: `pusher:error` 4009, then a close with 4009."""
    old, new = await front.connect(), await front.connect()
    await old.subscribe("c1")
    await new.subscribe("c2")
    assert (await old.expect("pusher:error"))["code"] == 4009
    assert await old.closed() == 4009
    await stage.emit(1)
    assert await new.numbers(1) == [0]


async def test_nothing_is_missed_when_a_connection_is_cut_and_made_again(stage: Stage, front: Front) -> None:
    """Decisions 5: the next holder of the channel starts at the confirmed position."""
    client = await front.connect()
    await client.subscribe("c1")
    await stage.emit(2)
    assert await client.numbers(2) == [0, 1]
    await client.cut()
    await stage.emit(2)
    again = await front.connect()
    answer = await again.subscribe("c1")
    assert answer["gap"] is False
    numbers = await again.numbers(2)
    while numbers[-1] != 3:
        numbers += await again.numbers(1)
    assert numbers[-2:] == [2, 3]
    assert numbers == sorted(numbers)


async def test_a_superseded_consumer_that_returns_is_refused_and_left_open(
    stage: Stage, front: Front
) -> None:
    """Decisions 5: 409 while its successor is connected; closing would restart the loop in some clients."""
    old, new = await front.connect(), await front.connect()
    await old.subscribe("c1")
    await new.subscribe("c2")
    back = await front.connect()
    auth = back.auth("c1", now_ms=stage.clock())
    await back.say("pusher:subscribe", {"channel": CHANNEL, "auth": auth})
    assert (await back.expect("pusher:subscription_error"))["status"] == 409
    await back.say("pusher:ping", {})
    await back.expect("pusher:pong")
    await stage.emit(1)
    assert await new.numbers(1) == [0]


async def test_streams_are_closed_with_4200_when_the_server_stops(front: Front) -> None:
    """Decisions 5.11."""
    client = await front.connect()
    await client.subscribe("c1")
    front.stop.set()
    with fail_after_idle(3):
        assert await client.closed() == 4200
