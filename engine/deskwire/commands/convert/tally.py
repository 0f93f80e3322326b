"""Counts records that are omitted or changed by a conversion."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, TextIO

from msgspec import Struct, field

from deskwire.commands.shell.output import visible
from deskwire.engine.core.text import MESSAGE_TEXT_MAX


class Note(Enum):
    """A reason to report a record. The value is the text after its count.

    The names are the values of `reason` in the lines of `--report`.
    """

    unreadable = "not valid JSON"
    refused = "refused by the rules of an import"
    unknown = "of an unknown kind"
    not_imported = "of a kind that an import does not support"
    deleted = "deleted at the source"
    redacted = "redacted at the source: their text is gone"
    person_deleted = "people deleted at the source, whose names and addresses are gone"
    no_thread = "messages whose conversation is in no file"
    no_text = "messages with neither text nor attachment"
    step = "steps without words, such as an assignment or a closing"
    no_link = "attachments without an address"
    parts_missing = "conversations that the export has without all of their messages"
    field_dropped = "fields that an import refuses; their records are kept without them"

    links = "messages whose attachments became links in their text"
    split = f"messages split into several, because they have more than {MESSAGE_TEXT_MAX:,} characters"
    impossible_time = "impossible times, such as a closing before the creation"
    unread_contact = (
        "e-mail addresses and telephone numbers that can't be read, which an import keeps as attributes"
    )
    no_time = "messages without a time, dated like their conversation"
    other_person = "messages of another customer, whose name was put before the text"
    unknown_author = "messages of an author who is in no file, shown as an agent without a name"
    unknown_contact = "conversations of a customer who is in no file, identified by the old id"
    no_id = "customers without an external id, identified by the old id"


LOST = tuple(Note)[: list(Note).index(Note.links)]
"""Reasons for omitted records; the other reasons are for changed ones."""

FAULTS = (Note.unreadable, Note.refused)
"""Reasons for exit status 1."""


class ConversionTally(Struct):
    """The counts of a conversion.

    Args:
        report: receives each note as a line of JSON, with the record's id.
    """

    report: TextIO | None = None
    written: Counter[str] = field(default_factory=Counter)
    notes: Counter[Note] = field(default_factory=Counter)

    def note(self, note: Note, about: str) -> None:
        """Count a record, and write it to the report."""
        self.notes[note] += 1
        if self.report is not None:
            self.report.write(json.dumps({"reason": note.name, "about": about}) + "\n")

    def note_unknown(self, record: Mapping[str, Any]) -> None:
        """Count a record of unknown form, with its id and the names of its first fields."""
        self.note(Note.unknown, f"{record.get('id')}: {', '.join(list(record)[:5])}")

    @property
    def faulty(self) -> bool:
        """Return whether a file has broken records."""
        return any(self.notes[note] for note in FAULTS)

    def summary(self) -> Iterator[str]:
        """Yield the lines of the summary."""
        deletions = f", {self.written['deletion']:,} deletions" if self.written["deletion"] else ""
        yield f"written: {self.written['conversation']:,} conversations, {self.written['message']:,} messages{deletions}"
        for words, kinds in (("left out", LOST), ("changed", [each for each in Note if each not in LOST])):
            for note in kinds:
                if self.notes[note]:
                    yield f"{words}: {self.notes[note]:,} {visible(note.value)}"
