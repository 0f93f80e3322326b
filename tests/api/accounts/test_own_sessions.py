"""Sessions of browsers: the list, the end from another session, and expiry (ADR 15)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from deskwire.engine.accounts.sessions import SESSIONS_MAX
from deskwire.engine.core.clock import wall_clock
from deskwire.program import parts
from tests.support.api.audit_trail import trail
from tests.support.api.browsers import NAME, PAGE, browser, enter, staff
from tests.support.api.service import Service, running
from tests.support.api.staff import client, code, organisation_of, person
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.admin_socket import operate
from tests.support.stores import beside, chosen

HOUR_MS = 3_600_000


class SetClock:
    """A clock that a test sets forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead_ms = 0
        monkeypatch.setattr(parts, "wall_clock", self)

    def __call__(self) -> int:
        return wall_clock() + self.ahead_ms


async def sessions(http: httpx.AsyncClient, **params: Any) -> list[dict[str, Any]]:
    """The sessions of the user that a client stands for."""
    answer = await http.get("/users/me/sessions", params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_sign_in_methods_are_public(tmp_path: Path) -> None:
    async with running(tmp_path) as service, browser(service) as page:
        assert (await page.get("/auth/methods")).json() == {
            "password": True,
            "passkey": False,
            "oidc": [],
            "forgottenPassword": "administrator",
            "setUp": False,
        }
    keys = "https://identity.example/keys"
    async with running(tmp_path, own_tokens=False, jwt_jwks_url=keys) as service, browser(service) as page:
        assert (await page.get("/auth/methods")).json() == {
            "password": False,
            "passkey": False,
            "oidc": [],
            "forgottenPassword": None,
            "setUp": False,
        }


async def test_the_sessions_of_a_user_are_listed_newest_first_with_their_browsers(service: Service) -> None:
    hired = await staff(service, "agent")
    async with (
        browser(service, {**PAGE, "User-Agent": "Firefox\t on\x7f  a laptop " + "x" * 200}) as first,
        browser(service, {**PAGE, "User-Agent": ""}) as second,
        browser(service) as stranger,
    ):
        for page in (first, second):
            await enter(page, hired["email"])
        await enter(stranger, (await staff(service, "viewer"))["email"])
        found = await sessions(second)
        assert [each["current"] for each in found] == [True, False]
        assert [each["client"] for each in found] == ["", "Firefox on a laptop " + "x" * 100]
        known = {
            "id",
            "createdAt",
            "lastSeenAt",
            "client",
            "current",
            "signedInBy",
            "secondFactor",
            "provider",
        }
        assert all(each.keys() == known for each in found)
        assert [each["current"] for each in await sessions(first)] == [False, True]
        only = await second.get("/users/me/sessions", params={"limit": 1})
        rest = await sessions(second, limit=1, cursor=only.json()["nextCursor"])
        assert only.json()["items"] + rest == found
        assert code(await second.get("/users/me/sessions?cursor=x")) == (400, "bad_query")
        assert code(await second.get("/users/me/sessions?user=x")) == (400, "bad_query")


async def test_session_ended_from_another_session_is_refused_from_the_next_call_on(
    service: Service,
) -> None:
    hired = await staff(service, "viewer")
    async with browser(service) as lost, browser(service) as kept:
        await enter(lost, hired["email"])
        await enter(kept, hired["email"])
        assert (await lost.get("/users/me")).status_code == 200
        lost_id = (await sessions(lost))[1]["id"]
        ended = await kept.delete(f"/users/me/sessions/{lost_id}")
        assert ended.json() == {"id": lost_id, "deleted": True}
        assert code(await lost.get("/users/me")) == (401, "session_ended")
        again = await kept.delete(f"/users/me/sessions/{lost_id}")
        assert code(again) == (404, "browser_session_not_found")
        assert len(await sessions(kept)) == 1


async def test_signing_in_again_ends_the_session_that_the_browser_had(service: Service) -> None:
    hired, other = await staff(service, "agent"), await staff(service, "viewer")
    async with browser(service) as page:
        for email in (hired["email"], hired["email"], other["email"]):
            await enter(page, email)
            before = {"Cookie": f"{NAME}={page.cookies[NAME]}"}
            assert len(await sessions(page)) == 1
        await enter(page, other["email"])
        async with browser(service, before) as stale:
            assert code(await stale.get("/users/me")) == (401, "session_ended")
    ended = await trail(service, action="account.sessions_ended")
    assert sorted((each["object"]["id"], each["count"]) for each in ended) == sorted(
        [(hired["id"], 1), (hired["id"], 1), (other["id"], 1)]
    )


async def test_session_of_another_user_is_not_found(service: Service) -> None:
    async with browser(service) as page, person(service, "admin") as admin:
        await enter(page, (await staff(service, "agent"))["email"])
        (theirs,) = await sessions(page)
        for identifier in (theirs["id"], "ses_00000000000000000000000000", "x", "%27%20OR%201"):
            refused = await admin.http.delete(f"/users/me/sessions/{identifier}")
            assert code(refused) == (404, "browser_session_not_found")
        assert (await page.get("/users/me")).status_code == 200


async def test_all_other_sessions_or_all_can_be_ended_together(service: Service) -> None:
    hired = await staff(service, "agent")
    pages = [browser(service) for _ in range(3)]
    for page in pages:
        await enter(page, hired["email"])
    assert (await pages[0].delete("/users/me/sessions?others=true")).json() == {"ended": 2}
    assert [page.status_code for page in [await each.get("/users/me") for each in pages]] == [200, 401, 401]
    assert (await pages[0].delete("/users/me/sessions?others=true")).json() == {"ended": 0}
    assert code(await pages[0].delete("/users/me/sessions?others=maybe")) == (400, "bad_query")
    assert (await pages[0].delete("/users/me/sessions")).json() == {"ended": 1}
    assert code(await pages[0].get("/users/me")) == (401, "session_ended")
    (record,) = await trail(service, action="account.sessions_ended")
    assert (record["details"], record["count"], record["actor"]["id"]) == ({"sessions": 3}, 2, hired["id"])
    for page in pages:
        await page.aclose()


async def test_token_can_end_all_sessions(service: Service) -> None:
    async with person(service, "agent") as someone, browser(service) as page:
        await enter(page, someone.email)
        assert [each["current"] for each in await sessions(someone.http)] == [False]
        assert (await someone.http.delete("/users/me/sessions?others=true")).json() == {"ended": 1}
        assert (await someone.http.get("/users/me")).status_code == 200


@pytest.mark.parametrize(
    ("role", "target", "refused"),
    [
        ("viewer", "agent", "permission_denied"),
        ("agent", "agent", "permission_denied"),
        ("admin", "agent", None),
        ("admin", "owner", "owner_protected"),
        ("owner", "owner", None),
    ],
)
async def test_manager_ends_members_sessions_and_only_owners_end_those_of_owners(
    service: Service, role: str, target: str, refused: str | None
) -> None:
    hired = await staff(service, target, "target@example.com")
    path = f"/organisations/{await organisation_of(service)}/members/{hired['id']}/sessions"
    async with browser(service) as page, person(service, role) as someone:
        await enter(page, hired["email"])
        answer = await someone.http.delete(path)
        still = (await page.get("/users/me")).status_code
    if refused is None:
        assert (answer.json(), still) == ({"ended": 1}, 401)
        (record,) = await trail(service, action="account.sessions_ended")
        assert (record["actor"]["id"], record["object"]["id"]) == (someone.id, hired["id"])
    else:
        assert (code(answer), still) == ((403, refused), 200)


async def test_members_of_another_organisation_can_not_end_sessions_here(service: Service) -> None:
    foreign = await operate(service, "org.create", name="Foreign")
    outsider = await operate(service, "user.create", email="out@example.com")
    await operate(service, "user.add", user=outsider["id"], organisation="Foreign", role="owner")
    token = (await operate(service, "token.create", user=outsider["id"], ttlS=60))["token"]
    hired = await staff(service, "agent")
    async with client(service, token) as http, browser(service) as page:
        await enter(page, hired["email"])
        ours = f"/organisations/{await organisation_of(service)}/members/{hired['id']}/sessions"
        assert code(await http.delete(ours)) == (404, "organisation_not_found")
        theirs = f"/organisations/{foreign['id']}/members/{hired['id']}/sessions"
        assert code(await http.delete(theirs)) == (404, "member_not_found")
        assert (await page.get("/users/me")).status_code == 200


async def test_a_session_slides_with_its_use_and_is_over_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path) as service, browser(service) as page:
        await enter(page, "owner@demo.example", service.demo["user"]["password"])
        first = (await page.get("/auth/session")).json()["expiresAt"]
        for _ in range(3):
            clock.ahead_ms += 11 * HOUR_MS
            assert (await page.get("/users/me")).status_code == 200
        assert (await page.get("/auth/session")).json()["expiresAt"] > first
        clock.ahead_ms += 12 * HOUR_MS
        assert code(await page.get("/users/me")) == (401, "session_ended")
        assert (await page.get("/auth/session")).json()["user"] is None
        await enter(page, "owner@demo.example", service.demo["user"]["password"])
        assert len(await sessions(page)) == 1, "the one that is over is not shown"


