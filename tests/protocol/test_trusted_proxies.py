"""A service behind proxies: the address for which failed sign-ins count, and access to the metrics (ADR 25)."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
from structlog.testing import capture_logs

from deskwire.engine.accounts.identity.throttle import PER_PAIR
from tests.support.api.service import Service, running

HERE = (ip_network("127.0.0.1/32"), ip_network("10.0.0.0/8"))


async def signed_in(service: Service, password: str, forwarded_for: str) -> int:
    """Return the status of a sign-in to the demo's account with this header."""
    answer = await service.http.post(
        "/auth/token",
        json={"email": service.demo["user"]["email"], "password": password},
        headers={"X-Forwarded-For": forwarded_for},
    )
    return answer.status_code


async def exhausted(service: Service, *forwarded_for: str) -> list[int]:
    """Return the statuses of enough wrong passwords that the next one is refused without a check."""
    turns = [forwarded_for[number % len(forwarded_for)] for number in range(PER_PAIR + 1)]
    return [await signed_in(service, "not the password", turn) for turn in turns]


async def test_failures_are_counted_for_the_address_from_the_trusted_proxy(tmp_path: Path) -> None:
    with capture_logs() as said:
        async with running(tmp_path, trusted_proxies=HERE) as service:
            spoofed = tuple(f"198.51.100.{number}, 203.0.113.9, 10.0.0.2" for number in range(9))
            assert await exhausted(service, *spoofed) == [401] * PER_PAIR + [429]
            password = service.demo["user"]["password"]
            assert await signed_in(service, password, "203.0.113.9") == 429
            assert await signed_in(service, password, "203.0.113.10") == 200
    failed: list[Any] = [entry for entry in said if entry["event"] == "sign_in.failed"]
    assert {entry["address"] for entry in failed} == {"203.0.113.9"}
    assert {entry["reason"] for entry in failed} == {"invalid_login", "too_many_sign_ins"}


async def test_without_trusted_proxies_the_header_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        claimed = tuple(f"203.0.113.{number}" for number in range(9))
        assert await exhausted(service, *claimed) == [401] * PER_PAIR + [429]


async def test_local_proxy_without_a_header_does_not_open_the_metrics(tmp_path: Path) -> None:
    cases: tuple[tuple[dict[str, Any], int], ...] = (({}, 200), ({"trusted_proxies": HERE}, 403))
    for settings, status in cases:
        async with running(tmp_path, **settings) as service, httpx.AsyncClient() as client:
            assert (await client.get(f"{service.url}/metrics")).status_code == status


async def test_calls_without_a_valid_credential_are_counted_for_that_address_too(tmp_path: Path) -> None:
    limited: dict[str, Any] = {"trusted_proxies": HERE, "auth_failures_per_minute": 3}
    async with running(tmp_path, **limited) as service, httpx.AsyncClient() as client:

        async def guess(forwarded_for: str) -> int:
            headers = {"Authorization": "Bearer sk_wrong", "X-Forwarded-For": forwarded_for}
            return (await client.get(f"{service.url}/v3/s2s/project", headers=headers)).status_code

        assert [await guess("203.0.113.9") for _ in range(4)] == [401, 401, 401, 429]
        assert await guess("203.0.113.10, 10.0.0.2") == 401
