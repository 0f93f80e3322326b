"""OpenID providers that answer badly, slowly or for others, and what they report about their sessions."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from deskwire.engine.accounts.identity import provider_keys
from deskwire.engine.accounts.identity.oidc import answers
from deskwire.engine.accounts.identity.oidc import provider as connections
from deskwire.engine.accounts.identity.oidc.tokens import LOGOUT_EVENT
from deskwire.engine.accounts.identity.start_throttle import STARTS_PER_NETWORK, StartThrottle
from deskwire.engine.core.errors import TooManyRequests
from deskwire.engine.webhooks.http.address import AddressPolicy
from deskwire.program.oidc import GuardedTransport
from tests.support.api.openid import CLIENT_ID, SECRET, Browser, browsing, parameters, provider, state_of
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.identity_provider import Signer
from tests.support.sockets.issuer import (
    DISCOVERY,
    Issuer,
    dripping,
    endless,
    issuing,
    response,
    silent,
)

EXPIRED, REFUSED, UNREACHABLE = (
    f"/desk?signIn={code}" for code in ("sign_in_expired", "provider_refused", "provider_unreachable")
)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass
class Scene:
    """A service with two providers that follow a script, and a browser."""

    service: Service
    issuer: Issuer
    other: Issuer
    browser: Browser

    def grant(self, **claims: Any) -> None:
        """Let the token endpoint answer with an ID token of the demo's owner."""
        email = self.service.demo["user"]["email"]
        token = self.issuer.id_token(CLIENT_ID, **{"email": email, "email_verified": True, **claims})
        self.issuer.answers["/token"] = {"id_token": token, "access_token": "at", "token_type": "Bearer"}

    async def asked(self, **query: str) -> str:
        """Begin a sign-in; return its state, and give its nonce to the issuer."""
        url = await self.browser.start(**query)
        assert url.startswith(f"{self.issuer.url}/authorize?"), url
        self.issuer.nonce = parameters(url)["nonce"]
        return state_of(url)

    async def back(self, state: str, **query: str) -> str:
        """Come back with an answer."""
        given = httpx.QueryParams({"state": state, "code": "c1", **query})
        return await self.browser.come_back(f"/v3/auth/oidc/callback?{given}")

    async def sign_in(self, **claims: Any) -> str:
        """Sign in, with these claims in the ID token."""
        state = await self.asked()
        self.grant(**claims)
        return await self.back(state)

    async def report(self, token: str, **headers: str) -> httpx.Response:
        """Send a logout token, as the issuer would."""
        url = f"{self.service.url}/v3/auth/oidc/backchannel-logout"
        return await self.browser.http.post(url, data={"logout_token": token}, headers=headers)

    def logout_token(self, **claims: Any) -> str:
        """Return a logout token of the issuer."""
        now = int(time.time())
        given = {"iat": now, "exp": now + 60, "jti": f"j{time.monotonic_ns()}", "sub": "u1"}
        events: dict[str, Any] = {"events": {LOGOUT_EVENT: {}}}
        return self.issuer.signer.token(
            **{"iss": self.issuer.url, "aud": CLIENT_ID, **given, **events, **claims}
        )


@asynccontextmanager
async def scene(folder: Path, **settings: Any) -> AsyncIterator[Scene]:
    async with issuing() as issuer, issuing() as other:
        named = (provider(folder, issuer.url, **settings), provider(folder, other.url, "other"))
        async with running(folder / "data", oidc_named=named) as service, browsing(service) as browser:
            yield Scene(service, issuer, other, browser)


