"""One-time passwords, which end some time after they were made (ADR 15)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deskwire.engine.accounts.credentials import Passwords
from deskwire.engine.accounts.people import User
from deskwire.engine.core.values import replace
from tests.support.api.audit_trail import trail
from tests.support.api.browsers import PAGE, browser, enter
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, code, hire, organisation_of, sign_in
from tests.support.log_leaks import plant
from tests.support.sockets.admin_socket import operate
from tests.support.stores import beside

HOURS_72 = 72 * 3_600_000


def age(service: Service, user_id: str, ms: int) -> None:
    """Make a one-time password so much older."""
    with beside(service.directory) as connection:
        sql = f"UPDATE users SET password_made_at = password_made_at - {ms} WHERE id = '{user_id}'"
        connection.execute(sql)


async def test_a_one_time_password_is_good_for_72_hours(service: Service) -> None:
    hired = await hire(service, "agent")
    age(service, hired["id"], HOURS_72 - 60_000)
    assert code(await sign_in(service, hired["email"], hired["password"])) == (
        403,
        "password_change_required",
    )
    age(service, hired["id"], 60_000)
    for new in (None, PASSWORD):
        refused = await sign_in(service, hired["email"], hired["password"], new)
        assert code(refused) == (403, "one_time_password_ended")
        assert "72 hours" in refused.json()["detail"]
    async with browser(service, PAGE) as page:
        assert code(await enter(page, hired["email"], hired["password"])) == (403, "one_time_password_ended")
    wrong = await sign_in(service, hired["email"], plant("certainly another password"))
    assert code(wrong) == (401, "invalid_login"), "only who has the password learns that it has ended"
    reasons = {each["details"]["reason"] for each in await trail(service, action="sign_in.failed")}
    assert "one_time_password_ended" in reasons


async def test_new_one_time_password_has_its_own_lifetime(service: Service) -> None:
    hired = await hire(service, "agent")
    age(service, hired["id"], HOURS_72)
    path = f"/organisations/{await organisation_of(service)}/members/{hired['id']}/password"
    renewed = (await service.dashboard.post(path)).json()
    plant(renewed["password"])
    assert renewed["passwordEndsAt"] > hired["joinedAt"]
    answer = await sign_in(service, hired["email"], renewed["password"], PASSWORD)
    assert answer.status_code == 200


async def test_chosen_password_has_no_end(service: Service) -> None:
    hired = await hire(service, "agent")
    assert (await sign_in(service, hired["email"], hired["password"], PASSWORD)).status_code == 200
    age(service, hired["id"], 100 * HOURS_72)
    assert (await sign_in(service, hired["email"], PASSWORD)).status_code == 200


async def test_the_operators_one_time_passwords_end_too(tmp_path: Path) -> None:
    async with running(tmp_path, one_time_password_s=120) as service:
        made: dict[str, Any] = await operate(service, "user.create", email="eve@example.com", role="agent")
        plant(made["password"])
        assert made["passwordEndsAt"]
        age(service, made["id"], 120_000)
        refused = await sign_in(service, "eve@example.com", made["password"], PASSWORD)
        assert code(refused) == (403, "one_time_password_ended")
        assert "2 minutes" in refused.json()["detail"]
        again = await operate(service, "user.password", user="eve@example.com")
        answer = await sign_in(service, "eve@example.com", plant(again["password"]), PASSWORD)
        assert answer.status_code == 200
        chosen = await operate(
            service, "user.password", user="eve@example.com", password="a chosen long password"
        )
        assert "passwordEndsAt" not in chosen


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (259_200, "72 hours"),
        (3_600, "60 minutes"),
        (90, "90 seconds"),
        (7_200.0, "2 hours"),
        (86_400 * 365, "8,760 hours"),
    ],
)
def test_the_time_is_said_in_a_unit_that_fits(seconds: float, words: str) -> None:
    assert Passwords(1024, seconds).lifetime == words


def test_a_password_made_before_there_were_ends_has_none_until_the_upgrade() -> None:
    user = User(1, "usr_1", "a@example.com", "A", "hash", password_temporary=True)
    assert Passwords(1024).ends_at(user) is None
    assert Passwords(1024).ends_at(replace(user, password_made_at=5)) == 5 + HOURS_72
    assert Passwords(1024).ends_at(replace(user, password_temporary=False, password_made_at=5)) is None
