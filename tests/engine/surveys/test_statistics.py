"""Scores, drivers, segments and alerts against answers that are known."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.clock import iso
from deskwire.engine.surveys.definition import Question, QuestionType
from deskwire.engine.surveys.insights.alerts import alerts
from deskwire.engine.surveys.insights.comments import comments
from deskwire.engine.surveys.insights.drivers import correlation, drivers, segments
from deskwire.engine.surveys.insights.sample import Sample
from deskwire.engine.surveys.insights.scores import feeling, score_of, scores, scores_view
from deskwire.engine.surveys.insights.themes import theme_of
from tests.engine.surveys.answered import DAY, asking, question, response, sample
from tests.support.builders import NOON

TWICE = [{"id": each, "label": {"en": each, "de": each}} for each in ("free", "pro")]
PLANS = [{"id": each, "label": {"en": each}} for each in ("free", "pro")]


@pytest.mark.parametrize(
    ("kind", "answers", "score"),
    [
        ("nps", [10, 9, 8, 7, 6, 0], 0.0),
        ("nps", [10] * 70 + [7] * 20 + [0] * 10, 60.0),
        ("nps", [0, 6], -100.0),
        ("nps", [9, 10], 100.0),
        ("nps", [9, 7, 7], 33.3),
        ("csat", [5, 4, 3, 2, 1], 40.0),
        ("csat", [3], 0.0),
        ("ces", [1, 7, 6], 4.67),
        ("rating", [4, 5], 4.5),
        ("nps", [], None),
    ],
)
def test_score_follows_its_definition(kind: Any, answers: list[int], score: float | None) -> None:
    assert score_of(Question("q", kind, {}), answers) == score


@given(st.lists(st.integers(0, 10), min_size=1))
def test_an_nps_stays_between_its_ends(answers: list[int]) -> None:
    score = score_of(Question("q", "nps", {}), answers)
    assert score is not None
    assert -100 <= score <= 100


SCALES: list[tuple[QuestionType, int, int]] = [("nps", 0, 10), ("csat", 1, 5), ("ces", 1, 7)]


def test_sentiment_of_an_answer_follows_its_scale() -> None:
    felt = {
        kind: [feeling(Question("q", kind, {}), answer) for answer in range(low, high + 1)]
        for kind, low, high in SCALES
    }
    assert felt == {
        "nps": [-1, -1, -1, -1, -1, -1, -1, 0, 0, 1, 1],
        "csat": [-1, -1, 0, 1, 1],
        "ces": [-1, -1, -1, 0, 1, 1, 1],
    }


def test_every_scale_of_the_published_version_has_its_score() -> None:
    definition = asking(question("n", "nps"), question("c", "csat"), question("t", "text"))
    shown = scores_view(scores(sample(definition, {"n": 10}, {"n": 9, "c": 5}, {})), "en")
    assert shown == [
        {"questionId": "n", "title": "n?", "type": "nps", "score": 100.0, "count": 2},
        {"questionId": "c", "title": "c?", "type": "csat", "score": 100.0, "count": 1},
    ]


def test_a_question_that_changed_its_scale_is_compared_with_its_like_only() -> None:
    older, newer = asking(question("r", "rating")), asking(question("r", "rating", max=10))
    responses = [response(1, {"r": 10}, version=2), response(2, {"r": 1}, version=1)]
    assert [(each.score, each.count) for each in scores(Sample({1: older, 2: newer}, 2, responses))] == [
        (10, 1)
    ]


@given(st.lists(st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)), min_size=2, max_size=30))
def test_the_correlation_is_that_of_the_standard_library(pairs: list[tuple[int, int]]) -> None:
    xs, ys = [float(x) for x, _ in pairs], [float(y) for _, y in pairs]
    found = correlation(xs, ys)
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(statistics.correlation(xs, ys), abs=1e-9)


def test_drivers_correlate_with_the_score() -> None:
    definition = asking(
        question("score", "nps"),
        question("speed", "rating"),
        question("wait", "number"),
        question("plan", "single_choice", choices=PLANS),
        question("noise", "csat"),
    )
    answers = [
        {
            "score": n,
            "speed": 1 + n // 2 if n < 10 else 5,
            "wait": 100 - n,
            "plan": "pro" if n > 4 else "free",
            "noise": 3,
        }
        for n in range(11)
    ]
    found = {each["id"]: each for each in drivers(sample(definition, *answers))}
    assert found["wait"] == {"id": "wait", "title": "wait?", "impact": -1.0, "count": 11}
    assert found["speed"]["impact"] > 0.9
    assert found["plan:pro"]["impact"] == pytest.approx(-found["plan:free"]["impact"])
    assert found["plan:pro"]["title"] == "plan? pro"
    assert "noise" not in found  # it does not vary
    assert next(iter(found)) == "wait"


def test_too_few_responses_show_no_driver() -> None:
    definition = asking(question("score", "nps"), question("wait", "number"))
    assert drivers(sample(definition, *({"score": n, "wait": n} for n in range(9)))) == []
    assert len(drivers(sample(definition, *({"score": n, "wait": n} for n in range(10))))) == 1


def test_group_of_nearly_all_or_nearly_no_answers_is_no_driver() -> None:
    definition = asking(question("score", "nps"), question("plan", "single_choice", choices=PLANS))
    answers = [{"score": n % 11, "plan": "pro" if n < 4 else "free"} for n in range(20)]
    assert drivers(sample(definition, *answers)) == []


def test_segments_are_groups_with_the_surveys_score() -> None:
    definition = asking(
        question("score", "nps"),
        question("plan", "multiple_choice", choices=TWICE),
        question("new", "boolean"),
        languages=("en", "de"),
    )
    answers: list[dict[str, Any]] = [{"score": 10, "plan": ["pro", "free"], "new": True}] * 6
    answers += [{"score": 0, "plan": ["free"], "new": False}] * 6
    found = segments(sample(definition, *answers))
    assert [(each["id"], each["size"], each["score"]) for each in found] == [
        ("language:en", 12, 0.0),
        ("plan:free", 12, 0.0),
        ("new", 6, 100.0),
        ("plan:pro", 6, 100.0),
    ]
    assert segments(sample(definition, *answers[:4])) == []


def test_without_a_question_for_a_score_there_are_neither_drivers_nor_segments() -> None:
    definition = asking(question("t", "text"), question("b", "boolean"))
    many = sample(definition, *({"b": True} for _ in range(20)))
    assert (drivers(many), segments(many), scores(many)) == ([], [], [])


def over_time(kind: str, earlier: Sequence[int], recent: Sequence[int]) -> Sample:
    definition = asking(question("s", kind), question("t", "text"))
    old = [response(n, {"s": each, "t": "fine"}, at=NOON - 10 * DAY) for n, each in enumerate(earlier)]
    new = [response(100 + n, {"s": each, "t": "slow"}, at=NOON - DAY) for n, each in enumerate(recent)]
    return Sample({1: definition}, 1, [*new, *old])


@pytest.mark.parametrize(
    ("kind", "earlier", "recent", "severity"),
    [
        ("nps", [10] * 20, [10] * 18 + [7] * 2, "warning"),  # 100 to 90
        ("nps", [10] * 20, [10] * 19 + [7], None),  # 95
        ("nps", [10] * 20, [10] * 16 + [7] * 4, "critical"),
        ("nps", [10] * 20, [0] * 19, None),  # too few
        ("csat", [5] * 20, [5] * 18 + [1] * 2, "warning"),
        ("ces", [7] * 20, [6] * 20, "warning"),
        ("rating", [5] * 20, [4] * 20, "critical"),
        ("nps", [0] * 20, [10] * 20, None),  # better
    ],
)
def test_a_drop_of_the_score_is_an_alert_from_a_tenth_on(
    kind: str, earlier: list[int], recent: list[int], severity: str | None
) -> None:
    found = alerts(over_time(kind, earlier, recent), [], [], {}, NOON)
    assert [(each["id"], each["severity"]) for each in found] == (
        [("score_drop", severity)] if severity else []
    )


def test_a_complaint_that_becomes_frequent_is_an_alert_which_keeps_its_time() -> None:
    many = over_time("nps", [9] * 20, [2] * 20)
    written = comments(many)
    slow = theme_of("slow", [comment for comment in written if comment.text == "slow"], "negative", [])
    fine = theme_of("fine", [comment for comment in written if comment.text == "fine"], "positive", [])
    found = alerts(many, [slow, fine], written, {"theme_spike:slow": iso(NOON - 5 * DAY)}, NOON)
    assert [each["id"] for each in found] == ["score_drop", "theme_spike:slow"]
    assert found[0]["createdAt"] == iso(NOON)
    assert found[1]["createdAt"] == iso(NOON - 5 * DAY)
    assert found[1]["message"] == "“Slow” is in 20 of 20 comments of the last 7 days, before in 0 of 20."


def test_praise_that_becomes_frequent_is_no_alert() -> None:
    many = over_time("nps", [0] * 20, [10] * 20)
    written = comments(many)
    assert alerts(many, [theme_of("slow", written, "positive", [])], written, {}, NOON) == []
