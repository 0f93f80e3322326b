"""The rows of a list follow from events: an old list with all newer events applied equals the current list."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

import httpx
import orjson
import pytest

from deskwire.engine.events.types import ERASURE
from tests.support.api.service import Service
from tests.support.api.staff import Person, person
from tests.support.stores import beside

Row = dict[str, Any]
OPTIONS: Final = [{"id": "order", "label": "My order"}, {"id": "other", "label": "Something else"}]
FLOWS: Final = [
    {
        "id": "main",
        "actions": [
            {"id": 1, "type": "message", "text": "Welcome"},
            {"id": 2, "type": "buttons", "text": "What is it about?", "options": OPTIONS, "allowText": True},
            {"id": 3, "type": "wait", "seconds": 3600},
        ],
    }
]
STEPS: Final = 60


class Desk:
    """A page of the desk: it reads the list occasionally, and applies each event that it gets, including duplicates."""

    def __init__(self, service: Service, seed: int) -> None:
        self.service = service
        self.chance = random.Random(seed)
        self.rows: dict[str, Row] = {}
        self.last = self.me = ""
        self.made: list[str] = []

    async def read(self) -> None:
        """Read the current list, including archived conversations."""
        self.rows.update(await self.fresh())

    async def fresh(self) -> dict[str, Row]:
        """Return the rows of a newly opened page."""
        found: dict[str, Row] = {}
        for archived in ("false", "true"):
            params = {"view": "agent", "limit": "200", "archived": archived}
            answer = await self.service.dashboard.get("/conversations", params=params)
            found |= {row["id"]: row for row in answer.json()["items"]}
        return found

    def follow(self, after: str) -> None:
        """Apply all stored events after this one."""
        with beside(self.service.directory) as connection:
            events = connection.execute(
                "SELECT id, body FROM events WHERE id > ? AND type <> ? ORDER BY position", (after, ERASURE)
            )
            for event_id, body in events:
                self.last = max(self.last, event_id)
                self._apply(event_id, orjson.loads(body))

    def _apply(self, event_id: str, event: dict[str, Any]) -> None:
        told = event["data"].get("conversation")
        if told is None or told["id"] not in self.rows:
            return
        row = self.rows[told["id"]]
        if event_id <= row["asOf"]:
            return
        hidden_one_is_gone = "deleted" in event["data"].get("changed", ())
        if event["type"] == "conversation.deleted" or hidden_one_is_gone:
            del self.rows[told["id"]]
        else:
            self.rows[told["id"]] = after(row, event, self.me) | {"asOf": event_id}


def after(row: Row, event: dict[str, Any], me: str) -> Row:
    """Return the row of a user after an event."""
    data = event["data"]
    following: Row = {**row, **data["conversation"], "mine": row["mine"]}
    match event["type"]:
        case "conversation.created":
            return following | {"visible": True}
        case "message.created":
            return following | written(row, data["message"])
        case "conversation.closed":
            return following | {"waitingSince": None, "snoozedUntil": None}
        case "conversation.reopened":
            return following | {"snoozedUntil": None}
        case "conversation.updated":
            if "unread" in data["changed"] and not following["unread"]:
                seen = {"contactSeenIndex": row["messages"] - 1, "contactSeenAt": event["createdAt"]}
                return following | seen
        case "workflow.step.presented":
            return following | {"workflow": row["workflow"] and {**row["workflow"], "waiting": True}}
        case "workflow.completed":
            return following | {"workflow": None}
        case "note.created" if data["message"]["author"]["type"] == "contact":
            return following | {"mine": read_of(row, following["messages"] - 1)}
        case "note.created" if me in data["mentioned"]:
            mine = {"mentioned": True, "unseenMentions": row["mine"]["unseenMentions"] + 1}
            return following | {"mine": {**row["mine"], **mine}}
    return following


def written(row: Row, message: dict[str, Any]) -> Row:
    """Return the changes that a public message makes to a row; a message that the row already has changes nothing."""
    index, author = message["index"], message["author"]["type"]
    if index < row["messages"]:
        return {}
    changes: Row = {
        "messages": index + 1,
        "lastMessage": {
            **{name: message[name] for name in ("id", "author", "createdAt")},
            "text": message["text"][:160],
            "internal": False,
        },
    }
    if author == "contact":
        changes["snoozedUntil"] = None
        changes["waitingSince"] = row["waitingSince"] or message["createdAt"]
        changes["mine"] = read_of(row, index)
    elif author != "system":
        changes["waitingSince"] = None
    if author != "system":
        changes["noAnswerNeededSince"] = None
    return changes


def read_of(row: Row, index: int) -> Row:
    """Return an agent's own part of a row after a message of the contact."""
    mine: Row = row["mine"]
    seen = -1 if mine["seenIndex"] is None else mine["seenIndex"]
    return {**mine, "unread": mine["unread"] + (index > seen)}


