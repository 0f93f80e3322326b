"""The figures of a survey over HTTP: counts, scores, time buckets, versions (ADR 20)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from deskwire.engine.core.store import InlineQuery
from deskwire.engine.surveys.definition import definition_of
from deskwire.engine.surveys.figures import AnswerTally
from tests.support.api.service import Service, running, tapping
from tests.support.api.staff import code
from tests.support.api.surveys import DEFINITION, refreshed, respond, survey
from tests.support.stores import AnyStore

DAY_MS = 86_400_000
TYPES: dict[str, Any] = {
    "questions": [
        {"id": "stars", "type": "rating", "title": {"en": "Stars?"}, "min": 1, "max": 3},
        {
            "id": "why",
            "type": "multiple_choice",
            "title": {"en": "Why?"},
            "choices": [{"id": "a", "label": {"en": "Price"}}, {"id": "b", "label": {"en": "Speed"}}],
        },
        {"id": "again", "type": "boolean", "title": {"en": "Again?"}},
        {"id": "people", "type": "number", "title": {"en": "How many?"}},
        {"id": "words", "type": "text", "title": {"en": "Words?"}},
    ],
    "logic": [],
}


async def figures(service: Service, made: dict[str, Any], **query: Any) -> dict[str, Any]:
    answer = await service.dashboard.get(f"/engagement/surveys/{made['id']}/figures", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def counts(question: dict[str, Any]) -> dict[str, int]:
    return {each["label"]: each["count"] for each in question["counts"]}


async def test_each_type_of_question_is_counted_in_its_way(service: Service) -> None:
    made = await survey(service, **TYPES)
    await respond(
        service, made, answers={"stars": 3, "why": ["a", "b"], "again": True, "people": 2, "words": "Good"}
    )
    await respond(service, made, answers={"stars": 2, "why": ["b"], "again": False, "people": 5})
    await respond(service, made, answers={})
    found = await figures(service, made)
    stars, why, again, people, words = found["questions"]
    assert found["refresh"] is None
    today = datetime.now(UTC).date().isoformat()
    assert found["responses"] == 3
    assert found["series"] == [{"day": today, "responses": 3}]
    assert (stars["score"], counts(stars)) == (2.5, {"1": 0, "2": 1, "3": 1})
    assert stars["series"] == [{"day": today, "score": 2.5, "answered": 2}]
    assert (why["score"], why["answered"], counts(why)) == (None, 2, {"Price": 1, "Speed": 2})
    assert [each["value"] for each in why["counts"]] == ["a", "b"]
    assert (counts(again), again["series"]) == ({"true": 1, "false": 1}, [])
    assert (people["score"], people["counts"]) == (3.5, [])
    assert (words["answered"], words["counts"], words["score"]) == (1, [], None)


async def test_versions_are_counted_together_only_for_unchanged_questions(
    service: Service,
) -> None:
    made = await survey(service)
    await respond(service, made, answers={"score": 10, "plan": "pro"})
    rating = {"id": "plan", "type": "rating", "title": {"en": "Plan?"}, "min": 1, "max": 5}
    changed = {**DEFINITION, "questions": [*DEFINITION["questions"][:2], rating], "logic": []}
    published = await service.dashboard.post(
        f"/engagement/surveys/{made['id']}/versions", json={"definition": changed}
    )
    assert published.status_code == 200, published.text
    await respond(service, made, answers={"score": 0, "plan": 4})
    whole, first = await figures(service, made), await figures(service, made, version=1)
    assert [each["answered"] for each in whole["questions"]] == [2, 0, 1]
    assert (whole["questions"][0]["score"], whole["questions"][2]["score"]) == (0.0, 4.0)
    assert [each["type"] for each in first["questions"]] == ["nps", "text", "single_choice"]
    assert (first["version"], first["responses"], first["questions"][0]["score"]) == (1, 1, 100.0)
    path = f"/engagement/surveys/{made['id']}/figures"
    unknown = await service.dashboard.get(path, params={"version": 3})
    assert code(unknown) == (404, "survey_version_not_found")


async def test_a_deleted_response_is_in_no_figure(service: Service) -> None:
    made = await survey(service)
    kept, gone = [await respond(service, made, answers={"score": each}) for each in (10, 0)]
    assert (await figures(service, made))["questions"][0]["score"] == 0.0
    await service.dashboard.delete(f"/engagement/surveys/{made['id']}/responses/{gone['id']}")
    found = await figures(service, made)
    assert (found["responses"], found["questions"][0]["score"]) == (1, 100.0)
    assert kept["id"] != gone["id"]


async def test_figures_show_the_last_refresh_of_the_insights(service: Service) -> None:
    made = await survey(service)
    await respond(service, made, answers={"score": 9})
    done = await refreshed(service, made)
    assert (await figures(service, made))["refresh"] == done


async def test_a_period_and_a_zone_choose_the_responses(service: Service) -> None:
    made = await survey(service)
    await respond(service, made, answers={"score": 9})
    tomorrow = (datetime.now(UTC).date() + timedelta(2)).isoformat()
    assert (await figures(service, made, **{"from": tomorrow, "to": tomorrow}))["responses"] == 0
    far = await figures(service, made, timezone="Pacific/Kiritimati", bucket="month")
    assert (far["timezone"], far["bucket"], far["responses"]) == ("Pacific/Kiritimati", "month", 1)
    assert far["series"][0]["day"].endswith("-01")
    path = f"/engagement/surveys/{made['id']}/figures"
    wrong = await service.dashboard.get(path, params={"timezone": "Mars/Base", "bucket": "hour", "from": "x"})
    assert wrong.status_code == 400
    assert {each["pointer"] for each in wrong.json()["errors"]} == {"/timezone", "/bucket", "/from"}


async def test_a_survey_of_another_project_is_not_found(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        made = await survey(service)
        organisation = (await service.dashboard.get("/organisations")).json()["items"][0]["id"]
        other = (
            await service.dashboard.post(f"/organisations/{organisation}/projects", json={"name": "Other"})
        ).json()
        answer = await service.dashboard.get(
            f"/engagement/surveys/{made['id']}/figures", headers={"project": other["id"]}
        )
        assert code(answer) == (404, "survey_not_found")


async def test_a_read_that_is_repeated_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = tapping(monkeypatch)
    async with running(tmp_path) as service:
        made = await survey(service, **TYPES)
        for stars in (3, 3, 1):
            await respond(service, made, answers={"stars": stars})
        once = await figures(service, made)
        _look_twice(monkeypatch, type(stores[0]))
        again = await figures(service, made)
        for what in ("responses", "series", "questions"):
            assert again[what] == once[what]


def _look_twice(monkeypatch: pytest.MonkeyPatch, kind: type[AnyStore]) -> None:
    """Run each query twice, as happens if a PostgreSQL session is lost before the answer."""
    once = kind.read

    async def twice(store: Any, query: Callable[[Any], Any]) -> Any:
        if isinstance(query, InlineQuery):
            return await once(store, query)
        return await once(store, lambda reader: (query(reader), query(reader))[1])

    monkeypatch.setattr(kind, "read", twice)


@pytest.mark.parametrize(
    ("bucket", "first"),
    [
        ("day", ["2026-11-01", "2026-11-02", "2026-11-09"]),
        ("week", ["2026-10-26", "2026-11-02", "2026-11-09"]),
    ],
)
def test_steps_begin_with_their_first_day_and_weeks_on_monday(bucket: Any, first: list[str]) -> None:
    tally = AnswerTally({1: definition_of(DEFINITION)}, 1, lambda at: at // DAY_MS)
    epoch = date(1970, 1, 1)
    for day in (date(2026, 11, 1), date(2026, 11, 2), date(2026, 11, 9)):
        tally += tally.of([(1, (day - epoch).days * DAY_MS + 5, '{"score":10}')])
    view = tally.view(bucket)
    assert [each["day"] for each in view["series"]] == first
    assert [each["day"] for each in view["questions"][0]["series"]] == first
