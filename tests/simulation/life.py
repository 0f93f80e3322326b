"""One life of a project, from its seed to the verdict."""

from __future__ import annotations

import hashlib
import os
import random
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
import trio
from structlog.processors import format_exc_info
from structlog.testing import capture_logs
from trio.testing import MockClock

from deskwire.engine.core.ids import ALPHABET
from tests.simulation.faults import FAULTS
from tests.simulation.world import World
from tests.support.floors import Floor

_EXPECTED: Final = frozenset({"storage.commit_failed"})
"""Errors that the server logs when its disk fails; every other error is a bug."""

_ENOUGH: Final = 8
"""This number of lives contains every kind of judged event."""
_SETTLED_S: Final = 150.0
"""Long enough for leases, standbys and reconnects; no change is left to happen then."""
_RETURNED_S: Final = 90.0
"""Long enough for clients that have not noticed yet that their connection is gone."""
_DELIVERED_S: Final = 3_700.0
"""Longer than the window of deliveries: nothing is pending then."""
_CUSTOMERS: Final = 0.5
"""The number of customers' steps for each step of the backends."""
_DAY_S: Final = 86_400.0
_IDLE_S: Final = (600.0, 2 * 3600.0, _DAY_S, 8 * _DAY_S, 35 * _DAY_S, 60 * _DAY_S)
_WITH_CONSUMERS_S: Final = 600.0
"""Through a longer idle period consumers are disconnected: each costs a ping every 25 s, and twins fight without end."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a life, and how much of everything it had."""

    seed: int
    problems: list[str]
    trace: list[tuple[float, str]]
    hours: float = 0.0
    events: int = 0
    requests: int = 0
    replays: int = 0
    posts: int = 0
    frames: int = 0
    faults: int = 0
    crashes: int = 0
    sent: int = 0
    back: int = 0
    said: int = 0
    shown: int = 0
    upgrades: int = 0

    @property
    def mark(self) -> str:
        """A hash of everything that happened."""
        return hashlib.sha256(repr(self.trace).encode()).hexdigest()[:16]


_NAMES: Final = {
    "sent": "held messages sent",
    "back": "messages taken back",
    "said": "messages of customers",
    "shown": "events shown to customers",
}
_LEAST: Final = {
    "requests": 10,
    "events": 10,
    "posts": 5,
    "frames": 1,
    "faults": 2,
    "sent": 1,
    "said": 2,
    "shown": 4,
}
"""Lower limits of the average of each figure over lives; a single life may have less."""


