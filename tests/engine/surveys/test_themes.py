"""Themes from keywords and from a model, and what of them may be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.llm.chat import ModelError
from deskwire.engine.surveys.insights.by_model import BATCH, BATCHES_MAX, model_summary, model_themes
from deskwire.engine.surveys.insights.comments import CHARACTERS_MAX, TOTAL_MAX, Comment, comments
from deskwire.engine.surveys.insights.compute import plain_summary
from deskwire.engine.surveys.insights.insights import PARTS, without_texts
from deskwire.engine.surveys.insights.keywords import keyword_themes
from deskwire.engine.surveys.insights.themes import theme_id, theme_view
from tests.engine.surveys.answered import asking, question, sample
from tests.support.builders import NOON

TEXTS = (
    "The delivery was late and nobody answered my emails.",
    "Late delivery again, but friendly support.",
    "I love the mobile app, very easy to use.",
    "The mobile app crashes when I upload photos.",
    "Slow refund process! Refund took three weeks.",
    "Support was friendly and quick.",
    "Slow refund process and late delivery",
)


def comment(
    text: str, respondent: str, felt: int | None = None, version: int = 1, language: str = "en"
) -> Comment:
    return Comment(text, version, language, respondent, felt, NOON)


WRITTEN = [
    comment(text, f"r{number}", -1 if number in (0, 4, 6) else 1, 1 + number % 2)
    for number, text in enumerate(TEXTS)
]


def test_themes_are_subjects_that_several_people_write_about() -> None:
    found = {theme.title: theme for theme in keyword_themes(WRITTEN)}
    assert {"Late delivery", "Mobile app", "Slow refund process"} <= found.keys()
    refund = theme_view(found["Slow refund process"])
    assert refund == {
        "id": "slow-refund-process",
        "title": "Slow refund process",
        "sentiment": "negative",
        "count": 2,
        "countsByVersion": {"1": 2},
        "quotes": [TEXTS[4], TEXTS[6]],
    }
    assert theme_view(found["Mobile app"])["countsByVersion"] == {"1": 1, "2": 1}
    assert found["Mobile app"].sentiment == "positive"


def test_repeated_subject_of_one_person_is_no_theme() -> None:
    assert keyword_themes([comment("My purple giraffe is missing", "c1") for _ in range(9)]) == []


def test_themes_are_the_same_each_time() -> None:
    assert keyword_themes(WRITTEN) == keyword_themes(WRITTEN)


def test_a_language_without_stop_words_has_themes_too() -> None:
    written = [comment("Ratonga pai rawa", f"r{number}", language="mi-NZ") for number in range(3)]
    assert [theme.title for theme in keyword_themes(written)] == ["Ratonga pai rawa"]


@settings(max_examples=50)
@given(
    st.lists(st.text(alphabet="abAB .,'\u2019-\n\t1é中\u0627😀\u0301\u200d", max_size=60), max_size=8),
    st.sampled_from(["en", "ar", "xx", ""]),
)
def test_no_text_upsets_the_search_for_themes(texts: list[str], language: str) -> None:
    keyword_themes([comment(text, f"r{number}", language=language) for number, text in enumerate(texts)])


def test_comments_are_bounded_in_number_and_length() -> None:
    definition = asking(question("t", "text"))
    long = sample(definition, *({"t": "y" * 20_000} for _ in range(TOTAL_MAX // CHARACTERS_MAX + 5)))
    found = comments(long)
    assert len(found) == TOTAL_MAX // CHARACTERS_MAX
    assert {len(each.text) for each in found} == {CHARACTERS_MAX}


def test_summary_without_a_model_reports_the_computed_figures() -> None:
    driver = {"id": "wait", "title": "Minutes waited", "impact": -0.8, "count": 20}
    said = plain_summary(1_234, [], keyword_themes(WRITTEN)[:1], [driver])
    assert said.startswith("1,234 responses. Mentioned most: ")
    assert said.endswith("The score goes down with: Minutes waited (-0.8).")
    assert plain_summary(1, [], [], []) == "1 response."


class Told:
    """A model that returns prepared answers, and records the prompts."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def complete(
        self, messages: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        assert schema["additionalProperties"] is False
        self.asked.append(messages[1]["content"])
        return self.answers.pop(0)


def said(*themes: Any) -> dict[str, Any]:
    return {"themes": list(themes)}


def theme(title: str, *mentions: Any, felt: str = "negative") -> dict[str, Any]:
    return {"title": title, "sentiment": felt, "mentions": list(mentions)}


