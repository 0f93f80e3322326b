"""Ending a consumer by a call: its channels are free at once, and it is fenced for a while (ADR 41)."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.core.errors import NotFound
from deskwire.engine.stream.hub import ConsumerSuperseded
from tests.support.streaming import CHANNEL, JumpStore, Stage, jump_stage, next_batch, number

CONTACT = "private-contact-u1"


async def test_ended_consumer_is_notified_and_holds_no_channel(
    autojump_clock: MockClock, stage: Stage
) -> None:
    received = list[str]()
    held = await stage.hold("c1", lost=received.append)
    assert await stage.hub.end(stage.project, "c1") == [CHANNEL]
    assert (received, held.current) == (["ended"], False)
    (status,) = await stage.hub.consumers(stage.project)
    assert (status.consumer_id, status.connected) == ("c1", False)


async def test_channel_of_an_ended_consumer_is_free_and_resumes_at_its_position(
    autojump_clock: MockClock, stage: Stage
) -> None:
    """Include the consumers that it had superseded, because they are the standbys."""
    await stage.hold("c0")
    held = await stage.hold("c1")
    missed = await stage.emit(2)
    with pytest.raises(ConsumerSuperseded):
        await stage.hold("c0")
    await stage.hub.end(stage.project, "c1")
    standby = await stage.hold("c0")
    assert [number(each) for each in (await next_batch(standby)).events] == [number(each) for each in missed]
    assert (held.current, standby.current) == (False, True)


async def test_standby_is_notified_of_an_ended_consumer(autojump_clock: MockClock, stage: Stage) -> None:
    await stage.hold("c0")
    await stage.hold("c1")
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.hub.until_unfenced, stage.channel, "c0")
        await trio.testing.wait_all_tasks_blocked()
        await stage.hub.end(stage.project, "c1")
    assert trio.current_time() == start


async def test_ended_consumer_is_refused_for_a_minute(autojump_clock: MockClock, stage: Stage) -> None:
    await stage.hold("c1")
    await stage.hub.end(stage.project, "c1")
    await trio.sleep(59)  # virtual time: the mock clock jumps
    with pytest.raises(ConsumerSuperseded):
        await stage.hold("c1")
    await trio.sleep(1)  # virtual time: the mock clock jumps
    assert (await stage.hold("c1")).current


async def test_ended_consumer_is_refused_while_another_holds_the_channel(
    autojump_clock: MockClock, stage: Stage
) -> None:
    await stage.hold("c1")
    await stage.hub.end(stage.project, "c1")
    await stage.hold("c2")
    await trio.sleep(80_000)  # virtual time: the mock clock jumps
    with pytest.raises(ConsumerSuperseded):
        await stage.hold("c1")


async def test_ending_twice_ends_no_other_and_does_not_extend_the_minute(
    autojump_clock: MockClock, stage: Stage
) -> None:
    received = list[str]()
    await stage.hold("c1", lost=received.append)
    await stage.hub.end(stage.project, "c1")
    await trio.sleep(59)  # virtual time: the mock clock jumps
    assert await stage.hub.end(stage.project, "c1") == []
    await trio.sleep(1)  # virtual time: the mock clock jumps
    assert (await stage.hold("c1")).current
    assert received == ["ended"]


async def test_ending_a_dropped_consumer_removes_its_protection(
    autojump_clock: MockClock, stage: Stage
) -> None:
    await stage.hold("c0")
    stage.hub.leave(await stage.hold("c1"), for_good=False)
    with pytest.raises(ConsumerSuperseded):
        await stage.hold("c0")
    assert await stage.hub.end(stage.project, "c1") == []
    assert (await stage.hold("c0")).current


async def test_end_releases_all_channels_or_the_named_one(autojump_clock: MockClock, stage: Stage) -> None:
    for channel in (CHANNEL, CONTACT):
        await stage.hold("c1", channel=channel)
    await stage.hold("other", channel="private-contact-u2")
    assert await stage.hub.end(stage.project, "c1", CONTACT) == [CONTACT]
    assert await stage.hub.end(stage.project, "c1") == [CHANNEL]
    held = {each.channel: each.connected for each in await stage.hub.consumers(stage.project)}
    assert held == {CHANNEL: False, CONTACT: False, "private-contact-u2": True}


async def test_superseded_consumer_can_not_be_ended(autojump_clock: MockClock, stage: Stage) -> None:
    await stage.hold("c1")
    new = await stage.hold("c2")
    for consumer_id, channel in (("c1", None), ("nobody", None), ("c2", CONTACT)):
        with pytest.raises(NotFound):
            await stage.hub.end(stage.project, consumer_id, channel)
    assert new.current


async def test_consumer_can_be_ended_after_a_crash(
    autojump_clock: MockClock, store: JumpStore, stage: Stage
) -> None:
    """End the consumer of a channel that no consumer has used since the start."""
    await stage.hold("c0")
    await stage.hold("c1")
    again = await jump_stage(store)
    assert await again.hub.end(again.project, "c1") == []
    assert (await again.hold("c0")).current
