"""A survey, its versions and responses, and their form in the API (decisions 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.values import entity_tag

Status = Literal["OPEN", "CLOSED"]


class Survey(Struct, frozen=True):
    """A survey. Times are in milliseconds.

    Args:
        status: a closed survey accepts no responses.
        version: the newest version, which is the published one.
        responses: their number.
        erasures: grows whenever responses are removed, so that insights computed from them are noticed.
    """

    rowid: int
    id: str
    project: int
    name: str
    status: Status
    version: int
    responses: int
    erasures: int
    created_at: int
    updated_at: int


class SurveyVersion(Struct, frozen=True):
    """An immutable version of a survey's definition."""

    number: int
    definition: Mapping[str, Any]
    created_at: int


class SurveyResponse(Struct, frozen=True):
    """A respondent's answers to one version, by question id. `contact` is a storage key, None if anonymous.

    `client_key` is the unique name of a response of a customer's client; it is written, and not read back.
    """

    rowid: int
    id: str
    version: int
    contact: int | None
    user_id: str | None
    language: str
    answers: Mapping[str, Any]
    created_at: int
    client_key: str | None = None


class ResponseFilter(Struct, frozen=True):
    """A filter of responses; None means any."""

    version: int | None = None
    contact: int | None = None
    language: str | None = None
    since: int | None = None
    until: int | None = None


def survey_view(survey: Survey) -> dict[str, Any]:
    """Return the survey in the form of the API's lists."""
    return {
        "id": survey.id,
        "name": survey.name,
        "status": survey.status,
        "version": survey.version,
        "responses": survey.responses,
        "createdAt": iso(survey.created_at),
        "updatedAt": iso(survey.updated_at),
    }


def full_view(survey: Survey, published: SurveyVersion) -> dict[str, Any]:
    """Return the survey in the form of the API, with the definition of its published version."""
    return {**survey_view(survey), "definition": dict(published.definition)}


def survey_tag(survey: Survey, published: SurveyVersion) -> str:
    """Return the entity tag of a survey. It ignores the number of responses, which no client can overwrite."""
    view = full_view(survey, published)
    return entity_tag({name: value for name, value in view.items() if name != "responses"})


def version_view(survey: Survey, version: SurveyVersion) -> dict[str, Any]:
    """Return a version of a survey in the form of the API."""
    return {
        "surveyId": survey.id,
        "version": version.number,
        "published": version.number == survey.version,
        "definition": dict(version.definition),
        "createdAt": iso(version.created_at),
    }


def response_view(survey: Survey, response: SurveyResponse) -> dict[str, Any]:
    """Return a response in the form of the API."""
    return {
        "id": response.id,
        "surveyId": survey.id,
        "version": response.version,
        "contact": None if response.user_id is None else {"userId": response.user_id},
        "language": response.language,
        "answers": dict(response.answers),
        "createdAt": iso(response.created_at),
    }
