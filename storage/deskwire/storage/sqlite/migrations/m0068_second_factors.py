"""Second factors of users: authenticator apps, passkeys, recovery codes, and the challenges that ask for them."""

from typing import Final

SQL: Final = """
-- Whether the organisation requires a second factor of its members.
ALTER TABLE organisations ADD COLUMN second_factor INTEGER NOT NULL DEFAULT 0;

-- An authenticator app, with the newest time step whose code was used. The secret is encrypted.
CREATE TABLE totps (
    rowid INTEGER PRIMARY KEY, user INTEGER NOT NULL REFERENCES users, confirmed INTEGER NOT NULL, sealed_secret BLOB NOT NULL,
    created_at INTEGER NOT NULL, used_step INTEGER NOT NULL, UNIQUE (user, confirmed)
) STRICT;
CREATE TABLE passkeys (
    rowid INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, user INTEGER NOT NULL REFERENCES users, credential BLOB NOT NULL UNIQUE,
    public_key BLOB NOT NULL, sign_count INTEGER NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL, last_used_at INTEGER
) STRICT;
CREATE INDEX passkeys_by_user ON passkeys (user, rowid);
-- Only hashes, one row for each unused code.
CREATE TABLE recovery_codes (
    rowid INTEGER PRIMARY KEY, user INTEGER NOT NULL REFERENCES users, hash BLOB NOT NULL, UNIQUE (user, hash)
) STRICT;
-- See `engine.accounts.factors.challenge`. `user` is null for a sign-in by passkey alone.
CREATE TABLE challenges (
    rowid INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, user INTEGER REFERENCES users,
    generation INTEGER NOT NULL, expires_at INTEGER NOT NULL, session TEXT, wrong_codes INTEGER NOT NULL, webauthn BLOB,
    carried BLOB NOT NULL
) STRICT;
CREATE INDEX challenges_by_user ON challenges (user);
CREATE INDEX challenges_by_session ON challenges (session) WHERE session IS NOT NULL;
CREATE INDEX challenges_by_end ON challenges (expires_at);
"""
