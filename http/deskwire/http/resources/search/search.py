"""The search while typing (decisions 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar, get_args

from pydantic import Field

from deskwire.engine.contacts.contact import Profile, contact_with_profile_view
from deskwire.engine.conversations.inbox import inbox_views
from deskwire.engine.core.errors import Problem
from deskwire.engine.search.hits import Hit
from deskwire.engine.search.ports import IndexLag, SearchReader
from deskwire.engine.search.search import Part, SearchResult, search
from deskwire.engine.tickets.ticket import ticket_view
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, bad_query
from deskwire.http.api.routing import Routes, Tag, dashboard
from deskwire.http.schemas import search as shapes

T = TypeVar("T")
routes = Routes(Tag("Search", "Find conversations, contacts and tickets by their words, while typing."))
_PARTS: Final[tuple[Part, ...]] = get_args(Part)
_NAME: Final = "|".join(_PARTS)
_IN: Final[dict[str, Any]] = {
    "description": "The parts to search, separated by commas.",
    "pattern": f"^({_NAME})(,({_NAME}))*$",
    "examples": ["conversations,contacts"],
}


class SearchQuery(Query):
    """The words, or beginnings of words, and the parts to search."""

    q: Annotated[str, Field(min_length=1, max_length=200)]
    within: str = Field(",".join(_PARTS), alias="in", json_schema_extra=_IN)
    limit: Annotated[int, Field(ge=1, le=50)] = 20

    @classmethod
    def further(cls, given: Mapping[str, str]) -> None:
        """Check the parts. Raises BadRequest."""
        wrong = [name for name in _names(given.get("in")) if name not in _PARTS]
        if wrong:
            raise bad_query(
                *(
                    Problem("?in", "not_allowed", f"There is no part {name!r}; they are {', '.join(_PARTS)}.")
                    for name in wrong
                )
            )


@routes.add(
    "GET",
    "/search",
    dashboard("conversations.read"),
    operation_id="search",
    query=SearchQuery,
    answer=shapes.SearchResult,
    errors=("person_required",),
)
async def find(call: Call[Body, SearchQuery]) -> Answer:
    """Search conversations by title, messages and notes, contacts by name, e-mail, user id and phone, and tickets.

    Every word of `q` must match the beginning of a word; in a conversation, any of its messages may have it. An exact id or
    e-mail address comes first, then the newest results. A machine credential can search only contacts and tickets (`in`).
    """
    query = call.query
    query.further({"in": query.within})
    readable = call.access.permissions
    parts = {part for part in _PARTS if part in _names(query.within) and f"{part}.read" in readable}

    if "conversations" in parts:
        call.access.require_person("a search in conversations")

    def read(reader: SearchReader) -> tuple[SearchResult, list[dict[str, Any]], Mapping[int, Profile]]:
        found = search(reader, call.project.rowid, query.q, parts, query.limit)
        pairs = [(each.conversation, each.contact) for each in found.conversations or ()]
        profiles = reader.profiles([contact.rowid for contact in found.contacts or ()])
        return found, inbox_views(reader, call.project, call.user, pairs) if pairs else [], profiles

    found, views, profiles = await call.services.store.read(read)
    conversations = (
        {"conversation": view, "hits": [_hit(hit) for hit in each.hits]}
        for view, each in zip(views, found.conversations or (), strict=True)
    )
    return {
        "conversations": None if found.conversations is None else list(conversations),
        "contacts": _each(
            found.contacts, lambda contact: contact_with_profile_view(contact, profiles[contact.rowid])
        ),
        "tickets": _each(found.tickets, ticket_view),
        "more": {part: part in found.more for part in _PARTS},
        "behind": _behind(found.behind),
    }


def _each(found: Sequence[T] | None, view: Callable[[T], dict[str, Any]]) -> list[dict[str, Any]] | None:
    return None if found is None else [view(each) for each in found]


def _hit(hit: Hit) -> dict[str, Any]:
    return {"messageId": hit.message_id, "text": hit.text, "ranges": hit.ranges}


def _behind(behind: IndexLag) -> dict[str, Any] | None:
    """Return the backlog of the index; None if there is none."""
    return behind._asdict() if any(behind) else None


def _names(listed: str | None) -> list[str]:
    return [] if listed is None else [name.strip() for name in listed.split(",")]
