"""Attributes and tags of contacts, lists of contacts by their changes, and contacts that were merged into another one."""

from typing import Final

SQL: Final = """
-- Of `erasing`: 1 is for a contact that is being erased, 2 for one that is being merged into another one, 3 for one that was.
ALTER TABLE contacts ADD COLUMN attributes TEXT NOT NULL DEFAULT '{}';
ALTER TABLE contacts ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE contacts ADD COLUMN merged_into INTEGER REFERENCES contacts;
CREATE INDEX contacts_merged ON contacts (project, user_id) WHERE erasing >= 2;
CREATE INDEX contacts_merging ON contacts (rowid) WHERE erasing = 2;
CREATE INDEX contacts_merged_into ON contacts (merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX contacts_by_update ON contacts (project, updated_at) WHERE erasing = 0;
CREATE INDEX contacts_by_creation ON contacts (project, created_at) WHERE erasing = 0;
CREATE TABLE contact_tags (
    project INTEGER NOT NULL, tag TEXT NOT NULL, contact INTEGER NOT NULL REFERENCES contacts,
    PRIMARY KEY (project, tag, contact)
) STRICT, WITHOUT ROWID;
CREATE INDEX contact_tags_by_contact ON contact_tags (contact);
CREATE TABLE contact_attributes (
    project INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, contact INTEGER NOT NULL REFERENCES contacts,
    PRIMARY KEY (project, name, value, contact)
) STRICT, WITHOUT ROWID;
CREATE INDEX contact_attributes_by_contact ON contact_attributes (contact);
-- The events of a conversation from `since` on, in front of `upto`, are those of a contact whose it was then; both are ids.
CREATE TABLE moved_conversations (
    conversation INTEGER NOT NULL REFERENCES conversations, contact INTEGER NOT NULL REFERENCES contacts,
    since TEXT NOT NULL, upto TEXT NOT NULL, PRIMARY KEY (conversation, upto)
) STRICT, WITHOUT ROWID;
CREATE INDEX moved_conversations_by_contact ON moved_conversations (contact);
"""
