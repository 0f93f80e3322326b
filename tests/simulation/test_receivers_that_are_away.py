"""A receiver that was unreachable for a while gets every event automatically and soon (contract 6.4, ADR 10)."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.simulation.away import Away, conversations, heard, live, post, traffic
from tests.simulation.peers.receiver import Manner

pytestmark = pytest.mark.long

LENGTHS_S = (0.5, 2, 10, 40, 120)
AWAY = [
    *((length, rate, "refusing") for length in LENGTHS_S for rate in (1, 5, 50)),
    *((length, 5, manner) for length in LENGTHS_S for manner in ("failing", "silent")),
]


@pytest.mark.parametrize(("away_s", "rate", "manner"), AWAY)
def test_every_event_arrives_soon_after_the_return(
    tmp_path: Path, away_s: float, rate: float, manner: Manner
) -> None:
    """The first event arrives within 2 s, or within 12 s if the circuit was open; later ones are a second late at most.

    If an attempt hangs, the later events of its conversation wait until it ends, as always.
    """

    async def script(away: Away) -> None:
        heard(away)
        ids = await conversations(away)
        left = trio.current_time() + 2
        back = left + away_s
        async with trio.open_nursery() as nursery:
            nursery.start_soon(traffic, away, ids, rate, back + (10 if rate == 50 else 30))
            await trio.sleep_until(left)  # virtual time: the mock clock jumps
            away.leave(manner)
            await trio.sleep_until(back)  # virtual time: the mock clock jumps
            away.receiver.manner = "well"
        await away.all_arrived()
        first = min(at for at in away.arrived.values() if at >= back)
        assert first - back <= (2 if away_s < 60 else 12)
        late = max(away.arrived[event] - at for event, at in away.committed.items() if at >= first)
        assert late <= (6 if manner == "silent" else 1)

    live(tmp_path, script)


def test_held_events_arrive_in_order_in_each_conversation(tmp_path: Path) -> None:
    async def script(away: Away) -> None:
        heard(away)
        ids = await conversations(away)
        async with trio.open_nursery() as nursery:
            away.leave("refusing")
            nursery.start_soon(traffic, away, ids, 5, trio.current_time() + 300)
            await trio.sleep(90)  # virtual time: the mock clock jumps
            held_from = trio.current_time()
            await trio.sleep(210)  # virtual time: the mock clock jumps
            held_upto = trio.current_time()
            away.receiver.manner = "well"
        await away.all_arrived()
        held = {event for event, at in away.committed.items() if held_from < at < held_upto}
        assert len(held) > 1000
        sequences: dict[str, list[int]] = {}
        for event, conversation_id, sequence in away.order:
            if event in held:
                sequences.setdefault(conversation_id, []).append(sequence)
        assert list(sequences.values()) == [sorted(each) for each in sequences.values()]

    live(tmp_path, script)


def test_a_receiver_that_asks_for_pauses_gets_every_event(tmp_path: Path) -> None:
    """A 429 with `Retry-After: 1` for more than ten requests a second uses up no attempt, and drops no event."""

    async def script(away: Away) -> None:
        heard(away)
        ids = await conversations(away)
        away.receiver.manner = "limiting"
        began = trio.current_time()
        await traffic(away, ids, 150, began + 1)
        await away.all_arrived()
        assert len(away.committed) >= 150
        assert trio.current_time() - began < 30
        assert {status for (status,) in away.rows("SELECT DISTINCT status FROM deliveries")} <= {
            "delivered",
            "pending",
        }

    live(tmp_path, script)


def test_an_idle_endpoint_is_probed_with_a_missed_event(
    tmp_path: Path,
) -> None:
    async def script(away: Away) -> None:
        heard(away)
        ids = await conversations(away)
        away.leave("failing")
        for number in range(3):
            await post(away, ids[number])
            await trio.sleep(60)  # virtual time: the mock clock jumps
        await trio.sleep(600)  # virtual time: the mock clock jumps
        open_rows = "SELECT count(*) FROM deliveries WHERE missed = 1 OR status = 'pending'"
        assert away.rows(open_rows) == [(3,)], "one of them may be the probe"
        away.receiver.manner = "well"
        await away.all_arrived()
        await trio.sleep(600)  # virtual time: the mock clock jumps
        assert len(away.order) == 3, "each once"
        assert away.rows(open_rows) == [(0,)]

    live(tmp_path, script)


def test_an_event_that_alone_is_delayed_fails_without_delaying_others(tmp_path: Path) -> None:
    async def script(away: Away) -> None:
        heard(away)
        ids = await conversations(away)
        away.receiver.delays = "wait"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(traffic, away, ids, 5, trio.current_time() + 300)
            await post(away, ids[0], "wait")
        await trio.sleep(60)  # virtual time: the mock clock jumps
        alone = away.committed.keys() - away.arrived.keys()
        assert len(alone) == 1
        late = max(away.arrived[event] - at for event, at in away.committed.items() if event not in alone)
        assert late <= 60, "only those of its own conversation wait, as for any failing event"
        rows = away.rows("SELECT status, missed FROM deliveries WHERE status NOT IN ('delivered')")
        assert rows == [("dropped", None)]

    live(tmp_path, script)


def test_an_event_that_fails_while_others_succeed_is_dropped_and_not_repeated(tmp_path: Path) -> None:
    async def script(away: Away) -> None:
        ids = await conversations(away)
        away.receiver.refuses = "poison"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(traffic, away, ids, 5, trio.current_time() + 120)
            await post(away, ids[0], "poison")
        rows = away.rows(
            "SELECT status, attempts, missed, redelivered_as FROM deliveries WHERE status IN ('dropped', 'skipped')"
        )
        assert rows == [("dropped", 4, None, None)]

    live(tmp_path, script)
