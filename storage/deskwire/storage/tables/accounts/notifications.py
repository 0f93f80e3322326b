"""The notification settings of users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from deskwire.engine.accounts.notifications import DEFAULTS, NotificationSettings, QuietHours
from deskwire.storage.tables.base import Queries

SETTINGS_COLUMNS: Final = "n.mine, n.teams, n.unassigned, n.mentions, n.preview, n.sound, n.quiet_hours"


def settings_of(row: Sequence[Any]) -> NotificationSettings:
    """Return the settings in a row of SETTINGS_COLUMNS; the defaults if all columns are NULL, because the user has no row."""
    mine, teams, unassigned, mentions, preview, sound, quiet = row
    if mine is None:
        return DEFAULTS
    hours = None if quiet is None else msgspec.json.decode(quiet, type=QuietHours)
    return NotificationSettings(
        bool(mine), bool(teams), bool(unassigned), bool(mentions), bool(preview), bool(sound), hours
    )


class NotificationSettingsReads(Queries):
    """Queries. Implements `NotificationSettingsReader`."""

    def notification_settings(self, user: int) -> NotificationSettings:
        row = self.conn.execute(
            f'SELECT {SETTINGS_COLUMNS} FROM notification_settings n WHERE n."user" = ?', (user,)
        ).fetchone()
        return DEFAULTS if row is None else settings_of(row)


class NotificationSettingsWrites(Queries):
    """Changes. Implements `NotificationSettingsTransaction`."""

    def put_notification_settings(self, user: int, settings: NotificationSettings) -> None:
        quiet = settings.quiet_hours
        self.conn.execute(
            'INSERT INTO notification_settings ("user", mine, teams, unassigned, mentions, preview, sound, quiet_hours) '
            'VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT ("user") DO UPDATE SET mine = excluded.mine, teams = excluded.teams, '
            "unassigned = excluded.unassigned, mentions = excluded.mentions, preview = excluded.preview, sound = excluded.sound, "
            "quiet_hours = excluded.quiet_hours",
            (
                user,
                int(settings.mine),
                int(settings.teams),
                int(settings.unassigned),
                int(settings.mentions),
                int(settings.preview),
                int(settings.sound),
                None if quiet is None else msgspec.json.encode(quiet).decode(),
            ),
        )

    def forget_notification_settings(self, user: int) -> None:
        """Delete the settings of a user."""
        self.conn.execute('DELETE FROM notification_settings WHERE notification_settings."user" = ?', (user,))
