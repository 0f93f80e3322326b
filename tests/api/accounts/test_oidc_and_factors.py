"""Sign-in at an OpenID provider by users with a second factor, and by invited people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.accounts.test_second_factor import EMAIL, enrolled
from tests.support.api.links import INVITED, invited
from tests.support.api.openid import Browser, MockProvider, browsing, mock_provider, provider
from tests.support.api.service import Service, running
from tests.support.api.staff import organisation_of
from tests.support.sockets.admin_socket import operate


@pytest.fixture(scope="module")
def idp() -> Iterator[MockProvider]:
    with mock_provider() as running_provider:
        yield running_provider


def serving(folder: Path, idp: MockProvider, **settings: Any) -> AbstractAsyncContextManager[Service]:
    """Run a service with one provider."""
    return running(folder / "data", oidc_named=(provider(folder, idp.issuer, **settings),))


async def post(browser: Browser, path: str, **body: Any) -> httpx.Response:
    """Send a call of the page, and keep the cookies that the answer sets."""
    shown = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    headers = {"Sec-Fetch-Site": "same-origin", "Cookie": shown}
    answer = await browser.http.post(f"{browser.service.url}/v3{path}", headers=headers, json=body)
    for cookie in answer.headers.get_list("set-cookie"):
        name, _, rest = cookie.partition("=")
        browser.cookies[name] = rest.partition(";")[0]
    return answer


async def roles(service: Service) -> dict[str, str]:
    """Return the roles of the demo's members by address."""
    listed = await service.dashboard.get(f"/organisations/{await organisation_of(service)}/members")
    return {each["email"]: each["role"] for each in listed.json()["items"]}


async def test_user_with_a_factor_proves_it_after_the_provider(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp) as service, enrolled(service) as (_, phone, _):
        idp.user("u1", email=EMAIL, email_verified=True)
        async with browsing(service) as browser:
            assert await browser.sign_in(idp, "u1", returnTo="/desk/inbox") == "/desk/inbox"
            waiting = await browser.session()
            assert waiting["user"] is None
            assert waiting["challenge"]["methods"] == ["totp", "recoveryCode"]
            challenge = waiting["challenge"]["id"]
            wrong = await post(browser, "/auth/session/factor", challenge=challenge, code="000000")
            assert (wrong.status_code, wrong.json()["code"]) == (401, "invalid_code")
            done = await post(browser, "/auth/session/factor", challenge=challenge, code=phone.code())
            assert done.status_code == 200, done.text
            session = await browser.session()
            assert (session["user"]["email"], session["signedInBy"]) == (EMAIL, "oidc")
            assert session["challenge"] is None
            assert browser.cookies["deskwire-challenge"] == "", "the challenge's cookie is deleted"


async def test_provider_that_vouches_needs_no_factor_of_ours(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp, second_factor=True) as service, enrolled(service):
        idp.user("u1", email=EMAIL, email_verified=True)
        async with browsing(service) as browser:
            await browser.sign_in(idp, "u1")
            session = await browser.session()
            assert session["user"]["email"] == EMAIL
            assert session["proofMethods"] == ["totp", "oidc:oidc"]


async def test_proof_at_a_provider_that_vouches_for_nothing_is_no_factor(
    tmp_path: Path, idp: MockProvider
) -> None:
    async with serving(tmp_path, idp) as service, enrolled(service) as (_, phone, _):
        idp.user("u1", email=EMAIL, email_verified=True)
        async with browsing(service) as browser:
            await browser.sign_in(idp, "u1")
            challenge = (await browser.session())["challenge"]["id"]
            await post(browser, "/auth/session/factor", challenge=challenge, code=phone.code())
            before = await browser.session()
            assert before["proofMethods"] == ["totp"]
            proof = await idp.approve(await browser.start(purpose="proof"), "u1")
            assert await browser.come_back(proof) == "/desk?signIn=provider_refused"
            assert (await browser.session())["provedAt"] == before["provedAt"]


async def test_invited_address_that_the_provider_verifies_gets_an_account(
    tmp_path: Path, idp: MockProvider
) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        await invited(service, INVITED, "viewer")
        idp.user("u1", email=INVITED.upper(), email_verified=False)
        assert await browser.sign_in(idp, "u1") == "/desk?signIn=address_not_verified"
        idp.user("u1", email=INVITED.upper(), email_verified=True, name="Ada")
        assert await browser.sign_in(idp, "u1") == "/desk"
        assert [each["role"] for each in (await browser.session())["projects"]] == ["viewer"]
        open_ones = await service.dashboard.get(
            f"/organisations/{await organisation_of(service)}/invitations"
        )
        assert open_ones.json()["items"] == []


async def test_provider_of_one_organisation_accepts_no_invitation_of_another(
    tmp_path: Path, idp: MockProvider
) -> None:
    async with serving(tmp_path, idp, organisation="Elsewhere") as service, browsing(service) as browser:
        await operate(service, "org.create", name="Elsewhere")
        await invited(service, INVITED, "viewer")
        idp.user("u1", email=INVITED, email_verified=True)
        assert await browser.sign_in(idp, "u1") == "/desk?signIn=no_account"
        assert INVITED not in await roles(service)
