"""Validation of the members of a definition: types, sizes, ids and texts. The checks accept arbitrary JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deskwire.engine.core.text import canonical_language_tag
from deskwire.engine.definitions.checks import (
    Errors,
    escaped,
    identifier,
    is_number,
    is_whole,
    items,
    listed,
    members,
    text,
    wrong_type,
)
from deskwire.engine.definitions.rules import DefinitionError
from deskwire.engine.surveys.definition import END, SCHEMA_VERSION, QuestionType
from deskwire.engine.surveys.question_types import TYPES, Bounds, known_type
from deskwire.engine.surveys.validation.rules import broken

LANGUAGES_MAX: Final = 20
QUESTIONS_MAX: Final = 200
CHOICES_MAX: Final = 100
LOGIC_MAX: Final = 500
TITLE_MAX: Final = 500
TEXT_MAX: Final = 2_000
"""Maximum characters of a text for respondents."""


def definition_shape(value: Any) -> Errors:
    """Yield errors of the members of a definition, without its logic."""
    if not isinstance(value, Mapping):
        yield wrong_type("", "an object")
        return
    yield from members(
        value, "", ("schemaVersion", "title", "languages", "primaryLanguage", "questions"), _OPTIONAL
    )
    version = value.get("schemaVersion", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        yield broken("unsupported_version", "/schemaVersion", f'This must be "{SCHEMA_VERSION}".')
    if "title" in value:
        yield from text(value["title"], "/title", TITLE_MAX)
    yield from _languages(value)
    languages = declared_languages(value)
    if "questions" in value:
        yield from items(value["questions"], "/questions", QUESTIONS_MAX)
        yield from _duplicate_ids(listed(value["questions"], QUESTIONS_MAX), "/questions")
        for index, question in enumerate(listed(value["questions"], QUESTIONS_MAX)):
            yield from _question(question, f"/questions/{index}", languages)
    if "thankYou" in value:
        yield from texts(value["thankYou"], "/thankYou", languages)


_OPTIONAL: Final = ("logic", "thankYou")


def declared_languages(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the well-formed languages."""
    return tuple(
        each
        for each in listed(value.get("languages"), LANGUAGES_MAX)
        if isinstance(each, str) and canonical_language_tag(each)
    )


def texts(value: Any, path: str, languages: Sequence[str]) -> Errors:
    """Yield errors of a text in several languages."""
    if not isinstance(value, Mapping):
        yield wrong_type(path, "an object with a text for each language")
        return
    for language in languages:
        if language not in value:
            yield broken("missing_translation", f"{path}/{language}", f"The text in {language} is missing.")
    for language, each in value.items():
        here = f"{path}/{escaped(language)}"
        if languages and language not in languages:
            yield broken("unknown_translation", here, "This language is not one of the survey's.")
        yield from text(each, here, TEXT_MAX)


def _languages(value: Mapping[str, Any]) -> Errors:
    primary = value.get("primaryLanguage")
    if "primaryLanguage" in value and not isinstance(primary, str):
        yield wrong_type("/primaryLanguage", "a string")
    if "languages" not in value:
        return
    yield from items(value["languages"], "/languages", LANGUAGES_MAX)
    seen: set[str] = set()
    for index, each in enumerate(listed(value["languages"], LANGUAGES_MAX)):
        if not isinstance(each, str):
            yield wrong_type(f"/languages/{index}", "a string")
        elif not canonical_language_tag(each):
            yield broken(
                "bad_language", f"/languages/{index}", "This is no language tag such as en or pt-BR."
            )
        elif each.lower() in seen:
            yield broken("duplicate_language", f"/languages/{index}", f"{each} is listed twice.")
        else:
            seen.add(each.lower())
    if isinstance(primary, str) and seen and primary not in value["languages"]:
        yield broken("unknown_language", "/primaryLanguage", "This is not one of the languages.")


def _question(value: Any, path: str, languages: Sequence[str]) -> Errors:
    if not isinstance(value, Mapping):
        yield wrong_type(path, "an object")
        return
    yield from members(value, path, ("id", "type", "title"), ("required", "choices", "min", "max"))
    if "id" in value:
        yield from identifier(value["id"], f"{path}/id")
    if value.get("id") == END:
        yield broken(
            "bad_id", f"{path}/id", f"No question can have the id {END}: jumps end the survey with it."
        )
    if "title" in value:
        yield from texts(value["title"], f"{path}/title", languages)
    if not isinstance(value.get("required", False), bool):
        yield wrong_type(f"{path}/required", "true or false")
    kind = known_type(value.get("type"))
    if kind is not None:
        yield from _choices(value, path, kind, languages)
        yield from bounds_errors(value, path, kind)
    elif "type" in value and not isinstance(value["type"], str):
        yield wrong_type(f"{path}/type", "a string")
    elif "type" in value:
        yield broken("unknown_type", f"{path}/type", f"The types are {', '.join(TYPES)}.")


def _choices(question: Mapping[str, Any], path: str, kind: QuestionType, languages: Sequence[str]) -> Errors:
    here = f"{path}/choices"
    if not TYPES[kind].has_choices:
        if "choices" in question:
            yield broken("choices_not_allowed", here, f"A question of type {kind} has no choices.")
        return
    choices = question.get("choices", [])
    yield from items(choices, here, CHOICES_MAX, may_be_empty=True)
    if choices == []:
        yield broken("empty_choices", here, f"A question of type {kind} needs at least one choice.")
    yield from _duplicate_ids(listed(choices, CHOICES_MAX), here)
    for index, choice in enumerate(listed(choices, CHOICES_MAX)):
        at = f"{here}/{index}"
        if not isinstance(choice, Mapping):
            yield wrong_type(at, "an object")
            continue
        yield from members(choice, at, ("id", "label"))
        if "id" in choice:
            yield from identifier(choice["id"], f"{at}/id")
        if "label" in choice:
            yield from texts(choice["label"], f"{at}/label", languages)


def _duplicate_ids(values: Sequence[Any], path: str) -> Errors:
    seen: set[str] = set()
    for index, each in enumerate(values):
        id_ = each.get("id") if isinstance(each, Mapping) else None
        if isinstance(id_, str):
            if id_ in seen:
                yield broken("duplicate_id", f"{path}/{index}/id", "An earlier one has the same id.")
            seen.add(id_)


def bounds_errors(question: Mapping[str, Any], path: str, kind: QuestionType) -> Iterator[DefinitionError]:
    """Yield errors of the bounds of a question of this type."""
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
