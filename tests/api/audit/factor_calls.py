"""The recorded calls about second factors."""

from __future__ import annotations

import base64
from typing import Any

import httpx

from deskwire.engine.accounts.factors.totp import totp_code
from deskwire.engine.core.clock import wall_clock
from tests.api.audit.account_calls import owners_session, page_of
from tests.api.audit.stage import Stage, done
from tests.support.api.browsers import PAGE, enter, staff
from tests.support.authenticator import Authenticator

_OWN = "/users/me/factors"


async def use_session(stage: Stage) -> None:
    """Let the owner's client call with a session instead of a token, which may not change factors."""
    stage.owner.cookies.update(await owners_session(stage))
    stage.owner.headers.pop("Authorization", None)
    stage.owner.headers.update(PAGE)


async def at_localhost(stage: Stage) -> Authenticator:
    """An authenticator for the owner, whose client calls at a domain from now on."""
    await use_session(stage)
    stage.owner.headers["Host"] = f"localhost:{stage.service.url.rpartition(':')[2]}"
    return Authenticator(f"http://{stage.owner.headers['Host']}")


async def creation(stage: Stage, key: Authenticator) -> dict[str, Any]:
    options = (await stage.owner.post(f"{_OWN}/passkeys/options")).json()
    answer = key.create(options["publicKey"])
    return {"challenge": options["challenge"], "credential": answer, "name": "Laptop"}


async def with_passkey(stage: Stage) -> tuple[Authenticator, dict[str, Any]]:
    key = await at_localhost(stage)
    answer = await stage.owner.post(f"{_OWN}/passkeys", json=await creation(stage, key))
    assert answer.status_code == 200, answer.text
    added: dict[str, Any] = answer.json()
    return key, added


async def pending_code(stage: Stage) -> dict[str, str]:
    secret = (await stage.owner.post(f"{_OWN}/totp")).json()["secret"]
    return {"code": totp_code(base64.b32decode(secret), wall_clock() // 30_000)}


async def confirm_totp(stage: Stage) -> Any:
    await use_session(stage)
    body = await pending_code(stage)
    call = f"{_OWN}/totp/confirm"
    return done(lambda: stage.owner.post(call, json=body), "user", details={"factor": "totp"})


async def remove_totp(stage: Stage) -> Any:
    await use_session(stage)
    await stage.owner.post(f"{_OWN}/totp/confirm", json=await pending_code(stage))
    return done(lambda: stage.owner.delete(f"{_OWN}/totp"), "user", details={"factor": "totp"})


async def add_passkey(stage: Stage) -> Any:
    body = await creation(stage, await at_localhost(stage))
    return done(
        lambda: stage.owner.post(f"{_OWN}/passkeys", json=body), "user", details={"factor": "passkey"}
    )


async def remove_passkey(stage: Stage) -> Any:
    _, added = await with_passkey(stage)
    path = f"{_OWN}/passkeys/{added['passkey']['id']}"
    return done(lambda: stage.owner.delete(path), "user", details={"factor": "passkey"})


async def renew_recovery_codes(stage: Stage) -> Any:
    await with_passkey(stage)
    details = {"factor": "recoveryCodes"}
    return done(lambda: stage.owner.post(f"{_OWN}/recovery-codes"), "user", details=details)


async def finish_sign_in(stage: Stage) -> Any:
    _, added = await with_passkey(stage)
    user = stage.service.demo["user"]

    async def finish() -> httpx.Response:
        async with page_of(stage) as page:
            challenge = (await enter(page, user["email"], user["password"])).json()["challenge"]["id"]
            body = {"challenge": challenge, "recoveryCode": added["recoveryCodes"][0]}
            return await page.post("/auth/session/factor", json=body)

    return done(finish, "user", details={"method": "password", "secondFactor": "recoveryCode"})


async def sign_in_by_passkey(stage: Stage) -> Any:
    key, _ = await with_passkey(stage)

    async def enter_by_key() -> httpx.Response:
        async with page_of(stage) as page:
            page.headers["Host"] = stage.owner.headers["Host"]
            options = (await page.post("/auth/passkey/options")).json()
            body = {"challenge": options["challenge"], "credential": key.get(options["publicKey"])}
            return await page.post("/auth/passkey", json=body)

    return done(enter_by_key, "user", details={"method": "passkey"})


async def reset_member_factors(stage: Stage) -> Any:
    hired = await staff(stage.service, "agent")
    path = f"{await stage.members()}/{hired['id']}/factors"
    return done(lambda: stage.owner.delete(path), "user")