async def test_client_sends_its_secret_and_the_verifier_of_its_challenge(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        assert await at.sign_in() == "/desk"
        (request,) = at.issuer.asked("/token")
        user, _, password = (
            base64.b64decode(request.headers["authorization"].split()[1]).decode().partition(":")
        )
        assert (user, password) == (CLIENT_ID, SECRET.replace(" ", "%20").replace("&", "%26"))
        assert request.form["redirect_uri"] == f"{at.service.url}/v3/auth/oidc/callback"
        assert len(request.form["code_verifier"]) == 43
        assert request.form["code_verifier"] != parameters(await at.browser.start())["code_challenge"]


async def test_secret_in_the_body_and_public_clients(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
        assert await at.sign_in() == "/desk"
        (request,) = at.issuer.asked("/token")
        assert "authorization" not in request.headers
        assert (request.form["client_id"], request.form["client_secret"]) == (CLIENT_ID, SECRET)
    async with scene(tmp_path, client_secret_file=None) as at:
        assert await at.sign_in() == "/desk"
        (request,) = at.issuer.asked("/token")
        assert "authorization" not in request.headers
        assert (request.form["client_id"], request.form.get("client_secret")) == (CLIENT_ID, None)


async def test_missing_address_and_groups_come_from_the_userinfo_endpoint(tmp_path: Path) -> None:
    async with scene(tmp_path, role_claim="groups", roles={"staff": "admin"}) as at:
        email = at.service.demo["user"]["email"]
        at.issuer.metadata["userinfo_endpoint"] = f"{at.issuer.url}/me"
        at.issuer.answers["/me"] = {"sub": "u1", "email": email, "email_verified": True, "groups": ["staff"]}
        assert await at.sign_in(email=None, email_verified=None) == "/desk"
        (request,) = at.issuer.asked("/me")
        assert request.headers["authorization"] == "Bearer at"
        at.issuer.answers["/me"]["sub"] = "u2"
        assert await at.sign_in(email=None) == REFUSED
        assert await at.sign_in(groups=["staff"]) == "/desk"
        assert len(at.issuer.asked("/me")) == 2, "it is not asked where nothing is missing"


async def test_answer_of_another_issuer_is_refused_before_the_code_is_sent(tmp_path: Path) -> None:
    """Mix-up (RFC 9207): the code of this provider must not go to the token endpoint of another one."""
    async with scene(tmp_path) as at:
        at.grant()
        state = await at.asked()
        assert await at.back(state, iss=at.other.url) == REFUSED
        state = await at.asked()
        assert await at.back(state, iss=f"{at.issuer.url}/") == REFUSED
        assert at.issuer.asked("/token") + at.other.asked("/token") == []
        state = await at.asked()
        at.grant()
        assert await at.back(state, iss=at.issuer.url) == "/desk"
    async with scene(tmp_path) as at:
        at.issuer.metadata["authorization_response_iss_parameter_supported"] = True
        assert await at.sign_in() == REFUSED, "a provider that names its issuer always does"
        assert at.issuer.asked("/token") == []


async def test_token_of_another_provider_or_request_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        for claims in (
            {"iss": at.other.url},
            {"aud": "another-client"},
            {"nonce": "another"},
            {"exp": int(time.time()) - 60},
        ):
            assert await at.sign_in(**claims) == REFUSED, claims
        at.issuer.signer, right = at.other.signer, at.issuer.signer
        at.issuer.answers["/jwks"] = {"keys": [right.jwk()]}
        assert await at.sign_in() == REFUSED, "signed with the other provider's key"
        assert (await at.browser.session())["user"] is None
        state = await at.asked()
        at.issuer.answers["/token"] = {"access_token": "at", "token_type": "Bearer"}
        assert await at.back(state) == REFUSED, "an answer without an ID token"
        state = await at.asked()
        assert await at.browser.come_back(f"/v3/auth/oidc/callback?state={state}") == REFUSED, "no code"


async def test_rotated_keys_are_fetched_when_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_keys, "FETCH_INTERVAL_MIN_S", 0.0)
    async with scene(tmp_path) as at:
        assert await at.sign_in() == "/desk"
        at.issuer.signer = Signer("ES256", "k2")
        assert await at.sign_in() == "/desk"
        at.issuer.signer = Signer("ES256", "k2")  # a new key with the old id
        assert await at.sign_in() == "/desk"


SLOW_OR_BAD = {
    "silent": silent,
    "endless": endless,
    "dripping": dripping,
    "huge": response(b'{"x":"' + b"y" * 300_000 + b'"}'),
    "redirect": response(b"{}", 302, "Location: http://169.254.169.254/latest/meta-data"),
    "compressed": response(b"\x1f\x8b", 200, "Content-Encoding: gzip"),
    "not JSON": response(b"<html>"),
    "a list": response(b"[]"),
    "error": response(b"{}", 500),
    "closed": b"",
}


@pytest.mark.parametrize("kind", SLOW_OR_BAD)
async def test_bad_answers_end_the_sign_in_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(answers, "ANSWER_TIMEOUT_S", 0.5)
    monkeypatch.setattr(provider_keys, "FETCH_TIMEOUT_S", 0.5)
    monkeypatch.setattr(provider_keys, "FETCH_INTERVAL_MIN_S", 0.0)
    monkeypatch.setattr(connections, "RETRY_INTERVAL_S", 0.0)
    async with scene(tmp_path) as at:
        at.issuer.answers[DISCOVERY] = SLOW_OR_BAD[kind]
        assert await at.browser.start() == UNREACHABLE
        del at.issuer.answers[DISCOVERY]
        state = await at.asked()
        at.issuer.answers["/token"] = SLOW_OR_BAD[kind]
        assert await at.back(state) == UNREACHABLE
        at.issuer.answers["/jwks"] = SLOW_OR_BAD[kind]
        assert await at.sign_in() == UNREACHABLE
        del at.issuer.answers["/jwks"]
        places = [await at.sign_in(), await at.sign_in()]  # the first may wait for a fetch that began before
        assert places[-1] == "/desk", "the provider is well again"
        assert all(each.path != "/latest/meta-data" for each in at.issuer.requests)


async def test_outage_of_the_metadata_is_bridged_by_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "METADATA_REFRESH_S", 0.0)
    async with scene(tmp_path) as at:
        assert await at.sign_in() == "/desk"
        at.issuer.answers[DISCOVERY] = response(b"{}", 503)
        assert await at.sign_in() == "/desk"
        assert len(at.issuer.asked(DISCOVERY)) >= 3


