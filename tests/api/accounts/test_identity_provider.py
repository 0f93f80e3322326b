"""Tokens of an identity provider at the real service: taken, refused, rotated (decisions 2)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from deskwire.config.config import Config
from deskwire.engine.accounts.identity import provider_keys
from deskwire.program.serve import serve
from deskwire.program.signing import SigningError
from tests.support.api.service import Service, running
from tests.support.api.staff import client, code
from tests.support.sockets.admin_socket import operate
from tests.support.sockets.identity_provider import Kind, Signer, jwks, publishing


async def me(service: Service) -> str:
    """The demo owner's id."""
    (user,) = (await operate(service, "user.list"))["items"]
    return str(user["id"])


async def asked(service: Service, token: str) -> tuple[int, str]:
    """Status, and code or id, that a token is answered with."""
    async with client(service, token) as http:
        answer = await http.get("/users/me")
    return (200, answer.json()["id"]) if answer.status_code == 200 else code(answer)


@pytest.mark.parametrize("kind", ["RS256", "ES256", "EdDSA"])
async def test_a_token_of_each_kind_of_key_is_taken_beside_our_own(tmp_path: Path, kind: Kind) -> None:
    signer, stranger = Signer(kind), Signer(kind)
    (tmp_path / "public.pem").write_bytes(signer.pem())
    async with running(tmp_path / "data", jwt_public_key_file=tmp_path / "public.pem") as service:
        user = await me(service)
        assert await asked(service, signer.token(sub=user)) == (200, user)
        assert await asked(service, service.demo["token"]) == (200, user)
        assert await asked(service, stranger.token(sub=user)) == (401, "invalid_token")
        assert await asked(service, signer.token(sub=user, exp=int(time.time()) - 60)) == (
            401,
            "token_expired",
        )
        for claims in ({"sub": user, "exp": None}, {"sub": None}, {"sub": "usr_unknown"}):
            assert await asked(service, signer.token(**claims)) == (401, "invalid_token"), claims


async def test_the_public_key_is_no_secret_that_tokens_can_be_signed_with(tmp_path: Path) -> None:
    """RFC 8725, 2.1: neither `none` nor an HMAC with the public key as its secret."""
    signer = Signer("RS256", "key")
    (tmp_path / "public.pem").write_bytes(signer.pem())
    async with running(tmp_path / "data", jwt_public_key_file=tmp_path / "public.pem") as service:
        claims = {"sub": await me(service), "exp": int(time.time()) + 60}
        for algorithm, secret in (("HS256", signer.pem()), ("HS512", signer.pem()), ("none", b"")):
            assert await asked(service, forged(algorithm, claims, secret)) == (401, "invalid_token"), (
                algorithm
            )
        for unknown in ("RS512", "PS256", "ES256", "\u2603", 7, None):
            token = forged(unknown, claims, signer.pem())
            assert await asked(service, token) == (401, "invalid_token"), unknown


@pytest.mark.parametrize(
    ("required", "typ", "taken"),
    [
        (None, None, True),
        (None, "JWT", True),
        (None, "at+jwt", True),
        (None, "application/at+jwt", True),
        (None, "logout+jwt", False),
        (None, "dpop+jwt", False),
        ("at+jwt", "AT+JWT", True),
        ("at+jwt", "application/at+jwt", True),
        ("at+jwt", "JWT", False),
        ("at+jwt", None, False),
    ],
)
async def test_a_token_for_another_purpose_is_refused_by_its_type(
    tmp_path: Path, required: str | None, typ: str | None, taken: bool
) -> None:
    signer = Signer("ES256")
    (tmp_path / "public.pem").write_bytes(signer.pem())
    async with running(
        tmp_path / "data", jwt_public_key_file=tmp_path / "public.pem", jwt_type=required
    ) as service:
        user = await me(service)
        expected = (200, user) if taken else (401, "invalid_token")
        assert await asked(service, signer.token(typ=typ, sub=user)) == expected


async def test_a_logout_token_identifies_nobody_whatever_its_type(tmp_path: Path) -> None:
    """OpenID Connect Back-Channel Logout 2.4: the claim `events` marks one, `typ` only should."""
    signer = Signer("ES256")
    (tmp_path / "public.pem").write_bytes(signer.pem())
    async with running(tmp_path / "data", jwt_public_key_file=tmp_path / "public.pem") as service:
        events: dict[str, Any] = {"http://schemas.openid.net/event/backchannel-logout": {}}
        token = signer.token(sub=await me(service), events=events)
        assert await asked(service, token) == (401, "invalid_token")


