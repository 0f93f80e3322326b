"""The output of `deskwire import`: progress and the result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TextIO

import click

from deskwire.commands.import_.run import Totals
from deskwire.commands.shell.output import visible

SHOWN_MAX: Final = 20  # refused lines shown; a file can have millions of them


class ImportOutput:
    """Shows progress and refused lines on stderr.

    Args:
        size: bytes of the file, None if unknown.
        file: receives every refused line as JSON.
    """

    def __init__(self, size: int | None, file: TextIO | None, *, live: bool) -> None:
        self._size = size
        self._file = file
        self._live = live
        self._refused = 0
        self._doubted = 0
        self._under_way = False

    def progress(self, totals: Totals) -> None:
        """Show the progress on one line that is overwritten."""
        if self._live:
            click.echo(f"\r{progress_line(totals, self._size)}\x1b[K", nl=False, err=True)
            self._under_way = True

    def refused(self, refusal: Mapping[str, Any]) -> None:
        """Write a refused line to the file, and show it unless too many were shown."""
        self._refused += 1
        if self._file is not None:
            self._file.write(json.dumps(refusal) + "\n")
        if self._refused <= SHOWN_MAX:
            self.say(refused_line(refusal))
        elif self._refused == SHOWN_MAX + 1:
            self.say(f"More than {SHOWN_MAX} lines are refused; --refused writes all of them to a file.")

    def doubted(self, doubt: Mapping[str, Any]) -> None:
        """Show an imported line with an impossible time, unless too many were shown."""
        self._doubted += 1
        if self._doubted <= SHOWN_MAX:
            self.say(f"imported, {refused_line(doubt)}")
        elif self._doubted == SHOWN_MAX + 1:
            self.say(f"More than {SHOWN_MAX} imported lines have a time that can't be.")

    def waiting(self, reason: str, pause_s: float) -> None:
        """Show the reason of a delay."""
        self.say(f"{visible(reason)}; retrying in {pause_s:g} s.")

    def say(self, text: str) -> None:
        """Print a line."""
        self.clear()
        click.echo(text, err=True)

    def clear(self) -> None:
        """End the overwritten line."""
        if self._under_way:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._under_way = False


def progress_line(totals: Totals, size: int | None) -> str:
    """Return a line with the progress of the import."""
    share = f"{totals.bytes / size:4.0%}  " if size else ""
    rate = totals.lines / max(totals.seconds, 0.001)
    refused = f", {totals.refused:,} refused" if totals.refused else ""
    return f"{share}{totals.lines:,} lines{refused}, {rate:,.0f} a second"


def refused_line(refusal: Mapping[str, Any]) -> str:
    """Return a refused line with all its errors."""
    known = refusal["externalId"]
    name = "" if known is None else f" ({visible(known)})"
    wrong = "; ".join(
        visible(f"{error['pointer']}: {error['message']}" if error["pointer"] else error["message"])
        for error in refusal["errors"]
    )
    return f"line {refusal['line']:,}{name}: {wrong}"


def summary(totals: Totals) -> Iterator[str]:
    """Yield the lines of the result."""
    for words, counted in (("imported", totals.imported), ("already there", totals.existing)):
        yield f"{words}: {counted['conversations']:,} conversations, {counted['messages']:,} messages"
    if totals.deleted.total():
        counted = totals.deleted
        yield f"deleted: {counted['conversations']:,} conversations, {counted['messages']:,} messages"
    if totals.redacted:
        yield f"redacted: {totals.redacted:,} messages"
    if totals.doubtful:
        yield f"with an impossible time: {totals.doubtful:,} lines, imported nevertheless"
    yield f"refused: {totals.refused:,} of {totals.lines:,} lines"
    if totals.unnamed:
        yield (
            f"of these {totals.unnamed:,} are not listed, because they have too many errors; "
            "fix the others and import the file again"
        )
    yield f"{totals.seconds:,.1f} s"
