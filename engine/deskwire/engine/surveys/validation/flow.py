"""Validation of jumps: targets exist and lie ahead, and every question can be reached.

The checks accept arbitrary JSON.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.core.values import replace
from deskwire.engine.definitions.checks import (
    Errors,
    items,
    listed,
    members,
    wrong_type,
)
from deskwire.engine.definitions.rules import DefinitionError
from deskwire.engine.surveys.definition import END, Condition, Question
from deskwire.engine.surveys.logic import OPERATORS, PRESENCE, holds, representative_answers
from deskwire.engine.surveys.question_types import TYPES, known_type
from deskwire.engine.surveys.validation.rules import broken
from deskwire.engine.surveys.validation.shape import CHOICES_MAX, LOGIC_MAX, QUESTIONS_MAX, bounds_errors

VALUES_MAX: Final = 100
"""Maximum values of `in`."""

_WORK_MAX: Final = 200_000
"""Maximum answers times jumps to try for one question; above, its answers are not enumerated."""


class _Leap(Struct, frozen=True):
    """A valid jump: source and target by position (None for the end), and its JSON pointer."""

    source: int
    target: int | None
    when: Condition | None
    path: str


def flow_errors(value: Any) -> Errors:
    """Yield errors of a definition's logic, even if the definition has other errors."""
    if not isinstance(value, Mapping):
        return
    logic = value.get("logic", [])
    yield from items(logic, "/logic", LOGIC_MAX, may_be_empty=True)
    questions = [_readable(each) for each in listed(value.get("questions"), QUESTIONS_MAX)]
    positions: dict[str, int] = {}
    for position, question in enumerate(questions):
        if question is not None:
            positions.setdefault(question.id, position)
    leaps: list[_Leap] = []
    sound = True
    for index, jump in enumerate(listed(logic, LOGIC_MAX)):
        leap = yield from _jump(jump, f"/logic/{index}", questions, positions)
        sound = sound and leap is not None
        leaps += [] if leap is None else [leap]
    known = [question for question in questions if question is not None]
    if len(known) == len(questions) == len(positions):
        yield from _unreachable(known, leaps, complete=sound)


def _readable(value: Any) -> Question | None:
    """Return the parts of a question that jumps need; None without a valid id and type."""
    if not isinstance(value, Mapping) or not isinstance(value.get("id"), str):
        return None
    kind = known_type(value.get("type"))
    if kind is None:
        return None
    choices: dict[str, Mapping[str, str]] = {
        choice["id"]: {}
        for choice in listed(value.get("choices"), CHOICES_MAX)
        if isinstance(choice, Mapping) and isinstance(choice.get("id"), str)
    }
    question = Question(value["id"], kind, {}, value.get("required") is True, choices)
    if next(bounds_errors(value, "", kind), None) is None:
        question = replace(question, minimum=value.get("min"), maximum=value.get("max"))
    return question


def _jump(
    value: Any, path: str, questions: Sequence[Question | None], positions: Mapping[str, int]
) -> Generator[DefinitionError, None, _Leap | None]:
    """Yield errors of a jump; return the jump if it is valid."""
    if not isinstance(value, Mapping):
        yield wrong_type(path, "an object")
        return None
    yield from members(value, path, ("from", "to"), ("when",))
    ends: dict[str, int | None] = {}
    for name in ("from", "to"):
        end = value.get(name)
        if name in value and not isinstance(end, str):
            yield wrong_type(f"{path}/{name}", "a string")
        elif isinstance(end, str) and end in positions:
            ends[name] = positions[end]
        elif name == "to" and end == END:
            ends[name] = None
        elif name in value:
            yield broken("unknown_question", f"{path}/{name}", "There is no question with this id.")
    source, target = ends.get("from"), ends.get("to")
    if source is None:
        return None
    if target is not None and target <= source:
        yield broken("jump_backwards", f"{path}/to", "A jump must go to a later question.")
    question = questions[source]
    assert question is not None, "positions are those of readable questions"
    when = None
    if "when" in value:
        when = yield from _condition(value["when"], f"{path}/when", question)
        if when is None:
            return None
    followed = "to" in ends and (target is None or target > source)
    return _Leap(source, target, when, path) if followed else None