def forged(algorithm: Any, claims: dict[str, Any], secret: bytes) -> str:
    """Make a token by hand, as libraries refuse to."""

    def part(document: Any) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=")

    signed = part({"alg": algorithm, "typ": "JWT"}) + b"." + part(claims)
    digest = hashlib.sha512 if algorithm == "HS512" else hashlib.sha256
    mac = hmac.digest(secret, signed, digest) if secret else b""
    return (signed + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")).decode()


UNSOUND = [
    {"sub": "\ud800"},
    {"sub": "usr_\udfffx"},
    {"name": {"given": ["\ud800"]}},
    {"\ud800": 1},
    {"exp": float("inf")},
    {"exp": float("nan")},
    {"nbf": float("inf")},
    {"iat": float("-inf")},
]


@pytest.mark.parametrize("claim", ["sub", "email"])
@pytest.mark.parametrize("claims", UNSOUND, ids=range(len(UNSOUND)))
async def test_claims_that_are_signed_and_no_text_are_refused_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], claims: dict[str, Any], claim: str
) -> None:
    """Send claims that a user may have typed, though the provider has signed them. No database takes half a surrogate pair."""
    signer = Signer("ES256")
    (tmp_path / "public.pem").write_bytes(signer.pem())
    settings = {"jwt_public_key_file": tmp_path / "public.pem", "jwt_user_claim": claim}
    async with running(tmp_path / "data", **settings) as service:
        known = {"sub": await me(service), "email": service.demo["user"]["email"], "email_verified": True}
        if claim == "email" and "sub" in claims:
            claims = {"email": claims["sub"]}
        token = signer.token(**{**known, **claims})
        async with client(service, token) as http:
            answer = await http.get("/users/me")
        assert code(answer) == (401, "invalid_token")
        assert "not valid" in answer.json()["detail"]
    assert "Traceback" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "claims",
    [{"typ": "ID"}, {"typ": "Refresh"}, {"typ": "Logout"}, {"nonce": "n"}, {"at_hash": "h"}, {"events": {}}],
    ids=range(6),
)
async def test_only_access_tokens_of_a_provider_are_taken(tmp_path: Path, claims: dict[str, Any]) -> None:
    """An ID token passes through browsers and other clients, so it must not open the API (ASVS 9.2.2)."""
    signer = Signer("ES256")
    (tmp_path / "public.pem").write_bytes(signer.pem())
    async with running(tmp_path / "data", jwt_public_key_file=tmp_path / "public.pem") as service:
        user = await me(service)
        assert await asked(service, signer.token(sub=user, **claims)) == (401, "invalid_token")
        good = {"sub": user, "exp": int(time.time()) + 60, "typ": "Bearer"}
        for kind, status in (("at+jwt", 200), ("application/AT+JWT", 200), ("JWT", 200), ("logout+jwt", 401)):
            token = jwt.encode(good, signer.key, algorithm="ES256", headers={"typ": kind})
            assert (await asked(service, token))[0] == status, kind


async def test_algorithm_that_is_not_allowed_is_refused_although_there_is_a_key(tmp_path: Path) -> None:
    signer = Signer("RS256", "rsa")
    (tmp_path / "jwks.json").write_bytes(jwks(signer, Signer("ES256", "ec")))
    settings = {"jwt_jwks_file": tmp_path / "jwks.json", "jwt_algorithms": ("ES256",)}
    async with running(tmp_path / "data", **settings) as service:
        assert await asked(service, signer.token(sub=await me(service))) == (401, "invalid_token")


async def test_issuer_and_audience_are_demanded_of_every_token_once_they_are_set(tmp_path: Path) -> None:
    signer = Signer("EdDSA")
    (tmp_path / "public.pem").write_bytes(signer.pem())
    settings = {
        "jwt_public_key_file": tmp_path / "public.pem",
        "jwt_issuer": "https://idp.test",
        "jwt_audience": "desk",
    }
    async with running(tmp_path / "data", **settings) as service:
        user = await me(service)
        good = {"sub": user, "iss": "https://idp.test", "aud": ["other", "desk"]}
        assert await asked(service, signer.token(**good)) == (200, user)
        assert await asked(service, service.demo["token"]) == (200, user)
        for wrong in ({"iss": "https://evil.test"}, {"iss": None}, {"aud": "other"}, {"aud": None}):
            assert await asked(service, signer.token(**{**good, **wrong})) == (401, "invalid_token"), wrong
        secret = (tmp_path / "data" / "secret").read_text().strip()
        bare = jwt.encode({"sub": user, "exp": int(time.time()) + 60}, secret, algorithm="HS256")
        assert await asked(service, bare) == (401, "invalid_token")


AUDIENCES = ["account", ["account"], ["account", "desk"], []]


@pytest.mark.parametrize("audience", AUDIENCES, ids=range(len(AUDIENCES)))
async def test_a_token_for_any_audience_is_taken_while_none_is_set(tmp_path: Path, audience: Any) -> None:
    """Decisions 2: `iss` and `aud` are checked when configured. Keycloak puts `aud: account` into every token."""
    signer = Signer("RS256")
    (tmp_path / "public.pem").write_bytes(signer.pem())
    async with running(tmp_path / "data", jwt_public_key_file=tmp_path / "public.pem") as service:
        user = await me(service)
        assert await asked(service, signer.token(sub=user, aud=audience, iss="https://idp.test")) == (
            200,
            user,
        )
        secret = (tmp_path / "data" / "secret").read_text().strip()
        own = jwt.encode(
            {"sub": user, "exp": int(time.time()) + 60, "aud": audience}, secret, algorithm="HS256"
        )
        assert await asked(service, own) == (200, user)


