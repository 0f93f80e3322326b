"""The notification settings of users."""

from typing import Final

SQL: Final = """
-- `quiet_hours` is JSON, see `engine.accounts.notifications.QuietHours`. A user without a row has the defaults.
CREATE TABLE notification_settings (
    user INTEGER PRIMARY KEY REFERENCES users, mine INTEGER NOT NULL, teams INTEGER NOT NULL, unassigned INTEGER NOT NULL,
    mentions INTEGER NOT NULL, preview INTEGER NOT NULL, sound INTEGER NOT NULL, quiet_hours TEXT
) STRICT;
"""
