"""Passkeys, by an authenticator in software: enrolment, sign-in alone and after a password, proofs, and attacks."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.support.api.audit_trail import trail
from tests.support.api.browsers import browser, enter, staff
from tests.support.api.service import Service
from tests.support.api.staff import PASSWORD, code
from tests.support.authenticator import Authenticator

EMAIL = "passkey@example.com"


def origin_of(service: Service) -> str:
    return f"http://localhost:{service.url.rpartition(':')[2]}"


@asynccontextmanager
async def page_at(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """A browser at `localhost`, a domain for which passkeys are allowed without TLS."""
    async with browser(service) as page:
        page.headers["Host"] = origin_of(service).removeprefix("http://")
        yield page


async def add(page: httpx.AsyncClient, authenticator: Authenticator, name: str = "Laptop") -> httpx.Response:
    options = (await page.post("/users/me/factors/passkeys/options")).json()
    answer = authenticator.create(options["publicKey"])
    body = {"challenge": options["challenge"], "credential": answer, "name": name}
    return await page.post("/users/me/factors/passkeys", json=body)


@asynccontextmanager
async def enrolled(service: Service, **traits: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Authenticator]]:
    """The page of a member with a passkey."""
    await staff(service, "agent", EMAIL)
    async with page_at(service) as page:
        await enter(page, EMAIL)
        authenticator = Authenticator(origin_of(service), **traits)
        added = await add(page, authenticator)
        assert added.status_code == 200, added.text
        assert len(added.json()["recoveryCodes"]) == 10
        yield page, authenticator


async def options_of(page: httpx.AsyncClient) -> dict[str, Any]:
    answer = await page.post("/auth/passkey/options")
    assert answer.status_code == 200, answer.text
    options: dict[str, Any] = answer.json()
    return options


async def by_passkey(page: httpx.AsyncClient, options: dict[str, Any], credential: Any) -> httpx.Response:
    body = {"challenge": options["challenge"], "credential": credential}
    return await page.post("/auth/passkey", json=body)


@pytest.mark.parametrize("counts", [True, False])
async def test_passkey_alone_signs_in(service: Service, counts: bool) -> None:
    async with enrolled(service, counts=counts) as (_, authenticator), page_at(service) as page:
        assert (await page.get("/auth/methods")).json()["passkey"] is True
        for _ in range(2):
            options = await options_of(page)
            assert options["publicKey"]["userVerification"] == "required"
            answer = await by_passkey(page, options, authenticator.get(options["publicKey"]))
            assert answer.status_code == 200, answer.text
            assert answer.json()["user"]["email"] == EMAIL
            assert (answer.json()["signedInBy"], answer.json()["challenge"]) == ("passkey", None)
        (passkey,) = (await page.get("/users/me/factors")).json()["passkeys"]
        assert (passkey["name"], passkey["lastUsedAt"] is None) == ("Laptop", False)


async def test_passkey_finishes_a_sign_in_by_password(service: Service) -> None:
    async with enrolled(service) as (_, authenticator), page_at(service) as page:
        challenge = (await enter(page, EMAIL)).json()["challenge"]
        assert challenge["methods"] == ["recoveryCode", "passkey"]
        asked = {"challenge": challenge["id"]}
        options = (await page.post("/auth/session/factor/passkey-options", json=asked)).json()["publicKey"]
        assert len(options["allowCredentials"]) == 1
        other = Authenticator(authenticator.origin, credential=authenticator.credential)
        wrong = await page.post("/auth/session/factor", json={**asked, "passkey": other.get(options)})
        assert code(wrong) == (401, "invalid_passkey")
        right = await page.post("/auth/session/factor", json={**asked, "passkey": authenticator.get(options)})
        assert right.status_code == 200, right.text
        assert right.json()["signedInBy"] == "password"


async def test_passkey_proves_a_session(service: Service) -> None:
    async with enrolled(service) as (page, authenticator):
        options = (await page.post("/auth/session/proof/passkey-options")).json()["publicKey"]
        answer = authenticator.get(options)
        assert (await page.post("/auth/session/proof", json={"passkey": answer})).status_code == 200
        replayed = await page.post("/auth/session/proof", json={"passkey": answer})
        assert code(replayed) == (401, "challenge_ended")
        assert code(await page.post("/auth/session/proof", json={"password": PASSWORD})) == (
            401,
            "second_factor_required",
        )


async def test_replayed_assertion_is_refused(service: Service) -> None:
    async with enrolled(service) as (_, authenticator), page_at(service) as page:
        options = await options_of(page)
        answer = authenticator.get(options["publicKey"])
        assert (await by_passkey(page, options, answer)).status_code == 200
        assert code(await by_passkey(page, options, answer)) == (401, "challenge_ended")
        assert code(await by_passkey(page, await options_of(page), answer)) == (401, "invalid_passkey")


async def test_answers_for_another_site_are_refused(service: Service) -> None:
    async with enrolled(service) as (_, authenticator), page_at(service) as page:
        own = authenticator.origin
        for origin, rp_id in (
            ("https://evil.example", None),
            (own, "evil.example"),
            ("http://localhost", None),
        ):
            authenticator.origin = origin
            options = await options_of(page)
            answer = authenticator.get(options["publicKey"], rp_id)
            assert code(await by_passkey(page, options, answer)) == (401, "invalid_passkey"), (origin, rp_id)


async def test_user_has_to_be_verified(service: Service) -> None:
    async with enrolled(service) as (_, authenticator), page_at(service) as page:
        authenticator.verifies = False
        options = await options_of(page)
        answer = authenticator.get(options["publicKey"])
        assert code(await by_passkey(page, options, answer)) == (401, "invalid_passkey")


async def test_clone_with_an_older_count_is_refused(service: Service) -> None:
    async with enrolled(service) as (_, authenticator), page_at(service) as page:
        clone = copy.copy(authenticator)
        for key, status in ((authenticator, 200), (authenticator, 200), (clone, 401)):
            options = await options_of(page)
            assert (await by_passkey(page, options, key.get(options["publicKey"]))).status_code == status


async def test_passkey_is_bound_to_its_user_and_registered_once(service: Service) -> None:
    async with enrolled(service) as (page, authenticator), page_at(service) as second:
        assert code(await add(page, authenticator)) == (409, "passkey_known")
        hired = await staff(service, "agent", "other@example.com")
        await enter(second, hired["email"])
        assert code(await add(second, authenticator)) == (409, "passkey_known")
        assert (await add(second, Authenticator(origin_of(service)))).status_code == 200
        (theirs,) = (await page.get("/users/me/factors")).json()["passkeys"]
        answer = await second.delete(f"/users/me/factors/passkeys/{theirs['id']}")
        assert code(answer) == (404, "factor_not_found")
        removed = await page.delete(f"/users/me/factors/passkeys/{theirs['id']}")
        assert removed.json() == {"totp": None, "passkeys": [], "recoveryCodesLeft": 0}
        actions = [each["action"] for each in await trail(service)]
        assert "account.factor_removed" in actions


async def test_challenge_of_another_kind_or_user_is_refused(service: Service) -> None:
    async with enrolled(service) as (page, authenticator):
        options = await options_of(page)
        fresh = Authenticator(origin_of(service))
        begun = (await page.post("/users/me/factors/passkeys/options")).json()
        answer = fresh.create({**begun["publicKey"], "challenge": options["publicKey"]["challenge"]})
        body = {"challenge": options["challenge"], "credential": answer, "name": "x"}
        assert code(await page.post("/users/me/factors/passkeys", json=body)) == (401, "challenge_ended")
        wrong = {"challenge": begun["challenge"], "credential": authenticator.get(options["publicKey"])}
        assert code(await page.post("/auth/passkey", json=wrong)) == (401, "challenge_ended")


@pytest.mark.parametrize(
    "credential",
    [
        {"id": "x"},
        {"id": "AA", "rawId": "AA", "type": "public-key", "response": {}},
        {"id": 1, "rawId": [], "type": None, "response": "x"},
        {"id": "é", "rawId": "é", "type": "public-key", "response": {"userHandle": "é"}},
    ],
)
async def test_malformed_answers_are_refused(service: Service, credential: dict[str, Any]) -> None:
    async with enrolled(service) as (page, authenticator):
        assert code(await by_passkey(page, await options_of(page), credential)) == (401, "invalid_passkey")
        options = (await page.post("/users/me/factors/passkeys/options")).json()
        body = {"challenge": options["challenge"], "credential": credential, "name": "x"}
        assert code(await page.post("/users/me/factors/passkeys", json=body)) == (401, "invalid_passkey")
        options = await options_of(page)
        good = authenticator.get(options["publicKey"])
        good["response"] |= {"authenticatorData": "AAAA", "userHandle": "é"}
        assert code(await by_passkey(page, options, good)) == (401, "invalid_passkey")


async def test_attestation_that_was_not_requested_is_refused(service: Service) -> None:
    statement = {"alg": -7, "sig": b"x", "x5c": [b"no certificate"]}
    async with enrolled(service) as (page, authenticator):
        for form in ("android-key", "tpm", "apple", "fido-u2f", "android-safetynet", "packed"):
            options = (await page.post("/users/me/factors/passkeys/options")).json()
            authenticator.attestation = (form, statement)
            credential = authenticator.create(options["publicKey"])
            body = {"challenge": options["challenge"], "credential": credential, "name": "x"}
            assert code(await page.post("/users/me/factors/passkeys", json=body)) == (401, "invalid_passkey")


async def test_address_without_a_domain_has_no_passkeys(service: Service) -> None:
    async with browser(service) as page:
        assert (await page.get("/auth/methods")).json()["passkey"] is False
        assert code(await page.post("/auth/passkey/options")) == (409, "passkeys_unavailable")
