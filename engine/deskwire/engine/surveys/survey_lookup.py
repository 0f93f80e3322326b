"""Lookup of surveys and of their versions."""

from __future__ import annotations

from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.ids import is_id
from deskwire.engine.surveys.ports import SurveyReader
from deskwire.engine.surveys.survey import Survey, SurveyVersion


def find_survey(reader: SurveyReader, project: int, survey_id: str) -> Survey:
    """Return the project's survey with this id. Raises NotFound."""
    survey = reader.survey(project, survey_id) if is_id(survey_id, "srv") else None
    if survey is None:
        raise NotFound("There is no such survey.", code="survey_not_found")
    return survey


def find_version(reader: SurveyReader, survey: Survey, number: int) -> SurveyVersion:
    """Return a version of a survey. Raises NotFound with the range of existing versions."""
    version = reader.survey_version(survey.rowid, number) if 1 <= number <= survey.version else None
    if version is None:
        raise NotFound(f"The survey has the versions 1 to {survey.version}.", code="survey_version_not_found")
    return version
