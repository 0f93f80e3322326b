"""The queries and changes of a store that surveys need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from deskwire.engine.surveys.insights.insights import Insights
from deskwire.engine.surveys.insights.progress import Refresh
from deskwire.engine.surveys.survey import ResponseFilter, Status, Survey, SurveyResponse, SurveyVersion


class SurveyReader(Protocol):
    """Queries on surveys."""

    def survey(self, project: int, survey_id: str) -> Survey | None:
        """Return the survey with this id, None if this project has none."""

    def surveys(
        self, project: int, status: Status | None, name: str | None, before: int | None, limit: int
    ) -> Sequence[Survey]:
        """Return surveys, newest first, of storage keys smaller than `before`; `name` is a part of their names."""

    def survey_version(self, survey: int, number: int) -> SurveyVersion | None:
        """Return one version of a survey."""

    def survey_versions(self, survey: int, before: int | None, limit: int) -> Sequence[SurveyVersion]:
        """Return versions, newest first, of numbers smaller than `before`."""

    def survey_response(self, survey: int, response_id: str) -> SurveyResponse | None:
        """Return one response."""

    def survey_responses(
        self, survey: int, wanted: ResponseFilter, before: int | None, limit: int
    ) -> Sequence[SurveyResponse]:
        """Return responses, newest first, of storage keys smaller than `before`."""

    def survey_answers(
        self, survey: int, wanted: ResponseFilter, before: int | None, limit: int
    ) -> Sequence[tuple[int, int, int, str]]:
        """Return of responses, newest first, the storage key, the version, the time, and the answers as JSON."""

    def responses_of_contact(
        self, contact: int, before: int | None, limit: int
    ) -> Sequence[tuple[Survey, SurveyResponse]]:
        """Return a contact's responses to all surveys, newest first, of storage keys smaller than `before`."""

    def survey_insights(self, survey: int) -> Insights | None:
        """Return the stored insights."""

    def refresh_goes_on(self, survey: int, but: int) -> bool:
        """Tell whether a node runs a refresh whose lease is not over, except for this life of one."""

    def survey_refresh(self, survey: int) -> Refresh | None:
        """Return the refresh under way, or the last one."""

    def removed_surveys(self) -> Sequence[int]:
        """Return the surveys that are removed and still have rows left."""


class SurveyTransaction(SurveyReader, Protocol):
    """Changes of surveys."""

    def insert_survey(self, survey: Survey, definition: Mapping[str, Any]) -> Survey:
        """Store a new survey with its first version; return it with its `rowid`."""

    def save_survey(self, survey: Survey) -> None:
        """Store the changed name, status and time of change."""

    def publish_version(self, survey: int, version: SurveyVersion) -> None:
        """Store a further version and make it the published one."""

    def remove_survey(self, survey: int) -> None:
        """Put a survey out of sight; `clear_survey` removes what belongs to it."""

    def clear_survey(self, survey: int, limit: int) -> int:
        """Delete up to `limit` of a removed survey's responses, at last the survey; return the rows deleted, 0 at the end."""

    def insert_response(self, survey: int, response: SurveyResponse) -> SurveyResponse:
        """Store a response; return it with its `rowid`."""

    def delete_response(self, survey: int, response: SurveyResponse) -> None:
        """Delete a response, and what the insights quote of it."""

    def erase_responses(self, contact: int, limit: int) -> Sequence[tuple[str | None, str]]:
        """Delete up to `limit` of a contact's responses, and what insights quote of them.

        Returns the ids of each one's survey and of itself; None for a survey that is out of sight already.
        """

    def put_insights(self, survey: int, insights: Insights) -> None:
        """Store insights in place of the present ones."""

    def put_refresh(self, survey: int, refresh: Refresh, incarnation: int = 0) -> None:
        """Store the state of a refresh, and the life of the node that runs it."""

    def fail_refreshes(self, reason: str, at: int) -> int:
        """End every refresh that is under way as failed whose node's lease is over; return their number."""
