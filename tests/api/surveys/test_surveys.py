"""Surveys through the wire: definitions, versions, validation (contract 4.1, decisions 7)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from deskwire.engine.surveys.validation.rules import RULES
from tests.api.conversations.test_dashboard import member
from tests.support.api.service import Service
from tests.support.api.staff import code
from tests.support.api.surveys import DEFINITION, respond, survey

OTHER = {**DEFINITION, "title": "Another"}


async def test_a_survey_is_made_read_changed_and_deleted(service: Service) -> None:
    made = await survey(service)
    assert made.keys() == {
        "id",
        "name",
        "status",
        "version",
        "responses",
        "createdAt",
        "updatedAt",
        "definition",
    }
    assert made["id"].startswith("srv_")
    assert (made["status"], made["version"], made["definition"]) == ("OPEN", 1, DEFINITION)
    path = f"/engagement/surveys/{made['id']}"
    assert (await service.dashboard.get(path)).json() == made
    assert (await service.http.get(f"/s2s/surveys/{made['id']}")).json() == made
    changed = (await service.dashboard.patch(path, json={"name": "New name", "status": "CLOSED"})).json()
    assert (changed["name"], changed["status"]) == ("New name", "CLOSED")
    assert (await service.dashboard.patch(path, json={"name": "New name"})).json() == changed
    assert (await service.dashboard.delete(path)).json() == {"id": made["id"], "deleted": True}
    for method in ("GET", "DELETE"):
        gone = await service.dashboard.request(method, path)
        assert (gone.status_code, gone.json()["code"]) == (404, "survey_not_found")


async def test_each_of_many_concurrent_changes_gets_its_own_result(service: Service) -> None:
    path = f"/engagement/surveys/{(await survey(service))['id']}"
    answered: dict[str, str] = {}

    async def rename(name: str) -> None:
        answered[name] = (await service.dashboard.patch(path, json={"name": name})).json()["name"]

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(rename, f"name {number}")
    assert answered == {name: name for name in answered}


async def test_the_list_shows_newest_first_by_pages_and_filters(service: Service) -> None:
    made = [await survey(service) for _ in range(5)]
    await service.dashboard.patch(
        f"/engagement/surveys/{made[1]['id']}", json={"name": "Über 100%", "status": "CLOSED"}
    )
    seen: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = (await service.dashboard.get("/engagement/surveys", params=params)).json()
        seen += [item["id"] for item in page["items"]]
        assert all("definition" not in item for item in page["items"])
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == [each["id"] for each in reversed(made)]
    for params in ({"status": "CLOSED"}, {"q": "100%"}, {"q": "BER 1"}):
        found = (await service.dashboard.get("/engagement/surveys", params=params)).json()["items"]
        assert [item["id"] for item in found] == [made[1]["id"]], params
    assert (await service.dashboard.get("/engagement/surveys?q=1_0")).json()["items"] == []


async def test_a_definition_with_problems_is_refused_with_all_of_them(service: Service) -> None:
    broken = {**DEFINITION, "title": "", "thankYou": {}}
    for path in ("/engagement/surveys", f"/engagement/surveys/{(await survey(service))['id']}/versions"):
        body = {"name": "X", "definition": broken} if path.endswith("surveys") else {"definition": broken}
        refused = await service.dashboard.post(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
        assert {(each["pointer"], each["code"]) for each in refused.json()["errors"]} == {
            ("/definition/title", "empty"),
            ("/definition/thankYou/en", "missing_translation"),
        }


async def test_publishing_another_definition_makes_the_next_version(service: Service) -> None:
    made = await survey(service)
    path = f"/engagement/surveys/{made['id']}/versions"
    second = (await service.dashboard.post(path, json={"definition": OTHER})).json()
    assert (second["version"], second["published"], second["definition"]) == (2, True, OTHER)
    again = (await service.dashboard.post(path, json={"definition": OTHER})).json()
    assert again == second
    third = (await service.dashboard.post(path, json={"definition": DEFINITION})).json()
    assert third["version"] == 3
    listed = (await service.dashboard.get(path, params={"limit": 2})).json()
    assert [(item["version"], item["published"]) for item in listed["items"]] == [(3, True), (2, False)]
    rest = (await service.dashboard.get(path, params={"cursor": listed["nextCursor"]})).json()
    assert ([item["version"] for item in rest["items"]], rest["nextCursor"]) == ([1], None)
    assert (await service.dashboard.get(f"{path}/2")).json() == {**second, "published": False}
    assert (await service.dashboard.get(f"/engagement/surveys/{made['id']}")).json()["version"] == 3
    for number in ("0", "4", "x", "-1", "1.0", "9" * 30):
        unknown = await service.dashboard.get(f"{path}/{number}")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "survey_version_not_found")


async def test_validation_answers_200_with_every_problem_and_stores_nothing(service: Service) -> None:
    made = await survey(service)
    path = f"/engagement/surveys/{made['id']}/validate"
    assert (await service.dashboard.post(path, json={"definition": OTHER})).json() == {
        "ok": True,
        "errors": [],
    }
    for rule in RULES.values():
        answer = await service.dashboard.post(path, json={"definition": {**DEFINITION, **rule.example}})
        assert answer.status_code == 200
        assert answer.json()["ok"] is False
        assert {each["code"] for each in answer.json()["errors"]} == {rule.code}
        assert all(each.keys() == {"path", "code", "message"} for each in answer.json()["errors"])
    nonsenses: list[Any] = [None, 7, "x", [], [[[[]]]], {}]
    for nonsense in nonsenses:
        answer = await service.dashboard.post(path, json={"definition": nonsense})
        assert (answer.status_code, answer.json()["ok"]) == (200, False)
    assert (await service.dashboard.get(f"/engagement/surveys/{made['id']}")).json() == made


async def test_validation_needs_a_definition_and_a_survey(service: Service) -> None:
    made = await survey(service)
    missing = await service.dashboard.post(f"/engagement/surveys/{made['id']}/validate", json={})
    assert missing.status_code == 422
    assert [(each["pointer"], each["code"]) for each in missing.json()["errors"]] == [
        ("/definition", "required")
    ]
    unknown = await service.dashboard.post(
        "/engagement/surveys/srv_00000000000000000000000000/validate", json={"definition": DEFINITION}
    )
    assert (unknown.status_code, unknown.json()["code"]) == (404, "survey_not_found")


async def test_unknown_and_null_fields_of_a_body_are_refused(service: Service) -> None:
    made = await survey(service)
    path = f"/engagement/surveys/{made['id']}"
    cases: list[tuple[str, str, Any, str]] = [
        ("POST", "/engagement/surveys", {"name": "X", "definition": DEFINITION, "x": 1}, "/x"),
        ("POST", "/engagement/surveys", {"definition": DEFINITION}, "/name"),
        ("PATCH", path, {"name": None}, "/name"),
        ("PATCH", path, {"status": None}, "/status"),
        ("PATCH", path, {"status": "PAUSED"}, "/status"),
        ("PATCH", path, {"definition": DEFINITION}, "/definition"),
    ]
    for method, target, body, pointer in cases:
        refused = await service.dashboard.request(method, target, json=body)
        assert refused.status_code == 422, (method, body)
        assert [each["pointer"] for each in refused.json()["errors"]] == [pointer]


@pytest.mark.parametrize(("role", "allowed"), [("viewer", False), ("agent", False), ("admin", True)])
async def test_role_has_exactly_its_survey_permissions(service: Service, role: str, allowed: bool) -> None:
    made = await survey(service)
    answered = await respond(service, made, answers={"score": 9})
    path = f"/engagement/surveys/{made['id']}"
    headers = {"Authorization": f"Bearer {member(service, role)}"}
    reads = [path, f"{path}/versions", f"{path}/responses", f"{path}/responses.csv", f"{path}/insights"]
    for target in reads:
        assert (await service.dashboard.get(target, headers=headers)).status_code == 200
    body = {"definition": DEFINITION}
    assert (await service.dashboard.post(f"{path}/validate", json=body, headers=headers)).status_code == 200
    writes: list[tuple[str, str, Any]] = [
        ("POST", "/engagement/surveys", {"name": "X", **body}),
        ("PATCH", path, {"name": "Y"}),
        ("POST", f"{path}/versions", body),
        ("PUT", f"{path}/insights", {}),
        ("POST", f"{path}/insights/refresh", None),
        ("DELETE", f"{path}/responses/{answered['id']}", None),
        ("DELETE", path, None),
    ]
    for method, target, sent in writes:
        answer = await service.dashboard.request(method, target, json=sent, headers=headers)
        if allowed:
            assert answer.status_code == 200, (target, answer.text)
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
            assert "surveys.manage" in answer.json()["detail"]


async def test_stale_update_is_refused_and_overwrites_nothing(service: Service) -> None:
    made = await survey(service)
    path = f"/engagement/surveys/{made['id']}"
    seen = (await service.dashboard.get(path)).headers["etag"]
    await respond(service, made, answers={"score": 9})
    first = await service.dashboard.patch(path, json={"name": "First"}, headers={"If-Match": seen})
    assert (first.status_code, first.json()["name"]) == (200, "First"), "a response is no change"
    late = {"If-Match": seen}
    changed = {**DEFINITION, "title": "Second"}
    for answer in (
        await service.dashboard.patch(path, json={"name": "Second"}, headers=late),
        await service.dashboard.post(f"{path}/versions", json={"definition": changed}, headers=late),
        await service.dashboard.request("DELETE", path, json={}, headers=late),
    ):
        assert code(answer) == (412, "changed_meanwhile")
    now = (await service.dashboard.get(path)).json()
    assert (now["name"], now["version"]) == ("First", 1)
    again = {"If-Match": first.headers["etag"]}
    published = await service.dashboard.post(f"{path}/versions", json={"definition": changed}, headers=again)
    assert published.json()["version"] == 2
