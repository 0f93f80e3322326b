"""A run: nodes under load and faults, and the recorded history for the verdict."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson
import psycopg
import trio
from wsproto.utilities import LocalProtocolError

from tests.chaos.database import Pair, pair
from tests.chaos.faults import AT_ONCE, OF_DATABASE, OF_NODES, SLACK_S, Happening, Stage, happen
from tests.chaos.network import relaying
from tests.chaos.node import Balancer, Node
from tests.chaos.orders import broken_rules
from tests.chaos.rivals import Rivals
from tests.chaos.tenancy import words_in
from tests.chaos.tenants import Tenant, tenants
from tests.chaos.verdict import (
    Fault,
    History,
    Mailbox,
    Rows,
    erased,
    floors,
    holders,
    least_writes,
    pause,
    problems,
)
from tests.chaos.writer import Writer
from tests.crash.calls import all_of, get, id_of
from tests.crash.ledger import Found, Ledger
from tests.interop.client import Client, Launch
from tests.support.floors import judged
from tests.support.replay.api import Api, Result
from tests.support.replay.consumer import Consumer
from tests.support.replay.errors import ReplayError
from tests.support.replay.feed import Feed
from tests.support.replay.history import Delivery
from tests.support.replay.journal import Journal
from tests.support.replay.receiver import Receiver

WRITERS: Final = 10
RECEIVERS: Final = 3
TENANTS: Final = 2
"""Number of projects beside the main one; conversations and contacts are erased in these."""
_PAUSE_S: Final = 0.05
"""Pause between two requests of a writer: the load is there to be disturbed, not to saturate the machine."""
_AWAY_S: Final = 300.0
_SETTLED_S: Final = 3.0
_FOLLOW_S: Final = 0.1
_FAILING: Final = 20
"""One in this many deliveries is refused at its first attempt."""
_BETWEEN_S: Final = (0.3, 2.5)
_SECOND: Final = 0.25
"""Share of faults that coincide with another one."""
SECRET: Final = "the secret of an installation with several nodes"
_SETTINGS: Final = {
    "DESKWIRE_RATE_LIMIT_PER_MINUTE": "0",
    "DESKWIRE_WEBHOOK_RETRY_AFTER_S": "0.2,0.5,2",
    "DESKWIRE_ARGON2_MEMORY_KIB": "8192",
    "DESKWIRE_SECRET": SECRET,
}
_NOT_NOW: Final = (429, 503)
_READY_S: Final = 300.0
"""The longest time until all nodes are ready, on a busy machine."""
_COUNTS_S: Final = 15.0
_ENOUGH_S: Final = 60.0
"""Timeout after the last fault until enough writes are acknowledged."""


def _quiet(_: str) -> None:
    """Drop a line of progress, because a test shows its report when it fails."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run."""

    history: History
    problems: Sequence[str]
    notes: Sequence[str]

    def __str__(self) -> str:
        """Return the figures, the faults with the longest pause after each, and a line for each problem."""
        ledger, found = self.history.ledger, self.history.found
        asked = ", ".join(f"{ledger.count(each):,} {each}" for each in ("acknowledged", "unknown", "refused"))
        posts = sum(len(box.arrivals) for box in self.history.mailboxes)
        deliveries = sum(len(box.deliveries) for box in self.history.mailboxes)
        replays = sum(len(ask.replays) for ask in ledger.asks)
        figures = (
            f"{len(self.history.faults)} faults, {asked}, {replays:,} replays, {len(found.events):,} events, "
            f"{posts:,} posts of {deliveries:,} deliveries, {found.connections} connections of the stream, "
            f"{len(holders(self.history))} holders of the channel that rivals fought for, "
            f"{erased(self.history):,} erasures in other projects"
        )
        times = sorted(ask.settled_at for ask in ledger.asks if ask.outcome == "acknowledged")
        faults = (f"  {each.name}: longest pause {pause(times, each):.1f} s" for each in self.history.faults)
        notes = (f"  note: {note}" for note in self.notes)
        return "\n".join(
            (
                figures,
                *faults,
                *notes,
                judged(floors(self.history)),
                *(self.problems or ("every promise was kept",)),
            )
        )


