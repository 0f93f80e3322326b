"""The requirements of surveys on the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from deskwire.engine.surveys.insights.insights import Insights, Refresh
from deskwire.engine.surveys.survey import ResponseFilter, Status, Survey, SurveyResponse, SurveyVersion


class SurveyReader(Protocol):
    """Queries on surveys."""

    def survey(self, project: int, survey_id: str) -> Survey | None:
        """Return the survey with this id, None if this project has none."""

    def surveys(
        self, project: int, status: Status | None, name: str | None, before: int | None, limit: int
    ) -> Sequence[Survey]:
        """Return surveys, newest first, with storage keys below `before`; `name` filters by a substring."""

    def survey_version(self, survey: int, number: int) -> SurveyVersion | None:
        """Return one version of a survey."""

    def survey_versions(self, survey: int, before: int | None, limit: int) -> Sequence[SurveyVersion]:
        """Return versions, newest first, with numbers below `before`."""

    def survey_response(self, survey: int, response_id: str) -> SurveyResponse | None:
        """Return one response."""

    def survey_response_by_client_key(self, survey: int, client_key: str) -> SurveyResponse | None:
        """Return the response with this client key."""

    def survey_responses(
        self, survey: int, wanted: ResponseFilter, before: int | None, limit: int
    ) -> Sequence[SurveyResponse]:
        """Return responses, newest first, with storage keys below `before`."""

    def survey_answers(
        self, survey: int, wanted: ResponseFilter, before: int | None, limit: int
    ) -> Sequence[tuple[int, int, int, str]]:
        """Return storage key, version, time and answers (JSON) of responses, newest first."""

    def responses_of_contact(
        self, contact: int, before: int | None, limit: int
    ) -> Sequence[tuple[Survey, SurveyResponse]]:
        """Return a contact's responses to all surveys, newest first, with storage keys below `before`."""

    def survey_insights(self, survey: int) -> Insights | None:
        """Return the stored insights."""

    def refresh_goes_on(self, survey: int, but: int) -> bool:
        """Return whether another node, with a valid lease, is running a refresh; `but` is the own incarnation."""

    def survey_refresh(self, survey: int) -> Refresh | None:
        """Return the running refresh, or the last one."""

    def removed_surveys(self) -> Sequence[int]:
        """Return removed surveys that still have rows."""


class SurveyTransaction(SurveyReader, Protocol):
    """Changes of surveys."""

    def insert_survey(self, survey: Survey, definition: Mapping[str, Any]) -> Survey:
        """Store a new survey with its first version; return it with its `rowid`."""

    def save_survey(self, survey: Survey) -> None:
        """Store the changed name, status and time of change."""

    def publish_version(self, survey: int, version: SurveyVersion) -> None:
        """Store a further version and make it the published one."""

    def remove_survey(self, survey: int) -> None:
        """Hide a survey; `clear_survey` deletes its rows."""

    def clear_survey(self, survey: int, limit: int) -> int:
        """Delete up to `limit` responses of a removed survey, and finally the survey; return the number of deleted rows."""

    def insert_response(self, survey: int, response: SurveyResponse) -> SurveyResponse:
        """Store a response; return it with its `rowid`."""

    def delete_response(self, survey: int, response: SurveyResponse) -> None:
        """Delete a response and its quotes in the insights."""

    def erase_responses(self, contact: int, limit: int) -> Sequence[tuple[str | None, str]]:
        """Delete up to `limit` of a contact's responses, with their quotes in insights.

        Return the ids of the survey and of the response for each; None for a survey that was removed before.
        """

    def put_insights(self, survey: int, insights: Insights) -> None:
        """Replace the stored insights."""

    def put_refresh(self, survey: int, refresh: Refresh, incarnation: int = 0) -> None:
        """Store the state of a refresh, and the incarnation of the node that runs it."""

    def fail_refreshes(self, reason: str, at: int) -> int:
        """Mark running refreshes of nodes with an expired lease as failed; return their number."""
