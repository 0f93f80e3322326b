"""The public keys that are accepted, and the key that a token gets (RFC 7517, RFC 8725)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.identity.provider_keys import BadKeys, KeySet, parse_jwks, parse_pem
from tests.support.sockets.identity_provider import Kind, Signer, jwks

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["kty", "crv", "x", "n", "e", "use", "alg", "kid"]), inner)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", ["RS256", "ES256", "EdDSA"])
def test_a_public_key_in_pem_verifies_the_one_algorithm_of_its_type(kind: Kind) -> None:
    keys = parse_pem(Signer(kind).pem())
    assert [each.algorithm for each in keys.keys] == [kind]
    found = {name: keys.find(None, name) is not None for name in ("RS256", "ES256", "EdDSA", "HS256", "none")}
    assert [name for name, there in found.items() if there] == [kind]


@pytest.mark.parametrize("kind", ["RS256", "ES256", "EdDSA"])
def test_a_key_is_found_by_its_id_and_algorithm_together(kind: Kind) -> None:
    keys = parse_jwks(jwks(Signer("RS256", "one"), Signer("ES256", "two"), Signer("EdDSA", "three")))
    kid = {"RS256": "one", "ES256": "two", "EdDSA": "three"}[kind]
    assert keys.find(kid, kind) is not None
    assert keys.find("other", kind) is None
    assert all(keys.find(kid, other) is None for other in ("RS256", "ES256", "EdDSA") if other != kind)


def test_token_without_a_key_id_needs_a_single_key_of_its_algorithm() -> None:
    one, two = Signer("ES256", "one"), Signer("ES256", "two")
    assert parse_jwks(jwks(one)).find(None, "ES256") is not None
    assert parse_jwks(jwks(one, two)).find(None, "ES256") is None


@pytest.mark.parametrize(
    "entry",
    [
        {"kty": "oct", "k": "c2VjcmV0LXRoYXQtaXMtcHVibGlzaGVkLXRvLWFsbA", "alg": "HS256"},
        Signer("RS256", bits=1_024).jwk(),
        Signer("RS256").jwk(use="enc"),
        Signer("RS256").jwk(alg="PS256"),
        {**Signer("ES256").jwk(), "crv": "P-384"},
        {"kty": "RSA", "n": "AQAB"},
        {"kty": "OKP", "crv": "Ed25519", "x": "short"},
        "no object",
    ],
    ids=[
        "symmetric",
        "short",
        "for encryption",
        "other algorithm",
        "other curve",
        "no exponent",
        "no point",
        "no key",
    ],
)
def test_an_unusable_key_is_left_out_and_alone_is_refused(entry: Any) -> None:
    good = Signer("EdDSA", "good")
    assert [each.kid for each in parse_jwks(json.dumps({"keys": [entry, good.jwk()]}).encode()).keys] == [
        "good"
    ]
    with pytest.raises(BadKeys, match="no public signing key"):
        parse_jwks(json.dumps({"keys": [entry]}).encode())


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"keys": 1}', b"null", b"<html>"])
def test_invalid_key_set_is_refused(content: bytes) -> None:
    with pytest.raises(BadKeys):
        parse_jwks(content)
    with pytest.raises(BadKeys):
        parse_pem(content)


@given(st.lists(JSON, max_size=4))
def test_no_document_breaks_the_parser(entries: list[Any]) -> None:
    try:
        found = parse_jwks(json.dumps({"keys": entries}).encode())
    except BadKeys:
        found = KeySet()
    assert all(each.algorithm in ("RS256", "ES256", "EdDSA") for each in found.keys)


def test_a_private_key_in_pem_is_refused() -> None:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = Signer("EdDSA").key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(BadKeys, match="no public key"):
        parse_pem(private)
