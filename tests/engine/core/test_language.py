"""Language tags (BCP 47): which are well-formed, and how they are written (RFC 5646)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.text import canonical_language_tag


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("en", "en"),
        ("EN-gb", "en-GB"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("es-419", "es-419"),
        ("sl-rozaj-biske", "sl-rozaj-biske"),
        ("de-CH-1996", "de-CH-1996"),
        ("en-US-u-islamcal", "en-US-u-islamcal"),
        ("de-x-phonebk", "de-x-phonebk"),
        ("zh-yue-HK", "zh-yue-HK"),
    ],
)
def test_a_well_formed_tag_is_written_in_its_usual_case(text: str, tag: str) -> None:
    assert canonical_language_tag(text) == tag


@pytest.mark.parametrize(
    "text",
    [
        "",
        "e",
        "en_GB",
        "en-",
        "-en",
        "english please",
        "en--GB",
        "en-GB-",
        "d\u00e9",
        "a-DE",
        "en-u",
        "e" * 36,
    ],
)
def test_invalid_tag_is_refused(text: str) -> None:
    assert canonical_language_tag(text) is None


@given(st.text(st.sampled_from("aAbBxX019-_"), max_size=36))
def test_canonical_case_of_a_tag_is_stable(text: str) -> None:
    tag = canonical_language_tag(text)
    if tag is not None:
        assert canonical_language_tag(tag) == tag
        assert tag.lower() == text.lower()