def _condition(
    value: Any, path: str, question: Question
) -> Generator[DefinitionError, None, Condition | None]:
    """Yield errors of a condition; return the condition if it is valid."""
    if not isinstance(value, Mapping):
        yield wrong_type(path, "an object")
        return None
    op = value.get("op")
    yield from members(value, path, ("op",) if op in PRESENCE else ("op", "value"))
    if not isinstance(op, str):
        if "op" in value:
            yield wrong_type(f"{path}/op", "a string")
        return None
    if op not in OPERATORS:
        yield broken("unknown_operator", f"{path}/op", f"The operators are {', '.join(sorted(OPERATORS))}.")
        return None
    if op in PRESENCE:
        return Condition(op)
    operators = TYPES[question.type].operators
    if op not in operators:
        known = ", ".join((*operators, *PRESENCE))
        yield broken("operator_mismatch", f"{path}/op", f"The operators of type {question.type} are {known}.")
        return None
    if "value" not in value:
        return None
    wrong = list(_value(value["value"], f"{path}/value", op, question))
    yield from wrong
    return None if wrong else Condition(op, value["value"])


def _value(value: Any, path: str, op: str, question: Question) -> Errors:
    if op == "in":
        yield from items(value, path, VALUES_MAX)
        for index, each in enumerate(listed(value, VALUES_MAX)):
            yield from _value(each, f"{path}/{index}", "eq", question)
    elif not TYPES[question.type].comparable(question, value):
        yield broken(
            "condition_value", path, f"An answer of type {question.type} is never compared with this."
        )


def _unreachable(questions: Sequence[Question], leaps: Sequence[_Leap], *, complete: bool) -> Errors:
    """Yield errors for jumps that are never taken, and for questions that are never asked.

    If some jumps are invalid (`complete` is false), unreachable questions are not reported.
    """
    reached = {0}
    for position, question in enumerate(questions):
        own = [leap for leap in leaps if leap.source == position]
        taken, goes_on = _taken(question, own)
        for index, leap in enumerate(own):
            if index in taken:
                continue
            if _possible(question, leap):
                yield broken(
                    "unreachable_jump", leap.path, "Earlier jumps from the same question are always taken."
                )
            else:
                yield broken(
                    "impossible_condition", f"{leap.path}/when", "No answer to the question can meet this."
                )
        if position in reached:
            reached |= {target for index in taken if (target := own[index].target) is not None}
            reached |= {position + 1} if goes_on else set()
        elif complete:
            yield broken(
                "unreachable_question", f"/questions/{position}", "No answers lead to this question."
            )


def _taken(question: Question, leaps: Sequence[_Leap]) -> tuple[set[int], bool]:
    """Return the jumps of a question that some answer takes, and whether some answer takes none."""
    answers = representative_answers(question, [leap.when for leap in leaps])
    if answers is not None and len(answers) * len(leaps) <= _WORK_MAX:
        first = {
            next((index for index, leap in enumerate(leaps) if holds(leap.when, answer)), None)
            for answer in answers
        }
        return {index for index in first if index is not None}, None in first
    taken: set[int] = set()
    for index, leap in enumerate(leaps):
        if not _possible(question, leap):
            continue
        taken.add(index)
        if leap.when is None or (leap.when.op == "answered" and question.required):
            return taken, False
    return taken, True


def _possible(question: Question, leap: _Leap) -> bool:
    """Return whether any answer meets a jump's condition."""
    answers = representative_answers(question, [leap.when])
    if answers is not None:
        return any(holds(leap.when, answer) for answer in answers)
    if leap.when is None:
        return True
    if leap.when.op == "not_answered":
        return not question.required
    return leap.when.op in PRESENCE or TYPES[question.type].can_meet(question, leap.when)
