"""Intercom: conversations as its API gives them one by one, and lists of contacts and admins.

`GET /conversations/{id}` has the parts of a conversation; lists and searches have none. Source: Intercom's reference of
Conversations, Contacts and Admins, versions 1.0 to 2.15.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from deskwire.commands.convert.fields import beside, filled, mapping, moment, objects, text
from deskwire.commands.convert.parts import Label, Part, Person, Post, Rating, Role, Thread
from deskwire.commands.convert.tally import Note, Tally
from deskwire.commands.convert.text import plain

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
"""Parts that the customer does not see, whatever is written in them."""
_LISTS: Final = ("conversations", "contacts", "admins", "teams", "users", "data", "tickets")
_ELSEWHERE: Final = ("ticket", "company", "tag", "segment", "article", "event")


class Intercom:
    """The shapes of Intercom's exports."""

    name = "intercom"

    def parts(self, record: Mapping[str, Any], tally: Tally) -> Iterator[Part]:
        """Yield the parts of a record or page."""
        if record.get("type") in ("conversation", "conversation_export") or "conversation_parts" in record:
            yield from _conversation(record, tally)
            return
        for name in _LISTS:
            if isinstance(record.get(name), list):
                for each in objects(record[name]):
                    yield from self.parts({"type": name.removesuffix("s"), **each}, tally)
                return
        yield from _bare(record, tally)


def _bare(record: Mapping[str, Any], tally: Tally) -> Iterator[Part]:
    """Yield the parts of a record that stands by itself."""
    kind = str(record.get("type"))
    if kind == "team" and text(record.get("name")) is not None:
        yield Label(f"team {record.get('id')}", str(record["name"]))
    elif kind in _ROLES:
        yield from _person(record)
    elif kind in _ELSEWHERE:
        tally.note(Note.not_imported, f"{kind} {record.get('id')}")
    else:
        tally.note(Note.unknown, f"{record.get('id')}: {', '.join(list(record)[:5])}")


def _person(record: Mapping[str, Any], role: Role | None = None) -> Iterator[Part]:
    key = text(record.get("id"))
    if key is None:
        return
    role = role or _ROLES.get(str(record.get("type")))
    avatar = record.get("avatar")
    yield Person(
        _key(role, key),
        role,
        text(record.get("name")),
        text(record.get("external_id")) or text(record.get("user_id")),
        text(record.get("email")),
        text(record.get("phone")),
        text(avatar) or text(mapping(avatar).get("image_url")),
        moment(record.get("created_at")),
    )


def _key(role: Role | None, identifier: str) -> str:
    """Return the key of a person: admins are numbered by themselves."""
    return identifier if role == "contact" else f"admin {identifier}"


def _conversation(record: Mapping[str, Any], tally: Tally) -> Iterator[Part]:
    key, created = text(record.get("id")), moment(record.get("created_at"))
    source = mapping(record.get("source") or record.get("conversation_message"))
    customers = list(_customers(record, source))
    if key is None or created is None or not customers:
        tally.note(Note.unknown, f"conversation {key} without {'its customer' if created else 'its time'}")
        return
    for each in customers:
        yield from _person(each, "contact")
    customer = str(text(customers[0].get("id")))
    yield _thread(record, key, created, customer, source)
    first = {"id": f"source-{key}", "part_type": "comment", "created_at": created, **source}
    yield from _part({**first, "id": f"source-{key}", "created_at": created}, key, tally)
    yield from _parts(record, key, tally)


def _customers(record: Mapping[str, Any], source: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the customers of a conversation, that who began it first."""
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
    record: Mapping[str, Any], key: str, created: int, customer: str, source: Mapping[str, Any]
) -> Thread:
    state = str(record.get("state") or ("open" if record.get("open", True) else "closed"))
    status = _STATUS.get(state, "OPEN")
    updated = moment(record.get("updated_at"))
    closed = moment(mapping(record.get("statistics")).get("last_close_at")) or updated
    assignee = text(record.get("admin_assignee_id")) or text(mapping(record.get("assignee")).get("id"))
    return Thread(
        key,
        key,
        customer,
        status,  # type: ignore[arg-type]  # the table has no other
        created,
        updated,
        closed if status == "CLOSED" else None,
        text(record.get("title")) or text(plain(str(source.get("subject") or ""))),
        None if assignee in (None, "0") else f"admin {assignee}",
        rating=_rating(mapping(record.get("conversation_rating"))),
        attributes=_attributes(record, source),
    )


def _rating(record: Mapping[str, Any]) -> Rating | None:
    """Return the rating from 1 to 5 as 2 to 10."""
    value = record.get("rating")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 5:
        return None
    return Rating(value * 2, moment(record.get("created_at")), text(record.get("remark")))


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


def _parts(record: Mapping[str, Any], thread: str, tally: Tally) -> Iterator[Part]:
    parts = record.get("conversation_parts")
    found = list(objects(parts)) or list(objects(mapping(parts).get("conversation_parts")))
    total = mapping(parts).get("total_count")
    if parts is None or (isinstance(total, int) and total > len(found)):
        tally.note(Note.parts_missing, f"conversation {thread}")
    for each in found:
        yield from _part(each, thread, tally)


def _part(record: Mapping[str, Any], thread: str, tally: Tally) -> Iterator[Part]:
    key = text(record.get("id"))
    written, links = plain(str(record.get("body") or "")), list(_links(record, tally))
    if record.get("redacted") is True and not written:
        tally.note(Note.redacted, f"part {key}")
        return
    if key is None or not (written or links):
        tally.note(Note.step, f"part {key}: {record.get('part_type')}")
        return
    author = mapping(record.get("author"))
    role = "bot" if author.get("from_ai_agent") is True else _ROLES.get(str(author.get("type")))
    identifier = text(author.get("id"))
    if role is not None:
        yield from _person(author, role)
    yield Post(
        key,
        thread,
        None if identifier is None else _key(role, identifier),
        written,
        moment(record.get("created_at")),
        role,
        text(author.get("name")),
        record.get("part_type") in _FOR_AGENTS,
        links,
    )


def _links(record: Mapping[str, Any], tally: Tally) -> Iterator[tuple[str, str]]:
    for each in objects(record.get("attachments")):
        address = text(each.get("url"))
        if address is None:
            tally.note(Note.no_link, f"attachment of {record.get('id')}")
        else:
            yield text(each.get("name")) or "file", address
