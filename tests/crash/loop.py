"""Runs `kill -9` at random moments under load, repeatedly, and then checks that every promise was kept.

`make crash ROUNDS=100` or `python -m tests.crash.loop --rounds 100 --seed 7`; the exit status is 0 if they were.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import httpx
import orjson
import structlog
import trio

from deskwire.program.secret_file import present_secrets
from deskwire.storage.sqlite.check import check
from tests.crash.calls import all_of, get, id_of
from tests.crash.client import AWAY_S, Client
from tests.crash.consumer import DyingConsumer
from tests.crash.held import MARK, HeldLedger, became, drafted, hold_often, settled
from tests.crash.ledger import Found, Ledger
from tests.crash.verdict import verdict
from tests.plants.plants import plants_for
from tests.plants.serving import serving
from tests.support.floors import Floor, judged, shortfalls
from tests.support.replay.api import Api
from tests.support.replay.check import problems as channel_problems
from tests.support.replay.check import timelines
from tests.support.replay.feed import Feed
from tests.support.replay.history import FEED, STREAM, WEBHOOK, Delivery, History
from tests.support.replay.journal import Journal
from tests.support.replay.receiver import Receiver
from tests.support.sockets.server_process import Server

CLIENTS: Final = 12
AGENTS: Final = 2
"""Number of agents that hold messages, each in its own conversation."""
_LOAD_S: Final = (0.05, 1.2)
"""Shortest and longest load of a round before the kill."""
_AT_ITS_START: Final = 0.25
"""Share of starts that are killed, too."""
_START_S: Final = (0.2, 2.0)
"""How long after its begin such a start is killed, at least and at most."""
_JUDGED_MIN: Final = 4
"""The fewest acknowledged requests of a round, on average, that prove anything; two quiet cores make a hundred."""
_PATIENCE_S: Final = 60.0
_PATIENCE_WITH_PLANT_S: Final = 15.0
"""Timeout for an event that a planted bug may have lost."""
_DEATH_S: Final = 20.0
"""How long every second kill waits for the death of the consumer."""
_FOLLOW_S: Final = 0.1
_FAILING: Final = 20
"""The number of deliveries of which one is refused the first time."""
_SETTINGS: Final = {
    "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0",
    "DESKWIRE_WEBHOOK_RETRY_AFTER_S": "0.2,0.5,2",
    "DESKWIRE_ARGON2_MEMORY_KIB": "8192",
}


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run: the number of kills, requests and judged things, and the problems."""

    kills: int
    ledger: Ledger
    events: int
    connections: int
    floors: Sequence[Floor]
    problems: Sequence[str]

    def __str__(self) -> str:
        """Return the figures, and a line for each problem."""
        asked = ", ".join(
            f"{self.ledger.count(outcome):,} {outcome}" for outcome in ("acknowledged", "unknown", "refused")
        )
        figures = f"{self.kills} kills, {asked}, {self.events:,} events, {self.connections} connections of the stream"
        return "\n".join((figures, judged(self.floors), *(self.problems or ("every promise was kept",))))


async def run(directory: Path, rounds: int, seed: int, plant: str = "") -> Report:
    """Kill a server on this directory `rounds` times, and return the problems found.

    Args:
        plant: a planted bug that the server has.
    """
    server = Server(directory, "--allow-private-webhooks", environ=_SETTINGS, wrapped=serving(plant))
    patience_s = _PATIENCE_WITH_PLANT_S if plant else _PATIENCE_S
    await server.start()
    try:
        report = await _Run(server, random.Random(seed), f"crash-{seed}", patience_s).run(rounds)
        status = await server.stop()
    finally:
        await server.stop()
    left = [*report.problems, *_broken(directory / "data")]
    if status:
        left.append(f"the last stop ended with status {status}: {server.log()[-2_000:]}")
    return replace(report, problems=left)


