"""Types of fields shared by several resources (decisions 4)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from deskwire.engine.conversations.tags import LENGTH_MAX, normal_tag
from deskwire.engine.core.clock import milliseconds
from deskwire.engine.definitions.attributes import (
    ATTRIBUTES_BYTES,
    ATTRIBUTES_MAX,
    KEY_MAX,
    TOO_DEEP,
    size_of,
)
from deskwire.http.api.input.validation import NOT_BLANK, at_most_fields

RATING_COMMENT_MAX: Final = 2_000  # characters


def _small_attributes(value: dict[str, Any]) -> dict[str, Any]:
    size = size_of(value)
    if size is None:
        raise PydanticCustomError("too_deep", TOO_DEEP)
    if size > ATTRIBUTES_BYTES:
        raise ValueError(
            f"All attributes together have {size:,} bytes; at most {ATTRIBUTES_BYTES:,} are allowed."
        )
    return value


def _web_url(text: str) -> str:
    """Return the text if it is an absolute http or https URL; pages may link to it, so other schemes are unsafe."""
    try:
        url = urlsplit(text)
        fine = url.scheme in ("http", "https") and bool(url.hostname) and not re.search(r"\s", text)
    except ValueError:
        fine = False
    if not fine:
        raise PydanticCustomError("url", "This must be an http or https URL.")
    return text


def _time(text: str) -> str:
    milliseconds(text)
    return text


Name = Annotated[str, Field(min_length=1, max_length=200), NOT_BLANK]
Title = Annotated[str, Field(min_length=1, max_length=500), NOT_BLANK]
UserId = Annotated[str, Field(min_length=1, max_length=255), NOT_BLANK]
WebUrl = Annotated[str, Field(min_length=1, max_length=2_048), NOT_BLANK, AfterValidator(_web_url)]
Attributes = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=KEY_MAX)], Any],
    Field(max_length=ATTRIBUTES_MAX),
    AfterValidator(_small_attributes),
    at_most_fields(ATTRIBUTES_MAX),
]
RatingComment = Annotated[str, Field(min_length=1, max_length=RATING_COMMENT_MAX), NOT_BLANK]
Time = Annotated[str, Field(max_length=40), AfterValidator(_time)]
Tag = Annotated[str, Field(min_length=1, max_length=LENGTH_MAX), AfterValidator(normal_tag)]
