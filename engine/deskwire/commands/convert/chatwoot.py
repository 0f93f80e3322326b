"""Chatwoot: pages of its API, and rows of its database.

The API's pages are those of `/api/v1/accounts/{account}/conversations`, of `…/conversations/{id}/messages`, `…/contacts` and
`…/agents`. A row of the database is an object with the name of its table under `table`. Source: the views
(`app/views/api/v1`) and models of chatwoot/chatwoot.

The version of a row is its `updated_at`, and that of a conversation of the API its last activity. The content of a message
is plain text or Markdown for all types. For a mail, too: its markup is in `content_attributes` (`MailPresenter`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    texts,
    written,
)
from deskwire.commands.convert.parts import (
    ROW,
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
    ThreadRating,
)
from deskwire.commands.convert.reading import unpacked
from deskwire.commands.convert.tally import ConversionTally, Note

_STATUS: Final = {
    "resolved": "CLOSED",
    "1": "CLOSED",
    "pending": "PENDING",
    "2": "PENDING",
    "snoozed": "PENDING",
    "3": "PENDING",
}
_KINDS: Final = {"0": "incoming", "1": "outgoing", "2": "activity", "3": "template"}
_ROLES: Final[Mapping[str, Role]] = {
    "contact": "contact",
    "user": "agent",
    "agentbot": "bot",
    "agent_bot": "bot",
    "captain::assistant": "bot",
    "captain_assistant": "bot",
}
_IDENTITY: Final = {
    "name": ("display_name", "name", "available_name"),
    "external_id": ("identifier",),
    "email": ("email",),
    "phone": ("phone_number",),
    "avatar": ("thumbnail", "avatar_url"),
}
_PRIORITIES: Final = {"0": "low", "1": "medium", "2": "high", "3": "urgent"}


class Chatwoot:
    """Reads exports of Chatwoot's API and database."""

    name = "chatwoot"

    def parts(self, record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
        """Yield the parts of a row, a record or a page."""
        if "table" in record:
            yield from _row(record, tally)
            return
        within = mapping(record.get("data"))
        payload = record.get("payload", within.get("payload"))
        if isinstance(payload, list):
            for each in objects(payload):
                yield from self.parts(each, tally)
        elif isinstance(payload, dict):
            yield from self.parts(mapping(payload.get("contact")) or payload, tally)
        else:
            yield from _object(record, tally)


def _object(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    """Yield the parts of an object of the API."""
    if "message_type" in record:
        yield from _message(record, str(text(record.get("conversation_id"))), tally)
    elif "sender" in mapping(record.get("meta")):
        yield from _conversation(record, tally)
    elif "phone_number" in record or "identifier" in record:
        yield from _whole_person(record, "contact")
    elif "availability_status" in record or record.get("role") in ("agent", "administrator"):
        yield from _whole_person(record, "agent")
    else:
        tally.note_unknown(record)


def _key(role: Role | None, identifier: object) -> str | None:
    """Return the key of a person; contacts, agents and bots have separate numbers."""
    known = text(identifier)
    return None if known is None else f"{role} {known}" if role != "contact" else known


def _whole_person(record: Mapping[str, Any], role: Role) -> Iterator[Part]:
    """Yield a person from a list or a row."""
    yield from _person(record, role, latest(record.get("updated_at")) or UNDATED, whole=True)


def _person(
    record: Mapping[str, Any], role: Role, version: int | None, *, whole: bool = False
) -> Iterator[Part]:
    """Yield a person; without `whole`, only mentioned in a record of this version."""
    key = _key(role, record.get("id"))
    if key is not None:
        fields = identity(record, _IDENTITY, whole=whole)
        created = moment(record.get("created_at"))
        if created is not None:
            fields["created_at"] = created
        yield ExportedPerson(key, role, version=version, **fields)


def _conversation(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    """Yield a conversation of the API with its messages."""
    meta = mapping(record.get("meta"))
    sender, assignee = mapping(meta.get("sender")), mapping(meta.get("assignee"))
    version = _version(record)
    yield from _person(sender, "contact", version)
    yield from _person(assignee, "agent", version)
    number = text(record.get("id"))
    team = text(mapping(meta.get("team")).get("name"))
    made = _thread(record, number, number, text(sender.get("id")), _key("agent", assignee.get("id")), team)
    if made is None:
        tally.note(Note.unknown, f"conversation {number}")
        return
    yield made
    for each in objects(record.get("messages")):
        yield from _message(each, made.key, tally)


def _version(record: Mapping[str, Any]) -> int | None:
    """Return the version of a conversation: the latest of its times."""
    names = ("updated_at", "last_activity_at", "timestamp")
    return max((at for at in (moment(record.get(name)) for name in names) if at is not None), default=None)


def _thread(
    record: Mapping[str, Any],
    key: str | None,
    number: str | None,
    contact: str | None,
    assignee: str | None,
    team: str | None,
) -> ExportedThread | None:
    active = moment(record.get("last_activity_at")) or moment(record.get("timestamp"))
    created = moment(record.get("created_at")) or active
    if key is None or number is None or contact is None or created is None:
        return None
    status = _STATUS.get(str(record.get("status")), "OPEN")
    updated = max(created, active or created)
    return ExportedThread(
        key,
        number,
        contact,
        status,  # type: ignore[arg-type]  # the table has no other
        created,
        updated,
        updated if status == "CLOSED" else None,
        text(mapping(record.get("additional_attributes")).get("mail_subject")),
        assignee,
        attributes=_attributes(record, number, team),
        version=_version(record),
    )


def _attributes(record: Mapping[str, Any], number: str, team: str | None) -> dict[str, Any]:
    labels = texts(record.get("labels")) or [
        each.strip() for each in str(record.get("cached_label_list") or "").split(",") if each.strip()
    ]
    priority = text(record.get("priority"))
    own = {
        name: value for name, value in mapping(record.get("custom_attributes")).items() if value is not None
    }
    inbox = record.get("inbox_id")
    reserved = filled(
        source="chatwoot",
        chatwootConversation=number,
        tags=labels,
        priority=_PRIORITIES.get(priority or "", priority),
        channel=text(mapping(record.get("meta")).get("channel")),
        inbox=None if inbox is None else f"inbox {inbox}",
        team=team,
    )
    return beside(own, reserved)


def _message(record: Mapping[str, Any], thread: str, tally: ConversionTally) -> Iterator[Part]:
    """Yield a message of the API or of the database, with its sender and attachments."""
    key = text(record.get("id"))
    kind = text(record.get("message_type")) or ""
    kind = _KINDS.get(kind, kind)
    packed = record.get("content_attributes")  # in the database a text in a column of JSON
    content = mapping(unpacked(packed) if isinstance(packed, str) else packed)
    if kind == "activity":
        tally.note(Note.step, f"message {key}")
    elif key is None:
        tally.note(Note.unknown, f"message without an id in conversation {thread}")
    elif content.get("deleted") is True:
        yield Deletion(thread, key, version=latest(record.get("updated_at")))
    else:
        yield from _kept(record, kind, key, thread, tally)


def _kept(
    record: Mapping[str, Any], kind: str, key: str, thread: str, tally: ConversionTally
) -> Iterator[Part]:
    sender = mapping(record.get("sender"))
    sender_type = str(record.get("sender_type") or sender.get("type") or "").lower()
    role = _ROLES.get(sender_type) or ("contact" if kind == "incoming" else None)
    if role is None and (kind == "template" or not sender.get("id")):
        role = "bot" if kind == "template" else "system"
    at, version = moment(record.get("created_at")), latest(record.get("updated_at"))
    if role in ("contact", "agent", "bot"):
        yield from _person(sender, role, at if version is None else version)
    yield ExportedPost(
        key,
        thread,
        _key(role, record.get("sender_id") or sender.get("id")),
        written(record.get("content")) or "",
        at,
        role,
        internal=record.get("private") is True,
        links=list(_links(record, tally)),
        version=version,
    )


def _links(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Link]:
    for each in objects(record.get("attachments")):
        address = text(each.get("data_url")) or text(each.get("external_url"))
        if address is None:
            tally.note(Note.no_link, f"attachment {each.get('id')}")
        else:
            yield Link(text(each.get("fallback_title")) or text(each.get("file_type")) or "file", address)


def _row(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    """Yield the parts of a row of the database."""
    table = str(record["table"])
    if table in _TABLES:
        yield from _TABLES[table](record, tally)
    elif table == "attachments":
        tally.note(Note.no_link, f"attachment {record.get('id')}")
    else:
        tally.note(Note.not_imported, f"{table} {record.get('id')}")


def _conversation_row(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    key, team = text(record.get("id")), record.get("team_id")
    made = _thread(
        record,
        None if key is None else ROW + key,
        text(record.get("display_id")),
        text(record.get("contact_id")),
        _key("agent", record.get("assignee_id")),
        None if team is None else f"team {team}",
    )
    if made is None:
        tally.note(Note.unknown, f"conversations {key}")
    else:
        yield made


def _message_row(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    yield from _message(record, f"{ROW}{record.get('conversation_id')}", tally)


def _rating_row(record: Mapping[str, Any], tally: ConversionTally) -> Iterator[Part]:
    """Yield the rating from 1 to 5 as 2 to 10."""
    value = record.get("rating")
    if isinstance(value, int) and 1 <= value <= 5:
        rating = ExportedRating(
            value * 2, moment(record.get("created_at")), text(record.get("feedback_message"))
        )
        thread = f"{ROW}{record.get('conversation_id')}"
        yield ThreadRating(thread, rating, latest(record.get("updated_at"), record.get("created_at")))
    else:
        tally.note(Note.unknown, f"csat_survey_responses {record.get('id')}")


def _label_row(kind: str) -> Callable[[Mapping[str, Any], ConversionTally], Iterator[Part]]:
    def read(record: Mapping[str, Any], _tally: ConversionTally) -> Iterator[Part]:
        name = text(record.get("name"))
        if name is not None:
            yield Label(f"{kind} {record.get('id')}", name, latest(record.get("updated_at")))

    return read


def _person_row(role: Role) -> Callable[[Mapping[str, Any], ConversionTally], Iterator[Part]]:
    def read(record: Mapping[str, Any], _tally: ConversionTally) -> Iterator[Part]:
        yield from _whole_person(record, role)

    return read


_TABLES: Final[Mapping[str, Callable[[Mapping[str, Any], ConversionTally], Iterator[Part]]]] = {
    "contacts": _person_row("contact"),
    "users": _person_row("agent"),
    "agent_bots": _person_row("bot"),
    "conversations": _conversation_row,
    "messages": _message_row,
    "csat_survey_responses": _rating_row,
    "inboxes": _label_row("inbox"),
    "teams": _label_row("team"),
}
