"""Themes that a person would have written: one for one thing, by language, with its sentiment and quotes."""

from __future__ import annotations

import pytest

from deskwire.engine.surveys.insights.comments import CHARACTERS_MAX, Comment
from deskwire.engine.surveys.insights.keywords import keyword_themes
from deskwire.engine.surveys.insights.text_analysis.language_detection import detect_language
from deskwire.engine.surveys.insights.text_analysis.quotes import QUOTE_MAX, cut
from deskwire.engine.surveys.insights.text_analysis.sentiment import sentiment_of
from deskwire.engine.surveys.insights.themes import Theme
from tests.support.builders import NOON


def written(*texts: str, language: str = "en", felt: int | None = None) -> list[Comment]:
    return [Comment(text, 1, language, f"r{number}", felt, NOON) for number, text in enumerate(texts)]


def themes(*texts: str, language: str = "en", felt: int | None = None) -> list[Theme]:
    return keyword_themes(written(*texts, language=language, felt=felt))


@pytest.mark.parametrize(
    ("language", "title", "texts"),
    [
        (
            "en",
            "Late delivery",
            ("Late delivery", "The delivery was late!", "delivered late", "late delivery 😡"),
        ),
        (
            "de",
            "Späte Lieferung",
            ("Späte Lieferung", "Lieferung war spät", "späte lieferung", "Verspätet geliefert"),
        ),
        (
            "fr",
            "Livraison en retard",
            ("Livraison en retard", "La livraison est en retard", "Livraison en retard"),
        ),
        ("es", "Entrega tardía", ("Entrega tardía", "La entrega llegó tarde", "entrega tardía otra vez")),
    ],
)
def test_one_thing_said_in_several_ways_is_one_theme(
    language: str, title: str, texts: tuple[str, ...]
) -> None:
    (theme,) = themes(*texts, language=language)
    assert (theme.title, theme.count, theme.sentiment) == (title, len(texts), "negative")


def test_identical_comments_are_one_theme_even_if_they_are_a_word() -> None:
    (theme,) = themes("Great", "great!", "GREAT 👍")
    assert (theme.title, theme.count, theme.sentiment) == ("Great", 3, "positive")


def test_a_word_with_one_letter_wrong_is_the_word_that_others_write() -> None:
    (theme,) = themes(*["Rude technician"] * 3, "rude technican")
    assert (theme.title, theme.count) == ("Rude technician", 4)


def test_denied_statement_is_another_theme_than_the_statement() -> None:
    found = {theme.title: theme.sentiment for theme in themes(
        "Helpful support", "The support was helpful", "Support was not helpful", "support not helpful"
    )}  # fmt: skip
    assert found == {"Helpful support": "positive", "Support not helpful": "negative"}


def test_stop_word_of_the_comments_language_is_no_theme_of_another() -> None:
    """`fast` is German for almost."""
    mixed = [
        *written("Die Lieferung war fast immer gut", "Das hat fast immer geklappt", "Es ist fast alles da")
    ]
    assert all("fast" not in theme.title.lower() for theme in keyword_themes(mixed))


@pytest.mark.parametrize(
    ("text", "declared", "language"),
    [
        ("fast alles gut", "en", "de"),
        ("Die Lieferung kam zu spät", "en-GB", "de"),
        ("Livraison rapide", "fr", "fr"),
        ("Late delivery", "de-AT", "de"),  # two words: the declared language is the better guess
        ("Late delivery and nobody answered my emails", "de", "en"),
        ("😀😀😀", "fr", "fr"),
        ("", "es", "es"),
    ],
)
def test_comment_has_its_declared_language_unless_it_is_plainly_in_another(
    text: str, declared: str, language: str
) -> None:
    assert detect_language(text, declared) == language


def test_theme_keeps_its_id_when_most_people_change_their_wording() -> None:
    before = keyword_themes(written("Late delivery", "late delivery"))
    after = keyword_themes(
        written("Late delivery", *["The delivery was late"] * 4), {theme.title: theme.id for theme in before}
    )
    assert [(theme.id, theme.title) for theme in after] == [("late-delivery", "Delivery was late")]


@pytest.mark.parametrize(
    ("language", "text", "feeling"),
    [
        ("en", "Agent was rude", -1),
        ("en", "The support was not helpful", -1),
        ("en", "not bad at all", 1),
        ("en", "It never arrived", -1),
        ("en", "I called on Monday", 0),
        ("de", "Der Mitarbeiter war unhöflich", -1),
        ("de", "gar nicht schlecht", 1),
        ("de", "überhaupt nicht hilfreich", -1),
        ("de", "Mein Paket 😡", -1),
        ("fr", "Le support n'est pas utile", -1),
        ("fr", "L\u2019agent était très aimable", 1),
        ("es", "La atención fue pésima", -1),
        ("sw", "Huduma nzuri sana", 0),
    ],
)
def test_sentiment_of_a_clause_matches_a_persons_judgement(language: str, text: str, feeling: int) -> None:
    assert sentiment_of(text, language) == feeling


def test_sentiment_of_a_theme_ignores_the_rest_of_the_comment() -> None:
    texts = ("Great shop, friendly people, but the app crashes", "I love it but your app crashed")
    (theme,) = [each for each in themes(*texts, felt=1) if each.title.startswith("App crash")]
    assert theme.sentiment == "negative"


def test_score_decides_a_themes_sentiment_in_a_language_without_a_word_list() -> None:
    (theme,) = themes(*["Huduma nzuri sana"] * 3, language="sw", felt=1)
    assert theme.sentiment == "positive"
    (theme,) = themes(*["Huduma nzuri sana"] * 3, language="sw")
    assert theme.sentiment == "neutral"


def test_quotes_are_sentences_of_different_people_that_agree_with_the_theme() -> None:
    tale = "I ordered a lamp in May. " * 8
    texts = (
        f"{tale}Then came a very late delivery. {tale}",
        "Late delivery",
        "late delivery",
        "I love a late delivery",
    )
    (theme,) = (each for each in themes(*texts) if each.title == "Late delivery")
    assert (theme.sentiment, theme.count) == ("negative", 4)
    assert list(theme.quotes) == ["Then came a very late delivery.", "Late delivery"]


def test_a_quote_ends_with_a_whole_word() -> None:
    assert cut("late " * 100) == ("late " * 60).strip()
    assert len(cut("x" * 1_000)) == QUOTE_MAX


@pytest.mark.parametrize(
    "text",
    [
        "x" * CHARACTERS_MAX,
        "😀👍🏽" * 300,
        "not " * 500,
        "late delivery " * 140,
        "'" * 2_000,
        "a-" * 1_000,
        "التوصيل متأخر جدا " * 100,
        "配送が遅い" * 400,
        "\u200f\u202e" * 900,
        "Ǆ̈ ﬁ ß İ " * 200,
    ],
)
@pytest.mark.parametrize("language", ["en", "de", "fr", "ar", "ja", "", "../../x"])
def test_hostile_comments_have_themes_or_none(text: str, language: str) -> None:
    found = themes(text, text, text, language=language)
    assert len({theme.id for theme in found}) == len(found)
    assert all(len(theme.title) <= 300 for theme in found)