async def test_metadata_of_another_issuer_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.issuer.metadata["issuer"] = at.other.url
        assert await at.browser.start() == UNREACHABLE


async def test_refused_code_says_so(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        state = await at.asked()
        at.issuer.answers["/token"] = response(b'{"error":"invalid_grant\\r\\nforged line"}', 400)
        assert await at.back(state) == REFUSED


async def test_reported_logout_ends_sessions_and_streams_at_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as at, browsing(at.service) as second:
        assert await at.sign_in(sid="s1") == "/desk"
        first, at.browser = at.browser, second
        assert await at.sign_in(sid="s2") == "/desk"
        cookie = {"Cookie": f"deskwire={first.cookies['deskwire']}"}
        parameters_ = {"project": at.service.demo["projectId"]}
        with trio.fail_after(HANG_TIMEOUT_S):
            async with first.http.stream(
                "GET", f"{at.service.url}/v3/stream", params=parameters_, headers=cookie
            ) as stream:
                assert stream.status_code == 200
                lines = stream.aiter_lines()
                await anext(lines)
                answer = await at.report(at.logout_token(sub=None, sid="s1"))
                began = trio.current_time()
                assert (answer.status_code, answer.json()) == (200, {"ended": 1})
                async for _ in lines:
                    pass
                assert trio.current_time() - began < 1
        assert (await first.session())["user"] is None
        assert (await second.session())["user"] is not None
        answer = await at.report(at.logout_token())
        assert answer.json() == {"ended": 1}
        assert (await second.session())["user"] is None


async def test_logout_token_counts_once_and_for_its_own_provider(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        assert await at.sign_in() == "/desk"
        for token in (
            at.logout_token(iss=at.other.url),
            at.logout_token(iss="https://nobody.test"),
            at.logout_token(aud="other"),
            at.logout_token(nonce="n"),
            at.logout_token(events=None),
            at.logout_token(exp=int(time.time()) - 60),
            Signer("RS256", "k1").token(iss=at.issuer.url),
            at.issuer.id_token(CLIENT_ID),
            "x",
            "",
        ):
            answer = await at.report(token)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_logout_token"), token
        unknown = await at.report(at.logout_token(sub="stranger"))
        assert unknown.json() == {"ended": 0}
        assert (await at.browser.session())["user"] is not None
        token = at.logout_token(sid="not stored")
        assert (await at.report(token)).json() == {"ended": 1}, (
            "the sign-in gave no sid, and the user is named"
        )
        assert await at.sign_in() == "/desk"
        assert (await at.report(token)).status_code == 400, "replayed"
        assert (await at.browser.session())["user"] is not None
        url = f"{at.service.url}/v3/auth/oidc/backchannel-logout"
        for content, headers in ((b'{"logout_token":"x"}', {}), (b"logout_token=a&logout_token=b", FORM)):
            answer = await at.browser.http.post(url, content=content, headers=headers)
            assert answer.json()["code"] == "invalid_logout_token"


async def test_logout_that_cant_be_checked_now_is_answered_for_a_repetition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "RETRY_INTERVAL_S", 0.0)
    async with scene(tmp_path) as at:
        at.issuer.answers[DISCOVERY] = response(b"{}", 503)
        answer = await at.report(at.logout_token())
        assert (answer.status_code, answer.json()["code"]) == (503, "provider_unreachable")


async def test_starts_are_limited_by_network() -> None:
    starts = StartThrottle(lambda: 0.0)
    for _ in range(STARTS_PER_NETWORK):
        starts.take("203.0.113.0")
    with pytest.raises(TooManyRequests):
        starts.take("203.0.113.0")
    starts.take("198.51.100.0")
    starts.take(None)


async def test_other_hosts_than_the_issuers_must_be_public() -> None:
    """The issuer's metadata must not make the service call its own network (SSRF)."""
    reached: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        reached.append(
            f"{request.url.host} {request.headers['host']} {request.extensions.get('sni_hostname')}"
        )
        return httpx.Response(200, json={})

    guarded = GuardedTransport("idp.internal", AddressPolicy(), httpx.MockTransport(answer))
    async with httpx.AsyncClient(transport=guarded) as http:
        await http.get("https://IDP.internal/.well-known/openid-configuration")
        for host in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "localhost"):
            with pytest.raises(httpx.ConnectError):
                await http.get(f"https://{host}/token")
        await http.get("https://93.184.216.34/jwks")
    assert reached == [
        "idp.internal idp.internal None",
        "93.184.216.34 93.184.216.34 93.184.216.34",
    ]
