"""The look of the widget: the customer's language, and colours that can be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.http.pages.widget_look import (
    PANEL_DARK,
    PANEL_LIGHT,
    SHIPPED,
    choose_language,
    contrast,
    direction,
    readable,
    shipped_language,
    text_colour,
)

COLOURS = st.integers(0, 0xFFFFFF).map("#{:06x}".format)


@pytest.mark.parametrize(
    ("offered", "wanted", "accepted", "chosen"),
    [
        (["en", "de"], "de", "en", "de"),
        (["en", "de"], None, "de-AT,de;q=0.9,en;q=0.5", "de"),
        (["en", "de"], None, "fr, de;q=0.3", "de"),
        (["en", "de"], None, "fr", "en"),
        (["de", "fr"], None, "ja", "de"),
        (["de", "fr"], None, None, "de"),
        (["pt-BR", "pt-PT"], "pt-PT", None, "pt-PT"),
        (["pt-BR"], "pt", None, "pt-BR"),
        (["EN", "zh-Hant"], "zh-hant", None, "zh-Hant"),
        (["en", "de"], "de_DE", None, "de"),
        (["en", "de"], None, "de;q=0, en;q=0.1", "en"),
        (["en", "de"], "", "not a header;;;q=x", "en"),
        ([], "ar-EG", "en", "ar"),
        ([], None, "sv", "en"),
    ],
)
def test_the_first_wish_that_is_offered_decides(
    offered: list[str], wanted: str | None, accepted: str | None, chosen: str
) -> None:
    assert choose_language(offered, wanted, accepted) == chosen


def test_a_language_of_the_channel_that_is_not_shipped_has_english_buttons() -> None:
    assert shipped_language("sv-SE") == "en"
    assert [shipped_language(each) for each in ("de-CH", "AR", "pt_BR")] == ["de", "ar", "pt"]
    assert {shipped_language(each) for each in SHIPPED} == set(SHIPPED)


def test_languages_that_are_written_from_the_right_have_that_direction() -> None:
    assert [direction(each) for each in ("ar", "ar-EG", "he", "FA", "en", "ja", "az")] == [
        *["rtl"] * 4,
        *["ltr"] * 3,
    ]


@given(COLOURS)
def test_text_is_readable_on_every_colour(colour: str) -> None:
    assert contrast(text_colour(colour), colour) >= 4.5


@given(COLOURS, st.sampled_from([PANEL_LIGHT, PANEL_DARK, "#ffffff", "#17181c"]))
def test_every_colour_becomes_readable_on_a_background(colour: str, background: str) -> None:
    found = readable(colour, background)
    assert contrast(found, background) >= 4.5
    if contrast(colour, background) >= 4.5:
        assert found == colour


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert contrast("#ffffff", "#ffffff") == 1
