"""Limits of sessions that organisations set: the strictest applies, at once, to open sessions and streams (ADR 15)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from deskwire.engine.core.clock import milliseconds, wall_clock
from tests.api.accounts.test_own_sessions import HOUR_MS, SetClock, sessions
from tests.api.events.test_two_nodes import nodes
from tests.support.api.agent_stream import page as stream
from tests.support.api.audit_trail import trail
from tests.support.api.browsers import PAGE, browser, enter, staff
from tests.support.api.service import Service, running
from tests.support.api.staff import client, code, hire, organisation_of, person
from tests.support.sockets.admin_socket import operate
from tests.support.stores import beside

__all__ = ["nodes"]

MINUTE_MS = 60_000


async def limit(service: Service, **limits: Any) -> httpx.Response:
    """Set limits of the demo organisation."""
    path = f"/organisations/{await organisation_of(service)}"
    return await service.dashboard.patch(path, json=limits)


async def ends_in(page: httpx.AsyncClient) -> int:
    """Return the minutes until the session of a browser ends."""
    session = (await page.get("/auth/session")).json()
    return round((milliseconds(session["expiresAt"]) - wall_clock()) / MINUTE_MS)


async def test_an_organisation_has_the_limits_of_the_installation_until_it_sets_some(
    service: Service,
) -> None:
    path = f"/organisations/{await organisation_of(service)}"
    before = (await service.dashboard.get(path)).json()
    assert (before["sessionIdleS"], before["sessionMaxS"]) == (None, None)
    changed = await limit(service, sessionIdleS=1800, sessionMaxS=7200)
    assert changed.status_code == 200, changed.text
    after = (await service.dashboard.get(path)).json()
    assert (after, after["sessionIdleS"], after["sessionMaxS"]) == (changed.json(), 1800, 7200)
    assert after["name"] == before["name"]
    (listed,) = (await service.dashboard.get("/organisations")).json()["items"]
    assert listed == after
    (record,) = await trail(service, action="organisation.changed")
    assert record["changes"] == {
        "sessionIdleS": {"before": None, "after": 1800},
        "sessionMaxS": {"before": None, "after": 7200},
    }
    removed = (await limit(service, sessionIdleS=None)).json()
    assert (removed["sessionIdleS"], removed["sessionMaxS"]) == (None, 7200)
    assert (await limit(service)).status_code == 422, "a change has a field"


async def test_a_limit_is_neither_too_short_nor_longer_than_the_installations(tmp_path: Path) -> None:
    async with running(tmp_path, session_idle_s=3600.0, session_max_s=86_400.0) as service:
        refused = await limit(service, sessionIdleS=3601, sessionMaxS=86_401)
        assert refused.status_code == 422
        assert [(each["pointer"], each["code"]) for each in refused.json()["errors"]] == [
            ("/sessionIdleS", "too_long"),
            ("/sessionMaxS", "too_long"),
        ]
        for limits in ({"sessionIdleS": 299}, {"sessionMaxS": 899}, {"sessionIdleS": 600.5}, {"name": None}):
            assert (await limit(service, **limits)).status_code == 422, limits
        assert (await limit(service, sessionIdleS=3600, sessionMaxS=86_400)).status_code == 200


@pytest.mark.parametrize("role", ["agent", "viewer"])
async def test_only_managers_of_members_set_limits(service: Service, role: str) -> None:
    async with person(service, role) as someone:
        path = f"/organisations/{await organisation_of(service)}"
        assert code(await someone.http.patch(path, json={"sessionIdleS": 600})) == (403, "permission_denied")


async def test_the_strictest_limit_of_all_organisations_of_a_user_applies(service: Service) -> None:
    other = await operate(service, "org.create", name="Other")
    owner = await operate(
        service, "user.create", email="boss@example.com", organisation="Other", role="owner"
    )
    token = (await operate(service, "token.create", user=owner["id"], ttlS=60))["token"]
    hired = await staff(service, "agent")
    async with client(service, token) as boss, browser(service) as page, browser(service) as elsewhere:
        await enter(page, hired["email"])
        await enter(elsewhere, "owner@demo.example", service.demo["user"]["password"])
        assert await ends_in(page) == 720
        await limit(service, sessionIdleS=3600)
        assert await ends_in(page) == 60
        await boss.patch(f"/organisations/{other['id']}", json={"sessionIdleS": 600})
        assert await ends_in(page) == 60, "the other organisation is not the user's yet"
        await operate(
            service, "user.add", user=hired["id"], organisation="Other", role="agent", password="keep"
        )
        assert await ends_in(page) == 10
        await boss.delete(f"/organisations/{other['id']}/members/{hired['id']}")
        assert (await ends_in(page), await ends_in(elsewhere)) == (60, 60)
        await limit(service, sessionIdleS=None)
        assert await ends_in(page) == 720


async def test_a_new_session_says_the_limits_end_at_once(service: Service) -> None:
    await limit(service, sessionIdleS=600)
    async with browser(service) as page:
        entered = (await enter(page, "owner@demo.example", service.demo["user"]["password"])).json()
        minutes = (milliseconds(entered["expiresAt"]) - wall_clock()) / MINUTE_MS
        assert 9 < minutes <= 10


@pytest.mark.parametrize("limits", [{"sessionIdleS": 1800}, {"sessionMaxS": 1800}])
async def test_shorter_limits_end_sessions_that_have_passed_them_with_their_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as service:
        old, new, outsider = (
            await staff(service, "agent", "old@example.com"),
            await staff(service, "agent", "new@example.com"),
            await operate(service, "user.create", email="out@example.com"),
        )
        assert outsider["id"]
        async with browser(service) as one, browser(service) as two:
            await enter(one, old["email"])
            one.headers["project"] = two.headers["project"] = service.demo["projectId"]
            async with stream(one, {"Cookie": cookie_of(one)}) as watching:
                clock.ahead_ms = HOUR_MS
                await enter(two, new["email"])
                async with stream(two, {"Cookie": cookie_of(two)}):
                    assert (await limit(service, **limits)).status_code == 200
                    assert await watching.bye() == "session_ended"
                    assert code(await one.get("/users/me")) == (401, "session_ended")
                    assert await ends_in(two) - 60 == 30, "the clock is an hour ahead"
                    (record,) = await trail(service, action="account.sessions_ended")
                    assert (record["object"]["id"], record["details"]) == (old["id"], {"sessions": 1})
                clock.ahead_ms = 0
                assert code(await one.get("/users/me")) == (401, "session_ended"), "no clock brings it back"
                await limit(service, sessionIdleS=None, sessionMaxS=None)
                assert code(await one.get("/users/me")) == (401, "session_ended")


def cookie_of(page: httpx.AsyncClient) -> str:
    return "; ".join(f"{name}={value}" for name, value in page.cookies.items())


async def test_a_session_beyond_its_organisations_limit_is_over_not_listed_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as service, browser(service) as page:
        await limit(service, sessionIdleS=1800)
        hired = await staff(service, "agent")
        await enter(page, hired["email"])
        path = f"/organisations/{await organisation_of(service)}/members/{hired['id']}/sessions"
        assert len((await service.dashboard.get(path)).json()["items"]) == 1
        clock.ahead_ms = 29 * MINUTE_MS
        assert (await page.get("/users/me")).status_code == 200
        clock.ahead_ms += 30 * MINUTE_MS
        assert code(await page.get("/users/me")) == (401, "session_ended")
        assert (await service.dashboard.get(path)).json()["items"] == []


async def test_a_clock_that_is_set_back_prolongs_no_session_beyond_its_idle_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as service, browser(service) as page:
        clock.ahead_ms = 10 * HOUR_MS
        await enter(page, "owner@demo.example", service.demo["user"]["password"])
        clock.ahead_ms = 0
        assert (await page.get("/users/me")).status_code == 200
        assert await ends_in(page) == 720
        with beside(tmp_path) as connection:
            (seen,) = connection.execute("SELECT last_seen_at FROM sessions").fetchone()
        assert abs(seen - wall_clock()) < HOUR_MS


async def test_limits_at_one_node_hold_at_the_other_with_its_streams(
    nodes: tuple[Service, Service], postgres_url: str
) -> None:
    here, there = nodes
    hired, other = await staff(here, "agent", "old@example.com"), await staff(here, "agent", "b@example.com")
    async with browser(here) as page, browser(here) as fresh:
        await enter(page, hired["email"])
        await enter(fresh, other["email"])
        secrets = [{**PAGE, "Cookie": cookie_of(each)} for each in (page, fresh)]
        async with browser(there, secrets[0]) as old, browser(there, secrets[1]) as new:
            assert [(await each.get("/users/me")).status_code for each in (old, new)] == [200, 200]
            assert await ends_in(new) == 720
            old.headers["project"] = here.demo["projectId"]
            async with stream(old, {"Cookie": cookie_of(page)}) as watching:
                with psycopg.connect(postgres_url) as connection:
                    connection.execute(
                        'UPDATE sessions SET last_seen_at = last_seen_at - %s WHERE "user" = '
                        "(SELECT rowid FROM users WHERE id = %s)",
                        (HOUR_MS, hired["id"]),
                    )
                assert (await limit(here, sessionIdleS=1800)).status_code == 200
                assert code(await old.get("/users/me")) == (401, "session_ended")
                assert await ends_in(new) == 30
                assert await watching.bye() == "session_ended"


async def test_managers_list_and_end_members_sessions_one_by_one(service: Service) -> None:
    hired = await staff(service, "agent")
    path = f"/organisations/{await organisation_of(service)}/members/{hired['id']}/sessions"
    async with browser(service) as one, browser(service) as two:
        for page in (one, two):
            await enter(page, hired["email"])
        own = await sessions(one)
        listed = (await service.dashboard.get(path, params={"limit": 1})).json()
        rest = (await service.dashboard.get(path, params={"cursor": listed["nextCursor"]})).json()
        found = [*listed["items"], *rest["items"]]
        assert [each["id"] for each in found] == [each["id"] for each in own]
        assert [(each["signedInBy"], each["secondFactor"], each["provider"]) for each in found] == [
            ("password", False, None)
        ] * 2
        assert not any(each["current"] for each in found)
        answer = await service.dashboard.delete(f"{path}/{found[0]['id']}")
        assert answer.json() == {"id": found[0]["id"], "deleted": True}
        assert code(await two.get("/users/me")) == (401, "session_ended")
        assert (await one.get("/users/me")).status_code == 200
        again = await service.dashboard.delete(f"{path}/{found[0]['id']}")
        assert code(again) == (404, "browser_session_not_found")


async def test_a_session_of_somebody_else_is_not_ended_by_another_members_path(service: Service) -> None:
    victim, other = (
        await staff(service, "agent", "v@example.com"),
        await hire(service, "agent", "o@example.com"),
    )
    members = f"/organisations/{await organisation_of(service)}/members"
    async with browser(service) as page:
        await enter(page, victim["email"])
        (session,) = await sessions(page)
        wrong = await service.dashboard.delete(f"{members}/{other['id']}/sessions/{session['id']}")
        assert code(wrong) == (404, "browser_session_not_found")
        assert (await page.get("/users/me")).status_code == 200


@pytest.mark.parametrize(
    ("role", "target", "refused"),
    [
        ("admin", "owner", "owner_protected"),
        ("agent", "agent", "permission_denied"),
        ("admin", "admin", None),
    ],
)
async def test_one_session_of_a_member_ends_under_the_rules_of_all(
    service: Service, role: str, target: str, refused: str | None
) -> None:
    hired = await staff(service, target, "target@example.com")
    path = f"/organisations/{await organisation_of(service)}/members/{hired['id']}/sessions"
    async with browser(service) as page, person(service, role) as someone:
        await enter(page, hired["email"])
        (session,) = await sessions(page)
        answer = await someone.http.delete(f"{path}/{session['id']}")
        still = (await page.get("/users/me")).status_code
        listed: Any = await someone.http.get(path)
    if refused is None:
        assert (answer.status_code, still, listed.json()["items"]) == (200, 401, [])
        (record,) = await trail(service, action="account.sessions_ended")
        assert (record["actor"]["id"], record["object"]["id"]) == (someone.id, hired["id"])
    else:
        assert (code(answer), still) == ((403, refused), 200)
        assert listed.status_code == (403 if refused == "permission_denied" else 200)
