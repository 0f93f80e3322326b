"""The filling of an inbox, through the API alone: people first, then what was long ago, then what happens now."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import trio
from msgspec import Struct

from deskwire.commands.demo.clients.person import Person
from deskwire.commands.demo.desk.files import picture, text
from deskwire.commands.demo.desk.people import (
    BILLING,
    COLLEAGUES,
    CUSTOMERS,
    MEMORIES,
    SNIPPETS,
    SUPPORT,
    SURVEY,
)
from deskwire.commands.demo.desk.stories import LIVE, Planned, Turn, imported, load_stories, plan

_AT_ONCE: Final = 6
"""Conversations that are held at the same time."""
_PICTURE: Final = 2
_TEXT: Final = 5
_LOGGED: Final = 8
"""Live conversations with a picture, with a text file, and with network logs, by their place."""


@dataclass(frozen=True, slots=True)
class Place:
    """A service, and what opens its demo project.

    Args:
        base_url: without `/v3`.
        token: the owner's.
    """

    base_url: str
    key: str = field(repr=False)
    token: str = field(repr=False)
    project_id: str
    email: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Filled:
    """The passwords of the colleagues, and how much there is of everything."""

    passwords: Mapping[str, str] = field(repr=False)
    contacts: int
    conversations: int
    messages: int


async def is_filled(place: Place) -> bool:
    """Say whether the inbox was filled to its end before. Raises DemoError."""
    async with Person(place.base_url, place.token, place.project_id) as owner:
        last = CUSTOMERS[-1].user_id
        known = (await owner.get("/contacts", q=last))["items"]
        if all(each["userId"] != last for each in known):
            return False  # a list of conversations refuses a contact that is not there
        return bool((await owner.get("/conversations", contact=last))["items"])


async def fill(place: Place) -> Filled:
    """Fill the inbox of a project. Raises DemoError."""
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(Person(place.base_url, place.key))
        owner = await stack.enter_async_context(Person(place.base_url, place.token, place.project_id))
        staff = await _hire(stack, place, owner)
        teams = await _teams(owner, staff)
        for number, snippet in enumerate(SNIPPETS):
            await staff[number % len(staff)].client.post("/snippets", snippet)
        planned = plan(load_stories())
        old, live = planned[:-LIVE], planned[-LIVE:]
        contacts = {
            each.user_id: await backend.put(f"/s2s/contacts/{each.user_id}", each.identity)
            for each in CUSTOMERS
        }
        await _bring_in(backend, owner, old, staff, teams)
        await _remember(owner, [contact["id"] for contact in contacts.values()])
        await _ask(backend, owner)
        scene = _Scene(backend, staff, teams)
        *others, last = enumerate(live)
        limiter = trio.CapacityLimiter(_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for place_in_list, each in others:
                nursery.start_soon(scene.hold, limiter, place_in_list, each)
        await scene.hold(limiter, *last)
    passwords = {each.email: each.password for each in staff}
    return Filled(passwords, len(CUSTOMERS), len(planned), sum(len(each.turns) for each in planned))


@dataclass(frozen=True, slots=True)
class _Agent:
    """A colleague who has signed in."""

    id: str
    email: str
    team: str
    client: Person
    password: str = field(repr=False)


async def _hire(stack: AsyncExitStack, place: Place, owner: Person) -> Sequence[_Agent]:
    organisation = (await owner.get("/organisations"))["items"][0]["id"]
    staff: list[_Agent] = []
    for each in COLLEAGUES:
        body = {"email": each.email, "name": each.name, "role": "agent"}
        made = await owner.post(f"/organisations/{organisation}/members", body)
        password = f"demo-{secrets.token_urlsafe(9)}"
        async with Person(place.base_url) as nobody:
            signed_in = await nobody.post(
                "/auth/token", {"email": each.email, "password": made["password"], "newPassword": password}
            )
        client = await stack.enter_async_context(Person(place.base_url, signed_in["token"], place.project_id))
        staff.append(_Agent(made["id"], each.email, each.team, client, password))
    return staff


async def _teams(owner: Person, staff: Sequence[_Agent]) -> Sequence[str]:
    """Return the ids of both teams, each with its members."""
    known = {each["name"]: each["id"] for each in (await owner.get("/teams"))["items"]}
    ids: list[str] = []
    for name in (SUPPORT, BILLING):
        members = [each.id for each in staff if each.team == name]
        if name in known:
            await owner.patch(f"/teams/{known[name]}", {"members": members})
            ids.append(known[name])
        else:
            ids.append((await owner.post("/teams", {"name": name, "members": members}))["id"])
    return ids


async def _bring_in(
    backend: Person, owner: Person, old: Sequence[Planned], staff: Sequence[_Agent], teams: Sequence[str]
) -> None:
    """Import what was long ago; then tag and snooze some of it."""
    now, agents = time.time_ns() // 1_000_000, [each.id for each in staff]
    records = [record for each in old for record in imported(each, now, agents, teams)]
    await backend.send_lines("/s2s/import", records)
    for each in old:
        if each.status != "CLOSED" or each.number % 4 == 0:
            found = await backend.get("/s2s/import/conversation", externalId=f"desk-{each.number}")
            await owner.patch(f"/conversations/{found['id']}", _noted(each))


def _noted(each: Planned) -> dict[str, Any]:
    noted: dict[str, Any] = {"tags": list(each.tags)}
    if each.snoozed:
        until = datetime.now(UTC) + timedelta(hours=2 + each.number)
        noted["snoozedUntil"] = until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return noted


async def _remember(owner: Person, contacts: Sequence[str]) -> None:
    for number, contact in enumerate(contacts[::3]):
        name, content = MEMORIES[number % len(MEMORIES)]
        await owner.post(f"/sessions/{contact}/memory", {"name": name, "content": content})


async def _ask(backend: Person, owner: Person) -> None:
    survey = (await owner.post("/engagement/surveys", SURVEY))["id"]
    for customer, score, why in zip(
        CUSTOMERS, (9, 10, 3, 8), ("", "Quick!", "It took a week.", ""), strict=False
    ):
        answers = {"score": score} | ({"why": why} if why else {})
        body = {"contact": {"userId": customer.user_id}, "answers": answers}
        await backend.post(f"/s2s/surveys/{survey}/responses", body)


class _Scene(Struct, frozen=True):
    """The stage for what happens now."""

    backend: Person
    staff: Sequence[_Agent]
    teams: Sequence[str]

    async def hold(self, limiter: trio.CapacityLimiter, place: int, each: Planned) -> None:
        """Hold a conversation, message by message, and leave it as it is planned to be."""
        async with limiter:
            conversation = await self._begin(place, each)
            path, agent = f"/conversations/{conversation}", self.staff[each.agent].client
            if each.assigned != "nobody":
                await agent.post(f"{path}/assign", {"assignee": self._assignee(each)})
            for index, turn in enumerate(each.turns[1:]):
                await self._say(path, agent, turn, place if index == 0 else None)
            await self._leave(place, each, conversation, agent)

    async def _begin(self, place: int, each: Planned) -> str:
        message: dict[str, Any] = {"text": each.turns[0].text}
        if place == _PICTURE:
            message["attachments"] = [await self.backend.upload("parcel.png", picture(), "image/png")]
        contact = {"userId": each.customer.user_id, **each.customer.identity}
        body = {"contact": contact, "title": each.title, "message": message}
        return str((await self.backend.post("/s2s/conversations", body))["id"])

    async def _say(self, path: str, agent: Person, turn: Turn, place: int | None) -> None:
        if turn.speaker == "customer":
            await self.backend.post(
                f"/s2s{path}/messages", {"text": turn.text, "author": {"type": "contact"}}
            )
            return
        message: dict[str, Any] = {"text": turn.text, "internal": turn.speaker == "note"}
        if place == _TEXT:
            message["attachments"] = [await self.backend.upload("scans.txt", text(), "text/plain")]
        await agent.post(f"{path}/messages", message)

    def _assignee(self, each: Planned) -> dict[str, str]:
        if each.assigned == "team":
            return {"type": "team", "id": self.teams[each.number % len(self.teams)]}
        return {"type": "user", "id": self.staff[each.agent].id}

    async def _leave(self, place: int, each: Planned, conversation: str, agent: Person) -> None:
        path = f"/conversations/{conversation}"
        await agent.patch(path, _noted(each))
        if place % 6 == 1:
            await self._track(each, conversation, agent)
        if place == _LOGGED:
            request = {
                "url": "https://shop.example/checkout",
                "duration": 30_012,
                "response": "upstream timed out",
            }
            await self.backend.put(f"/s2s{path}/network-logs", {"requests": [request]})
        if each.status == "PENDING":
            await agent.patch(path, {"status": "PENDING"})
        elif each.status == "CLOSED":
            await agent.post(f"{path}/close")
            if each.rating is not None:
                await self.backend.post(f"/s2s{path}/rating", {"rating": each.rating})

    async def _track(self, each: Planned, conversation: str, agent: Person) -> None:
        body = {
            "title": each.title,
            "priority": ("LOW", "MEDIUM", "HIGH")[each.number % 3],
            "conversationId": conversation,
            "tags": list(each.tags),
            "processingUser": self.staff[each.agent].id,
        }
        await agent.post("/tickets", body)
