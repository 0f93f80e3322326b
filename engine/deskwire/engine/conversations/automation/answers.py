"""What a contact answers to a step: whether it fits, and how it reads as a message (ADR 20)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from deskwire.engine.core.errors import Problem
from deskwire.engine.definitions.checks import is_date, is_number
from deskwire.engine.workflows.definition import TEXT_MAX, Buttons, FieldType, Form

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_EMAIL_MAX: Final = 320


def answer_problems(action: Buttons | Form, value: Any) -> list[Problem]:
    """All that speaks against `value` as the answer; pointers are into the body of a reply."""
    problems = list(_picked(action, value) if isinstance(action, Buttons) else _filled_in(action, value))
    if not problems and len(answer_text(action, value)) > TEXT_MAX:
        problems.append(
            Problem("/value", "too_long", f"An answer has at most {TEXT_MAX:,} characters as a message.")
        )
    return problems


def answer_text(action: Buttons | Form, value: Any) -> str:
    """A valid answer as a message of the contact: the button's label, or a line for each field; may be empty."""
    if isinstance(action, Buttons):
        option = action.option(value)
        return value if option is None else option.label
    lines = (
        f"{field.label}: {_shown(value[field.id])}"
        for field in action.fields
        if value.get(field.id) is not None
    )
    return "\n".join(lines)


def text_answer(action: Buttons, text: str) -> str:
    """What a free text answers: the option whose label it is, else itself."""
    said = text.strip().casefold()
    return next((each.id for each in action.options if each.label.strip().casefold() == said), text)


def _picked(action: Buttons, value: Any) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield Problem("/value", "invalid_type", "This must be a string: the id of an option.")
    elif action.option(value) is None and not (action.allow_text and value.strip()):
        named = ", ".join(each.id for each in action.options)
        yield Problem("/value", "not_allowed", f"The options are {named}.")


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
        given = value.get(field.id)
        if given is None and field.required:
            yield Problem(f"/value/{field.id}", "required", "This field is required.")
        elif given is not None and not _FITS[field.type](given):
            yield Problem(f"/value/{field.id}", "bad_answer", f"This must be {_WANTED[field.type]}.")


_WANTED: Final[Mapping[FieldType, str]] = {
    "text": f"a text of 1 to {TEXT_MAX:,} characters",
    "email": "an e-mail address",
    "number": "a number",
    "boolean": "true or false",
    "date": "a date such as 2026-11-01",
}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= TEXT_MAX


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
