"""How good themes are, on comments that no rule was made for; the floors are below what ADR 18 measured."""

from __future__ import annotations

import pytest

from deskwire.engine.surveys.insights.keywords import keyword_themes
from tests.engine.surveys.themes.labelled import LANGUAGES, labelled
from tests.engine.surveys.themes.measured import Figures, figures

FLOOR = Figures(phrases=0.75, purity=0.95, coverage=0.85, found=0.9, apart=0.65, sentiment=0.9, quotes=0.9)


@pytest.mark.parametrize("folder", ["tuning", "heldout"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_themes_are_phrases_that_hold_together_and_are_quoted_rightly(folder: str, language: str) -> None:
    known = labelled(folder, (language,))
    measured = figures(keyword_themes(known.comments), known)
    short = {
        name: getattr(measured, name)
        for name in Figures.__slots__
        if getattr(measured, name) < getattr(FLOOR, name)
    }
    assert not short


def test_comments_of_three_languages_have_themes_in_all_of_them() -> None:
    known = labelled("heldout")
    found = keyword_themes(known.comments)
    assert {theme.mentions[0].language for theme in found} == set(LANGUAGES)
    assert figures(found, known).purity >= FLOOR.purity


def test_each_set_has_sixty_comments_in_each_language() -> None:
    for folder in ("tuning", "heldout"):
        for language in LANGUAGES:
            assert len(labelled(folder, (language,)).comments) >= 60
