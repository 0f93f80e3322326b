"""Tokens: the values that they bind, and the reasons to refuse them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.core.errors import Unauthenticated
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.stream.token import Grant, TokenRefused, issue, verify
from tests.support.streaming import KEY, NOON

GRANT = Grant("prj_1", "key_1", "1.2", "private-x", "c1", typing=True, resume="live")


def check(token: str, *, key: bytes = KEY, at: int = NOON, grant: Grant = GRANT) -> Grant:
    return verify(
        (key,),
        token,
        project_id=grant.project_id,
        socket_id=grant.socket_id,
        channel=grant.channel,
        now_ms=at,
    )


def test_token_contains_the_grant() -> None:
    """Decisions 5: it binds project, socket, channel, consumer, typing option and resume choice."""
    assert check(issue(KEY, GRANT, now_ms=NOON)) == GRANT


def test_typing_and_resume_are_only_granted_on_request() -> None:
    plain = Grant("prj_1", "key_1", "1.2", "private-x", "c1")
    assert plain == Grant("prj_1", "key_1", "1.2", "private-x", "c1", typing=False, resume="auto")
    assert check(issue(KEY, plain, now_ms=NOON)) == plain


@pytest.mark.parametrize("now", [1_000_000_000, NOON * 2])
def test_token_is_verified_by_the_given_clock_only(now: int) -> None:
    """Otherwise the library's own clock check would refuse tokens of a node whose clock is ahead."""
    assert check(issue(KEY, GRANT, now_ms=now), at=now) == GRANT


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (replace(GRANT, project_id="prj_2"), "wrong_project"),
        (replace(GRANT, socket_id="1.3"), "wrong_socket"),
        (replace(GRANT, channel="private-y"), "wrong_channel"),
    ],
)
def test_token_is_valid_for_its_project_socket_and_channel_only(asked: Grant, reason: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        check(issue(KEY, GRANT, now_ms=NOON), grant=asked)
    assert refused.value.reason == reason


def test_token_is_valid_for_five_minutes_and_a_minute_of_leeway() -> None:
    token = issue(KEY, GRANT, now_ms=NOON)
    assert check(token, at=NOON + 360_000) == GRANT
    with pytest.raises(TokenRefused) as refused:
        check(token, at=NOON + 361_000)
    assert refused.value.reason == "token_expired"


CLAIMS = {
    "aud": "stream",
    "prj": "prj_1",
    "key": "key_1",
    "sid": "1.2",
    "ch": "private-x",
    "cid": "c1",
    "typ": True,
}
TIMES = {"res": "auto", "iat": NOON // 1000, "exp": NOON // 1000 + 300}


@pytest.mark.parametrize(
    "claims",
    [
        CLAIMS,
        {**CLAIMS, **TIMES, "aud": "api"},
        {**CLAIMS, **TIMES, "typ": "yes"},
        {**CLAIMS, **TIMES, "cid": 7},
    ],
)
def test_token_with_a_missing_or_malformed_claim_is_refused(claims: dict[str, object]) -> None:
    with pytest.raises(TokenRefused) as refused:
        check(jwt.encode(claims, KEY, algorithm="HS256"))
    assert refused.value.reason == "invalid_token"


def test_another_key_and_another_algorithm_are_refused() -> None:
    """Decisions 2: algorithm confusion is refused."""
    for token in (
        issue(b"x" * 32, GRANT, now_ms=NOON),
        jwt.encode({**CLAIMS, **TIMES}, "", algorithm="none"),
        jwt.encode({**CLAIMS, **TIMES}, KEY * 2, algorithm="HS512"),
    ):
        with pytest.raises(TokenRefused):
            check(token)


@given(st.text())
def test_any_text_at_all_is_refused_as_a_token(text: str) -> None:
    with pytest.raises(TokenRefused):
        check(text)


@pytest.mark.parametrize("field", ["channel", "consumer_id", "resume", "key_id"])
def test_a_token_with_half_a_surrogate_pair_is_refused_with_the_reason(field: str) -> None:
    """Refuse text that no database can store, although only the owner of the key can sign it."""
    unsound: Any = {field: "x\ud800"}
    with pytest.raises(TokenRefused, match="surrogate"):
        check(issue(KEY, replace(GRANT, **unsound), now_ms=NOON))


@pytest.mark.parametrize("expires", [float("inf"), float("nan"), "never", True, None])
def test_a_token_that_never_ends_is_refused(expires: object) -> None:
    claims = jwt.decode(issue(KEY, GRANT, now_ms=NOON), options={"verify_signature": False})
    with pytest.raises(TokenRefused):
        check(jwt.encode({**claims, "exp": expires}, KEY, algorithm="HS256"))


_ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=5)
_ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_ANY_TEXT, inner, max_size=3),
    max_leaves=5,
)
_CLAIMS = st.sampled_from(
    ["aud", "prj", "key", "sid", "ch", "cid", "typ", "res", "iat", "nbf", "exp", "sub", "jti"]
)


@pytest.mark.thorough
@given(st.dictionaries(_CLAIMS | _ANY_TEXT, _ANY_JSON, min_size=1, max_size=4))
def test_any_signed_claims_are_a_grant_or_refused(changed: dict[str, Any]) -> None:
    claims = jwt.decode(issue(KEY, GRANT, now_ms=NOON), options={"verify_signature": False})
    payload = json.dumps({**claims, **changed}).encode()
    with suppress(TokenRefused):
        granted = check(jwt.PyJWS().encode(payload, KEY, algorithm="HS256"))
        assert all(isinstance(each, str) for each in (granted.consumer_id, granted.key_id, granted.resume))
        (granted.consumer_id + granted.key_id + granted.resume).encode()


@given(st.dictionaries(_CLAIMS | _ANY_TEXT | st.just("gen"), _ANY_JSON, min_size=1, max_size=4))
def test_any_access_token_claims_are_a_user_or_refused(changed: dict[str, Any]) -> None:
    payload = json.dumps({"sub": "usr_1", "exp": 1 << 40, **changed}).encode()
    with suppress(Unauthenticated):
        Tokens(Secrets("s" * 32)).identity(
            jwt.PyJWS().encode(payload, b"s" * 32, algorithm="HS256")
        ).value.encode()


@pytest.mark.parametrize("signer", [0, 1])
def test_token_signed_by_any_of_the_keys_is_valid(signer: int) -> None:
    keys = (b"n" * 32, KEY)
    token = issue(keys[signer], GRANT, now_ms=NOON)
    named = {"project_id": GRANT.project_id, "socket_id": GRANT.socket_id, "channel": GRANT.channel}
    assert verify(keys, token, **named, now_ms=NOON) == GRANT
