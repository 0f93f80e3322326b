"""`min` and `max` of a question: what each type makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from deskwire.engine.definitions.checks import NUMBER_MAX, is_number, is_whole
from deskwire.engine.definitions.rules import DefinitionError
from deskwire.engine.surveys.definition import TEXT_MAX
from deskwire.engine.surveys.validation.rules import broken

_RATING_MAX: Final = 100
_BOUNDED: Final = frozenset({"rating", "number", "text", "multiple_choice"})


def bounds_errors(question: Mapping[str, Any], path: str, kind: str) -> Iterator[DefinitionError]:
    """What is wrong with the bounds of a question of a known type."""
    given = [name for name in ("min", "max") if name in question]
    if kind not in _BOUNDED:
        for name in given:
            yield broken("bounds_not_allowed", f"{path}/{name}", f"A question of type {kind} has no {name}.")
        return
    fine = is_number if kind == "number" else is_whole
    bad = [name for name in given if not fine(question[name])]
    for name in bad:
        wanted = "a number" if kind == "number" else "an integer"
        yield broken("wrong_type", f"{path}/{name}", f"This must be {wanted}.")
    if not bad:
        yield from _contradictions(question, path, kind, given)


def _contradictions(
    question: Mapping[str, Any], path: str, kind: str, given: list[str]
) -> Iterator[DefinitionError]:
    least, most = _reach(question, kind)
    for name in given:
        if not least <= question[name] <= most:
            message = f"This must be from {least:,} to {most:,}."
            yield broken("bad_bounds", f"{path}/{name}", message)
            return
    low, high = (
        question.get("min", 1 if kind == "rating" else least),
        question.get("max", 5 if kind == "rating" else most),
    )
    if low > high or (kind == "rating" and low == high):
        yield broken("bad_bounds", f"{path}/{given[0]}", "min must be less than max.")
    if kind in ("text", "multiple_choice") and high == 0:
        yield broken("bad_bounds", f"{path}/max", "max must be at least 1.")


def _reach(question: Mapping[str, Any], kind: str) -> tuple[int, int]:
    if kind == "number":
        return -NUMBER_MAX, NUMBER_MAX
    if kind == "rating":
        return 0, _RATING_MAX
    if kind == "text":
        return 0, TEXT_MAX
    choices = question.get("choices")
    return 0, len(choices) if isinstance(choices, list) and choices else TEXT_MAX
