"""Signed identities of customers: the keys of the channel count, one algorithm each, and nothing in the token does."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.channels.channel import Channel, Look, PublicKey
from deskwire.engine.core.errors import Unauthenticated
from deskwire.engine.customers.identity import (
    IDENTITY_MAX,
    LEEWAY_S,
    LIFETIME_MAX_S,
    SignedIdentity,
    verify_identity,
)

ID = "chn_01KZ000000000000000000WDGT"
NOW = 1_793_534_400
SECRET = "chs_" + "s" * 43
PREVIOUS = "chs_" + "p" * 43


def private_key(algorithm: str, number: int = 0) -> Any:
    """Return a private key of an algorithm, the same for the same number."""
    return _made(algorithm, number)


@cache
def _made(algorithm: str, number: int) -> Any:
    if algorithm == "RS256":
        return generate_rsa_key(65537, 2048)
    return generate_private_key(SECP256R1()) if algorithm == "ES256" else Ed25519PrivateKey.generate()


def pem(algorithm: str, number: int = 0) -> str:
    """Return the public key as it is registered."""
    public = private_key(algorithm, number).public_key()
    text: bytes = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return text.decode()


def channel(*keys: PublicKey) -> Channel:
    """Return a channel with these public keys."""
    return Channel(
        1, ID, 1, "widget", "Shop", True, (), "optional", keys, True, (), Look(), None, None, False, b"", "", 0, 0
    )  # fmt: skip


KEYED = channel(
    PublicKey("e1", "ES256", pem("ES256")),
    PublicKey("e2", "ES256", pem("ES256", 1)),
    PublicKey("d1", "EdDSA", pem("EdDSA")),
    PublicKey("r1", "RS256", pem("RS256")),
)


def claims(**changed: Any) -> dict[str, Any]:
    """Return valid claims with some of them changed; None removes one."""
    given_ = {"sub": "u1", "aud": ID, "exp": NOW + 600, **changed}
    return {name: value for name, value in given_.items() if value is not None}


def hs256(secret: str = SECRET, headers: dict[str, Any] | None = None, **changed: Any) -> str:
    """Return an identity signed with a secret."""
    return jwt.encode(claims(**changed), secret, algorithm="HS256", headers=headers)


def by_hand(header: object, body: object, key: bytes = SECRET.encode()) -> str:
    """Return a token with any header and body, signed by HMAC-SHA-256."""
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in (header, body)]
    signature = base64.urlsafe_b64encode(hmac.digest(key, b".".join(parts), hashlib.sha256)).rstrip(b"=")
    return b".".join((*parts, signature)).decode()


def verify(token: str, of: Channel = KEYED, now: int = NOW) -> SignedIdentity:
    """Return the identity in a token."""
    return verify_identity(of, (SECRET, PREVIOUS), token, now * 1000)


def refusal(token: str, of: Channel = KEYED, now: int = NOW) -> tuple[str, str]:
    """Return the code and the detail of a refusal."""
    with pytest.raises(Unauthenticated) as refused:
        verify(token, of, now)
    return refused.value.reason, refused.value.detail


@pytest.mark.parametrize("secret", [SECRET, PREVIOUS])
def test_identity_signed_with_either_secret_is_accepted(secret: str) -> None:
    found = verify(hs256(secret, name="Ada", attributes={"plan": "pro"}, jti=7, role="admin"))
    assert found == SignedIdentity("u1", {"name": "Ada", "attributes": {"plan": "pro"}})


@pytest.mark.parametrize(("algorithm", "kid"), [("ES256", "e1"), ("EdDSA", "d1"), ("RS256", "r1")])
@pytest.mark.parametrize("named", [True, False])
def test_identity_signed_with_registered_key_is_accepted(algorithm: str, kid: str, named: bool) -> None:
    headers = {"kid": kid} if named else None
    token = jwt.encode(claims(), private_key(algorithm), algorithm=algorithm, headers=headers)
    assert verify(token).user_id == "u1"


def test_second_key_of_an_algorithm_is_accepted_while_keys_rotate() -> None:
    token = jwt.encode(claims(), private_key("ES256", 1), algorithm="ES256")
    assert verify(token).user_id == "u1"
    wrong = jwt.encode(claims(), private_key("ES256", 1), algorithm="ES256", headers={"kid": "e1"})
    assert refusal(wrong) == (
        "identity_invalid",
        "The identity is not valid. Its signature was not made with a key of this channel.",
    )


def test_audience_may_be_a_list() -> None:
    assert verify(hs256(aud=["other", ID])).user_id == "u1"


# Each with a word that the detail must have.
FORGED: Final[Mapping[str, tuple[Callable[[], str], str]]] = {
    "another secret": (lambda: hs256("chs_" + "x" * 43), "signature"),
    "empty secret": (lambda: by_hand({"alg": "HS256"}, claims(), b""), "signature"),
    "public key as secret": (lambda: by_hand({"alg": "HS256"}, claims(), pem("RS256").encode()), "signature"),
    "public key as secret, named": (
        lambda: by_hand({"alg": "HS256", "kid": "r1"}, claims(), pem("RS256").encode()),
        "signature",
    ),
    "no algorithm": (lambda: by_hand({"typ": "JWT"}, claims()), "alg"),
    "none": (lambda: jwt.encode(claims(), None, algorithm="none"), "alg"),  # type: ignore[arg-type]
    "None": (lambda: by_hand({"alg": "None"}, claims()), "alg"),
    "another hash": (lambda: jwt.encode(claims(), SECRET * 2, algorithm="HS512"), "alg"),
    "list of algorithms": (lambda: by_hand({"alg": ["HS256"]}, claims()), "alg"),
    "RS256 of an HMAC": (lambda: by_hand({"alg": "RS256"}, claims()), "signature"),
    "unregistered key": (lambda: jwt.encode(claims(), private_key("EdDSA", 7), algorithm="EdDSA"), "signature"),
    "embedded key": (
        lambda: jwt.encode(
            claims(), private_key("ES256", 7), algorithm="ES256", headers={"jwk": {"kty": "EC"}, "jku": "https://x"}
        ),
        "signature",
    ),
    "unknown kid": (
        lambda: jwt.encode(claims(), private_key("ES256"), algorithm="ES256", headers={"kid": "e9"}),
        "kid",
    ),
    "kid as a path": (
        lambda: jwt.encode(claims(), private_key("ES256"), algorithm="ES256", headers={"kid": "../../dev/null"}),
        "kid",
    ),
    "kid of another algorithm": (
        lambda: jwt.encode(claims(), private_key("ES256"), algorithm="ES256", headers={"kid": "r1"}),
        "kid",
    ),
    "kid that is no text": (lambda: by_hand({"alg": "ES256", "kid": 1}, claims()), "JWT"),
    "critical extension": (lambda: by_hand({"alg": "HS256", "crit": ["b64"], "b64": False}, claims()), ""),
    "another channel": (lambda: hs256(aud="chn_01KZ0000000000000000000THR"), "aud"),
    "no audience": (lambda: hs256(aud=None), "aud"),
    "empty list of audiences": (lambda: hs256(aud=[]), "aud"),
    "no subject": (lambda: hs256(sub=None), "sub"),
    "empty subject": (lambda: hs256(sub=""), "sub"),
    "blank subject": (lambda: hs256(sub="  "), "sub"),
    "long subject": (lambda: hs256(sub="u" * 256), "sub"),
    "NUL in subject": (lambda: hs256(sub="u\0"), "sub"),
    "number as subject": (lambda: by_hand({"alg": "HS256"}, claims(sub=7)), "sub"),
    "no expiry": (lambda: hs256(exp=None), "exp"),
    "late expiry": (lambda: hs256(exp=NOW + LIFETIME_MAX_S + LEEWAY_S + 1), "24 hours"),
    "expiry in milliseconds": (lambda: hs256(exp=(NOW + 600) * 1000), "24 hours"),
    "infinite expiry": (lambda: by_hand({"alg": "HS256"}, claims(exp=float("inf"))), ""),
    "expiry beyond all floats": (lambda: by_hand({"alg": "HS256"}, claims(exp=10**400)), "24 hours"),
    "start beyond all floats": (lambda: by_hand({"alg": "HS256"}, claims(nbf=10**400)), "nbf"),
    "text as expiry": (lambda: by_hand({"alg": "HS256"}, claims(exp="tomorrow")), "exp"),
    "true as expiry": (lambda: by_hand({"alg": "HS256"}, claims(exp=True)), "exp"),
    "not valid yet": (lambda: hs256(nbf=NOW + LEEWAY_S + 1), "nbf"),
    "half a surrogate pair": (lambda: by_hand({"alg": "HS256"}, claims(name="\ud800")), "surrogate"),
    "no JWT": (lambda: "eyJ", "JWT"),
    "five parts": (lambda: f"{hs256()}.a.b", "JWT"),
    "blank in front": (lambda: f" {hs256()}", "JWT"),
    "list as body": (lambda: by_hand({"alg": "HS256"}, [1]), "JWT"),
    "huge": (lambda: hs256(padding="x" * IDENTITY_MAX), "characters"),
    "deeply nested header": (lambda: "." .join((base64.urlsafe_b64encode(b"[" * 9000).decode(), "e30", "")), "JWT"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORGED)
def test_forged_identity_is_refused_with_its_reason(kind: str) -> None:
    make, word = FORGED[kind]
    token = make()
    code, detail = refusal(token)
    assert code == "identity_invalid"
    assert word in detail
    assert token not in detail


def test_alg_confusion_is_refused_even_without_a_secret_in_use() -> None:
    for key in (pem("RS256"), pem("ES256"), pem("RS256").strip()):
        assert refusal(by_hand({"alg": "HS256"}, claims(), key.encode()))[0] == "identity_invalid"


def test_channel_without_public_keys_takes_secrets_only() -> None:
    token = jwt.encode(claims(), private_key("ES256"), algorithm="ES256")
    assert refusal(token, channel()) == (
        "identity_invalid",
        "The identity is not valid. The channel has no key for ES256.",
    )


@pytest.mark.parametrize("skew", [-LEEWAY_S, LEEWAY_S])
def test_clocks_may_differ_by_the_leeway(skew: int) -> None:
    assert (
        verify(hs256(exp=NOW + 1 if skew > 0 else NOW + LIFETIME_MAX_S, nbf=NOW), now=NOW + skew).user_id
        == "u1"
    )


def test_expired_identity_has_a_code_of_its_own() -> None:
    token = hs256(exp=NOW)
    assert verify(token, now=NOW + LEEWAY_S - 1).user_id == "u1"
    assert refusal(token, now=NOW + LEEWAY_S)[0] == "identity_expired"
    forged = hs256("chs_" + "x" * 43, exp=NOW - 7)  # of a forged one nothing is said about its time
    assert refusal(forged)[0] == "identity_invalid"


@given(
    st.text(max_size=200) | st.binary(max_size=120).map(lambda data: base64.urlsafe_b64encode(data).decode())
)
def test_any_text_is_refused_as_invalid(text: str) -> None:
    assert refusal(text)[0] == "identity_invalid"


@given(
    st.dictionaries(
        st.sampled_from(["alg", "kid", "crit", "b64", "typ"]),
        st.none() | st.text() | st.integers() | st.lists(st.text()),
    )
)
def test_any_header_is_refused_or_of_the_right_key(header: dict[str, Any]) -> None:
    token = by_hand(header, claims(), b"another key, which is as long as ours is")
    assert refusal(token)[0] == "identity_invalid"
