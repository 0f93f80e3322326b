"""Survey definitions: every rule, whatever JSON comes, and a reachability that is held against all answers."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.definitions.checks import ERRORS_MAX
from deskwire.engine.surveys.definition import definition_of
from deskwire.engine.surveys.logic import questions_asked
from deskwire.engine.surveys.question_types import TYPES
from deskwire.engine.surveys.validation.rules import RULES, VALID, SurveyRule
from deskwire.engine.surveys.validation.validate import definition_errors

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=12), inner, max_size=5),
    max_leaves=30,
)
MEMBERS = [
    *("schemaVersion", "title", "languages", "primaryLanguage", "questions", "logic", "thankYou"),
    *("id", "type", "required", "choices", "label", "min", "max", "from", "to", "when", "op", "value", "en"),
]
WORDS = st.sampled_from([*MEMBERS, *TYPES, "2.0", "end", "eq", "in", "contains", "answered", "2026-02-30"])
NEARLY = st.recursive(
    JSON | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=8),
    max_leaves=40,
)


def codes(value: Any) -> set[str]:
    return {error.code for error in definition_errors(value)}


def with_parts(**parts: Any) -> dict[str, Any]:
    return {**VALID, **parts}


def test_a_sound_definition_breaks_no_rule() -> None:
    assert definition_errors(dict(VALID)) == []


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_the_example_of_a_rule_breaks_that_rule_and_no_other(rule: SurveyRule) -> None:
    errors = definition_errors(with_parts(**rule.example))
    assert {error.code for error in errors} == {rule.code}
    assert all(error.message for error in errors)


def test_optional_parts_may_be_left_out() -> None:
    value = {name: part for name, part in VALID.items() if name not in ("logic", "thankYou")}
    assert definition_errors(value) == []


def test_every_problem_is_found_at_its_place() -> None:
    value = {
        "schemaVersion": "2.0",
        "title": "",
        "languages": ["en", "de"],
        "primaryLanguage": "fr",
        "questions": [
            {"id": "a", "type": "nps", "title": {"en": "A"}, "choices": []},
            {"id": "a", "type": "rating", "title": {"en": "B", "de": "B"}, "min": 5, "max": 1},
            {"id": "c/d", "type": "single_choice", "title": {"en": "C", "de": "C", "fr": "C"}},
        ],
        "logic": [{"from": "x", "to": "a", "wen": {}}],
        "thankYou": 7,
    }
    found = {(error.path, error.code) for error in definition_errors(value)}
    assert found == {
        ("/title", "empty"),
        ("/primaryLanguage", "unknown_language"),
        ("/questions/0/title/de", "missing_translation"),
        ("/questions/0/choices", "choices_not_allowed"),
        ("/questions/1/id", "duplicate_id"),
        ("/questions/1/min", "bad_bounds"),
        ("/questions/2/id", "bad_id"),
        ("/questions/2/title/fr", "unknown_translation"),
        ("/questions/2/choices", "empty_choices"),
        ("/logic/0/wen", "unknown_field"),
        ("/logic/0/from", "unknown_question"),
        ("/thankYou", "wrong_type"),
    }


@given(JSON | NEARLY)
def test_no_json_upsets_the_validation(value: Any) -> None:
    for error in definition_errors(value):
        assert error.code in RULES
        assert error.path == "" or error.path.startswith("/")


@pytest.mark.thorough
@given(st.sampled_from(sorted(VALID)), NEARLY)
def test_no_part_upsets_the_validation_of_the_rest(name: str, part: Any) -> None:
    definition_errors(with_parts(**{name: part}))


@pytest.mark.thorough
@given(st.lists(st.fixed_dictionaries({"from": st.just("score"), "to": WORDS, "when": NEARLY}), max_size=4))
def test_no_condition_upsets_the_validation(logic: list[Any]) -> None:
    definition_errors(with_parts(logic=logic))


@pytest.mark.thorough
@given(st.dictionaries(st.sampled_from(MEMBERS), NEARLY), st.sampled_from(list(TYPES)))
def test_no_question_upsets_the_validation(members: dict[str, Any], kind: str) -> None:
    question = {"id": "q", "title": {"en": "?"}, **members, "type": kind}
    definition_errors(
        with_parts(
            questions=[question], logic=[{"from": "q", "to": "end", "when": {"op": "in", "value": [1]}}]
        )
    )


def test_a_definition_that_is_nested_deeply_is_refused_like_any_other() -> None:
    value: Any = []
    for _ in range(900):
        value = [value]
    assert codes(value) == {"wrong_type"}
    assert codes(with_parts(questions=[value], logic=[])) == {"wrong_type"}


def test_a_megabyte_of_nonsense_is_answered_with_the_first_thousand_problems() -> None:
    languages = [f"l{letter}{other}" for letter in "abcde" for other in "abcd"]
    choices = [{"id": f"c{number}", "label": {}} for number in range(100)]
    questions = [
        {"id": f"q{number}", "type": "single_choice", "title": {}, "choices": choices}
        for number in range(200)
    ]
    value = with_parts(languages=languages, primaryLanguage="laa", questions=questions, logic=[])
    assert len(definition_errors(value)) == ERRORS_MAX


def test_many_conditions_with_many_values_are_judged_in_bounded_work() -> None:
    """Tried out one by one they would be ten thousand answers for each of 500 jumps."""
    question = {"id": "n", "type": "number", "title": {"en": "N"}}
    last = {"id": "z", "type": "text", "title": {"en": "Z"}}
    logic = [
        {"from": "n", "to": "end", "when": {"op": "in", "value": [jump * 100 + each for each in range(100)]}}
        for jump in range(500)
    ]
    assert codes(with_parts(questions=[question, last], logic=logic)) == set()


@pytest.mark.parametrize(
    ("question", "when", "code"),
    [
        ({"type": "nps"}, {"op": "lt", "value": 0}, "impossible_condition"),
        ({"type": "nps"}, {"op": "eq", "value": 7.5}, "condition_value"),
        ({"type": "nps"}, {"op": "eq", "value": True}, "condition_value"),
        ({"type": "csat"}, {"op": "gt", "value": 5}, "impossible_condition"),
        ({"type": "ces"}, {"op": "in", "value": [8, 9]}, "impossible_condition"),
        ({"type": "rating", "max": 10}, {"op": "gt", "value": 5}, None),
        ({"type": "rating"}, {"op": "gt", "value": 5}, "impossible_condition"),
        ({"type": "number", "max": 5}, {"op": "gt", "value": 5}, "impossible_condition"),
        ({"type": "number", "max": 5}, {"op": "gte", "value": 5}, None),
        ({"type": "number"}, {"op": "eq", "value": 10**16}, "condition_value"),
        ({"type": "date"}, {"op": "gt", "value": "2026-02-30"}, "condition_value"),
        ({"type": "date"}, {"op": "lt", "value": "0001-01-01"}, "impossible_condition"),
        ({"type": "date"}, {"op": "gt", "value": "2026-02-28"}, None),
        ({"type": "boolean"}, {"op": "eq", "value": 1}, "condition_value"),
        ({"type": "boolean"}, {"op": "ne", "value": True}, "operator_mismatch"),
        ({"type": "text", "max": 3}, {"op": "contains", "value": "long"}, "impossible_condition"),
        ({"type": "text"}, {"op": "contains", "value": " "}, "condition_value"),
        ({"type": "text", "required": True}, {"op": "not_answered"}, "impossible_condition"),
        ({"type": "nps", "required": True}, {"op": "not_answered"}, "impossible_condition"),
        ({"type": "text"}, {"op": "answered", "value": True}, "unknown_field"),
        ({"type": "nps"}, {"op": "eq"}, "required"),
        ({"type": "nps"}, {"op": "in", "value": []}, "empty"),
    ],
)
def test_a_condition_must_be_one_that_an_answer_can_meet(
    question: dict[str, Any], when: dict[str, Any], code: str | None
) -> None:
    questions = [
        {"id": "q", "title": {"en": "?"}, **question},
        {"id": "z", "type": "text", "title": {"en": "Z"}},
    ]
    found = codes(with_parts(questions=questions, logic=[{"from": "q", "to": "end", "when": when}]))
    assert found == ({code} if code else set())


def test_jumps_that_cover_every_answer_between_them_leave_the_next_question_unreachable() -> None:
    questions: list[dict[str, Any]] = [
        {"id": "q", "type": "nps", "title": {"en": "?"}, "required": True},
        {"id": "lost", "type": "text", "title": {"en": "?"}},
        {"id": "z", "type": "text", "title": {"en": "?"}},
    ]
    logic = [
        {"from": "q", "to": "z", "when": {"op": "lte", "value": 6}},
        {"from": "q", "to": "end", "when": {"op": "gt", "value": 6}},
    ]
    errors = definition_errors(with_parts(questions=questions, logic=logic))
    assert [(error.path, error.code) for error in errors] == [("/questions/1", "unreachable_question")]
    questions[0].pop("required")  # without an answer the next question follows
    assert codes(with_parts(questions=questions, logic=logic)) == set()


CONDITIONS = st.none() | st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(["eq", "ne", "lt", "gte"]), "value": st.integers(1, 5)}),
    st.fixed_dictionaries({"op": st.sampled_from(["answered", "not_answered"])}),
)


@st.composite
def flows(draw: st.DrawFn) -> dict[str, Any]:
    """Definitions of CSAT questions with any jumps forwards."""
    count = draw(st.integers(1, 4))
    questions = [
        {"id": f"q{number}", "type": "csat", "title": {"en": "?"}, "required": draw(st.booleans())}
        for number in range(count)
    ]
    logic = []
    for source in draw(st.lists(st.integers(0, count - 1), max_size=5)):
        target = draw(st.sampled_from([*(f"q{later}" for later in range(source + 1, count)), "end"]))
        when = draw(CONDITIONS)
        logic.append({"from": f"q{source}", "to": target} | ({} if when is None else {"when": when}))
    return with_parts(questions=questions, logic=logic)


@settings(max_examples=60)
@given(flows())
def test_a_question_is_unreachable_exactly_if_no_answers_lead_to_it(value: dict[str, Any]) -> None:
    definition = definition_of(value)
    reached: set[str] = set()
    possible = [[1, 2, 3, 4, 5] + ([] if each.required else [None]) for each in definition.questions]
    for chosen in product(*possible):
        given_answers = {
            question.id: answer
            for question, answer in zip(definition.questions, chosen, strict=True)
            if answer is not None
        }
        reached |= {question.id for question in questions_asked(definition, given_answers)}
    reported = {error.path for error in definition_errors(value) if error.code == "unreachable_question"}
    assert reported == {
        f"/questions/{position}"
        for position, question in enumerate(definition.questions)
        if question.id not in reached
    }