class PatientApi(Api):
    """An API client that survives longer outages than the demo's client does."""

    async def call(self, method: str, path: str, body: Any = None, *, repeatable: bool = False) -> Result:
        """See `Api.call`."""
        end = trio.current_time() + _AWAY_S
        while True:
            result = await super().call(method, path, body, repeatable=repeatable)
            if result.status not in _NOT_NOW or trio.current_time() > end:
                return result


class Run:
    """One run in a directory.

    Args:
        nodes: the number of nodes on PostgreSQL; with `sqlite` there is one.
        script: faults to cause one after the other, before the random ones.
        seconds: how long random faults are caused.
        synchronous: whether commits wait for the standby.
        launch: starts a published client, which then follows a conversation that all writers share.
        patience_s: how long to wait for missing events after the last fault.
        slack_s: added to each allowed pause, because the machine may be busy.
        report: called with each fault as it ends, and with the counts every fifteen seconds.
    """

    def __init__(
        self,
        directory: Path,
        seed: int,
        *,
        seconds: float = 0.0,
        script: Sequence[Happening] = (),
        nodes: int = 3,
        sqlite: bool = False,
        synchronous: bool = True,
        launch: Launch | None = None,
        patience_s: float = 120.0,
        slack_s: float = SLACK_S,
        report: Callable[[str], None] = _quiet,
    ) -> None:
        self._directory = directory
        self._chance = random.Random(seed)
        self._name = f"chaos-{seed}"
        self._seconds = seconds
        self._script = script
        self._count = 1 if sqlite else nodes
        self._sqlite = sqlite
        self._synchronous = synchronous
        self._launch = launch
        self._patience_s = patience_s
        self._slack_s = slack_s
        self._report = report
        self._began = 0.0
        self._stopped = False
        self._ledger = Ledger()
        self._shared: list[str] = []
        self._over = False
        self._faults: list[Fault] = []
        self._notes: list[str] = []
        self._problems: list[str] = []
        self._journals = [Journal() for _ in range(RECEIVERS)]
        self._receivers = [Receiver(journal, _answered) for journal in self._journals]
        self._stream, self._feed = Journal(), Journal()
        self._spectator: Client | None = None
        self._apis: list[Api] = []

    def stop(self) -> None:
        """Cause no further faults; the run settles and is judged as it is."""
        self._stopped = True

    def seen(self) -> str:
        """Return everything so far, for a run that can't be judged: counts, faults, notes and problems."""
        faults = [f"  {each.name}" for each in self._faults]
        notes = [f"  note: {note}" for note in self._notes]
        return "\n".join((self._counts(), *faults, *notes, *self._problems))

    def _counts(self) -> str:
        ledger = self._ledger
        asked = ", ".join(f"{ledger.count(each):,} {each}" for each in ("acknowledged", "unknown", "refused"))
        return f"{len(self._faults)} faults, {asked}, {len(self._feed.arrivals):,} events read"

    def _say(self, words: str) -> None:
        self._report(f"{trio.current_time() - self._began:7.1f} s  {words}")

    async def run(self) -> Report:
        """Carry out the run and judge it."""
        self._began = trio.current_time()
        async with AsyncExitStack() as stack:
            database: Pair | None = None
            if not self._sqlite:
                database = await stack.enter_async_context(pair(self._count, synchronous=self._synchronous))
            nodes = [self._node(number, database) for number in range(self._count)]
            balancer = Balancer(nodes)
            await stack.enter_async_context(relaying(balancer.relay))
            stage = Stage(nodes, balancer, database, self._chance)
            try:
                for node in nodes:
                    await node.begin()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(balancer.watch)
                    for node in nodes:
                        nursery.start_soon(node.watch)
                    nursery.start_soon(self._count_aloud)
                    history = await self._play(stage)
                    nursery.cancel_scope.cancel()
            finally:
                with trio.CancelScope(shield=True):
                    for node in nodes:
                        if status := await node.finish():
                            self._complain(f"{node.name} ended with status {status}: {node.log()[-2_000:]}")
            self._problems += await broken_rules(_operator(database, nodes[0]))
        for node in nodes:
            if "Traceback" in node.log():
                self._complain(f"{node.name} has logged a traceback; see {node.directory}")
        return Report(history, [*self._problems, *problems(history)], self._notes)

    def _node(self, number: int, database: Pair | None) -> Node:
        environ = dict(_SETTINGS)
        if database is not None:
            environ |= {"DESKWIRE_NODE": f"node-{number}", "DESKWIRE_DATABASE_URL": database.url(number)}
        directory = self._directory / f"node-{number}"
        return Node(
            directory,
            "--allow-private-webhooks",
            environ=environ,
            complain=self._complain,
            note=self._note,
        )

    def _complain(self, problem: str) -> None:
        self._problems.append(problem)
        self._say(f"PROBLEM: {problem}")

    def _note(self, note: str) -> None:
        self._notes.append(note)
        self._say(f"note: {note}")

    async def _count_aloud(self) -> None:
        while True:
            await trio.sleep(_COUNTS_S)  # between two lines of progress
            self._say(self._counts())

    async def _play(self, stage: Stage) -> History:
        demo = stage.nodes[0].demo()
        key = str(demo["serverKey"])
        api = self._api(stage.balancer.url, key)
        with trio.fail_after(_READY_S):
            await stage.balancer.all_reachable()
        self._say(f"{self._count} nodes are ready")
        others = await self._tenants(stage)
        consumer = Consumer(api, demo["projectId"], demo["streamKey"], self._stream)
        async with trio.open_nursery() as watching:
            for receiver in self._receivers:
                await watching.start(receiver.run)
            endpoints = [
                await api.call("POST", "/s2s/webhooks", {"url": each.url, "events": []})
                for each in self._receivers
            ]
            await watching.start(self._consume, consumer)
            for each in others:
                await watching.start(each.watch)
            feed = Feed(api, self._feed, None)
            rivals, contested = await self._rivals(api, demo["streamKey"])
            watching.start_soon(rivals.run, lambda: self._over)
            if self._launch is not None:
                self._spectator = await _spectator(self._launch, stage.balancer, demo, contested)
                watching.start_soon(_subscribe_again, self._spectator, contested)
            async with trio.open_nursery() as load:
                for number in range(WRITERS):
                    load.start_soon(self._writer(stage.balancer.url, key, number).run)
                for each in others:
                    load.start_soon(each.load, lambda: self._over)
                load.start_soon(self._follow, feed)
                await self._happen(stage)
                self._over = True
            self._say("no further fault: waiting until everything has arrived")
            with trio.fail_after(_READY_S):
                await stage.balancer.all_reachable()
            await self._settle(feed)
            for each in others:
                await each.settle(self._patience_s)
                self._notes += each.told.notes
            history = await self._history(api, endpoints, consumer, rivals, contested, stage)
            watching.cancel_scope.cancel()
        for connected in self._apis:
            await connected.aclose()
        left = {} if stage.pair is None else await _left(stage.pair)
        return replace(
            history,
            tenants=[each.told for each in others],
            left=left,
            scripted=len(self._script),
            seconds=self._seconds,
        )

    async def _tenants(self, stage: Stage) -> list[Tenant]:
        environ = _operator(stage.pair, stage.nodes[0])
        count = TENANTS if self._synchronous else 0  # their checks assume that acknowledged writes survive
        return await tenants(environ, count, partial(self._api, stage.balancer.url), self._chance)

    def _api(self, url: str, key: str) -> Api:
        self._apis.append(api := PatientApi(url, key, 16, away_s=_AWAY_S))
        return api

    async def _rivals(self, api: Api, stream_key: str) -> tuple[Rivals, str]:
        """Return rivals for the channel of a contact, and the contact's conversation, which the writers share."""
        first = self._writer(api.base_url, "", 0, name="first")
        ask = first.next()
        result = await api.call(
            "POST", "/s2s/conversations", {"contact": {"userId": ask.mark, "name": "Ada"}}
        )
        assert result.outcome == "acknowledged", result.detail
        ask.outcome, ask.answer, ask.conversation = "acknowledged", result.raw, str(result.body["id"])
        ask.settled_at = trio.current_time()
        self._ledger.asks.append(ask)
        self._shared.append(ask.conversation)
        channel = f"private-contact-{ask.mark}"
        return Rivals(api, stream_key, channel, random.Random(self._chance.random())), ask.conversation

    def _writer(self, url: str, key: str, number: int, name: str = "") -> Writer:
        return Writer(
            url,
            key,
            f"{self._name}-{name or number}",
            random.Random(self._chance.random()),
            self._ledger,
            self._shared,
            lambda: self._over,
            _PAUSE_S,
        )

    async def _consume(self, consumer: Consumer, task_status: trio.TaskStatus[None]) -> None:
        try:
            await consumer.run(task_status=task_status)
        except* (ReplayError, LocalProtocolError) as group:
            self._note(f"the consumer: {group.exceptions[0]}")
        while True:
            try:
                await consumer.run()
            except* (ReplayError, LocalProtocolError) as group:
                self._note(f"the consumer: {group.exceptions[0]}")
            await trio.sleep(_FOLLOW_S)  # a client that is refused comes back

    async def _follow(self, feed: Feed) -> None:
        while not self._over:
            await self._read(feed)
            await trio.sleep(_FOLLOW_S)  # before reading the next events

    async def _settle(self, feed: Feed) -> None:
        """Return when every reader has all events, and no abandoned request is still being carried out."""
        known = -1
        while known != len(self._feed.arrivals):
            known = len(self._feed.arrivals)
            for journal in (self._stream, *self._journals):
                await journal.wait_for(self._feed.ids, self._patience_s)
            await trio.sleep(_SETTLED_S)  # a request whose sender gave up may still be under way
            await self._read(feed)

    async def _read(self, feed: Feed) -> None:
        try:
            await feed.read()
        except ReplayError as error:
            self._complain(f"the feed: {error}")

    # Faults

    async def _happen(self, stage: Stage) -> None:
        await trio.sleep(1.0)  # some load first
        for what in self._script:
            await self._do(stage, what)
            await trio.sleep(self._chance.uniform(*_BETWEEN_S))  # the load goes on
        began = trio.current_time()
        kinds = (*OF_NODES, *(OF_DATABASE if stage.pair is not None else ()))
        deck: list[Happening] = []
        while trio.current_time() < began + self._seconds and not self._stopped:
            if not deck:
                deck = self._chance.sample(kinds, len(kinds))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._one, stage, deck.pop())
                if self._chance.random() < _SECOND:
                    second = self._chance.choice([each for each in kinds if each in AT_ONCE])
                    nursery.start_soon(self._one, stage, second)
            await trio.sleep(self._chance.uniform(*_BETWEEN_S))  # the load goes on
        self._seconds = min(self._seconds, trio.current_time() - began)  # less if it was stopped
        await self._go_on(least_writes(len(self._script), self._seconds))

    async def _go_on(self, writes: int) -> None:
        """Keep up the load until enough writes are acknowledged for a verdict, which takes longer on a busy machine."""
        with trio.move_on_after(_ENOUGH_S):
            while self._ledger.count("acknowledged") < writes:  # noqa: ASYNC110
                await trio.sleep(_FOLLOW_S)  # poll: there is no notification

    async def _one(self, stage: Stage, what: Happening) -> None:
        try:
            await self._do(stage, what)
        except (OSError, psycopg.OperationalError) as error:  # another fault was quicker
            self._note(f"{what.__name__} could not be done: {error!r}")

    async def _do(self, stage: Stage, what: Happening) -> None:
        self._faults.append(fault := await happen(stage, what, self._slack_s))
        self._say(fault.name)

    # The final history

    async def _history(
        self,
        api: Api,
        endpoints: Sequence[Result],
        consumer: Consumer,
        rivals: Rivals,
        contested: str,
        stage: Stage,
    ) -> History:
        journal = Journal()
        await Feed(api, journal, None).read()
        events = [arrival.body for arrival in journal.arrivals]
        conversation_of = [str(orjson.loads(each)["data"]["conversation"]["id"]) for each in events]
        ids = dict.fromkeys(conversation_of)
        boxes = [
            await self._mailbox(api, endpoint, each)
            for endpoint, each in zip(endpoints, self._journals, strict=True)
        ]
        found = Found(
            events=events,
            followed=[arrival.body for arrival in self._feed.arrivals],
            messages={each: await all_of(api, f"/s2s/conversations/{each}/messages") for each in ids},
            states={each: await get(api, f"/s2s/conversations/{each}") for each in ids},
            deliveries=boxes[0].deliveries,
            received=list(dict.fromkeys(id_of(arrival.body) for arrival in boxes[0].arrivals)),
            streamed=[id_of(arrival.body) for arrival in self._stream.arrivals],
            connections=consumer.connections,
        )
        channel = [
            id_of(body) for body, whose in zip(events, conversation_of, strict=True) if whose == contested
        ]
        project = str(stage.nodes[0].demo()["projectId"])
        rows = None if stage.pair is None else await _rows(stage.pair, project)
        history = History(self._ledger, found, boxes, rivals.holds, channel, self._faults, rows)
        if self._spectator is None:
            return history
        last = [body for body, whose in zip(events, conversation_of, strict=True) if whose == contested][-1]
        with trio.move_on_after(self._patience_s):
            await _given(self._spectator, last.decode())
        subscriptions = len(self._spectator.told("subscribed"))
        return replace(history, seen=self._spectator.events, subscriptions=subscriptions)

    async def _mailbox(self, api: Api, endpoint: Result, journal: Journal) -> Mailbox:
        path = f"/s2s/webhooks/{endpoint.body['id']}/deliveries"
        with trio.move_on_after(self._patience_s):
            pending = await get(api, f"{path}?status=pending")
            while pending["items"]:
                await trio.sleep(_FOLLOW_S)  # poll: there is no notification
                pending = await get(api, f"{path}?status=pending")
        arrivals = [each for each in journal.arrivals if isinstance(each, Delivery)]
        listed = await all_of(api, path)
        return Mailbox(
            str(endpoint.body["secret"]),
            arrivals,
            frozenset((each.delivery_id, each.attempt) for each in arrivals if _answered(each) != 200),
            [(each["id"], each["eventId"], each["status"]) for each in listed],
        )


