"""Second factors: enrolment, sign-in by codes, tokens, the organisation's requirement, and resets."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from deskwire.engine.accounts.factors.totp import totp_code
from deskwire.engine.core.clock import wall_clock
from deskwire.program import parts
from deskwire.storage.sqlite.directory import FILE_NAME
from tests.support.api.agent_stream import page as agent_page
from tests.support.api.audit_trail import trail
from tests.support.api.browsers import browser, cookie_header, enter, staff
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, client, code, organisation_of, sign_in
from tests.support.deadlines import fail_after_idle
from tests.support.sockets.admin_socket import operate
from tests.support.stores import chosen

EMAIL = "second@example.com"


@dataclass
class Phone:
    """An authenticator app, of which each code is a new one: the code before the current one, it, and the next."""

    secret: str
    step: int = field(default_factory=lambda: vars(parts)["wall_clock"]() // 30_000 - 2)

    def code(self) -> str:
        """The code of the next step, one that the service has not accepted yet."""
        self.step += 1
        return totp_code(base64.b32decode(self.secret), self.step)


class FrozenClock:
    """The service's clock, which a test sets forward, in the middle of a step of the phones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = wall_clock() // 30_000 * 30_000 + 15_000
        monkeypatch.setattr(parts, "wall_clock", self)

    def __call__(self) -> int:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> FrozenClock:
    """The service's clock, which stands still so that no code expires on a busy machine."""
    return FrozenClock(monkeypatch)


async def enrol(page: httpx.AsyncClient) -> tuple[Phone, list[str]]:
    """Add an authenticator app; return it with the recovery codes."""
    begun = (await page.post("/users/me/factors/totp")).json()
    assert begun["uri"].startswith("otpauth://totp/Deskwire:")
    assert begun["qr"].startswith("data:image/svg+xml")
    phone = Phone(begun["secret"])
    confirmed = await page.post("/users/me/factors/totp/confirm", json={"code": phone.code()})
    assert confirmed.status_code == 200, confirmed.text
    return phone, confirmed.json()["recoveryCodes"]


@asynccontextmanager
async def enrolled(
    service: Service, role: str = "owner"
) -> AsyncIterator[tuple[httpx.AsyncClient, Phone, list[str]]]:
    """The page of a member with an authenticator app."""
    await staff(service, role, EMAIL)
    async with browser(service) as page:
        await enter(page, EMAIL)
        phone, codes = await enrol(page)
        yield page, phone, codes


async def challenged(page: httpx.AsyncClient, **body: str) -> str:
    """Sign in by the password and return the challenge."""
    answer = await enter(page, EMAIL, **body)
    assert answer.status_code == 200, answer.text
    assert "set-cookie" not in answer.headers
    assert answer.json()["user"] is None
    challenge: dict[str, Any] = answer.json()["challenge"]
    assert challenge["methods"] == ["totp", "recoveryCode"]
    return str(challenge["id"])


async def finish(page: httpx.AsyncClient, challenge: str, **proof: Any) -> httpx.Response:
    return await page.post("/auth/session/factor", json={"challenge": challenge, **proof})


async def test_password_and_code_start_a_session(service: Service) -> None:
    async with enrolled(service) as (_, phone, codes), browser(service) as page:
        assert len(codes) == 10
        challenge = await challenged(page)
        assert (await page.get("/auth/session")).json()["user"] is None
        answer = await finish(page, challenge, code=phone.code())
        assert answer.status_code == 200, answer.text
        assert answer.json()["user"]["email"] == EMAIL
        assert answer.json()["proofMethods"] == ["totp"]
        assert (await page.get("/auth/session")).json() == answer.json()
        assert code(await finish(page, challenge, code=phone.code())) == (401, "challenge_ended")
        view = (await page.get("/users/me/factors")).json()
        assert (view["totp"].keys(), view["passkeys"], view["recoveryCodesLeft"]) == ({"createdAt"}, [], 10)


async def test_code_is_accepted_once_even_in_a_race(service: Service) -> None:
    async with enrolled(service) as (_, phone, _), browser(service) as page:
        shown, answers = phone.code(), []
        challenges = [await challenged(page) for _ in range(4)]

        async def attempt(challenge: str) -> None:
            async with browser(service) as own:
                answers.append((await finish(own, challenge, code=shown)).status_code)

        async with trio.open_nursery() as nursery:
            for challenge in challenges:
                nursery.start_soon(attempt, challenge)
        assert sorted(answers) == [200, 401, 401, 401]


