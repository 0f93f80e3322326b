"""Insights through the wire: stored reads, versions, PUT, refresh (contract 2.1, 4.1; decisions 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deskwire.engine.core.clock import iso
from tests.support.api.service import Service, running
from tests.support.api.surveys import DEFINITION, refreshed, respond, survey
from tests.support.sockets.model_server import http, model_server

FIELDS = {"themes", "summary", "drivers", "segments", "alerts", "updatedAt"}
THEME = {
    "id": "late",
    "title": "Late parcels",
    "sentiment": "negative",
    "count": 9,
    "countsByVersion": {"1": 7, "2": 2},
    "quotes": ["It was late."],
}
GIVEN: dict[str, Any] = {
    "themes": [THEME],
    "summary": "Parcels are late.",
    "drivers": [{"id": "speed", "title": "Speed", "impact": 0.7, "count": 30}],
    "segments": [{"id": "plan:pro", "title": "Pro", "size": 12, "score": None}],
    "alerts": [{"id": "a", "severity": "info", "message": "Look.", "createdAt": "2026-11-01T10:00:00.000Z"}],
}


async def with_two_versions(service: Service) -> tuple[dict[str, Any], str]:
    made = await survey(service)
    path = f"/engagement/surveys/{made['id']}"
    published = await service.dashboard.post(
        f"{path}/versions", json={"definition": {**DEFINITION, "title": "B"}}
    )
    assert published.status_code == 200
    return made, f"{path}/insights"


async def test_insights_are_empty_before_they_are_stored(service: Service) -> None:
    _, path = await with_two_versions(service)
    empty: dict[str, Any] = {
        "themes": [],
        "summary": "",
        "drivers": [],
        "segments": [],
        "alerts": [],
        "updatedAt": None,
    }
    assert (await service.dashboard.get(path)).json() == empty
    assert (await service.dashboard.get(path, params={"version": 2})).json() == {**empty, "version": 2}


async def test_insights_are_read_as_they_were_stored(service: Service) -> None:
    _, path = await with_two_versions(service)
    put = (await service.dashboard.put(path, json=GIVEN)).json()
    read = (await service.dashboard.get(path)).json()
    assert read == put
    assert read.keys() == FIELDS
    assert {name: read[name] for name in GIVEN} == GIVEN
    assert read["updatedAt"].endswith("Z")
    again = (await service.dashboard.put(path, json={"summary": "Only this."})).json()
    assert (again["summary"], again["themes"], again["alerts"]) == ("Only this.", [], [])


async def test_with_a_version_only_the_themes_counts_are_that_versions(service: Service) -> None:
    """Contract 4.1."""
    _, path = await with_two_versions(service)
    await service.dashboard.put(path, json=GIVEN)
    whole = (await service.dashboard.get(path)).json()
    second = (await service.dashboard.get(path, params={"version": 2})).json()
    assert second == {**whole, "themes": [{**THEME, "count": 2}], "version": 2}
    await service.dashboard.put(path, json={"themes": [{**THEME, "countsByVersion": {"1": 9}}]})
    assert (await service.dashboard.get(path, params={"version": 2})).json()["themes"][0]["count"] == 0


@pytest.mark.parametrize("version", ["0", "-1", "x", "1.0", "", "+1", "01", "1e0", "٣"])
async def test_a_version_must_be_a_positive_integer(service: Service, version: str) -> None:
    _, path = await with_two_versions(service)
    refused = await service.dashboard.get(path, params={"version": version})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/version")


async def test_a_version_must_be_one_that_the_survey_has(service: Service) -> None:
    _, path = await with_two_versions(service)
    unknown = await service.dashboard.get(path, params={"version": 3})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "survey_version_not_found")
    assert "1 to 2" in unknown.json()["detail"]


async def test_stored_insights_are_checked_with_every_problem_named(service: Service) -> None:
    _, path = await with_two_versions(service)
    shape = {
        **GIVEN,
        "themes": [{**THEME, "sentiment": "mixed", "count": -1}],
        "x": 1,
        "alerts": [{"id": "a"}],
    }
    refused = await service.dashboard.put(path, json=shape)
    assert refused.status_code == 422
    assert {each["pointer"] for each in refused.json()["errors"]} == {
        "/themes/0/sentiment",
        "/themes/0/count",
        "/x",
        "/alerts/0/severity",
        "/alerts/0/message",
    }
    meaning = {"themes": [THEME, {**THEME, "countsByVersion": {"3": 1}}]}
    refused = await service.dashboard.put(path, json=meaning)
    assert {(each["pointer"], each["code"]) for each in refused.json()["errors"]} == {
        ("/themes/1/id", "duplicate_id"),
        ("/themes/1/countsByVersion/3", "unknown_version"),
    }
    assert (await service.dashboard.get(path)).json()["updatedAt"] is None


async def test_a_refresh_computes_insights_from_the_responses(service: Service) -> None:
    made, path = await with_two_versions(service)
    never = await service.dashboard.get(f"{path}/refresh")
    assert (never.status_code, never.json()["code"]) == (404, "refresh_not_found")
    for number in range(12):
        late = number % 2 == 0
        answers = {"score": 2 if late else 8, "why": "Late delivery" if late else "Friendly people"}
        await respond(
            service,
            made,
            f"u{number}",
            version=1 + number // 8,
            answers={**answers, "plan": "free" if late else "pro"},
        )
    assert (await service.dashboard.get(path)).json()["updatedAt"] is None  # a GET never computes
    ended = await refreshed(service, made)
    assert ended["status"] == "done"
    assert (ended["progress"], ended["responses"], ended["source"], ended["error"]) == (
        1.0,
        12,
        "keywords",
        None,
    )
    assert ended["scores"] == [
        {
            "questionId": "score",
            "title": "Would you recommend us?",
            "type": "nps",
            "score": -50.0,
            "count": 12,
        }
    ]
    found = (await service.dashboard.get(path)).json()
    assert found.keys() == FIELDS
    themes = {theme["title"]: theme for theme in found["themes"]}
    assert themes["Late delivery"] == {
        "id": "late-delivery",
        "title": "Late delivery",
        "sentiment": "negative",
        "count": 6,
        "countsByVersion": {"1": 4, "2": 2},
        "quotes": ["Late delivery"],
    }
    assert {driver["id"]: driver["impact"] for driver in found["drivers"]} == {
        "plan:free": -1.0,
        "plan:pro": 1.0,
    }
    assert {segment["id"]: segment["score"] for segment in found["segments"]} == {
        "plan:free": -100.0,
        "plan:pro": 0.0,
    }
    assert found["summary"].startswith("12 responses. NPS -50 from 12.")
    second = (await service.dashboard.get(path, params={"version": 2})).json()
    assert {theme["title"]: theme["count"] for theme in second["themes"]}["Late delivery"] == 2


async def test_a_refresh_of_a_survey_without_responses_is_done_with_nothing(service: Service) -> None:
    made = await survey(service)
    ended = await refreshed(service, made)
    assert (ended["status"], ended["responses"]) == ("done", 0)
    found = (await service.dashboard.get(f"/engagement/surveys/{made['id']}/insights")).json()
    assert (found["themes"], found["summary"]) == ([], "0 responses.")
    assert found["updatedAt"] is not None


async def test_with_a_model_the_refresh_has_its_themes_and_summary(tmp_path: Path) -> None:
    async with (
        model_server() as model,
        running(tmp_path, model_url=model.url, model_name="m", model_key="k") as service,
    ):
        made = await survey(service)
        for user in ("u1", "u2"):
            await respond(service, made, user, answers={"score": 2, "why": f"Too late, says {user}"})
        theme = {"title": "Waiting", "sentiment": "negative", "mentions": [0, 1]}
        model.answer({"themes": [theme], "summary": "Two people waited."})
        ended = await refreshed(service, made)
        assert (ended["status"], ended["source"]) == ("done", "model")
        assert ended["endedAt"] >= iso(model.asked_at[-1])
        path = f"/engagement/surveys/{made['id']}/insights"
        found = (await service.dashboard.get(path)).json()
        assert found["summary"] == "Two people waited."
        assert [(each["title"], each["count"]) for each in found["themes"]] == [("Waiting", 2)]
        assert len(model.asked) == 2
        assert "Too late" not in str(model.asked[1])  # the summary is written from figures
        model.reply = http("500 Internal Server Error", b"")
        failed = await refreshed(service, made)
        assert (failed["status"], failed["error"]) == (
            "failed",
            "The model failed: It answered with status 500.",
        )
        assert (await service.dashboard.get(path)).json() == found
        assert len(model.asked) == 3  # a GET asks no model


async def test_model_answer_without_themes_fails_the_refresh_and_changes_nothing(
    tmp_path: Path,
) -> None:
    async with (
        model_server() as model,
        running(tmp_path, model_url=model.url, model_name="m", model_key="k") as service,
    ):
        made = await survey(service)
        for user in ("u1", "u2"):
            await respond(service, made, user, answers={"score": 2, "why": "Too late"})
        model.answer({"themes": ["Waiting"], "summary": "Two people waited."})
        failed = await refreshed(service, made)
        assert failed["status"] == "failed"
        assert failed["error"].startswith("The model failed: Theme 0 of its answer is not of the form")
        found = (await service.dashboard.get(f"/engagement/surveys/{made['id']}/insights")).json()
        assert found["updatedAt"] is None


async def test_deleted_contact_is_no_longer_quoted(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        made = await survey(service)
        for user in ("u1", "u2"):
            await respond(
                service, made, user, answers={"score": 2, "why": f"The mobile app crashes, says {user}"}
            )
        await refreshed(service, made)
        path = f"/engagement/surveys/{made['id']}/insights"
        quotes = {
            quote
            for theme in (await service.dashboard.get(path)).json()["themes"]
            for quote in theme["quotes"]
        }
        assert quotes == {"The mobile app crashes, says u1", "The mobile app crashes, says u2"}
        await service.http.delete("/s2s/contacts/u1")
        left = {
            quote
            for theme in (await service.dashboard.get(path)).json()["themes"]
            for quote in theme["quotes"]
        }
        assert left == {"The mobile app crashes, says u2"}
