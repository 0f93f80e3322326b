"""The recorded calls about identity providers: a sign-in, a reported logout, and an identity that is unlinked."""

from __future__ import annotations

import time
from typing import Any

import httpx

from deskwire.engine.accounts.identity.oidc.tokens import LOGOUT_EVENT
from tests.api.audit.stage import CLIENT, Call, Stage, done
from tests.support.api.openid import CLIENT_ID, Browser, parameters


async def answered(stage: Stage) -> Call:
    """Begin a sign-in; return the call with the provider's answer."""
    async with httpx.AsyncClient(headers={"X-Forwarded-For": CLIENT}) as http:
        browser = Browser(stage.service, http)
        asked = parameters(await browser.start())
        cookies = browser.cookies
    stage.issuer.nonce = asked["nonce"]
    email = stage.service.demo["user"]["email"]
    token = stage.issuer.id_token(CLIENT_ID, email=email, email_verified=True)
    stage.issuer.answers["/token"] = {"id_token": token, "access_token": "at", "token_type": "Bearer"}

    async def complete() -> httpx.Response:
        async with httpx.AsyncClient(headers={"X-Forwarded-For": CLIENT}) as http:
            path = f"/v3/auth/oidc/callback?code=c1&state={asked['state']}"
            return await Browser(stage.service, http, {**cookies}).go(path)

    return complete


async def complete_oidc_sign_in(stage: Stage) -> Any:
    return done(await answered(stage), "user")


async def end_oidc_sessions(stage: Stage) -> Any:
    await (await answered(stage))()
    now = int(time.time())
    claims = {
        "iss": stage.issuer.url,
        "aud": CLIENT_ID,
        "sub": "u1",
        "iat": now,
        "exp": now + 60,
        "jti": "j1",
    }
    token = stage.issuer.signer.token(**claims, events={LOGOUT_EVENT: {}})

    async def report() -> httpx.Response:
        async with httpx.AsyncClient(headers={"X-Forwarded-For": CLIENT}) as http:
            url = f"{stage.service.url}/v3/auth/oidc/backchannel-logout"
            return await http.post(url, data={"logout_token": token})

    return done(report, "anonymous", details={"sessions": 1})


async def unlink_identity(stage: Stage) -> Any:
    await (await answered(stage))()
    (identity,) = (await stage.owner.get("/users/me/identities")).json()["items"]
    path = f"/users/me/identities/{identity['id']}"
    details = {"provider": "oidc", "identity": identity["id"]}
    return done(lambda: stage.owner.delete(path), "user", details=details)
