"""The words by which contacts are found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.contacts.search_terms import PHONE_MARK, TERMS_MAX, search_terms, search_words


def finds(
    text: str,
    name: str | None = None,
    email: str | None = None,
    user_id: str = "u1",
    phone: str | None = None,
) -> bool:
    """Whether a search for the text finds such a contact, as the store looks for it."""
    words, terms = search_words(user_id, name, email, phone), search_terms(text)
    numbers = [term.removeprefix(PHONE_MARK) for term in terms if term.startswith(PHONE_MARK)]
    return all(
        any(word.startswith((term, *numbers)) for word in words)
        for term in terms
        if not term.startswith(PHONE_MARK)
    )


@pytest.mark.parametrize(
    "typed",
    ["+49 (0)30 123-456", "0049 30 123456", "030/123456", "+4930123456", "123456", "tel:+49-30-123456", "+49 30 12", "\uff0b49 30 123456", "(030) 123 456"],
)  # fmt: skip
@pytest.mark.parametrize("stored", ["+49 (0)30 123-456", "+4930123456", "0049 30 123 456", "030 123456", "+49 30 123456 ext. 7"])  # fmt: skip
def test_a_telephone_number_is_found_as_people_write_it(typed: str, stored: str) -> None:
    assert finds(typed, phone=stored)


def test_text_like_a_telephone_number_finds_user_ids_and_names_too() -> None:
    assert finds("1001-22", user_id="1001-22")
    assert finds("2024 12", "Team 12 of 2024")
    assert not finds("+49 30 999999", phone="+49 30 123456")


@pytest.mark.parametrize("text", ["ada", "LOVE", "lovelace ad", "byron", "king-n", "noel"])
def test_a_name_is_found_by_the_beginnings_of_its_words(text: str) -> None:
    assert finds(text, "Ada King-Noel (Byron) Lovelace")


@pytest.mark.parametrize("text", ["da", "adalovelace", "lovelaces", "ada x"])
def test_name_is_not_found_by_text_that_begins_none_of_its_words(text: str) -> None:
    assert not finds(text, "Ada Lovelace")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("muller", "Jörg Müller"),
        ("MÜLL", "jorg muller"),
        ("strasse", "Straße"),
        ("太郎", "山田太郎"),
        ("한", "김한별"[1:]),
        ("김한", "김한별"),
        ("سار", "سَارَة"),
        ("ada", "\uff21\uff44\uff41"),
        ("\u0131stan", "\u0131stanbul"),
    ],
)
def test_case_accents_and_width_do_not_matter(text: str, name: str) -> None:
    assert finds(text, name)


def test_an_address_is_found_by_its_beginning_and_by_its_domain() -> None:
    address = "Ada.Lovelace@Shop.Example.org"
    assert finds("ada.l", email=address)
    assert finds("shop.ex", email=address)
    assert not finds("example", email=address)


def test_a_user_id_is_found_by_its_beginning() -> None:
    assert finds("AUTH0|5f", user_id="auth0|5f2b")
    assert finds("ü 1", user_id="ü 1")
    assert not finds("5f2b", user_id="auth0|5f2b")


def test_a_text_without_words_has_no_terms() -> None:
    assert search_terms(" \t\u0301 ") == ()
    assert len(search_terms(" ".join(map(str, range(100))))) == TERMS_MAX


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_stored_text_finds_itself(name: str, email: str, user_id: str) -> None:
    assert finds(name, name, email, user_id)
    assert finds(email, name, email, user_id)
    assert finds(user_id, name, email, user_id)


@given(st.text(max_size=60), st.integers(0, 10))
def test_beginning_of_a_word_finds_it_too(name: str, typed: int) -> None:
    for term in search_terms(name):
        assert finds(term[: typed + 1], name)
