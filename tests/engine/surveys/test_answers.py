"""Answers against the definition that they answer, and along its logic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.surveys.answers import answer_problems
from deskwire.engine.surveys.definition import SurveyDefinition, definition_of
from deskwire.engine.surveys.validation.rules import VALID
from deskwire.engine.surveys.validation.validate import definition_errors

CHOICES = [{"id": each, "label": {"en": each.upper()}} for each in ("a", "b", "c")]


def one(**question: Any) -> SurveyDefinition:
    """Return a definition with this one question, `q`."""
    value = {**VALID, "questions": [{"id": "q", "title": {"en": "?"}, **question}], "logic": []}
    assert definition_errors(value) == []
    return definition_of(value)


GOOD: list[tuple[dict[str, Any], list[Any]]] = [
    ({"type": "nps"}, [0, 10]),
    ({"type": "csat"}, [1, 5]),
    ({"type": "ces"}, [1, 7]),
    ({"type": "rating"}, [1, 5]),
    ({"type": "rating", "min": 0, "max": 10}, [0, 10]),
    ({"type": "single_choice", "choices": CHOICES}, ["a"]),
    ({"type": "multiple_choice", "choices": CHOICES}, [["a"], ["c", "b", "a"]]),
    ({"type": "multiple_choice", "choices": CHOICES, "max": 2}, [["a", "b"]]),
    ({"type": "text", "max": 5}, ["x", "12345"]),
    ({"type": "number", "min": -1}, [-1, 0.5, 10**15]),
    ({"type": "date"}, ["2026-11-01"]),
    ({"type": "boolean"}, [True, False]),
]
BAD: list[tuple[dict[str, Any], list[Any]]] = [
    ({"type": "nps"}, [-1, 11, 5.0, "5", True, None, []]),
    ({"type": "csat"}, [0, 6]),
    ({"type": "ces"}, [0, 8]),
    ({"type": "rating"}, [0, 6]),
    ({"type": "single_choice", "choices": CHOICES}, ["d", 1, ["a"], {}, None]),
    (
        {"type": "multiple_choice", "choices": CHOICES},
        [[], ["d"], ["a", "a"], "a", [["a"]], ["a", "b", "c", "d"]],
    ),
    ({"type": "multiple_choice", "choices": CHOICES, "min": 2}, [["a"]]),
    ({"type": "text", "max": 5}, ["", "  ", "123456", 7]),
    ({"type": "text"}, ["x" * 20_001]),
    ({"type": "number", "min": -1, "max": 1}, [-2, 2, "1", True, float("inf"), float("nan"), 10**400]),
    ({"type": "date"}, ["2026-02-30", "20261101", "2026-11-01T00:00:00Z", 7]),
    ({"type": "boolean"}, [0, 1, "true"]),
]


def each(cases: list[tuple[dict[str, Any], list[Any]]]) -> list[Any]:
    return [
        pytest.param(question, answer, id=f"{question['type']}-{number}")
        for question, answers in cases
        for number, answer in enumerate(answers)
    ]


@pytest.mark.parametrize(("question", "answer"), each(GOOD))
def test_answer_that_fits_its_question_is_accepted(question: dict[str, Any], answer: Any) -> None:
    assert answer_problems(one(**question), {"q": answer}) == []


@pytest.mark.parametrize(("question", "answer"), each(BAD))
def test_an_answer_that_does_not_fit_its_question_is_refused(question: dict[str, Any], answer: Any) -> None:
    problems = answer_problems(one(**question), {"q": answer})
    assert {problem.code for problem in problems} == {"bad_answer"}
    assert all(problem.pointer.startswith("/answers/q") for problem in problems)


def test_required_questions_need_an_answer_and_optional_ones_do_not() -> None:
    definition = definition_of(VALID)
    assert [(each.pointer, each.code) for each in answer_problems(definition, {})] == [
        ("/answers/score", "required")
    ]
    assert answer_problems(definition, {"score": 3}) == []


def test_an_answer_to_a_question_that_the_logic_skips_is_refused() -> None:
    definition = definition_of(VALID)
    assert answer_problems(definition, {"score": 9, "plan": "pro"}) == []
    assert answer_problems(definition, {"score": 8, "why": "slow", "plan": "pro"}) == []
    problems = answer_problems(definition, {"score": 9, "why": "slow"})
    assert [(problem.pointer, problem.code) for problem in problems] == [("/answers/why", "not_asked")]


def test_every_problem_is_named_and_none_is_guessed_after_a_wrong_answer() -> None:
    problems = answer_problems(definition_of(VALID), {"score": 99, "why": "slow", "plan": "gold", "x/y": 1})
    assert {(problem.pointer, problem.code) for problem in problems} == {
        ("/answers/score", "bad_answer"),
        ("/answers/plan", "bad_answer"),
        ("/answers/x~1y", "unknown_question"),
    }


@given(
    st.dictionaries(
        st.sampled_from(["score", "why", "plan", "q"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text("aé ")
        | st.lists(st.text("ab"))
        | st.just({"a": 1}),
    )
)
def test_no_answers_upset_the_check(answers: dict[str, Any]) -> None:
    answer_problems(definition_of(VALID), answers)
    for question, _ in GOOD:
        answer_problems(one(**question), {"q": answers.get("q")})
