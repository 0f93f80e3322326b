"""Sign-in at an OpenID provider, with the published `oidc-provider-mock` and the real service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.api.audit_trail import whole
from tests.support.api.browsers import staff
from tests.support.api.openid import (
    Browser,
    MockProvider,
    browsing,
    mock_provider,
    parameters,
    provider,
    state_of,
)
from tests.support.api.service import Service, running
from tests.support.api.staff import PASSWORD, organisation_of, sign_in
from tests.support.sockets.admin_socket import operate
from tests.support.sockets.server_process import free_port


@pytest.fixture(scope="module")
def idp() -> Iterator[MockProvider]:
    with mock_provider() as running_provider:
        yield running_provider


def serving(folder: Path, idp: MockProvider, **settings: Any) -> AbstractAsyncContextManager[Service]:
    """Run a service with one provider."""
    return running(folder / "data", oidc_named=(provider(folder, idp.issuer, **settings),))


def owner(service: Service) -> str:
    return str(service.demo["user"]["email"])


async def members(service: Service) -> dict[str, str]:
    """Return the roles of the demo's members by address."""
    listed = await service.dashboard.get(f"/organisations/{await organisation_of(service)}/members")
    return {each["email"]: each["role"] for each in listed.json()["items"]}


async def refusals(service: Service) -> list[dict[str, Any]]:
    """Return the details of failed sign-ins in the audit trail, newest first."""
    records = await whole(service)
    return [each["details"] for each in records if each["action"] == "sign_in.failed"]


async def test_verified_address_binds_an_existing_account(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        methods = (await browser.go("/v3/auth/methods")).json()
        assert methods["oidc"] == [
            {"id": "oidc", "name": "Company account", "startUrl": "/v3/auth/oidc/start?provider=oidc"}
        ]
        idp.user("u1", email=owner(service).upper(), email_verified=True)
        assert await browser.sign_in(idp, "u1", returnTo="/desk/inbox?x=1#m") == "/desk/inbox?x=1#m"
        assert (await browser.session())["user"]["email"] == owner(service)
        (identity,) = (await service.dashboard.get("/users/me/identities")).json()["items"]
        assert (identity["provider"], identity["subject"]) == ("oidc", "u1")
        actions = [each["action"] for each in await whole(service)]
        assert {"identity.linked", "sign_in.succeeded"} <= {*actions}


async def test_bound_account_is_known_by_issuer_and_subject_alone(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        idp.user("u1", email=owner(service), email_verified=True)
        await browser.sign_in(idp, "u1")
        idp.user("u1", email="renamed@example.com", email_verified=False)
        assert await browser.sign_in(idp, "u1") == "/desk"
        assert (await browser.session())["user"]["email"] == owner(service)


async def test_unlinked_identity_is_bound_again_only_by_a_verified_address(
    tmp_path: Path, idp: MockProvider
) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        idp.user("u1", email=owner(service), email_verified=True)
        await browser.sign_in(idp, "u1")
        (identity,) = (await service.dashboard.get("/users/me/identities")).json()["items"]
        path = f"/users/me/identities/{identity['id']}"
        assert (await service.dashboard.delete(path)).json() == {"id": identity["id"], "deleted": True}
        assert (await service.dashboard.delete(path)).json()["code"] == "identity_not_found"
        idp.user("u1", email=owner(service), email_verified="true")
        assert await browser.sign_in(idp, "u1") == "/desk?signIn=address_not_verified"
        assert "identity.unlinked" in {each["action"] for each in await whole(service)}


async def test_stranger_gets_a_page_and_a_record_and_no_account(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        idp.user("u1", email="stranger@example.com", email_verified=True)
        assert await browser.sign_in(idp, "u1") == "/desk?signIn=no_account"
        assert (await browser.session())["user"] is None
        assert await members(service) == {owner(service): "owner"}
        assert await refusals(service) == [{"reason": "no_account", "provider": "oidc"}]


ROLES = {"role_claim": "realm_access.roles", "roles": {"leads": "admin", "desk": "agent"}}


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"realm_access": {"roles": ["x", "desk"]}}, "agent"),
        ({"realm_access": {"roles": ["desk", "leads"]}}, "admin"),
        ({"realm_access": {"roles": "leads"}}, "admin"),
        ({"realm_access.roles": ["desk"]}, "agent"),
        ({"realm_access": {"roles": [["desk"], 1, None]}}, None),
        ({"realm_access": ["desk"]}, None),
        ({"realm_access": {"roles": ["DESK"]}}, None),
        ({}, None),
    ],
)
async def test_claim_gives_a_new_account_its_role(
    tmp_path: Path, idp: MockProvider, claims: dict[str, Any], role: str | None
) -> None:
    async with serving(tmp_path, idp, **ROLES) as service, browsing(service) as browser:
        idp.user("u1", email="new@example.com", email_verified=True, name="New Agent", **claims)
        place = await browser.sign_in(idp, "u1")
        found = {**await members(service)}
        del found[owner(service)]
        if role is None:
            assert (place, found) == ("/desk?signIn=no_role", {})
            assert (await refusals(service))[0]["reason"] == "no_role"
            return
        assert (place, found) == ("/desk", {"new@example.com": role})
        session = await browser.session()
        assert session["user"]["name"] == "New Agent"
        assert [each["role"] for each in session["projects"]] == [role]


