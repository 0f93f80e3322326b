"""The values of filters of lists of conversations, as query parameters."""

from __future__ import annotations

import re
from typing import Annotated, Final, get_args

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from deskwire.engine.conversations.conversation import Status
from deskwire.engine.conversations.tags import normal_tag
from deskwire.engine.core.ids import is_id
from deskwire.engine.definitions.attributes import AttributeIs, attribute_is
from deskwire.engine.tickets.ticket import Priority
from deskwire.http.api.input.validation import unique

_STATUSES: Final = get_args(Status)
_TAGS_MAX: Final = 10  # in the filter of one list


def _statuses(text: object) -> object:
    names = text.split(",") if isinstance(text, str) else text
    if not isinstance(names, list) or not set(names) <= set(_STATUSES):
        message = "This must be OPEN, PENDING or CLOSED, or several of these separated by commas."
        raise PydanticCustomError("literal_error", message)
    return tuple(names)


def _tags(text: object) -> object:
    return tuple(map(normal_tag, text.split(","))) if isinstance(text, str) else text


Statuses = Annotated[
    tuple[Status, ...],
    BeforeValidator(_statuses),
    AfterValidator(unique),
    WithJsonSchema({"type": "string", "examples": ["OPEN,PENDING"]}),
]
"""One status, or several separated by commas."""

Tags = Annotated[
    tuple[str, ...],
    BeforeValidator(_tags),
    AfterValidator(unique),
    Field(max_length=_TAGS_MAX),
    WithJsonSchema({"type": "string", "examples": ["returns,vip"]}),
]
"""One tag, or several separated by commas."""


_ATTRIBUTES_MAX: Final = 5  # in the filter of one list
_ONE: Final = re.compile(r'[^,":]+:(?:"(?:[^"\\]|\\.)*"|[^,"][^,]*)')
"""The name and value of an attribute; the value is quoted, or ends at the next comma."""
_SEVERAL: Final = re.compile(f"{_ONE.pattern}(?:,{_ONE.pattern})*")
_RANGE: Final = re.compile(r"(10|[0-9])(?:\.\.(10|[0-9]))?")


def _attributes(text: object) -> object:
    """Return the attributes in a filter. Raises ValueError."""
    if not isinstance(text, str):
        return text
    if not _SEVERAL.fullmatch(text):
        raise ValueError(
            "This must be `name:value`, or several of these separated by commas; a value with a comma must be quoted."
        )
    found = [_attribute(*part[0].split(":", 1)) for part in _ONE.finditer(text)]
    if len(found) > _ATTRIBUTES_MAX:
        raise ValueError(f"At most {_ATTRIBUTES_MAX} attributes are allowed.")
    return tuple(found)


def _attribute(name: str, value: str) -> AttributeIs:
    """Return the attribute with its value as written. Raises ValueError if a quoted value is not valid JSON."""
    if value.startswith('"'):
        return AttributeIs(name, _quoted(value))
    return attribute_is(name, value)


def _quoted(value: str) -> str:
    try:
        text = str(orjson.loads(value))
    except ValueError:
        text = "\0"
    if "\0" in text:
        raise ValueError("A quoted value must be a JSON string without U+0000.")
    return text


def _range(text: object) -> object:
    """Return the lowest and highest rating in a filter. Raises ValueError."""
    if not isinstance(text, str):
        return text
    found = _RANGE.fullmatch(text)
    if found is None or int(found[1]) > int(found[2] or found[1]):
        raise ValueError("This must be a rating from 0 to 10, or a range such as `0..6`.")
    return int(found[1]), int(found[2] or found[1])


AttributesAre = Annotated[
    tuple[AttributeIs, ...],
    BeforeValidator(_attributes),
    WithJsonSchema({"type": "string", "examples": ["plan:gold,vip:true"]}),
]
Ratings = Annotated[
    tuple[int, int],
    BeforeValidator(_range),
    WithJsonSchema({"type": "string", "pattern": f"^{_RANGE.pattern}$", "examples": ["0..6"]}),
]

_PRIORITIES: Final = get_args(Priority)
_LISTED_MAX: Final = 20  # assignees or channels in the filter of one list


def _priorities(text: object) -> object:
    names = text.split(",") if isinstance(text, str) else text
    if not isinstance(names, list) or not set(names) <= set(_PRIORITIES):
        message = "This must be LOW, MEDIUM, HIGH or URGENT, or several of these separated by commas."
        raise PydanticCustomError("literal_error", message)
    return tuple(names)


Priorities = Annotated[
    tuple[Priority, ...],
    BeforeValidator(_priorities),
    AfterValidator(unique),
    WithJsonSchema({"type": "string", "examples": ["HIGH,URGENT"]}),
]
"""One priority of tickets, or several separated by commas."""


def _listed(text: object) -> object:
    return tuple(text.split(",")) if isinstance(text, str) else text


Assignees = Annotated[
    tuple[Annotated[str, Field(max_length=40)], ...],
    BeforeValidator(_listed),
    AfterValidator(unique),
    Field(max_length=_LISTED_MAX),
    WithJsonSchema({"type": "string", "examples": ["me,none"]}),
]
"""One id of a user or team, `me` or `none`, or several of these separated by commas."""


def _are_channels(ids: tuple[str, ...]) -> tuple[str, ...]:
    if not all(each == "none" or is_id(each, "chn") for each in ids):
        raise ValueError(
            "This must be `none` or the id of a channel, or several of these separated by commas."
        )
    return ids


Channels = Annotated[
    tuple[str, ...],
    BeforeValidator(_listed),
    AfterValidator(_are_channels),
    AfterValidator(unique),
    Field(max_length=_LISTED_MAX),
    WithJsonSchema({"type": "string", "examples": ["none"]}),
]
"""One id of a channel or `none`, or several of these separated by commas."""

_UNITS_MS: Final = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_DURATION: Final = re.compile(r"([1-9][0-9]{0,3})([mhdw])")


def _milliseconds(text: object) -> int:
    """Return a duration such as `4h` in milliseconds. Raises ValueError."""
    found = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError("This must be a number with m, h, d or w, such as `30m`, `4h` or `7d`.")
    return int(found[1]) * _UNITS_MS[found[2]]


Duration = Annotated[
    int,
    BeforeValidator(_milliseconds),
    WithJsonSchema({"type": "string", "pattern": f"^{_DURATION.pattern}$", "examples": ["7d"]}),
]
"""A duration such as `30m`, `4h`, `7d` or `2w`, as milliseconds."""


def one_assignee(team: str | None, info: ValidationInfo) -> str | None:
    """Return the team of a list, which can't be combined with `assignee`. Raises ValueError."""
    if team is not None and info.data.get("assignee") is not None:
        raise ValueError("A conversation has one assignee: give `assignee` or `team`.")
    return team


def later_than_since(until: int | None, info: ValidationInfo) -> int | None:
    """Return the end of a list's period, which must follow its start. Raises ValueError."""
    since = info.data.get("since")
    if until is not None and since is not None and until <= since:
        raise ValueError("This must be later than `since`.")
    return until
