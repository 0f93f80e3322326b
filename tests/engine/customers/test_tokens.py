"""Tokens of visitors: signed, of one spelling, and of one channel."""

from __future__ import annotations

import base64

import pytest

from deskwire.engine.contacts.contact import is_reserved
from deskwire.engine.core.ids import new_id
from deskwire.engine.customers.tokens import VisitorTokens, hash_token, new_session_token
from tests.support.builders import NOON

CHANNEL = new_id("chn", NOON)
TOKENS = VisitorTokens(lambda: (b"k" * 32,))
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def test_token_names_visitor_channel_and_time() -> None:
    visitor = TOKENS.read(TOKENS.issue(CHANNEL, NOON))
    assert visitor is not None
    assert (visitor.channel_id, visitor.issued_at) == (CHANNEL, NOON)
    assert is_reserved(visitor.user_id)
    assert visitor.user_id.removeprefix("visitor-") == visitor.session_id.removeprefix("cse_")


def test_every_token_is_of_another_visitor() -> None:
    read = [TOKENS.read(TOKENS.issue(CHANNEL, NOON)) for _ in range(100)]
    assert len({visitor.ulid for visitor in read if visitor is not None}) == 100


def test_token_with_any_other_character_is_refused() -> None:
    token = TOKENS.issue(CHANNEL, NOON)
    for at in range(3, len(token)):
        for other in ALPHABET:  # also those that base64 would decode to the same bytes
            if other != token[at]:
                assert TOKENS.read(f"{token[:at]}{other}{token[at + 1 :]}") is None


@pytest.mark.parametrize(
    "altered",
    [
        "{}=",
        "{}==",
        "{}A",
        " {}",
        "{}\n",
        "cv_{}",
        "ct{}",
        "",
        "cv_",
        "cv_\u00e9",
        "cv_" + "A" * 86,
        "cv_" + "A" * 5000,
    ],
)
def test_token_in_another_form_is_refused(altered: str) -> None:
    assert TOKENS.read(altered.format(TOKENS.issue(CHANNEL, NOON))) is None


def test_token_of_another_installation_is_refused() -> None:
    assert VisitorTokens(lambda: (b"o" * 32,)).read(TOKENS.issue(CHANNEL, NOON)) is None


def test_token_of_previous_secret_counts_while_that_secret_does() -> None:
    token = TOKENS.issue(CHANNEL, NOON)
    assert VisitorTokens(lambda: (b"o" * 32, b"k" * 32)).read(token) == TOKENS.read(token)


def test_token_of_one_channel_can_not_be_made_one_of_another() -> None:
    token = TOKENS.issue(CHANNEL, NOON)
    data = bytearray(base64.urlsafe_b64decode(token.removeprefix("cv_") + "=="))
    data[31] ^= 1
    moved = base64.urlsafe_b64encode(bytes(data)).rstrip(b"=").decode()
    assert TOKENS.read(f"cv_{moved}") is None


def test_session_tokens_are_random_and_only_hashed() -> None:
    tokens = {new_session_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(token) == 46 and token.startswith("ct_") for token in tokens)
    assert len(hash_token(tokens.pop())) == 32
