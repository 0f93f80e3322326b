"""Intercom: single conversations from its API, and lists of contacts and admins.

`GET /conversations/{id}` includes the parts of a conversation; lists and searches don't. Source: Intercom's reference of
Conversations, Contacts and Admins, versions 1.0 to 2.15.

The version of a record is its `updated_at`; a person within a conversation has the conversation's. Bodies are HTML unless
the export was fetched with `display_as=plaintext`, which the command's option or a field `display_as` declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from deskwire.commands.convert.fields import (
    beside,
    filled,
    identity,
    latest,
    mapping,
    moment,
    objects,
    text,
    written,
)
from deskwire.commands.convert.parts import (
    FINAL,
    UNDATED,
    Deletion,
    ExportedPerson,
    ExportedPost,
    ExportedRating,
    ExportedThread,
    Label,
    Link,
    Part,
    Role,
)
from deskwire.commands.convert.tally import ConversionTally, Note
from deskwire.commands.convert.text import plain
from deskwire.engine.contacts.contact import IDENTITY

_STATUS: Final = {"closed": "CLOSED", "snoozed": "PENDING"}
_ROLES: Final[Mapping[str, Role]] = {
    "user": "contact",
    "lead": "contact",
    "contact": "contact",
    "admin": "agent",
    "team": "agent",
    "teammate": "agent",
    "bot": "bot",
    "operator": "bot",
}
_FOR_AGENTS: Final = ("note", "assignment", "assign_and_reopen", "assign_and_unsnooze", "note_and_reopen")
"""Types of parts that the customer does not see."""
_IDENTITY: Final = {
    "name": ("name",),
    "external_id": ("external_id", "user_id"),
    "email": ("email",),
    "phone": ("phone",),
}
_LISTS: Final = ("conversations", "contacts", "admins", "teams", "users", "data", "tickets")
_ELSEWHERE: Final = ("ticket", "company", "tag", "segment", "article", "event")


class Intercom:
    """Reads exports of Intercom.

    Args:
        plain_text: bodies are plain text instead of HTML.
    """

    name = "intercom"

    def __init__(self, *, plain_text: bool = False) -> None:
        self._plain_text = plain_text

    def parts(self, record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
        """Yield the parts of a record or page."""
        yield from _record(record, _plain_text(record, around=self._plain_text), tally)


def _record(record: Mapping[str, Any], is_plain: bool, tally: ConversionTally) -> Iterator[Part]:
    kind = record.get("type") or record.get("object")
    if kind == "conversation" and record.get("deleted") is True and text(record.get("id")) is not None:
        yield Deletion(str(text(record["id"])), version=latest(record.get("updated_at")))
        return
    if kind in ("conversation", "conversation_export") or "conversation_parts" in record:
        yield from _conversation(record, is_plain, tally)
        return
    for name in _LISTS:
        if isinstance(record.get(name), list):
            for each in objects(record[name]):
                within = {"type": name.removesuffix("s"), **each}
                yield from _record(within, _plain_text(each, around=is_plain), tally)
            return
    yield from _bare(record, tally)


def _plain_text(record: Mapping[str, Any], *, around: bool) -> bool:
    """Return whether bodies are plain text: the record's field, else `around`."""
    shown = record.get("display_as")
    return shown == "plaintext" if isinstance(shown, str) else around


def _body(value: object, *, is_plain: bool) -> str:
    body = written(value) or ""
    return body if is_plain else plain(body)


