"""The result of a search as the API shows it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.http.schemas.base import MessageId, Shape
from deskwire.http.schemas.conversations import AgentConversation, Contact
from deskwire.http.schemas.tickets import Ticket


class SearchHit(Shape):
    """A message or note that shows why its conversation was found: a piece of its text, and what to mark in it."""

    message_id: MessageId
    text: Annotated[str, Field(examples=["Hello, where is my order?"])]
    ranges: Annotated[
        list[Annotated[list[int], Field(min_length=2, max_length=2)]],
        Field(
            description="Places in `text`, from and up to, in UTF-16 units as JavaScript counts.",
            examples=[[[19, 24]]],
        ),
    ]


class SearchedConversation(Shape):
    """A conversation that was found. `hits` are its newest messages with what was asked for; none if only older ones or the
    title have it."""

    conversation: AgentConversation
    hits: list[SearchHit]


class SearchMore(Shape):
    """The parts of which there is more than `limit`."""

    conversations: bool
    contacts: bool
    tickets: bool


class SearchBehind(Shape):
    """The rows that the search does not know yet. It takes them in by itself; `building` is true while its index is made anew."""

    messages: Annotated[int, Field(ge=0, description="Messages and notes.", examples=[12])]
    conversations: Annotated[
        int, Field(ge=0, description="Conversations that are new, changed or deleted.", examples=[3])
    ]
    building: bool


class SearchResult(Shape):
    """The result of a search. A part that was not asked for, or that the user may not read, is null."""

    conversations: list[SearchedConversation] | None
    contacts: list[Contact] | None
    tickets: list[Ticket] | None
    more: SearchMore
    behind: Annotated[
        SearchBehind | None,
        Field(
            description="Null if all is known that was stored when it was asked; contacts and tickets always are."
        ),
    ]
