"""Bodies and queries of conversations shared by the S2S and dashboard routes (decisions 4).

`MessageInput` has the maximum length of a message, and of its attachments.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from deskwire.engine.accounts.people import AssigneeType
from deskwire.engine.contacts.addresses import EMAIL_MAX, PHONE_MAX, clean_email, clean_phone
from deskwire.engine.conversations.conversation import Status, TextFormat, Unclosed
from deskwire.engine.conversations.tags import TAGS_MAX
from deskwire.engine.core.text import MESSAGE_TEXT_MAX
from deskwire.engine.core.values import SortOrder
from deskwire.http.api.input.validation import NOT_BLANK, Body, Query
from deskwire.http.api.pagination import LIMIT_MAX, Paged
from deskwire.http.resources.fields import Attributes, Name, Tag, Time, Title, WebUrl

ATTACHMENTS_MAX: Final = 10
"""Maximum attachments of a message (decisions 4.2)."""

PLAIN_CONTACT: Final = (
    "Only messages of other authors than the contact have a format: a contact's text is shown as it is."
)
"""The message of the problem for a contact's message with a format."""

IfSequence = Annotated[int, Field(ge=0, lt=1 << 63)]


class MessageInput(Body):
    """The content of a message: a text, ids of uploads of the same project, or both."""

    attachments: Annotated[list[str], Field(max_length=ATTACHMENTS_MAX, default_factory=list)]
    text: Annotated[str, Field(max_length=MESSAGE_TEXT_MAX, validate_default=True), NOT_BLANK] = ""

    @field_validator("text")
    @classmethod
    def _says_something(cls, text: str, info: ValidationInfo) -> str:
        if not text and info.data.get("attachments") == []:
            raise PydanticCustomError("string_too_short", "A message needs a text or an attachment.")
        return text


class FormattedMessageInput(MessageInput):
    """A message that says whether its text is Markdown.

    With `format` `markdown`, readers may render the text; without it they show the text as it is. The service stores and
    returns the same text in both cases.
    """

    format: TextFormat | None = None


EmailAddress = Annotated[
    str, Field(min_length=3, max_length=EMAIL_MAX), NOT_BLANK, AfterValidator(clean_email)
]
"""An address as people and programs write it; `Ada <ada@example.org>` and `mailto:ada@example.org` are reduced to it."""
TelephoneNumber = Annotated[
    str, Field(min_length=1, max_length=PHONE_MAX), NOT_BLANK, AfterValidator(clean_phone)
]
"""A telephone number with any separators."""


class PutContactIdentityRequest(Body):
    """The identity fields of a contact."""

    name: Name | None = None
    email: EmailAddress | None = None
    phone: TelephoneNumber | None = None
    avatar: WebUrl | None = None


class AssigneeInput(Body):
    """A user or team, by id."""

    type: AssigneeType
    id: Annotated[str, Field(min_length=1, max_length=40)]


class AssignConversationRequest(Body):
    """The user or team to assign the conversation to; null to unassign it."""

    assignee: AssigneeInput | None


class DashboardReopenConversationRequest(Body):
    """`waitingSince` undoes a close: the time since which the contact had been waiting for an answer."""

    waiting_since: Time | None = None


class SetTypingRequest(Body):
    """The typing state of the signed-in agent; `internal` for a note, which only agents are notified of."""

    typing: bool
    internal: bool = False


class SetContactTypingRequest(Body):
    """The typing state of the contact."""

    typing: bool


class StartWorkflowRequest(Body):
    """The workflow to start. Its trigger must be `manual`."""

    workflow_id: Annotated[str, Field(min_length=1, max_length=40)]


class ChangeConversationRequest(Body):
    """The fields to change. `attributes` are merged, and a null in them removes a key. Only `title` can be set to null."""

    title: Title | None = None
    status: Unclosed | None = None
    attributes: Attributes | None = None
    archived: bool | None = None
    visible: bool | None = None


class TextRange(Body):
    """A part of a text: characters (Unicode code points) from `start` up to, but excluding, `end`."""

    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=1)]

    @field_validator("end")
    @classmethod
    def _ends_behind_its_start(cls, end: int, info: ValidationInfo) -> int:
        start = info.data.get("start", 0)
        if end <= start:
            raise PydanticCustomError("greater_than", "A range must end after its start.", {"gt": start})
        return end


class RedactMessageRequest(Body):
    """The parts of the message to redact, at least one.

    `text` removes the whole text. Each character in `ranges` becomes an asterisk, so that positions do not
    change. `attachments` are ids of files to remove, `allAttachments` removes all of them.
    """

    text: bool = False
    ranges: Annotated[list[TextRange], Field(max_length=100, default_factory=list)]
    attachments: Annotated[list[str], Field(max_length=ATTACHMENTS_MAX, default_factory=list)]
    all_attachments: bool = False


class TagList(Query):
    """The page of the tags to list. `cursor` continues where a page ended."""

    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = 50
    cursor: Annotated[str, Field(max_length=200)] | None = None


class ReplaceTagsRequest(Body):
    """The new tags, which replace all tags of the conversation. Tags are compared and shown in lower case."""

    tags: Annotated[list[Tag], Field(max_length=TAGS_MAX)]


class ConversationList(Paged):
    """The filter of a list of conversations, and its page."""

    parts = 2

    status: Status | None = None


class MessageList(Query):
    """The part of the messages to list, after or before one of them. `cursor` continues where a page ended."""

    after: str | None = None
    before: str | None = None
    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class ThreadList(MessageList):
    """The part of a thread to list: oldest first, or with `order=desc` newest first. `cursor` continues where a page ended."""

    order: SortOrder = "asc"


class SequenceList(Query):
    """The part of the stored events to list, after a sequence. `cursor` continues where a page ended."""

    after: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    cursor: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
