"""Subscriptions of browsers: their checks, owners and ends, and the secrecy of the endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from deskwire.engine.push.encryption import from_base64url
from tests.support.api.browsers import browser, enter
from tests.support.api.pushing import PUSHES, SUBSCRIPTION, signed_in
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, code
from tests.support.sockets.push_service import PushBrowser
from tests.support.stores import beside

URL: Final = "https://127.0.0.1:8443/push/abc"


def keys(**changed: str) -> Mapping[str, Any]:
    """Return the keys of a browser."""
    return {**PushBrowser(URL).subscription["keys"], **changed}


async def test_browser_subscribes_and_ends_it(service: Service) -> None:
    async with signed_in(service) as (_, http):
        before = (await http.get(SUBSCRIPTION)).json()
        assert before["subscription"] is None
        assert len(from_base64url(before["publicKey"])) == 65
        answer = await http.put(SUBSCRIPTION, json=PushBrowser(URL).subscription)
        assert answer.status_code == 200, answer.text
        assert answer.json()["publicKey"] == before["publicKey"]
        assert (await http.get(SUBSCRIPTION)).json() == answer.json()
        again = (await http.put(SUBSCRIPTION, json=PushBrowser(f"{URL}/new").subscription)).json()
        assert again["subscription"] == answer.json()["subscription"], "events since then are still pushed"
        assert (await http.delete(SUBSCRIPTION)).json() == before
        assert (await http.delete(SUBSCRIPTION)).json() == before
        assert (await http.get(PUSHES)).json() == {"items": [], "nextCursor": None}


async def test_key_is_the_same_after_a_restart(tmp_path: Path) -> None:
    found = []
    for email in ("agent", "admin"):
        async with running(tmp_path) as service, signed_in(service, email) as (_, http):
            found.append((await http.get(SUBSCRIPTION)).json()["publicKey"])
    assert found[0] == found[1]


async def test_subscription_needs_a_session(service: Service) -> None:
    answer = await service.dashboard.put(SUBSCRIPTION, json=PushBrowser(URL).subscription)
    assert code(answer) == (403, "session_required")
    assert code(await service.dashboard.get(SUBSCRIPTION)) == (403, "session_required")
    assert (await service.dashboard.get(PUSHES)).status_code == 200
    assert (await service.http.get(PUSHES)).status_code == 401


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, {"/endpoint", "/keys"}),
        ({"endpoint": URL, "keys": {}}, {"/keys/p256dh", "/keys/auth"}),
        ({"endpoint": URL, "keys": keys(p256dh="AAAA", auth="AAAA")}, {"/keys/p256dh", "/keys/auth"}),
        ({"endpoint": URL, "keys": keys(p256dh="B" + "A" * 86)}, {"/keys/p256dh"}),
        ({"endpoint": URL, "keys": keys(auth="BTBZMqHH6r4Tts7J/aSIgg")}, {"/keys/auth"}),
        ({"endpoint": URL, "keys": keys(auth="x" * 10_000)}, {"/keys/auth"}),
        ({"endpoint": "ftp://127.0.0.1/x", "keys": keys()}, {"/endpoint"}),
        ({"endpoint": "https://user:pw@127.0.0.1/#x", "keys": keys()}, {"/endpoint"}),
        ({"endpoint": f"{URL}{'x' * 3_000}", "keys": keys()}, {"/endpoint"}),
        ({"endpoint": f"{URL}\r\nX: y", "keys": keys()}, {"/endpoint"}),
        ({"endpoint": URL, "keys": keys(), "userId": "usr_x"}, {"/userId"}),
    ],
)
async def test_refusal_names_every_problem(
    service: Service, body: Mapping[str, Any], pointers: set[str]
) -> None:
    async with signed_in(service) as (_, http):
        answer = await http.put(SUBSCRIPTION, json=body)
        assert answer.status_code == 422, answer.text
        assert {each["pointer"] for each in answer.json()["errors"]} == pointers


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/push", "https://[::1]/push", "https://10.0.0.1/p", "https://169.254.169.254/"]
)
async def test_private_addresses_are_refused(tmp_path: Path, url: str) -> None:
    async with running(tmp_path, allow_private_webhooks=False) as service, signed_in(service) as (_, http):
        answer = await http.put(SUBSCRIPTION, json=PushBrowser(url).subscription)
        (problem,) = answer.json()["errors"]
        assert (answer.status_code, problem["pointer"]) == (422, "/endpoint")
        assert problem["code"] == "url_address_refused"


async def test_sessions_of_a_user_have_subscriptions_of_their_own(service: Service) -> None:
    async with signed_in(service) as (_, first), browser(service) as second:
        assert (await enter(second, "agent@example.com", PASSWORD)).status_code == 200
        for number, http in enumerate((first, second)):
            await http.put(SUBSCRIPTION, json=PushBrowser(f"{URL}{number}").subscription)
        assert (await second.delete("/auth/session")).status_code in (200, 204)
        assert (await first.get(SUBSCRIPTION)).json()["subscription"] is not None
        with beside(service.directory) as connection:
            assert connection.execute("SELECT count(*) FROM push_subscriptions").fetchone() == (1,)


async def test_stored_subscription_shows_neither_endpoint_nor_keys(service: Service) -> None:
    async with signed_in(service) as (_, http):
        its = PushBrowser(URL)
        await http.put(SUBSCRIPTION, json=its.subscription)
        with beside(service.directory) as connection:
            rows = connection.execute("SELECT * FROM push_subscriptions").fetchall()
            (key,) = connection.execute("SELECT sealed FROM push_keys").fetchone()
        stored = repr(rows).encode()
        assert URL.encode() not in stored
        assert its.auth.hex().encode() not in stored
        assert len(bytes(key)) > 32


async def test_deleted_user_leaves_no_subscription(service: Service) -> None:
    async with signed_in(service) as (_, http):
        await http.put(SUBSCRIPTION, json=PushBrowser(URL).subscription)
        answer = await http.request("DELETE", "/users/me")
        assert answer.status_code == 200, answer.text
        with beside(service.directory) as connection:
            assert connection.execute("SELECT count(*) FROM push_subscriptions").fetchone() == (0,)
