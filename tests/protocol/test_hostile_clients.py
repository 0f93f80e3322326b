"""One hostile machine without a credential stops neither the service nor its neighbours, over real sockets.

The service is behind a trusted proxy, so a client's address is the one in `X-Forwarded-For`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Final

import httpx
import pytest
import trio

from deskwire.engine.accounts.identity.throttle import PER_ACCOUNT, PER_NETWORK, PER_PAIR, SignInThrottle
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, code, hire

HOSTILE, OFFICE, HOME = "203.0.113.66", "198.51.100.10", "192.0.2.5"
MANY: Final = 40


@pytest.fixture
async def exposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """A service whose clients have addresses of their own.

    Its throttle's clock stands still, because a failure expires every nine seconds, and a hundred guesses may take longer.
    """
    monkeypatch.setattr(
        "deskwire.http.api.services.SignInThrottle", lambda _, *limits: SignInThrottle(lambda: 0.0, *limits)
    )
    settings = {"trusted_proxies": (ip_network("127.0.0.1/32"),), "auth_failures_per_minute": 5}
    async with running(tmp_path, **settings) as started:
        yield started


async def sign_in(
    service: Service, email: str, password: str, address: str, new: str | None = None
) -> httpx.Response:
    """Return the response to a sign-in from this address."""
    body = {"email": email, "password": password} | ({} if new is None else {"newPassword": new})
    headers = {"Authorization": "", "X-Forwarded-For": address}
    return await service.http.post("/auth/token", json=body, headers=headers)


async def guesses(service: Service, addresses: list[str], email: str, count: int = PER_PAIR) -> list[int]:
    """Return the statuses of this number of wrong passwords from each of these addresses."""
    found = []
    for address in addresses:
        found += [(await sign_in(service, email, "guess", address)).status_code for _ in range(count)]
    return found


async def settled(service: Service, email: str, address: str) -> None:
    """Hire a member, who signs in from this address for the first time."""
    hired = await hire(service, "agent", email)
    answer = await sign_in(service, email, hired["password"], address, PASSWORD)
    assert answer.status_code == 200


async def test_guesses_from_another_address_do_not_lock_out_the_owner(
    exposed: Service,
) -> None:
    await settled(exposed, "ada@example.com", OFFICE)
    many = [f"203.0.113.{number}" for number in range(PER_ACCOUNT // PER_PAIR)]
    assert await guesses(exposed, many, "ada@example.com") == [401] * PER_ACCOUNT
    shut = await sign_in(exposed, "ada@example.com", PASSWORD, HOME)
    assert code(shut) == (429, "too_many_sign_ins")
    assert (await sign_in(exposed, "ada@example.com", PASSWORD, OFFICE)).status_code == 200


async def test_guesses_from_a_shared_address_do_not_lock_out_known_users(
    exposed: Service,
) -> None:
    await settled(exposed, "ada@example.com", OFFICE)
    tried = [
        (await sign_in(exposed, f"user{number}@example.com", "guess", OFFICE)).status_code
        for number in range(PER_NETWORK + 5)
    ]
    assert tried == [401] * PER_NETWORK + [429] * 5
    assert (await sign_in(exposed, "ada@example.com", PASSWORD, OFFICE)).status_code == 200


async def test_addresses_of_one_ipv6_customer_count_as_one(exposed: Service) -> None:
    same = [f"2001:db8:0:7::{number:x}" for number in range(1, 4)]
    assert (await guesses(exposed, same, "ada@example.com", 5)).count(401) == PER_PAIR
    assert await guesses(exposed, ["2001:db8:0:8::1"], "ada@example.com", 1) == [401]


async def test_flood_of_sign_ins_does_not_delay_other_addresses(exposed: Service) -> None:
    """The queue for hashing has fifty places; here one machine requests all of them at once."""
    user, statuses = exposed.demo["user"], list[int]()
    begun = trio.Event()

    async def flood(number: int) -> None:
        answer = await sign_in(exposed, f"user{number}@example.com", "guess", HOSTILE)
        statuses.append(answer.status_code)
        if len(statuses) == MANY:
            begun.set()

    async with trio.open_nursery() as nursery:
        for number in range(3 * MANY):
            nursery.start_soon(flood, number)
        await begun.wait()
        answers = [await sign_in(exposed, user["email"], user["password"], OFFICE) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert set(statuses) <= {401, 429, 503}
    assert statuses.count(401) <= PER_NETWORK
    assert statuses.count(503) > MANY  # were asked to come back, without hashing


async def test_valid_key_is_served_despite_wrong_keys_of_neighbours(exposed: Service) -> None:
    from_there = {"X-Forwarded-For": OFFICE}
    wrong = from_there | {"Authorization": "Bearer sk_" + "x" * 43}
    forged = from_there | {"Authorization": "Bearer a.b.c"}
    refused = [await exposed.http.get("/s2s/project", headers=wrong) for _ in range(8)]
    assert [answer.status_code for answer in refused] == [401] * 5 + [429] * 3
    assert int(refused[-1].headers["Retry-After"]) > 0
    assert code(await exposed.dashboard.get("/users/me", headers=forged)) == (429, "too_many_failures")
    assert (await exposed.http.get("/s2s/project", headers=from_there)).status_code == 200
    assert (await exposed.dashboard.get("/users/me", headers=from_there)).status_code == 200
    user = exposed.demo["user"]
    assert (await sign_in(exposed, user["email"], user["password"], OFFICE)).status_code == 200


async def test_wrong_password_gets_its_own_error_despite_wrong_keys_of_neighbours(
    exposed: Service,
) -> None:
    wrong = {"X-Forwarded-For": OFFICE, "Authorization": "Bearer sk_" + "x" * 43}
    for _ in range(8):
        await exposed.http.get("/s2s/project", headers=wrong)
    refused = await sign_in(exposed, exposed.demo["user"]["email"], "mistyped", OFFICE)
    assert code(refused) == (401, "invalid_login")


async def test_guesses_at_a_scrapers_token_are_limited(tmp_path: Path) -> None:
    """A person chooses the token, so it may be a word. A correct one is refused as well, or guessing could continue."""
    trusted = (ip_network("127.0.0.1/32"),)
    async with running(
        tmp_path, trusted_proxies=trusted, auth_failures_per_minute=3, metrics_token="a-token-of-a-person"
    ) as service:
        from_there = {"X-Forwarded-For": HOSTILE}
        statuses = []
        for token in ("x", "y", "z", "a-token-of-a-person"):
            headers = from_there | {"Authorization": f"Bearer {token}"}
            statuses.append((await service.http.get(f"{service.url}/metrics", headers=headers)).status_code)
        assert statuses == [401, 401, 401, 429]
        headers = {"X-Forwarded-For": OFFICE, "Authorization": "Bearer a-token-of-a-person"}
        assert (await service.http.get(f"{service.url}/metrics", headers=headers)).status_code == 200
