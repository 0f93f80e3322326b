"""The check of a question's `min` and `max`, by the rule of its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deskwire.engine.definitions.checks import is_number, is_whole
from deskwire.engine.definitions.rules import DefinitionError
from deskwire.engine.surveys.definition import QuestionType
from deskwire.engine.surveys.question_types import TYPES, Bounds
from deskwire.engine.surveys.validation.rules import broken


def bounds_errors(question: Mapping[str, Any], path: str, kind: QuestionType) -> Iterator[DefinitionError]:
    """Yield what is wrong with the bounds of a question of this type."""
    choices = question.get("choices")
    bounds = TYPES[kind].bounds(len(choices) if isinstance(choices, list) else 0)
    names = [name for name in ("min", "max") if name in question]
    if bounds is None:
        for name in names:
            yield broken("bounds_not_allowed", f"{path}/{name}", f"A question of type {kind} has no {name}.")
        return
    fits = is_whole if bounds.whole else is_number
    misfits = [name for name in names if not fits(question[name])]
    for name in misfits:
        type_ = "an integer" if bounds.whole else "a number"
        yield broken("wrong_type", f"{path}/{name}", f"This must be {type_}.")
    if not misfits:
        yield from _contradictions(question, path, bounds, names)


def _contradictions(
    question: Mapping[str, Any], path: str, bounds: Bounds, names: list[str]
) -> Iterator[DefinitionError]:
    least, most = bounds.least, bounds.most
    for name in names:
        if not least <= question[name] <= most:
            message = f"This must be from {least:,} to {most:,}."
            yield broken("bad_bounds", f"{path}/{name}", message)
            return
    default = (least, most) if bounds.default is None else bounds.default
    low, high = question.get("min", default[0]), question.get("max", default[1])
    if low > high or (bounds.apart and low == high):
        yield broken("bad_bounds", f"{path}/{names[0]}", "min must be less than max.")
    if bounds.positive and high == 0:
        yield broken("bad_bounds", f"{path}/max", "max must be at least 1.")