def floors(lives: Sequence[Verdict]) -> Sequence[Floor]:
    """Return how much some lives have judged; for a few lives the floor is 0, because a single seed may lack a kind."""
    enough = len(lives) if len(lives) >= _ENOUGH else 0
    made = {
        name: sum(getattr(life, name) for life in lives)
        for name in (*_LEAST, "replays", "crashes", "back", "upgrades")
    }
    return (
        *(Floor(_NAMES.get(name, name), made[name], least * enough) for name, least in _LEAST.items()),
        Floor(_NAMES["back"], made["back"], enough // 4),
        Floor("replays", made["replays"], enough),
        Floor("upgrades", made["upgrades"], enough // 4),
        Floor("crashes", made["crashes"], enough // 8),
    )


@contextmanager
def decided(seed: int) -> Iterator[None]:
    """Let the seed decide everything random: scheduling, ids, nonces."""
    ids, secret, nonces = (random.Random(f"{seed} {name}") for name in ("ids", "secrets", "nonces"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", True)  # as Trio's own plugin does
        patch.setattr("trio._core._run._r", random.Random(seed))
        patch.setattr("deskwire.engine.core.ids._drawn", [])
        patch.setattr("deskwire.engine.core.ids._written", [])
        patch.setattr("deskwire.engine.core.ids._random_characters", partial(_characters, ids))
        patch.setattr(secrets, "randbits", ids.getrandbits)
        patch.setattr(secrets, "randbelow", ids.randrange)
        patch.setattr(secrets, "token_bytes", lambda size=32: secret.randbytes(size))
        patch.setattr(
            os, "urandom", nonces.randbytes
        )  # also for values made once in a process; no output shows them
        yield


def _characters(dice: random.Random, count: int) -> str:
    return "".join(dice.choices(ALPHABET, k=count))


def simulate(seed: int, directory: Path, *, to_the_end: bool = True) -> Verdict:
    """Run one life, the same for the same seed; it stops at the first problem unless it goes `to_the_end`."""
    dice = random.Random(seed)
    worlds: list[World] = []
    faults = [0]

    async def life() -> float:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                world = World(directory, dice, nursery)
                worlds.append(world)
                if not to_the_end:
                    world.judge.stop = scope.cancel
                await _live(world, faults)
                world.end()
                nursery.cancel_scope.cancel()
        return trio.current_time()

    with decided(seed), capture_logs(processors=[format_exc_info]) as entries:
        lived_s = trio.run(life, clock=MockClock(autojump_threshold=0))
    errors = [entry for entry in entries if entry["log_level"] in ("error", "critical")]
    world = worlds[0]
    world.judge.problems.extend(str(entry) for entry in errors if entry["event"] not in _EXPECTED)
    return _verdict(seed, world, faults[0], lived_s)


def live_alone(seed: int) -> Verdict:
    """Run one life in a directory of its own."""
    with TemporaryDirectory() as directory:
        return simulate(seed, Path(directory))


def _verdict(seed: int, world: World, faults: int, lived_s: float) -> Verdict:
    judge = world.judge
    return Verdict(
        seed,
        judge.problems,
        judge.trace,
        hours=lived_s / 3600,
        events=world.ledger.events,
        requests=world.client.requests,
        replays=world.ledger.replays,
        posts=world.mail.posts,
        frames=judge.frames,
        faults=faults,
        crashes=world.crashes,
        sent=world.held.sent,
        back=world.held.back,
        said=world.customer_judge.said,
        shown=world.customer_judge.shown,
        upgrades=world.customer_judge.upgrades,
    )


async def _live(world: World, faults: list[int]) -> None:
    """Run phases of faults and of quiet; count the faults."""
    await world.start()
    dice = world.dice
    receivers = world.internet.receivers
    await world.client.register(receivers[0].url, [])
    for receiver in dice.sample(receivers[1:], dice.randrange(3)):
        await world.client.register(receiver.url, [])
    for _ in range(dice.choice((1, 1, 2))):
        faults[0] += await _turmoil(world)
        await _idle(world)
    await _settle(world)


async def _turmoil(world: World) -> int:
    dice = world.dice
    faults = dice.randrange(4, 16)
    world.attend()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_writing, world)
        for _ in range(dice.randrange(1, 4)):
            world.launch()
        for _ in range(faults):
            await trio.sleep(dice.random() ** 2 * 20)  # virtual time: the mock clock jumps
            fault = dice.choice(FAULTS)
            world.judge.note(fault.__name__)
            await fault(world)
            world.check()
        nursery.cancel_scope.cancel()
    return faults


async def _writing(world: World) -> None:
    while True:
        for _ in range(world.dice.randrange(1, 4)):
            await world.client.do_something()
            world.check()
        await world.agent.do_something()
        if world.dice.random() < _CUSTOMERS:
            await world.dice.choice(world.customers).do_something()
        world.check()
        await trio.sleep(world.dice.random() * 8)  # virtual time: the mock clock jumps


async def _idle(world: World) -> None:
    """Let hours or weeks pass with nothing but due work, and at most one crash."""
    idle_s = world.dice.choice(_IDLE_S)
    world.judge.note(f"{idle_s / 3600:g} idle hours")
    world.flaky = False
    if idle_s > _WITH_CONSUMERS_S:
        world.go_home()
    first_s = world.dice.random() * idle_s
    await trio.sleep(first_s)  # virtual time: the mock clock jumps
    if world.dice.random() < 0.5:
        await world.crash("power lost")
    await trio.sleep(idle_s - first_s)  # virtual time: the mock clock jumps
    world.audit()
    world.flaky = True
    if idle_s > _WITH_CONSUMERS_S:
        for consumer_id in dict.fromkeys(consumer.consumer_id for consumer in world.consumers[-3:]):
            world.launch(consumer_id)


async def _settle(world: World) -> None:
    """Heal the faults, and check that every event has reached a consumer that then keeps its channel."""
    world.heal()
    world.attend()
    await trio.sleep(_RETURNED_S)  # virtual time: the mock clock jumps
    if world.dice.random() < 0.5:  # before a new event shows the service that receivers are back
        await trio.sleep(_DELIVERED_S)  # virtual time: the mock clock jumps
        world.audit_deliveries()
    for channel in world.channels:
        world.launch_healthy(channel)
    await world.client.do_something()
    await trio.sleep(_SETTLED_S)  # virtual time: the mock clock jumps
    seatings = world.judge.seatings()
    await world.client.do_something()
    async with trio.open_nursery() as browsers:
        for customer in world.customers:
            browsers.start_soon(customer.drain)
    await trio.sleep(_SETTLED_S)  # virtual time: the mock clock jumps
    if world.judge.seatings() != seatings:
        world.judge.wrong("channels change hands though nothing happens")
    if lingering := world.judge.lingering():
        world.judge.wrong(f"superseded and not closed: {lingering}")
    if missing := world.judge.missing():
        world.judge.wrong(f"never received: {missing}")
    for customer in world.customers:
        if customer.watch is not None and (unseen := world.customer_judge.missing(customer.watch)):
            world.judge.wrong(f"never shown to {customer.watch.session}: {unseen}")
    world.check()
    world.go_home()
    await trio.sleep(_DELIVERED_S)  # virtual time: the mock clock jumps
    world.audit(settled=True)
    world.check()
    for left in world.leftovers():
        world.judge.wrong(f"{left} was deleted, and stands in the file")
    for disagreement in world.disagreements():
        world.judge.wrong(disagreement)
