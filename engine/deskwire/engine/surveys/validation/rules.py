"""The rules of survey definitions, each with a code, a meaning, and an example that violates it.

The validation, the reference page and the tests use this list.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.definitions.rules import COMMON_RULES, DefinitionError


class SurveyRule(Struct, frozen=True):
    """A rule. `example` has members with which VALID violates this rule and no other."""

    code: str
    meaning: str
    example: Mapping[str, Any]


_NPS: Final = {"id": "score", "type": "nps", "title": {"en": "Would you recommend us?"}, "required": True}
_WHY: Final = {"id": "why", "type": "text", "title": {"en": "Why?"}}
_PLAN: Final = {
    "id": "plan",
    "type": "single_choice",
    "title": {"en": "Your plan?"},
    "choices": [{"id": "free", "label": {"en": "Free"}}, {"id": "pro", "label": {"en": "Pro"}}],
}

VALID: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "schemaVersion": "2.0",
        "title": "After the chat",
        "languages": ["en"],
        "primaryLanguage": "en",
        "questions": [_NPS, _WHY, _PLAN],
        "logic": [{"from": "score", "to": "plan", "when": {"op": "gte", "value": 9}}],
        "thankYou": {"en": "Thank you!"},
    }
)
"""A valid definition."""


def _asking(*questions: Mapping[str, Any]) -> dict[str, Any]:
    return {"questions": list(questions), "logic": []}


def _jumping(*jumps: Mapping[str, Any]) -> dict[str, Any]:
    return {"logic": list(jumps)}


def _when(op: str, value: Any = None, source: str = "score") -> dict[str, Any]:
    when = {"op": op} if value is None else {"op": op, "value": value}
    return _jumping({"from": source, "to": "end", "when": when})


_ALL: Final = (
    SurveyRule("wrong_type", COMMON_RULES["wrong_type"], {"title": 7}),
    SurveyRule("required", COMMON_RULES["required"], _asking({"type": "nps", "title": {"en": "?"}})),
    SurveyRule("unknown_field", COMMON_RULES["unknown_field"], {"colour": "blue"}),
    SurveyRule("unsupported_version", '`schemaVersion` must be `"2.0"`.', {"schemaVersion": "1.0"}),
    SurveyRule("empty", COMMON_RULES["empty"], {"questions": [], "logic": []}),
    SurveyRule("too_long", COMMON_RULES["too_long"], {"title": "x" * 501}),
    SurveyRule("nul_character", COMMON_RULES["nul_character"], {"title": "a\0b"}),
    SurveyRule(
        "too_many",
        "A list has more items than allowed: 20 languages, 200 questions, 100 choices, 500 jumps, 100 values.",
        _when("in", [10] * 101),
    ),
    SurveyRule(
        "bad_language",
        "This is no language tag (BCP 47) such as `en` or `pt-BR`.",
        {"languages": ["en", "?"]},
    ),
    SurveyRule("duplicate_language", "A language is listed twice.", {"languages": ["en", "en"]}),
    SurveyRule(
        "unknown_language", "`primaryLanguage` must be one of `languages`.", {"primaryLanguage": "de"}
    ),
    SurveyRule(
        "bad_id",
        "An id has 1 to 64 letters, digits, `_` and `-`, and a question's is not `end`.",
        _asking({**_NPS, "id": "my score"}),
    ),
    SurveyRule(
        "duplicate_id", "Two questions, or two choices of a question, have the same id.", _asking(_NPS, _NPS)
    ),
    SurveyRule("unknown_type", "There is no such type of question.", _asking({**_NPS, "type": "stars"})),
    SurveyRule(
        "empty_choices",
        "A question of this type needs at least one choice.",
        _asking({**_PLAN, "choices": []}),
    ),
    SurveyRule(
        "choices_not_allowed",
        "A question of this type has no choices.",
        _asking({**_NPS, "choices": _PLAN["choices"]}),
    ),
    SurveyRule(
        "bounds_not_allowed", "A question of this type has no `min` and `max`.", _asking({**_NPS, "max": 5})
    ),
    SurveyRule(
        "bad_bounds",
        "`min` and `max` contradict each other, or go beyond what the type allows.",
        _asking({**_WHY, "min": 50, "max": 10}),
    ),
    SurveyRule("missing_translation", "A text lacks one of the languages.", {"thankYou": {}}),
    SurveyRule(
        "unknown_translation",
        "A text has a language that `languages` does not list.",
        {"thankYou": {"en": "Thank you!", "de": "Danke!"}},
    ),
    SurveyRule(
        "unknown_question",
        "A jump begins or ends at a question that is not there.",
        _jumping({"from": "score", "to": "how"}),
    ),
    SurveyRule(
        "jump_backwards",
        "A jump goes to its own or an earlier question.",
        _jumping({"from": "why", "to": "score", "when": {"op": "answered"}}),
    ),
    SurveyRule("unknown_operator", "There is no such operator.", _when("like", 9)),
    SurveyRule(
        "operator_mismatch", "Answers of this type can't be compared in this way.", _when("contains", 9)
    ),
    SurveyRule(
        "condition_value",
        "The value is none that answers to this question are compared with.",
        _when("eq", "gold", source="plan"),
    ),
    SurveyRule("impossible_condition", "No answer to this question can meet the condition.", _when("gt", 10)),
    SurveyRule(
        "unreachable_jump",
        "A jump is never taken, as earlier ones from its question are taken always.",
        _jumping({"from": "plan", "to": "end"}, {"from": "plan", "to": "end", "when": {"op": "answered"}}),
    ),
    SurveyRule(
        "unreachable_question",
        "No answers lead to the question.",
        _jumping({"from": "score", "to": "plan"}),
    ),
)

RULES: Final[Mapping[str, SurveyRule]] = MappingProxyType({rule.code: rule for rule in _ALL})
"""Every rule by its code."""


def broken(code: str, path: str, message: str) -> DefinitionError:
    """Return the error that the value at `path` violates the rule with this code."""
    return DefinitionError(path, RULES[code].code, message)
