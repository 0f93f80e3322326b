"""A respondent's answers against the definition they answer (decisions 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deskwire.engine.core.errors import Problem
from deskwire.engine.definitions.checks import escaped, is_date, is_number, is_whole
from deskwire.engine.surveys.definition import TEXT_MAX, Definition, Question
from deskwire.engine.surveys.path import asked


def answer_problems(definition: Definition, answers: Mapping[str, Any]) -> list[Problem]:
    """Everything that is wrong with the answers; pointers begin with `/answers`.

    An answer to a question that the logic skips is refused: nobody was asked it, so it must not count. What was
    asked is known only up to the first answer that is wrong; what lies behind is checked by itself.
    """
    known = {question.id for question in definition.questions}
    found = {
        question.id: list(_problems(question, answers[question.id]))
        for question in definition.questions
        if question.id in answers
    }
    problems = [
        Problem(_pointer(name), "unknown_question", "The survey has no question with this id.")
        for name in answers
        if name not in known
    ]
    seen: set[str] = set()
    for question in asked(definition, answers):
        seen.add(question.id)
        if question.id not in answers and question.required:
            problems.append(Problem(_pointer(question.id), "required", "This question must be answered."))
            break
        if found.get(question.id):
            break
    else:
        problems += [
            Problem(_pointer(name), "not_asked", "With the other answers this question is not asked.")
            for name in found
            if name not in seen
        ]
    return [*problems, *(problem for each in found.values() for problem in each)]


def _problems(question: Question, value: Any) -> Iterator[Problem]:
    """What is wrong with the answer to a question."""
    pointer = _pointer(question.id)
    if question.scale is not None:
        low, high = question.scale
        if not is_whole(value) or not low <= value <= high:
            yield Problem(pointer, "bad_answer", f"This must be an integer from {low} to {high}.")
        return
    match question.type:
        case "single_choice":
            if not isinstance(value, str) or value not in (question.choices or ()):
                yield Problem(pointer, "bad_answer", "This must be the id of one of the choices.")
        case "multiple_choice":
            yield from _choices(question, value)
        case "text":
            yield from _text(question, value)
        case "number":
            if not is_number(value) or not _within(question, value):
                yield Problem(pointer, "bad_answer", f"This must be a number{_reach(question)}.")
        case "date":
            if not is_date(value):
                yield Problem(pointer, "bad_answer", "This must be a date such as 2026-11-01.")
        case _:
            if not isinstance(value, bool):
                yield Problem(pointer, "bad_answer", "This must be true or false.")


def _choices(question: Question, value: Any) -> Iterator[Problem]:
    pointer, known = _pointer(question.id), question.choices or {}
    if not isinstance(value, list) or len(value) > len(known):
        yield Problem(pointer, "bad_answer", "This must be an array of ids of choices, each of them once.")
        return
    for index, each in enumerate(value):
        if not isinstance(each, str) or each not in known or each in value[:index]:
            message = "This must be the id of one of the choices, and listed once."
            yield Problem(f"{pointer}/{index}", "bad_answer", message)
    if not value or not _within(question, len(value)):
        yield Problem(pointer, "bad_answer", f"The number of choices must be at least 1{_reach(question)}.")


def _text(question: Question, value: Any) -> Iterator[Problem]:
    pointer = _pointer(question.id)
    if not isinstance(value, str) or not value.strip():
        yield Problem(pointer, "bad_answer", "This must be a text; leave out what was not answered.")
    elif len(value) > TEXT_MAX or not _within(question, len(value)):
        yield Problem(
            pointer, "bad_answer", f"The number of characters must be at most {TEXT_MAX:,}{_reach(question)}."
        )


def _within(question: Question, value: float) -> bool:
    low, high = question.minimum, question.maximum
    return (low is None or value >= low) and (high is None or value <= high)


def _reach(question: Question) -> str:
    """The question's bounds in words."""
    low, high = question.minimum, question.maximum
    words = ([] if low is None else [f"at least {low:,}"]) + ([] if high is None else [f"at most {high:,}"])
    return f", {' and '.join(words)}" if words else ""


def _pointer(question_id: str) -> str:
    return f"/answers/{escaped(question_id)}"
