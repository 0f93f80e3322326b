"""Zendesk Support: the JSON export of tickets and users, and pages of its API.

A ticket may include its `comments` and people (JSON export); otherwise they come as pages of
`/api/v2/incremental/ticket_events?include=comment_events`, of `/api/v2/tickets/{id}/comments`, and of
`/api/v2/incremental/users`. Source: Zendesk's reference of Tickets, Ticket Comments, Ticket Audits, Users and Incremental
Exports.

The version of tickets, users, fields and groups is their `updated_at`. A comment has none, or that of the enclosing
ticket. Redactions and changes of privacy are events that name a comment. A redacted word is a row of `▇`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from deskwire.commands.convert.fields import (
    filled,
    identity,
    latest,
    mapping,
    moment,
    objects,
    text,
    texts,
    written,
)
from deskwire.commands.convert.parts import (
    FINAL,
    REDACTED,
    UNDATED,
    Amendment,
    Deletion,
    ExportedPerson,
    ExportedPost,
    ExportedRating,
    ExportedThread,
    Label,
    Link,
    Part,
    Redacted,
    Role,
)
from deskwire.commands.convert.tally import ConversionTally, Note
from deskwire.commands.convert.text import plain
from deskwire.engine.contacts.contact import IDENTITY

_STATUS: Final = {"solved": "CLOSED", "closed": "CLOSED", "pending": "PENDING", "hold": "PENDING"}
_SCORES: Final = {"good": 10, "good_with_comment": 10, "bad": 0, "bad_with_comment": 0}
_ROLES: Final[Mapping[str, Role]] = {"end-user": "contact", "agent": "agent", "admin": "agent"}
_SYSTEM: Final = "-1"  # the author of Zendesk's own messages
_IDENTITY: Final = {
    "name": ("name",),
    "external_id": ("external_id",),
    "email": ("email",),
    "phone": ("phone",),
}
_REDACTED_FILE: Final = "redacted.txt"  # Zendesk's replacement for a redacted attachment
_ELSEWHERE: Final = ("organizations", "metric_sets", "satisfaction_ratings", "macros", "views", "articles")


class Zendesk:
    """Reads exports of Zendesk."""

    name = "zendesk"

    def parts(self, record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
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


def _bare(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    """Yield the parts of a separate record."""
    if "child_events" in record or "events" in record:
        yield from _event(record, tally)
    elif "requester_id" in record or "requester" in record:
        yield from _ticket(record, tally)
    elif "ticket_id" in record and ("body" in record or "html_body" in record):
        yield from _comment(record, tally)
    elif str(record.get("role")) in _ROLES:
        yield from _user(record, tally)
    else:
        tally.note_unknown(record)


def _elsewhere(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    tally.note(Note.not_imported, str(record.get("id")))
    return iter(())


def _user(record: Mapping[str, Any], _tally: ConversionTally) -> Iterator[Part]:
    """Yield a user from a list of users."""
    yield from _person(record, latest(record.get("updated_at")) or UNDATED, whole=True)


def _mentioned(record: Mapping[str, Any], version: int | None) -> Iterator[Part]:
    """Yield a user within another record. The JSON export has all fields of such users, other exports only some."""
    own = latest(record.get("updated_at"))
    yield from _person(record, version if own is None else own, whole=own is not None)


def _person(record: Mapping[str, Any], version: int | None, *, whole: bool) -> Iterator[Part]:
    key = text(record.get("id"))
    if key is None:
        return
    role = _ROLES.get(str(record.get("role")))
    if record.get("permanently_deleted") is True:
        nothing = dict.fromkeys(IDENTITY)
        yield ExportedPerson(key, role, version=FINAL, gone=True, **nothing)
        return
    fields = identity(record, _IDENTITY, whole=whole)
    photo = text(mapping(record.get("photo")).get("content_url"))
    if photo is not None or (whole and "photo" in record):
        fields["avatar"] = photo
    created = moment(record.get("created_at"))
    if created is not None:
        fields["created_at"] = created
    yield ExportedPerson(key, role, version=version, **fields)


def _deleted_ticket(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    """Yield the deletion from the list of deleted tickets."""
    key = text(record.get("id"))
    if key is None:
        tally.note(Note.unknown, "a deleted ticket without an id")
    else:
        yield Deletion(key, version=latest(record.get("deleted_at"), record.get("updated_at")))


def _ticket(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    key, created = text(record.get("id")), moment(record.get("created_at"))
    updated = moment(record.get("updated_at"))
    for name in ("requester", "submitter", "assignee"):
        yield from _mentioned(mapping(record.get(name)), updated)
    requester = text(record.get("requester_id")) or text(mapping(record.get("requester")).get("id"))
    if record.get("status") == "deleted" and key is not None:
        yield Deletion(key, version=updated)
        return
    if key is None or created is None or requester is None:
        tally.note(Note.unknown, f"ticket {key}")
        return
    status = _STATUS.get(str(record.get("status")), "OPEN")
    yield ExportedThread(
        key,
        key,
        requester,
        status,  # type: ignore[arg-type]  # the table has no other
        created,
        updated,
        moment(record.get("solved_at")) or updated if status == "CLOSED" else None,
        text(record.get("subject")) or text(record.get("raw_subject")),
        text(record.get("assignee_id")) or text(mapping(record.get("assignee")).get("id")),
        written(record.get("description")),
        _rating(mapping(record.get("satisfaction_rating"))),
        _attributes(record),
        updated,
    )
    for each in objects(record.get("comments")):
        yield from _dated_comment({**each, "ticket_id": key}, tally, None, updated)


def _rating(record: Mapping[str, Any]) -> ExportedRating | None:
    value = _SCORES.get(str(record.get("score")))
    if value is None:
        return None
    return ExportedRating(value, moment(record.get("updated_at")), text(record.get("comment")))


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


def _comment(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    """Yield a comment from a list of comments, without a version."""
    yield from _dated_comment(record, tally, None, latest(record.get("updated_at")))


def _dated_comment(
    record: Mapping[str, Any], tally: ConversionTally, at: int | None, version: int | None
) -> Iterator[Part]:
    """Yield a comment; `at` is its time unless it has its own."""
    key, ticket = text(record.get("id")), text(record.get("ticket_id"))
    if key is None or ticket is None:
        tally.note(Note.unknown, f"comment {key} without a ticket")
        return
    made = moment(record.get("created_at")) or at
    author = mapping(record.get("author"))
    yield from _mentioned(author, made if version is None else version)
    writer = text(record.get("author_id")) or text(author.get("id"))
    markup = written(record.get("html_body"))
    words = written(record.get("body")) or written(record.get("plain_body"))
    shown = (plain(markup) if markup else None) or words or ""
    links = list(_links(record, tally))
    yield ExportedPost(
        key,
        ticket,
        writer,
        shown,
        made,
        "system" if writer == _SYSTEM else None,
        internal=record.get("public") is False,
        links=links,
        redactions=shown.count(REDACTED) + sum(each.name == _REDACTED_FILE for each in links),
        version=version,
    )


def _links(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Link]:
    for each in objects(record.get("attachments")):
        name, address = text(each.get("file_name")), text(each.get("content_url"))
        if address is None:
            tally.note(Note.no_link, f"attachment {each.get('id')}")
        else:
            yield Link(name or "file", address, text(each.get("id")))
    recording = text(mapping(record.get("data")).get("recording_url"))
    if recording is not None:
        yield Link("recording", recording)


def _event(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    """Yield the comments of a ticket event or audit, which gives their time, and its changes of other comments."""
    at = moment(record.get("created_at")) or moment(record.get("timestamp"))
    writer, ticket = record.get("updater_id") or record.get("author_id"), text(record.get("ticket_id"))
    for number, each in enumerate((*objects(record.get("child_events")), *objects(record.get("events")))):
        kinds = (each.get("type"), each.get("event_type"))
        comment = text(each.get("comment_id"))
        if "Comment" in kinds or "VoiceComment" in kinds:
            event = {"ticket_id": record.get("ticket_id"), "author_id": writer, **each}
            yield from _dated_comment(event, tally, at, None)
        elif (what := _amended(kinds, each)) is None:
            tally.note(Note.step, f"event {each.get('id')}")
        elif ticket is None or comment is None:
            tally.note(
                Note.unknown, f"event {each.get('id')} without its {'comment' if ticket else 'ticket'}"
            )
        else:
            key = text(each.get("id")) or f"{text(record.get('id'))} {number}"
            yield Amendment(key, ticket, comment, what, at, text(each.get("attachment_id")))


def _amended(kinds: tuple[object, object], event: Mapping[str, Any]) -> Redacted | None:
    """Return the part of a comment that an event has changed."""
    if "CommentRedactionEvent" in kinds:
        return "text"
    if "AttachmentRedactionEvent" in kinds:
        return "attachment"
    return "hidden" if "CommentPrivacyChange" in kinds and event.get("public") is False else None


def _field(record: Mapping[str, Any], _tally: ConversionTally) -> Iterator[Part]:
    title = text(record.get("title"))
    if title is not None:
        yield Label(f"field {record.get('id')}", title, latest(record.get("updated_at")))


def _group(record: Mapping[str, Any], _tally: ConversionTally) -> Iterator[Part]:
    name = text(record.get("name"))
    if name is not None:
        yield Label(f"group {record.get('id')}", name, latest(record.get("updated_at")))


_PAGES: Final[Mapping[str, Callable[[Mapping[str, Any], ConversionTally], Iterator[Part]]]] = {
    "tickets": _ticket,
    "deleted_tickets": _deleted_ticket,
    "users": _user,
    "deleted_users": _user,
    "comments": _comment,
    "ticket_events": _event,
    "audits": _event,
    "ticket_fields": _field,
    "groups": _group,
    **dict.fromkeys(_ELSEWHERE, _elsewhere),
}
"""The readers of pages by the name of their array; a record with an id is not a page."""