async def test_a_session_is_over_after_its_longest_time_however_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(monkeypatch)
    async with running(tmp_path, session_max_s=24 * 3600.0) as service, browser(service) as page:
        entered = await enter(page, "owner@demo.example", service.demo["user"]["password"])
        assert "; Max-Age=86400;" in entered.headers["Set-Cookie"]
        for status in (200, 200, 401):
            clock.ahead_ms += 8 * HOUR_MS
            assert (await page.get("/users/me")).status_code == status


async def test_the_last_use_is_noted_once_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SetClock(monkeypatch)

    def noted() -> int:
        with beside(tmp_path) as connection:
            return int(connection.execute("SELECT last_seen_at FROM sessions").fetchone()[0])

    async with running(tmp_path) as service, browser(service) as page:
        await enter(page, "owner@demo.example", service.demo["user"]["password"])
        began = noted()
        clock.ahead_ms = 30_000
        await page.get("/users/me")
        assert noted() == began
        clock.ahead_ms = 60_000
        await page.get("/users/me")
        assert noted() >= began + 60_000


async def test_expired_sessions_are_removed_automatically(tmp_path: Path) -> None:
    async with running(tmp_path) as service, browser(service) as page:
        await enter(page, "owner@demo.example", service.demo["user"]["password"])
        secret = page.cookies[NAME]
    with beside(tmp_path) as connection:
        connection.execute("UPDATE sessions SET last_seen_at = last_seen_at - ?", (12 * HOUR_MS,))
    async with running(tmp_path) as service, browser(service, {"Cookie": f"{NAME}={secret}"}) as page:
        assert code(await page.get("/users/me")) == (401, "session_ended")
        with beside(tmp_path) as connection, trio.fail_after(HANG_TIMEOUT_S):
            while connection.execute("SELECT count(*) FROM sessions").fetchone() != (0,):  # noqa: ASYNC110
                await trio.sleep(0.01)  # poll: there is no notification


async def test_of_too_many_sessions_the_one_that_was_used_longest_ago_ends(service: Service) -> None:
    hired = await staff(service, "agent")
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
    blob = "bytea" if chosen() == "postgres" else "BLOB"
    async with browser(service) as oldest, browser(service) as page:
        await enter(oldest, hired["email"])
        with beside(service.directory) as connection:
            connection.execute(
                'INSERT INTO sessions (id, "user", hash, client, created_at, last_seen_at) '
                f"{rows} SELECT 'ses_' || i, s.\"user\", CAST('hash ' || i AS {blob}), '', s.created_at, s.last_seen_at + i FROM n, sessions s",
                (SESSIONS_MAX - 1,),
            )
        assert (await oldest.get("/users/me")).status_code == 200
        await enter(page, hired["email"])
        assert code(await oldest.get("/users/me")) == (401, "session_ended")
        assert (await page.get("/users/me")).status_code == 200