async def test_claims_change_the_role_at_each_sign_in_and_end_the_access_without_one(
    tmp_path: Path, idp: MockProvider
) -> None:
    async with serving(tmp_path, idp, **ROLES) as service, browsing(service) as browser:

        async def sign_in(*groups: str) -> str:
            idp.user("u1", email="new@example.com", email_verified=True, realm_access={"roles": list(groups)})
            return await browser.sign_in(idp, "u1")

        assert await sign_in("desk") == "/desk"
        assert await sign_in("leads") == "/desk"
        assert (await members(service))["new@example.com"] == "admin"
        assert await sign_in("desk") == "/desk"
        assert (await members(service))["new@example.com"] == "agent"
        assert await sign_in() == "/desk?signIn=no_role"


async def test_last_owner_keeps_the_role(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp, **ROLES) as service, browsing(service) as browser:
        idp.user("u1", email=owner(service), email_verified=True, realm_access={"roles": ["desk"]})
        assert await browser.sign_in(idp, "u1") == "/desk"
        assert await members(service) == {owner(service): "owner"}


async def test_member_without_a_mapped_role_keeps_the_one_given_here(
    tmp_path: Path, idp: MockProvider
) -> None:
    async with serving(tmp_path, idp, **ROLES) as service, browsing(service) as browser:
        idp.user("u1", email=owner(service), email_verified=True)
        assert await browser.sign_in(idp, "u1") == "/desk"
        assert await browser.sign_in(idp, "u1") == "/desk"
        assert await members(service) == {owner(service): "owner"}


async def test_provider_of_one_organisation_binds_no_account_of_another(
    tmp_path: Path, idp: MockProvider
) -> None:
    async with serving(tmp_path, idp, organisation="Elsewhere") as service, browsing(service) as browser:
        await operate(service, "org.create", name="Elsewhere")
        idp.user("u1", email=owner(service), email_verified=True)
        assert await browser.sign_in(idp, "u1") == "/desk?signIn=no_account"
        await operate(
            service, "user.create", email="boss@elsewhere.example", organisation="Elsewhere", role="owner"
        )
        idp.user("u2", email="boss@elsewhere.example", email_verified=True)
        assert await browser.sign_in(idp, "u2") == "/desk"


async def test_provider_of_one_organisation_signs_no_one_in_who_has_joined_another(
    tmp_path: Path, idp: MockProvider
) -> None:
    """The provider's operators could come into the other organisation by that account."""
    async with (
        serving(tmp_path, idp, organisation="Demo organisation") as service,
        browsing(service) as browser,
    ):
        hired = await staff(service, "agent", "both@example.com")
        idp.user("u1", email=hired["email"], email_verified=True)
        assert await browser.sign_in(idp, "u1") == "/desk"
        await operate(service, "org.create", name="Elsewhere")
        joined = {"user": hired["id"], "organisation": "Elsewhere", "role": "viewer", "password": "keep"}
        await operate(service, "user.add", **joined)
        proof = await idp.approve(await browser.start(purpose="proof"), "u1")
        assert await browser.come_back(proof) == "/desk?signIn=other_account"
        assert await browser.sign_in(idp, "u1") == "/desk?signIn=account_elsewhere"
        assert {each["reason"] for each in await refusals(service)} == {"other_account", "account_elsewhere"}
        assert (await sign_in(service, hired["email"], PASSWORD)).status_code == 200
        await operate(service, "user.remove", user=hired["id"], organisation="Elsewhere")
        assert await browser.sign_in(idp, "u1") == "/desk"


