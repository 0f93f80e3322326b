"""SIGKILL while messages are redacted, and while a contact is merged: acknowledged work holds, the rest is complete or continues."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.program.secret_file import present_secrets
from deskwire.storage.sqlite.check import check
from tests.support.api.planted_texts import holding
from tests.support.sockets.server_process import LOOK_S, Server

pytestmark = pytest.mark.long

MESSAGES: Final = 60
KILLS: Final = 3
CONVERSATIONS, TICKETS, RESPONSES = 120, 130, 30
SURVEY: Final = {
    "schemaVersion": "2.0",
    "title": "After the chat",
    "languages": ["en"],
    "primaryLanguage": "en",
    "questions": [{"id": "score", "type": "nps", "title": {"en": "Would you recommend us?"}}],
}


def backend(server: Server) -> httpx.AsyncClient:
    """A client with the demo's server key."""
    headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
    return httpx.AsyncClient(base_url=f"{server.url}/v3", headers=headers, trust_env=False, timeout=30)


async def done(http: httpx.AsyncClient, method: str, path: str, **body: Any) -> dict[str, Any]:
    """The answer to a call that is to succeed."""
    answer = await http.request(method, path, json=body or None)
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def everything(http: httpx.AsyncClient, path: str, **params: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await http.get(path, params={"limit": "200", **params, **cursor})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += page["items"]
        if page["nextCursor"] is None:
            return found
        cursor = {"cursor": page["nextCursor"]}


class Redacting:
    """Messages with a word each, which go one after the other until the service is killed; `answered` are those that went."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.words: dict[str, dict[str, Any]] = {}
        self.answered: set[str] = set()

    async def plant(self) -> None:
        async with backend(self.server) as http:
            for number in range(MESSAGES):
                made = await done(http, "POST", "/s2s/conversations", contact={"userId": f"u{number % 7}"})
                word = f"mk{number:03}{random.Random(number).randrange(10**9):09}km"
                path = f"/s2s/conversations/{made['id']}/messages"
                said = await done(http, "POST", path, text=f"It is {word}, please")
                self.words[word] = said
                await done(http, "POST", path, text="behind it")

    async def redact(self, words: list[str], enough: int) -> None:
        """Redact or delete these, four at once, and kill the service in the middle of the calls after the first answers."""
        came, waiting = trio.Event(), iter(words)

        async def one_by_one() -> None:
            async with backend(self.server) as http:
                for word in waiting:
                    try:
                        await self.take_away(http, word)
                    except httpx.TransportError:
                        return
                    self.answered.add(word)
                    if len(self.answered) >= enough:
                        came.set()

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(one_by_one)
            with trio.fail_after(60):
                await came.wait()
            await self.server.kill()

    async def take_away(self, http: httpx.AsyncClient, word: str) -> None:
        said = self.words[word]
        path = f"/s2s/conversations/{said['conversationId']}/messages/{said['id']}"
        if int(word[2:5]) % 2:
            await done(http, "POST", f"{path}/redact", ranges=[{"start": 6, "end": 6 + len(word)}])
        else:
            answer = await http.delete(path)
            assert answer.status_code in (200, 404), answer.text  # 404: it was done without a response

    async def is_whole(self, http: httpx.AsyncClient, word: str) -> bool:
        """Return whether the message is gone. Raises AssertionError if two of the views of it differ."""
        said = self.words[word]
        path = f"/s2s/conversations/{said['conversationId']}"
        shown = await everything(http, f"{path}/messages")
        events = (await done(http, "GET", f"{path}/events?limit=200"))["items"]
        assert [each["sequence"] for each in events] == [*range(1, len(events) + 1)]
        gone = not any(word in each["text"] for each in shown)
        told = [event for event in events if event["data"].get("changed") == ["messages"]]
        assert len(told) == gone, events
        assert any(word in str(event) for event in events) is not gone
        return gone


async def test_redaction_survives_a_kill_completely_or_not_at_all(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path)
    try:
        await server.start()
        redacting = Redacting(server)
        await redacting.plant()
        for kill in range(KILLS):
            left = [word for word in redacting.words if word not in redacting.answered]
            await redacting.redact(left, len(redacting.answered) + 4 + 5 * kill)
            await server.start()
            async with backend(server) as http:
                for word in redacting.words:
                    gone = await redacting.is_whole(http, word)
                    assert gone or word not in redacting.answered, "answered, and back again"
            await erased(server, redacting.answered)
        async with backend(server) as http:
            for word in redacting.words:
                await redacting.take_away(http, word)
                assert await redacting.is_whole(http, word)
        await erased(server, set(redacting.words))
    finally:
        status = await server.stop()
    assert status == 0, server.log()
    data = server.directory / "data"
    assert check(data, present_secrets(data, None), contents=True).problems == []


async def erased(server: Server, words: set[str]) -> None:
    """Return once no file has one of the words: the next start finishes an overwrite that a kill interrupted."""
    marks = [word.encode() for word in words]
    with trio.move_on_after(30):
        while holding(server.directory / "data", *marks):  # noqa: ASYNC110  # files do not notify
            await trio.sleep(LOOK_S)
    assert holding(server.directory / "data", *marks) == []


class Merging:
    """A visitor with much that belongs to it, and the user that it is to become."""

    def __init__(self, server: Server) -> None:
        demo = server.demo()
        self.server = server
        self.desk = {"Authorization": f"Bearer {demo['token']}", "project": demo["projectId"]}
        self.conversations: dict[str, int] = {}
        self.tickets: set[str] = set()
        self.survey = self.visitor = self.user = ""

    async def plant(self) -> None:
        async with backend(self.server) as http:
            made = [
                await done(http, "PUT", f"/s2s/contacts/{each}", name=None, email=f"{each}@shop.test")
                for each in ("visitor", "user")
            ]
            self.visitor, self.user = (each["id"] for each in made)
            for _ in range(CONVERSATIONS):
                body = {"contact": {"userId": "visitor"}, "message": {"text": "Hello"}}
                conversation = await done(http, "POST", "/s2s/conversations", **body)
                self.conversations[conversation["id"]] = conversation["sequence"]
            http.headers.update(self.desk)
            for number in range(TICKETS):
                ticket = await done(http, "POST", "/tickets", title=f"{number}", contactId=self.visitor)
                self.tickets.add(ticket["id"])
            survey = await done(http, "POST", "/engagement/surveys", name="After", definition=SURVEY)
            self.survey = survey["id"]
            await done(http, "POST", f"/sessions/{self.visitor}/memory", name="plan", content="Gold")
        async with backend(self.server) as http:
            for _ in range(RESPONSES):
                given: dict[str, Any] = {"contact": {"userId": "visitor"}, "answers": {"score": 9}}
                await done(http, "POST", f"/s2s/surveys/{self.survey}/responses", **given)

    async def ask(self, answers: list[int]) -> None:
        """Ask for the merge until the service is killed, and note what is answered."""
        async with backend(self.server) as http:
            try:
                answer = await http.post("/s2s/contacts/user/merge", json={"from": "visitor"})
            except httpx.TransportError:
                return
            answers.append(answer.status_code)

    async def begun(self, enough: int) -> int:
        """The number of conversations that have moved, once that is enough of them, or all."""
        async with backend(self.server) as http:
            with trio.fail_after(60):
                while True:
                    moved = [each for each in await self.of("user", http) if each["id"] in self.conversations]
                    if len(moved) >= enough:
                        return len(moved)
                    await trio.sleep(0.005)  # poll: there is no notification

    async def of(self, user: str, http: httpx.AsyncClient) -> list[dict[str, Any]]:
        return await everything(http, f"/s2s/contacts/{user}/conversations")

    async def check(self) -> None:
        """All of it is the user's, each change has one event, and nothing of the visitor is left."""
        async with backend(self.server) as http:
            query = {"types": "contact.merged,contact.updated,conversation.updated", "limit": "200"}
            with trio.fail_after(60):
                told = await http.get("/s2s/events", params=query)
                while "contact.merged" not in told.text:
                    await trio.sleep(LOOK_S)  # poll: the merge continues without a call
                    told = await http.get("/s2s/events", params=query)
            events = told.json()["items"]
            kinds = [event["type"] for event in events]
            moved = [event["data"] for event in events if event["type"] == "conversation.updated"]
            assert {each["conversation"]["id"] for each in moved} == self.conversations.keys()
            assert len(moved) == CONVERSATIONS
            assert all(each["changed"] == ["contact"] for each in moved)
            assert kinds.count("contact.merged") == 1
            assert kinds[-2:] == ["contact.updated", "contact.merged"]
            last = events[-2]["data"]["contact"]
            assert (last["id"], last["email"]) == (self.visitor, None)
            found = {each["id"]: each for each in await self.of("user", http)}
            assert {name: each["sequence"] - 1 for name, each in found.items()} == self.conversations
            gone = await http.get("/s2s/contacts/visitor")
            assert (gone.status_code, gone.json()["code"]) == (404, "contact_merged")
            await done(http, "POST", "/s2s/contacts/user/merge", **{"from": "visitor"})  # repeated
            again = (await http.get("/s2s/events", params={**query, "after": events[-1]["id"]})).json()[
                "items"
            ]
            assert again == []
            http.headers.update(self.desk)
            tickets = await everything(http, "/tickets", contact=self.user)
            assert {each["id"] for each in tickets} == self.tickets
            responses = await everything(http, f"/engagement/surveys/{self.survey}/responses")
            assert [each["contact"] for each in responses] == [{"userId": "user"}] * RESPONSES
            memory = await everything(http, f"/sessions/{self.user}/memory")
            assert [each["content"] for each in memory] == ["Gold"]


async def test_killed_merge_resumes_automatically_and_publishes_each_event_once(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path)
    try:
        await server.start()
        merging, answers, moved = Merging(server), list[int](), 0
        await merging.plant()
        for kill in range(KILLS):
            async with trio.open_nursery() as nursery:
                if kill == 0:
                    nursery.start_soon(merging.ask, answers)
                moved = await merging.begun(min(moved + 1, CONVERSATIONS))
                await server.kill()
            assert kill or answers == [], "it was over before the kill"
            await server.start()
        await merging.check()
    finally:
        status = await server.stop()
    assert status == 0, server.log()
    data = server.directory / "data"
    assert check(data, present_secrets(data, None), contents=True).problems == []