def _operator(database: Pair | None, node: Node) -> dict[str, str]:
    """Return the environment for an operator's commands."""
    if database is None:
        return {"DESKWIRE_SECRET": SECRET, "DESKWIRE_DATA": str(node.directory / "data")}
    return {"DESKWIRE_SECRET": SECRET, "DESKWIRE_DATABASE_URL": database.direct_url}


async def _spectator(launch: Launch, balancer: Balancer, demo: dict[str, Any], conversation: str) -> Client:
    """Start pusher-js, subscribed to a conversation's channel."""
    client = await launch("client.mjs")
    await client.do(
        "connect",
        key=demo["streamKey"],
        port=balancer.relay.port,
        endpoint=f"{balancer.url}/v3/s2s/stream/auth",
        serverKey=demo["serverKey"],
        fields={"consumerId": "spectator"},
        authorization="form",
        options={},
    )
    await client.do("subscribe", channel=f"private-conversation-{conversation}")
    await client.subscribed()
    return client


async def _subscribe_again(client: Client, conversation: str) -> None:
    """Repeat refused subscriptions, which pusher-js leaves to its user."""
    refused = 0
    while True:
        await trio.sleep(1)  # a pause between two attempts
        if len(client.told("refused")) > refused:
            refused = len(client.told("refused"))
            await client.do("unsubscribe", channel=f"private-conversation-{conversation}")
            await client.do("subscribe", channel=f"private-conversation-{conversation}")


