"""A contact is merged at one of three nodes while the others write into its conversations, redact in them, or die."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.node_processes import SETTLE_S, Nodes, running_nodes
from tests.support.postgres_nodes import rows

pytestmark = pytest.mark.long

SECRET: Final = "quokka"


@dataclass
class Stage:
    """The nodes with a backend's client of each, a visitor with conversations, and the user that it is to become."""

    nodes: Nodes
    clients: list[httpx.AsyncClient]
    visitor: str = ""
    user: str = ""
    conversations: list[str] = field(default_factory=list)
    secrets: list[dict[str, Any]] = field(default_factory=list)
    texts: Counter[str] = field(default_factory=Counter)

    async def plant(self, conversations: int) -> None:
        self.visitor, self.user = [
            (await self.done(0, "PUT", f"/s2s/contacts/{each}", email=f"{each}@shop.test"))["id"]
            for each in ("visitor", "user")
        ]
        for number in range(conversations):
            contact = {"userId": "visitor"}
            made = await self.done(number % len(self.clients), "POST", "/s2s/conversations", contact=contact)
            self.conversations.append(made["id"])
            self.secrets.append(await self.say(number % len(self.clients), made["id"], f"{SECRET} {number}"))

    async def done(self, node: int, method: str, path: str, **body: Any) -> dict[str, Any]:
        """The answer to a call that is to succeed, even if the node says that it should be made again."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                answer = await self.clients[node].request(method, path, json=body)
                if answer.status_code != 503:
                    assert answer.status_code == 200, answer.text
                    said: dict[str, Any] = answer.json()
                    return said
                await trio.sleep(0.1)  # the client's own pause

    async def say(self, node: int, conversation: str, text: str) -> dict[str, Any]:
        """Have the contact write, once."""
        path, once = f"/s2s/conversations/{conversation}/messages", {"Idempotency-Key": text}
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                answer = await self.clients[node].post(path, json={"text": text}, headers=once)
                if answer.status_code not in (409, 503):
                    assert answer.status_code == 200, answer.text
                    self.texts[text] += 1
                    said: dict[str, Any] = answer.json()
                    return said
                await trio.sleep(0.1)  # the client's own pause

    async def write(self, node: int) -> None:
        """Write into each conversation, and begin others as the visitor that may be gone by then."""
        for number, conversation in enumerate(self.conversations):
            await self.say(node, conversation, f"{node} {number}")
            if number % 10 == 0:
                await self.done(node, "POST", "/s2s/conversations", contact={"userId": "visitor"})

    async def redact(self, node: int) -> None:
        """Redact the first message of each conversation."""
        for said in self.secrets:
            path = f"/s2s/conversations/{said['conversationId']}/messages/{said['id']}/redact"
            await self.done(node, "POST", path, text=True)
            del self.texts[said["text"]]
            self.texts[""] += 1

    async def merge(self, node: int) -> None:
        """Ask for the merge until it is over. A visitor who came back in the meantime is a new contact, and may be merged too."""
        await self.done(node, "POST", "/s2s/contacts/user/merge", **{"from": "visitor"})

    async def over(self, node: int) -> None:
        """Return once the first visitor's merge is over."""
        with trio.fail_after(HANG_TIMEOUT_S):
            while True:
                told = await self.told(node, "contact.merged")
                if any(each["merged"]["id"] == self.visitor for each in told):
                    return
                await trio.sleep(0.1)  # the client's own pause

    async def told(self, node: int, kind: str) -> list[Mapping[str, Any]]:
        """The data of all events of a type."""
        found: list[Mapping[str, Any]] = []
        after: dict[str, str] = {}
        while True:
            answer = await self.clients[node].get(
                "/s2s/events", params={"types": kind, "limit": "200", **after}
            )
            items = answer.json()["items"] if answer.status_code == 200 else []
            found += [each["data"] for each in items]
            if not items:
                return found
            after = {"after": items[-1]["id"]}

    async def check(self, node: int) -> None:
        """At this node all of it is the user's, told once and in order; nothing that was redacted is left."""
        texts, http = Counter[str](), self.clients[node]
        moved = Counter(
            each["conversation"]["id"]
            for each in await self.told(node, "conversation.updated")
            if each["changed"] == ["contact"]
        )
        assert {each: moved[each] for each in self.conversations} == dict.fromkeys(self.conversations, 1)
        for conversation in self.conversations:
            path = f"/s2s/conversations/{conversation}"
            found = (await http.get(path)).json()
            events = (await http.get(f"{path}/events", params={"limit": "200"})).json()["items"]
            messages = (await http.get(f"{path}/messages", params={"limit": "200"})).json()["items"]
            assert found["contact"]["id"] == self.user
            assert [each["sequence"] for each in events] == [*range(1, found["sequence"] + 1)]
            whose = [each["data"]["conversation"]["contact"]["id"] for each in events]
            at = [each["data"].get("changed") for each in events].index(["contact"])
            assert set(whose[:at]) == {self.visitor}
            assert set(whose[at:]) == {self.user}
            for event in events:
                if event["type"] == "message.created":
                    author = event["data"]["message"]["author"]["id"]
                    assert author == event["data"]["conversation"]["contact"]["id"]
            assert [each["index"] for each in messages] == [*range(len(messages))]
            texts.update(each["text"] for each in messages)
            assert SECRET not in str(messages)
            assert SECRET not in str(events)
        assert texts == self.texts
        merged = Counter(each["merged"]["id"] for each in await self.told(node, "contact.merged"))
        assert merged[self.visitor] == 1
        assert set(merged.values()) == {1}


@asynccontextmanager
async def staged(directory: Path, conversations: int) -> AsyncIterator[Stage]:
    async with running_nodes(directory) as nodes, AsyncExitStack() as stack:
        each = range(len(nodes.servers))
        clients = [await stack.enter_async_context(nodes.client(node, nodes.key)) for node in each]
        stage = Stage(nodes, clients)
        await stage.plant(conversations)
        yield stage


async def test_merge_beside_writers_and_redactions_at_other_nodes_is_complete_on_each(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, 30) as stage:
        async with trio.open_nursery() as nursery:
            for node in (1, 2):
                nursery.start_soon(stage.write, node)
            nursery.start_soon(stage.redact, 2)
            for node in (0, 1):
                nursery.start_soon(stage.merge, node)
        for node in range(3):
            await stage.check(node)


async def test_another_node_finishes_the_merge_of_a_killed_node_beside_writers(tmp_path: Path) -> None:
    async with staged(tmp_path, 80) as stage:
        await trio.sleep(SETTLE_S)  # nodes judge others once they have been there for as long as a lease
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.write, 1)
            nursery.start_soon(stage.redact, 2)
            nursery.start_soon(_asked, stage.clients[0])
            while not rows(stage.nodes.url, "SELECT 1 FROM contacts WHERE erasing = 2"):  # noqa: ASYNC110
                await trio.sleep(0.005)  # poll: there is no notification
            await stage.nodes.servers[0].kill()
        await stage.over(2)
        for node in (1, 2):
            await stage.check(node)


async def _asked(http: httpx.AsyncClient) -> None:
    """Ask for the merge at a node that is killed during it."""
    with pytest.raises(httpx.TransportError):
        await http.post("/s2s/contacts/user/merge", json={"from": "visitor"})
