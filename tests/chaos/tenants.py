"""Additional projects in which conversations and contacts are erased while faults occur.

Every text contains the word of its conversation, so any bytes that show an erased conversation contain its word.
Requests and answers are recorded with their times; `tests.chaos.tenancy` judges them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, Literal

import httpx
import orjson
import trio
from wsproto.utilities import LocalProtocolError

from tests.chaos.orders import made
from tests.support.replay.api import Api
from tests.support.replay.consumer import Consumer
from tests.support.replay.errors import ReplayError
from tests.support.replay.feed import PAGE
from tests.support.replay.journal import Journal
from tests.support.replay.receiver import Receiver

WRITERS: Final = 3
_MESSAGES: Final = (1, 4)
_ERASED: Final = 0.7
"""Share of the conversations that are erased."""
_PAUSE_S: Final = 0.15
_LOOK_S: Final = 0.1
_LOOKS: Final = 4
"""How often an erased conversation or contact is requested, from random nodes."""

_ATTEMPT_S: Final = 6.0
_LATER: Final = (429, 503)

Kind = Literal["conversation", "contact"]


@dataclass(eq=False)
class Life:
    """A conversation from its creation to its end.

    Args:
        word: contained in every text of the conversation, and in no other.
        messages: texts that were acknowledged.
        erased_at: when the erasure was answered, by the monotonic clock.
        shown: paths that still showed the conversation or contact after the erasure was answered.
    """

    word: str
    user: str
    conversation: str = ""
    messages: list[str] = field(default_factory=list)
    kind: Kind | None = None
    erased_at: float = inf
    shown: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the feed, and when it was requested."""

    asked_at: float
    body: bytes


@dataclass(eq=False)
class Told:
    """A record of the requests in a project and of the data that its readers were shown.

    Args:
        word: prefix of the words of all its conversations.
        last: the final feed, read in one go.
        refused: requests that the service refused without a reason, with its answers.
    """

    word: str
    lives: list[Life] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    mail: Journal = field(default_factory=Journal)
    stream: Journal = field(default_factory=Journal)
    last: list[Page] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class RefusedError(Exception):
    """Raised when a valid request was refused, such as a message for a conversation that was acknowledged."""


