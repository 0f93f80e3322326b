"""The registry of question types: a new type is an entry in it, and a name in `definition.QuestionType`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast, get_args

import pytest

from deskwire.commands.reference.surveys import markdown
from deskwire.engine.core.errors import Problem
from deskwire.engine.surveys.answers import answer_problems
from deskwire.engine.surveys.definition import Question, QuestionType
from deskwire.engine.surveys.export import columns, lines
from deskwire.engine.surveys.insights.alerts import alerts
from deskwire.engine.surveys.insights.comments import comments
from deskwire.engine.surveys.insights.compute import plain_summary
from deskwire.engine.surveys.insights.drivers import drivers, segments
from deskwire.engine.surveys.insights.sample import Sample
from deskwire.engine.surveys.insights.scores import scores
from deskwire.engine.surveys.question_types import TYPES, Bounds, Feature, ScaleRules, TypeRules
from deskwire.engine.surveys.scoring import Scoring, mean
from deskwire.engine.surveys.validation.validate import definition_errors
from tests.engine.surveys.answered import DAY, asking, question, response, sample
from tests.support.builders import NOON

ROOT: Final = Path(__file__).parents[3]
UNMISTAKABLE: Final = {"nps", "ces", "single_choice", "multiple_choice"}
"""Types whose names stand for nothing else."""

THEIR_OWN: Final = {
    "engine/deskwire/engine/surveys/definition.py",
    "engine/deskwire/engine/surveys/question_types.py",
    "engine/deskwire/engine/surveys/validation/rules.py",  # examples
    "http/deskwire/http/description/openapi/samples.py",  # examples
    "http/deskwire/http/schemas/surveys.py",  # an example
}


class Coordinates(TypeRules):
    """A latitude and a longitude: a type that is like none of the others."""

    operators = ("contains",)
    is_comment = True

    def bounds(self, choices: int) -> Bounds | None:
        return Bounds(-90, 90, whole=False)

    def problems(self, question: Question, answer: Any, pointer: str) -> Iterator[Problem]:
        if not isinstance(answer, list) or len(answer) != 2:
            yield Problem(pointer, "bad_answer", "This must be a latitude and a longitude.")

    def comparable(self, question: Question, value: Any) -> bool:
        return isinstance(value, float)

    def words(self, question: Question, answer: Any, language: str) -> str:
        return "{}° {}°".format(*answer)

    def features(self, question: Question, language: str) -> Iterator[Feature]:
        yield Feature(question.id, "Latitude", lambda answer: answer[0], is_group=False)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant two types: `stars`, a scale from 0 to 4, and `coordinates`."""
    stars = ScaleRules((0, 4), Scoring("stars", mean, unit=" of 4", drop=2.0))
    registry = cast(dict[str, TypeRules], TYPES)
    monkeypatch.setitem(registry, "stars", stars)
    monkeypatch.setitem(registry, "coordinates", Coordinates())


STARS: Final = question("s", "stars", required=True)
WHERE: Final = question("w", "coordinates", min=-45.5)
LAST: Final = question("z", "text")


def problems(**parts: Any) -> set[tuple[str, str]]:
    value = {
        "schemaVersion": "2.0",
        "title": "Survey",
        "languages": ["en"],
        "primaryLanguage": "en",
        "questions": [STARS, WHERE, LAST],
        **parts,
    }
    return {(error.path, error.code) for error in definition_errors(value)}


def test_the_registry_has_the_types_of_the_api_in_their_order() -> None:
    assert tuple(TYPES) == get_args(QuestionType)


@pytest.mark.usefixtures("planted")
def test_a_definition_may_ask_questions_of_a_new_type_within_its_bounds() -> None:
    assert problems() == set()
    assert problems(questions=[{**STARS, "min": 1}]) == {("/questions/0/min", "bounds_not_allowed")}
    assert problems(questions=[{**WHERE, "max": 91}]) == {("/questions/0/max", "bad_bounds")}
    assert problems(questions=[{**WHERE, "choices": []}]) == {("/questions/0/choices", "choices_not_allowed")}


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(
    ("source", "when", "code"),
    [
        ("s", {"op": "gte", "value": 4}, None),
        ("s", {"op": "gte", "value": 5}, "impossible_condition"),
        ("s", {"op": "not_answered"}, "impossible_condition"),
        ("s", {"op": "eq", "value": "4"}, "condition_value"),
        ("w", {"op": "contains", "value": 47.4}, None),
        ("w", {"op": "contains", "value": 47}, "condition_value"),
        ("w", {"op": "gt", "value": 47.4}, "operator_mismatch"),
    ],
)
def test_jumps_compare_answers_of_a_new_type_by_its_operators(
    source: str, when: dict[str, Any], code: str | None
) -> None:
    found = problems(logic=[{"from": source, "to": "end", "when": when}])
    assert {code for _, code in found} == ({code} if code else set())


@pytest.mark.usefixtures("planted")
def test_answers_of_a_new_type_are_checked_by_its_rules() -> None:
    definition = asking(STARS, WHERE)
    assert answer_problems(definition, {"s": 4, "w": [47.4, 8.5]}) == []
    assert [(each.pointer, each.message) for each in answer_problems(definition, {"s": 5, "w": 7})] == [
        ("/answers/s", "This must be an integer from 0 to 4."),
        ("/answers/w", "This must be a latitude and a longitude."),
    ]


@pytest.mark.usefixtures("planted")
def test_an_export_has_a_new_type_in_its_own_words() -> None:
    shown = columns({1: asking(STARS, WHERE)})
    written = lines(shown, [response(1, {"s": 3, "w": [47.4, 8.5]})])
    assert written.endswith(",3,47.4° 8.5°\r\n")


@pytest.mark.usefixtures("planted")
def test_insights_score_a_new_scale_and_read_a_new_types_answers() -> None:
    answers = [{"s": number % 5, "w": [float(number % 5), 0.0]} for number in range(20)]
    drawn = sample(asking(STARS, WHERE), *answers)
    assert drawn.score_question == drawn.definition.questions[0]
    assert [(each.score, each.count) for each in scores(drawn)] == [(2.0, 20)]
    assert drivers(drawn) == [{"id": "w", "title": "Latitude", "impact": 1.0, "count": 20}]
    assert segments(drawn) == []
    assert {each.text for each in comments(drawn)} >= {"[4.0, 0.0]"}
    assert plain_summary(20, scores(drawn), [], []) == "20 responses. Stars 2 of 4 from 20."


@pytest.mark.usefixtures("planted")
def test_the_fall_of_a_new_score_raises_an_alert() -> None:
    definition = asking(STARS)
    recent = [response(number, {"s": 1}, at=NOON) for number in range(20)]
    before = [response(number, {"s": 4}, at=NOON - 10 * DAY) for number in range(20, 40)]
    drawn = Sample({1: definition}, 1, [*recent, *before])
    (alert,) = alerts(drawn, [], [], {}, NOON)
    assert alert["severity"] == "warning"
    assert alert["message"].startswith("The stars of the last 7 days is 1, down from 4")


@pytest.mark.usefixtures("planted")
def test_the_reference_page_names_a_new_type_with_its_operators() -> None:
    assert "| `coordinates` | `contains` |" in markdown()


def test_no_module_but_the_registry_names_a_type() -> None:
    offenders = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.value}"
        for layer in ("engine", "http", "storage")
        for path in (ROOT / layer).rglob("*.py")
        if str(path.relative_to(ROOT)) not in THEIR_OWN
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in UNMISTAKABLE
    }
    assert offenders == set()
