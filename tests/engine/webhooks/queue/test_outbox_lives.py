"""Long random runs of an outbox against the model of its rows.

They reach states that Hypothesis, which tries short runs, seldom finds.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Final

import pytest

from tests.engine.webhooks.queue.test_outbox_model import Deliveries, Outcome

pytestmark = pytest.mark.thorough


LIVES: Final = 150 * int(os.environ.get("FUZZ_FACTOR", "1"))
MOVES: Final = 250

Chance = random.Random
Move = Callable[[Deliveries, Chance], object]


def redeliver(life: Deliveries, chance: Chance) -> None:
    if over := life.over():
        life.table.redeliver(chance.choice(over), life.now)


def may_probe(life: Deliveries) -> bool:
    return life.opened and life.outbox.holds and life.batch is None


def may_end_some(life: Deliveries) -> bool:
    return life.opened and not life.flight and life.batch is None


def end_attempt(life: Deliveries, chance: Chance) -> None:
    outcomes: list[Outcome] = ["good", "good", "failed", "failed", "failed", "paused", "failed and opened"]
    if running := life.running():
        life.attempt_ended(chance.choice(running), chance.choice(outcomes[: chance.choice([6, 6, 6, 7])]))


WHAT_MAY_HAPPEN: Final[tuple[tuple[float, Callable[[Deliveries], bool], Move], ...]] = (
    (6, lambda _: True, lambda life, by: life.commit(by.randrange(4), by.choice([1, 1, 2, 3]))),
    (2, lambda _: True, lambda life, by: life.erase(by.randint(1, 3))),
    (3, lambda _: True, redeliver),
    (10, lambda _: True, lambda life, _: life.tell()),
    (12, lambda life: life.batch is None, lambda life, by: life.ask_for_a_batch(by.random() < 0.5)),
    (5, lambda life: life.batch is not None and life.found is None, lambda life, _: life.read_batch()),
    (10, lambda life: life.batch is not None, lambda life, _: life.end_batch()),
    (0.5, lambda life: life.batch is not None, lambda life, _: life.fail_batch()),
    (20, lambda _: True, lambda life, by: life.take(by.randint(0, 5))),
    (16, lambda _: True, end_attempt),
    (12, lambda life: life.recorded is None, lambda life, by: life.record(by.random() < 0.5)),
    (12, lambda life: life.recorded is not None, lambda life, _: life.settle()),
    (8, may_probe, lambda life, by: life.ask_for_a_probe(by.random() < 0.5)),
    (0.5, may_end_some, lambda life, by: life.end_too_old(by.randint(1, 4))),
    (0.3, lambda _: True, lambda life, _: life.restart()),
    (0.5, lambda _: True, lambda life, by: life.set_clock_back(by.randint(1, 1000))),
)


def live(seed: int) -> None:
    """Run one outbox with random probabilities of its own."""
    chance, life = random.Random(seed), object.__new__(Deliveries)
    life.start(chance.choice([1, 1, 2, 2, 3, 6]), chance.randint(1, 3), chance.choice([1, 2, 6]))
    weights = [weight * chance.choice([0.1, 0.5, 1, 1, 2, 4]) for weight, _, _ in WHAT_MAY_HAPPEN]
    for _ in range(MOVES):
        ((_, may, move),) = chance.choices(WHAT_MAY_HAPPEN, weights)
        if may(life):
            move(life, chance)
            life.bounds_are_kept()
    life.teardown()


@pytest.mark.parametrize("first", range(8))
def test_nothing_is_lost_and_nothing_is_sent_twice_in_a_long_life(first: int) -> None:
    for seed in range(first * LIVES, (first + 1) * LIVES):
        try:
            live(seed)
        except AssertionError as error:
            error.add_note(f"This is the life of the seed {seed}.")
            raise
