"""Places of those who have not subscribed, in time that jumps (ADR 41)."""

from __future__ import annotations

from collections.abc import Callable

import trio
from trio.testing import MockClock

from deskwire.http.stream.limits import (
    SLOT_TIMEOUT_S,
    SLOT_WAIT_TIMEOUT_S,
    UnsubscribedLimit,
    UnsubscribedSlot,
)


async def taken(places: UnsubscribedLimit, network: str = "a") -> UnsubscribedSlot:
    """Return a place that is free now."""
    start = trio.current_time()
    place = await places.admit(network)
    assert place is not None
    assert trio.current_time() == start
    return place


async def waited(places: UnsubscribedLimit, network: str = "a") -> tuple[bool, float]:
    """Return whether a connection got a place, and after how many seconds."""
    start = trio.current_time()
    return await places.admit(network) is not None, trio.current_time() - start


async def test_one_networks_places_are_not_anothers(autojump_clock: MockClock) -> None:
    places = UnsubscribedLimit(2)
    for _ in range(2):
        await taken(places, "a")
    await taken(places, "b")
    assert await waited(places, "a") == (False, SLOT_WAIT_TIMEOUT_S)


async def test_subscribed_connection_needs_no_slot(autojump_clock: MockClock) -> None:
    places = UnsubscribedLimit(2)
    for _ in range(1_000):
        (await taken(places)).release()


async def test_waiting_connections_get_released_slots_in_order(
    autojump_clock: MockClock,
) -> None:
    places = UnsubscribedLimit(1)
    held, order = await taken(places), list[int]()

    async def wait(number: int) -> None:
        place = await places.admit("a")
        assert place is not None
        order.append(number)
        await trio.sleep(1)  # virtual time: the mock clock jumps
        place.release()

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(wait, number)
            await trio.testing.wait_all_tasks_blocked()
        held.release()
        await trio.testing.wait_all_tasks_blocked()
        assert order == [0]
    assert order == [0, 1, 2]


async def test_short_connections_get_no_more_slots_than_long_ones(
    autojump_clock: MockClock,
) -> None:
    places, start, got = UnsubscribedLimit(3), trio.current_time(), 0
    while trio.current_time() < start + 10 * SLOT_TIMEOUT_S:
        place = await places.admit("a")
        if place is not None:
            got += 1
            place.leave()
    assert got <= 3 * 11


async def test_expired_slot_is_evicted_for_a_waiting_connection(autojump_clock: MockClock) -> None:
    places, ended = UnsubscribedLimit(2), list[int]()

    def note(number: int) -> Callable[[], None]:
        return lambda: ended.append(number)

    for number in range(2):
        (await taken(places)).evict = note(number)
        await trio.sleep(1)  # virtual time: the mock clock jumps
    await trio.sleep(SLOT_TIMEOUT_S - 3)  # virtual time: the mock clock jumps
    assert ended == []
    assert await waited(places) == (True, 1)
    assert ended == [0]


async def test_expired_slot_stays_if_no_connection_waits(autojump_clock: MockClock) -> None:
    places, ended = UnsubscribedLimit(2), list[str]()
    (await taken(places)).evict = lambda: ended.append("it")
    await trio.sleep(100 * SLOT_TIMEOUT_S)  # virtual time: the mock clock jumps
    await taken(places)
    assert ended == []


async def test_a_place_of_one_that_has_ended_late_is_free_at_once(autojump_clock: MockClock) -> None:
    places = UnsubscribedLimit(1)
    held = await taken(places)
    await trio.sleep(SLOT_TIMEOUT_S)  # virtual time: the mock clock jumps
    held.leave()
    await taken(places)


async def test_stop_ends_all_waiting(autojump_clock: MockClock) -> None:
    places = UnsubscribedLimit(1)
    await taken(places)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(places.admit, "a")
        await trio.testing.wait_all_tasks_blocked()
        start = trio.current_time()
        places.close()
    assert trio.current_time() == start


async def test_networks_without_connections_are_removed(autojump_clock: MockClock) -> None:
    """Remove networks, because an attacker may have any number of them."""
    places = UnsubscribedLimit(2)
    for number in range(1_000):
        (await taken(places, f"2001:db8:{number:x}::/64")).leave()
    stays = await taken(places, "stays")
    stays.evict = lambda: None  # its connection is there
    await trio.sleep(SLOT_TIMEOUT_S)  # virtual time: the mock clock jumps
    await taken(places, "new")
    assert len(places) == 2
