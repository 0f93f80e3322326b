"""The notification settings of a user: the events to be notified of, and quiet hours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct, to_builtins

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: Final[tuple[Weekday, ...]] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ZONE_MAX: Final = 64  # longer than the longest name of the IANA database


class QuietHours(Struct, frozen=True, rename="camel"):
    """The times without notifications, by the clock of a time zone.

    Args:
        start, end: wall-clock times `HH:MM` of every day. An end before the start is on the next day. Both None for no hours.
        days: the days that are quiet from midnight to midnight.
        time_zone: a name of the IANA database.
    """

    time_zone: str
    start: str | None = None
    end: str | None = None
    days: tuple[Weekday, ...] = ()


class NotificationSettings(Struct, frozen=True, rename="camel"):
    """The notification settings of a user, the same in all projects and browsers.

    Args:
        mine, teams, unassigned: conversations that are assigned to the user, to a team of the user, or to no one.
        mentions: mentions of the user, and replies in followed conversations.
        preview: whether notifications show the text of messages.
        sound: whether a sound plays.
    """

    mine: bool = True
    teams: bool = True
    unassigned: bool = False
    mentions: bool = True
    preview: bool = True
    sound: bool = True
    quiet_hours: QuietHours | None = None


DEFAULTS: Final = NotificationSettings()


class NotificationSettingsReader(Protocol):
    """Queries on notification settings."""

    def notification_settings(self, user: int) -> NotificationSettings:
        """Return the settings of a user (storage key), or the defaults."""


class NotificationSettingsTransaction(NotificationSettingsReader, Protocol):
    """Changes of notification settings."""

    def put_notification_settings(self, user: int, settings: NotificationSettings) -> None:
        """Store the settings of a user (storage key)."""


def settings_view(settings: NotificationSettings) -> Mapping[str, Any]:
    """Return the object of the settings."""
    view: Mapping[str, Any] = to_builtins(settings)
    return view


@lru_cache(maxsize=64)
def zone_named(name: str) -> ZoneInfo | None:
    """Return the time zone of this name; None if it is unknown or no valid name."""
    if len(name) > _ZONE_MAX:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError for the name of a folder of the database
        return None