def _bare(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    """Yield the parts of a record outside of a conversation."""
    kind = str(record.get("type") or record.get("object"))
    if kind == "team" and text(record.get("name")) is not None:
        yield Label(f"team {record.get('id')}", str(record["name"]), latest(record.get("updated_at")))
    elif kind in _ROLES:
        yield from _person(record, latest(record.get("updated_at")) or UNDATED, whole=True)
    elif kind in _ELSEWHERE:
        tally.note(Note.not_imported, f"{kind} {record.get('id')}")
    else:
        tally.note_unknown(record)


def _person(
    record: Mapping[str, Any], version: int | None, role: Role | None = None, *, whole: bool = False
) -> Iterator[Part]:
    key = text(record.get("id"))
    if key is None:
        return
    role = role or _ROLES.get(str(record.get("type") or record.get("object")))
    if record.get("deleted") is True:
        nothing = dict.fromkeys(IDENTITY)
        yield ExportedPerson(_key(role, key), role, version=FINAL, gone=True, **nothing)
        return
    fields = identity(record, _IDENTITY, whole=whole)
    avatar = record.get("avatar")
    shown = text(avatar) or text(mapping(avatar).get("image_url"))
    if shown is not None or (whole and "avatar" in record):
        fields["avatar"] = shown
    created = moment(record.get("created_at"))
    if created is not None:
        fields["created_at"] = created
    yield ExportedPerson(_key(role, key), role, version=version, **fields)


def _key(role: Role | None, identifier: str) -> str:
    """Return the key of a person; admins have separate numbers."""
    return identifier if role == "contact" else f"admin {identifier}"


def _conversation(record: Mapping[str, Any], is_plain: bool, tally: ConversionTally) -> Iterator[Part]:
    key, created = text(record.get("id")), moment(record.get("created_at"))
    source = mapping(record.get("source") or record.get("conversation_message"))
    customers = list(_customers(record, source))
    if key is None or created is None or not customers:
        tally.note(Note.unknown, f"conversation {key} without {'its customer' if created else 'its time'}")
        return
    version = latest(record.get("updated_at"))
    for each in customers:
        yield from _person(each, version, "contact")
    customer = str(text(customers[0].get("id")))
    is_plain_source = _plain_text(source, around=is_plain)
    yield _thread(record, key, created, customer, source, is_plain_source)
    first = {"part_type": "comment", **source, "id": f"source-{key}", "created_at": created}
    yield from _part(first, key, version, is_plain_source, tally, opens=True)
    yield from _parts(record, key, version, is_plain, tally)


def _customers(record: Mapping[str, Any], source: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the customers of a conversation, first the one who started it."""
    found = [
        *objects(mapping(record.get("contacts")).get("contacts")),
        *objects(record.get("contacts")),
        *objects(record.get("customers")),
        mapping(record.get("user")),
    ]
    author = mapping(source.get("author"))
    if _ROLES.get(str(author.get("type"))) == "contact":
        known = [each for each in found if each.get("id") == author.get("id")]
        yield {**author, **(known[0] if known else {})}
        found = [each for each in found if each.get("id") != author.get("id")]
    yield from (each for each in found if text(each.get("id")) is not None)


def _thread(
    record: Mapping[str, Any],
    key: str,
    created: int,
    customer: str,
    source: Mapping[str, Any],
    is_plain: bool,
) -> ExportedThread:
    state = str(record.get("state") or ("open" if record.get("open", True) else "closed"))
    status = _STATUS.get(state, "OPEN")
    updated = moment(record.get("updated_at"))
    closed = moment(mapping(record.get("statistics")).get("last_close_at")) or updated
    assignee = text(record.get("admin_assignee_id")) or text(mapping(record.get("assignee")).get("id"))
    return ExportedThread(
        key,
        key,
        customer,
        status,  # type: ignore[arg-type]  # the table has no other
        created,
        updated,
        closed if status == "CLOSED" else None,
        text(record.get("title")) or text(_body(source.get("subject"), is_plain=is_plain)),
        None if assignee in (None, "0") else f"admin {assignee}",
        rating=_rating(mapping(record.get("conversation_rating"))),
        attributes=_attributes(record, source),
        version=updated,
    )


def _rating(record: Mapping[str, Any]) -> ExportedRating | None:
    """Return the rating from 1 to 5 as 2 to 10."""
    value = record.get("rating")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 5:
        return None
    return ExportedRating(value * 2, moment(record.get("created_at")), text(record.get("remark")))


def _attributes(record: Mapping[str, Any], source: Mapping[str, Any]) -> dict[str, Any]:
    tags = [text(each.get("name")) for each in objects(mapping(record.get("tags")).get("tags"))]
    own = {
        name: value
        for name, value in mapping(record.get("custom_attributes")).items()
        if isinstance(value, str | int | float | bool) and value != ""
    }
    team = text(record.get("team_assignee_id"))
    reserved = filled(
        source="intercom",
        intercomConversation=text(record.get("id")),
        tags=[each for each in tags if each is not None],
        priority=True if record.get("priority") == "priority" else None,
        channel=text(source.get("type")),
        url=text(source.get("url")),
        team=None if team in (None, "0") else f"team {team}",
    )
    return beside(own, reserved)


def _parts(
    record: Mapping[str, Any], thread: str, version: int | None, is_plain: bool, tally: ConversionTally
) -> Iterator[Part]:
    parts = record.get("conversation_parts")
    found = list(objects(parts)) or list(objects(mapping(parts).get("conversation_parts")))
    total = mapping(parts).get("total_count")
    if parts is None or (isinstance(total, int) and total > len(found)):
        tally.note(Note.parts_missing, f"conversation {thread}")
    for each in found:
        yield from _part(each, thread, version, _plain_text(each, around=is_plain), tally)


def _part(
    record: Mapping[str, Any],
    thread: str,
    version: int | None,
    is_plain: bool,
    tally: ConversionTally,
    *,
    opens: bool = False,
) -> Iterator[Part]:
    """Yield a part of a conversation of this version."""
    key, own = text(record.get("id")), latest(record.get("updated_at"), version)
    shown, links = _body(record.get("body"), is_plain=is_plain), list(_links(record, tally))
    redacted = record.get("redacted") is True
    if redacted and not shown and key is not None:
        yield Deletion(thread, key, "redacted", own)
        return
    if key is None or not (shown or links):
        tally.note(Note.step, f"part {key}: {record.get('part_type')}")
        return
    author = mapping(record.get("author"))
    role = "bot" if author.get("from_ai_agent") is True else _ROLES.get(str(author.get("type")))
    identifier = text(author.get("id"))
    if role is not None:
        yield from _person(author, version, role)
    yield ExportedPost(
        key,
        thread,
        None if identifier is None else _key(role, identifier),
        shown,
        moment(record.get("created_at")),
        role,
        text(author.get("name")),
        record.get("part_type") in _FOR_AGENTS,
        links,
        int(redacted),
        opens,
        own,
    )


def _links(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Link]:
    for each in objects(record.get("attachments")):
        address = text(each.get("url"))
        if address is None:
            tally.note(Note.no_link, f"attachment of {record.get('id')}")
        else:
            yield Link(text(each.get("name")) or "file", address)
