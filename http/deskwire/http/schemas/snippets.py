"""Snippets as the API shows them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.http.schemas.base import Moment, PersonName, Shape, SnippetId, TeamId, UserId
from deskwire.http.schemas.content import Language


class SnippetAuthor(Shape):
    """The user who created a snippet. The name of a deleted account is null."""

    id: UserId
    name: PersonName | None


class Snippet(Shape):
    """A snippet: a text that agents insert into a reply by its shortcut."""

    id: SnippetId
    shortcut: Annotated[str, Field(examples=["late-parcel"])]
    title: Annotated[str, Field(examples=["The parcel is late"])]
    text: Annotated[str, Field(examples=["Hello {contact.name}, it is on its way.\n\n{agent.name}"])]
    language: Language | None
    team_id: TeamId | None
    created_by: SnippetAuthor
    created_at: Moment
    updated_at: Moment
