"""Assembles the parts of an export as lines for an import (ADR 30)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from deskwire.commands.convert.parts import (
    REDACTED,
    ROW,
    Deletion,
    ExportedPost,
    ExportedThread,
    Link,
    MergedPerson,
)
from deskwire.commands.convert.spool import Spool
from deskwire.commands.convert.tally import ConversionTally, Note
from deskwire.commands.convert.text import trimmed
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.folding import address_key
from deskwire.engine.core.text import MESSAGE_TEXT_MAX
from deskwire.engine.importing.records import DeletionRecord, RefusedLine
from deskwire.http.api.input.ndjson import NdjsonLine
from deskwire.http.resources.imports.lines import LINE_BYTES, read_line

_NAME_MAX: Final = 200
_TITLE_MAX: Final = 500
_OPTIONAL: Final = ("title", "rating", "ratingComment", "ratedAt", "attributes", "closedAt", "updatedAt")
_OPTIONAL_OF_CONTACT: Final = ("name", "email", "phone", "avatar", "createdAt")
_READ: Final = ("/contact/email", "/contact/phone")


class ImportLineWriter:
    """Writes the content of a spool.

    Args:
        source: the prefix of the source's ids.
        by_email: identify a customer without an external id by the email address.
        now: in milliseconds.
    """

    def __init__(
        self, source: str, spool: Spool, tally: ConversionTally, *, by_email: bool, now: int
    ) -> None:
        self._source = source
        self._spool = spool
        self._tally = tally
        self._by_email = by_email
        self._now = now
        self._nameless: set[str] = set()

    def lines(self) -> Iterator[bytes]:
        """Yield the conversations, oldest first, each followed by its messages, then deletions of conversations."""
        for thread in self._spool.threads():
            line = self._accepted(self._conversation(thread), thread.id)
            if line is None:
                continue
            self._tally.written["conversation"] += 1
            yield line
            yield from self._messages(thread)
        for key in self._spool.deleted_threads():
            self._tally.note(Note.deleted, f"conversation {key}")
            yield from self._deletion(key, None)
        for deletion in self._spool.homeless_deletions():
            self._note_gone(deletion)
            yield from self._deletion(deletion.thread, deletion.post)
        for key in self._spool.deleted_people():
            self._tally.note(Note.person_deleted, key)
        for key in self._spool.homeless():
            self._tally.note(Note.no_thread, f"message {key}")

    def _messages(self, thread: ExportedThread) -> Iterator[bytes]:
        deletions = messages = 0
        for post in self._spool.posts(thread):
            if isinstance(post, Deletion):
                deletions += 1
                self._note_gone(post)
                yield from self._deletion(thread.id, post.post)
            else:
                messages += 1
                yield from self._post(thread, post)
        opening = f"{thread.key}-opening"
        if thread.opening and deletions and not messages:  # the opening repeats the text of a deleted message
            yield from self._deletion(thread.id, opening)
        elif thread.opening and not messages:
            redactions = thread.opening.count(REDACTED)
            at, contact = thread.created_at, thread.contact
            post = ExportedPost(
                opening, thread.key, contact, thread.opening, at, "contact", redactions=redactions
            )
            yield from self._post(thread, post)

    def _post(self, thread: ExportedThread, post: ExportedPost) -> Iterator[bytes]:
        records = list(self._message(thread, post))
        for record in records:
            yield from self._written(record, "message")
        if (
            post.redactions and len(post.text) > MESSAGE_TEXT_MAX // 2
        ):  # it may have had more pieces before the redaction
            yield from self._deletion(thread.id, f"{post.key}-{len(records) + 1}")

    def _note_gone(self, deletion: Deletion) -> None:
        note = Note.deleted if deletion.gone == "deleted" else Note.redacted
        self._tally.note(note, f"message {deletion.post}")

    def _deletion(self, thread: str, post: str | None) -> Iterator[bytes]:
        """Yield the line that deletes an earlier version of the record in an import."""
        if thread.startswith(ROW):  # its visible number is in no file
            return
        record: dict[str, Any] = {"type": "deletion", "conversation": f"{self._source}-{thread}"}
        if post is not None:
            record |= {"message": post, "pieces": True}
        yield from self._written(record, "deletion")

    def _written(self, record: dict[str, Any], kind: str) -> Iterator[bytes]:
        about = record.get("externalId") or record.get("message") or record["conversation"]
        line = self._accepted(record, about)
        if line is not None:
            self._tally.written[kind] += 1
            yield line

    def _conversation(self, thread: ExportedThread) -> dict[str, Any]:
        rating = thread.rating
        record: dict[str, Any] = {
            "type": "conversation",
            "externalId": f"{self._source}-{thread.id}",
            "contact": self._contact(thread),
            "title": None if thread.title is None else thread.title[:_TITLE_MAX],
            "status": thread.status,
            "createdAt": iso(thread.created_at),
            "updatedAt": iso_or_none(thread.updated_at),
            "closedAt": iso_or_none(thread.closed_at),
            "rating": None if rating is None else rating.value,
            "ratedAt": None if rating is None else iso_or_none(rating.at),
            "ratingComment": None if rating is None else rating.comment,
            "attributes": self._attributes(thread),
            "attributeIds": self._attribute_ids(thread) or None,
        }
        return {name: value for name, value in record.items() if value is not None}

    def _attributes(self, thread: ExportedThread) -> Mapping[str, Any]:
        """Return the attributes by their labels, with the assignee's name."""
        shown = {
            self._labelled(name): self._labelled(value) if isinstance(value, str) else value
            for name, value in thread.attributes.items()
        }
        assignee = None if thread.assignee is None else self._spool.person(thread.assignee)
        return shown if assignee is None else {**shown, "assignee": assignee.name or assignee.email}

    def _attribute_ids(self, thread: ExportedThread) -> Mapping[str, str]:
        """Return the source's keys of named attributes, which stay when a name changes."""
        named = {
            self._labelled(name): value
            for name, value in thread.attributes.items()
            if isinstance(value, str) and self._spool.label(value) is not None
        }
        known = thread.assignee is not None and self._spool.person(thread.assignee) is not None
        return {**named, "assignee": thread.assignee} if thread.assignee and known else named

    def _labelled(self, value: str) -> str:
        return self._spool.label(value) or value

    def _contact(self, thread: ExportedThread) -> dict[str, Any]:
        person = self._spool.person(thread.contact)
        if person is None:
            self._tally.note(Note.unknown_contact, f"conversation {thread.id}")
            return {"userId": f"{self._source}-{thread.contact}"}
        name = None if person.name is None else person.name[:_NAME_MAX]
        identity = {"name": name, "email": person.email, "phone": person.phone, "avatar": person.avatar}
        record = {"userId": self._user_id(person), **identity, "createdAt": iso_or_none(person.created_at)}
        return {name: value for name, value in record.items() if value is not None}

    def _user_id(self, person: MergedPerson) -> str:
        if person.external_id:
            return person.external_id
        if self._by_email and person.email:
            return address_key(person.email)
        if person.key not in self._nameless:
            self._nameless.add(person.key)
            self._tally.note(Note.no_id, f"{self._source}-{person.key}")
        return f"{self._source}-{person.key}"

    def _message(self, thread: ExportedThread, post: ExportedPost) -> Iterator[dict[str, Any]]:
        """Yield the records of a post: none if it is empty, several if it is long."""
        author, prefix = self._author(thread, post)
        text = trimmed("\n".join([post.text, *map(_link, post.links)]))
        if not text:
            self._tally.note(Note.no_text, f"message {post.key}")
            return
        if post.links:
            self._tally.note(Note.links, f"message {post.key}")
        if post.at is None:
            self._tally.note(Note.no_time, f"message {post.key}")
        pieces = list(_pieces(prefix + text))
        if len(pieces) > 1:
            self._tally.note(Note.split, f"message {post.key}")
        for number, piece in enumerate(pieces, 1):
            yield {
                "type": "message",
                "externalId": post.key if number == 1 else f"{post.key}-{number}",
                "conversation": f"{self._source}-{thread.id}",
                "author": author,
                "text": piece,
                "createdAt": iso(thread.created_at if post.at is None else post.at),
                **({"internal": True} if post.internal else {}),
                **({"redacted": True} if post.redactions else {}),
            }

    def _author(self, thread: ExportedThread, post: ExportedPost) -> tuple[dict[str, str], str]:
        """Return the author of a message, and a prefix for its text."""
        person = None if post.author is None else self._spool.person(post.author)
        role = post.role or (None if person is None else person.role)
        name = post.name if person is None else person.name or person.email
        if post.author == thread.contact or (role == "contact" and post.author is None):
            return {"type": "contact"}, ""
        if role == "contact":
            self._tally.note(Note.other_person, f"message {post.key}")
            return {"type": "contact"}, f"{name or 'Another customer'} wrote:\n"
        if role is None:
            self._tally.note(Note.unknown_author, f"message {post.key}")
        author: dict[str, str] = {"type": role or "agent"}
        return (author if name is None else {**author, "name": name[:_NAME_MAX]}), ""

    def _accepted(self, record: dict[str, Any], about: str) -> bytes | None:
        """Return a valid import line of a record, without refused optional fields; None if that is not possible."""
        for _ in range(2):
            line = orjson.dumps(record)
            read = read_line(NdjsonLine(1, line if len(line) <= LINE_BYTES else None), self._now)
            if not isinstance(read, RefusedLine):
                doubts = () if isinstance(read, DeletionRecord) else read.doubts
                for doubt in doubts:
                    reason = Note.unread_contact if doubt.pointer in _READ else Note.impossible_time
                    self._tally.note(reason, f"{about}: {doubt.pointer}")
                return line + b"\n"
            pointers = {each.pointer for each in read.problems}
            if not self._dropped(record, pointers, about):
                break
        self._tally.note(Note.refused, f"{about}: {', '.join(sorted(pointers))}")
        return None

    def _dropped(self, record: dict[str, Any], pointers: set[str], about: str) -> bool:
        """Drop the optional fields with problems. Return whether that covers all problems."""
        places = [(record, name, f"/{name}") for name in _OPTIONAL]
        places += [(record.get("contact", {}), name, f"/contact/{name}") for name in _OPTIONAL_OF_CONTACT]
        for within, name, pointer in places:
            meant = {each for each in pointers if each == pointer or each.startswith(f"{pointer}/")}
            if meant and name in within:
                del within[name]
                self._tally.note(Note.field_dropped, f"{about}: {pointer}")
                pointers = pointers - meant
        return not pointers


def _link(link: Link) -> str:
    return f"[attachment: {link.name}] {link.address}"


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that each fit a message, split at a line end or blank if possible."""
    begin = 0
    while len(text) - begin > MESSAGE_TEXT_MAX:
        line, word = (
            text.rfind("\n", begin + 1, begin + MESSAGE_TEXT_MAX),
            text.rfind(" ", begin + 1, begin + MESSAGE_TEXT_MAX),
        )
        cut = next(
            (each for each in (line, word) if each > begin + MESSAGE_TEXT_MAX // 2), begin + MESSAGE_TEXT_MAX
        )
        piece = trimmed(text[begin:cut])
        if piece:
            yield piece
        begin = cut + (text[cut] in "\n ")
    if last := trimmed(text[begin:]):
        yield last
