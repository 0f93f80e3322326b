"""Sessions of browsers: signing in with a cookie, its access, and its end (ADR 15)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from deskwire.engine.accounts.people import PERMISSIONS, BuiltInRole
from tests.support.api.audit_trail import trail
from tests.support.api.browsers import NAME, browser, enter, staff
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, client, code, hire, organisation_of
from tests.support.sockets.admin_socket import operate
from tests.support.sockets.server_process import free_port
from tests.support.stores import beside, stored


@asynccontextmanager
async def beneath(directory: Path, public_url: str) -> AsyncIterator[Service]:
    """A service behind a proxy with this URL, called without the proxy."""
    port = free_port()
    async with running(directory, public_url=public_url, port=port) as service:
        yield replace(service, url=f"http://127.0.0.1:{port}")


ROLES: tuple[BuiltInRole, ...] = ("viewer", "agent", "admin", "owner")


@pytest.mark.parametrize("role", ROLES)
async def test_cookie_has_the_users_projects_and_the_permissions_of_the_role(
    service: Service, role: BuiltInRole
) -> None:
    hired = await staff(service, role)
    async with browser(service) as page:
        entered = await enter(page, hired["email"])
        assert entered.status_code == 200
        (project,) = entered.json()["projects"]
        assert project == {
            "id": service.demo["projectId"],
            "name": "Demo project",
            "organisationId": await organisation_of(service),
            "organisationName": "Demo organisation",
            "role": role,
            "permissions": sorted(PERMISSIONS[role]),
        }
        assert entered.json()["user"]["email"] == hired["email"]
        assert (await page.get("/auth/session")).json() == entered.json()
        assert (await page.get("/users/me")).json() == entered.json()["user"]
        listed = await page.get("/conversations", headers={"project": project["id"]})
        assert listed.status_code == 200


async def test_request_without_a_cookie_gets_200_and_no_user(
    service: Service,
) -> None:
    nobody: dict[str, Any] = {
        "user": None,
        "expiresAt": None,
        "projects": [],
        "storageKeys": [],
        "typingSeconds": 9.0,
        "provedAt": None,
        "signedInBy": None,
        "proofMethods": [],
        "enrolmentRequired": [],
        "challenge": None,
    }
    async with browser(service) as page:
        for cookie in ("", "deskwire=", f"deskwire={'x' * 43}", "deskwire=é", "other=1; deskwire"):
            answer = await page.get("/auth/session", headers={b"Cookie": cookie.encode()})
            assert (answer.status_code, answer.json()) == (200, nobody), cookie


async def test_page_has_exactly_the_permissions_of_the_role(service: Service) -> None:
    conversation = await service.create()
    project = {"project": service.demo["projectId"]}
    path = f"/conversations/{conversation['id']}/messages"
    for role, status in (("viewer", 403), ("agent", 200)):
        hired = await staff(service, role)
        async with browser(service) as page:
            await enter(page, hired["email"])
            answer = await page.post(path, json={"text": "Hello"}, headers=project)
            assert answer.status_code == status


async def test_another_organisations_project_does_not_exist_for_a_session(service: Service) -> None:
    await operate(service, "org.create", name="Foreign")
    project = await operate(service, "project.create", organisation="Foreign", project={"name": "P"})
    hired = await staff(service, "owner")
    async with browser(service) as page:
        await enter(page, hired["email"])
        answer = await page.get("/conversations", headers={"project": project["id"]})
        assert code(answer) == (404, "project_not_found")
        assert code(await page.get("/conversations")) == (400, "missing_project")


async def test_the_cookie_is_hidden_from_scripts_and_other_sites(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        cookie, browsers = (await enter(page, hired["email"])).headers.get_list("Set-Cookie")
    assert browsers.startswith(f"{NAME}-device=")
    pattern = rf"{NAME}=[\w-]{{43}}; Max-Age=2592000; Path=/; HttpOnly; SameSite=Strict"
    assert re.fullmatch(pattern, cookie)


async def test_public_https_url_makes_the_cookie_secure_and_bound_to_its_host(tmp_path: Path) -> None:
    async with beneath(tmp_path, "https://desk.example") as service, browser(service) as page:
        entered = await enter(page, "owner@demo.example", service.demo["user"]["password"])
        cookie, browsers = entered.headers.get_list("Set-Cookie")
        assert re.fullmatch(
            r"__Host-deskwire-device=[\w-]{43}; Max-Age=31536000; Path=/; HttpOnly; SameSite=Strict; Secure",
            browsers,
        )
        secret = re.fullmatch(
            r"__Host-deskwire=([\w-]{43}); Max-Age=2592000; Path=/; HttpOnly; SameSite=Strict; Secure", cookie
        )
        assert secret is not None
        for name, found in (("__Host-deskwire", "owner@demo.example"), ("deskwire", None)):
            answer = await page.get("/auth/session", headers={"Cookie": f"{name}={secret[1]}"})
            user = answer.json()["user"]
            assert (user and user["email"]) == found


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, False),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, False),
        ({"Sec-Fetch-Site": "same-site"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": ""}, True),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "{own}"}, True),
        ({"Origin": "{own}"}, False),
        ({"Origin": "null"}, True),
        ({"Origin": ""}, True),
        ({"Origin": "https://{host}"}, True),
        ({"Origin": "http://127.0.0.1:1"}, True),
        ({"Origin": "http://evil.example"}, True),
        ({"Origin": "{own}.evil.example"}, True),
        ({"Origin": "{own}/"}, True),
        ({}, True),
    ],
)
async def test_a_cookie_changes_something_for_pages_of_this_origin_alone(
    service: Service, headers: dict[str, str], refused: bool
) -> None:
    host = service.url.removeprefix("http://")
    sent = {name: value.format(own=service.url, host=host) for name, value in headers.items()}
    conversation = await service.create()
    hired = await staff(service, "agent")
    async with browser(service) as page:
        await enter(page, hired["email"])
        cookies = dict(page.cookies)
    async with browser(service, sent) as page:
        page.cookies.update(cookies)
        project = {"project": service.demo["projectId"]}
        path = f"/conversations/{conversation['id']}/messages"
        posted = await page.post(path, json={"text": "Hello"}, headers=project)
        out = await page.delete("/auth/session")
        read = await page.get("/users/me")
    if refused:
        assert code(posted) == code(out) == (403, "cross_site_request")
        assert read.status_code == 200, "reading changes nothing"
    else:
        assert posted.status_code == out.status_code == 200
        assert code(read) == (401, "session_ended")


async def test_the_public_urls_origin_is_ours_too(tmp_path: Path) -> None:
    async with beneath(tmp_path, "https://Desk.Example:443") as service, browser(service) as page:
        entered = await enter(page, "owner@demo.example", service.demo["user"]["password"])
        secret = entered.headers["Set-Cookie"].partition(";")[0]
        for origin, status in (("https://desk.example", 200), ("http://desk.example", 403)):
            async with browser(service, {"Cookie": secret, "Origin": origin}) as other:
                assert (await other.patch("/users/me", json={"name": "Ada"})).status_code == status


async def test_page_of_another_origin_can_not_sign_a_user_in(service: Service) -> None:
    hired = await staff(service, "agent")
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}):
        async with browser(service, headers) as page:
            assert code(await enter(page, hired["email"])) == (403, "cross_site_request")
    async with browser(service, {}) as script:
        assert (await enter(script, hired["email"])).status_code == 200


async def test_a_token_counts_if_both_are_there(service: Service) -> None:
    hired = await staff(service, "agent")
    owner = {"Authorization": f"Bearer {service.demo['token']}"}
    async with browser(service) as page:
        await enter(page, hired["email"])
        assert (await page.get("/users/me", headers=owner)).json()["email"] == "owner@demo.example"
        assert code(await page.get("/users/me", headers={"Authorization": "Bearer x"})) == (
            401,
            "invalid_token",
        )
        page.headers["Sec-Fetch-Site"] = "cross-site"
        renamed = await page.patch("/users/me", json={"name": "Ada"}, headers=owner)
        assert renamed.json()["email"] == "owner@demo.example"


async def test_two_cookies_of_the_name_count_only_if_they_are_the_same(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        secret = (await enter(page, hired["email"])).cookies[NAME]
    async with browser(service) as page:
        twice = {"Cookie": f"{NAME}={secret}; {NAME}={secret}"}
        assert (await page.get("/users/me", headers=twice)).status_code == 200
        tossed = {"Cookie": f"{NAME}={'x' * 43}; {NAME}={secret}"}
        assert code(await page.get("/users/me", headers=tossed)) == (401, "bad_session_cookie")
        lines = [("Cookie", f"{NAME}={'x' * 43}"), ("Cookie", f"{NAME}={secret}")]
        request = httpx.Request("GET", f"{service.url}/v3/users/me", headers=lines)
        assert code(await page.send(request)) == (401, "bad_session_cookie")


@pytest.mark.parametrize(
    "cookie", ["deskwire=", "deskwire=x", f"deskwire={'!' * 43}", f'deskwire="{"x" * 43}"', "deskwire=a=b"]
)
async def test_a_malformed_cookie_is_refused_without_being_repeated(service: Service, cookie: str) -> None:
    async with browser(service) as page:
        refused = await page.get("/users/me", headers={"Cookie": cookie})
    assert code(refused) == (401, "bad_session_cookie")
    assert "!!" not in refused.text


async def test_signing_out_ends_the_session_and_takes_the_cookie_back(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        secret = (await enter(page, hired["email"])).cookies[NAME]
        out = await page.delete("/auth/session")
        assert out.json() == {"ended": True}
        assert out.headers["Set-Cookie"] == f"{NAME}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"
        assert NAME not in page.cookies
        kept = {"Cookie": f"{NAME}={secret}"}
        assert code(await page.get("/users/me", headers=kept)) == (401, "session_ended")
        assert (await page.get("/auth/session", headers=kept)).json()["user"] is None
        assert (await page.delete("/auth/session", headers=kept)).json() == {"ended": True}
    last, *_ = await trail(service, actor=hired["id"], action="account.sessions_ended")
    assert (last["object"]["id"], last["details"], last["count"]) == (hired["id"], {"sessions": 1}, 1)
    (entry,) = await trail(service, actor=hired["id"], action="sign_in.succeeded")
    assert entry["count"] == 2, "with the token's"


async def test_a_new_password_ends_all_sessions(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page, browser(service) as other:
        await enter(page, hired["email"])
        await enter(other, hired["email"])
        body = {"password": PASSWORD, "newPassword": "another long password"}
        before = page.cookies[NAME]
        changed = await page.post("/users/me/password", json=body)
        assert changed.status_code == 200
        kept = {"Cookie": f"{NAME}={before}"}
        assert code(await other.get("/users/me", headers=kept)) == (401, "session_ended")
        assert code(await other.get("/users/me")) == (401, "session_ended")
        assert (await page.get("/users/me")).status_code == 200, "by its new cookie"
        async with client(service, changed.json()["token"]) as token:
            again = {**body, "password": "another long password", "newPassword": "a third long password"}
            assert "Set-Cookie" not in (await token.post("/users/me/password", json=again)).headers


async def test_a_deleted_user_has_no_session(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        await enter(page, hired["email"])
        assert (await page.delete("/users/me")).status_code == 200
        assert code(await page.get("/users/me")) == (401, "session_ended")


async def test_former_member_keeps_the_session_and_sees_no_project(service: Service) -> None:
    hired = await staff(service, "agent")
    project = {"project": service.demo["projectId"]}
    async with browser(service) as page:
        await enter(page, hired["email"])
        organisation = await organisation_of(service)
        await service.dashboard.delete(f"/organisations/{organisation}/members/{hired['id']}")
        assert code(await page.get("/conversations", headers=project)) == (404, "project_not_found")
        assert (await page.get("/auth/session")).json()["projects"] == []


async def test_a_one_time_password_is_replaced_while_signing_in(service: Service) -> None:
    hired = await hire(service, "agent")
    async with browser(service) as page:
        once = await enter(page, hired["email"], hired["password"])
        assert code(once) == (403, "password_change_required")
        assert "Set-Cookie" not in once.headers
        guessable = await enter(page, hired["email"], hired["password"], newPassword="aaaaaaaaaaaa")
        assert code(guessable) == (422, "invalid_input")
        entered = await enter(page, hired["email"], hired["password"], newPassword=PASSWORD)
        assert entered.status_code == 200
        assert (await page.get("/users/me")).status_code == 200


async def test_wrong_passwords_are_counted_together_with_those_for_tokens(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page, client(service, "x") as token:
        for each in range(10):
            body = {"email": hired["email"], "password": f"wrong {each}"}
            call = page if each % 2 else token
            path = "/auth/session" if each % 2 else "/auth/token"
            assert code(await call.post(path, json=body)) == (401, "invalid_login")
        refused = await enter(page, hired["email"])
    assert code(refused) == (429, "too_many_sign_ins")
    assert int(refused.headers["Retry-After"]) > 0


async def test_the_database_has_no_secret_of_a_session(service: Service) -> None:
    hired = await staff(service, "agent")
    async with browser(service) as page:
        secret = (await enter(page, hired["email"])).cookies[NAME]
    with beside(service.directory) as connection:
        (row,) = connection.execute("SELECT * FROM sessions").fetchall()
    assert secret not in map(str, row)
    assert secret.encode() not in stored(service.directory)


async def test_session_ends_when_an_identity_provider_replaces_passwords(tmp_path: Path) -> None:
    async with running(tmp_path) as service, browser(service) as page:
        secret = (await enter(page, "owner@demo.example", service.demo["user"]["password"])).cookies[NAME]
    keys = "https://identity.example/keys"
    async with running(tmp_path, own_tokens=False, jwt_jwks_url=keys) as service, browser(service) as page:
        refused = await enter(page, "owner@demo.example", service.demo["user"]["password"])
        assert code(refused) == (403, "sign_in_disabled")
        page.cookies[NAME] = secret
        assert code(await page.get("/users/me")) == (401, "session_ended")
