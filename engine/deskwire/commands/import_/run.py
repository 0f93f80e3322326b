"""Sends a file in parts, one after the other. An unacknowledged part is sent again; the service skips known records."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Final

import trio
from msgspec import Struct, field

from deskwire.commands.api_client.service import Service, ServiceUnavailable

_PATH: Final = "/s2s/import"
_RESPONSE_TIMEOUT_S: Final = 120.0  # for a part, on a slow disk
_RETRY_DELAYS_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0)  # the last one is repeated


class Totals(Struct):
    """The totals of all parts so far.

    Args:
        lines: acknowledged lines of the file, including blank ones.
        bytes: acknowledged bytes of the file.
        imported, existing, deleted: counts by `conversations` and `messages`.
        unnamed: refused lines that the service could not list.
        doubtful: imported lines with an impossible time.
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


class ImportCallbacks(Struct, frozen=True):
    """Callbacks for an import's progress.

    Args:
        progress: called after each part.
        refused: called for each refused line, with its number in the file.
        doubted: called for each imported line with an impossible time, likewise.
        waiting: called with the reason and the delay before a part is sent again.
    """

    progress: Callable[[Totals], None]
    refused: Callable[[Mapping[str, Any]], None]
    doubted: Callable[[Mapping[str, Any]], None]
    waiting: Callable[[str, float], None]


async def send_all(
    service: Service,
    file: BinaryIO,
    totals: Totals,
    callbacks: ImportCallbacks,
    *,
    events: bool,
    patience_s: float,
) -> None:
    """Send the whole file; `totals` always has the acknowledged lines.

    Args:
        patience_s: how long the service may be unavailable.

    Raises ServiceUnavailable and CallRefused, OSError if the file can't be read.
    """
    coming = parts(file)
    while (part := await trio.to_thread.run_sync(_next, coming, abandon_on_cancel=True)) is not None:
        report = await _send(service, part, callbacks, events=events, patience_s=patience_s)
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
            callbacks.refused({**refusal, "line": refusal["line"] + part.first - 1})
        for doubt in report.get("doubts", ()):
            callbacks.doubted({**doubt, "line": doubt["line"] + part.first - 1})
        callbacks.progress(totals)


async def _send(
    service: Service, part: Part, callbacks: ImportCallbacks, *, events: bool, patience_s: float
) -> Mapping[str, Any]:
    """Send a part until the service acknowledges it. Return the service's report."""
    params = {"events": "true"} if events else {}
    since, attempts = trio.current_time(), 0
    while True:
        try:
            report: Mapping[str, Any] = await service.post_lines(
                _PATH, part.content, params, _RESPONSE_TIMEOUT_S
            )
        except ServiceUnavailable as away:
            pause_s = away.retry_after_s or _RETRY_DELAYS_S[min(attempts, len(_RETRY_DELAYS_S) - 1)]
            if trio.current_time() + pause_s > since + patience_s:
                raise
            attempts += 1
            callbacks.waiting(str(away), pause_s)
            await trio.sleep(pause_s)
        else:
            return report


def _next(coming: Iterator[Part]) -> Part | None:
    return next(coming, None)


PART_LINES: Final = 1_000  # the service names this many refused lines

PART_BYTES: Final = 1 << 20

LINE_BYTES_MAX: Final = 256 * 1024 + 1  # the service refuses a longer line from its first bytes


class Part(Struct, frozen=True):
    """A part of the file.

    Args:
        first: the number of its first line, from 1.
        content: the lines, each with its end.
        end: the byte position after the part.
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
        while len(lines) < PART_LINES and size < PART_BYTES:
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
    """Return the next line with its end, truncated if too long, and its length in the file."""
    line = file.readline(LINE_BYTES_MAX)
    length = len(line)
    rest = line
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(LINE_BYTES_MAX)
        length += len(rest)
    return (line if line.endswith(b"\n") or not line else line + b"\n"), length
