"""Saved views as the API shows them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.conversations.saved_view import Visibility
from deskwire.http.schemas.base import Moment, PersonName, Shape, TeamId, UserId, ViewId


class ViewAuthor(Shape):
    """The user who created a view. The name of a deleted account is null."""

    id: UserId
    name: PersonName | None


class ViewCount(Shape):
    """The number of a view's conversations, counted up to a bound; `more` if there may be more."""

    value: int
    more: bool


class SavedView(Shape):
    """A saved view. `count` is there with `counts=true`, unless the filter names a user or team that is gone."""

    id: ViewId
    name: Annotated[str, Field(examples=["Returns that wait"])]
    filter: Annotated[dict[str, str], Field(examples=[{"tag": "returns", "waitingFor": "4h"}])]
    visibility: Visibility
    team_id: TeamId | None
    created_by: ViewAuthor
    created_at: Moment
    updated_at: Moment
    count: ViewCount | None = None
