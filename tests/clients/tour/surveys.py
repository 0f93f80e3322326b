"""The calls of surveys: definitions, responses, insights and figures."""

from __future__ import annotations

from typing import Any, Final

from tests.clients.tour.backend import SINCE, UNTIL
from tests.clients.tour.recorder import Recorder
from tests.support.api.surveys import refreshed

_CHOICES: Final = [{"id": "free", "label": {"en": "Free"}}, {"id": "pro", "label": {"en": "Pro"}}]
_QUESTIONS: Final[list[dict[str, Any]]] = [
    {"id": "score", "type": "nps", "title": {"en": "Would you recommend us?"}, "required": True},
    {"id": "csat", "type": "csat", "title": {"en": "How satisfied are you?"}},
    {"id": "ces", "type": "ces", "title": {"en": "How easy was it?"}},
    {"id": "stars", "type": "rating", "title": {"en": "Stars?"}, "min": 1, "max": 5},
    {"id": "plan", "type": "single_choice", "title": {"en": "Your plan?"}, "choices": _CHOICES},
    {"id": "plans", "type": "multiple_choice", "title": {"en": "Which plans?"}, "choices": _CHOICES},
    {"id": "why", "type": "text", "title": {"en": "Why?"}},
    {"id": "age", "type": "number", "title": {"en": "Age?"}, "min": 0.5, "max": 150},
    {"id": "day", "type": "date", "title": {"en": "When?"}},
    {"id": "again", "type": "boolean", "title": {"en": "Again?"}},
]
DEFINITION: Final[dict[str, Any]] = {
    "schemaVersion": "2.0",
    "title": "After the chat",
    "languages": ["en"],
    "primaryLanguage": "en",
    "questions": _QUESTIONS,
    "logic": [{"from": "score", "to": "why", "when": {"op": "gte", "value": 9}}],
    "thankYou": {"en": "Thank you!"},
}
_ANSWERS: Final = {
    "score": 8,
    "csat": 4,
    "ces": 3,
    "stars": 5,
    "plan": "pro",
    "plans": ["free", "pro"],
    "why": "It was quick",
    "age": 30.5,
    "day": "2026-11-01",
    "again": True,
}
_INSIGHTS: Final = {
    "themes": [
        {
            "id": "delivery",
            "title": "Delivery",
            "sentiment": "negative",
            "count": 1,
            "countsByVersion": {"1": 1},
            "quotes": ["It came late."],
        }
    ],
    "summary": "Most are content; deliveries are late.",
    "drivers": [{"id": "speed", "title": "Speed", "impact": 0.5, "count": 2}],
    "segments": [{"id": "pro", "title": "Pro", "size": 3, "score": None}],
    "alerts": [{"id": "late", "severity": "warning", "message": "Late parcels", "createdAt": None}],
}


async def surveys(call: Recorder) -> None:
    """Call all operations of surveys."""
    made = await call(
        "createSurvey", body={"name": "After the chat", "definition": DEFINITION}, Idempotency_Key="v1"
    )
    survey = made["id"]
    await call("validateDefinition", survey, body={"definition": {"title": 1}})
    await call(
        "publishVersion", survey, body={"definition": {**DEFINITION, "title": "Second"}}, Idempotency_Key="v2"
    )
    await call("changeSurvey", survey, body={"name": "Chats"})
    await call("listSurveys", limit=10, status="OPEN", q="chats")
    await call("getSurvey", survey)
    await call("showSurvey", survey)
    await call("listVersions", survey, limit=10)
    await call("getVersion", survey, 1)
    await responses(call, survey)
    await insights(call, made)
    await call("deleteSurvey", survey)


async def responses(call: Recorder, survey: str) -> None:
    """Call the operations of responses."""
    body = {"answers": _ANSWERS, "contact": {"userId": "u1"}, "version": None, "language": "en"}
    made = await call("createResponse", survey, body=body, Idempotency_Key="v3")
    contact = (await call.service.http.get("/s2s/contacts/u1")).json()["id"]
    await call(
        "listResponses", survey, limit=10, version=2, contact=contact, language="en", since=SINCE, until=UNTIL
    )
    await call("getResponse", survey, made["id"])
    await call("getSurveyFigures", survey, timezone="Europe/Berlin", version=2, bucket="week")
    other = {"answers": {"score": 1}}
    gone = (await call.service.http.post(f"/s2s/surveys/{survey}/responses", json=other)).json()["id"]
    await call("deleteResponse", survey, gone)


async def insights(call: Recorder, survey: dict[str, Any]) -> None:
    """Call the operations of insights."""
    await call("refreshInsights", survey["id"])
    await refreshed(call.service, survey)
    await call("getRefresh", survey["id"])
    await call("putInsights", survey["id"], body=_INSIGHTS)
    await call("getInsights", survey["id"], version=2)
