"""The registry of question types and everything that depends on them (decisions 7).

To add a type, add its name to `definition.QuestionType` and an entry to `TYPES`. Validation, logic, CSV export,
insights, the API's schemas and the reference page use these two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal, cast

from msgspec import Struct

from deskwire.engine.core.errors import Problem
from deskwire.engine.definitions.checks import NUMBER_MAX, is_date, is_number, is_whole
from deskwire.engine.surveys.definition import Condition, Operator, Question, QuestionType, localized
from deskwire.engine.surveys.scoring import CES, CSAT, NPS, RATING, Scale, Scoring

TEXT_MAX: Final = 20_000
"""Maximum characters of an answer; a question may allow fewer."""

_RATING_MAX: Final = 100
_ORDERED: Final[tuple[Operator, ...]] = ("eq", "ne", "lt", "lte", "gt", "gte", "in")
_DAY: Final = timedelta(days=1)


class Bounds(Struct, frozen=True):
    """The allowed values of a question's `min` and `max`.

    Args:
        least, most: both must lie between these.
        whole: both must be integers.
        default: their values where the question does not give them; None for `least` and `most`.
        apart: `min` must be less than `max`, not equal to it.
        positive: `max` must be at least 1.
    """

    least: int
    most: int
    whole: bool = True
    default: Scale | None = None
    apart: bool = False
    positive: bool = False


class Feature(Struct, frozen=True):
    """A number that insights derive from each answer to a question.

    Args:
        read: converts an answer to the number.
        is_group: True if the number is 1 for respondents in the group with this title, and 0 for others.
    """

    id: str
    title: str
    read: Callable[[Any], float]
    is_group: bool


class TypeRules(ABC):
    """The rules of one type of question."""

    operators: ClassVar[tuple[Operator, ...]]
    """Operators of conditions, in addition to `answered` and `not_answered`."""

    has_choices: ClassVar[bool] = False
    is_comment: ClassVar[bool] = False
    """True if answers are free text, which insights search for themes."""

    counted: ClassVar[Literal["whole", "each", "never"]] = "whole"
    """How figures count answers: each whole answer, each of its parts, or not at all."""

    scoring: Scoring | None = None
    """How insights score the answers; None for types without a scale."""

    def scale(self, question: Question) -> Scale | None:
        """Return the lowest and the highest answer; None for types without a scale."""
        return None

    def bounds(self, choices: int) -> Bounds | None:
        """Return the rule for `min` and `max` of a question with `choices` choices; None if it has neither."""
        return None

    @abstractmethod
    def problems(self, question: Question, answer: Any, pointer: str) -> Iterator[Problem]:
        """Yield the problems of an answer, which may be arbitrary JSON; `pointer` is its JSON pointer."""

    @abstractmethod
    def comparable(self, question: Question, value: Any) -> bool:
        """Return whether a condition may compare answers with this value, which may be arbitrary JSON."""

    def representative_answers(self, question: Question, values: Sequence[Any]) -> list[Any] | None:
        """Return answers that cover every result of comparisons with these values; None if there are too many."""
        return None

    def can_meet(self, question: Question, condition: Condition) -> bool:
        """Return whether some answer can meet the condition, for types without representative answers."""
        return True

    def words(self, question: Question, answer: Any, language: str) -> str:
        """Return an answer as readable text for an export."""
        return str(answer)

    def features(self, question: Question, language: str) -> Iterator[Feature]:
        """Yield the numbers that insights derive from answers; none by default."""
        yield from ()


@dataclass(frozen=True, slots=True)
class ScaleRules(TypeRules):
    """An integer on a scale. With `adjustable`, the question's `min` and `max` may change the scale."""

    ends: Scale
    scoring: Scoring
    adjustable: bool = False
    operators: ClassVar = _ORDERED

    def scale(self, question: Question) -> Scale:
        """See `TypeRules.scale`."""
        low, high = self.ends
        return (
            low if question.minimum is None else int(question.minimum),
            high if question.maximum is None else int(question.maximum),
        )

    def bounds(self, choices: int) -> Bounds | None:
        """See `TypeRules.bounds`."""
        return Bounds(0, _RATING_MAX, default=self.ends, apart=True) if self.adjustable else None

    def problems(self, question: Question, answer: Any, pointer: str) -> Iterator[Problem]:
        """See `TypeRules.problems`."""
        low, high = self.scale(question)
        if not is_whole(answer) or not low <= answer <= high:
            yield _bad_answer(pointer, f"This must be an integer from {low} to {high}.")

    def comparable(self, question: Question, value: Any) -> bool:
        """See `TypeRules.comparable`."""
        return is_whole(value)

    def representative_answers(self, question: Question, values: Sequence[Any]) -> list[Any]:
        """See `TypeRules.representative_answers`: all of the scale."""
        low, high = self.scale(question)
        return list(range(low, high + 1))

    def features(self, question: Question, language: str) -> Iterator[Feature]:
        """See `TypeRules.features`: the answer."""
        yield Feature(question.id, localized(question.title, language), float, is_group=False)


