"""The contact's answers to workflow steps: validation, and the text of an answer as a message (ADR 20)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, assert_never

from deskwire.engine.core.errors import Problem
from deskwire.engine.core.folding import fold_name
from deskwire.engine.core.text import MESSAGE_TEXT_MAX
from deskwire.engine.definitions.checks import is_date, is_number
from deskwire.engine.workflows.definition import Buttons, FieldType, Form

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_EMAIL_MAX: Final = 320


def answer_problems(action: Buttons | Form, value: Any) -> list[Problem]:
    """Return all problems of `value` as an answer; pointers are into the body of a reply."""
    match action:
        case Buttons():
            problems = list(_picked(action, value))
        case Form():
            problems = list(_filled_in(action, value))
        case _:
            assert_never(action)
    if not problems and len(answer_text(action, value)) > MESSAGE_TEXT_MAX:
        problems.append(
            Problem(
                "/value", "too_long", f"An answer has at most {MESSAGE_TEXT_MAX:,} characters as a message."
            )
        )
    return problems


def answer_text(action: Buttons | Form, value: Any) -> str:
    """Return the text of a valid answer: the button's label, or a line for each field of a form; it may be empty."""
    match action:
        case Buttons():
            option = action.option(value)
            return str(value) if option is None else option.label
        case Form():
            lines = (
                f"{field.label}: {_shown(value[field.id])}"
                for field in action.fields
                if value.get(field.id) is not None
            )
            return "\n".join(lines)
        case _:
            assert_never(action)


def text_answer(action: Buttons, text: str) -> str:
    """Return the answer for a free text: the id of the option with this label, else the text itself."""
    folded = fold_name(text)
    labelled = (option.id for option in action.options if fold_name(option.label) == folded)
    return next(labelled, text)


def _picked(action: Buttons, value: Any) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield Problem("/value", "invalid_type", "This must be a string: the id of an option.")
    elif action.option(value) is None and not (action.allow_text and value.strip()):
        ids = ", ".join(option.id for option in action.options)
        yield Problem("/value", "not_allowed", f"The options are {ids}.")


def _filled_in(action: Form, value: Any) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield Problem("/value", "invalid_type", "This must be an object with the form's fields.")
        return
    known = {field.id for field in action.fields}
    for name in value:
        if name not in known:
            escaped = name[:64].replace("~", "~0").replace("/", "~1")
            yield Problem(f"/value/{escaped}", "unknown_field", "There is no such field.")
    for field in action.fields:
        answer = value.get(field.id)
        if answer is None and field.required:
            yield Problem(f"/value/{field.id}", "required", "This field is required.")
        elif answer is not None and not _FITS[field.type](answer):
            yield Problem(f"/value/{field.id}", "bad_answer", f"This must be {_IN_WORDS[field.type]}.")


_IN_WORDS: Final[Mapping[FieldType, str]] = {
    "text": f"a text of 1 to {MESSAGE_TEXT_MAX:,} characters",
    "email": "an e-mail address",
    "number": "a number",
    "boolean": "true or false",
    "date": "a date such as 2026-11-01",
}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= MESSAGE_TEXT_MAX


def _is_email(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _EMAIL_MAX and _EMAIL.fullmatch(value) is not None


_FITS: Final[Mapping[FieldType, Callable[[Any], bool]]] = {
    "text": _is_text,
    "email": _is_email,
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "date": is_date,
}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
