"""A conversion in this process, and what is to be seen of it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

from deskwire.commands.convert.parts import ExportSource
from deskwire.commands.convert.run import SOURCES, convert
from deskwire.commands.convert.tally import ConversionTally

NOW = 1_790_000_000_000


@dataclass(frozen=True)
class Converted:
    """The written lines as records, and the reports of the others."""

    records: list[dict[str, Any]]
    notes: dict[str, int]
    told: list[dict[str, str]]
    output: bytes

    @property
    def conversations(self) -> list[dict[str, Any]]:
        """The records of conversations."""
        return [each for each in self.records if each["type"] == "conversation"]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The records of messages."""
        return [each for each in self.records if each["type"] == "message"]

    @property
    def deletions(self) -> list[dict[str, Any]]:
        """The records of deletions."""
        return [each for each in self.records if each["type"] == "deletion"]

    @property
    def said(self) -> list[tuple[str, str]]:
        """The author's type and name, and the text, of each message."""
        return [
            (" ".join(filter(None, (each["author"]["type"], each["author"].get("name")))), each["text"])
            for each in self.messages
        ]


def converted(
    source: str, *records: Any, by_email: bool = False, reader: ExportSource | None = None
) -> Converted:
    """Convert records, each in a file of its own."""
    files = (json.dumps(each).encode() + b"\n" for each in records)
    return converted_bytes(source, *files, by_email=by_email, reader=reader)


def converted_bytes(
    source: str, *files: bytes, by_email: bool = False, reader: ExportSource | None = None
) -> Converted:
    """Convert files with these contents."""
    output, report = io.BytesIO(), io.StringIO()
    tally = ConversionTally(report)
    named: Iterable[tuple[str, BinaryIO]] = [
        (f"file {number}", io.BytesIO(each)) for number, each in enumerate(files, 1)
    ]
    convert(reader or SOURCES[source](), named, output, tally, by_email=by_email, now=NOW)
    records = [json.loads(line) for line in output.getvalue().splitlines()]
    assert tally.written.total() == len(records)
    told = [json.loads(line) for line in report.getvalue().splitlines()]
    return Converted(
        records, {note.name: count for note, count in tally.notes.items()}, told, output.getvalue()
    )
