"""Zendesk Support: its JSON export of tickets and users, and the pages of its API.

A ticket may have its `comments` and people inside (JSON export); otherwise they come as pages of
`/api/v2/incremental/ticket_events?include=comment_events`, of `/api/v2/tickets/{id}/comments`, and of
`/api/v2/incremental/users`. Source: Zendesk's reference of Tickets, Ticket Comments, Users and Incremental Exports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from deskwire.commands.convert.fields import filled, mapping, moment, objects, text, texts
from deskwire.commands.convert.parts import Label, Part, Person, Post, Rating, Role, Thread
from deskwire.commands.convert.tally import Note, Tally
from deskwire.commands.convert.text import plain

_STATUS: Final = {"solved": "CLOSED", "closed": "CLOSED", "pending": "PENDING", "hold": "PENDING"}
_SCORES: Final = {"good": 10, "good_with_comment": 10, "bad": 0, "bad_with_comment": 0}
_ROLES: Final[Mapping[str, Role]] = {"end-user": "contact", "agent": "agent", "admin": "agent"}
_SYSTEM: Final = "-1"
"""The author of what Zendesk itself writes."""
_ELSEWHERE: Final = ("organizations", "metric_sets", "satisfaction_ratings", "macros", "views", "articles")


class Zendesk:
    """The shapes of Zendesk's exports."""

    name = "zendesk"

    def parts(self, record: Mapping[str, Any], tally: Tally) -> Iterator[Part]:
        """Yield the parts of a record or page."""
        pages = [] if "id" in record else [kind for kind in _PAGES if isinstance(record.get(kind), list)]
        for kind in pages:
            for each in objects(record[kind]):
                yield from _PAGES[kind]({"ticket_id": record.get("ticket_id"), **each}, tally)
        for kind in ("ticket", "user"):
            if isinstance(record.get(kind), dict):
                pages.append(kind)
                yield from _PAGES[f"{kind}s"](record[kind], tally)
        if not pages:
            yield from _bare(record, tally)


def _bare(record: Mapping[str, Any], tally: Tally) -> Iterator[Part]:
    """Yield the parts of a record that stands by itself."""
    if "child_events" in record or "events" in record:
        yield from _event(record, tally)
    elif "requester_id" in record or "requester" in record:
        yield from _ticket(record, tally)
    elif "ticket_id" in record and ("body" in record or "html_body" in record):
        yield from _comment(record, tally)
    elif str(record.get("role")) in _ROLES:
        yield from _user(record, tally)
    else:
        tally.note(Note.unknown, f"{record.get('id')}: {', '.join(list(record)[:5])}")


def _elsewhere(record: Mapping[str, Any], tally: Tally) -> Iterator[Part]:
    tally.note(Note.not_imported, str(record.get("id")))
    return iter(())


def _user(record: Mapping[str, Any], _tally: Tally) -> Iterator[Part]:
    key = text(record.get("id"))
    if key is not None:
        yield Person(
            key,
            _ROLES.get(str(record.get("role"))),
            text(record.get("name")),
            text(record.get("external_id")),
            text(record.get("email")),
            text(record.get("phone")),
            text(mapping(record.get("photo")).get("content_url")),
            moment(record.get("created_at")),
        )


def _ticket(record: Mapping[str, Any], tally: Tally) -> Iterator[Part]:
    key, created = text(record.get("id")), moment(record.get("created_at"))
    for name in ("requester", "submitter", "assignee"):
        yield from _user(mapping(record.get(name)), tally)
    requester = text(record.get("requester_id")) or text(mapping(record.get("requester")).get("id"))
    if record.get("status") == "deleted":
        tally.note(Note.deleted, f"ticket {key}")
        return
    if key is None or created is None or requester is None:
        tally.note(Note.unknown, f"ticket {key}")
        return
    comments = list(objects(record.get("comments")))
    updated = moment(record.get("updated_at"))
    status = _STATUS.get(str(record.get("status")), "OPEN")
    yield Thread(
        key,
        key,
        requester,
        status,  # type: ignore[arg-type]  # the table has no other
        created,
        updated,
        moment(record.get("solved_at")) or updated if status == "CLOSED" else None,
        text(record.get("subject")) or text(record.get("raw_subject")),
        text(record.get("assignee_id")) or text(mapping(record.get("assignee")).get("id")),
        text(record.get("description")),
        _rating(mapping(record.get("satisfaction_rating"))),
        _attributes(record),
    )
    for each in comments:
        yield from _comment({**each, "ticket_id": key}, tally)


