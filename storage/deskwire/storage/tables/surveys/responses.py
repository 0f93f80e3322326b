"""Responses to surveys, and insights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import orjson

from deskwire.engine.core.values import replace
from deskwire.engine.surveys.insights.insights import Insights, Refresh, without_texts
from deskwire.engine.surveys.survey import ResponseFilter, Survey, SurveyResponse
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Changes, Queries
from deskwire.storage.tables.surveys.surveys import SURVEY_COLUMNS

_RESPONSE: Final = "r.rowid, r.id, r.version, r.contact, k.user_id, r.language, r.answers, r.created_at"
_JOINED: Final = f"SELECT {_RESPONSE} FROM survey_responses r LEFT JOIN contacts k ON k.rowid = r.contact"
_WIDTH: Final = len(_RESPONSE.split(", "))
_SURVEY: Final = ", ".join(f"s.{name}" for name in SURVEY_COLUMNS.split(", "))
_IN_SURVEY: Final = either("r.survey = ?")
_AMONG_FEW: Final = either("{unindexed}r.survey = ?")
_LAST: Final = (1 << 63) - 1


class SurveyResponseReads(Queries):
    """Queries on responses and insights; the methods are those of `surveys.ports.SurveyReader`."""

    def survey_response(self, survey: int, response_id: str) -> SurveyResponse | None:
        row = self.conn.execute(
            f"{_JOINED} WHERE r.id = ? AND r.survey = ?", (response_id, survey)
        ).fetchone()
        return None if row is None else _response_of(row)

    def survey_response_by_client_key(self, survey: int, client_key: str) -> SurveyResponse | None:
        row = self.conn.execute(
            f"{_JOINED} WHERE r.survey = ? AND r.client_key = ?", (survey, client_key)
        ).fetchone()
        return None if row is None else _response_of(row)

    def survey_responses(
        self, survey: int, wanted: ResponseFilter, before: int | None, limit: int
    ) -> Sequence[SurveyResponse]:
        where, values = self._wanted(survey, wanted, before)
        sql = f"{_JOINED} WHERE {where} ORDER BY r.rowid DESC LIMIT ?"
        return [_response_of(row) for row in self.conn.execute(sql, (*values, limit))]

    def survey_answers(
        self, survey: int, wanted: ResponseFilter, before: int | None, limit: int
    ) -> Sequence[tuple[int, int, int, str]]:
        where, values = self._wanted(survey, wanted, before)
        sql = (
            f"SELECT r.rowid, r.version, r.created_at, r.answers FROM survey_responses r WHERE {where} "
            "ORDER BY r.rowid DESC LIMIT ?"
        )
        return self.conn.execute(sql, (*values, limit)).fetchall()

    def _wanted(self, survey: int, wanted: ResponseFilter, before: int | None) -> tuple[str, Sequence[Any]]:
        """Return the condition on responses `r` of a filter, with its values."""
        # A contact has few responses, so none of the survey's indexes is used.
        home = _IN_SURVEY if wanted.contact is None else _AMONG_FEW
        where = [home[self.dialect], "r.rowid < ?"]
        values: list[Any] = [survey, before or _LAST]
        for condition, value in (
            ("r.version = ?", wanted.version),
            ("r.contact = ?", wanted.contact),
            ("r.language = ?", wanted.language),
            ("r.created_at >= ?", wanted.since),
            ("r.created_at < ?", wanted.until),
        ):
            if value is not None:
                where.append(condition)
                values.append(value)
        return " AND ".join(where), values

    def responses_of_contact(
        self, contact: int, before: int | None, limit: int
    ) -> Sequence[tuple[Survey, SurveyResponse]]:
        rows = self.conn.execute(
            f"SELECT {_RESPONSE}, {_SURVEY} FROM survey_responses r JOIN surveys s ON s.rowid = r.survey "
            "LEFT JOIN contacts k ON k.rowid = r.contact "
            "WHERE r.contact = ? AND r.rowid < ? AND s.removed = 0 ORDER BY r.rowid DESC LIMIT ?",
            (contact, before or _LAST, limit),
        )
        return [(Survey(*row[_WIDTH:]), _response_of(row[:_WIDTH])) for row in rows]

    def survey_insights(self, survey: int) -> Insights | None:
        row = self.conn.execute(
            "SELECT parts, source, updated_at FROM survey_insights WHERE survey = ?", (survey,)
        ).fetchone()
        return None if row is None else Insights(orjson.loads(row[0]), row[1], row[2])

    def survey_refresh(self, survey: int) -> Refresh | None:
        row = self.conn.execute(
            "SELECT status, started_at, progress, ended_at, error, responses, scores, source "
            "FROM survey_refreshes WHERE survey = ?",
            (survey,),
        ).fetchone()
        return None if row is None else Refresh(*(*row[:6], orjson.loads(row[6]), row[7]))


class SurveyResponseWrites(SurveyResponseReads, Changes):
    """Changes of responses and insights; the methods are those of `surveys.ports.SurveyTransaction`."""

    def insert_response(self, survey: int, response: SurveyResponse) -> SurveyResponse:
        rowid = self.inserted(
            "INSERT INTO survey_responses (id, survey, version, contact, language, answers, created_at, client_key) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                response.id,
                survey,
                response.version,
                response.contact,
                response.language,
                orjson.dumps(response.answers).decode(),
                response.created_at,
                response.client_key,
            ),
        )
        self.conn.execute("UPDATE surveys SET responses = responses + 1 WHERE rowid = ?", (survey,))
        return replace(response, rowid=rowid)

    def delete_response(self, survey: int, response: SurveyResponse) -> None:
        self._delete_responses(survey, [response])

    @abstractmethod
    def erase_response_events(self, survey: int, responses: Sequence[str]) -> None:
        """Delete the events of these responses and their deliveries."""

    def erase_responses(self, contact: int, limit: int) -> Sequence[tuple[str | None, str]]:
        rows = self.conn.execute(
            f"SELECT CASE WHEN s.removed = 0 THEN s.id END, r.survey, {_RESPONSE} FROM survey_responses r "
            "JOIN surveys s ON s.rowid = r.survey LEFT JOIN contacts k ON k.rowid = r.contact "
            "WHERE r.contact = ? ORDER BY r.rowid LIMIT ?",
            (contact, limit),
        ).fetchall()
        by_survey: dict[int, list[SurveyResponse]] = {}
        for _, survey, *row in rows:
            by_survey.setdefault(survey, []).append(_response_of(row))
        for survey, responses in by_survey.items():
            self._delete_responses(survey, responses)
        return [(row[0], row[3]) for row in rows]

    def clear_survey(self, survey: int, limit: int) -> int:
        deleted = self.conn.execute(
            "DELETE FROM survey_responses WHERE rowid IN (SELECT rowid FROM survey_responses WHERE survey = ? LIMIT ?) "
            "RETURNING id",
            (survey, limit),
        ).fetchall()
        self.erase_response_events(survey, [response_id for (response_id,) in deleted])
        if not deleted:
            for table in ("survey_insights", "survey_refreshes", "survey_versions"):
                self.conn.execute(f"DELETE FROM {table} WHERE survey = ?", (survey,))
            self.conn.execute("DELETE FROM surveys WHERE rowid = ?", (survey,))
            self.want_scrub()
        return len(deleted)

    def put_insights(self, survey: int, insights: Insights) -> None:
        self.conn.execute(
            "INSERT INTO survey_insights VALUES (?, ?, ?, ?) ON CONFLICT (survey) DO UPDATE SET "
            "parts = excluded.parts, source = excluded.source, updated_at = excluded.updated_at",
            (survey, orjson.dumps(dict(insights.parts)).decode(), insights.source, insights.updated_at),
        )

    def put_refresh(self, survey: int, refresh: Refresh, incarnation: int = 0) -> None:
        self.conn.execute(
            "INSERT INTO survey_refreshes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (survey) DO UPDATE SET "
            "status = excluded.status, progress = excluded.progress, started_at = excluded.started_at, "
            "ended_at = excluded.ended_at, error = excluded.error, responses = excluded.responses, "
            "scores = excluded.scores, source = excluded.source, incarnation = excluded.incarnation",
            (
                survey,
                refresh.status,
                refresh.progress,
                refresh.started_at,
                refresh.ended_at,
                refresh.error,
                refresh.responses,
                orjson.dumps(refresh.scores).decode(),
                refresh.source,
                incarnation,
            ),
        )

    def fail_refreshes(self, reason: str, at: int) -> int:
        return self.conn.execute(
            "UPDATE survey_refreshes SET status = 'failed', error = ?, ended_at = ? WHERE status = 'running' "
            "AND incarnation NOT IN (SELECT n.incarnation FROM nodes n)",
            (reason, at),
        ).rowcount

    def _delete_responses(self, survey: int, responses: Sequence[SurveyResponse]) -> None:
        self.erase_response_events(survey, [response.id for response in responses])
        self.conn.executemany(
            "DELETE FROM survey_responses WHERE rowid = ?", [(response.rowid,) for response in responses]
        )
        self.conn.execute(
            "UPDATE surveys SET responses = responses - ?, erasures = erasures + 1 WHERE rowid = ?",
            (len(responses), survey),
        )
        stored = self.survey_insights(survey)
        texts = [
            text for response in responses for text in response.answers.values() if isinstance(text, str)
        ]
        if stored is not None:
            self.put_insights(survey, replace(stored, parts=without_texts(stored.parts, texts)))
        self.want_scrub()


def _response_of(row: Sequence[Any]) -> SurveyResponse:
    return SurveyResponse(*(*row[:6], orjson.loads(row[6]), row[7]))