async def _given(client: Client, last: str) -> None:
    """Return once the client has received this envelope."""
    while True:
        if last in client.events:
            return
        await trio.sleep(1)  # poll: there is no notification


def _answered(delivery: Delivery) -> int:
    """Return 500 for the first attempt of some deliveries, always the same ones, and 200 for all others."""
    unlucky = zlib.crc32(delivery.delivery_id.encode()) % _FAILING == 0
    return 500 if unlucky and delivery.attempt == 1 else 200


async def _rows(database: Pair, project: str) -> Rows:
    ((rowid, head),) = await database.run(
        f"SELECT h.project, h.position FROM project_heads h JOIN projects p ON p.rowid = h.project WHERE p.id = '{project}'"
    )
    events = await database.run(
        f"SELECT position, id FROM events WHERE position >> 40 = {rowid} ORDER BY position"
    )
    doubled = await database.run(
        "SELECT delivery::text || ' attempt ' || number FROM attempts GROUP BY delivery, number HAVING count(*) > 1"
    )
    return Rows([(position, name) for position, name in events], head, [each for (each,) in doubled])


async def _left(database: Pair) -> dict[str, list[str]]:
    """Return, for each table, the words of the additional projects' conversations in its rows."""
    tables = await database.run("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    return {
        name: words_in(await database.run(f'SELECT CAST(t AS text) FROM "{name}" t')) for (name,) in tables
    }
