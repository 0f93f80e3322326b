"""The normal form of a tag."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.conversations.tags import LENGTH_MAX, normal_tag, normal_tags, tag_key


@pytest.mark.parametrize(
    ("given", "tag"),
    [
        ("VIP", "vip"),
        ("  returns \t\n desk ", "returns desk"),
        ("e\u0301t\u00c9", "\u00e9t\u00e9"),
        ("Straße", "straße"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("👋 Hello", "👋 hello"),
        ("a\u00a0b", "a b"),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
        ("\U0001f469\u200d\U0001f52c", "\U0001f469\u200d\U0001f52c"),
        ("x" * LENGTH_MAX, "x" * LENGTH_MAX),
    ],
)
def test_tag_has_small_letters_single_blanks_and_one_spelling(given: str, tag: str) -> None:
    assert normal_tag(given) == tag


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\u202ex",
        "x\u200d",
        "\u200dx",
        "x \u200d y",
        "\u200c",
        "\ue000",
        "\ud800",
        "x" * 41,
        "\u0378",
    ],
)
def test_an_invalid_tag_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match="A tag has"):
        normal_tag(text)


@given(st.text(max_size=60))
def test_any_text_is_a_tag_or_refused_with_a_reason(text: str) -> None:
    try:
        assert 0 < len(normal_tag(text)) <= LENGTH_MAX
    except ValueError as error:
        assert str(error).startswith("A tag has")  # noqa: PT017  # only some texts are refused


# In lower case and NFC, a character becomes at most three: 12 are a tag of at most 38 with the blanks.
INK = st.characters(categories=["L", "N", "P", "S", "Mn"], exclude_characters=",")
TAG_TEXTS = st.lists(st.text(INK, min_size=1, max_size=4), min_size=1, max_size=3).map(" \t ".join)


@given(TAG_TEXTS | st.sampled_from(["\U0001f469\u200d\U0001f52c", "\u0645\u06cc\u200c\u062e\u0648"]))
def test_normal_tag_is_unchanged(text: str) -> None:
    tag = normal_tag(text)
    assert normal_tag(tag) == tag
    assert 0 < len(tag) <= LENGTH_MAX
    assert unicodedata.is_normalized("NFC", tag)


@given(st.lists(st.sampled_from(["VIP", "vip", " Vip", "b", "A", "a "]), max_size=20))
def test_tags_are_distinct_and_sorted(tags: list[str]) -> None:
    found = normal_tags(tags)
    assert list(found) == sorted(set(found))
    assert set(found) == {tag.strip().lower() for tag in tags}


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("Доставка", "доставка"),
        ("Ärger", "arger"),
        ("caf\u00e9", "CAFE\u0301"),
        ("\uff36\uff29\uff30", "vip"),
        ("\u0645\u0640\u0640\u0631\u062d\u0628\u0627", "\u0645\u0631\u062d\u0628\u0627"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"),
        ("STRASSE", "straße"),
    ],
)
def test_of_tags_that_read_alike_the_first_stays_as_it_was_written(first: str, other: str) -> None:
    assert normal_tags([first, other]) == (normal_tag(first),)
    assert tag_key(normal_tag(first)) == tag_key(normal_tag(other)) == tag_key(first)


@given(st.text(min_size=1, max_size=20))
def test_every_tag_has_a_key(text: str) -> None:
    assert tag_key(text)
