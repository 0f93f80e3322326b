"""Attacks on identities and sessions of customers: planted, stolen and raced tokens, and tokens of the wrong kind."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import httpx
import jwt
import pytest
import trio

from tests.api.customers.browsing import Visit, begin, first, get, say
from tests.support.api.customers import Browser, make_channel, signed
from tests.support.api.service import Service
from tests.support.log_leaks import plant


def claimed(channel: dict[str, Any], **claims: Any) -> str:
    """Return an identity with these claims as JSON, which a library for tokens might refuse to sign."""
    known = {"sub": "u1", "aud": channel["id"], "exp": int(time.time()) + 60, **claims}
    token = jwt.api_jws.encode(json.dumps(known).encode(), channel["identity"]["secret"], algorithm="HS256")
    plant(token)
    return token


async def statuses(browser: Browser, token: str | None, *paths: str) -> set[int]:
    """Return the statuses that GET of each path has with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    return {(await browser.http.get(path, headers=headers)).status_code for path in paths}


@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("value", [10**400, -(10**400), 1e300, True, "9" * 5_000, [1], {}])
async def test_no_time_in_an_identity_is_an_error_of_the_service(
    service: Service, name: str, value: object
) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser:
        answer = await browser.start(claimed(channel, **{name: value}))
    accepted = name == "iat" or (name == "nbf" and value == -(10**400))
    assert answer.status_code == (200 if accepted else 401), answer.text


async def test_planted_token_of_a_visitor_shows_nothing_of_the_customer(
    service: Service, visit: Visit
) -> None:
    """An attacker writes as a visitor, and leaves the token in the browser in which the customer signs in."""
    attacker = await visit()
    planted, known = attacker.token, attacker.channel
    await begin(
        attacker, "Planted", contact={"name": "Eve", "email": "eve@evil.example", "phone": "+1 212 555 0100"}
    )
    victim = await visit(known)
    victim.token = planted
    answer = await victim.start(signed(known, "victim"))
    own = answer.json()["contact"]
    assert {own["name"], own["email"], own["phone"]} == {
        None
    }  # else replies would go to the attacker's address
    secret = await begin(victim, "Secret")
    for each in ("/me", "/conversations", f"/conversations/{secret['id']}", "/events"):
        assert await statuses(attacker, planted, each) == {401}
    assert (await attacker.start()).json()["code"] == "session_ended"
    assert (await attacker.start(signed(known, "eve"), session=planted)).status_code == 200
    assert (await get(attacker, "/conversations"))["items"] == []


async def test_planted_token_of_a_visitor_without_a_message_shows_nothing_either(visit: Visit) -> None:
    attacker = await visit()
    planted, known = attacker.token, attacker.channel
    victim = await visit(known)
    victim.token = planted
    await victim.start(signed(known, "victim"))
    secret = await begin(victim, "Secret")
    written = await begin(attacker, "Mine")
    assert [each["id"] for each in (await get(attacker, "/conversations"))["items"]] == [written["id"]]
    assert await statuses(attacker, planted, f"/conversations/{secret['id']}") == {404}
    assert [each["id"] for each in (await get(victim, "/conversations"))["items"]] == [secret["id"]]


async def test_one_of_several_identities_gets_a_visitor(service: Service, visit: Visit) -> None:
    visitor = await visit()
    token, known = visitor.token, visitor.channel
    written = await begin(visitor)
    browsers = [await visit(known) for _ in range(4)]
    answers: list[httpx.Response] = []

    async def upgrade(browser: Browser, user_id: str) -> None:
        browser.token = token
        answers.append(await browser.start(signed(known, user_id)))

    async with trio.open_nursery() as nursery:
        for number, browser in enumerate(browsers):
            nursery.start_soon(upgrade, browser, f"u{number}")
    assert [each.status_code for each in answers] == [200] * 4
    listed = [(await get(each, "/conversations"))["items"] for each in browsers]
    assert sorted(len(each) for each in listed) == [0, 0, 0, 1]
    assert await statuses(visitor, token, "/me", f"/conversations/{written['id']}") == {401}


async def test_no_message_is_lost_while_its_visitor_signs_in(visit: Visit) -> None:
    visitor = await visit()
    written = await begin(visitor, "m0")
    stored: set[str] = {"m0"}

    async def send(text: str) -> None:
        answer = await say(sender, written["id"], text)
        assert answer.status_code in {200, 401, 404}, answer.text
        if answer.status_code == 200:
            stored.add(text)

    sender = await visit(visitor.channel)
    sender.token = visitor.token
    async with trio.open_nursery() as nursery:
        for number in range(1, 9):
            nursery.start_soon(send, f"m{number}")
        nursery.start_soon(visitor.start, signed(visitor.channel, "u1"))
    found = await get(visitor, f"/conversations/{written['id']}/messages")
    assert {each["text"] for each in found["items"]} == stored


async def test_no_call_brings_an_erased_visitor_back(service: Service, visit: Visit) -> None:
    visitor = await visit()
    await begin(visitor)
    user_id = (await get(visitor, "/me"))["userId"]
    found: list[int] = []

    async def again() -> None:
        found.append((await visitor.call("POST", "/conversations", json=first("Again"))).status_code)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(again)
        nursery.start_soon(service.http.delete, f"/s2s/contacts/{user_id}")
        nursery.start_soon(again)
    await again()
    assert set(found) <= {200, 401, 404, 409}
    assert found[-1] == 401
    assert (await service.http.get(f"/s2s/contacts/{user_id}")).status_code == 404


FOREIGN: Final = (
    "/s2s/conversations",
    "/s2s/project",
    "/s2s/events",
    "/conversations",
    "/contacts",
    "/channels",
)


async def test_customers_tokens_open_no_other_calls_and_other_tokens_no_customers(
    service: Service, visit: Visit
) -> None:
    visitor = await visit()
    await begin(visitor)
    customer = await visit(visitor.channel)
    await customer.start(signed(visitor.channel, "u1"))
    async with httpx.AsyncClient(base_url=f"{service.url}/v3") as anybody:
        for token in (visitor.token, customer.token):
            for path in FOREIGN:
                answer = await anybody.get(path, headers={"Authorization": f"Bearer {token}"})
                assert answer.status_code == 401, path
    key = str(service.http.headers["Authorization"]).removeprefix("Bearer ")
    secret = visitor.channel["identity"]["secret"]
    for wrong in (key, secret, signed(visitor.channel, "u1"), "ct_", "ct_" + "A" * 43, "cv_" + "A" * 86):
        assert await statuses(visitor, wrong, "/me", "/conversations", "/events") == {401}
