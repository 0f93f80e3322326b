"""A refusal names every problem, also where a field of another type keeps the request from its handler (decisions 1)."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from deskwire.http.app import ROUTES
from tests.api.conventions.test_json import JSON
from tests.engine.workflows.building import FORM, workflow
from tests.support.api.import_lines import bring, conversation, message
from tests.support.api.service import Service
from tests.support.api.staff import organisation_of
from tests.support.api.surveys import survey

UNKNOWN = "usr_00000000000000000000000000"
BAD_DEFINITION: dict[str, Any] = {"schemaVersion": "2.0", "questions": []}


def named(answer: httpx.Response, status: int = 422) -> set[tuple[str, str]]:
    """Return the refused pointers, each once."""
    assert answer.status_code == status, answer.text
    found = [(each["pointer"], each["code"]) for each in answer.json()["errors"]]
    assert len({pointer for pointer, _ in found}) == len(found), found
    if status == 422:
        assert answer.json()["detail"].startswith(f"{len(found)} problem")
    return set(found)


async def test_a_message_names_its_bad_author_and_attachments_beside_a_wrong_type(service: Service) -> None:
    made = await service.create()
    path = f"/s2s/conversations/{made['id']}/messages"
    body = {"text": 5, "attachments": ["upl_x"], "author": {"type": "agent", "id": UNKNOWN}, "x": 1}
    wanted = {("/text", "invalid"), ("/x", "unknown_field"), ("/attachments/0", "unknown")}
    answer = await service.http.post(path, json=body)
    assert named(answer) == wanted | {("/author/id", "unknown")}
    first = {"contact": {"userId": 7}, "message": body}
    answer = await service.http.post("/s2s/conversations", json=first)
    at = {(f"/message{pointer}", code) for pointer, code in named(await service.http.post(path, json=body))}
    assert named(answer) == at | {("/contact/userId", "invalid")}
    agents = {"text": [], "attachments": ["upl_x"], "internal": "no"}
    answer = await service.dashboard.post(f"/conversations/{made['id']}/messages", json=agents)
    assert named(answer) == {
        ("/text", "invalid"),
        ("/internal", "invalid"),
        ("/attachments/0", "unknown"),
    }


async def test_checks_that_depend_on_an_invalid_field_are_skipped(service: Service) -> None:
    path = f"/s2s/conversations/{(await service.create())['id']}/messages"
    body = {"text": "x", "author": {"type": "robot", "id": "7", "name": "R"}}
    assert named(await service.http.post(path, json=body)) == {("/author/type", "not_allowed")}
    line = conversation("a", status="SHUT", closedBy="agent", rating="9", ratedAt="2024-03-01T09:00:00Z")
    (refused,) = (await bring(service.http, line))["refusals"]
    assert {each["pointer"] for each in refused["errors"]} == {"/status", "/rating"}


async def test_patches_name_the_nulls_that_clear_nothing_beside_a_wrong_type(service: Service) -> None:
    made = await service.create()
    cases: list[tuple[httpx.AsyncClient, str, dict[str, Any], set[tuple[str, str]]]] = [
        (
            service.http,
            f"/s2s/conversations/{made['id']}",
            {"title": 5, "archived": None, "status": None},
            {("/title", "invalid"), ("/archived", "not_nullable"), ("/status", "not_nullable")},
        ),
        (
            service.dashboard,
            f"/projects/{service.demo['projectId']}",
            {"name": None, "settings": {"languages": ["en", "x y"], "memoryEnabled": None, "nope": 1}},
            {
                ("/name", "not_nullable"),
                ("/settings/languages/1", "invalid_language"),
                ("/settings/memoryEnabled", "not_nullable"),
                ("/settings/nope", "unknown_field"),
            },
        ),
    ]
    for client, path, body, wanted in cases:
        answer = await client.patch(path, json=body)
        assert {pointer for pointer, _ in named(answer)} == {pointer for pointer, _ in wanted}, path


async def test_tickets_name_whom_there_is_not_beside_a_wrong_type(service: Service) -> None:
    wrong = {
        "title": 5,
        "processingUser": UNKNOWN,
        "processingTeam": "team_x",
        "contactId": "con_x",
        "snoozedUntil": "2020-01-01T00:00:00Z",
    }
    pointers = {"/title", "/processingUser", "/processingTeam", "/contactId", "/snoozedUntil"}
    answer = await service.dashboard.post("/tickets", json=wrong)
    assert {pointer for pointer, _ in named(answer)} == pointers
    answer = await service.dashboard.post("/tickets", json=wrong | {"title": "All but the types"})
    assert {pointer for pointer, _ in named(answer)} == pointers - {"/title"}
    ticket = (await service.dashboard.post("/tickets", json={"title": "T"})).json()
    answer = await service.dashboard.patch(f"/tickets/{ticket['id']}", json=wrong | {"priority": None})
    assert {pointer for pointer, _ in named(answer)} == pointers | {"/priority"}
    bulk = {
        "selection": {"ids": [1]},
        "payload": {"processingUser": UNKNOWN, "priority": None, "duration": "soon"},
    }
    answer = await service.dashboard.put("/tickets/bulk", json=bulk)
    assert {pointer for pointer, _ in named(answer)} == {
        "/selection/ids/0",
        "/payload/processingUser",
        "/payload/priority",
        "/payload/duration",
    }


async def test_a_bulk_change_names_ids_given_twice_beside_a_payload_without_a_field(service: Service) -> None:
    ticket = (await service.dashboard.post("/tickets", json={"title": "T"})).json()["id"]
    bulk = {"selection": {"ids": [ticket, ticket]}, "payload": {}}
    answer = await service.dashboard.put("/tickets/bulk", json=bulk)
    assert named(answer) == {("/selection/ids", "duplicate"), ("/payload", "required")}
    answer = await service.dashboard.put("/tickets/bulk", json={"selection": {"ids": []}, "payload": {}})
    assert named(answer) == {("/selection/ids", "too_few"), ("/payload", "required")}
    answer = await service.dashboard.put(
        "/tickets/bulk", json={"selection": {"ids": [ticket]}, "payload": {}}
    )
    assert named(answer) == {("/payload", "required")}


async def test_each_item_of_a_list_is_named_beside_one_of_a_wrong_type(service: Service) -> None:
    made = await service.create()
    endpoint = {"url": service.url, "events": ["nope", 3, "conversation.created", "more"]}
    answer = await service.http.post("/s2s/webhooks", json=endpoint)
    assert {pointer for pointer, _ in named(answer)} == {"/events/0", "/events/1", "/events/3"}
    content: dict[str, Any] = {"text": "x", "attachments": ["upl_x", None, {}]}
    for client, path in (
        (service.http, f"/s2s/conversations/{made['id']}/messages"),
        (service.dashboard, f"/conversations/{made['id']}/messages"),
    ):
        answer = await client.post(path, json=content)
        assert {pointer for pointer, _ in named(answer)} == {f"/attachments/{index}" for index in range(3)}
    team = {"name": "Support", "members": [UNKNOWN, 5]}
    answer = await service.dashboard.post("/teams", json=team)
    assert {pointer for pointer, _ in named(answer)} == {"/members/0", "/members/1"}
    settings = {"settings": {"languages": ["x y", 5, "en"]}}
    answer = await service.dashboard.patch(f"/projects/{service.demo['projectId']}", json=settings)
    assert {pointer for pointer, _ in named(answer)} == {f"/settings/languages/{index}" for index in range(2)}


async def test_surveys_name_inner_problems_next_to_a_wrong_type(service: Service) -> None:
    answer = await service.dashboard.post(
        "/engagement/surveys", json={"name": 5, "definition": BAD_DEFINITION}
    )
    found = named(answer)
    assert ("/name", "invalid") in found
    assert {pointer for pointer, _ in found} > {"/definition/title", "/definition/questions"}
    made = await survey(service)
    body = {"answers": {"score": 99, "nope": 1}, "language": "xx", "contact": {"userId": 1}, "extra": 1}
    answer = await service.http.post(f"/s2s/surveys/{made['id']}/responses", json=body)
    assert {pointer for pointer, _ in named(answer)} == {
        "/answers/score",
        "/answers/nope",
        "/language",
        "/contact/userId",
        "/extra",
    }
    part = {"id": "a", "title": "T"}
    drivers = [{**part, "impact": 0.5, "count": 1}] * 2
    answer = await service.dashboard.put(
        f"/engagement/surveys/{made['id']}/insights", json={"drivers": drivers, "summary": 5}
    )
    assert named(answer) == {("/summary", "invalid"), ("/drivers/1/id", "duplicate_id")}


async def test_workflows_name_inner_problems_next_to_a_wrong_type(service: Service) -> None:
    made = (await service.dashboard.post("/workflows", json=workflow([FORM]))).json()
    path = f"/s2s/conversations/{(await service.create())['id']}/workflow"
    assert (await service.http.post(f"{path}/start", json={"workflowId": made["id"]})).is_success
    body = {"actionId": "20", "value": {"number": 5, "nope": 1}, "x": 1}
    answer = await service.http.post(f"{path}/reply", json=body)
    assert {pointer for pointer, _ in named(answer)} >= {"/actionId", "/x", "/value/nope"}
    answer = await service.http.post(f"{path}/start", json={"workflowId": "wfl_x", "x": 1})
    assert named(answer) == {("/workflowId", "unknown"), ("/x", "unknown_field")}
    draft = {"name": 5, "trigger": {"type": "never"}, "flows": [{"id": 7, "actions": "none"}]}
    answer = await service.dashboard.post("/workflows", json=draft)
    assert {pointer for pointer, _ in named(answer)} >= {"/name", "/trigger/type", "/flows/0/id"}


async def test_other_bodies_name_everything_beside_a_wrong_type(service: Service) -> None:
    organisation = await organisation_of(service)
    conversation_id = (await service.create())["id"]
    session = f"/sessions/{(await service.create())['contact']['id']}/memory"
    assert (await service.dashboard.post(session, json={"name": "n", "content": "c"})).is_success
    entry = "/translations/entries/statictranslation:a"
    http, desk = service.http, service.dashboard
    cases: list[tuple[httpx.AsyncClient, str, str, dict[str, Any], set[str]]] = [
        (
            http,
            "POST",
            "/s2s/webhooks",
            {"url": "ftp://x", "events": ["nope"], "description": 5},
            {"/url", "/events/0", "/description"},
        ),
        (http, "PUT", f"/s2s/contacts/{'x' * 256}", {"name": 5}, {"", "/name"}),
        (
            http,
            "POST",
            f"/s2s/conversations/{conversation_id}/assign",
            {"assignee": {"type": "user", "id": UNKNOWN}, "x": 1},
            {"/assignee/id", "/x"},
        ),
        (desk, "POST", "/teams", {"name": 5, "members": [UNKNOWN]}, {"/name", "/members/0"}),
        (desk, "PUT", entry, {"language": "fr", "fields": {}}, {"/language", "/fields"}),
        (
            desk,
            "POST",
            f"/organisations/{organisation}/projects",
            {"name": 5, "settings": {"languages": ["x y"]}},
            {"/name", "/settings/languages/0"},
        ),
        (desk, "PATCH", f"{session}/n", {"content": None, "description": 5}, {"/content", "/description"}),
        (
            desk,
            "POST",
            "/tickets/tkt_x/voice-reply",
            {"audioUrl": "https://x.example/a", "mode": "loud"},
            {"/audioUrl", "/mode"},
        ),
    ]
    for client, method, path, body, pointers in cases:
        answer = await client.request(method, path, json=body)
        assert {pointer for pointer, _ in named(answer)} == pointers, path


async def test_a_line_of_an_import_names_everything_beside_a_wrong_type(service: Service) -> None:
    lines = [
        conversation("a", title=5, createdAt="yesterday", closedBy="agent"),
        conversation("b") | {"type": "conversation", "contact": {"userId": 1, "createdAt": "tomorrow"}},
        message("c", 0, text=5, attachments=["upl_1", "upl_1"], author={"type": "contact", "name": "Ada"}),
    ]
    report = await bring(service.http, *lines)
    found = [{each["pointer"] for each in line["errors"]} for line in report["refusals"]]
    assert found == [
        {"/title", "/createdAt", "/closedBy"},
        {"/contact/userId", "/contact/createdAt"},
        {"/text", "/attachments", "/author/name"},
    ]


async def test_a_query_names_everything_beside_a_wrong_type(service: Service) -> None:
    cases = [
        (service.http, "/s2s/events?limit=0&after=nope&types=a,message.created&x=1", {"/limit", "/after", "/types", "/x"}),
        (service.http, "/s2s/events?after=nope&types=a", {"/after", "/types"}),
        (service.dashboard, "/tickets?limit=x&cursor=nope&sort=up&snoozed=1", {"/limit", "/cursor", "/sort", "/snoozed"}),
        (service.dashboard, "/conversations?status=SHUT&cursor=W10&archived=yes", {"/status", "/cursor", "/archived"}),
        (service.dashboard, "/teams?limit=999&cursor=nope&cursor=nope", {"/limit", "/cursor"}),
        (service.dashboard, "/organisations?limit=999&cursor=WzFd", {"/limit", "/cursor"}),
    ]  # fmt: skip
    for client, target, pointers in cases:
        answer = await client.get(target)
        assert answer.status_code == 400
        assert {each["pointer"] for each in answer.json()["errors"]} == pointers, target


@pytest.mark.parametrize("body", [None, [], 5, "x", {}])
async def test_value_that_is_no_object_gets_one_problem(service: Service, body: Any) -> None:
    for route in ROUTES:
        if not route.further or "<" in route.path:
            continue
        client = service.http if route.access.kind == "server_key" else service.dashboard
        path, content = route.path.removeprefix("/v3"), json.dumps(body)
        answer = await client.request(route.method, path, content=content, headers=JSON)
        assert answer.status_code == 422, (route.operation_id, answer.text)
        found = named(answer)
        assert {pointer for pointer, _ in found} == {""} if body != {} else found, (route.operation_id, found)
