"""Surveys with their versions, responses and insights."""

from typing import Final

SQL: Final = """
-- AUTOINCREMENT: a refresh under way knows its survey by this key.
CREATE TABLE surveys (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects,
    name TEXT NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL, responses INTEGER NOT NULL DEFAULT 0,
    erasures INTEGER NOT NULL DEFAULT 0, removed INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX surveys_by_project ON surveys (project) WHERE removed = 0;
CREATE INDEX surveys_removed ON surveys (rowid) WHERE removed = 1;
CREATE TABLE survey_versions (
    rowid INTEGER PRIMARY KEY, survey INTEGER NOT NULL REFERENCES surveys, number INTEGER NOT NULL,
    definition TEXT NOT NULL, created_at INTEGER NOT NULL, UNIQUE (survey, number)
) STRICT;
CREATE TABLE survey_responses (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, survey INTEGER NOT NULL REFERENCES surveys,
    version INTEGER NOT NULL, contact INTEGER, language TEXT NOT NULL, answers TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX survey_responses_by_survey ON survey_responses (survey);
CREATE INDEX survey_responses_by_version ON survey_responses (survey, version);
CREATE INDEX survey_responses_by_contact ON survey_responses (contact) WHERE contact IS NOT NULL;
CREATE TABLE survey_insights (
    survey INTEGER PRIMARY KEY REFERENCES surveys, parts TEXT NOT NULL, source TEXT NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE survey_refreshes (
    survey INTEGER PRIMARY KEY REFERENCES surveys, status TEXT NOT NULL, progress REAL NOT NULL,
    started_at INTEGER NOT NULL, ended_at INTEGER, error TEXT, responses INTEGER, scores TEXT NOT NULL, source TEXT
) STRICT;
"""