class Tenant:
    """A project with writers that also erase, an endpoint, a consumer and a reader of the feed.

    Args:
        api: a client of the balancer with the project's key.
        told: the record, filled during the run.
    """

    def __init__(
        self, api: Api, key: str, project: Mapping[str, Any], told: Told, chance: random.Random
    ) -> None:
        self.told = told
        self._url = f"{api.base_url}/v3/s2s/conversations"
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._api = api
        self._chance = chance
        self._receiver = Receiver(told.mail)
        self._consumer = Consumer(api, project["id"], project["streamKey"], told.stream)
        self._number = 0
        self._after = ""

    async def watch(self, task_status: trio.TaskStatus[None]) -> None:
        """Receive webhooks and consume the stream until cancelled; report `started` when both are running."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._receiver.run)
            result = await self._api.call("POST", "/s2s/webhooks", {"url": self._receiver.url, "events": []})
            assert result.outcome == "acknowledged", result.detail
            await nursery.start(self._consume)
            task_status.started()

    async def _consume(self, task_status: trio.TaskStatus[None]) -> None:
        status: trio.TaskStatus[None] = task_status
        while True:
            try:
                await self._consumer.run(task_status=status)
            except* (ReplayError, LocalProtocolError) as group:
                self.told.notes.append(f"the consumer of {self.told.word}: {group.exceptions[0]}")
            status = trio.TASK_STATUS_IGNORED
            await trio.sleep(_LOOK_S)  # a client that is refused comes back

    async def load(self, stopping: Callable[[], bool]) -> None:
        """Write and erase until `stopping` returns True, and finish the conversations that were begun."""
        over = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow, over)
            async with trio.open_nursery() as writers:
                for _ in range(WRITERS):
                    writers.start_soon(self._write, stopping)
            over.set()

    async def settle(self, patience_s: float) -> None:
        """Read the final feed, and return when the endpoint and the consumer have all its events."""
        await self._read(self.told.last)
        ids = {str(event["id"]) for page in self.told.last for event in orjson.loads(page.body)["items"]}
        for journal in (self.told.mail, self.told.stream):
            await journal.wait_for(ids, patience_s)

    # Writers

    async def _write(self, stopping: Callable[[], bool]) -> None:
        async with httpx.AsyncClient(headers=self._headers, timeout=_ATTEMPT_S, trust_env=False) as http:
            while not stopping():
                self._number += 1
                life = Life(f"{self.told.word}{self._number}end", f"user-{self._number}")
                if self._chance.random() < _ERASED:
                    life.kind = self._chance.choice(("conversation", "contact"))
                self.told.lives.append(life)
                try:
                    await self._live(http, life)
                except RefusedError as error:
                    self.told.refused.append(str(error))

    async def _live(self, http: httpx.AsyncClient, life: Life) -> None:
        """Create a conversation, write in it, and maybe erase it; each request waits for the previous answer."""
        name = (
            life.word if life.kind == "contact" else "Ada"
        )  # a contact that stays when its conversation is erased
        begun = await self._settled(
            http, "POST", "", {"contact": {"userId": life.user, "name": name}}, life.word
        )
        life.conversation = str(begun["id"])
        for number in range(self._chance.randint(*_MESSAGES)):
            text = f"{life.word} {number}"
            body = {"text": text, "author": {"type": "contact"}}
            await self._settled(http, "POST", f"/{life.conversation}/messages", body, text.replace(" ", "-"))
            life.messages.append(text)
            await trio.sleep(self._chance.random() * _PAUSE_S)  # a load of this strength
        if life.kind is None:
            return
        path = f"/{life.conversation}" if life.kind == "conversation" else f"/../contacts/{life.user}"
        await self._settled(http, "DELETE", path)
        life.erased_at = trio.current_time()
        for _ in range(_LOOKS):
            await self._look(life)
            await trio.sleep(
                self._chance.random() * _LOOK_S
            )  # so that other nodes are asked at other moments

    async def _look(self, life: Life) -> None:
        """Request erased data from a random node."""
        paths = [
            f"/s2s/conversations/{life.conversation}",
            f"/s2s/conversations/{life.conversation}/messages",
        ]
        if life.kind == "contact":
            paths.append(f"/s2s/contacts/{life.user}")
        asked = self._chance.choice(paths)
        result = await self._api.call("GET", asked, repeatable=True)
        if result.status == httpx.codes.OK:
            life.shown.append(asked)

    async def _settled(
        self, http: httpx.AsyncClient, method: str, path: str, body: Any = None, key: str = ""
    ) -> dict[str, Any]:
        """Send a request until it is carried out; accept 404 if an earlier attempt may have erased. Raises RefusedError."""
        content = b"" if body is None else orjson.dumps(body)
        headers = {"Idempotency-Key": key} if key else {}
        while True:
            try:
                answer = await http.request(method, f"{self._url}{path}", content=content, headers=headers)
            except httpx.TransportError:
                pass
            else:
                if answer.is_success or (method == "DELETE" and answer.status_code == httpx.codes.NOT_FOUND):
                    found: dict[str, Any] = answer.json()
                    return found
                if answer.status_code not in _LATER and b"idempotency_in_progress" not in answer.content:
                    raise RefusedError(f"{method} {path} was refused: {answer.status_code} {answer.text}")
            await trio.sleep(_LOOK_S)  # the service is down: poll until it is back

    # The feed

    async def _follow(self, over: trio.Event) -> None:
        while not over.is_set():
            with suppress(ReplayError):
                await self._read(self.told.pages, all_over=self._chance.random() < 0.1)
            await trio.sleep(_LOOK_S)  # before reading the next events

    async def _read(self, pages: list[Page], *, all_over: bool = True) -> None:
        """Read on from the last event, or from the beginning."""
        after = "" if all_over else self._after
        while True:
            asked_at = trio.current_time()
            behind = f"&after={after}" if after else ""
            result = await self._api.call("GET", f"/s2s/events?limit={PAGE}{behind}", repeatable=True)
            if result.outcome != "acknowledged":
                raise ReplayError(result.detail)
            pages.append(Page(asked_at, result.raw))
            if not result.body["items"]:
                break
            after = str(result.body["items"][-1]["id"])
            if result.body["nextCursor"] is None:
                break
        self._after = after


async def tenants(
    environ: Mapping[str, str],
    count: int,
    api: Callable[[str], Api],
    chance: random.Random,
) -> list[Tenant]:
    """Create projects, each with a key."""
    found = []
    for number in range(count):
        project = await made(environ, "project", "create", f"Tenant {number}")
        key = await made(environ, "key", "create", "--project", project["id"])
        told = Told(f"tenant{number}word")
        found.append(
            Tenant(api(str(key["key"])), str(key["key"]), project, told, random.Random(chance.random()))
        )
    return found