async def test_five_wrong_codes_end_the_challenge(service: Service) -> None:
    async with enrolled(service) as (_, phone, _), browser(service) as page:
        challenge = await challenged(page)
        for _ in range(5):
            assert code(await finish(page, challenge, code="000000")) == (401, "invalid_code")
        assert code(await finish(page, challenge, code=phone.code())) == (401, "challenge_ended")
        failed = [each for each in await trail(service) if each["action"] == "sign_in.failed"]
        assert sum(each["count"] for each in failed) == 5
        assert failed[0]["details"]["reason"] == "invalid_code"


async def test_correct_passwords_do_not_reset_the_throttle_of_codes(service: Service) -> None:
    async with enrolled(service) as (_, phone, _), browser(service) as page:
        for _ in range(2):
            challenge = await challenged(page)
            for _ in range(5):
                assert code(await finish(page, challenge, code="000000")) == (401, "invalid_code")
        challenge = await challenged(page)
        assert code(await finish(page, challenge, code=phone.code())) == (429, "too_many_sign_ins")


async def test_recovery_code_replaces_the_phone_once(service: Service) -> None:
    async with enrolled(service) as (first, _, codes), browser(service) as page:
        answer = await finish(page, await challenged(page), recoveryCode=codes[0].upper())
        assert answer.status_code == 200, answer.text
        assert (await page.get("/users/me/factors")).json()["recoveryCodesLeft"] == 9
        again = await finish(page, await challenged(page), recoveryCode=codes[0])
        assert code(again) == (401, "invalid_code")
        renewed = (await first.post("/users/me/factors/recovery-codes")).json()["recoveryCodes"]
        assert not set(renewed) & set(codes)
        assert code(await finish(page, await challenged(page), recoveryCode=codes[1])) == (
            401,
            "invalid_code",
        )
        actions = [each["action"] for each in await trail(service)]
        assert actions.count("account.recovery_code_used") == 1


async def test_password_changes_only_with_the_factor(service: Service) -> None:
    async with enrolled(service) as (first, phone, _), browser(service) as page:
        challenge = await challenged(page, newPassword=f"{PASSWORD} 2")
        assert (await first.get("/users/me")).status_code == 200, "the password alone ends no session"
        other = await challenged(page)
        assert (await finish(page, challenge, code=phone.code())).status_code == 200
        assert code(await first.get("/users/me")) == (401, "session_ended")
        assert code(await finish(page, other, code=phone.code())) == (401, "challenge_ended")
        assert code(await enter(page, EMAIL)) == (401, "invalid_login")


async def test_token_needs_a_code(service: Service) -> None:
    async with enrolled(service) as (_, phone, codes):
        assert code(await sign_in(service, EMAIL, PASSWORD)) == (401, "second_factor_required")
        body = {"email": EMAIL, "password": PASSWORD}
        headers = {"Authorization": ""}
        shown = phone.code()
        for given, status in (
            ({"code": "000000"}, 401),
            ({"code": shown}, 200),
            ({"code": shown}, 401),
            ({"recoveryCode": codes[3]}, 200),
            ({"recoveryCode": codes[3]}, 401),
        ):
            answer = await service.http.post("/auth/token", json={**body, **given}, headers=headers)
            assert answer.status_code == status, (given, answer.text)


async def test_proof_of_a_user_with_a_factor_is_the_factor(service: Service) -> None:
    async with enrolled(service) as (page, phone, _):
        refused = await page.post("/auth/session/proof", json={"password": PASSWORD})
        assert code(refused) == (401, "second_factor_required")
        assert code(await page.post("/auth/session/proof", json={"code": "000000"})) == (401, "invalid_code")
        shown = phone.code()
        assert (await page.post("/auth/session/proof", json={"code": shown})).status_code == 200
        assert code(await page.post("/auth/session/proof", json={"code": shown})) == (401, "invalid_code")
        both = {"code": shown, "password": PASSWORD}
        assert code(await page.post("/auth/session/proof", json=both)) == (422, "invalid_input")
        assert code(await page.post("/auth/session/proof", json={})) == (422, "invalid_input")


