"""Machine credentials, with the triggers that server keys have."""

from typing import Final

from deskwire.storage.postgres.schema.triggers import forgetting, telling
from deskwire.storage.postgres.schema.types import typed

SQL: Final = typed("""
CREATE TABLE machine_credentials (
    rowid IDENTITY, id TEXT NOT NULL UNIQUE, project bigint NOT NULL REFERENCES projects, name TEXT NOT NULL,
    permissions TEXT NOT NULL, hash bytea NOT NULL UNIQUE, tail TEXT NOT NULL, made_by TEXT NOT NULL, made_by_id TEXT,
    created_at bigint NOT NULL, expires_at bigint, last_used_at bigint, revoked_at bigint,
    generation bigint NOT NULL, previous_hash bytea UNIQUE, previous_expires_at bigint
);
CREATE INDEX machine_credentials_by_project ON machine_credentials (project);
ALTER TABLE machine_credentials SET (fillfactor = 80);
""") + "".join(
    (
        forgetting("machine_credentials", "UPDATE OF revoked_at", "NEW.revoked_at IS NOT NULL"),
        telling(
            "machine_credentials",
            "INSERT OR DELETE OR UPDATE OF project, name, permissions, hash, expires_at, revoked_at, generation, "
            "previous_hash, previous_expires_at",
            "callers",
        ),
    )
)
