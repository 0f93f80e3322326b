"""The stream of agents: its events, its start, the right to it, and its end (ADR 51)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from deskwire.engine.agents.streams import MAX_STREAMS_PER_USER
from tests.support.api.agent_stream import Page, page
from tests.support.api.service import Service, running
from tests.support.api.staff import code, organisation_of, person
from tests.support.deadlines import fail_after_idle

NEVER = f"evt_{'0' * 26}"


async def test_stored_events_are_sent_with_their_stored_bytes(service: Service) -> None:
    async with page(service.dashboard) as desk:
        assert desk.headers["content-type"] == "text/event-stream"
        assert desk.headers["cache-control"] == "no-store"
        assert desk.headers["x-accel-buffering"] == "no"
        assert desk.hello["at"] == NEVER
        assert (desk.hello["resumedAfter"], desk.hello["gap"], desk.hello["heartbeatS"]) == (None, False, 15)
        conversation = await service.create()
        await service.say(conversation, "hello")
        created, said = await desk.next("message"), await desk.next("message")
    raw = (await service.http.get("/s2s/events")).content
    assert created.raw.encode() in raw
    assert said.raw.encode() in raw
    assert (said.data["type"], said.id) == ("message.created", said.data["id"])


async def test_stream_continues_after_the_event_in_header_or_parameter(service: Service) -> None:
    conversation = await service.create()
    async with page(service.dashboard) as desk:
        first = await service.say(conversation, "one")
        seen = await desk.event()
        assert seen["data"]["message"]["id"] == first["id"]
    missed = [await service.say(conversation, text) for text in ("two", "three")]
    for header, params in (({"Last-Event-ID": seen["id"]}, {}), ({}, {"after": seen["id"]})):
        async with page(service.dashboard, header, **params) as desk:
            assert (desk.hello["resumedAfter"], desk.hello["gap"]) == (seen["id"], False)
            found = [await desk.event(), await desk.event()]
            assert [each["data"]["message"]["id"] for each in found] == [each["id"] for each in missed]
            assert desk.hello["at"] == found[-1]["id"]
    async with page(service.dashboard, {"Last-Event-ID": found[0]["id"]}, after=seen["id"]) as desk:
        assert (await desk.event())["id"] == found[1]["id"], "the header counts"
    async with page(service.dashboard, after=NEVER) as desk:
        assert (await desk.event())["type"] == "conversation.created"


async def test_unknown_event_is_a_gap_and_the_stream_begins_now(service: Service) -> None:
    conversation = await service.create()
    newest = (await service.events())[-1]["id"]
    for unknown in ("evt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "evt_00000000000000000000000001"):
        async with page(service.dashboard, after=unknown) as desk:
            assert (desk.hello["gap"], desk.hello["resumedAfter"], desk.hello["at"]) == (True, None, newest)
            said = await service.say(conversation, "next")
            assert (await desk.event())["data"]["message"]["id"] == said["id"]
            newest = (await service.events())[-1]["id"]


async def test_bad_request_gets_its_reason(service: Service) -> None:
    answer = await service.dashboard.get("/stream", params={"after": "yesterday"})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "bad_event_id")
    answer = await service.dashboard.get("/stream", headers={"Last-Event-ID": "x"})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "bad_event_id")
    answer = await service.dashboard.get("/stream", params={"project": "", "after": "y"})
    assert [each["code"] for each in answer.json()["errors"]] == ["bad_project_id", "bad_event_id"]
    good = {"Last-Event-ID": "evt_01KZ00000000000000000000E1"}
    answer = await service.dashboard.get("/stream", params={"after": ""}, headers=good)
    assert [each["code"] for each in answer.json()["errors"]] == ["bad_event_id"]
    answer = await service.dashboard.get("/stream", params={"since": "x", "after": "y"})
    assert {each["code"] for each in answer.json()["errors"]} == {"unknown_parameter", "bad_event_id"}
    token = {"authorization": f"Bearer {service.demo['token']}"}
    answer = await service.http.get("/stream", headers=token)
    assert code(answer) == (400, "missing_project")
    answer = await service.http.get("/stream", headers=token, params={"project": f"prj_{'0' * 26}"})
    assert code(answer) == (404, "project_not_found")
    assert code(await service.http.get("/stream", headers={"Authorization": ""}))[0] == 401
    assert code(await service.http.get("/stream"))[0] == 401, "a server key follows the other stream"


async def test_the_project_may_be_a_parameter(service: Service) -> None:
    token = {"authorization": f"Bearer {service.demo['token']}"}
    async with page(service.http, token, project=service.demo["projectId"]) as desk:
        await service.create()
        assert (await desk.event())["type"] == "conversation.created"


@pytest.mark.parametrize("role", ["viewer", "agent", "admin", "owner"])
async def test_every_member_may_open_a_stream_and_report_a_view(service: Service, role: str) -> None:
    async with person(service, role) as member:
        member.http.headers["project"] = service.demo["projectId"]
        async with page(member.http) as desk:
            conversation = await service.create()
            assert (await desk.event())["data"]["conversation"]["id"] == conversation["id"]
            shown = {"conversationIds": [conversation["id"]], "composing": None}
            answer = await member.http.put(f"/stream/{desk.hello['streamId']}/view", json=shown)
            assert answer.status_code == 204


async def test_stream_has_no_events_of_another_project(service: Service) -> None:
    path = f"/organisations/{await organisation_of(service)}/projects"
    theirs = (await service.dashboard.post(path, json={"name": "Other"})).json()
    async with page(service.dashboard) as mine, page(service.dashboard, {"project": theirs["id"]}) as other:
        assert [each["online"] for each in other.hello["presence"]] == [True]
        conversation = await service.create()
        await mine.event()
        view = {"conversationIds": [conversation["id"]]}
        path = f"/stream/{mine.hello['streamId']}/view"
        assert code(await service.dashboard.put(path, json=view, headers={"project": theirs["id"]})) == (
            404,
            "stream_not_found",
        )
        service.stop()
        assert [received.name for received in await other.rest() if received.name != "passing"] == ["bye"]


async def test_a_view_is_checked_and_belongs_to_its_user(service: Service) -> None:
    async with page(service.dashboard) as desk, person(service, "agent") as colleague:
        path = f"/stream/{desk.hello['streamId']}/view"
        bad = {"conversationIds": ["cnv_x", *(f"cnv_{n:026}" for n in range(20))], "composing": 1, "more": 1}
        answer = await service.dashboard.put(path, json=bad)
        assert answer.status_code == 422
        assert {each["pointer"] for each in answer.json()["errors"]} >= {"/composing", "/more"}
        colleague.http.headers["project"] = service.demo["projectId"]
        good = {"conversationIds": [f"cnv_{'0' * 26}"], "composing": None}
        assert code(await colleague.http.put(path, json=good)) == (404, "stream_not_found")
        assert (await service.dashboard.put(path, json=good)).status_code == 204


async def test_presence_has_each_agents_view_and_ends_with_the_connection(service: Service) -> None:
    conversation = (await service.create())["id"]
    async with page(service.dashboard) as desk, person(service, "agent") as ken:
        ken.http.headers["project"] = service.demo["projectId"]
        async with page(ken.http) as first:
            (owner,) = [each for each in first.hello["presence"] if each["id"] != ken.id]
            assert (owner["online"], owner["conversationIds"], owner["composing"]) == (True, [], None)
            shown = {"conversationIds": [conversation], "composing": conversation}
            await ken.http.put(f"/stream/{first.hello['streamId']}/view", json=shown)
            seen = await of(desk, ken.id, composing=conversation)
            assert seen == {
                "id": ken.id,
                "name": "Agent",
                "online": True,
                "conversationIds": [conversation],
                "composing": conversation,
            }
            async with page(ken.http):
                pass
            await ken.http.put(f"/stream/{first.hello['streamId']}/view", json={**shown, "composing": None})
            assert (await of(desk, ken.id, composing=None))["online"], "the other stream is still there"
        assert (await of(desk, ken.id, online=False))["conversationIds"] == []


async def of(desk: Page, user: str, **fields: object) -> dict[str, object]:
    """Return an agent's presence, once it has these fields."""
    while True:
        received = await desk.passing("presence")
        for each in received["agents"]:
            if each["id"] == user and all(each[name] == value for name, value in fields.items()):
                found: dict[str, object] = each
                return found


