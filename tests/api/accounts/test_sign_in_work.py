"""After the cost of hashing was changed, the work of a sign-in does not show which addresses have an account (decisions 2, ADR 15)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import argon2
import pytest

from deskwire.engine.accounts.credentials import Passwords
from deskwire.program import parts
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, sign_in
from tests.support.sockets.admin_socket import operate

CHEAP, DEAR = 1_024, 2_048
ADDRESSES = 120


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The memory, in KiB, of each check of a password that a service makes; the checks are real."""
    used: list[int] = []

    class Counting(argon2.PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> bool:  # type: ignore[override]  # noqa: A002
            used.append(argon2.extract_parameters(str(hash)).memory_cost)
            return super().verify(hash, password)

    class CountingPasswords(Passwords):
        def __init__(self, memory_kib: int, one_time_s: float) -> None:
            super().__init__(memory_kib, one_time_s)
            self._hasher = Counting(memory_cost=memory_kib)

    monkeypatch.setattr(parts, "Passwords", CountingPasswords)
    return used


async def tried(service: Service, memory: list[int], emails: list[str], wrong: str = "wrong") -> list[int]:
    """The memory that a wrong password takes at each of these addresses."""
    memory.clear()
    for email in emails:
        assert (await sign_in(service, email, wrong)).status_code == 401
    return list(memory)


async def employ(service: Service, count: int) -> list[str]:
    """Make that many accounts."""
    emails = [f"staff{number}@example.com" for number in range(count)]
    for email in emails:
        await operate(service, "user.create", email=email, password=PASSWORD)
    return emails


@pytest.mark.sqlite  # the command that makes an account has the cost of its own settings elsewhere
async def test_unknown_addresses_cost_what_accounts_cost_after_a_change(
    tmp_path: Path, memory: list[int]
) -> None:
    strangers = [f"nobody{number}@example.com" for number in range(ADDRESSES)]
    async with running(tmp_path, argon2_memory_kib=CHEAP) as service:
        staff = await employ(service, 3)  # with the demo's owner four
        assert set(await tried(service, memory, [*staff, *strangers[:5]])) == {CHEAP}
        for email in (staff[0], strangers[0]):  # in each form that an older hash may be of
            assert await tried(service, memory, [email], "wr\u00f6ng \ufb01t") == [CHEAP] * 3
    async with running(tmp_path, argon2_memory_kib=DEAR) as service:
        assert set(await tried(service, memory, [*staff, *strangers])) == {CHEAP}
        assert (await sign_in(service, staff[0], PASSWORD)).status_code == 200
        assert await tried(service, memory, staff) == [DEAR, CHEAP, CHEAP]
    async with running(tmp_path, argon2_memory_kib=DEAR) as service:  # in place of a minute
        first = await tried(service, memory, strangers)
        assert 60 < Counter(first)[CHEAP] < 117  # three of four accounts
        assert await tried(service, memory, strangers) == first
        for email in staff:
            assert (await sign_in(service, email, PASSWORD)).status_code == 200
        user = service.demo["user"]
        assert (await sign_in(service, user["email"], user["password"])).status_code == 200
    async with running(tmp_path, argon2_memory_kib=DEAR) as service:
        assert set(await tried(service, memory, [*staff, *strangers])) == {DEAR}


async def test_rehashing_ends_no_token_and_leaves_a_one_time_password_one(tmp_path: Path) -> None:
    async with running(tmp_path, argon2_memory_kib=CHEAP) as service:
        (email,) = await employ(service, 1)
        token = (await sign_in(service, email, PASSWORD)).json()["token"]
        once = await operate(service, "user.create", email="new@example.com")
    async with running(tmp_path, argon2_memory_kib=DEAR) as service:
        for _ in range(2):
            assert (await sign_in(service, email, PASSWORD)).status_code == 200
        headers = {"Authorization": f"Bearer {token}"}
        assert (await service.http.get("/users/me", headers=headers)).status_code == 200
        assert (await sign_in(service, "new@example.com", once["password"])).status_code == 403
        signed = await sign_in(service, "new@example.com", once["password"], PASSWORD)
        assert signed.status_code == 200
