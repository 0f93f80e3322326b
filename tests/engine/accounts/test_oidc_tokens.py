"""Checks of ID tokens and logout tokens: forged, replayed, expired and meant for others."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.identity.oidc.tokens import (
    LOGOUT_EVENT,
    BadToken,
    ExpectedToken,
    checked_id_token,
    checked_logout_token,
    issuer_named,
)
from deskwire.engine.accounts.identity.provider_keys import KeySet, VerifyingKey, parse_jwks
from tests.support.sockets.identity_provider import Kind, Signer, jwks

ISSUER, CLIENT, NONCE = "https://idp.test", "desk", "n-0S6_WzA2Mj"
NOW = int(time.time())
SIGNERS: dict[Kind, Signer] = {kind: Signer(kind, kind) for kind in ("RS256", "ES256", "EdDSA")}
RSA = SIGNERS["RS256"]


class Keys:
    """A key source without a network; `later` is what a refresh finds."""

    def __init__(self, now: KeySet, later: KeySet | None = None) -> None:
        self.now, self.later = now, later

    async def find(self, kid: str | None, algorithm: str) -> VerifyingKey | None:
        found = self.now.find(kid, algorithm)
        return found if found is not None or self.later is None else self.later.find(kid, algorithm)

    async def find_replaced(self, key: VerifyingKey) -> VerifyingKey | None:
        return None if self.later is None else self.later.find(key.kid, key.algorithm)

    async def run(self) -> None:
        raise AssertionError("there is nothing to refresh")


ALL = Keys(parse_jwks(jwks(*SIGNERS.values())))


def claims(**changes: Any) -> dict[str, Any]:
    """Return good claims with changes; None leaves a claim out."""
    return {
        "iss": ISSUER,
        "aud": CLIENT,
        "sub": "u1",
        "exp": NOW + 60,
        "iat": NOW,
        "nonce": NONCE,
        **changes,
    }


async def check(token: str, keys: Keys = ALL, **expected: Any) -> dict[str, Any]:
    """Return the claims of an ID token."""
    wanted = ExpectedToken(ISSUER, CLIENT, NONCE, **expected)
    return {**await checked_id_token(token, keys, wanted, NOW)}


@pytest.mark.parametrize("kind", SIGNERS)
async def test_token_of_each_algorithm_is_accepted(kind: Kind) -> None:
    assert (await check(SIGNERS[kind].token(**claims())))["sub"] == "u1"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"iss": "https://evil.test"}, "iss"),
    ({"iss": f"{ISSUER}/"}, "iss"),
    ({"iss": None}, "iss"),
    ({"aud": "other"}, "aud"),
    ({"aud": ["other"]}, "aud"),
    ({"aud": []}, "aud"),
    ({"aud": None}, "aud"),
    ({"aud": {"desk": 1}}, "aud"),
    ({"aud": [CLIENT, "other"]}, "azp"),
    ({"aud": [CLIENT, "other"], "azp": "other"}, "azp"),
    ({"azp": "other"}, "azp"),
    ({"azp": ["desk"]}, "azp"),
    ({"exp": NOW - 31}, "expired"),
    ({"exp": None}, "exp"),
    ({"exp": "tomorrow"}, "exp"),
    ({"exp": True}, "exp"),
    ({"iat": None}, "iat"),
    ({"iat": NOW + 31}, "future"),
    ({"nbf": NOW + 31}, "future"),
    ({"iat": NOW - 700}, "too long ago"),
    ({"nonce": "another"}, "nonce"),
    ({"nonce": None}, "nonce"),
    ({"nonce": [NONCE]}, "nonce"),
    ({"sub": None}, "sub"),
    ({"sub": ""}, "sub"),
    ({"sub": "x" * 256}, "sub"),
    ({"sub": 7}, "sub"),
    ({"events": {LOGOUT_EVENT: {}}}, "logout token"),
]


@pytest.mark.parametrize(("changes", "reason"), REFUSED, ids=range(len(REFUSED)))
async def test_id_token_with_a_wrong_claim_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadToken, match=reason):
        await check(
            RSA.token(**claims(**changes)) if changes.get("sub", "") != 7 else _raw(claims(**changes))
        )


def _raw(payload: dict[str, Any]) -> str:
    """Sign claims that PyJWT refuses to sign."""
    return jwt.api_jws.encode(json.dumps(payload).encode(), RSA.key, "RS256", {"kid": "RS256"})


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": NOW - 29},
        {"iat": NOW + 29},
        {"nbf": NOW + 29},
        {"aud": [CLIENT]},
        {"aud": [CLIENT, "other"], "azp": CLIENT},
        {"azp": CLIENT},
    ],
)
async def test_clocks_may_differ_by_half_a_minute(changes: dict[str, Any]) -> None:
    await check(RSA.token(**claims(**changes)))


def forged(header: dict[str, Any], payload: dict[str, Any], secret: bytes | None) -> str:
    """Make a token by hand, as libraries refuse to."""

    def part(document: Any) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=")

    signed = part(header) + b"." + part(payload)
    mac = b"" if secret is None else hmac.digest(secret, signed, hashlib.sha256)
    return (signed + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")).decode()


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "RS512", "PS256", "", None, 7, "ES256"])
async def test_unsigned_token_and_hmac_with_the_public_key_are_refused(algorithm: Any) -> None:
    """RFC 8725, 2.1."""
    for secret in (None, RSA.pem(), jwks(RSA)):
        token = forged({"alg": algorithm, "kid": "RS256", "typ": "JWT"}, claims(), secret)
        with pytest.raises(BadToken):
            await check(token)


@pytest.mark.parametrize("kind", ["at+jwt", "application/at+jwt", "logout+jwt", "dpop+jwt", 7])
async def test_another_kind_of_token_is_no_id_token(kind: Any) -> None:
    token = jwt.api_jws.encode(json.dumps(claims()).encode(), RSA.key, "RS256", {"kid": "RS256", "typ": kind})
    with pytest.raises(BadToken, match=r"typ|JWT"):
        await check(token)


async def test_key_of_a_stranger_with_the_same_id_is_refused() -> None:
    stranger = Signer("RS256", "RS256")
    with pytest.raises(BadToken, match="signature"):
        await check(stranger.token(**claims()))
    with pytest.raises(BadToken, match="No key"):
        await check(Signer("RS256", "other").token(**claims()))


async def test_replaced_key_is_looked_up_again() -> None:
    renewed = Signer("RS256", "RS256")
    keys = Keys(parse_jwks(jwks(RSA)), later=parse_jwks(jwks(renewed)))
    assert (await check(renewed.token(**claims()), keys))["sub"] == "u1"


async def test_access_token_must_match_its_hash() -> None:
    for kind, digest in (("RS256", hashlib.sha256), ("ES256", hashlib.sha256), ("EdDSA", hashlib.sha512)):
        half = digest(b"access").digest()
        named = base64.urlsafe_b64encode(half[: len(half) // 2]).rstrip(b"=").decode()
        token = SIGNERS[kind].token(**claims(at_hash=named))  # type: ignore[index]
        await check(token, access_token="access")
        for other in ("other", None):
            with pytest.raises(BadToken, match="at_hash"):
                await check(token, access_token=other)


@pytest.mark.parametrize("auth_time", [None, NOW - 31, "now", True], ids=["none", "early", "text", "bool"])
async def test_proof_needs_a_sign_in_after_its_start(auth_time: Any) -> None:
    await check(RSA.token(**claims(auth_time=NOW - 29)), signed_in_since=NOW)
    with pytest.raises(BadToken, match="auth_time"):
        await check(RSA.token(**claims(auth_time=auth_time)), signed_in_since=NOW)


def logout(**changes: Any) -> dict[str, Any]:
    """Return good claims of a logout token with changes."""
    events: dict[str, Any] = {LOGOUT_EVENT: {}}
    return {
        "iss": ISSUER,
        "aud": CLIENT,
        "iat": NOW,
        "exp": NOW + 60,
        "jti": "j1",
        "sub": "u1",
        "sid": "s1",
        "events": events,
        **changes,
    }


async def check_logout(token: str) -> Any:
    return await checked_logout_token(token, ALL, ISSUER, CLIENT, NOW)


async def test_logout_token_names_a_user_or_a_session() -> None:
    for changes in ({}, {"sub": None}, {"sid": None}, {"aud": [CLIENT, "other"]}):
        found = await check_logout(RSA.token(**logout(**changes)))
        assert found.subject == logout(**changes)["sub"]
        assert found.sid == logout(**changes)["sid"]
        assert NOW + 60 <= found.expires_at <= NOW + 120


LOGOUTS_REFUSED: list[dict[str, Any]] = [
    {"events": None},
    {"events": {}},
    {"events": [LOGOUT_EVENT]},
    {"events": {LOGOUT_EVENT: "x"}},
    {"events": {"http://schemas.openid.net/event/other": {}}},
    {"nonce": NONCE},
    {"jti": None},
    {"jti": ""},
    {"sub": None, "sid": None},
    {"sid": "x" * 256},
    {"aud": "other"},
    {"iss": "https://evil.test"},
    {"exp": NOW - 31},
    {"exp": None},
    {"iat": NOW - 3_700},
    {"iat": None},
]


@pytest.mark.parametrize("changes", LOGOUTS_REFUSED, ids=range(len(LOGOUTS_REFUSED)))
async def test_logout_token_with_a_wrong_claim_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadToken):
        await check_logout(RSA.token(**logout(**changes)))


async def test_id_token_is_no_logout_token() -> None:
    with pytest.raises(BadToken):
        await check_logout(RSA.token(**claims()))


@given(st.text() | st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_any_text_is_refused_as_a_token(text: str) -> None:
    for token in (text, f"{text}.{text}.{text}", f"e30.{text}."):
        with pytest.raises(BadToken):
            issuer_named(token)