async def test_streams_of_a_user_are_limited(service: Service) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(MAX_STREAMS_PER_USER):
            await stack.enter_async_context(page(service.dashboard))
        refused = await service.dashboard.get("/stream")
        assert code(refused) == (429, "too_many_streams")
        assert refused.headers["retry-after"] == "30"
        assert "20" in refused.json()["detail"]
    async with page(service.dashboard) as desk:
        assert desk.hello["streamId"], "a place is free again"


async def test_streams_of_all_agents_are_limited(tmp_path: Path) -> None:
    async with (
        running(tmp_path, agent_streams=1) as service,
        page(service.dashboard),
    ):
        refused = await service.dashboard.get("/stream")
        assert code(refused) == (429, "too_many_streams")
        assert "DESKWIRE_AGENT_STREAMS" in refused.json()["detail"]


async def test_twenty_streams_end_with_the_service_and_a_goodbye(service: Service) -> None:
    async with AsyncExitStack() as stack:
        desks = [
            await stack.enter_async_context(page(service.dashboard)) for _ in range(MAX_STREAMS_PER_USER)
        ]
        service.stop()
        with fail_after_idle(2):
            for desk in desks:
                assert await desk.bye() == "shutdown"


async def test_a_stream_ends_with_its_members_rights(service: Service) -> None:
    members = f"/organisations/{await organisation_of(service)}/members"
    async with person(service, "agent") as ken:
        ken.http.headers["project"] = service.demo["projectId"]
        async with page(ken.http) as desk:
            await service.dashboard.patch(f"{members}/{ken.id}", json={"role": "viewer"})
            received = await desk.event()
            assert (received["type"], received["data"]) == (
                "settings.changed",
                {"what": "members", "id": ken.id},
            )
            await service.create()
            assert (await desk.event())["type"] == "conversation.created", "a viewer may open a stream"
            await service.dashboard.delete(f"{members}/{ken.id}")
            assert await desk.bye() == "permission_lost"


