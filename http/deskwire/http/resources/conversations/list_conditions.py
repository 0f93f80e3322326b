"""The conditions of an agent's list of conversations: parameters of lists, and the filter that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal, Protocol

from pydantic import Field, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

from deskwire.engine.accounts.people import Project, User
from deskwire.engine.conversations.conversation import UNCLOSED
from deskwire.engine.conversations.inbox import InboxReader
from deskwire.engine.conversations.listing import NEWEST_FIRST, ConversationFilter, ConversationSort
from deskwire.engine.core.errors import BadRequest, Problem
from deskwire.engine.core.values import SortOrder
from deskwire.http.api.input.validation import Flag, Query, Time, bad_query
from deskwire.http.resources.conversations.filter_values import (
    Assignees,
    AttributesAre,
    Channels,
    Duration,
    Priorities,
    Ratings,
    Statuses,
    Tags,
    later_than_since,
    one_assignee,
)
from deskwire.http.resources.member_filters import MemberFilterReader, contact_named, require_assignee


class InboxListReader(InboxReader, MemberFilterReader, Protocol):
    """Reads of lists, and of the members and contacts in filters."""


_ALTERNATIVES: Final = {
    "active_within": "since",
    "inactive_for": "until",
    "created_within": "created_since",
}
"""Durations up to now, and the times that they stand for."""


class ConversationConditions(Query):
    """The filter and order of an agent's list of conversations."""

    status: Statuses | None = None
    assignee: Assignees | None = None
    team: str | None = None
    contact: str | None = None
    unread: Flag | None = None
    mentioned: Flag | None = None
    following: Flag | None = None
    tag: Tags | None = None
    all_tags: Tags | None = None
    without_tags: Tags | None = None
    snoozed: Flag | None = None
    waiting: Flag | None = None
    waiting_for: Duration | None = None
    archived: Flag | None = None
    visible: Flag | None = None
    since: Time | None = None
    until: Time | None = None
    active_within: Duration | None = None
    inactive_for: Duration | None = None
    created_since: Time | None = None
    created_until: Time | None = None
    created_within: Duration | None = None
    attribute: AttributesAre | None = None
    contact_attribute: AttributesAre | None = None
    channel: Channels | None = None
    priority: Priorities | None = None
    rated: Flag | None = None
    rating: Ratings | None = None
    q: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    sort: Literal["activity", "waiting", "created"] = "activity"
    order: SortOrder = "desc"

    _alone = field_validator("team")(one_assignee)
    _not_before = field_validator("until")(later_than_since)

    @field_validator("created_until")
    @classmethod
    def _after_created_since(cls, until: int | None, info: ValidationInfo) -> int | None:
        since = info.data.get("created_since")
        if until is not None and since is not None and until <= since:
            raise ValueError("This must be later than `createdSince`.")
        return until

    @field_validator(*_ALTERNATIVES)
    @classmethod
    def _instead_of_a_time(cls, duration: int | None, info: ValidationInfo) -> int | None:
        other = _ALTERNATIVES[info.field_name or ""]
        if duration is not None and info.data.get(other) is not None:
            raise ValueError(f"Give either this or `{to_camel(other)}`.")
        return duration

    @field_validator("waiting_for")
    @classmethod
    def _of_waiting(cls, duration: int | None, info: ValidationInfo) -> int | None:
        if duration is not None and info.data.get("waiting") is False:
            raise ValueError("With `waiting=false` no contact is waiting.")
        return duration

    @field_validator("rating")
    @classmethod
    def _of_rated(cls, rating: tuple[int, int] | None, info: ValidationInfo) -> tuple[int, int] | None:
        if rating is not None and info.data.get("rated") is False:
            raise ValueError("With `rated=false` no conversation has a rating.")
        return rating

    @property
    def in_order(self) -> ConversationSort:
        """Return the order of the list."""
        return ConversationSort(self.sort, self.order)

    @property
    def is_personal(self) -> bool:
        """True if the list depends on the user who reads it."""
        own = (self.unread, self.mentioned, self.following)
        return any(each is not None for each in own) or "me" in (self.assignee or ())


