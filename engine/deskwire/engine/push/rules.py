"""The decision of which events a user is notified, and of quiet hours: the twin of `core/notification-rules.js` of the desk.

Both are tested with the cases of `tests/support/data/notifications.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from typing import Any, Final, Literal

from msgspec import Struct

from deskwire.engine.accounts.notifications import WEEKDAYS, NotificationSettings, QuietHours, zone_named

NotificationCause = Literal["mine", "teams", "unassigned", "mention", "following"]

TYPES: Final = frozenset({"message.created", "note.created", "conversation.changed"})
"""The types of events of which a user may be notified."""


class NotifiedUser(Struct, frozen=True):
    """A user who may be notified.

    Args:
        teams: ids of the user's teams.
        follows: whether the user follows a conversation, by its id. It is for events that do not name the followers.
    """

    id: str
    teams: AbstractSet[str]
    follows: Callable[[str], bool]


def notification_cause(
    event_type: str, data: Mapping[str, Any], user: NotifiedUser, settings: NotificationSettings
) -> NotificationCause | None:
    """Return why a user is to be notified of an event; None if not. Quiet hours do not count here."""
    if event_type not in TYPES:
        return None
    conversation = data["conversation"]
    if event_type == "message.created":
        if data["message"]["author"]["type"] != "contact":
            return None
        return _about(conversation, user, settings) or _followed(conversation, user, settings)
    if event_type == "note.created":
        if data["message"]["author"]["id"] == user.id:
            return None
        if settings.mentions and user.id in data["mentioned"]:
            return "mention"
        return _followed(conversation, user, settings)
    if "assignee" not in data["changed"] or conversation["assignee"] is None:
        return None
    actor = data["actor"]
    return (
        None if actor["type"] == "user" and actor["id"] == user.id else _about(conversation, user, settings)
    )


def _followed(
    conversation: Mapping[str, Any], user: NotifiedUser, settings: NotificationSettings
) -> NotificationCause | None:
    if conversation["archived"] or not settings.mentions:
        return None
    followers = conversation.get("followers")
    found = user.follows(conversation["id"]) if followers is None else user.id in followers
    return "following" if found else None


def _about(
    conversation: Mapping[str, Any], user: NotifiedUser, settings: NotificationSettings
) -> NotificationCause | None:
    assignee = conversation["assignee"]
    if conversation["archived"]:
        return None
    if assignee is None:
        return "unassigned" if settings.unassigned else None
    if assignee["type"] == "team":
        return "teams" if settings.teams and assignee["id"] in user.teams else None
    return "mine" if settings.mine and assignee["id"] == user.id else None


def is_quiet(quiet: QuietHours | None, at: int) -> bool:
    """Return whether a time (ms) is within the quiet hours. An unknown time zone counts as UTC."""
    if quiet is None:
        return False
    local = datetime.fromtimestamp(at / 1000, zone_named(quiet.time_zone) or UTC)
    if WEEKDAYS[local.weekday()] in quiet.days:
        return True
    if quiet.start is None or quiet.end is None:
        return False
    clock = f"{local:%H:%M}"
    if quiet.start < quiet.end:
        return quiet.start <= clock < quiet.end
    return clock >= quiet.start or clock < quiet.end