class ChoiceRules(TypeRules):
    """The id of one choice of the question."""

    operators: ClassVar[tuple[Operator, ...]] = ("eq", "ne", "in")
    has_choices = True

    def problems(self, question: Question, answer: Any, pointer: str) -> Iterator[Problem]:
        """See `TypeRules.problems`."""
        if not isinstance(answer, str) or answer not in (question.choices or ()):
            yield _bad_answer(pointer, "This must be the id of one of the choices.")

    def comparable(self, question: Question, value: Any) -> bool:
        """See `TypeRules.comparable`."""
        return isinstance(value, str) and value in (question.choices or ())

    def representative_answers(self, question: Question, values: Sequence[Any]) -> list[Any] | None:
        """See `TypeRules.representative_answers`: all choices."""
        return list(question.choices or ()) or None

    def words(self, question: Question, answer: Any, language: str) -> str:
        """See `TypeRules.words`: the choice's label."""
        label = (question.choices or {}).get(answer)
        return str(answer) if label is None else localized(label, language)

    def features(self, question: Question, language: str) -> Iterator[Feature]:
        """See `TypeRules.features`: a group for each choice."""
        title = localized(question.title, language)
        for choice, label in (question.choices or {}).items():
            chose = partial(self._chose, choice)
            yield Feature(
                f"{question.id}:{choice}", f"{title} {localized(label, language)}", chose, is_group=True
            )

    def _chose(self, choice: str, answer: Any) -> float:
        return float(answer == choice)


class ChoicesRules(ChoiceRules):
    """An array of ids of choices of the question."""

    counted: ClassVar = "each"
    operators = ("contains",)

    def bounds(self, choices: int) -> Bounds | None:
        """See `TypeRules.bounds`."""
        return Bounds(0, choices or TEXT_MAX, positive=True)

    def problems(self, question: Question, answer: Any, pointer: str) -> Iterator[Problem]:
        """See `TypeRules.problems`."""
        choices = question.choices or {}
        if not isinstance(answer, list) or len(answer) > len(choices):
            yield _bad_answer(pointer, "This must be an array of ids of choices, each of them once.")
            return
        for index, choice in enumerate(answer):
            if not isinstance(choice, str) or choice not in choices or choice in answer[:index]:
                yield _bad_answer(
                    f"{pointer}/{index}", "This must be the id of one of the choices, and listed once."
                )
        if not answer or not _within(question, len(answer)):
            yield _bad_answer(
                pointer, f"The number of choices must be at least 1{_bounds_in_words(question)}."
            )

    def representative_answers(self, question: Question, values: Sequence[Any]) -> list[Any] | None:
        """See `TypeRules.representative_answers`: there are too many combinations of choices."""
        return None

    def words(self, question: Question, answer: Any, language: str) -> str:
        """See `TypeRules.words`: the labels, with `; ` between them."""
        return "; ".join(super(ChoicesRules, self).words(question, choice, language) for choice in answer)

    def _chose(self, choice: str, answer: Any) -> float:
        return float(choice in answer)


class TextRules(TypeRules):
    """A text."""

    counted: ClassVar = "never"
    operators = ("contains",)
    is_comment = True

    def bounds(self, choices: int) -> Bounds | None:
        """See `TypeRules.bounds`."""
        return Bounds(0, TEXT_MAX, positive=True)

    def problems(self, question: Question, answer: Any, pointer: str) -> Iterator[Problem]:
        """See `TypeRules.problems`."""
        if not isinstance(answer, str) or not answer.strip():
            yield _bad_answer(pointer, "This must be a text; leave out what was not answered.")
        elif len(answer) > TEXT_MAX or not _within(question, len(answer)):
            yield _bad_answer(
                pointer,
                f"The number of characters must be at most {TEXT_MAX:,}{_bounds_in_words(question)}.",
            )

    def comparable(self, question: Question, value: Any) -> bool:
        """See `TypeRules.comparable`."""
        return isinstance(value, str) and bool(value.strip())

    def can_meet(self, question: Question, condition: Condition) -> bool:
        """See `TypeRules.can_meet`: a text can't contain one that exceeds its own maximum length."""
        longest = question.maximum
        return condition.op != "contains" or longest is None or len(condition.value) <= longest


