"""Pages that may call for customers: the channel's and our own, and CORS that lets every page read why it may not."""

from __future__ import annotations

import httpx
import pytest

from tests.support.api.customers import SITE, Browser, make_channel, signed
from tests.support.api.service import Service

FOREIGN = (
    "https://evil.example",
    "https://shop.example.evil.example",
    "https://evilshop.example",
    "https://www.shop.example",
    "http://shop.example",
    "https://shop.example:8443",
    "null",
    "https://shop.example, https://evil.example",
)


@pytest.mark.parametrize("origin", FOREIGN)
async def test_page_of_another_origin_is_refused_and_can_read_why(service: Service, origin: str) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as own, Browser(service, channel, origin) as other:
        await own.start(signed(channel, "u1"))
        for answer in (
            await other.start(),
            await other.start(signed(channel, "u1")),
            await other.http.get("/me", headers={"Authorization": f"Bearer {own.token}"}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "origin_not_allowed")
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            assert "Set-Cookie" not in answer.headers
        assert (await own.call("GET", "/me")).status_code == 200


async def test_pages_of_the_channel_and_of_this_service_may_call(service: Service) -> None:
    channel = await make_channel(service, origins=[SITE, "https://*.shop.example", "http://localhost"])
    for origin in (SITE, "https://www.shop.example", "http://localhost:5173", service.url):
        async with Browser(service, channel, origin) as browser:
            answer = await browser.start(signed(channel, "u1"))
            assert answer.status_code == 200, origin
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            me = await browser.call("GET", "/me")
            assert me.headers["Access-Control-Allow-Origin"] == "*"
            assert "Retry-After" in me.headers["Access-Control-Expose-Headers"]


async def test_call_without_origin_needs_our_own_page_or_a_native_channel(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel, None) as app:
        assert (await app.start(signed(channel, "u1"))).json()["code"] == "origin_not_allowed"
        app.http.headers["Sec-Fetch-Site"] = "same-site"
        assert (await app.start()).json()["code"] == "origin_not_allowed"
        app.http.headers["Sec-Fetch-Site"] = "same-origin"
        assert (await app.start()).status_code == 200
        del app.http.headers["Sec-Fetch-Site"]
        await service.http.patch(f"/channels/{channel['id']}", json={"native": True})
        app.token = None
        assert (await app.start()).json()["code"] == "origin_not_allowed"  # an app needs an identity
        assert (await app.start(signed(channel, "u1"))).status_code == 200
        assert (await app.call("GET", "/me")).status_code == 200
        assert (await app.start()).status_code == 200  # it continues its session


@pytest.mark.parametrize("path", ["/session", "/me", "/no-such-path", "/conversations/x/messages"])
async def test_preflight_allows_every_page(service: Service, path: str) -> None:
    asked = {
        "Origin": "https://anywhere.example",
        "Access-Control-Request-Method": "PATCH",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    async with httpx.AsyncClient() as client:
        answer = await client.options(f"{service.url}/v3/customer{path}", headers=asked)
        assert answer.status_code == 204
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        allowed = answer.headers["Access-Control-Allow-Headers"].lower()
        assert all(name in allowed for name in ("authorization", "content-type", "last-event-id"))
        assert "Access-Control-Allow-Credentials" not in answer.headers
        missing = await client.get(
            f"{service.url}/v3/customer/no-such-path", headers={"Origin": "https://x.example"}
        )
        assert (missing.status_code, missing.headers["Access-Control-Allow-Origin"]) == (404, "*")
        wrong = await client.put(f"{service.url}/v3/customer/me", headers={"Origin": "https://x.example"})
        assert (wrong.status_code, wrong.headers["Access-Control-Allow-Origin"]) == (405, "*")
        other = await client.options(f"{service.url}/v3/s2s/conversations", headers=asked)
        assert "Access-Control-Allow-Origin" not in other.headers


async def test_token_counts_in_its_header_only(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser:
        await browser.start(signed(channel, "u1"))
        in_query = await browser.http.get("/me", params={"token": browser.token or ""})
        in_cookie = await browser.http.get("/me", headers={"Cookie": f"token={browser.token}"})
        for answer in (in_query, in_cookie):
            assert answer.status_code == 401
            assert str(browser.token) not in answer.text


async def test_kinds_of_credentials_are_not_confused(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as customer, Browser(service, channel) as visitor:
        await customer.start(signed(channel, "u1"))
        await visitor.start()
        for token in (
            service.demo["serverKey"],
            service.demo["token"],
            channel["identity"]["secret"],
            "mk_x",
        ):
            answer = await customer.http.get("/me", headers={"Authorization": f"Bearer {token}"})
            assert (answer.status_code, answer.json()["code"]) == (401, "wrong_credential_kind")
            assert token not in answer.text
        for shown in (customer.token, visitor.token, channel["identity"]["secret"]):
            for path in ("/s2s/conversations", "/conversations", "/channels", "/projects"):
                answer = await service.http.get(path, headers={"Authorization": f"Bearer {shown}"})
                assert (answer.status_code, answer.json()["code"]) == (401, "wrong_credential_kind")
                assert str(shown) not in answer.text


async def test_session_of_another_channel_is_not_taken_over(service: Service) -> None:
    mine, other = await make_channel(service), await make_channel(service)
    async with Browser(service, mine) as browser:
        await browser.start(signed(mine, "u1"))
        token = browser.token
        browser.channel = other
        assert (await browser.start()).json()["code"] == "session_ended"
        assert (await browser.start(signed(mine, "u1"))).json()["code"] == "identity_invalid"
        assert (await browser.start(signed(other, "u2"))).status_code == 200
        browser.token = token  # that of the other channel is not ended by a call to this one
        assert (await browser.call("GET", "/me")).json()["session"]["channelId"] == mine["id"]
