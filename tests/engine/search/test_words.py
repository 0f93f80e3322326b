"""The words of texts and of queries."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.search.tokens import (
    FOLDING,
    PARTS_MAX,
    WORD_MAX,
    may_contain,
    places_of,
    query_words,
    words_of,
)


def matches(query: str, text: str) -> bool:
    """Return whether each asked word begins a word of the text."""
    words = words_of(text)
    return all(any(word.startswith(asked) for word in words) for asked in query_words(query))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("ref", "a Refund, please"),
        ("refund please", "please: REFUND"),
        ("zurich", "Zürich"),
        ("Zürich", "ZURICH"),
        ("zu\u0308rich", "Zürich"),
        ("strasse", "Straße"),
        ("lodz", "Łódź"),
        ("istanbul", "İstanbul"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ada@ex.org", "mail Ada@Ex.org now"),
        ("ada@", "ada@ex.org"),
        ("ex.org", "<ada@ex.org>"),
        ("A-1001", "order #A-1001."),
        ("#a-10", "order A-1001"),
        ("1001", "A-1001"),
        ("a\u20111001", "A-1001"),
        ("it's", "It\u2019s late"),
        ("refund", "re\u202efu\u00adnd"),
        ("refund", "\u2067refund\u2069"),
        ("東京", "今日は東京へ"),
        ("京", "東京"),
        ("東京都庁", "東京都庁前"),
        ("か", "がっこう"),
        ("ครับ", "สวัสดีครับ"),
        ("한", "한국어"),
        ("हिन्दी", "यह हिन्दी है"),
        ("fine", "ﬁne"),
        ("12", "①②12"),
        ("abc東京", "abc東京"),
        ("https://shop.example/cart?x=1", "see https://shop.example/cart?x=1 there"),
        ("x" * 20_000, "x" * 20_000),
        ("a" * WORD_MAX, "a" * 20_000),
    ],
)
def test_text_is_found_by_the_words_that_people_type(query: str, text: str) -> None:
    assert query_words(query)
    assert matches(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("fund", "refund"),
        ("refund please", "refund"),
        ("a-1002", "A-1001"),
        ("da@ex.org", "ada@ex.org"),
        ("京東", "東京"),
        ("re fund", "ref"),
        ("caf\u00e9s", "cafe"),
    ],
)
def test_a_text_is_not_found_by_other_words_or_their_ends(query: str, text: str) -> None:
    assert not matches(query, text)


@pytest.mark.parametrize("query", ["", " ", "...", "-", "\u202e", "\x00", "\ud800", "🙂", "'", "\u0301"])
def test_query_without_letters_and_digits_has_no_words(query: str) -> None:
    assert query_words(query) == ()


def test_a_word_that_another_one_begins_with_is_not_asked_for_twice() -> None:
    assert query_words("re refund REFUND ref order") == ("refund", "order")


def test_a_text_of_any_length_has_words_that_are_bounded() -> None:
    words = words_of("a-" * 10_000 + "b " + "x" * 20_000)
    assert max(map(len, words)) == WORD_MAX
    assert all(word.count("-") < PARTS_MAX for word in words)


TEXTS = st.text(st.sampled_from("abé1-@. 東京がส😀\u202e\u0301'\x00ßﬁ한"), max_size=20) | st.text(max_size=20)


@given(TEXTS)
def test_every_text_finds_itself(text: str) -> None:
    assert matches(text, text)


@given(TEXTS)
def test_every_form_of_a_text_has_the_same_words(text: str) -> None:
    for form in ("NFC", "NFD"):
        assert words_of(unicodedata.normalize(form, text)) == words_of(text)


@given(TEXTS, TEXTS)
def test_marked_words_are_the_found_ones(query: str, text: str) -> None:
    for asked in query_words(query):
        found = any(word.startswith(asked) for word in words_of(text))
        folded = text.translate(FOLDING)
        places = list(places_of(asked, folded))
        assert bool(places) == found
        assert all(folded.startswith(asked, place) for place in places)
        middle = len(folded) // 2
        assert list(places_of(asked, folded, middle)) == [place for place in places if place >= middle]
        assert may_contain((asked,), text) or not found
