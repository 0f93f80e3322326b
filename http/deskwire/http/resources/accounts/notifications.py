"""The notification settings of the signed-in user."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from deskwire.engine.accounts.notifications import (
    WEEKDAYS,
    NotificationSettings,
    NotificationSettingsTransaction,
    QuietHours,
    Weekday,
    settings_view,
    zone_named,
)
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import SIGNED_IN, Routes
from deskwire.http.resources.accounts import users
from deskwire.http.schemas import people as shapes

routes = Routes(users.routes.tag, SIGNED_IN)

SETTINGS: Final = "/users/me/notifications"


def _known_zone(name: str) -> str:
    if zone_named(name) is None:
        raise ValueError("This is not a time zone of the IANA database, such as Europe/Berlin.")
    return name


_Clock = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$", examples=["18:00"])]


class QuietHoursRequest(Body):
    """The times without notifications. `start` and `end` apply to every day; `days` are quiet as a whole."""

    time_zone: Annotated[str, AfterValidator(_known_zone), Field(max_length=64, examples=["Europe/Berlin"])]
    start: _Clock | None = None
    end: _Clock | None = None
    days: Annotated[list[Weekday], Field(max_length=len(WEEKDAYS), default_factory=list)]

    @model_validator(mode="after")
    def _complete(self) -> QuietHoursRequest:
        if (self.start is None) != (self.end is None):
            raise PydanticCustomError("incomplete", "This needs both start and end, or neither.")
        if self.start is not None and self.start == self.end:
            raise PydanticCustomError("empty", "Start and end are the same time. Use days for whole days.")
        return self


class PutNotificationSettingsRequest(Body):
    """All notification settings. They replace the stored ones."""

    mine: bool
    teams: bool
    unassigned: bool
    mentions: bool
    preview: bool
    sound: bool
    quiet_hours: QuietHoursRequest | None


@routes.add("GET", SETTINGS, operation_id="getNotificationSettings", answer=shapes.NotificationSettings)
async def get_settings(call: Call[Body, Query]) -> Answer:
    """Fetch your notification settings, which apply in all projects and browsers."""
    user = call.user.rowid
    return settings_view(await call.services.store.read(lambda reader: reader.notification_settings(user)))


@routes.add(
    "PUT",
    SETTINGS,
    operation_id="putNotificationSettings",
    body=PutNotificationSettingsRequest,
    answer=shapes.NotificationSettings,
    unrecorded="The settings concern their user alone and grant nothing.",
)
async def put_settings(call: Call[PutNotificationSettingsRequest, Query]) -> Answer:
    """Replace your notification settings. Quiet hours silence notifications, but nothing else."""
    settings, user = _settings_of(call.body), call.user.rowid

    def put(tx: NotificationSettingsTransaction) -> None:
        tx.put_notification_settings(user, settings)

    await call.services.store.write(put)
    return settings_view(settings)


def _settings_of(body: PutNotificationSettingsRequest) -> NotificationSettings:
    quiet = body.quiet_hours
    hours = None
    if quiet is not None and (quiet.start is not None or quiet.days):
        days = tuple(day for day in WEEKDAYS if day in quiet.days)
        hours = QuietHours(quiet.time_zone, quiet.start, quiet.end, days)
    return NotificationSettings(
        body.mine, body.teams, body.unassigned, body.mentions, body.preview, body.sound, hours
    )
