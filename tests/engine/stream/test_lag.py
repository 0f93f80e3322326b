"""Metrics of the stream's consumers: how they subscribed, and their lags."""

from __future__ import annotations

from pathlib import Path

import pytest
from trio.testing import MockClock

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.stream import lag
from deskwire.engine.stream.hub import ConsumerSuperseded
from deskwire.engine.stream.lag import Lag
from tests.support.streaming import JumpStore, Stage

RING = 100
"""The number of events that the stage's log has in memory."""


async def test_lag_is_zero_without_consumers(autojump_clock: MockClock, stage: Stage) -> None:
    await stage.emit(5)
    assert await stage.hub.lags() == {"project": Lag(), "conversation": Lag(), "contact": Lag()}


async def test_lag_is_the_number_of_unconfirmed_events(autojump_clock: MockClock, stage: Stage) -> None:
    held = await stage.hold("c1")
    events = await stage.emit(10)
    assert (await stage.hub.lags())["project"] == Lag(1, 10, 10)
    stage.hub.confirm(held, events[6].position)
    assert (await stage.hub.lags())["project"] == Lag(1, 3, 3)
    stage.hub.confirm(held, events[-1].position)
    assert (await stage.hub.lags())["project"] == Lag(1, 0, 0)


async def test_lags_of_a_kind_have_sum_and_maximum(autojump_clock: MockClock, stage: Stage) -> None:
    await stage.hold("c1", channel="private-contact-u1")
    await stage.emit(4)
    await stage.hold("c2", channel="private-contact-u2")
    await stage.emit(3)
    lags = await stage.hub.lags()
    assert (lags["contact"], lags["project"]) == (Lag(2, 10, 7), Lag())


async def test_disconnected_consumer_has_no_lag(autojump_clock: MockClock, stage: Stage) -> None:
    held = await stage.hold("c1")
    await stage.emit(4)
    stage.hub.leave(held, for_good=False)
    assert (await stage.hub.lags())["project"] == Lag()


async def test_evicted_events_are_counted_in_the_table(autojump_clock: MockClock, stage: Stage) -> None:
    await stage.hold("c1")
    await stage.emit(3 * RING)
    assert (await stage.hub.lags())["project"] == Lag(1, 3 * RING, 3 * RING)


async def test_a_lag_is_counted_up_to_a_bound(
    autojump_clock: MockClock, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "LAG_MAX", 50)
    await stage.hold("c1", channel="private-contact-u1")
    await stage.emit(2 * RING)
    await stage.hold("c2", channel="private-contact-u2")
    await stage.emit(60)
    assert (await stage.hub.lags())["contact"] == Lag(2, 100, 50)


async def test_bounded_number_of_lags_is_counted_in_the_table(
    autojump_clock: MockClock, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "_READ_MAX", 1)
    await stage.hold("c1", channel="private-contact-u1")
    await stage.emit(1)
    await stage.hold("c2", channel="private-contact-u2")
    await stage.emit(2 * RING)
    assert (await stage.hub.lags())["contact"] == Lag(2, 2 * RING + 1 + RING, 2 * RING + 1)


async def test_failing_disk_hides_only_lags_beyond_memory(
    autojump_clock: MockClock, store: JumpStore, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.hold("c1")
    await stage.emit(2 * RING)

    async def fail(_query: object) -> None:
        raise Unavailable("The disk is gone.", code="storage_failed")

    monkeypatch.setattr(store, "read", fail)
    assert (await stage.hub.lags())["project"] == Lag(1, RING, RING)


async def test_subscriptions_are_counted_by_their_start(
    autojump_clock: MockClock, stage: Stage, tmp_path: Path
) -> None:
    counters = stage.hub.counters
    await stage.emit(3)
    await stage.hold("c1")
    assert (counters.live, counters.resumed, counters.gaps) == (1, 0, 0)
    second = await stage.hold("c1")
    assert (counters.resumed, counters.replaced, counters.takeovers) == (1, 1, 0)
    third = await stage.hold("c2")
    assert (counters.replaced, counters.takeovers) == (1, 1)
    with pytest.raises(ConsumerSuperseded):
        await stage.hold("c1")
    assert counters.fenced == 1
    stage.hub.leave(third, for_good=True)
    await stage.hold("c3", resume="evt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
    assert (counters.gaps, counters.takeovers) == (1, 1), "no consumer held the channel"
    assert not second.current