def _rating(record: Mapping[str, Any]) -> Rating | None:
    value = _SCORES.get(str(record.get("score")))
    if value is None:
        return None
    return Rating(value, moment(record.get("updated_at")), text(record.get("comment")))


def _attributes(record: Mapping[str, Any]) -> dict[str, Any]:
    fields = {
        f"field {each.get('id')}": each.get("value")
        for each in objects(record.get("custom_fields"))
        if each.get("value") not in (None, "", []) and each["value"] is not False
    }
    return filled(
        source="zendesk",
        zendeskTicket=text(record.get("id")),
        tags=texts(record.get("tags")),
        priority=text(record.get("priority")),
        type=text(record.get("type")),
        channel=text(mapping(record.get("via")).get("channel")),
        group=None if record.get("group_id") is None else f"group {record['group_id']}",
        externalId=text(record.get("external_id")),
        **fields,
    )


def _comment(record: Mapping[str, Any], tally: Tally, at: int | None = None) -> Iterator[Part]:
    key, ticket = text(record.get("id")), text(record.get("ticket_id"))
    if key is None or ticket is None:
        tally.note(Note.unknown, f"comment {key} without a ticket")
        return
    author = mapping(record.get("author"))
    yield from _user(author, tally)
    writer = text(record.get("author_id")) or text(author.get("id"))
    markup = text(record.get("html_body"))
    words = text(record.get("body")) or text(record.get("plain_body"))
    written = (plain(markup) if markup else None) or words
    yield Post(
        key,
        ticket,
        writer,
        written or "",
        moment(record.get("created_at")) or at,
        "system" if writer == _SYSTEM else None,
        internal=record.get("public") is False,
        links=list(_links(record, tally)),
    )


def _links(record: Mapping[str, Any], tally: Tally) -> Iterator[tuple[str, str]]:
    for each in objects(record.get("attachments")):
        name, address = text(each.get("file_name")), text(each.get("content_url"))
        if address is None:
            tally.note(Note.no_link, f"attachment {each.get('id')}")
        else:
            yield name or "file", address
    recording = text(mapping(record.get("data")).get("recording_url"))
    if recording is not None:
        yield "recording", recording


def _event(record: Mapping[str, Any], tally: Tally) -> Iterator[Part]:
    """Yield the comments of a ticket event or audit, with which they are dated."""
    at = moment(record.get("created_at")) or moment(record.get("timestamp"))
    writer = record.get("updater_id") or record.get("author_id")
    for each in (*objects(record.get("child_events")), *objects(record.get("events"))):
        if "Comment" in (each.get("type"), each.get("event_type")) or each.get("type") == "VoiceComment":
            written = {"ticket_id": record.get("ticket_id"), "author_id": writer, **each}
            yield from _comment(written, tally, at)
        else:
            tally.note(Note.step, f"event {each.get('id')}")


def _field(record: Mapping[str, Any], _tally: Tally) -> Iterator[Part]:
    title = text(record.get("title"))
    if title is not None:
        yield Label(f"field {record.get('id')}", title)


def _group(record: Mapping[str, Any], _tally: Tally) -> Iterator[Part]:
    name = text(record.get("name"))
    if name is not None:
        yield Label(f"group {record.get('id')}", name)


_PAGES: Final[Mapping[str, Callable[[Mapping[str, Any], Tally], Iterator[Part]]]] = {
    "tickets": _ticket,
    "users": _user,
    "comments": _comment,
    "ticket_events": _event,
    "audits": _event,
    "ticket_fields": _field,
    "groups": _group,
    **dict.fromkeys(_ELSEWHERE, _elsewhere),
}
"""The readers of pages, by the key of their array; a record with an id is none."""
