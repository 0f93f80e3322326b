"""The panel asks the questions of a survey that the service expects answers to, and no others."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from typing import Any, Final

import pytest

from deskwire.engine.surveys.definition import definition_of
from deskwire.engine.surveys.logic import questions_asked
from deskwire.engine.surveys.question_types import TYPES
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")

_MODULE: Final = ROOT / "http/deskwire/http/pages/desk/core/survey-logic.js"
_SCRIPT: Final = """
let given = ""; process.stdin.on("data", (part) => (given += part));
process.stdin.on("end", () => process.stdout.write(JSON.stringify(JSON.parse(given).map(run))));
"""
_PATHS: Final = """
function run([definition, answers]) {
  const asked = [];
  for (let at = 0; at < definition.questions.length; at = following(definition, at, answers[definition.questions[at].id])) asked.push(definition.questions[at].id);
  return asked;
}
"""
TEXTS: Final = (
    "Straße", "STRASSE", "caf\u00e9", "CAFE\u0301", "\u0130stanbul", "\u0131stanbul", "ISTANBUL", "ΣΊΣΥΦΟΣ", "σίσυφος",
    "\uff36\uff29\uff30", "vip", "\u0645\u0640\u0631\u062d\u0628\u0627", "\u0645\u0631\u062d\u0628\u0627", "Łódź", "lodz", "ẞ", "ß", "re\u00adfund", "Refund",
    "it's", "it\u2019s", "が", "か", "Ёлка", "елка", "👍🏽", "👍",
)  # fmt: skip
CHOICES: Final = ("slow", "rude", "expensive")
_ANSWERS: Final[dict[str, tuple[Any, ...]]] = {
    "nps": tuple(range(11)),
    "number": (-1, 0, 0.5, 1, 1.0, 1e21),
    "date": ("2026-01-31", "2026-02-01", "2025-12-31"),
    "boolean": (True, False),
    "single_choice": CHOICES,
    "multiple_choice": (["slow"], ["rude", "slow"], ["expensive", "rude"]),
    "text": tuple(f"before {each} after" for each in TEXTS),
}


def results(calls: list[Any], function: str, script: str) -> list[Any]:
    """Return what a script with this import of the module makes of each call."""
    source = f"import {{ {function} }} from '{_MODULE.as_uri()}';{script}{_SCRIPT}"
    done = subprocess.run(
        ["node", "--input-type=module", "-e", source],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_TIMEOUT_S,
    )
    return list(json.loads(done.stdout))


def condition(chance: random.Random, kind: str) -> dict[str, Any]:
    """Return a condition that questions of this type support."""
    operator = chance.choice((*TYPES[kind].operators, "answered", "not_answered"))  # type: ignore[index]
    if operator in ("answered", "not_answered"):
        return {"op": operator}
    values = _ANSWERS[kind]
    if kind == "text":
        return {"op": operator, "value": chance.choice(TEXTS)}
    if kind == "multiple_choice":
        return {"op": operator, "value": chance.choice(CHOICES)}
    return {
        "op": operator,
        "value": chance.sample(values, k=2) if operator == "in" else chance.choice(values),
    }


def survey(chance: random.Random) -> dict[str, Any]:
    """Return a definition with a question of each type and jumps that lead forwards."""
    kinds = chance.sample(sorted(_ANSWERS), k=len(_ANSWERS))
    questions: list[dict[str, Any]] = [
        {"id": f"q{at}", "type": kind, "title": {"en": kind}} for at, kind in enumerate(kinds)
    ]
    for each in questions:
        if "choice" in each["type"]:
            each["choices"] = [{"id": choice, "label": {"en": choice}} for choice in CHOICES]
    logic = [
        {
            "from": f"q{at}",
            "to": chance.choice([*(f"q{later}" for later in range(at + 1, len(kinds))), "end"]),
            **({"when": condition(chance, kind)} if chance.random() < 0.9 else {}),
        }
        for at, kind in enumerate(kinds)
        for _ in range(chance.randint(0, 3))
    ]
    return {
        "title": "Any",
        "languages": ["en"],
        "primaryLanguage": "en",
        "questions": questions,
        "logic": logic,
    }


def test_panel_follows_each_jump_as_the_service() -> None:
    chance = random.Random(1)
    calls, expected = [], []
    for _ in range(3_000):
        definition = survey(chance)
        answers = {
            each["id"]: chance.choice(_ANSWERS[each["type"]])
            for each in definition["questions"]
            if chance.random() < 0.85
        }
        calls.append([definition, answers])
        expected.append([each.id for each in questions_asked(definition_of(definition), answers)])
    found = results(calls, "following", _PATHS)
    wrong = [call for call, its, ours in zip(calls, found, expected, strict=True) if its != ours]
    assert wrong[:1] == []


@pytest.mark.parametrize("wanted", TEXTS)
def test_text_contains_another_as_the_service_folds_them(wanted: str) -> None:
    when = {"op": "contains", "value": wanted}
    definition = {
        "title": "Any",
        "languages": ["en"],
        "primaryLanguage": "en",
        "questions": [{"id": each, "type": "text", "title": {"en": each}} for each in ("why", "more")],
        "logic": [{"from": "why", "to": "end", "when": when}],
    }
    answers = [{"why": answer} for answer in _ANSWERS["text"]]
    expected = [[each.id for each in questions_asked(definition_of(definition), each)] for each in answers]
    assert results([[definition, each] for each in answers], "following", _PATHS) == expected


def test_sizes_that_the_service_refuses_are_found_in_the_panel() -> None:
    several = {"type": "multiple_choice", "choices": [{"id": each} for each in CHOICES]}
    questions: list[dict[str, Any]] = [
        {**several, "required": True},
        {**several},
        {**several, "min": 2},
        {**several, "max": 1, "required": True},
        {"type": "text", "required": True},
        {"type": "text", "min": 3, "max": 4},
    ]
    answers: list[Any] = [None, ["slow"], ["slow", "rude"], "\U0001f600\U0001f600", "abc", "abcde"]
    calls = [
        (question, answer)
        for question in questions
        for answer in answers
        if answer is None or isinstance(answer, list) == ("choices" in question)
    ]
    expected = []
    for question, answer in calls:
        (stored,) = definition_of(
            {
                "title": "Any",
                "languages": ["en"],
                "primaryLanguage": "en",
                "questions": [{"id": "q", "title": {}, **_labelled(question)}],
            }
        ).questions
        missing = answer is None and stored.required
        expected.append(
            missing or (answer is not None and any(TYPES[stored.type].problems(stored, answer, "/q")))
        )
    found = results(
        calls,
        "brokenBounds",
        "const run = ([question, answer]) => brokenBounds(question, answer ?? undefined) !== null;",
    )
    assert found == expected


def _labelled(question: dict[str, Any]) -> dict[str, Any]:
    """Return a question whose choices have labels."""
    return {**question, "choices": [{**each, "label": {}} for each in question.get("choices", [])] or None}
