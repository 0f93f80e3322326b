"""The result of a search."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.http.schemas.base import MessageId, Shape
from deskwire.http.schemas.conversations import AgentConversation, Contact
from deskwire.http.schemas.tickets import Ticket


class SearchHit(Shape):
    """A message or note by which its conversation was found: an excerpt of its text, and the parts to highlight."""

    message_id: MessageId
    text: Annotated[str, Field(examples=["Hello, where is my order?"])]
    ranges: Annotated[
        list[Annotated[list[int], Field(min_length=2, max_length=2)]],
        Field(
            description="Start and end of each match in `text`, in UTF-16 units like in JavaScript.",
            examples=[[[19, 24]]],
        ),
    ]


class SearchedConversation(Shape):
    """A conversation that was found. `hits` are its newest matching messages; empty if only older ones or the title match."""

    conversation: AgentConversation
    hits: list[SearchHit]


class SearchMore(Shape):
    """The parts with more results than `limit`."""

    conversations: bool
    contacts: bool
    tickets: bool


class SearchBehind(Shape):
    """The rows missing in the search index, which it adds automatically. `building` is true while the index is rebuilt."""

    messages: Annotated[int, Field(ge=0, description="Messages and notes.", examples=[12])]
    conversations: Annotated[
        int, Field(ge=0, description="Conversations that are new, changed or deleted.", examples=[3])
    ]
    building: bool


class SearchResult(Shape):
    """The result of a search. A part that was not requested, or that the user may not read, is null."""

    conversations: list[SearchedConversation] | None
    contacts: list[Contact] | None
    tickets: list[Ticket] | None
    more: SearchMore
    behind: Annotated[
        SearchBehind | None,
        Field(
            description="Null if the index had all stored data at the time of the search; contacts and tickets are always complete."
        ),
    ]
