"""Runs, versions and try-outs of workflows through the wire (ADR 20)."""

from __future__ import annotations

from typing import Any

from deskwire.engine.workflows.runs import VERSIONS_KEPT
from tests.api.workflows.test_workflows import CHAT, make, pointers, reply, start
from tests.engine.workflows.building import FORM, branch, buttons, send, wait, workflow
from tests.support.api.inbox import activity, told
from tests.support.api.service import Service
from tests.support.api.staff import code, person


async def runs(service: Service, made: dict[str, Any], **query: Any) -> list[dict[str, Any]]:
    answer = await service.dashboard.get(f"/workflows/{made['id']}/runs", params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def figures(service: Service, made: dict[str, Any]) -> dict[str, Any]:
    answer = await service.dashboard.get(f"/workflows/{made['id']}/figures")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def try_out(service: Service, document: dict[str, Any], **parts: Any) -> dict[str, Any]:
    answer = await service.dashboard.post("/workflows/simulate", json={"flows": document["flows"], **parts})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_run_waits_at_its_step_until_it_has_ended(service: Service) -> None:
    made = await make(service)
    first, second = [await service.create(user) for user in ("u1", "u2")]
    for conversation in (first, second):
        assert (await start(service, conversation, made)).status_code == 200
    waiting = await runs(service, made)
    assert {each["conversationId"] for each in waiting} == {second["id"], first["id"]}
    one = waiting[0]
    assert (one["state"], one["version"], one["flowId"], one["actionId"]) == ("waiting", 1, "main", 2)
    assert (one["dueAt"], one["reason"], one["stopped"]) == (None, None, None)
    (place,) = (await figures(service, made))["waiting"]
    assert (place["runs"], place["flowId"], place["actionId"]) == (2, "main", 2)
    assert place["since"] == min(each["since"] for each in waiting)
    assert (await reply(service, first, 2, "b0")).status_code == 200
    assert (await reply(service, second, 2, "b1")).status_code == 200
    assert await runs(service, made) == []
    handed, closed = await runs(service, made, state="ended")
    assert (handed["conversationId"], handed["reason"], handed["actionId"]) == (second["id"], "handed_off", 3)
    assert (closed["reason"], closed["flowId"], closed["actionId"]) == ("completed", "order", 5)
    counted = await figures(service, made)
    assert counted == {"waiting": [], "completed": 1, "handedOff": 1, "stopped": []}
    page = await service.dashboard.get(
        f"/workflows/{made['id']}/runs", params={"state": "ended", "limit": "1"}
    )
    assert await runs(service, made, state="ended", cursor=page.json()["nextCursor"]) == [closed]


async def test_failed_run_shows_reason_and_step(service: Service) -> None:
    (team,) = (await service.dashboard.get("/teams")).json()["items"]
    give = {"id": 7, "type": "assign", "assignee": {"type": "team", "id": team["id"]}}
    made = await make(service, workflow([send(1), give]))
    await service.dashboard.delete(f"/teams/{team['id']}")
    conversation = await service.create()
    assert (await start(service, conversation, made)).status_code == 200
    (stopped,) = await runs(service, made, state="stopped")
    assert (stopped["state"], stopped["reason"], stopped["stopped"]) == (
        "stopped",
        "handed_off",
        "assignee_gone",
    )
    assert (stopped["flowId"], stopped["actionId"]) == ("f0", 7)
    assert await runs(service, made, state="ended") == [stopped]
    assert (await figures(service, made))["stopped"] == [{"reason": "assignee_gone", "runs": 1}]


async def test_activity_names_the_step_that_assigned_or_closed(
    service: Service,
) -> None:
    (team,) = (await service.dashboard.get("/teams")).json()["items"]
    give = {"id": 7, "type": "assign", "assignee": {"type": "team", "id": team["id"]}}
    flows = workflow([buttons(1, "tail")], tail=[send(2), give, {"id": 9, "type": "close"}])
    made, conversation = await make(service, flows), await service.create()
    await start(service, conversation, made)
    assert (await reply(service, conversation, 1, "b0")).status_code == 200
    path = f"/workflows/{made['id']}"
    assert (await service.dashboard.patch(path, json=workflow([send(1)]))).status_code == 200
    assert (await service.dashboard.delete(path)).status_code == 200
    closed, assigned = (await activity(service, conversation))["items"]
    assert (closed["action"], assigned["action"]) == ("closed", "assigned")
    step = {"workflowId": made["id"], "version": 1, "actionFlowId": "tail"}
    assert (closed["step"], assigned["step"]) == ({**step, "actionId": 9}, {**step, "actionId": 7})
    assert closed["actor"] == {"type": "bot", "id": made["id"], "name": None}


async def test_assignment_by_a_workflow_has_an_event_for_agents(service: Service) -> None:
    (team,) = (await service.dashboard.get("/teams")).json()["items"]
    give = {"id": 7, "type": "assign", "assignee": {"type": "team", "id": team["id"]}}
    made = await make(service, workflow([buttons(1, "tail")], tail=[give, {"id": 9, "type": "close"}]))
    conversation = await service.create()
    await start(service, conversation, made)
    assert (await reply(service, conversation, 1, "b0")).status_code == 200
    (changed,) = [event for event in told(service) if "assignee" in event["data"].get("changed", ())]
    assert changed["data"]["conversation"]["assignee"]["id"] == team["id"]
    assert changed["data"]["actor"]["type"] == "key"  # which passed the answer on


async def test_actions_of_persons_and_keys_name_no_step(service: Service) -> None:
    made, conversation = await make(service), await service.create()
    await start(service, conversation, made)
    await service.do(conversation, "close", closedBy="bot")
    (entry,) = (await activity(service, conversation))["items"]
    assert (entry["actor"]["type"], "step" in entry) == ("key", False)


async def test_agent_who_takes_over_ends_the_run_at_its_step(service: Service) -> None:
    made, conversation = await make(service), await service.create()
    await start(service, conversation, made)
    path = f"/conversations/{conversation['id']}/messages"
    assert (await service.dashboard.post(path, json={"text": "I am here."})).status_code == 200
    (ended,) = await runs(service, made, state="ended")
    assert (ended["reason"], ended["actionId"]) == ("handed_off", 2)


async def test_run_is_deleted_with_its_conversation(service: Service) -> None:
    made, conversation = await make(service, workflow([send(1)])), await service.create()
    await start(service, conversation, made)
    assert len(await runs(service, made, state="ended")) == 1
    gone = await service.dashboard.delete(f"/conversations/{conversation['id']}")
    assert gone.status_code == 200, gone.text
    assert await runs(service, made, state="ended") == []


async def test_timed_wait_shows_when_it_continues(service: Service) -> None:
    made, conversation = await make(service, workflow([wait(3, 3600), send(4)])), await service.create()
    await start(service, conversation, made)
    (run,) = await runs(service, made)
    assert (run["actionId"], run["dueAt"] > run["since"]) == (3, True)


async def test_versions_are_kept_with_their_flows_and_runs_name_theirs(service: Service) -> None:
    made, conversation = await make(service), await service.create()
    await start(service, conversation, made)
    path = f"/workflows/{made['id']}"
    changed = await service.dashboard.patch(path, json={"flows": workflow([send(9)])["flows"]})
    assert changed.json()["version"] == 2
    newest, oldest = (await service.dashboard.get(f"{path}/versions")).json()["items"]
    assert (newest["version"], newest["published"], newest["createdAt"]) == (
        2,
        True,
        changed.json()["updatedAt"],
    )
    assert (oldest["version"], oldest["published"], oldest["createdAt"]) == (1, False, made["createdAt"])
    first = (await service.dashboard.get(f"{path}/versions/1")).json()
    assert first == {**oldest, "flows": CHAT["flows"]}
    (run,) = await runs(service, made)
    assert (run["version"], run["actionId"]) == (1, 2)
    for number in ("0", "3", "x", "99999999999"):
        gone = await service.dashboard.get(f"{path}/versions/{number}")
        assert code(gone) == (404, "workflow_version_not_found")


async def test_only_the_newest_versions_are_kept(service: Service, monkeypatch: Any) -> None:
    monkeypatch.setattr("deskwire.storage.tables.workflows.KEPT_MS", -1)
    monkeypatch.setattr("deskwire.storage.tables.workflows.VERSIONS_KEPT", 2)
    made = await make(service)
    for number in range(4):
        changed = await service.dashboard.patch(
            f"/workflows/{made['id']}", json={"flows": workflow([send(number + 10)])["flows"]}
        )
        assert changed.status_code == 200, changed.text
    kept = (await service.dashboard.get(f"/workflows/{made['id']}/versions")).json()["items"]
    assert [each["version"] for each in kept] == [5, 4]
    assert VERSIONS_KEPT == 100


async def test_dry_run_shows_its_effects_and_changes_nothing(service: Service) -> None:
    (team,) = (await service.dashboard.get("/teams")).json()["items"]
    document = workflow(
        main=[send(1, "Hello!"), buttons(2, "paid", None), {"id": 3, "type": "hand_off"}],
        paid=[
            {"id": 4, "type": "set_attributes", "attributes": {"paid": True, "old": None}},
            {"id": 5, "type": "assign", "assignee": {"type": "team", "id": team["id"]}},
            wait(6, 60),
            {**FORM, "id": 7},
            {"id": 8, "type": "close"},
        ],
    )
    begun = await try_out(service, document, attributes={"old": 1})
    assert begun["events"] == [{"type": "message", "text": "Hello!"}, {"type": "message", "text": "Choose"}]
    assert (begun["waits"]["actionId"], begun["waits"]["actionFlowId"], begun["ended"]) == (2, "main", None)
    further = await try_out(service, document, attributes={"old": 1}, answers=["b0"])
    assert further["events"][2:] == [
        {"type": "answer", "actionId": 2, "text": "Button 0"},
        {"type": "attributes", "attributes": {"paid": True, "old": None}},
        {"type": "assigned", "assignee": {"type": "team", "id": team["id"], "name": team["name"]}},
        {"type": "waited", "actionId": 6, "seconds": 60},
        {"type": "message", "text": "Which one?"},
    ]
    assert (further["waits"]["stepType"], further["attributes"]) == ("form", {"paid": True})
    done = await try_out(service, document, answers=["b0", {"number": "7"}, "unused"])
    assert done["events"][-2:] == [
        {"type": "answer", "actionId": 7, "text": "Order number: 7"},
        {"type": "closed"},
    ]
    assert (done["ended"], done["waits"], done["answersUsed"]) == (
        {"reason": "completed", "stopped": None},
        None,
        2,
    )
    assert done["path"] == [
        *({"flowId": "main", "actionId": each} for each in (1, 2)),
        *({"flowId": "paid", "actionId": each} for each in (4, 5, 6, 7, 8)),
    ]
    other = await try_out(service, document, answers=["b1"])
    assert (other["ended"]["reason"], other["path"][-1]) == ("handed_off", {"flowId": "main", "actionId": 3})
    assert await service.types() == []
    assert (await service.dashboard.get("/workflows")).json()["items"] == []


async def test_dry_run_refuses_invalid_workflows_and_answers(service: Service) -> None:
    loop = workflow([send(1), branch(2, "f0")])["flows"]
    answer = await service.dashboard.post("/workflows/simulate", json={"flows": loop, "answers": 5})
    assert sorted(pointers(answer)) == [("/answers", "invalid"), ("/flows/0/actions/1", "endless_loop")]
    flows = workflow([{**FORM, "id": 7}])["flows"]
    answer = await service.dashboard.post("/workflows/simulate", json={"flows": flows, "answers": [{"x": 1}]})
    assert pointers(answer) == [("/answers/0/x", "unknown_field"), ("/answers/0/number", "required")]


async def test_readers_of_conversations_see_runs_and_may_dry_run(service: Service) -> None:
    made = await make(service)
    async with person(service, "viewer") as user:
        headers = {"project": service.demo["projectId"]}
        for path in ("runs", "figures", "versions", "versions/1"):
            seen = await user.http.get(f"/workflows/{made['id']}/{path}", headers=headers)
            assert seen.status_code == 200, path
        tried = await user.http.post("/workflows/simulate", json={"flows": CHAT["flows"]}, headers=headers)
        assert tried.status_code == 200
    unknown = await service.dashboard.get("/workflows/wfl_00000000000000000000000000/runs")
    assert code(unknown) == (404, "workflow_not_found")
