"""Mentions in notes and followers of conversations: the people reached, their views and counters, and the ends of both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.api.accounts.test_roles import member_with
from tests.support.api.agent_stream import page as opened
from tests.support.api.inbox import pointers, reply, told, view
from tests.support.api.service import Service
from tests.support.api.staff import Person, code, hire, organisation_of, person
from tests.support.stores import beside

NOBODY = "usr_00000000000000000000000000"


@asynccontextmanager
async def agent(service: Service, role: str = "agent") -> AsyncIterator[Person]:
    """Yield a member who calls in the demo's project."""
    async with person(service, role) as member:
        member.http.headers["project"] = service.demo["projectId"]
        yield member


async def owner(service: Service) -> str:
    """Return the user id of the demo's owner, the author of the notes."""
    return str((await service.dashboard.get("/users/me")).json()["id"])


async def note(
    service: Service, conversation: dict[str, Any], mentions: Sequence[str], text: str = "Look"
) -> Any:
    """Write a note as the demo's owner; return it."""
    answer = await reply(service, conversation, text=text, internal=True, mentions=[*mentions])
    assert answer.status_code == 200, answer.text
    return answer.json()


async def team(service: Service, *members: str, name: str = "Billing") -> dict[str, Any]:
    """Create a team; return it."""
    answer = await service.dashboard.post("/teams", json={"name": name, "members": [*members]})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def mine(http: httpx.AsyncClient, conversation: dict[str, Any]) -> tuple[bool, int]:
    """Return whether an agent is mentioned, and the number of unseen mentions."""
    answer = await http.get(f"/conversations/{conversation['id']}", params={"view": "agent"})
    assert answer.status_code == 200, answer.text
    own = answer.json()["mine"]
    return own["mentioned"], own["unseenMentions"]


async def listed(http: httpx.AsyncClient, **params: str) -> list[str]:
    """Return the ids of an agent's list."""
    answer = await http.get("/conversations", params={"view": "agent", **params})
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["items"]]


async def counted(http: httpx.AsyncClient) -> tuple[int, int]:
    """Return the counters of unseen mentions and followed conversations."""
    found = (await http.get("/inbox/counters")).json()
    return found["mentions"], found["following"]


async def follow(http: httpx.AsyncClient, conversation: dict[str, Any], *, on: bool = True) -> dict[str, Any]:
    """Follow or unfollow; return the answer."""
    answer = await http.request("PUT" if on else "DELETE", f"/conversations/{conversation['id']}/follow")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def see(http: httpx.AsyncClient, conversation: dict[str, Any], message: str) -> httpx.Response:
    """Mark the mentions up to a message as seen; return the answer."""
    return await http.put(f"/conversations/{conversation['id']}/mentions/seen", json={"messageId": message})


