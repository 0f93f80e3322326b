"""A viewer is assigned no work, neither by a person nor automatically (decisions 3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from tests.support.api.service import Service
from tests.support.api.staff import Person, organisation_of, person


@pytest.fixture
async def viewer(service: Service) -> AsyncIterator[Person]:
    async with person(service, "viewer") as found:
        yield found


def problem(answer: Any) -> tuple[int, str, str]:
    (found,) = answer.json()["errors"]
    return answer.status_code, found["pointer"], found["code"]


async def test_no_conversation_is_assigned_to_a_viewer(service: Service, viewer: Person) -> None:
    conversation = await service.create("ada")
    assignee = {"type": "user", "id": viewer.id}
    for http, prefix in ((service.http, "/s2s"), (service.dashboard, "")):
        path = f"{prefix}/conversations/{conversation['id']}/assign"
        refused = await http.post(path, json={"assignee": assignee})
        assert problem(refused) == (422, "/assignee/id", "viewer")
        assert "Viewer" in refused.json()["errors"][0]["message"]
    started = {"contact": {"userId": "eve"}, "assignee": assignee}
    refused = await service.dashboard.post("/conversations", json=started)
    assert problem(refused) == (422, "/assignee/id", "viewer")
    reply = {"text": "Hi", "then": {"assignee": assignee}}
    refused = await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=reply)
    assert refused.status_code == 422, refused.text
    assert (await service.fetch(conversation))["assignee"] is None


async def test_no_ticket_is_given_to_a_viewer_and_one_that_has_it_may_keep_it(service: Service) -> None:
    async with person(service, "agent") as agent:
        body = {"title": "Parcel", "processingUser": agent.id}
        ticket = (await service.dashboard.post("/tickets", json=body)).json()
        conversation = await service.create("ada")
        path = f"/conversations/{conversation['id']}/assign"
        assigned = await service.dashboard.post(path, json={"assignee": {"type": "user", "id": agent.id}})
        assert assigned.status_code == 200
        member = f"/organisations/{await organisation_of(service)}/members/{agent.id}"
        assert (await service.dashboard.patch(member, json={"role": "viewer"})).status_code == 200
    one = f"/tickets/{ticket['id']}"
    assert (await service.dashboard.get(one)).json()["processingUser"] == agent.id
    kept = await service.dashboard.patch(one, json={"processingUser": agent.id, "priority": "HIGH"})
    assert (kept.status_code, kept.json()["processingUser"]) == (200, agent.id)
    assert (await service.fetch(conversation))["assignee"]["id"] == agent.id
    listed = await service.dashboard.get("/conversations", params={"assignee": agent.id})
    assert [each["id"] for each in listed.json()["items"]] == [conversation["id"]]
    await service.dashboard.patch(one, json={"processingUser": None})
    for method, path, given, pointer in (
        ("POST", "/tickets", {"title": "x", "processingUser": agent.id}, "/processingUser"),
        ("PATCH", one, {"processingUser": agent.id}, "/processingUser"),
        (
            "PUT",
            "/tickets/bulk",
            {"selection": {"ids": [ticket["id"]]}, "payload": {"processingUser": agent.id}},
            "/payload/processingUser",
        ),
    ):
        refused = await service.dashboard.request(method, path, json=given)
        assert problem(refused) == (422, pointer, "viewer"), (method, path)


async def test_no_workflow_assigns_to_a_viewer(service: Service, viewer: Person) -> None:
    def flow(user: str) -> dict[str, Any]:
        actions = [{"id": 1, "type": "assign", "assignee": {"type": "user", "id": user}}]
        return {"name": "W", "trigger": {"type": "manual"}, "flows": [{"id": "main", "actions": actions}]}

    refused = await service.dashboard.post("/workflows", json=flow(viewer.id))
    assert problem(refused) == (422, "/flows/0/actions/0/assignee/id", "unknown_assignee")
    async with person(service, "agent") as agent:
        workflow = (await service.dashboard.post("/workflows", json=flow(agent.id))).json()
        member = f"/organisations/{await organisation_of(service)}/members/{agent.id}"
        assert (await service.dashboard.patch(member, json={"role": "viewer"})).status_code == 200
    conversation = await service.create("ada")
    path = f"/conversations/{conversation['id']}/workflow/start"
    assert (await service.dashboard.post(path, json={"workflowId": workflow["id"]})).status_code == 200
    assert (await service.fetch(conversation))["assignee"] is None


async def test_no_import_assigns_to_a_viewer(service: Service, viewer: Person) -> None:
    line = {
        "type": "conversation",
        "externalId": "c",
        "contact": {"userId": "ada"},
        "createdAt": "2024-01-01T00:00:00Z",
        "assignee": {"type": "user", "id": viewer.id},
    }
    headers = {"Content-Type": "application/x-ndjson"}
    report = (await service.http.post("/s2s/import", content=orjson.dumps(line), headers=headers)).json()
    (refusal,) = report["refusals"]
    assert [(each["pointer"], each["code"]) for each in refusal["errors"]] == [("/assignee/id", "viewer")]
