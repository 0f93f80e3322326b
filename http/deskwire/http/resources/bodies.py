"""Shapes of the bodies and queries that several resources share (decisions 4)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from deskwire.engine.definitions.attributes import (
    ATTRIBUTES_BYTES,
    ATTRIBUTES_MAX,
    KEY_MAX,
    TOO_DEEP,
    size_of,
)
from deskwire.http.api.input.validation import Body, Query, few
from deskwire.http.api.pagination import Paged


def _small_attributes(value: dict[str, Any]) -> dict[str, Any]:
    size = size_of(value)
    if size is None:
        raise PydanticCustomError("too_deep", TOO_DEEP)
    if size > ATTRIBUTES_BYTES:
        raise ValueError(
            f"all attributes together take {size:,} bytes; at most {ATTRIBUTES_BYTES:,} are allowed"
        )
    return value


Name = Annotated[str, Field(min_length=1, max_length=200)]
Title = Annotated[str, Field(min_length=1, max_length=500)]
UserId = Annotated[str, Field(min_length=1, max_length=255)]
Attributes = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=KEY_MAX)], Any],
    Field(max_length=ATTRIBUTES_MAX),
    AfterValidator(_small_attributes),
    few(ATTRIBUTES_MAX),
]
Closer = Literal["agent", "bot", "system"]
StatusName = Literal["OPEN", "PENDING", "CLOSED"]


class Content(Body):
    """What a message says: a text, ids of uploads of the same project, or both."""

    attachments: Annotated[list[str], Field(max_length=10, default_factory=list)]
    text: Annotated[str, Field(max_length=20_000, validate_default=True)] = ""

    @field_validator("text")
    @classmethod
    def _says_something(cls, text: str, info: ValidationInfo) -> str:
        if not text and info.data.get("attachments") == []:
            raise PydanticCustomError("string_too_short", "A message needs a text, or an attachment.")
        return text


class Identity(Body):
    """A contact's identity fields."""

    name: Name | None = None
    email: Annotated[str, Field(min_length=3, max_length=320)] | None = None
    phone: Annotated[str, Field(min_length=1, max_length=50)] | None = None
    avatar: Annotated[str, Field(min_length=1, max_length=2_048)] | None = None


class AssigneeRef(Body):
    """A user or team, by id."""

    type: Literal["user", "team"]
    id: Annotated[str, Field(min_length=1, max_length=40)]


class AssignBody(Body):
    """Whom to assign to; null for nobody."""

    assignee: AssigneeRef | None


class TypingBody(Body):
    """Whether the signed-in agent types."""

    typing: bool


class StartWorkflowBody(Body):
    """Which workflow to start; its trigger is `manual`."""

    workflow_id: Annotated[str, Field(min_length=1, max_length=40)]


class ConversationPatch(Body):
    """Fields to change. `attributes` are merged; null removes a key. Of the fields only `title` may be null."""

    title: Title | None = None
    status: Literal["OPEN", "PENDING"] | None = None
    attributes: Attributes | None = None
    archived: bool | None = None
    visible: bool | None = None


class ConversationList(Paged):
    """Which conversations to list."""

    parts = 2

    status: StatusName | None = None


class MessageList(Query):
    """Which messages to list: after or before a message. `cursor` goes on where a page ended."""

    after: str | None = None
    before: str | None = None
    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class SequenceList(Query):
    """Which stored events to list: those with a larger sequence. `cursor` goes on where a page ended."""

    after: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    cursor: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
