"""Drafts and held messages, each its author's own (ADR 53).

Programs from before know nothing of them: rows go with their conversation or user by themselves.
"""

from __future__ import annotations

from typing import Final

from deskwire.storage.postgres.schema.types import typed

SQL: Final = typed("""
CREATE TABLE drafts (
    rowid IDENTITY, author bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    project bigint NOT NULL REFERENCES projects,
    conversation bigint NOT NULL REFERENCES conversations ON DELETE CASCADE, internal smallint NOT NULL,
    size bigint NOT NULL, version bigint NOT NULL, base_sequence bigint, updated_at bigint NOT NULL,
    attachments TEXT, text TEXT NOT NULL
);
CREATE UNIQUE INDEX drafts_by_place ON drafts (conversation, author, internal);
CREATE INDEX drafts_by_author ON drafts (author, project, updated_at, size);
CREATE TABLE held_messages (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, author bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    project bigint NOT NULL REFERENCES projects,
    conversation bigint NOT NULL REFERENCES conversations ON DELETE CASCADE, internal smallint NOT NULL,
    if_sequence bigint, follow TEXT, send_at bigint NOT NULL, created_at bigint NOT NULL, problem TEXT,
    attachments TEXT, text TEXT NOT NULL
);
CREATE INDEX held_messages_by_author ON held_messages (author, project);
CREATE INDEX held_messages_by_conversation ON held_messages (conversation);
CREATE INDEX held_messages_due ON held_messages (send_at) WHERE problem IS NULL;
ALTER TABLE drafts SET (autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE held_messages SET (autovacuum_vacuum_scale_factor = 0.02);
""")
