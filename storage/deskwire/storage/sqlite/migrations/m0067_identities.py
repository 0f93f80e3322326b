"""Bindings of accounts to users of OpenID providers, and sign-ins under way at a provider."""

from typing import Final

SQL: Final = """
-- A provider's user is known by issuer and `sub` (`subject`). `gives_role`: its claims have given the user a role.
CREATE TABLE identities (
    rowid INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    user INTEGER NOT NULL REFERENCES users,
    issuer TEXT NOT NULL,
    provider TEXT NOT NULL,
    subject TEXT NOT NULL,
    email TEXT NOT NULL,
    gives_role INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (issuer, subject)
);
CREATE INDEX identities_by_user ON identities (user, rowid);
-- `state` and `browser` are hashes of the secrets that the browser has; `session` is the id of its session at the start.
CREATE TABLE oidc_requests (
    state BLOB PRIMARY KEY,
    browser BLOB NOT NULL,
    provider TEXT NOT NULL,
    purpose TEXT NOT NULL,
    return_to TEXT NOT NULL,
    session TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX oidc_requests_by_end ON oidc_requests (expires_at);
-- Hashes of issuer and `jti` of logout tokens, so that none counts twice.
CREATE TABLE oidc_logouts (digest BLOB PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX oidc_logouts_by_end ON oidc_logouts (until);
CREATE INDEX sessions_by_provider ON sessions (provider, provider_sid) WHERE provider IS NOT NULL;
"""
