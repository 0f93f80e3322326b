"""Samples of responses for tests of the statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deskwire.engine.surveys.definition import SurveyDefinition, definition_of
from deskwire.engine.surveys.insights.sample import Sample
from deskwire.engine.surveys.survey import SurveyResponse
from deskwire.engine.surveys.validation.validate import definition_errors
from tests.support.builders import NOON

DAY: Final = 86_400_000


def question(question_id: str, kind: str, **parts: Any) -> dict[str, Any]:
    """Return a question with a title like its id."""
    return {"id": question_id, "type": kind, "title": {"en": f"{question_id}?"}, **parts}


def asking(*questions: Mapping[str, Any], languages: Sequence[str] = ("en",)) -> SurveyDefinition:
    """Return a sound definition of these questions."""
    value: dict[str, Any] = {
        "schemaVersion": "2.0",
        "title": "Survey",
        "languages": list(languages),
        "primaryLanguage": languages[0],
        "questions": [{**each, "title": dict.fromkeys(languages, each["title"]["en"])} for each in questions],
    }
    assert definition_errors(value) == []
    return definition_of(value)


def response(
    number: int,
    answers: Mapping[str, Any],
    *,
    at: int = NOON,
    version: int = 1,
    language: str = "en",
    contact: int | None = None,
) -> SurveyResponse:
    """Return a response with this number."""
    return SurveyResponse(number, f"rsp_{number}", version, contact, None, language, answers, at)


def sample(definition: SurveyDefinition, *answers: Mapping[str, Any], at: int = NOON) -> Sample:
    """Return a sample of anonymous responses with these answers."""
    return Sample({1: definition}, 1, [response(number, each, at=at) for number, each in enumerate(answers)])
