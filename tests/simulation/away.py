"""A world with one webhook endpoint under steady traffic, whose receiver is unreachable for a while."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson
import trio
from trio.testing import MockClock

from deskwire.config.config import Config
from deskwire.engine.conversations.commands import PostMessage
from deskwire.engine.conversations.conversation import Author
from deskwire.engine.core.ids import new_id
from deskwire.storage.sqlite.database import connect_reader
from tests.simulation.peers.receiver import Answer, Manner, Receiver
from tests.simulation.world import World
from tests.support.streaming import SERVER_KEY, trio_ms

_HEADERS = {"Authorization": f"Bearer {SERVER_KEY}", "Content-Type": "application/json"}
_CONVERSATIONS = 20


@dataclass
class Away:
    """The committed events and those that a receiver got, by event id; times are Trio's seconds."""

    world: World
    receiver: Receiver
    committed: dict[str, float] = field(default_factory=dict)
    arrived: dict[str, float] = field(default_factory=dict)
    news: trio.Event = field(default_factory=trio.Event)
    order: list[tuple[str, str, int]] = field(default_factory=list)

    def note_commit(self, event_id: str) -> None:
        self.committed[event_id] = trio.current_time()

    def note_arrival(self, body: bytes, answer: Answer) -> None:
        envelope = orjson.loads(body)
        if answer == "taken" and envelope["type"] == "message.created":
            self.arrived.setdefault(envelope["id"], trio.current_time())
            self.order.append((envelope["id"], envelope["data"]["conversation"]["id"], envelope["sequence"]))
            self.news.set()

    async def call(self, method: str, path: str, body: dict[str, Any]) -> Any:
        assert self.world.server is not None
        asked = self.world.server.ask(method, f"/v3{path}", _HEADERS, orjson.dumps(body))
        await asked.over.wait()
        assert asked.status == 200, asked.body
        assert asked.body is not None
        return orjson.loads(asked.body)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds in the database."""
        with closing(connect_reader(self.world._path)) as connection:
            return connection.execute(sql).fetchall()

    def leave(self, manner: Manner) -> None:
        """Make the receiver unavailable, and end its connections."""
        self.receiver.manner = manner
        for receiver, link in self.world.internet._links:
            if receiver is self.receiver:
                link.cut()

    async def all_arrived(self) -> None:
        """Return once every event has arrived. Raises TooSlowError if that takes too long."""
        with trio.fail_after(300):
            while self.committed.keys() - self.arrived.keys():
                self.news = trio.Event()
                await self.news.wait()


def live(directory: Path, script: Callable[[Away], Awaitable[None]], **settings: Any) -> None:
    """Run a script in a world of default settings with one endpoint, whose receiver is healthy at first."""

    async def life() -> None:
        async with trio.open_nursery() as nursery:
            world = World(directory, random.Random(1), nursery)
            world.config = replace(
                Config(), rate_limit_per_minute=1_000_000, rate_limit_burst=100_000, **settings
            )
            world.flaky = False
            receiver = world.internet.receivers[1]
            away = Away(world, receiver)
            receiver._arrived = lambda _receiver, _headers, body, answer: away.note_arrival(body, answer)
            await world.start()
            await world.client.register(receiver.url, ["message.created"])
            await script(away)
            nursery.cancel_scope.cancel()

    trio.run(life, clock=MockClock(autojump_threshold=0))


async def conversations(away: Away) -> list[str]:
    return [
        (await away.call("POST", "/s2s/conversations", {"contact": {"userId": f"u{number}"}}))["id"]
        for number in range(_CONVERSATIONS)
    ]


async def traffic(away: Away, ids: list[str], rate: float, until: float) -> None:
    """Post messages at this rate, to the conversations in turn."""
    number, next_at = 0, trio.current_time()
    async with trio.open_nursery() as posts:
        while next_at < until:
            await trio.sleep_until(next_at)  # virtual time: the mock clock jumps
            posts.start_soon(post, away, ids[number % len(ids)])
            number, next_at = number + 1, next_at + 1 / rate


async def post(away: Away, conversation_id: str, text: str = "x") -> None:
    """Commit a message of the contact."""
    assert away.world.server is not None
    assert away.world.server.directory is not None
    message = PostMessage(new_id("msg", trio_ms()), Author("contact", None, None), text)
    await away.world.server.directory.ask(away.world.project, conversation_id, message)


def heard(away: Away) -> None:
    """Record every message event when it is committed."""
    world = away.world
    publish = world.published

    def published(commit: Any) -> None:
        for event in commit.events:
            if event.type == "message.created":
                away.note_commit(event.id)
        publish(commit)

    world.published = published  # type: ignore[method-assign]