class _Run:
    """The clients, the readers, and the loop of kills."""

    def __init__(self, server: Server, chance: random.Random, name: str, patience_s: float) -> None:
        self._server = server
        self._chance = chance
        self._name = name
        self._patience_s = patience_s
        self._ledger = Ledger()
        self._over = False
        self._kills = 0
        self._problems: list[str] = []
        demo = server.demo()
        self._key = str(demo["serverKey"])
        headers = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
        self._held = HeldLedger()
        self._desk = httpx.AsyncClient(
            base_url=f"{server.url}/v3", headers=headers, timeout=AWAY_S, trust_env=False
        )
        self._api = Api(server.url, self._key, 8, away_s=AWAY_S)
        self._journals = {name: Journal() for name in (WEBHOOK, STREAM, FEED)}
        self._receiver = Receiver(self._journals[WEBHOOK], _refuses_some)
        self._consumer = DyingConsumer(
            self._api,
            demo["projectId"],
            demo["streamKey"],
            self._journals[STREAM],
            chance,
            lambda: self._over,
        )

    async def run(self, rounds: int) -> Report:
        """Kill the server repeatedly, let everything settle, and judge."""
        async with trio.open_nursery() as watching:
            await watching.start(self._receiver.run)
            endpoint = await self._api.call(
                "POST", "/s2s/webhooks", {"url": self._receiver.url, "events": []}
            )
            await watching.start(self._consumer.run)
            feed = Feed(self._api, self._journals[FEED], None)
            conversations = [await self._opened(agent) for agent in range(AGENTS)]
            async with trio.open_nursery() as nursery:
                for number in range(CLIENTS):
                    chance = random.Random(self._chance.random())
                    client = Client(
                        self._server.url,
                        self._key,
                        f"{self._name}-{number}",
                        chance,
                        self._ledger,
                        lambda: self._over,
                    )
                    nursery.start_soon(client.run)
                for conversation in conversations:
                    name = f"{self._name}-{conversation}"
                    nursery.start_soon(
                        hold_often, self._desk, conversation, name, self._held, lambda: self._over
                    )
                nursery.start_soon(self._follow, feed)
                await self._crash_often(rounds)
                self._over = True
            waiting = await settled(self._desk, self._patience_s)
            drafts = Counter([text for each in conversations for text in await drafted(self._desk, each)])
            await feed.read()
            for name in (STREAM, WEBHOOK):
                await self._journals[name].wait_for(self._journals[FEED].ids, self._patience_s)
            found = await self._found(str(endpoint.body["id"]))
            self._problems += channel_problems(
                history := self._history(endpoint.body["secret"], found), timelines(history)
            )
            watching.cancel_scope.cancel()
        await self._api.aclose()
        await self._desk.aclose()
        texts = Counter(each["text"] for messages in found.messages.values() for each in messages)
        sent = Counter({text: count for text, count in texts.items() if MARK in text})
        self._problems += became(self._held, sent, drafts, waiting)
        floors = self._floors(rounds, found)
        self._problems += (*verdict(self._ledger, found), *shortfalls(floors))
        return Report(
            self._kills, self._ledger, len(found.events), self._consumer.connections, floors, self._problems
        )

    def _floors(self, rounds: int, found: Found) -> Sequence[Floor]:
        """Return how much of everything the verdict rests on, with the least that a slow machine reaches."""
        replays = sum(len(ask.replays) for ask in self._ledger.asks)
        least = rounds * _JUDGED_MIN
        return (
            Floor("kills", self._kills, rounds),
            Floor("acknowledged requests", self._ledger.count("acknowledged"), least),
            Floor("events", len(found.events), least),
            Floor("events by webhook", len(found.received), least),
            Floor("events by the stream", len(set(found.streamed)), least),
            Floor("answers compared with their repetition", replays, rounds // 5),
            Floor("held messages acknowledged", len(self._held.held), rounds),
            Floor("messages taken back", len(self._held.back), rounds // 5),
            Floor("deaths of the consumer", self._consumer.deaths, rounds // 5),
        )

    async def _opened(self, agent: int) -> str:
        """Return the id of a new conversation for an agent's held messages."""
        contact = {"userId": f"{self._name}{MARK}{agent}"}
        answer = await self._desk.post("/conversations", json={"contact": contact})
        assert answer.status_code == httpx.codes.OK, answer.text
        return str(answer.json()["id"])

    async def _crash_often(self, rounds: int) -> None:
        """Kill the server `rounds` times; on a busy machine up to three times as often, until enough requests are acknowledged."""
        for number in range(3 * rounds):
            if number >= rounds and self._ledger.count("acknowledged") >= rounds * _JUDGED_MIN:
                return
            deaths = self._consumer.deaths
            await trio.sleep(self._chance.uniform(*_LOAD_S))  # the load goes on
            if number % 2:
                with trio.move_on_after(_DEATH_S):
                    while self._consumer.deaths == deaths:  # noqa: ASYNC110
                        await trio.sleep(_FOLLOW_S)  # poll: there is no notification
            await self._server.kill()
            self._kills += 1
            broken = await trio.to_thread.run_sync(_broken, self._server.directory / "data")
            self._problems += (f"after kill {self._kills}: {each}" for each in broken)
            if self._chance.random() < _AT_ITS_START:
                with trio.move_on_after(self._chance.uniform(*_START_S)):
                    await self._server.start()
                await self._server.kill()
                self._kills += 1
            await self._server.start()

    async def _follow(self, feed: Feed) -> None:
        while not self._over:
            await feed.read()
            await trio.sleep(_FOLLOW_S)  # before reading the next events

    def _history(self, secret: str, found: Found) -> History:
        """Return the arguments of the demo's checks of the three channels."""
        channels = {name: journal.arrivals for name, journal in self._journals.items()}
        return History(self._name, (), channels, secret, found.states, exact=False)

    async def _found(self, endpoint: str) -> Found:
        journal = Journal()
        await Feed(self._api, journal, None).read()
        events = [arrival.body for arrival in journal.arrivals]
        ids = dict.fromkeys(str(orjson.loads(each)["data"]["conversation"]["id"]) for each in events)
        arrived = (id_of(arrival.body) for arrival in self._journals[WEBHOOK].arrivals)
        return Found(
            events=events,
            followed=[arrival.body for arrival in self._journals[FEED].arrivals],
            messages={each: await all_of(self._api, f"/s2s/conversations/{each}/messages") for each in ids},
            states={each: await get(self._api, f"/s2s/conversations/{each}") for each in ids},
            deliveries=await self._deliveries(endpoint, len(events)),
            received=list(dict.fromkeys(arrived)),
            streamed=[id_of(arrival.body) for arrival in self._journals[STREAM].arrivals],
            connections=self._consumer.connections,
        )

    async def _deliveries(self, endpoint: str, count: int) -> list[tuple[str, str, str]]:
        """Return all deliveries once none is pending; the end is recorded shortly after the arrival."""
        with trio.move_on_after(self._patience_s):
            path = f"/s2s/webhooks/{endpoint}/deliveries?status=pending"
            pending = await get(self._api, path)
            while pending["items"]:
                await trio.sleep(_FOLLOW_S)  # poll: there is no notification
                pending = await get(self._api, path)
        listed = await all_of(self._api, f"/s2s/webhooks/{endpoint}/deliveries")
        return [(each["id"], each["eventId"], each["status"]) for each in listed]


def _refuses_some(delivery: Delivery) -> int:
    """Refuse some deliveries until their second is over, always the same ones."""
    unlucky = zlib.crc32(delivery.delivery_id.encode()) % _FAILING == 0
    return 500 if unlucky and delivery.attempt == 1 else 200


def _broken(data: Path) -> list[str]:
    """Return the output of `deskwire check` for a copy of the directory after the crash."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "data"
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*.sock"))
        return [str(each) for each in check(copy, present_secrets(copy, None), contents=True).problems]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the report, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.loop", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=20, help="how often the server is killed")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--plant", default="", choices=plants_for("crash"), help="a bug to find")
    given = parser.parse_args(arguments)
    print(f"seed {given.seed}", flush=True)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("warning"))  # the receiver's own
    with tempfile.TemporaryDirectory(prefix="deskwire-crash-") as directory:
        report = trio.run(run, Path(directory), given.rounds, given.seed, given.plant)
    print(report)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
