"""Sign-ins with browsers that a user has not signed in with before, by a cookie that outlives the session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from deskwire.engine.accounts.known_browsers import BROWSERS_MAX, KNOWN_FOR_S
from tests.api.accounts.test_own_sessions import SetClock, sessions
from tests.support.api.audit_trail import Record, trail
from tests.support.api.browsers import NAME, PAGE, browser, enter, staff
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD
from tests.support.stores import beside

COOKIE = "deskwire-device"


async def unknown(service: Service) -> list[Record]:
    return await trail(service, action="sign_in.new_device")


def own_of(page: httpx.AsyncClient) -> Mapping[str, str]:
    """Return the headers of a browser that has kept the cookie and lost its session."""
    return {**PAGE, "Cookie": f"{COOKIE}={page.cookies[COOKIE]}"}


async def test_only_the_first_sign_in_with_a_browser_is_recorded(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        entered = await enter(page, hired["email"])
        cookies = entered.headers.get_list("Set-Cookie")
        (device,) = [each for each in cookies if each.startswith(COOKIE)]
        assert len(cookies) == 2
        assert device.partition(";")[2] == f" Max-Age={KNOWN_FOR_S}; Path=/; HttpOnly; SameSite=Strict"
        (record,) = await unknown(service)
        (session,) = await sessions(page)
        assert (record["actor"]["id"], record["object"]["id"]) == (hired["id"], hired["id"])
        assert record["details"] == {"session": session["id"]}
        secret = page.cookies[COOKIE]
        await page.delete("/auth/session")
        await enter(page, hired["email"])
        assert page.cookies[COOKIE] == secret
        assert len(await unknown(service)) == 1
    with beside(service.directory) as connection:
        (hashed,) = connection.execute("SELECT hash FROM known_browsers").fetchone()
        assert secret.encode() not in bytes(hashed)


async def test_another_browser_and_another_user_of_the_same_browser_are_recorded(service: Service) -> None:
    one, two = (
        await staff(service, "agent", "one@example.com"),
        await staff(service, "agent", "two@example.com"),
    )
    async with browser(service) as page, browser(service) as other:
        await enter(page, one["email"])
        await enter(other, one["email"])
        assert [each["object"]["id"] for each in await unknown(service)] == [one["id"]] * 2
        await enter(page, two["email"])
        assert [each["object"]["id"] for each in await unknown(service)] == [two["id"], one["id"], one["id"]]
        await enter(page, one["email"])
        assert len(await unknown(service)) == 3


async def test_the_cookie_proves_nothing_and_a_malformed_one_is_replaced(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        await enter(page, hired["email"])
        async with browser(service, own_of(page)) as thief:
            assert (await enter(thief, hired["email"], "not the right password")).status_code == 401
            assert (await thief.get("/users/me")).status_code == 401
        twice = f"{own_of(page)['Cookie']}; {COOKIE}={'x' * 43}"
        for given in (f"{COOKIE}=short", f"{COOKIE}=", twice, f"{COOKIE}={'é' * 43}".encode()):
            before = len(await unknown(service))
            async with browser(service, {**PAGE, "Cookie": given}) as odd:  # type: ignore[dict-item]
                entered = await enter(odd, hired["email"])
                assert entered.status_code == 200, given
                assert COOKIE in entered.cookies
            assert len(await unknown(service)) == before + 1


async def test_a_new_password_keeps_the_browser_known(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        await enter(page, hired["email"])
        body = {"password": PASSWORD, "newPassword": "another long password"}
        assert (await page.post("/users/me/password", json=body)).status_code == 200
        assert (await page.get("/users/me")).status_code == 200
        assert len(await unknown(service)) == 1


async def test_a_browser_is_forgotten_after_a_year_without_a_sign_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as service:
        async with browser(service) as page:
            await enter(page, "owner@demo.example", service.demo["user"]["password"])
            headers = own_of(page)
        clock.ahead_ms = KNOWN_FOR_S * 1000 + 1_000
        async with browser(service, headers) as page:
            await enter(page, "owner@demo.example", service.demo["user"]["password"])
    with beside(tmp_path) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM audit WHERE action = 'sign_in.new_device'"
        ).fetchone()
        assert count == 2


async def test_a_user_has_a_bounded_number_of_known_browsers(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        await enter(page, hired["email"])
        with beside(service.directory) as connection:
            (user,) = connection.execute('SELECT "user" FROM known_browsers').fetchone()
            for number in range(BROWSERS_MAX):
                connection.execute(
                    'INSERT INTO known_browsers ("user", hash, created_at, used_at) VALUES (?, ?, ?, ?)',
                    (user, number.to_bytes(32), number, number),
                )
        async with browser(service) as other:
            await enter(other, hired["email"])
        with beside(service.directory) as connection:
            times = connection.execute("SELECT used_at FROM known_browsers ORDER BY used_at").fetchall()
        assert (len(times), times[0][0]) == (BROWSERS_MAX, 2), "those of the longest ago are gone"


async def test_a_deleted_account_leaves_no_browser(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        await enter(page, hired["email"])
        assert NAME in page.cookies
        assert (await page.request("DELETE", "/users/me")).status_code == 200
    with beside(service.directory) as connection:
        assert connection.execute("SELECT count(*) FROM known_browsers").fetchone() == (0,)