async def test_a_models_themes_count_the_comments_that_it_names() -> None:
    shares: list[float] = []
    found = await model_themes(Told(said(theme("Late parcels", 0, 1, 6, 6))), WRITTEN, shares.append)
    assert [(each.title, each.count, each.sentiment) for each in found] == [("Late parcels", 3, "negative")]
    assert [mention.text for mention in found[0].mentions] == [TEXTS[0], TEXTS[1], TEXTS[6]]
    assert shares == [1.0]


async def test_invented_comments_of_a_model_are_ignored() -> None:
    answer = said(theme("One person", 0), theme("Nobody", 99, -1, True, "0"), theme("x" * 500, 0, 1))
    found = await model_themes(Told(answer), WRITTEN, lambda _: None)
    assert [each.title for each in found] == ["X" + "x" * 79]


async def test_additional_fields_of_a_models_answer_are_ignored() -> None:
    answer = {**said({**theme("Late parcels", 0, 1), "confidence": 0.9}), "note": "Here you are."}
    (found,) = await model_themes(Told(answer), WRITTEN, lambda _: None)
    assert (found.title, found.count) == ("Late parcels", 2)


@pytest.mark.parametrize(
    "wrong",
    [
        "Late parcels",
        {"sentiment": "negative", "mentions": [0, 1]},
        {"title": " ", "sentiment": "negative", "mentions": [0, 1]},
        {"title": "Late", "sentiment": "furious", "mentions": [0, 1]},
        {"title": "Late", "sentiment": "negative", "mentions": "0, 1"},
        None,
    ],
)
async def test_list_with_an_invalid_theme_fails_and_names_it(wrong: Any) -> None:
    with pytest.raises(ModelError, match=r"^Theme 1 of its answer is not of the form"):
        await model_themes(Told(said(theme("Late parcels", 0, 1), wrong)), WRITTEN, lambda _: None)


@pytest.mark.parametrize("answer", [{}, {"themes": None}, {"themes": {"a": 1}}])
async def test_an_answer_of_another_shape_is_a_failure_of_the_model(answer: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        await model_themes(Told(answer), WRITTEN, lambda _: None)


@pytest.mark.parametrize("answer", [{}, {"summary": ""}, {"summary": 7}])
async def test_invalid_summary_is_a_failure_of_the_model(answer: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        await model_summary(Told(answer), "en", {})


async def test_many_comments_take_a_few_calls_that_share_their_themes() -> None:
    written = [comment(f"Comment {number}", f"r{number}") for number in range(1_000)]
    model = Told(*(said(theme("Same", 0, 1)) for _ in range(BATCHES_MAX)))
    (found,) = await model_themes(model, written, lambda _: None)
    assert found.count == 2 * BATCHES_MAX
    assert [mention.text for mention in found.mentions][:4] == [
        "Comment 0",
        "Comment 1",
        f"Comment {BATCH}",
        f"Comment {BATCH + 1}",
    ]
    assert '"knownThemes":["Same"]' in model.asked[1]


async def test_no_comments_are_no_call_to_the_model() -> None:
    assert await model_themes(Told(), [], lambda _: None) == []


def test_the_id_of_a_theme_is_made_of_its_title() -> None:
    assert [theme_id(title) for title in ("Late delivery", "  !", "Größe & Preis")] == [
        "late-delivery",
        "theme",
        "größe-preis",
    ]


def test_insights_forget_every_text_that_was_erased() -> None:
    parts = {
        "themes": [
            {
                "id": "a",
                "title": "Late parcels",
                "quotes": ["It was LATE, says Ada", "fine", "ok", "ok by me"],
            },
            {"id": "b", "title": "Call Ada at home", "quotes": []},
        ],
        "summary": "As one said: it was late, says Ada.",
        "drivers": [],
        "segments": [],
        "alerts": [{"id": "x", "message": "call ada at home!"}, {"id": "y", "message": "NPS 7, ok"}],
    }
    assert without_texts(parts, ["it was late, says ada", "Call Ada at home", "ok", ""]) == {
        "themes": [{"id": "a", "title": "Late parcels", "quotes": ["fine", "ok by me"]}],
        "summary": "",
        "drivers": [],
        "segments": [],
        "alerts": [{"id": "y", "message": "NPS 7, ok"}],
    }


def test_a_phrase_that_an_erased_contact_wrote_like_others_stays_a_theme() -> None:
    parts = {**PARTS, "themes": [{"id": "late", "title": "Late delivery", "quotes": ["Late delivery"]}]}
    assert without_texts(parts, ["late delivery"])["themes"] == [{**parts["themes"][0], "quotes": []}]


def test_quote_from_a_removed_long_text_is_removed() -> None:
    parts = {
        **PARTS,
        "themes": [{"id": "a", "title": "T", "quotes": ["The beginning of", "middle of all that I said"]}],
    }
    text = "The beginning of something, the middle of all that I said, and its end"
    assert without_texts(parts, [text])["themes"][0]["quotes"] == []
