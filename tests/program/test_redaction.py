"""Redaction: a text that looks like a credential, or is named like one, does not reach the log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.channels.channel import new_channel_secret
from deskwire.engine.core.ids import new_id
from deskwire.engine.customers.tokens import VisitorTokens, new_session_token
from deskwire.logs.redaction import CREDENTIAL, NAMED, REDACTED, promises_secret, redacted, redacted_text

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
TEXT = st.text(alphabet=st.characters(exclude_characters=BASE62 + "_-"), max_size=20)
SPELLINGS = [
    "sk_",
    "whsec_",
    "eyJ",
    "token",
    "Pass",
    "word",
    "=",
    ": ",
    "Bearer ",
    "abcd1234",
    "'",
    "\\",
    "_",
    "-",
    " ",
]
SPELLINGS += [
    "\u017fecret",
    "author\u0131zation",
    "author\u0130zation",
    "to\u212aen",
]  # letters that match s, i and k
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c3JfMSJ9.c2lnbmF0dXJl"


@given(TEXT, st.text(BASE62, min_size=43, max_size=43), TEXT)
def test_server_key_is_replaced_at_every_place(before: str, key: str, after: str) -> None:
    assert key not in redacted_text(f"{before}sk_{key}{after}")


@given(TEXT, TEXT)
@pytest.mark.parametrize("kind", ["secret of a channel", "session token", "visitor token"])
def test_secrets_of_customers_are_replaced_at_every_place(kind: str, before: str, after: str) -> None:
    secret = {
        "secret of a channel": new_channel_secret(),
        "session token": new_session_token(),
        "visitor token": VisitorTokens(lambda: (b"key",)).issue(new_id("chn", 0), 0),
    }[kind]
    assert secret[4:] not in redacted_text(f"{before}{secret}{after}")
    assert redacted({"contact": [secret], "line": f"GET /x {secret}"}) == {
        "contact": [REDACTED],
        "line": f"GET /x {REDACTED}",
    }


@pytest.mark.parametrize(
    "text",
    [
        "whsec_abcDEF123+/=",
        JWT,
        f"{JWT.rpartition('.')[0]}.",
        "sk_live_abcdefgh",
        "Authorization: Bearer abc.def",
        "authorization: Basic dXNlcjpwYXNz",
        "{'password': 'abc def'}",
        '{"token": "abc"}',
        r"{\"client_secret\": \"abc\"}",
        "secret='it'",
        "GET /v3/x?token=abc&a=1",
        "DESKWIRE_SECRET=abc",
        "GET http://x.test/v3/uploads/upl_1/a.txt?expires=1&signature=abc",
        "http://me:abc@proxy.test:3128",
        "eyJhbGciOiJIUzI1NiJ9",
        f"chs_abc{BASE62[:40]}",
        f"POST /v3/customer/session ct_abc-_{BASE62[:38]}",
        f'"session":"cv_abc_{BASE62}"',
    ],
)
def test_text_with_a_credential_loses_it_and_keeps_the_rest(text: str) -> None:
    answer = redacted_text(f"before {text} after")
    assert REDACTED in answer
    assert answer.startswith("before ")
    assert answer.endswith(" after")
    assert "abc" not in answer
    assert "eyJ" not in answer
    assert "dXNl" not in answer


@pytest.mark.parametrize(
    "text",
    [
        "task_queue",
        "whsec_\u2026abcd",
        "chs_\u2026abcd",
        "ct_scan",
        f"product_{BASE62}",
        "the secret is out",
        "token expired",
        "eyJ",
        "req_01J9ZQ",
        "password: too short",
        "http://proxy.test:3128/a:b@c",
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert redacted_text(text) == text


@pytest.mark.parametrize(
    "key", ["password", "webhook_secret", "accessToken", "Authorization", "X-Auth-Token", "SECRET"]
)
def test_a_name_that_promises_a_secret_is_recognised(key: str) -> None:
    assert promises_secret(key)
    assert redacted({key: "x"}) == {key: REDACTED}


@pytest.mark.parametrize("key", ["secretary", "tokens", "event", "conversation_id", "sk", ""])
def test_a_name_that_only_resembles_one_is_left_alone(key: str) -> None:
    assert not promises_secret(key)
    assert redacted({key: "x"}) == {key: "x"}


def test_number_or_null_under_a_secret_name_is_not_redacted() -> None:
    plain: dict[str, object] = {"token_count": 3, "secret": None, "password": "", "token": True}
    assert redacted(plain) == plain


class Holder:
    def __repr__(self) -> str:
        return "Holder(whsec_hidden)"


def test_containers_keys_bytes_and_other_objects_are_searched() -> None:
    value = {"a": [("sk_abcdef", {"b": b"whsec_abc"})], "sk_abcdef": {Holder()}}
    assert redacted(value) == {"a": [[REDACTED, {"b": f"b'{REDACTED}'"}]], REDACTED: [f"Holder({REDACTED})"]}


def test_value_that_contains_itself_is_redacted_in_finite_time() -> None:
    loop: list[object] = ["sk_abcdef"]
    loop.append(loop)
    assert "sk_" not in str(redacted(loop))


@pytest.mark.thorough
@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)
    )
)
def test_redaction_is_idempotent(value: object) -> None:
    once = redacted(value)
    assert redacted(once) == once


@given(st.lists(st.sampled_from(SPELLINGS), max_size=8).map("".join))
def test_redaction_replaces_every_text_that_the_patterns_match(text: str) -> None:
    thorough = NAMED.sub(rf"\g<name>\g<between>{REDACTED}", CREDENTIAL.sub(REDACTED, text))
    assert redacted_text(text) == thorough


@pytest.mark.parametrize(
    "piece", ["a-", "a_", "-eyJ", "eyJ.", "sk_", "whsec_", "token", "token='", "://a:", "secret: "]
)
def test_a_long_text_of_a_stranger_is_searched_in_a_moment(piece: str) -> None:
    """Squared, this many characters would take minutes."""
    assert redacted_text(f"{piece * 200_000} token")
