"""The organisation that each account was made for."""

from typing import Final

SQL: Final = """
-- The organisation whose people may know the account's password, which is taken for that of the oldest membership.
ALTER TABLE users ADD COLUMN home INTEGER REFERENCES organisations;
UPDATE users SET home = (
    SELECT organisation FROM memberships WHERE user = users.rowid ORDER BY created_at, organisation LIMIT 1);
-- Where there are several, an account of none may have been one's before: it gets into another only with a new password.
UPDATE users SET password_hash = NULL, generation = generation + 1
    WHERE home IS NULL AND password_hash IS NOT NULL AND (SELECT count(*) FROM organisations) > 1;
"""
