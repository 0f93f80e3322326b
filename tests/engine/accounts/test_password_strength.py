"""New passwords that guessers try first are refused, and the refusal says why (NIST SP 800-63B)."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zxcvbn import matching

from deskwire.engine.accounts.identity.password_strength import (
    _PIECE,
    _pieces,
    check_guessable,
    guessed_words,
)
from deskwire.engine.core.errors import Invalid

ADA = ("ada.lovelace@engines.example", "Ada Lovelace")


def refused(password: str) -> str | None:
    """Return the reason for which a new password of Ada's is refused; None if it is accepted."""
    try:
        check_guessable(password, ADA, "/newPassword")
    except Invalid as refusal:
        (problem,) = refusal.problems
        assert (problem.pointer, problem.code) == ("/newPassword", "too_guessable")
        assert password not in problem.message
        return problem.message
    return None


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("password123", "very common"),
        ("Password123!", "commonly used"),
        ("P@ssw0rd2024", "commonly used"),
        ("1234567890", "common"),
        ("qwertyuiop", "common"),
        ("!@#$%^&*()", "rows of keys"),
        ("administrator", "word by itself"),
        ("aaaaaaaaaa", "Repeats"),
        ("letmeinletmein", "Repeats"),
        ("abcdefghijk", "Sequences"),
        ("trustno1trustno1", "Repeats"),
        ("monkeydragon", "commonly used"),
        ("Summer2024!", "commonly used"),
        ("password" * 20, "Repeats"),
        ("ada.lovelace@engines.example", "the address"),
        ("adalovelace1815", "the name"),
        ("Lovelace2024", "the name"),
        ("engines.example", "the address"),
        ("ada.lovelace@engines.example1!", "the address"),
        ("lovelace@deskwire", "this service"),
        ("AdaLovelaceAdaLovelace", "the name"),
        ("deskwire2026", "this service"),
        ("D3skwire!D3skwire!", "easy to guess"),
    ],
)
def test_common_passwords_are_refused(password: str, why: str) -> None:
    message = refused(password)
    assert message is not None
    assert why in message


@pytest.mark.parametrize(
    "password",
    [
        "a long enough password",
        "correct horse battery",
        "schneeweiß kommt zu spät",
        "nur kleine buchstaben",
        "Xk29fjQa1z",
        "kJ8#mP2$vL9@qR5!",
        "密码不是这么容易猜的吧朋友",
        "x" * 20 + " but what a tail it has",
        "ada and eleven penguins",
    ],
)
def test_password_that_is_hard_to_guess_is_accepted_with_any_characters(password: str) -> None:
    assert refused(password) is None


def test_guessed_words_are_the_texts_their_words_and_the_service() -> None:
    assert guessed_words(("Ada.L@b.example", "Ada")) == [
        "deskwire",
        "ada.l@b.example",
        "ada.l",
        "b.example",
        "ada",
        "example",
        "adalbexample",
    ]


@settings(max_examples=30)
@given(st.text(min_size=10, max_size=1_024))
def test_any_password_can_be_judged(password: str) -> None:
    refused(password)


@given(st.text(alphabet="4@8({[</369&#!1|0$5+7%2ae", min_size=10, max_size=1_024))
def test_hostile_password_can_not_make_the_estimate_slow(password: str) -> None:
    """Bound the work: the substitutions that are tried, times the substrings of the password."""
    for piece in _pieces(password):
        tried = matching.enumerate_l33t_subs(matching.relevant_l33t_subtable(piece, matching.L33T_TABLE))
        assert len(piece) <= _PIECE
        assert len(tried) * len(piece) ** 2 <= 48_000  # of letters alone: 400


def test_guessed_words_of_one_account_do_not_count_for_another_in_parallel() -> None:
    said: list[str | None] = []

    def judge() -> None:
        said.extend(refused("penguin-ada-lovelace") for _ in range(20))

    def judge_others() -> None:
        for _ in range(20):
            check_guessable("penguin-ada-lovelace-xq", ("someone@else.example",), "")

    threads = [threading.Thread(target=each) for each in (judge, judge_others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 20
    assert len(set(said)) == 1
