"""Sessions of browsers over TLS, and the cases in which a cookie is ignored (ADR 15)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from trio_websocket import open_websocket_url

from tests.support.api.browsers import NAME, browser, enter, staff
from tests.support.api.openapi_check import caller
from tests.support.api.service import Service, running
from tests.support.api.staff import code
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.log_leaks import plant
from tests.support.sockets.certificates import Files

SECURE = f"__Host-{NAME}"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
async def secure(tmp_path: Path, files: Files) -> AsyncIterator[Service]:
    """A service that speaks TLS."""
    async with running(tmp_path / "data", files.trust, **files.settings) as started:
        yield started


@pytest.mark.parametrize("way", [{}, {"TE": "trailers"}], ids=["lane", "quart"])
async def test_by_tls_the_cookie_is_secure_and_bound_to_its_host(
    secure: Service, files: Files, way: dict[str, str]
) -> None:
    own = {"Origin": secure.url, **way}
    async with caller(f"{secure.url}/v3", own, verify=files.trust) as page:
        entered = await enter(page, "owner@demo.example", secure.demo["user"]["password"])
        cookie, browsers = entered.headers.get_list("Set-Cookie")
        assert browsers.startswith(f"{SECURE}-device=")
        found = re.fullmatch(
            rf"{SECURE}=([\w-]{{43}}); Max-Age=\d+; Path=/; HttpOnly; SameSite=Strict; Secure", cookie
        )
        assert found is not None
        assert (await page.patch("/users/me", json={"name": "Ada"})).status_code == 200
        page.cookies.clear()
        plain = {"Cookie": f"{NAME}={plant(found[1])}"}
        assert code(await page.get("/users/me", headers=plain)) == (401, "missing_credential")
        both = {"Cookie": f"{NAME}={'x' * 43}; {SECURE}={found[1]}"}
        assert (await page.get("/users/me", headers=both)).status_code == 200
        for origin in (secure.url.replace("https", "http"), f"{secure.url}0", "https://127.0.0.1"):
            foreign = {**both, "Origin": origin}
            refused = await page.patch("/users/me", json={"name": "Eve"}, headers=foreign)
            assert code(refused) == (403, "cross_site_request")
        out = await page.delete("/auth/session", headers=both)
        expected = f"{SECURE}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict; Secure"
        assert out.headers["Set-Cookie"] == expected


async def test_secure_cookie_is_ignored_without_tls(service: Service) -> None:
    async with browser(service) as page:
        secret = (await enter(page, (await staff(service, "agent"))["email"])).cookies[NAME]
    async with browser(service, {"Cookie": f"{SECURE}={secret}"}) as page:
        assert code(await page.get("/users/me")) == (401, "missing_credential")


async def test_cookie_gives_no_access_to_backend_routes(service: Service) -> None:
    async with browser(service) as page:
        await enter(page, "owner@demo.example", service.demo["user"]["password"])
        for path in ("/s2s/project", "/s2s/conversations/x", "/s2s/webhooks"):
            assert code(await page.get(path)) == (401, "missing_credential")
        uploads = await page.get("/uploads/x", headers={"project": service.demo["projectId"]})
        assert code(uploads) == (404, "upload_not_found"), "as it takes users, too"


async def test_websocket_ignores_cookies(service: Service) -> None:
    async with browser(service) as page:
        secret = (await enter(page, "owner@demo.example", service.demo["user"]["password"])).cookies[NAME]
    channel = f"private-project-{service.demo['projectId']}"
    url = f"{service.url.replace('http', 'ws')}/app/{service.demo['streamKey']}?protocol=7"
    cookie = [(b"Cookie", f"{NAME}={secret}".encode())]
    with trio.fail_after(HANG_TIMEOUT_S):
        async with open_websocket_url(url, extra_headers=cookie) as socket:
            assert "pusher:connection_established" in await socket.get_message()
            await socket.send_message(
                f'{{"event": "pusher:subscribe", "data": {{"channel": "{channel}", "auth": ""}}}}'
            )
            said = await socket.get_message()
    assert "pusher_internal:subscription_succeeded" not in said
    assert "error" in said


async def test_no_page_of_another_origin_may_send_a_cookie(tmp_path: Path) -> None:
    other = "https://tool.example"
    async with running(tmp_path, cors_origins=(other,)) as service, browser(service) as page:
        await enter(page, "owner@demo.example", service.demo["user"]["password"])
        headers = {"Origin": other, "Sec-Fetch-Site": "cross-site"}
        answer = await page.get("/users/me", headers=headers)
        assert answer.headers["Access-Control-Allow-Origin"] == other
        assert "Access-Control-Allow-Credentials" not in answer.headers
        asked = {**headers, "Access-Control-Request-Method": "POST"}
        for path in ("/auth/session", "/auth/methods"):
            refused = await page.options(path, headers=asked)
            assert "Access-Control-Allow-Origin" not in refused.headers
        assert code(await page.patch("/users/me", json={"name": "Eve"}, headers=headers)) == (
            403,
            "cross_site_request",
        )
