"""The way in which a session's user signed in, and the last proof of who uses the session."""

from typing import Final

SQL: Final = """
-- `method`: `password`, `passkey`, `oidc` or `invitation`. `provider` and `provider_sid` name an identity provider and its own
-- session (the claim `sid`), by which a back-channel logout finds the session. `proved_at` is in milliseconds. `second_factor` is 1
-- if the user proved one here, and 2 if the provider vouches for it.
ALTER TABLE sessions ADD COLUMN method TEXT NOT NULL DEFAULT 'password';
ALTER TABLE sessions ADD COLUMN proved_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN second_factor INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN provider TEXT;
ALTER TABLE sessions ADD COLUMN provider_sid TEXT;
UPDATE sessions SET proved_at = created_at;
"""