async def test_an_authorization_of_the_stream_opens_no_call(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as service:
        body = {
            "socket_id": "1.2",
            "channel_name": f"private-project-{service.demo['projectId']}",
            "consumerId": "mirror",
        }
        authorized = await service.http.post("/s2s/stream/auth", json=body)
        assert await asked(service, authorized.json()["auth"].partition(":")[2]) == (401, "invalid_token")


async def test_a_refusal_and_the_log_say_why_a_token_was_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signer, stranger = Signer("RS256", "known"), Signer("RS256", "known")
    (tmp_path / "jwks.json").write_bytes(jwks(signer))
    settings = {
        "jwt_jwks_file": tmp_path / "jwks.json",
        "jwt_issuer": "https://idp.test",
        "jwt_audience": "desk",
    }
    async with running(tmp_path / "data", **settings) as service:
        good = {"sub": await me(service), "iss": "https://idp.test", "aud": "desk"}
        refused = {
            "audience (`aud`)": signer.token(**{**good, "aud": "other"}),
            "no claim `aud`": signer.token(**{**good, "aud": None}),
            "issuer (`iss`)": signer.token(**{**good, "iss": "https://evil.test"}),
            "no claim `sub`": signer.token(**{**good, "sub": None}),
            "no claim `exp`": signer.token(**{**good, "exp": None}),
            "not valid yet (`nbf`)": signer.token(**good, nbf=int(time.time()) + 600),
            "signature was not made": stranger.token(**good),
            "No key of the identity provider": Signer("RS256", "unknown").token(**good),
            "algorithm is not accepted": forged("RS512", good, b""),
            "read as a JWT": "neither.a.token",
        }
        for reason, token in refused.items():
            async with client(service, token) as http:
                answer = await http.get("/users/me")
            assert code(answer) == (401, "invalid_token")
            assert reason in answer.json()["detail"], answer.json()
    lines = [each for each in capsys.readouterr().out.splitlines() if "identity.token_refused" in each]
    assert len(lines) == len(refused)
    for reason, line in zip(refused, lines, strict=True):
        assert reason in line
    assert all(token not in line for token in refused.values() for line in lines)


async def test_key_replaced_under_its_id_is_accepted_with_its_first_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_keys, "FETCH_INTERVAL_MIN_S", 0.0)
    before, after = Signer("ES256", "signing"), Signer("ES256", "signing")
    async with (
        publishing(jwks(before)) as publisher,
        running(tmp_path / "data", jwt_jwks_url=publisher.url) as service,
    ):
        user = await me(service)
        assert await asked(service, before.token(sub=user)) == (200, user)
        publisher.answer = jwks(after)
        assert await asked(service, after.token(sub=user)) == (200, user)
        assert await asked(service, before.token(sub=user)) == (401, "invalid_token")


async def test_a_verified_address_names_the_user_if_that_is_set(tmp_path: Path) -> None:
    signer = Signer("ES256")
    (tmp_path / "public.pem").write_bytes(signer.pem())
    settings = {"jwt_public_key_file": tmp_path / "public.pem", "jwt_user_claim": "email"}
    async with running(tmp_path / "data", **settings) as service:
        user = await me(service)
        claims = {"sub": "provider|17", "email": "Owner@demo.example", "email_verified": True}
        assert await asked(service, signer.token(**claims)) == (200, user)
        wrong: tuple[dict[str, Any], ...] = (
            {"email_verified": False},
            {"email_verified": None},
            {"email_verified": "true"},
            {"email": None},
            {"email": 5},
            {"email": "nobody@example.com"},
            {"sub": user, "email": None},
        )
        for change in wrong:
            assert await asked(service, signer.token(**{**claims, **change})) == (401, "invalid_token"), (
                change
            )


async def test_keys_are_fetched_from_a_url_and_their_absence_is_no_401(tmp_path: Path) -> None:
    signer = Signer("RS256", "first")
    async with publishing(jwks(signer)) as publisher:
        async with running(tmp_path / "data", jwt_jwks_url=publisher.url) as service:
            user = await me(service)
            assert await asked(service, signer.token(sub=user)) == (200, user)
            assert await asked(service, Signer("RS256", "unknown").token(sub=user)) == (401, "invalid_token")
            assert publisher.asked == 1
        publisher.status = 500
        async with running(tmp_path / "data", jwt_jwks_url=publisher.url) as service:
            async with client(service, signer.token(sub=user)) as http:
                answer = await http.get("/users/me")
            assert code(answer) == (503, "signing_keys_unavailable")
            assert answer.headers["Retry-After"] == "30"
            assert await asked(service, service.demo["token"]) == (200, user)


async def test_keys_that_cannot_be_read_stop_the_start(tmp_path: Path) -> None:
    for name in ("jwt_public_key_file", "jwt_jwks_file"):
        settings: dict[str, Any] = {name: tmp_path / "missing"}
        with pytest.RaisesGroup(SigningError, allow_unwrapped=True, flatten_subgroups=True):
            await serve(Config(data_dir=tmp_path / "data", port=0, **settings))
