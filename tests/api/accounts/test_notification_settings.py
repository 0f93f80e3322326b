"""Notification settings: defaults, changes that name every problem, owners, and erasure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.support.api.browsers import browser, enter, staff
from tests.support.api.service import Service
from tests.support.api.staff import PASSWORD, client, sign_in
from tests.support.stores import beside

PATH: Final = "/users/me/notifications"
DEFAULTS: Final[Mapping[str, Any]] = {
    "mine": True,
    "teams": True,
    "unassigned": False,
    "mentions": True,
    "preview": True,
    "sound": True,
    "quietHours": None,
}
NIGHT: Final = {"start": "20:00", "end": "08:00", "days": ["sun", "sat"], "timeZone": "Europe/Berlin"}


async def test_settings_are_the_defaults_until_the_user_changes_them(service: Service) -> None:
    assert (await service.dashboard.get(PATH)).json() == DEFAULTS
    changed = {**DEFAULTS, "unassigned": True, "quietHours": NIGHT}
    stored = await service.dashboard.put(PATH, json=changed)
    assert stored.status_code == 200, stored.text
    assert stored.json() == {**changed, "quietHours": {**NIGHT, "days": ["sat", "sun"]}}
    assert (await service.dashboard.get(PATH)).json() == stored.json()
    again = await service.dashboard.put(PATH, json=DEFAULTS)
    assert again.json() == DEFAULTS == (await service.dashboard.get(PATH)).json()


async def test_settings_belong_to_the_user_alone(service: Service) -> None:
    hired = await staff(service, "viewer")
    token = (await sign_in(service, hired["email"], PASSWORD)).json()["token"]
    async with client(service, token) as other:
        assert (await other.put(PATH, json={**DEFAULTS, "mine": False})).status_code == 200
        assert (await other.get(PATH)).json()["mine"] is False
    assert (await service.dashboard.get(PATH)).json()["mine"] is True
    assert (await service.http.get(PATH)).status_code == 401


@pytest.mark.parametrize(
    ("quiet", "pointers"),
    [
        ({"timeZone": "UTC", "start": "8:00", "end": "25:00"}, {"/quietHours/start", "/quietHours/end"}),
        ({"timeZone": "Mars/Olympus", "days": ["sunday"]}, {"/quietHours/timeZone", "/quietHours/days/0"}),
        ({"timeZone": "../../etc/passwd"}, {"/quietHours/timeZone"}),
        ({"timeZone": "Europe"}, {"/quietHours/timeZone"}),
        ({"timeZone": "x" * 1_000}, {"/quietHours/timeZone"}),
        ({"timeZone": "UTC", "start": "08:00"}, {"/quietHours"}),
        ({"timeZone": "UTC", "start": "08:00", "end": "08:00"}, {"/quietHours"}),
        ({"timeZone": "UTC", "days": ["sun"] * 8}, {"/quietHours/days"}),
        ({"start": "08:00", "end": "09:00"}, {"/quietHours/timeZone"}),
    ],
)
async def test_every_problem_of_quiet_hours_is_named(
    service: Service, quiet: Mapping[str, Any], pointers: set[str]
) -> None:
    refused = await service.dashboard.put(PATH, json={**DEFAULTS, "quietHours": quiet})
    assert refused.status_code == 422, refused.text
    assert {problem["pointer"] for problem in refused.json()["errors"]} == pointers
    assert (await service.dashboard.get(PATH)).json() == DEFAULTS


async def test_quiet_hours_without_a_time_are_none(service: Service) -> None:
    stored = await service.dashboard.put(PATH, json={**DEFAULTS, "quietHours": {"timeZone": "UTC"}})
    assert stored.json()["quietHours"] is None


async def test_settings_are_erased_with_the_user(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        await enter(page, hired["email"])
        assert (await page.put(PATH, json={**DEFAULTS, "quietHours": NIGHT})).status_code == 200
        assert (await page.delete("/users/me")).status_code == 200
    with beside(service.directory) as connection:
        assert connection.execute("SELECT count(*) FROM notification_settings").fetchone() == (0,)
