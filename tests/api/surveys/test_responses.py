"""Responses through the wire: taken, refused, listed, exported, erased (decisions 7)."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import Any

import httpx

from tests.support.api.service import Service, running
from tests.support.api.surveys import DEFINITION, respond, survey


async def listed(service: Service, made: dict[str, Any], **params: Any) -> list[str]:
    answer = await service.dashboard.get(f"/engagement/surveys/{made['id']}/responses", params=params)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


async def test_a_response_is_stored_with_its_contact_and_version(service: Service) -> None:
    made = await survey(service)
    given = await respond(service, made, "u1", answers={"score": 3, "why": "slow", "plan": "pro"})
    assert given["id"].startswith("rsp_")
    assert (
        given.items()
        >= {
            "surveyId": made["id"],
            "version": 1,
            "contact": {"userId": "u1"},
            "language": "en",
            "answers": {"score": 3, "why": "slow", "plan": "pro"},
        }.items()
    )
    path = f"/engagement/surveys/{made['id']}"
    assert (await service.dashboard.get(f"{path}/responses/{given['id']}")).json() == given
    assert (await service.dashboard.get(path)).json()["responses"] == 1
    assert (await service.http.get("/s2s/contacts/u1")).status_code == 200
    anonymous = await respond(service, made, answers={"score": 9})
    assert anonymous["contact"] is None


async def test_a_response_is_held_against_the_version_that_it_names(service: Service) -> None:
    made = await survey(service)
    other = {
        **DEFINITION,
        "questions": [{"id": "fine", "type": "boolean", "title": {"en": "?"}, "required": True}],
        "logic": [],
    }
    await service.dashboard.post(f"/engagement/surveys/{made['id']}/versions", json={"definition": other})
    assert (await respond(service, made, answers={"fine": True}))["version"] == 2
    assert (await respond(service, made, version=1, answers={"score": 5}))["version"] == 1
    path = f"/s2s/surveys/{made['id']}/responses"
    wrong = await service.http.post(path, json={"answers": {"score": 5}})
    assert {(each["pointer"], each["code"]) for each in wrong.json()["errors"]} == {
        ("/answers/score", "unknown_question"),
        ("/answers/fine", "required"),
    }
    unknown = await service.http.post(path, json={"version": 3, "answers": {}})
    assert [(each["pointer"], each["code"]) for each in unknown.json()["errors"]] == [
        ("/version", "unknown_version")
    ]


async def test_a_response_with_problems_is_refused_with_all_of_them(service: Service) -> None:
    made = await survey(service)
    body = {"answers": {"score": 11, "plan": "gold", "x": 1}, "language": "de", "contact": {"userId": "u9"}}
    refused = await service.http.post(f"/s2s/surveys/{made['id']}/responses", json=body)
    assert refused.status_code == 422
    assert {(each["pointer"], each["code"]) for each in refused.json()["errors"]} == {
        ("/answers/score", "bad_answer"),
        ("/answers/plan", "bad_answer"),
        ("/answers/x", "unknown_question"),
        ("/language", "unknown_language"),
    }
    assert await listed(service, made) == []
    assert (await service.http.get("/s2s/contacts/u9")).status_code == 404


async def test_closed_survey_accepts_no_responses_until_reopened(service: Service) -> None:
    made = await survey(service)
    path = f"/engagement/surveys/{made['id']}"
    await service.dashboard.patch(path, json={"status": "CLOSED"})
    refused = await service.http.post(f"/s2s/surveys/{made['id']}/responses", json={"answers": {"score": 1}})
    assert (refused.status_code, refused.json()["code"]) == (409, "survey_closed")
    await service.dashboard.patch(path, json={"status": "OPEN"})
    await respond(service, made, answers={"score": 1})


async def test_answers_that_are_too_large_together_are_refused(service: Service) -> None:
    texts = [{"id": f"t{number}", "type": "text", "title": {"en": "?"}} for number in range(5)]
    made = await survey(service, questions=texts, logic=[])
    answers = {each["id"]: "x" * 15_000 for each in texts}
    refused = await service.http.post(f"/s2s/surveys/{made['id']}/responses", json={"answers": answers})
    assert [(each["pointer"], each["code"]) for each in refused.json()["errors"]] == [
        ("/answers", "too_long")
    ]


async def test_responses_are_listed_newest_first_by_pages_and_every_filter(service: Service) -> None:
    made = await survey(service, languages=["en"])
    ids = [
        (await respond(service, made, f"u{number % 2}", answers={"score": number}))["id"]
        for number in range(5)
    ]
    path = f"/engagement/surveys/{made['id']}/responses"
    first = (await service.dashboard.get(path, params={"limit": 3})).json()
    rest = (await service.dashboard.get(path, params={"limit": 3, "cursor": first["nextCursor"]})).json()
    assert [item["id"] for item in first["items"] + rest["items"]] == ids[::-1]
    assert rest["nextCursor"] is None
    contact = (await service.http.get("/s2s/contacts/u1")).json()
    for wanted in ("u1", contact["id"]):
        assert await listed(service, made, contact=wanted) == [ids[3], ids[1]]
    assert await listed(service, made, version=1, language="en") == ids[::-1]
    assert await listed(service, made, language="de") == []
    assert await listed(service, made, since="2100-01-01T00:00:00Z") == []
    assert await listed(service, made, until="2100-01-01T00:00:00Z") == ids[::-1]
    for bad in ({"version": "0"}, {"version": "x"}, {"since": "soon"}, {"x": "1"}, {"cursor": "x"}):
        refused = await service.dashboard.get(path, params=bad)
        assert refused.status_code == 400, bad


async def test_the_export_streams_every_response_as_csv(service: Service) -> None:
    made = await survey(service)
    for number in range(450):
        await respond(
            service, made, f"u{number}", answers={"score": number % 9, "why": f"=1+{number}", "plan": "pro"}
        )
    answer = await service.dashboard.get(f"/engagement/surveys/{made['id']}/responses.csv")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{made["id"]}.csv"'
    assert "Content-Length" not in answer.headers
    text = answer.content.decode("utf-8-sig")
    rows = list(csv.reader(StringIO(text, newline="")))
    assert rows[0][:5] == ["id", "createdAt", "version", "language", "userId"]
    assert rows[0][5:] == ["Would you recommend us? [score]", "Why? [why]", "Your plan? [plan]"]
    assert len(rows) == 451
    assert rows[1][4:] == ["u449", "8", "'=1+449", "Pro"]
    narrowed = await service.dashboard.get(
        f"/engagement/surveys/{made['id']}/responses.csv", params={"contact": "u7"}
    )
    assert narrowed.text.count("\r\n") == 2


async def test_aborted_export_disturbs_no_other_request(service: Service) -> None:
    made = await survey(service)
    await respond(service, made, answers={"score": 1, "why": "x" * 20_000})
    path = f"/engagement/surveys/{made['id']}/responses.csv"
    for _ in range(3):
        async with service.dashboard.stream("GET", path) as answer:
            assert answer.status_code == 200
    assert (await service.dashboard.get(path)).status_code == 200


async def test_deleted_response_is_not_found_and_not_counted(service: Service) -> None:
    made = await survey(service)
    given = await respond(service, made, answers={"score": 1})
    path = f"/engagement/surveys/{made['id']}/responses/{given['id']}"
    assert (await service.dashboard.delete(path)).json() == {"id": given["id"], "deleted": True}
    for method in ("GET", "DELETE"):
        gone = await service.dashboard.request(method, path)
        assert (gone.status_code, gone.json()["code"]) == (404, "response_not_found")
    assert (await service.dashboard.get(f"/engagement/surveys/{made['id']}")).json()["responses"] == 0


async def test_deleting_a_contact_deletes_its_responses(service: Service) -> None:
    made = await survey(service)
    await respond(service, made, "u1", answers={"score": 1, "why": "slow"})
    kept = await respond(service, made, "u2", answers={"score": 2})
    assert (await service.http.delete("/s2s/contacts/u1")).status_code == 200
    assert await listed(service, made) == [kept["id"]]


async def test_a_foreign_project_sees_nothing_of_our_surveys(tmp_path: Path) -> None:
    from tests.api.conventions.test_conventions import foreign_key

    async with running(tmp_path) as service:
        made = await survey(service)
        headers = {"Authorization": f"Bearer {await foreign_key(tmp_path)}"}
        async with httpx.AsyncClient(base_url=f"{service.url}/v3", headers=headers) as http:
            shown = await http.get(f"/s2s/surveys/{made['id']}")
            taken = await http.post(f"/s2s/surveys/{made['id']}/responses", json={"answers": {"score": 1}})
        assert shown.status_code == taken.status_code == 404
        assert shown.json()["code"] == taken.json()["code"] == "survey_not_found"
        assert await listed(service, made) == []
