"""Surveys and their versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from deskwire.engine.core.values import replace
from deskwire.engine.surveys.survey import Status, Survey, SurveyVersion
from deskwire.storage.folded_patterns import contains
from deskwire.storage.tables.base import Changes, Queries

SURVEY_COLUMNS: Final = (
    "rowid, id, project, name, status, version, responses, erasures, created_at, updated_at"
)
_LAST: Final = (1 << 63) - 1


class SurveyReads(Queries):
    """Queries on surveys; the methods are those of `surveys.ports.SurveyReader`."""

    def survey(self, project: int, survey_id: str) -> Survey | None:
        row = self.conn.execute(
            f"SELECT {SURVEY_COLUMNS} FROM surveys WHERE id = ? AND project = ? AND removed = 0",
            (survey_id, project),
        ).fetchone()
        return None if row is None else Survey(*row)

    def surveys(
        self, project: int, status: Status | None, name: str | None, before: int | None, limit: int
    ) -> Sequence[Survey]:
        where = ["project = ?", "removed = 0", "rowid < ?"]
        values: list[Any] = [project, before or _LAST]
        if status is not None:
            where.append("status = ?")
            values.append(status)
        if name is not None:
            condition, some = contains(self.dialect, "name", name)
            where.append(condition)
            values += some
        sql = f"SELECT {SURVEY_COLUMNS} FROM surveys WHERE {' AND '.join(where)} ORDER BY rowid DESC LIMIT ?"
        return [Survey(*row) for row in self.conn.execute(sql, (*values, limit))]

    def survey_version(self, survey: int, number: int) -> SurveyVersion | None:
        row = self.conn.execute(
            "SELECT number, definition, created_at FROM survey_versions WHERE survey = ? AND number = ?",
            (survey, number),
        ).fetchone()
        return None if row is None else _version_of(row)

    def survey_versions(self, survey: int, before: int | None, limit: int) -> Sequence[SurveyVersion]:
        rows = self.conn.execute(
            "SELECT number, definition, created_at FROM survey_versions WHERE survey = ? AND number < ? "
            "ORDER BY number DESC LIMIT ?",
            (survey, before or _LAST, limit),
        )
        return [_version_of(row) for row in rows]

    def removed_surveys(self) -> Sequence[int]:
        return [row[0] for row in self.conn.execute("SELECT rowid FROM surveys WHERE removed = 1")]


class SurveyWrites(Changes):
    """Changes of surveys; the methods are those of `surveys.ports.SurveyTransaction`."""

    def insert_survey(self, survey: Survey, definition: Mapping[str, Any]) -> Survey:
        rowid = self.inserted(
            "INSERT INTO surveys (id, project, name, status, version, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, 0, ?, ?)",
            (survey.id, survey.project, survey.name, survey.status, survey.created_at, survey.updated_at),
        )
        self.publish_version(rowid, SurveyVersion(survey.version, definition, survey.created_at))
        return replace(survey, rowid=rowid)

    def save_survey(self, survey: Survey) -> None:
        self.conn.execute(
            "UPDATE surveys SET name = ?, status = ?, updated_at = ? WHERE rowid = ?",
            (survey.name, survey.status, survey.updated_at, survey.rowid),
        )

    def publish_version(self, survey: int, version: SurveyVersion) -> None:
        self.conn.execute(
            "INSERT INTO survey_versions (survey, number, definition, created_at) VALUES (?, ?, ?, ?)",
            (survey, version.number, orjson.dumps(dict(version.definition)).decode(), version.created_at),
        )
        self.conn.execute(
            "UPDATE surveys SET version = ?, updated_at = ? WHERE rowid = ?",
            (version.number, version.created_at, survey),
        )

    def remove_survey(self, survey: int) -> None:
        self.conn.execute("UPDATE surveys SET removed = 1 WHERE rowid = ?", (survey,))


def _version_of(row: Sequence[Any]) -> SurveyVersion:
    return SurveyVersion(row[0], orjson.loads(row[1]), row[2])