async def test_organisation_can_require_a_second_factor(service: Service) -> None:
    path = f"/organisations/{await organisation_of(service)}"
    assert code(await service.dashboard.patch(path, json={"requireSecondFactor": True})) == (
        409,
        "no_owner_with_factor",
    )
    await staff(service, "agent", "agent@example.com")
    async with enrolled(service) as (page, _, _), browser(service) as agent:
        await enter(agent, "agent@example.com")
        changed = await page.patch(path, json={"requireSecondFactor": True})
        assert changed.json()["requireSecondFactor"] is True
        project = {"project": service.demo["projectId"]}
        for answer in (
            await agent.get("/conversations", headers=project),
            await agent.get(path),
            await service.dashboard.get("/conversations"),
        ):
            assert code(answer) == (403, "second_factor_required_here")
        assert (await page.get("/conversations", headers=project)).status_code == 200
        required = (await agent.get("/auth/session")).json()["enrolmentRequired"]
        assert [each["id"] for each in required] == [path.rpartition("/")[2]]
        await enrol(agent)
        assert (await agent.get("/conversations", headers=project)).status_code == 200
        assert (await agent.get("/auth/session")).json()["enrolmentRequired"] == []
        assert code(await agent.delete("/users/me/factors/totp")) == (409, "last_factor_required")
        assert (await page.patch(path, json={"requireSecondFactor": False})).status_code == 200
        assert (await agent.delete("/users/me/factors/totp")).status_code == 200
        assert (await enter(agent, "agent@example.com")).json()["challenge"] is None


async def test_requirement_of_a_factor_ends_streams_of_members_without_one(service: Service) -> None:
    path, email = f"/organisations/{await organisation_of(service)}", "stream@example.com"
    await staff(service, "agent", email)
    project = {"project": service.demo["projectId"]}
    async with enrolled(service) as (owner, _, _), browser(service) as agent:
        await enter(agent, email)
        async with (
            agent_page(owner, {**project, **cookie_header(owner)}) as protected,
            agent_page(agent, {**project, **cookie_header(agent)}) as unprotected,
            agent_page(service.dashboard) as by_token,
        ):
            assert (await owner.patch(path, json={"requireSecondFactor": True})).status_code == 200
            with fail_after_idle(2):
                assert await unprotected.bye() == "second_factor_required"
                assert await by_token.bye() == "second_factor_required"
            role = {"name": "Reader", "permissions": ["tickets.read"]}
            assert (await owner.post(f"{path}/roles", json=role)).status_code == 200
            assert (await protected.event())["type"] == "settings.changed"
        refused = await agent.get("/stream", headers=project)
        assert code(refused) == (403, "second_factor_required_here")


async def test_manager_resets_the_factors_of_a_member_who_lost_them(service: Service) -> None:
    async with enrolled(service, "agent") as (lost, _, _), browser(service) as page:
        member = (await lost.get("/users/me")).json()["id"]
        path = f"/organisations/{await organisation_of(service)}/members"
        assert (await service.dashboard.delete(f"{path}/{member}/factors")).status_code == 200
        assert code(await lost.get("/users/me")) == (401, "session_ended")
        assert (await enter(page, EMAIL)).json()["user"]["email"] == EMAIL
        own = (await service.dashboard.get("/users/me")).json()["id"]
        assert code(await service.dashboard.delete(f"{path}/{own}/factors")) == (403, "own_factors")


async def test_operator_resets_factors(service: Service) -> None:
    async with enrolled(service) as (lost, _, _), browser(service) as page:
        await operate(service, "user.reset-factors", user=EMAIL)
        assert code(await lost.get("/users/me")) == (401, "session_ended")
        assert (await enter(page, EMAIL)).json()["challenge"] is None


async def test_challenge_survives_a_restart_and_ends_after_ten_minutes(
    tmp_path: Path, clock: FrozenClock
) -> None:
    async with running(tmp_path) as service, enrolled(service) as (_, phone, _), browser(service) as page:
        first, late = await challenged(page), await challenged(page)
    async with running(tmp_path) as service, browser(service) as page:
        assert (await finish(page, first, code=phone.code())).status_code == 200
        clock.now += 10 * 60_000
        phone.step = clock.now // 30_000
        assert code(await finish(page, late, code=phone.code())) == (401, "challenge_ended")


async def test_database_has_no_secret_of_a_factor(tmp_path: Path) -> None:
    if chosen() != "sqlite":
        pytest.skip("reads the bytes of a file")
    async with running(tmp_path) as service, enrolled(service) as (_, phone, codes), browser(service) as page:
        challenge = await challenged(page)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        content = "\n".join(connection.iterdump())
    raw = base64.b32decode(phone.secret).hex().upper()
    for secret in (phone.secret, raw, challenge, codes[0], codes[0].replace("-", "")):
        assert secret not in content


async def test_factor_survives_the_end_of_its_session_and_a_client_with_a_token_sees_it(
    service: Service,
) -> None:
    async with enrolled(service) as (page, phone, _):
        await page.delete("/auth/session")
        body = {"email": EMAIL, "password": PASSWORD, "code": phone.code()}
        issued = await service.http.post("/auth/token", json=body, headers={"Authorization": ""})
        async with client(service, issued.json()["token"]) as http:
            assert (await http.get("/users/me/factors")).json()["totp"] is not None
