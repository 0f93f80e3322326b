"""The survey of a channel: shown to its customers, and answered once under a client id."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio

from tests.api.customers.browsing import Visit, begin, get
from tests.api.workflows.test_workflows import pointers
from tests.support.api.customers import Browser
from tests.support.api.service import Service

DEFINITION: dict[str, Any] = {
    "schemaVersion": "2.0",
    "title": "After the chat",
    "languages": ["en"],
    "primaryLanguage": "en",
    "questions": [{"id": "q1", "type": "csat", "title": {"en": "How was it?"}, "required": True}],
}


async def survey_of(service: Service) -> dict[str, Any]:
    body = {"name": "CSAT", "definition": DEFINITION}
    answer = await service.dashboard.post("/engagement/surveys", json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def answered(browser: Browser, survey: str, **fields: Any) -> httpx.Response:
    body = {"clientId": "r-1", "answers": {"q1": 5}, **fields}
    return await browser.call("POST", f"/surveys/{survey}/responses", json=body)


async def test_customer_answers_the_channels_survey_once(service: Service, visit: Visit) -> None:
    survey = await survey_of(service)
    browser = await visit(survey=survey["id"])
    shown = await get(browser, f"/surveys/{survey['id']}")
    assert set(shown) == {"id", "status", "version", "definition"}
    early = await answered(browser, survey["id"])
    assert (early.status_code, early.json()["code"]) == (403, "message_required")
    assert "answer surveys" in early.json()["detail"]
    await begin(browser)
    answers: list[httpx.Response] = []

    async def post() -> None:
        answers.append(await answered(browser, survey["id"]))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(post)
    assert [each.status_code for each in answers] == [200] * 4, [each.text for each in answers]
    assert len({each.json()["id"] for each in answers}) == 1
    replayed = [str(each.headers.get("idempotent-replayed")) for each in answers]
    assert sorted(replayed) == ["None", "true", "true", "true"]
    changed = await answered(browser, survey["id"], answers={"q1": 1})
    assert (changed.status_code, changed.json()["code"]) == (422, "idempotency_mismatch")
    assert (await answered(browser, survey["id"], clientId="r-2")).status_code == 200
    stored = await service.dashboard.get(f"/engagement/surveys/{survey['id']}/responses")
    own = (await get(browser, "/me"))["userId"]
    assert [each["contact"]["userId"] for each in stored.json()["items"]] == [own, own]


async def test_other_surveys_are_not_found(service: Service, visit: Visit) -> None:
    own, other = await survey_of(service), await survey_of(service)
    browser = await visit(survey=own["id"])
    bare = await visit()
    for each in (browser, bare):
        await begin(each)
    for each, survey in ((browser, other["id"]), (bare, own["id"]), (browser, "x")):
        answers = [await each.call("GET", f"/surveys/{survey}"), await answered(each, survey)]
        assert [(found.status_code, found.json()["code"]) for found in answers] == [
            (404, "survey_not_found")
        ] * 2


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"answers": {"q1": 9}}, "/answers/q1"),
        ({"answers": {}}, "/answers/q1"),
        ({"answers": None}, "/answers"),
        ({"clientId": "a b"}, "/clientId"),
        ({"version": 7}, "/version"),
        ({"language": "xx"}, "/language"),
        ({"contact": {"userId": "u1"}}, "/contact"),
    ],
)
async def test_bad_answers_are_refused(
    service: Service, visit: Visit, fields: dict[str, Any], problem: str
) -> None:
    survey = await survey_of(service)
    browser = await visit(survey=survey["id"])
    await begin(browser)
    assert [place for place, _ in pointers(await answered(browser, survey["id"], **fields))] == [problem]


async def test_closed_survey_accepts_nothing(service: Service, visit: Visit) -> None:
    survey = await survey_of(service)
    browser = await visit(survey=survey["id"])
    await begin(browser)
    closing = await service.dashboard.patch(f"/engagement/surveys/{survey['id']}", json={"status": "CLOSED"})
    assert closing.status_code == 200, closing.text
    refused = await answered(browser, survey["id"])
    assert (refused.status_code, refused.json()["code"]) == (409, "survey_closed")
