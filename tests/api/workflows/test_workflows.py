"""Workflows through the wire: managed by users, started, answered, waited for (contract 2.5, 4.3; decisions 7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.engine.workflows.building import SUPPORT, branch, buttons, send, wait, workflow
from tests.support.api.service import Service, running
from tests.support.api.staff import code, person

UNKNOWN = "wfl_00000000000000000000000000"
CHAT = workflow(
    main=[send(1, "Hello!"), buttons(2, "order", None), {"id": 3, "type": "hand_off"}],
    order=[send(4, "Thanks."), {"id": 5, "type": "close"}],
)
WELCOME = {**CHAT, "trigger": {"type": "conversation.created"}}


async def make(service: Service, document: Any = CHAT) -> dict[str, Any]:
    """Create a workflow."""
    answer = await service.dashboard.post("/workflows", json=document)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def start(service: Service, conversation: dict[str, Any], made: dict[str, Any]) -> httpx.Response:
    path = f"/s2s/conversations/{conversation['id']}/workflow/start"
    return await service.http.post(path, json={"workflowId": made["id"]})


async def reply(service: Service, conversation: dict[str, Any], action_id: int, value: Any) -> httpx.Response:
    path = f"/s2s/conversations/{conversation['id']}/workflow/reply"
    return await service.http.post(path, json={"actionId": action_id, "value": value})


async def step(service: Service, conversation: dict[str, Any]) -> Any:
    """Return the response to `GET …/workflow`, which is the same for an agent."""
    answer = await service.http.get(f"/s2s/conversations/{conversation['id']}/workflow")
    assert answer.status_code == 200, answer.text
    seen = await service.dashboard.get(f"/conversations/{conversation['id']}/workflow")
    assert seen.json() == answer.json()
    assert list(answer.json()) == ["step"]
    return answer.json()["step"]


def pointers(answer: httpx.Response) -> list[tuple[str, str]]:
    assert answer.status_code == 422, answer.text
    return [(each["pointer"], each["code"]) for each in answer.json()["errors"]]


async def test_a_workflow_is_made_read_listed_changed_and_removed(service: Service) -> None:
    made = await make(service)
    assert {name: made[name] for name in CHAT} == CHAT
    assert (made["id"][:4], made["version"]) == ("wfl_", 1)
    path = f"/workflows/{made['id']}"
    assert (await service.dashboard.get(path)).json() == made
    other = await make(service, WELCOME)
    (listed, first) = (await service.dashboard.get("/workflows")).json()["items"]
    assert (listed["id"], first) == (other["id"], {name: made[name] for name in made if name != "flows"})
    only = await service.dashboard.get("/workflows", params={"trigger": "manual"})
    assert [each["id"] for each in only.json()["items"]] == [made["id"]]
    page = (await service.dashboard.get("/workflows", params={"limit": "1"})).json()
    rest = await service.dashboard.get("/workflows", params={"limit": "1", "cursor": page["nextCursor"]})
    assert (rest.json()["items"], rest.json()["nextCursor"]) == ([first], None)
    renamed = (await service.dashboard.patch(path, json={"name": "Orders"})).json()
    assert (renamed["name"], renamed["version"], renamed["flows"]) == ("Orders", 1, CHAT["flows"])
    again = (await service.dashboard.patch(path, json={"name": "Orders", "flows": CHAT["flows"]})).json()
    assert again == renamed
    changed = (
        await service.dashboard.patch(path, json={"flows": [SUPPORT["flows"][0] | {"actions": [send(7)]}]})
    ).json()
    assert (changed["version"], changed["flows"][0]["actions"]) == (2, [send(7)])
    assert (await service.dashboard.delete(path)).json() == {"id": made["id"], "deleted": True}
    for method in ("GET", "PATCH", "DELETE"):
        gone = await service.dashboard.request(
            method, path, json=None if method == "GET" else {"name": "x"} if method == "PATCH" else {}
        )
        assert code(gone) == (404, "workflow_not_found")


async def test_all_problems_are_named_and_nothing_is_stored(service: Service) -> None:
    bad = {
        "trigger": {"type": "daily"},
        "flows": [{"id": "a", "actions": [{"id": 1, "type": "dance"}]}],
        "colour": 1,
    }
    expected = [
        ("/name", "required"),
        ("/colour", "unknown_field"),
        ("/trigger/type", "unknown_trigger"),
        ("/flows/0/actions/0/type", "unknown_action"),
    ]
    assert pointers(await service.dashboard.post("/workflows", json=bad)) == expected
    checked = (await service.dashboard.post("/workflows/validate", json=bad)).json()
    assert (checked["ok"], [(each["path"], each["code"]) for each in checked["errors"]]) == (False, expected)
    assert (await service.dashboard.post("/workflows/validate", json=CHAT)).json() == {
        "ok": True,
        "errors": [],
    }
    assert (await service.dashboard.get("/workflows")).json()["items"] == []
    made = await make(service)
    loop = workflow([send(1), branch(2, "f0")])["flows"]
    answer = await service.dashboard.patch(f"/workflows/{made['id']}", json={"flows": loop})
    assert pointers(answer) == [("/flows/0/actions/1", "endless_loop")]
    assert pointers(await service.dashboard.patch(f"/workflows/{made['id']}", json={})) == [("", "required")]
    assert pointers(
        await service.dashboard.patch(f"/workflows/{made['id']}", json={"name": None, "a/b": 1})
    ) == [
        ("/a~1b", "unknown_field"),
        ("/name", "wrong_type"),
    ]


async def test_an_assignee_must_be_the_projects_own(service: Service) -> None:
    (team,) = (await service.dashboard.get("/teams")).json()["items"]
    for team_id, expected in ((team["id"], 200), ("team_00000000000000000000000000", 422)):
        give = {"id": 1, "type": "assign", "assignee": {"type": "team", "id": team_id}}
        answer = await service.dashboard.post("/workflows", json=workflow([give]))
        assert answer.status_code == expected, answer.text
    assert pointers(answer) == [("/flows/0/actions/0/assignee/id", "unknown_assignee")]
    (made,) = (await service.dashboard.get("/workflows")).json()["items"]
    await service.dashboard.delete(f"/teams/{team['id']}")
    path = f"/workflows/{made['id']}"
    assert (await service.dashboard.patch(path, json={"trigger": WELCOME["trigger"]})).status_code == 200
    with_wrong_name = {"name": "", "flows": workflow([give])["flows"]}
    assert pointers(await service.dashboard.patch(path, json=with_wrong_name)) == [
        ("/name", "empty"),
        ("/flows/0/actions/0/assignee/id", "unknown_assignee"),
    ]


async def test_roles_read_start_and_manage(service: Service) -> None:
    made, conversation = await make(service), await service.create()
    for role, may in (("viewer", (200, 403, 403)), ("agent", (200, 200, 403)), ("admin", (200, 409, 200))):
        async with person(service, role) as user:
            headers = {"project": service.demo["projectId"]}
            read = await user.http.get(f"/workflows/{made['id']}", headers=headers)
            path = f"/conversations/{conversation['id']}/workflow/start"
            begun = await user.http.post(path, json={"workflowId": made["id"]}, headers=headers)
            managed = await user.http.post("/workflows", json=CHAT, headers=headers)
            assert (read.status_code, begun.status_code, managed.status_code) == may, role


async def test_a_manual_one_is_started_answered_and_completed(service: Service) -> None:
    made, conversation = await make(service), await service.create()
    assert await step(service, conversation) is None
    begun = (await start(service, conversation, made)).json()
    assert (begun["id"], begun["sequence"], begun["unread"]) == (conversation["id"], 4, True)
    shown = await step(service, conversation)
    options = [{"id": "b0", "label": "Button 0"}, {"id": "b1", "label": "Button 1"}]
    action = {"id": 2, "type": "buttons", "text": "Choose", "options": options, "allowText": False}
    place = {"workflowId": made["id"], "actionFlowId": "main", "actionId": 2}
    assert shown == {**place, "stepType": "buttons", "action": action}
    assert pointers(await reply(service, conversation, 2, "b7")) == [("/value", "not_allowed")]
    done = (await reply(service, conversation, 2, "b0")).json()
    assert (done["closed"], done["closedBy"], await step(service, conversation)) == (True, "bot", None)
    events = await service.events()
    assert [event["type"] for event in events] == [
        "conversation.created", "message.created", "message.created", "workflow.step.presented",
        "message.created", "message.created", "conversation.closed", "workflow.completed",
    ]  # fmt: skip
    assert [event["sequence"] for event in events] == list(range(1, 9))
    assert events[3]["data"]["step"] == shown
    assert events[-1]["data"]["reason"] == "completed"
    assert events[-1]["data"]["workflowId"] == made["id"]
    assert events[-1]["data"]["conversation"] == done
    authors = [event["data"]["message"]["author"]["type"] for event in events if "message" in event["data"]]
    assert authors == ["bot", "bot", "contact", "bot"]


async def test_newest_workflow_for_new_conversations_starts(service: Service) -> None:
    first = await make(service, WELCOME)
    last = await make(
        service,
        {
            **WELCOME,
            "flows": [
                {"id": "a", "actions": [send(1, "Newer"), *WELCOME["flows"][0]["actions"][1:]]},
                WELCOME["flows"][1],
            ],
        },
    )
    for made in (last, first):
        conversation = await service.create(message={"text": "Hi"})
        assert conversation["sequence"] == 5
        assert (await step(service, conversation))["workflowId"] == made["id"]
        answer = await service.dashboard.patch(
            f"/workflows/{made['id']}", json={"trigger": {"type": "manual"}}
        )
        assert answer.status_code == 200
    assert await step(service, await service.create()) is None


async def test_message_is_answered_with_itself_despite_a_workflow(service: Service) -> None:
    document = workflow([buttons(1, None, free=True), send(2, "Thanks.")])
    made, conversation = await make(service, document), await service.create()
    await start(service, conversation, made)
    said = await service.say(conversation, "Hi")
    assert (said["text"], said["author"]["type"]) == ("Hi", "contact")
    assert (await service.types())[-3:] == ["message.created", "message.created", "workflow.completed"]


async def test_of_two_replies_at_once_one_wins(service: Service) -> None:
    made, conversation = await make(service), await service.create()
    await start(service, conversation, made)
    answers: list[tuple[int, Any]] = []

    async def answer() -> None:
        got = await reply(service, conversation, 2, "b0")
        answers.append((got.status_code, got.json().get("code")))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(answer)
    assert sorted(answers, key=str) == [(200, None), *[(409, "step_not_pending")] * 4]


async def test_an_agents_reply_hands_over(service: Service) -> None:
    made, conversation = await make(service), await service.create()
    await start(service, conversation, made)
    await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json={"text": "I am here."})
    (message, ended) = (await service.events())[-2:]
    assert (message["type"], ended["type"]) == ("message.created", "workflow.completed")
    assert ended["data"]["reason"] == "handed_off"
    assert code(await reply(service, conversation, 2, "b0")) == (409, "step_not_pending")


async def test_refused_starts_have_reasons(service: Service) -> None:
    made, conversation = await make(service), await service.create()
    automatic = await make(service, WELCOME)
    assert pointers(await start(service, conversation, {"id": UNKNOWN})) == [("/workflowId", "unknown")]
    assert code(await start(service, conversation, automatic)) == (409, "workflow_not_manual")
    assert (await start(service, conversation, made)).status_code == 200
    assert code(await start(service, conversation, made)) == (409, "workflow_running")
    await service.do(conversation, "close")
    assert code(await start(service, conversation, made)) == (409, "conversation_closed")
    hidden = await service.create(visible=False)
    assert code(await start(service, hidden, made)) == (409, "conversation_hidden")
    assert code(await start(service, {"id": "cnv_00000000000000000000000000"}, made)) == (
        404,
        "conversation_not_found",
    )


async def test_another_projects_workflow_is_not_found(service: Service) -> None:
    made = await make(service)
    path = (
        f"/organisations/{(await service.dashboard.get('/organisations')).json()['items'][0]['id']}/projects"
    )
    project = (await service.dashboard.post(path, json={"name": "Other"})).json()["id"]
    headers = {"project": project}
    for method, body in (("GET", None), ("PATCH", {"name": "x"}), ("DELETE", {})):
        answer = await service.dashboard.request(
            method, f"/workflows/{made['id']}", json=body, headers=headers
        )
        assert code(answer) == (404, "workflow_not_found")
    assert (await service.dashboard.get("/workflows", headers=headers)).json()["items"] == []


async def test_a_change_does_not_disturb_where_it_runs(service: Service) -> None:
    made, conversation = await make(service), await service.create()
    await start(service, conversation, made)
    path = f"/workflows/{made['id']}"
    assert (
        await service.dashboard.patch(path, json={"flows": workflow([send(9)])["flows"]})
    ).status_code == 200
    assert (await service.dashboard.delete(path)).status_code == 200
    assert (await reply(service, conversation, 2, "b0")).json()["closed"]


async def test_a_wait_and_a_step_outlast_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        first, second = CHAT["flows"]
        delayed = {**first, "actions": [wait(9, 1), *first["actions"]]}
        made = await make(service, {**CHAT, "flows": [delayed, second]})
        conversation = await service.create()
        await start(service, conversation, made)
        assert await step(service, conversation) is None
    async with running(tmp_path) as service:
        answer = await service.http.get(
            "/s2s/events", params={"types": "workflow.step.presented", "wait": "10"}
        )
        (event,) = answer.json()["items"]
        assert event["data"]["conversation"]["id"] == conversation["id"]
        assert await step(service, conversation) == event["data"]["step"]
    async with running(tmp_path) as service:
        assert (await reply(service, conversation, 2, "b1")).status_code == 200
        assert (await service.events())[-1]["data"]["reason"] == "handed_off"


async def test_the_limits_of_an_answer_hold_on_the_wire(service: Service) -> None:
    made, conversation = await make(service), await service.create()
    await start(service, conversation, made)
    path = f"/s2s/conversations/{conversation['id']}/workflow/reply"
    for body, pointer in (
        ({"actionId": 2}, "/value"),
        ({"value": "b0"}, "/actionId"),
        ({"actionId": "2", "value": 1}, "/actionId"),
    ):
        assert (
            pointers(
                await service.http.post(
                    path, content=json.dumps(body), headers={"Content-Type": "application/json"}
                )
            )[0][0]
            == pointer
        )


@pytest.mark.parametrize("tail", ["", "/reply", "/start"])
async def test_workflow_routes_do_not_find_a_deleted_conversation(service: Service, tail: str) -> None:
    made, conversation = await make(service), await service.create()
    await start(service, conversation, made)
    await service.http.delete(f"/s2s/conversations/{conversation['id']}")
    path = f"/s2s/conversations/{conversation['id']}/workflow{tail}"
    body = {"/reply": {"actionId": 2, "value": "b0"}, "/start": {"workflowId": made["id"]}}.get(tail)
    answer = await (service.http.post(path, json=body) if body else service.http.get(path))
    assert code(answer) == (404, "conversation_not_found")


@pytest.mark.parametrize("depth", [200, 245, 900])
async def test_attributes_that_are_nested_deeply_are_stored_or_refused(service: Service, depth: int) -> None:
    conversation = await service.create()
    body = f'{{"attributes": {{"a": {"[" * depth}{"]" * depth}}}}}'
    headers = {"Content-Type": "application/json"}
    path = f"/s2s/conversations/{conversation['id']}"
    answer = await service.http.patch(path, content=body, headers=headers)
    assert answer.status_code == (200 if depth == 200 else 422), answer.text


async def test_stale_update_is_refused_and_overwrites_nothing(service: Service) -> None:
    made = await make(service)
    path = f"/workflows/{made['id']}"
    seen = (await service.dashboard.get(path)).headers["etag"]
    first = await service.dashboard.patch(path, json={"name": "First"}, headers={"If-Match": seen})
    assert first.status_code == 200
    flows = workflow([send(1)])["flows"]
    second = await service.dashboard.patch(path, json={"flows": flows}, headers={"If-Match": seen})
    assert code(second) == (412, "changed_meanwhile")
    gone = await service.dashboard.request("DELETE", path, json={}, headers={"If-Match": seen})
    assert code(gone) == (412, "changed_meanwhile")
    again = await service.dashboard.patch(
        path, json={"flows": flows}, headers={"If-Match": first.headers["etag"]}
    )
    assert (again.json()["name"], again.json()["version"]) == ("First", 2)
    assert again.headers["etag"] == (await service.dashboard.get(path)).headers["etag"]