async def test_a_stream_ends_with_its_users_password(service: Service) -> None:
    async with person(service, "agent") as ken:
        ken.http.headers["project"] = service.demo["projectId"]
        async with page(ken.http) as desk:
            changed = {
                "email": ken.email,
                "password": "a long enough password",
                "newPassword": "another long one",
            }
            await service.http.post("/auth/token", json=changed, headers={"Authorization": ""})
            assert await desk.bye() == "session_ended"


async def test_note_is_on_agents_streams_and_in_no_feed(service: Service) -> None:
    conversation = await service.create()
    async with page(service.dashboard) as desk:
        path = f"/conversations/{conversation['id']}/messages"
        note = (await service.dashboard.post(path, json={"text": "carrier asked", "internal": True})).json()
        said = await service.say(conversation, "hello")
        found = [await desk.event()]
        while found[-1]["type"] != "message.created":
            found.append(await desk.event())
        assert found[-1]["data"]["message"]["id"] == said["id"]
        assert [each["data"]["message"]["id"] for each in found if each["type"] == "note.created"] in (
            [],
            [note["id"]],
        )
    assert "note.created" not in await service.types()


async def test_typing_reaches_agents_even_when_hidden_from_the_customer(service: Service) -> None:
    conversation = (await service.create())["id"]
    async with page(service.dashboard) as desk:
        path = f"/conversations/{conversation}/typing"
        await service.dashboard.post(path, json={"typing": True, "internal": True})
        note = await desk.passing("agent.typing.started")
        assert (note["conversationId"], note["internal"]) == (conversation, True)
        await service.dashboard.post(path, json={"typing": True})
        assert (await desk.passing("agent.typing.stopped"))["internal"] is True
        assert "internal" not in await desk.passing("agent.typing.started")
        await service.dashboard.post(path, json={"typing": False})
        assert "internal" not in await desk.passing("agent.typing.stopped")


async def test_typing_contact_is_shown_to_agents_and_not_stored(service: Service) -> None:
    conversation = await service.create()
    before = await service.events()
    path = f"/s2s/conversations/{conversation['id']}/typing"
    async with page(service.dashboard) as desk:
        for typing, kind in ((True, "contact.typing.started"), (False, "contact.typing.stopped")):
            assert (await service.http.post(path, json={"typing": typing})).status_code == 204
            about = await desk.passing(kind)
            assert about["conversationId"] == conversation["id"]
            assert about["contact"]["id"] == conversation["contact"]["id"]
    assert await service.events() == before
    assert (await service.http.post(path, json={})).status_code == 422
    unknown = f"/s2s/conversations/cnv_{'0' * 26}/typing"
    assert code(await service.http.post(unknown, json={"typing": True})) == (404, "conversation_not_found")
