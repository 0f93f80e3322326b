"""Access tokens in the hands of a thief: they change no second factor, and no password without the factor."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from deskwire.http.app import ROUTES
from tests.api.accounts.test_second_factor import EMAIL, Phone, clock, enrol, enrolled
from tests.support.api.audit_trail import trail
from tests.support.api.browsers import browser, enter, staff
from tests.support.api.service import Service
from tests.support.api.staff import PASSWORD, client, code
from tests.support.log_leaks import plant

__all__ = ["clock"]

NEW = plant("another long password")
FACTOR_ROUTES = {
    "addPasskey",
    "beginPasskey",
    "beginTotp",
    "confirmTotp",
    "removePasskey",
    "removeTotp",
    "renewRecoveryCodes",
}
"""The operations that a token never opens; written by hand, so that a route does not open unnoticed."""


@asynccontextmanager
async def with_token(service: Service, phone: Phone | None) -> AsyncIterator[httpx.AsyncClient]:
    """A client with an access token of a user, who may have an authenticator app."""
    body = {"email": EMAIL, "password": PASSWORD, **({} if phone is None else {"code": phone.code()})}
    issued = await service.http.post("/auth/token", json=body, headers={"Authorization": ""})
    assert issued.status_code == 200, issued.text
    async with client(service, issued.json()["token"]) as http:
        yield http


def test_every_change_of_an_own_factor_needs_a_session() -> None:
    of_browsers = {"getPushSubscription", "putPushSubscription", "deletePushSubscription"}
    assert {
        route.operation_id for route in ROUTES if route.access.session_only
    } == FACTOR_ROUTES | of_browsers
    assert all(route.access.fresh for route in ROUTES if route.operation_id in FACTOR_ROUTES)


@pytest.mark.parametrize("has_factor", [True, False])
async def test_token_changes_no_factor(service: Service, has_factor: bool) -> None:
    await staff(service, "owner", EMAIL)
    async with browser(service) as page:
        await enter(page, EMAIL)
        phone = (await enrol(page))[0] if has_factor else None
        async with with_token(service, phone) as thief:
            passkey = {"challenge": "pke_x", "credential": {"id": "x"}, "name": "Thief"}
            for answer in (
                await thief.post("/users/me/factors/totp"),
                await thief.post("/users/me/factors/totp/confirm", json={"code": "000000"}),
                await thief.delete("/users/me/factors/totp"),
                await thief.post("/users/me/factors/passkeys/options"),
                await thief.post("/users/me/factors/passkeys", json=passkey),
                await thief.delete("/users/me/factors/passkeys/pky_x"),
                await thief.post("/users/me/factors/recovery-codes"),
            ):
                assert code(answer) == (403, "session_required")
            seen = (await thief.get("/users/me/factors")).json()
            assert (seen["totp"] is not None, seen["passkeys"]) == (has_factor, [])
    refused = await trail(service, action="access.refused")
    assert {each["details"]["reason"] for each in refused} == {"session_required"}


async def test_token_changes_the_password_only_with_the_factor(service: Service) -> None:
    async with enrolled(service) as (page, phone, codes), with_token(service, phone) as http:
        body = {"password": PASSWORD, "newPassword": NEW}
        assert code(await http.post("/users/me/password", json=body)) == (401, "second_factor_required")
        wrong = await http.post("/users/me/password", json={**body, "code": "000000"})
        assert code(wrong) == (401, "invalid_code")
        assert (await page.get("/users/me")).status_code == 200, "nothing has changed"
        changed = await http.post("/users/me/password", json={**body, "recoveryCode": codes[0]})
        assert changed.status_code == 200, changed.text
        assert code(await page.get("/users/me")) == (401, "session_ended")
        assert code(await http.get("/users/me")) == (401, "token_expired")


async def test_session_with_a_fresh_proof_needs_no_code_for_a_new_password(service: Service) -> None:
    async with enrolled(service) as (page, _, _):
        body = {"password": PASSWORD, "newPassword": NEW}
        assert (await page.post("/users/me/password", json=body)).status_code == 200
        assert (await page.get("/users/me")).status_code == 200