async def test_note_stores_mentions_by_id_and_keeps_its_text(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace:
        written = await note(service, made, [grace.id], "@Agent can you look?")
        assert written["text"] == "@Agent can you look?"
        assert written["mentions"] == [{"type": "user", "id": grace.id, "name": "Agent"}]
        thread = (await grace.http.get(f"/conversations/{made['id']}/messages")).json()["items"]
        assert thread[-1]["mentions"] == written["mentions"]
        assert thread[0]["mentions"] == []
        assert await mine(grace.http, made) == (True, 1)
        assert await mine(service.dashboard, made) == (False, 0)
        assert (await counted(grace.http), await counted(service.dashboard)) == ((1, 1), (0, 1))
        assert await listed(grace.http, mentioned="true") == [made["id"]]
        assert await listed(service.dashboard, mentioned="true") == []


async def test_mentioned_person_and_author_follow_from_then_on(service: Service) -> None:
    made, me = await service.create(message={"text": "Hello"}), await owner(service)
    async with agent(service) as grace:
        await note(service, made, [grace.id])
        assert (await view(service, made))["followers"] == [me, grace.id]
        assert await listed(grace.http, following="true") == [made["id"]]
        assert await follow(grace.http, made, on=False) == {"following": False, "followers": [me]}
        assert await listed(grace.http, following="true") == []
        await note(service, made, [grace.id])
        assert (await view(service, made))["followers"] == [me, grace.id]


async def test_plain_notes_and_replies_make_nobody_follow(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    await reply(service, made, text="On its way")
    await reply(service, made, text="@Agent is not asked by the text alone", internal=True)
    assert (await view(service, made))["followers"] == []


async def test_note_event_names_people_and_followers(service: Service) -> None:
    made, me = await service.create(message={"text": "Hello"}), await owner(service)
    async with agent(service) as grace, agent_named(service, "second") as alan:
        billing = await team(service, grace.id, alan.id, me)
        async with opened(grace.http) as stream:
            written = await note(service, made, [billing["id"], grace.id], "@Billing please")
            event = await stream.event()
    assert (event["type"], event["sequence"]) == ("note.created", None)
    data = event["data"]
    assert data["message"]["mentions"] == [
        {"type": "team", "id": billing["id"], "name": "Billing"},
        {"type": "user", "id": grace.id, "name": "Agent"},
    ]
    assert data["mentioned"] == [grace.id, alan.id]  # each once, and not the author
    assert sorted(data["conversation"]["followers"]) == sorted([me, grace.id, alan.id])
    assert data["message"] == {**written, "mentions": data["message"]["mentions"]}


@asynccontextmanager
async def agent_named(service: Service, name: str) -> AsyncIterator[Person]:
    """Yield a further agent."""
    async with member_with(service, ("conversations.read", "conversations.reply"), name) as (member, _):
        yield member


async def test_team_mention_reaches_its_members_of_that_time(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace, agent_named(service, "second") as alan:
        billing = await team(service, grace.id)
        await note(service, made, [billing["id"]])
        answer = await service.dashboard.patch(f"/teams/{billing['id']}", json={"members": [alan.id]})
        assert answer.status_code == 200
        assert await mine(grace.http, made) == (True, 1)
        assert await mine(alan.http, made) == (False, 0)
        await note(service, made, [billing["id"]])
        assert await mine(grace.http, made) == (True, 1)
        assert await mine(alan.http, made) == (True, 1)


async def test_refusal_names_every_mention_that_is_impossible(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace, member_with(service, ("tickets.read",), "Books") as (blind, _):
        empty, unreadable = await team(service, name="Empty"), await team(service, blind.id, name="Blind")
        ids = [grace.id, grace.id, NOBODY, blind.id, "team_1", empty["id"], unreadable["id"], "me", "con_1"]
        refused = await reply(service, made, internal=True, mentions=ids)
        assert pointers(refused) == {
            "/mentions/1": "repeated",
            "/mentions/2": "unknown",
            "/mentions/3": "no_access",
            "/mentions/4": "unknown",
            "/mentions/5": "no_access",
            "/mentions/6": "no_access",
            "/mentions/7": "unknown",
            "/mentions/8": "unknown",
        }
        assert await mine(grace.http, made) == (False, 0)
        assert (await view(service, made))["followers"] == []
        assert pointers(await reply(service, made, mentions=[grace.id])) == {"/mentions": "not_allowed"}
        many = await reply(service, made, internal=True, mentions=[f"usr_{number}" for number in range(21)])
        assert pointers(many) == {"/mentions": "too_many"}
        assert pointers(await reply(service, made, internal=True, mentions=[1, None])) == {
            "/mentions/0": "invalid",
            "/mentions/1": "invalid",
        }


async def test_all_problems_of_a_note_come_in_one_refusal(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    then = {"assignee": {"type": "user", "id": NOBODY}}
    impossible: dict[str, Any] = {"mentions": [NOBODY], "attachments": ["upl_1"], "then": then}
    assert pointers(await reply(service, made, internal=True, **impossible)) == {
        "/mentions/0": "unknown",
        "/attachments/0": "unknown",
        "/then/assignee/id": "unknown",
    }


async def test_members_of_other_organisations_cannot_be_mentioned(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    gone = await hire(service, "agent")
    path = f"/organisations/{await organisation_of(service)}/members/{gone['id']}"
    assert (await service.dashboard.delete(path)).status_code == 200
    assert pointers(await reply(service, made, internal=True, mentions=[gone["id"]])) == {
        "/mentions/0": "unknown"
    }


async def test_team_mentions_only_the_members_who_can_read(service: Service) -> None:
    made, me = await service.create(message={"text": "Hello"}), await owner(service)
    async with agent(service) as grace, member_with(service, ("tickets.read",), "Books") as (blind, _):
        mixed = await team(service, blind.id, grace.id)
        await note(service, made, [mixed["id"]])
        assert (await view(service, made))["followers"] == [me, grace.id]
        (event,) = [each for each in told(service) if each["type"] == "note.created"]
        assert event["data"]["mentioned"] == [grace.id]


async def test_role_without_reading_can_neither_follow_nor_be_a_follower(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with member_with(service, ("conversations.read", "conversations.reply")) as (lead, role):
        assert await follow(lead.http, made) == {"following": True, "followers": [lead.id]}
        path = f"/organisations/{await organisation_of(service)}/roles/{role}"
        lost = await service.dashboard.patch(path, json={"permissions": ["conversations.reply"]})
        assert lost.status_code == 200, lost.text
        assert (await view(service, made))["followers"] == []
        refused = await lead.http.put(f"/conversations/{made['id']}/follow")
        assert code(refused) == (403, "permission_denied")
        assert pointers(await reply(service, made, internal=True, mentions=[lead.id])) == {
            "/mentions/0": "no_access"
        }
        back = await service.dashboard.patch(path, json={"permissions": ["conversations.read"]})
        assert back.status_code == 200
        assert (await view(service, made))["followers"] == [lead.id]


async def test_following_is_an_event_and_a_repeated_follow_is_none(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service, "viewer") as ada, opened(service.dashboard) as stream:
        await follow(ada.http, made)
        await follow(ada.http, made)
        await follow(ada.http, made, on=False)
        await follow(ada.http, made, on=False)
        await note(service, made, [])
        events = [await stream.event() for _ in range(3)]
    assert [each["type"] for each in events] == ["conversation.changed"] * 2 + ["note.created"]
    first, second, last = (each["data"] for each in events)
    assert (first["changed"], first["actor"]["id"]) == (["followers"], ada.id)
    assert (first["conversation"]["followers"], second["conversation"]["followers"]) == ([ada.id], [])
    assert last["mentioned"] == []
    assert (await service.fetch(made))["sequence"] == made["sequence"] + 0


async def test_events_of_followers_can_be_resumed(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace:
        async with opened(grace.http) as stream:
            await note(service, made, [grace.id])
            seen = (await stream.event())["id"]
        await follow(grace.http, made, on=False)
        await note(service, made, [grace.id])
        async with opened(grace.http, after=seen) as stream:
            missed = [await stream.event() for _ in range(2)]
    assert [each["type"] for each in missed] == ["conversation.changed", "note.created"]
    assert missed[1]["data"]["mentioned"] == [grace.id]


async def test_mentions_are_seen_up_to_the_shown_message(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace, opened(grace.http) as other_tab:
        first = await note(service, made, [grace.id])
        await note(service, made, [grace.id])
        seen = await see(grace.http, made, first["id"])
        assert (seen.status_code, seen.json()["mine"]["unseenMentions"]) == (200, 1)
        assert await mine(grace.http, made) == (True, 1)
        assert await counted(grace.http) == (1, 1)
        heard = await other_tab.passing("me.seen")
        assert (heard["conversationId"], heard["mine"]) == (made["id"], seen.json()["mine"])
        last = await service.say(made, "Are you there?")
        assert (await see(grace.http, made, last["id"])).json()["mine"]["unseenMentions"] == 0
        assert await counted(grace.http) == (0, 1)
        assert await listed(grace.http, mentioned="true") == [made["id"]]  # seen ones stay in the view


async def test_seen_messages_and_seen_mentions_do_not_change_each_other(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace:
        written = await note(service, made, [grace.id])
        seen = await grace.http.put(f"/conversations/{made['id']}/seen", json={"index": 0})
        assert seen.json()["mine"] == {
            "seenIndex": 0,
            "unread": 0,
            "mentioned": True,
            "unseenMentions": 1,
        }
        assert (await see(grace.http, made, written["id"])).json()["mine"]["seenIndex"] == 0


@pytest.mark.parametrize("message", ["msg_00000000000000000000000000", "x"])
async def test_seen_mentions_need_a_message_of_the_conversation(service: Service, message: str) -> None:
    made = await service.create(message={"text": "Hello"})
    assert code(await see(service.dashboard, made, message)) == (404, "message_not_found")
    other = await service.create("u2", message={"text": "Hello"})
    foreign = await service.say(other, "Mine")
    assert code(await see(service.dashboard, made, foreign["id"])) == (404, "message_not_found")


async def test_mentions_and_follows_end_with_the_membership(service: Service) -> None:
    made, me = await service.create(message={"text": "Hello"}), await owner(service)
    async with agent(service) as grace:
        await note(service, made, [grace.id])
        path = f"/organisations/{await organisation_of(service)}/members/{grace.id}"
        assert (await service.dashboard.delete(path)).status_code == 200
    assert (await view(service, made))["followers"] == [me]
    assert rows(service, "mentions") == 0
    assert rows(service, "followers") == 1
    thread = (await service.dashboard.get(f"/conversations/{made['id']}/messages")).json()["items"]
    assert thread[-1]["mentions"][0]["name"] == "Agent"  # the note stays as it was written


async def test_deleted_note_takes_its_mentions_along(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace:
        written = await note(service, made, [grace.id])
        answer = await service.dashboard.delete(f"/conversations/{made['id']}/messages/{written['id']}")
        assert answer.status_code == 200
        assert await mine(grace.http, made) == (False, 0)
        assert await counted(grace.http) == (0, 1)
        assert await listed(grace.http, mentioned="true") == []


async def test_redaction_of_the_name_removes_it_from_the_mentions(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace, agent_named(service, "second") as alan:
        written = await note(service, made, [grace.id, alan.id], "@Agent knows her number")
        path = f"/conversations/{made['id']}/messages/{written['id']}/redact"
        partly = await service.dashboard.post(path, json={"ranges": [{"start": 7, "end": 23}]})
        assert [each["id"] for each in partly.json()["mentions"]] == [grace.id, alan.id]
        whole = await service.dashboard.post(path, json={"ranges": [{"start": 0, "end": 6}]})
        assert [each["id"] for each in whole.json()["mentions"]] == [alan.id]
        (event,) = [each for each in told(service) if each["type"] == "note.created"]
        assert event["data"]["message"]["mentions"] == whole.json()["mentions"]
        assert await mine(grace.http, made) == (True, 1)


async def test_mentions_and_followers_are_deleted_with_the_conversation(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace:
        await note(service, made, [grace.id])
        assert (await service.http.delete(f"/s2s/conversations/{made['id']}")).status_code == 200
        assert (rows(service, "mentions"), rows(service, "followers")) == (0, 0)
        assert await counted(grace.http) == (0, 0)


async def test_mentions_and_followers_survive_a_merge_of_contacts(service: Service) -> None:
    made = await service.create("u1", message={"text": "Hello"})
    await service.create("u2", message={"text": "Hello"})
    async with agent(service) as grace:
        await note(service, made, [grace.id])
        merged = await service.http.post("/s2s/contacts/u2/merge", json={"from": "u1"})
        assert merged.status_code == 200, merged.text
        assert await mine(grace.http, made) == (True, 1)
        assert await listed(grace.http, following="true", contact="u2") == [made["id"]]
        assert await listed(grace.http, mentioned="true", contact="u2") == [made["id"]]


async def test_repeated_note_with_the_same_key_mentions_once(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace:
        body = {"text": "Look", "internal": True, "mentions": [grace.id]}
        first, second = [await reply(service, made, "key-1", **body) for _ in range(2)]
        assert first.json() == second.json()
        assert await mine(grace.http, made) == (True, 1)


async def test_held_note_mentions_when_it_is_sent(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace:
        held = (await reply(service, made, internal=True, mentions=[grace.id], holdSeconds=60)).json()
        assert held["mentions"] == [{"type": "user", "id": grace.id, "name": "Agent"}]
        assert await mine(grace.http, made) == (False, 0)
        sent = await service.dashboard.post(f"/held-messages/{held['id']}/send", json={})
        assert sent.json()["mentions"] == held["mentions"]
        assert await mine(grace.http, made) == (True, 1)


async def test_held_note_is_refused_if_a_mentioned_person_has_left(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    gone = await hire(service, "agent")
    held = (await reply(service, made, internal=True, mentions=[gone["id"]], holdSeconds=60)).json()
    path = f"/organisations/{await organisation_of(service)}/members/{gone['id']}"
    assert (await service.dashboard.delete(path)).status_code == 200
    refused = await service.dashboard.post(f"/held-messages/{held['id']}/send", json={})
    assert pointers(refused) == {"/mentions/0": "unknown"}
    back = await service.dashboard.delete(f"/held-messages/{held['id']}")
    assert back.json()["draft"]["mentions"] == held["mentions"]
    assert (await view(service, made))["messages"] == 1


async def test_draft_keeps_the_mentions_that_were_picked(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    picked = [
        {"type": "user", "id": NOBODY, "name": "Grace"},
        {"type": "team", "id": "team_1", "name": "Billing"},
    ]
    path = f"/conversations/{made['id']}/drafts/note"
    body = {"text": "@Grace @Billing", "version": 0, "mentions": picked[:1]}
    first = (await service.dashboard.put(path, json=body)).json()["draft"]
    assert first["mentions"] == picked[:1]
    stale = {"text": "@Grace @Billing", "version": 0, "mentions": picked[1:]}
    merged = (await service.dashboard.put(path, json=stale)).json()
    assert (merged["merged"], merged["draft"]["mentions"]) == (True, picked)
    assert (await service.dashboard.get("/drafts")).json()["items"][0]["mentions"] == picked


async def test_archived_conversation_stays_in_mentions(service: Service) -> None:
    made = await service.create(message={"text": "Hello"})
    async with agent(service) as grace:
        await note(service, made, [grace.id])
        answer = await service.dashboard.patch(f"/conversations/{made['id']}", json={"archived": True})
        assert answer.status_code == 200
        assert await listed(grace.http, mentioned="true") == [made["id"]]
        assert await listed(grace.http, mentioned="true", archived="false") == []
        assert await listed(grace.http, following="true") == []
        assert await counted(grace.http) == (1, 0)


async def test_lists_without_mentions_or_follows_have_the_others(service: Service) -> None:
    first, second = [await service.create(f"u{number}", message={"text": "0"}) for number in range(2)]
    async with agent(service) as grace:
        await note(service, first, [grace.id])
        await note(service, first, [grace.id])
        assert await listed(grace.http, mentioned="false") == [second["id"]]
        assert await listed(grace.http, following="false") == [second["id"]]
        assert await listed(grace.http, mentioned="true", following="true", q="Look") == [first["id"]]


async def test_lists_of_own_mentions_need_a_person(service: Service) -> None:
    answer = await service.http.get("/conversations", params={"mentioned": "true"})
    assert answer.status_code in (401, 403)


async def test_export_with_notes_has_mentions_and_the_one_without_has_none(service: Service) -> None:
    made, me = await service.create(message={"text": "Hello"}), await owner(service)
    async with agent(service) as grace:
        await note(service, made, [grace.id], "@Agent look")
        own = await service.dashboard.get(f"/contacts/{made['contact']['id']}/export")
        (conversation,) = own.json()["conversations"]
        assert conversation["followers"] == [me, grace.id]
        assert conversation["messages"][-1]["mentions"][0]["id"] == grace.id
        outside = await service.http.get("/s2s/contacts/u1/export")
        assert grace.id not in outside.text
        assert "mentions" not in outside.text
        assert "followers" not in outside.text


def rows(service: Service, table: str) -> int:
    """Return the number of rows of a table."""
    with beside(service.directory) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
