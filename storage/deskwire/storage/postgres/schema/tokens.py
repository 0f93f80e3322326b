"""One-time passwords with an end, access tokens one by one, and the pushes of the audit trail."""

from typing import Final

from deskwire.storage.postgres.schema.triggers import forgetting, telling
from deskwire.storage.postgres.schema.types import typed

SQL: Final = (
    typed(r"""
ALTER TABLE users ADD COLUMN password_made_at bigint;
UPDATE users SET password_made_at = CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)
    WHERE password_temporary = 1;
UPDATE kept_answers SET subject = NULL, sealed = NULL WHERE subject LIKE 'key\_%' OR subject LIKE 'usr\_%';
CREATE TABLE access_tokens (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, "user" bigint NOT NULL REFERENCES users, source TEXT NOT NULL,
    client TEXT NOT NULL, generation bigint NOT NULL, created_at bigint NOT NULL, expires_at bigint NOT NULL, ended_at bigint
);
CREATE INDEX access_tokens_by_user ON access_tokens ("user", rowid);
CREATE INDEX access_tokens_by_end ON access_tokens (expires_at);
CREATE INDEX access_tokens_ended ON access_tokens (expires_at) WHERE ended_at IS NOT NULL;
CREATE TABLE audit_pushes (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, organisation bigint NOT NULL UNIQUE REFERENCES organisations,
    url TEXT NOT NULL, sealed_secret bytea NOT NULL, secret_tail TEXT NOT NULL, old_secret bytea, old_secret_until bigint,
    created_at bigint NOT NULL, updated_at bigint NOT NULL, attempts bigint NOT NULL DEFAULT 0, due_at bigint,
    failing_since bigint, last_at bigint, last_status bigint, last_error TEXT, missed bigint NOT NULL DEFAULT 0
);
CREATE TABLE audit_unpushed (
    rowid IDENTITY, push bigint NOT NULL REFERENCES audit_pushes, record bigint NOT NULL, UNIQUE (push, record)
);
CREATE INDEX audit_unpushed_by_record ON audit_unpushed (record);
""")
    + telling("access_tokens", "UPDATE OF ended_at", "session")
    + forgetting("audit_pushes", "DELETE", None)
)