def filter_of(
    reader: InboxListReader,
    query: ConversationConditions,
    project: Project,
    user: User | None,
    now: int,
    *,
    for_agents: bool,
) -> ConversationFilter:
    """Return the filter of a list. Raises BadRequest that names every unknown member and contact.

    Args:
        user: the reader of the list; None only if it is not personal.
        now: the time (ms) at which durations end.
        for_agents: omit archived and snoozed conversations as in the lists with `view=agent`.
    """
    contact = _require_known(reader, project, query)
    sought = not for_agents or query.contact is not None or query.q is not None or bool(query.mentioned)
    work = (query.assignee, query.team, query.unread, query.waiting)
    awake = not sought and (query.sort == "waiting" or any(each is not None for each in work))
    assignees = query.assignee if query.team is None else (query.team,)
    return ConversationFilter(
        contact=contact,
        statuses=UNCLOSED if query.unread and query.status is None else query.status,
        archived=query.archived if sought or query.archived is not None else False,
        assignees=None if assignees is None else _assignees(assignees, user),
        tags=query.tag,
        all_tags=query.all_tags or (),
        without_tags=query.without_tags or (),
        snoozed=False if awake and query.snoozed is None else query.snoozed,
        waiting=True if query.waiting_for is not None else query.waiting,
        waiting_before=_before(now, query.waiting_for),
        visible=query.visible,
        unread=query.unread,
        user=0
        if user is None or (query.unread, query.mentioned, query.following) == (None,) * 3
        else user.rowid,
        mentioned=query.mentioned,
        following=query.following,
        since=_before(now, query.active_within) or query.since,
        until=_before(now, query.inactive_for) or query.until,
        created_since=_before(now, query.created_within) or query.created_since,
        created_before=query.created_until,
        channels=None
        if query.channel is None
        else tuple(None if each == "none" else each for each in query.channel),
        attributes=query.attribute or (),
        contact_attributes=query.contact_attribute or (),
        priorities=query.priority,
        rated=query.rated,
        rating=query.rating,
        text=query.q,
        # A mention in a merged conversation stays on the list, where it can be seen.
        merged=None if query.mentioned else False,
    )


def _before(now: int, duration: int | None) -> int | None:
    return None if duration is None else now - duration


def _assignees(names: Sequence[str], user: User | None) -> tuple[str | None, ...]:
    """Return the ids of assignees, each once: `me` may be named by its id as well."""
    return tuple(dict.fromkeys(_assignee(each, user) for each in names))


def _assignee(name: str, user: User | None) -> str | None:
    if name == "me":
        assert user is not None, "a list with `me` has a user"
        return user.id
    return None if name == "none" else name


def _require_known(reader: InboxListReader, project: Project, query: ConversationConditions) -> int | None:
    """Return the storage key of the contact, if the filter has one. Raises BadRequest for unknown members and contacts."""
    problems, contact = list[Problem](), None
    if query.contact is not None:
        try:
            contact = contact_named(reader, project, query.contact)
        except BadRequest as refused:
            problems += refused.problems
    name = "assignee" if query.team is None else "team"
    for each in (query.assignee or ()) if query.team is None else (query.team,):
        if name == "team" or each not in ("me", "none"):
            try:
                require_assignee(reader, project, name, each, _has_some(reader, project, each))
            except BadRequest as refused:
                problems += refused.problems
    if problems:
        raise bad_query(*problems)
    return contact


def _has_some(reader: InboxListReader, project: Project, assignee: str) -> Callable[[], bool]:
    assigned = ConversationFilter(assignees=(assignee,))
    return lambda: reader.count_conversations(project.rowid, assigned, NEWEST_FIRST, 1) > 0