class NumberRules(TypeRules):
    """A number."""

    operators = _ORDERED

    def bounds(self, choices: int) -> Bounds | None:
        """See `TypeRules.bounds`."""
        return Bounds(-NUMBER_MAX, NUMBER_MAX, whole=False)

    def problems(self, question: Question, answer: Any, pointer: str) -> Iterator[Problem]:
        """See `TypeRules.problems`."""
        if not is_number(answer) or not _within(question, answer):
            yield _bad_answer(pointer, f"This must be a number{_bounds_in_words(question)}.")

    def comparable(self, question: Question, value: Any) -> bool:
        """See `TypeRules.comparable`."""
        return is_number(value)

    def representative_answers(self, question: Question, values: Sequence[Any]) -> list[Any]:
        """See `TypeRules.representative_answers`: numbers at, between and around the values, within the bounds."""
        bounds = [bound for bound in (question.minimum, question.maximum) if bound is not None]
        marks = sorted({*values, *bounds})
        if not marks:
            return [0]
        between = [(low + high) / 2 for low, high in pairwise(marks)]
        low = marks[0] - 1 if question.minimum is None else question.minimum
        high = marks[-1] + 1 if question.maximum is None else question.maximum
        return [number for number in {low, high, *marks, *between} if low <= number <= high]

    def features(self, question: Question, language: str) -> Iterator[Feature]:
        """See `TypeRules.features`: the answer."""
        yield Feature(question.id, localized(question.title, language), float, is_group=False)


class DateRules(TypeRules):
    """A date."""

    counted: ClassVar = "never"
    operators = _ORDERED

    def problems(self, question: Question, answer: Any, pointer: str) -> Iterator[Problem]:
        """See `TypeRules.problems`."""
        if not is_date(answer):
            yield _bad_answer(pointer, "This must be a date such as 2026-11-01.")

    def comparable(self, question: Question, value: Any) -> bool:
        """See `TypeRules.comparable`."""
        return is_date(value)

    def representative_answers(self, question: Question, values: Sequence[Any]) -> list[Any]:
        """See `TypeRules.representative_answers`: the values with the days before and after them."""
        days = {date.fromisoformat(value) for value in values} or {date(2000, 1, 1)}
        before = {day - _DAY for day in days if day > date.min}
        after = {day + _DAY for day in days if day < date.max}
        return [day.isoformat() for day in days | before | after]


class BooleanRules(TypeRules):
    """A yes or a no."""

    operators = ("eq",)

    def problems(self, question: Question, answer: Any, pointer: str) -> Iterator[Problem]:
        """See `TypeRules.problems`."""
        if not isinstance(answer, bool):
            yield _bad_answer(pointer, "This must be true or false.")

    def comparable(self, question: Question, value: Any) -> bool:
        """See `TypeRules.comparable`."""
        return isinstance(value, bool)

    def representative_answers(self, question: Question, values: Sequence[Any]) -> list[Any]:
        """See `TypeRules.representative_answers`: both."""
        return [False, True]

    def words(self, question: Question, answer: Any, language: str) -> str:
        """See `TypeRules.words`."""
        return "true" if answer else "false"

    def features(self, question: Question, language: str) -> Iterator[Feature]:
        """See `TypeRules.features`: the group of respondents who answered yes."""
        yield Feature(question.id, localized(question.title, language), float, is_group=True)


def _bad_answer(pointer: str, message: str) -> Problem:
    return Problem(pointer, "bad_answer", message)


def _within(question: Question, value: float) -> bool:
    low, high = question.minimum, question.maximum
    return (low is None or value >= low) and (high is None or value <= high)


def _bounds_in_words(question: Question) -> str:
    low, high = question.minimum, question.maximum
    words = ([] if low is None else [f"at least {low:,}"]) + ([] if high is None else [f"at most {high:,}"])
    return f", {' and '.join(words)}" if words else ""


TYPES: Final[Mapping[QuestionType, TypeRules]] = {
    "nps": ScaleRules((0, 10), NPS),
    "csat": ScaleRules((1, 5), CSAT),
    "ces": ScaleRules((1, 7), CES),
    "rating": ScaleRules((1, 5), RATING, adjustable=True),
    "single_choice": ChoiceRules(),
    "multiple_choice": ChoicesRules(),
    "text": TextRules(),
    "number": NumberRules(),
    "date": DateRules(),
    "boolean": BooleanRules(),
}
"""The rules of every type. The score of a survey is that of its first question of the first scored type here."""


def known_type(name: Any) -> QuestionType | None:
    """Return the type with this name, which may be arbitrary JSON; None if it is unknown."""
    return cast(QuestionType, name) if isinstance(name, str) and name in TYPES else None