async def test_denied_sign_in_says_so(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        url = await idp.approve(await browser.start(), None)
        assert parameters(url)["error"] == "access_denied"
        state = state_of(await browser.start())
        place = await browser.come_back(f"/v3/auth/oidc/callback?error=access_denied&state={state}")
        assert place == "/desk?signIn=provider_refused"
        state = state_of(await browser.start())
        place = await browser.come_back(f"/v3/auth/oidc/callback?error=server_error&state={state}")
        assert place == "/desk?signIn=provider_unreachable"


async def test_answer_is_of_use_once_and_to_the_browser_that_began(tmp_path: Path, idp: MockProvider) -> None:
    """Login CSRF, fixation and replay: another browser brings the answer, or the same one brings it twice."""
    async with (
        serving(tmp_path, idp) as service,
        browsing(service) as browser,
        browsing(service) as victim,
    ):
        idp.user("u1", email=owner(service), email_verified=True)
        stolen = await idp.approve(await browser.start(), "u1")
        assert await victim.come_back(stolen) == "/desk?signIn=sign_in_expired"
        assert (await victim.session())["user"] is None
        assert await browser.come_back(stolen) == "/desk?signIn=sign_in_expired", "the state is used up"
        await victim.start()
        again = await idp.approve(await browser.start(), "u1")
        assert await victim.come_back(again) == "/desk?signIn=sign_in_expired"
        good = await idp.approve(await browser.start(), "u1")
        assert await browser.come_back(good) == "/desk"
        assert await browser.come_back(good) == "/desk?signIn=sign_in_expired"


@pytest.mark.parametrize("purpose", ["sign_in", "proof"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "a_word_of_tomorrow"])
async def test_page_of_another_site_starts_no_sign_in(
    tmp_path: Path, idp: MockProvider, purpose: str, site: str
) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        path = f"/v3/auth/oidc/start?provider=oidc&purpose={purpose}"
        answer = await browser.go(path, site=site)
        assert answer.status_code == 303
        assert answer.headers["Location"] == "/desk?signIn=started_elsewhere"
        assert "set-cookie" not in answer.headers
        twice = [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", site)]
        answer = await browser.http.get(f"{service.url}{path}", headers=twice)
        assert answer.headers["Location"] == "/desk?signIn=started_elsewhere"
        assert await refusals(service) == [], "it costs no write"


@pytest.mark.parametrize("site", ["same-origin", "none", None])
async def test_own_page_typed_address_and_old_browser_start_a_sign_in(
    tmp_path: Path, idp: MockProvider, site: str | None
) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        answer = await browser.go("/v3/auth/oidc/start?provider=oidc", site=site)
        assert answer.headers["Location"].startswith(idp.issuer)
        assert cookies_of(browser) == {"deskwire-oidc-0"}


async def test_code_of_another_request_is_refused(tmp_path: Path, idp: MockProvider) -> None:
    """The nonce binds the ID token to the request, also if state and cookie are the browser's own."""
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        idp.user("u1", email=owner(service), email_verified=True)
        code = parameters(await idp.approve(await browser.start(), "u1"))["code"]
        state = state_of(await browser.start())
        place = await browser.come_back(f"/v3/auth/oidc/callback?code={code}&state={state}")
        assert place == "/desk?signIn=provider_refused"


@pytest.mark.parametrize(
    "return_to",
    [
        "https://evil.example/",
        "//evil.example",
        "/desk\\..\\evil",
        "/desk/../v3/auth/session",
        "/desk/%2e%2E/v3",
        "/desk/x/..",
        "/deskevil",
        "/desk\r\nSet-Cookie: x=1",
        "/desk/" + "x" * 1_000,
        "javascript:alert(1)",
        "",
    ],
)
async def test_only_pages_of_the_desk_follow_a_sign_in(
    tmp_path: Path, idp: MockProvider, return_to: str
) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        idp.user("u1", email=owner(service), email_verified=True)
        assert await browser.sign_in(idp, "u1", returnTo=return_to) == "/desk"


async def test_four_tabs_sign_in_at_once(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        idp.user("u1", email=owner(service), email_verified=True)
        urls = [await idp.approve(await browser.start(), "u1") for _ in range(4)]
        assert [await browser.come_back(url) for url in reversed(urls)] == ["/desk"] * 4
        listed = (await service.dashboard.get("/users/me/sessions")).json()["items"]
        assert len(listed) == 4  # each began without a session


async def test_new_sign_in_replaces_the_browsers_session(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        idp.user("u1", email=owner(service), email_verified=True)
        await browser.sign_in(idp, "u1")
        await browser.sign_in(idp, "u1")
        assert len((await service.dashboard.get("/users/me/sessions")).json()["items"]) == 1


async def test_request_ends_after_ten_minutes(
    tmp_path: Path, idp: MockProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deskwire.http.resources.accounts.oidc.REQUEST_LIFETIME_MS", 0)
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        idp.user("u1", email=owner(service), email_verified=True)
        assert await browser.sign_in(idp, "u1") == "/desk?signIn=sign_in_expired"


async def test_deleted_user_is_a_stranger_again(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp, **ROLES) as service, browsing(service) as browser:
        idp.user("u1", email="new@example.com", email_verified=True, realm_access={"roles": ["desk"]})
        await browser.sign_in(idp, "u1")
        await operate(service, "user.delete", user="new@example.com")
        idp.user("u1", email="new@example.com", email_verified=True)
        assert await browser.sign_in(idp, "u1") == "/desk?signIn=no_role"


async def test_users_sign_in_without_own_passwords(tmp_path: Path, idp: MockProvider) -> None:
    named = (provider(tmp_path, idp.issuer, label="Staff"),)
    async with running(tmp_path / "data", oidc_named=named) as service:
        email = owner(service)
    async with (
        running(tmp_path / "data", oidc_named=named, own_tokens=False) as service,
        browsing(service) as browser,
    ):
        methods = (await browser.go("/v3/auth/methods")).json()
        assert (methods["password"], methods["oidc"][0]["name"]) == (False, "Staff")
        idp.user("u1", email=email, email_verified=True)
        assert await browser.sign_in(idp, "u1") == "/desk"
        assert (await browser.session())["user"]["email"] == email


async def test_unreachable_provider_stops_only_sign_ins_with_it(tmp_path: Path) -> None:
    with mock_provider() as idp:
        gone = idp.issuer
    async with (
        running(tmp_path / "data", oidc_named=(provider(tmp_path, gone),)) as service,
        browsing(service) as browser,
    ):
        assert (await service.dashboard.get("/users/me")).status_code == 200
        assert await browser.start() == "/desk?signIn=provider_unreachable"
        assert await browser.start(name="nobody") == "/desk?signIn=provider_refused"


async def test_proof_needs_the_sessions_own_user(tmp_path: Path, idp: MockProvider) -> None:
    async with serving(tmp_path, idp) as service, browsing(service) as browser:
        assert await browser.start(purpose="proof") == "/desk?signIn=sign_in_expired"
        idp.user("u1", email=owner(service), email_verified=True)
        await browser.sign_in(idp, "u1")
        url = await browser.start(purpose="proof")
        assert parameters(url)["max_age"] == "0"
        assert await browser.come_back(await idp.approve(url, "u1")) == "/desk"
        idp.user("u2", email="other@example.com", email_verified=True)
        other = await idp.approve(await browser.start(purpose="proof"), "u2")
        assert await browser.come_back(other) == "/desk?signIn=other_account"
        assert await members(service) == {owner(service): "owner"}, "a proof binds no account"


def cookies_of(browser: Browser) -> set[str]:
    return {*browser.cookies}


async def test_cookies_name_their_host_where_the_address_is_https(tmp_path: Path, idp: MockProvider) -> None:
    named, port = (provider(tmp_path, idp.issuer),), free_port()
    async with (
        running(
            tmp_path / "data", oidc_named=named, port=port, public_url="https://desk.example.com"
        ) as service,
        browsing(replace(service, url=f"http://127.0.0.1:{port}")) as browser,
    ):
        url = await browser.start()
        assert parameters(url)["redirect_uri"] == "https://desk.example.com/v3/auth/oidc/callback"
        assert cookies_of(browser) == {"__Host-deskwire-oidc-0"}
