"""Sends the parts one after the other. An unacknowledged part is sent again; the service recognises what it has of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Final

import trio
from msgspec import Struct, field

from deskwire.commands.api_client.service import Service, ServiceUnavailable

_PATH: Final = "/s2s/import"
_ANSWER_S: Final = 120.0
"""The time that the service may take for a part, on a slow disk."""
_PAUSES_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
"""The pauses between attempts; the last one is repeated."""


class Totals(Struct):
    """The totals of all parts so far.

    Args:
        lines: lines of the file that are acknowledged, blank ones too.
        bytes: of the file, likewise.
        imported, existing, deleted: by `conversations` and `messages`.
        unnamed: refused lines of which the service had no room to say which and why.
        doubtful: imported lines with a time that can't be.
    """

    lines: int = 0
    bytes: int = 0
    imported: Counter[str] = field(default_factory=Counter)
    existing: Counter[str] = field(default_factory=Counter)
    deleted: Counter[str] = field(default_factory=Counter)
    redacted: int = 0
    refused: int = 0
    unnamed: int = 0
    doubtful: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """The seconds since the import began."""
        return time.monotonic() - self.began

    def document(self) -> dict[str, Any]:
        """Return the totals for scripts."""
        kinds = ("conversations", "messages")
        return {
            "lines": self.lines,
            "imported": {kind: self.imported[kind] for kind in kinds},
            "existing": {kind: self.existing[kind] for kind in kinds},
            "deleted": {kind: self.deleted[kind] for kind in kinds},
            "redacted": self.redacted,
            "refused": self.refused,
            "unnamed": self.unnamed,
            "doubtful": self.doubtful,
            "seconds": round(self.seconds, 3),
        }


class Hearing(Struct, frozen=True):
    """The listener to an import's progress.

    Args:
        progress: after each part.
        refused: for each refused line, its number being that in the file.
        doubted: likewise, for each imported line with a time that can't be.
        waiting: why a part has to be sent again, and in how many seconds.
    """

    progress: Callable[[Totals], None]
    refused: Callable[[Mapping[str, Any]], None]
    doubted: Callable[[Mapping[str, Any]], None]
    waiting: Callable[[str, float], None]


async def send_all(
    service: Service, file: BinaryIO, totals: Totals, hearing: Hearing, *, events: bool, patience_s: float
) -> None:
    """Send the whole file; `totals` say at any time what is acknowledged.

    Args:
        patience_s: how long the service may be away before that is given up.

    Raises Away and Refused, OSError if the file can't be read.
    """
    coming = parts(file)
    while (part := await trio.to_thread.run_sync(_next, coming, abandon_on_cancel=True)) is not None:
        report = await _send(service, part, hearing, events=events, patience_s=patience_s)
        totals.lines += part.content.count(b"\n")
        totals.bytes = part.end
        totals.imported.update(report["imported"])
        totals.existing.update(report["existing"])
        totals.deleted.update(report.get("deleted", {}))  # an older service has neither of these
        totals.redacted += report.get("redacted", 0)
        totals.doubtful += report.get("doubtful", 0)
        totals.refused += report["refused"]
        totals.unnamed += report.get("refusalsLeftOut", 0)
        for refusal in report["refusals"]:
            hearing.refused({**refusal, "line": refusal["line"] + part.first - 1})
        for doubt in report.get("doubts", ()):
            hearing.doubted({**doubt, "line": doubt["line"] + part.first - 1})
        hearing.progress(totals)


async def _send(
    service: Service, part: Part, hearing: Hearing, *, events: bool, patience_s: float
) -> Mapping[str, Any]:
    """Return the report on a part, however often it takes."""
    params = {"events": "true"} if events else {}
    since, attempts = trio.current_time(), 0
    while True:
        try:
            report: Mapping[str, Any] = await service.post_lines(_PATH, part.content, params, _ANSWER_S)
        except ServiceUnavailable as away:
            pause_s = away.retry_after_s or _PAUSES_S[min(attempts, len(_PAUSES_S) - 1)]
            if trio.current_time() + pause_s > since + patience_s:
                raise
            attempts += 1
            hearing.waiting(str(away), pause_s)
            await trio.sleep(pause_s)
        else:
            return report


def _next(coming: Iterator[Part]) -> Part | None:
    return next(coming, None)


LINES: Final = 1_000
"""The most lines in a part: as many as the refused lines that the service names."""

PART_BYTES: Final = 1 << 20

LINE_MAX: Final = 256 * 1024 + 1
"""The most bytes of a line that are sent; the service refuses a longer line without its rest."""


class Part(Struct, frozen=True):
    """Lines of the file.

    Args:
        first: the number of its first line, from 1.
        content: the lines, each with its end.
        end: the position in the file behind it, in bytes.
    """

    first: int
    content: bytes
    end: int


def parts(file: BinaryIO) -> Iterator[Part]:
    """Yield the file's parts, in order. Raises OSError."""
    first, end = 1, 0
    while True:
        lines: list[bytes] = []
        size = 0
        while len(lines) < LINES and size < PART_BYTES:
            line, length = _line(file)
            if not line:
                break
            lines.append(line)
            size += len(line)
            end += length
        if not lines:
            return
        yield Part(first, b"".join(lines), end)
        first += len(lines)


def _line(file: BinaryIO) -> tuple[bytes, int]:
    """Return the next line with an end, cut off if it is too long, and how many bytes it has in the file."""
    line = file.readline(LINE_MAX)
    length = len(line)
    rest = line
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(LINE_MAX)
        length += len(rest)
    return (line if line.endswith(b"\n") or not line else line + b"\n"), length
