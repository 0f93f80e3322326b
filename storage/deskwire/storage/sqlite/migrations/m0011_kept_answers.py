"""Responses kept for requests with an `Idempotency-Key`."""

from typing import Final

SHOWN_BY: Final = {
    "conversations": ("DELETE ON conversations", "old.id"),
    "contacts": ("DELETE ON contacts", "old.id"),
    "memory": ("DELETE ON memory", "old.id"),
    "tickets": ("DELETE ON tickets", "old.id"),
    "uploads": ("DELETE ON uploads", "old.id"),
    "workflows": ("DELETE ON workflows", "old.id"),
    "responses": ("DELETE ON survey_responses", "old.id"),
    "users": ("UPDATE OF deleted_at ON users WHEN new.deleted_at IS NOT NULL", "old.id"),
    "members": ("DELETE ON memberships", "(SELECT id FROM users WHERE rowid = old.user)"),
    "surveys": ("UPDATE OF removed ON surveys WHEN new.removed = 1", "old.id"),
    "teams": ("UPDATE OF deleted_at ON teams WHEN new.deleted_at IS NOT NULL", "old.id"),
    "projects": ("UPDATE OF removed_at ON projects WHEN new.removed_at IS NOT NULL", "old.id"),
    "keys": ("UPDATE OF revoked_at ON server_keys WHEN new.revoked_at IS NOT NULL", "old.id"),
    "endpoints": ("UPDATE OF status ON endpoints WHEN new.status = 'removed'", "old.id"),
}
"""The change that removes an object, and the object's id: triggers remove kept responses that show it, so that no way of
removal can forget them."""

SQL: Final = """
CREATE TABLE kept_answers (
    rowid INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, fingerprint BLOB NOT NULL, subject TEXT, sealed BLOB,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX kept_answers_by_subject ON kept_answers (subject) WHERE subject IS NOT NULL;
""" + "".join(
    f"CREATE TRIGGER kept_answers_of_{name} AFTER {event} BEGIN\n"
    f"    UPDATE kept_answers SET subject = NULL, sealed = NULL WHERE subject = {subject}; END;\n"
    for name, (event, subject) in SHOWN_BY.items()
)
