"""Attributes and tags of contacts, lists of contacts by their changes, and contacts that were merged into another one."""

from __future__ import annotations

from typing import Final

from deskwire.storage.postgres.schema.types import typed

SQL: Final = typed("""
-- Of `erasing`: 1 is for a contact that is being erased, 2 for one that is being merged into another one, 3 for one that was.
ALTER TABLE contacts ADD COLUMN attributes TEXT NOT NULL DEFAULT '{}', ADD COLUMN tags TEXT NOT NULL DEFAULT '[]',
    ADD COLUMN merged_into bigint REFERENCES contacts;
CREATE TABLE contact_tags (
    project bigint NOT NULL, tag TEXT NOT NULL, contact bigint NOT NULL REFERENCES contacts,
    PRIMARY KEY (project, tag, contact)
);
CREATE INDEX contact_tags_by_contact ON contact_tags (contact);
CREATE TABLE contact_attributes (
    project bigint NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, contact bigint NOT NULL REFERENCES contacts,
    PRIMARY KEY (project, name, value, contact)
);
CREATE INDEX contact_attributes_by_contact ON contact_attributes (contact);
-- The events of a conversation from `since` on, in front of `upto`, are those of a contact whose it was then; both are ids.
CREATE TABLE moved_conversations (
    conversation bigint NOT NULL REFERENCES conversations, contact bigint NOT NULL REFERENCES contacts,
    since TEXT NOT NULL, upto TEXT NOT NULL, PRIMARY KEY (conversation, upto)
);
CREATE INDEX moved_conversations_by_contact ON moved_conversations (contact);
""")

_CREATE: Final = "CREATE INDEX CONCURRENTLY IF NOT EXISTS"
INDEXES: Final = (
    f"{_CREATE} contacts_merged ON contacts (project, user_id) WHERE erasing >= 2",
    f"{_CREATE} contacts_merging ON contacts (rowid) WHERE erasing = 2",
    f"{_CREATE} contacts_merged_into ON contacts (merged_into) WHERE merged_into IS NOT NULL",
    f"{_CREATE} contacts_by_update ON contacts (project, updated_at, rowid) WHERE erasing = 0",
    f"{_CREATE} contacts_by_creation ON contacts (project, created_at, rowid) WHERE erasing = 0",
)
