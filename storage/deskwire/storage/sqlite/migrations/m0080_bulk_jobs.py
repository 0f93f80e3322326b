"""Bulk jobs: one change of many conversations, with an item for each of them."""

from typing import Final

SQL: Final = """
-- `action` is a JSON object. An item without a conversation is one of a conversation that was deleted; `trace` is the JSON
-- by which a change is undone.
CREATE TABLE bulk_jobs (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, project INTEGER NOT NULL REFERENCES projects,
    author INTEGER NOT NULL REFERENCES users, action TEXT NOT NULL, status TEXT NOT NULL, reason TEXT,
    total INTEGER NOT NULL, created_at INTEGER NOT NULL, ended_at INTEGER
) STRICT;
CREATE INDEX bulk_jobs_by_author ON bulk_jobs (author, project);
CREATE INDEX bulk_jobs_active ON bulk_jobs (created_at) WHERE ended_at IS NULL;
CREATE INDEX bulk_jobs_by_end ON bulk_jobs (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE bulk_job_items (
    rowid INTEGER PRIMARY KEY, job INTEGER NOT NULL REFERENCES bulk_jobs, conversation INTEGER REFERENCES conversations,
    state TEXT NOT NULL, reason TEXT, trace TEXT
) STRICT;
CREATE INDEX bulk_job_items_by_state ON bulk_job_items (job, state);
CREATE INDEX bulk_job_items_by_conversation ON bulk_job_items (conversation) WHERE conversation IS NOT NULL;
CREATE TRIGGER kept_answers_of_bulk_jobs AFTER DELETE ON bulk_jobs BEGIN
    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE near = substr(old.id, 5, 10) AND subject = old.id;
    UPDATE kept_answers SET near = '', subject = NULL, sealed = NULL WHERE length(near) = 0 AND subject = old.id; END;
"""