async def act(desk: Desk, workflow: str, team: str, user: str, colleague: Person) -> None:
    """Do something to a conversation, or start one."""
    service, chance = desk.service, desk.chance
    if not desk.made or chance.random() < 0.1:
        fields: Row = {"visible": chance.random() < 0.7}
        if chance.random() < 0.7:
            fields["message"] = {"text": "Hello"}
        desk.made.append((await service.create(user=chance.choice("abc"), **fields))["id"])
        return
    one = chance.choice(desk.made)
    agent, server = f"/conversations/{one}", f"/s2s/conversations/{one}"
    post, patch = service.dashboard.post, service.dashboard.patch
    tags = chance.sample(["vip", "returns", "late"], chance.randrange(3))
    mentioned = chance.choice([user, team])
    until = chance.choice([None, "2027-01-01T00:00:00Z"])
    known = desk.rows.get(one)
    index = max(0, known["messages"] - 1) if known else 0
    assignee = chance.choice([None, {"type": "user", "id": user}, {"type": "team", "id": team}])
    actions: list[Callable[[], Awaitable[httpx.Response]]] = [
        lambda: service.http.post(
            f"{server}/messages", json={"text": "Where is it? " * chance.randrange(1, 20)}
        ),
        lambda: service.http.post(f"{server}/messages", json={"text": "Hi", "author": {"type": "bot"}}),
        lambda: post(f"{agent}/messages", json={"text": "Soon"}),
        lambda: post(f"{agent}/messages", json={"text": "Done", "then": {"close": True}}),
        lambda: post(f"{agent}/messages", json={"text": "A note", "internal": True}),
        lambda: post(
            f"{agent}/messages", json={"text": "A note", "internal": True, "mentions": [colleague.id]}
        ),
        lambda: colleague.http.post(
            f"{agent}/messages", json={"text": "You", "internal": True, "mentions": [mentioned]}
        ),
        lambda: service.dashboard.put(f"{agent}/follow"),
        lambda: colleague.http.put(f"{agent}/follow"),
        lambda: service.dashboard.delete(f"{agent}/follow"),
        lambda: post(f"{agent}/close", json={}),
        lambda: post(f"{agent}/reopen", json={}),
        lambda: post(f"{agent}/assign", json={"assignee": assignee}),
        lambda: patch(agent, json={"title": chance.choice([None, "Order", "Parcel"])}),
        lambda: patch(agent, json={"status": chance.choice(["OPEN", "PENDING"])}),
        lambda: patch(agent, json={"archived": chance.random() < 0.5, "tags": tags}),
        lambda: patch(agent, json={"snoozedUntil": until}),
        lambda: service.dashboard.put(f"{agent}/no-answer-needed", json={"index": index}),
        lambda: service.dashboard.delete(f"{agent}/no-answer-needed"),
        lambda: patch(agent, json={"visible": True}),
        lambda: service.http.post(f"{server}/read", json={}),
        lambda: service.http.put(f"{server}/network-logs", json={"requests": []}),
        lambda: post(f"{agent}/workflow/start", json={"workflowId": workflow}),
    ]
    answer = await chance.choice(actions)()
    assert answer.status_code in (200, 204, 409, 422), answer.text
    if chance.random() < 0.02:
        desk.made.remove(one)
        await service.http.delete(server)


@pytest.mark.parametrize("seed", range(6))
async def test_old_list_with_newer_events_equals_the_current_list(service: Service, seed: int) -> None:
    """Rows of conversations that the page has not read come with its next read."""
    desk = Desk(service, seed)
    body = {"name": "Orders", "trigger": {"type": "manual"}, "flows": FLOWS}
    made = await service.dashboard.post("/workflows", json=body)
    assert made.status_code == 200, made.text
    user = (await service.dashboard.get("/users/me")).json()["id"]
    members = {"name": "Returns", "members": [user]}
    team = (await service.dashboard.post("/teams", json=members)).json()["id"]
    desk.me = user
    async with person(service, "agent") as colleague:
        colleague.http.headers["project"] = service.demo["projectId"]
        await follow_history(desk, made.json()["id"], team, user, colleague)


async def follow_history(desk: Desk, workflow: str, team: str, user: str, colleague: Person) -> None:
    """Act and follow for a while, and compare the rows with a current list."""
    service = desk.service
    for _ in range(STEPS):
        await act(desk, workflow, team, user, colleague)
        match desk.chance.randrange(6):
            case 0:
                await desk.read()  # the events that it has taken into account come as well
            case 1:
                desk.follow("")  # all events again
            case 2 if desk.rows:
                desk.follow(desk.last)
                one = desk.chance.choice(list(desk.rows))
                index = desk.chance.randrange(-1, max(1, desk.rows[one]["messages"]))
                answer = await service.dashboard.put(f"/conversations/{one}/seen", json={"index": index})
                if answer.status_code == 200:
                    desk.rows[one]["mine"] = answer.json()["mine"]
            case 3 if desk.rows:
                desk.follow(desk.last)
                one = desk.chance.choice(list(desk.rows))
                newest = desk.rows[one]["lastMessage"]
                if newest is not None:
                    path = f"/conversations/{one}/mentions/seen"
                    answer = await service.dashboard.put(path, json={"messageId": newest["id"]})
                    if answer.status_code == 200:
                        desk.rows[one]["mine"] = answer.json()["mine"]
            case _:
                desk.follow(desk.last)
    desk.follow("")
    now = await desk.fresh()
    newest = {row["asOf"] for row in now.values()}
    assert len(newest) <= 1
    for one, row in desk.rows.items():
        assert {**row, "asOf": None} == {**now[one], "asOf": None}
    assert desk.rows.keys() <= now.keys()
