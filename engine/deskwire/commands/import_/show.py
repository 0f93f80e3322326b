"""The output of `deskwire import` while it goes on, and at its end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, TextIO

import click

from deskwire.commands.import_.run import Totals
from deskwire.commands.shell.output import visible

SHOWN: Final = 20
"""Refused lines that are shown; a file can have millions of them."""


class ImportOutput:
    """Progress and refused lines, on the error output.

    Args:
        size: bytes of the file, None if that is not known.
        file: where every refused line is written as JSON.
    """

    def __init__(self, size: int | None, file: TextIO | None, *, live: bool) -> None:
        self._size = size
        self._file = file
        self._live = live
        self._refused = 0
        self._doubted = 0
        self._under_way = False

    def progress(self, totals: Totals) -> None:
        """Say how far it is, on one line that is written over."""
        if self._live:
            click.echo(f"\r{progress_line(totals, self._size)}\x1b[K", nl=False, err=True)
            self._under_way = True

    def refused(self, refusal: Mapping[str, Any]) -> None:
        """Show a refused line, if there were not too many yet, and write it to the file."""
        self._refused += 1
        if self._file is not None:
            self._file.write(json.dumps(refusal) + "\n")
        if self._refused <= SHOWN:
            self.say(refused_line(refusal))
        elif self._refused == SHOWN + 1:
            self.say(f"More than {SHOWN} lines are refused; --refused writes all of them to a file.")

    def doubted(self, doubt: Mapping[str, Any]) -> None:
        """Show an imported line with a time that can't be, if there were not too many yet."""
        self._doubted += 1
        if self._doubted <= SHOWN:
            self.say(f"imported, {refused_line(doubt)}")
        elif self._doubted == SHOWN + 1:
            self.say(f"More than {SHOWN} imported lines have a time that can't be.")

    def waiting(self, reason: str, pause_s: float) -> None:
        """Say why nothing goes on."""
        self.say(f"{visible(reason)}; trying again in {pause_s:g} s.")

    def say(self, text: str) -> None:
        """Print a line of its own."""
        self.clear()
        click.echo(text, err=True)

    def clear(self) -> None:
        """End the line that was written over."""
        if self._under_way:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._under_way = False


def progress_line(totals: Totals, size: int | None) -> str:
    """Return a line about how far the import is."""
    share = f"{totals.bytes / size:4.0%}  " if size else ""
    rate = totals.lines / max(totals.seconds, 0.001)
    refused = f", {totals.refused:,} refused" if totals.refused else ""
    return f"{share}{totals.lines:,} lines{refused}, {rate:,.0f} a second"


def refused_line(refusal: Mapping[str, Any]) -> str:
    """Return a refused line with everything that is wrong with it."""
    known = refusal["externalId"]
    name = "" if known is None else f" ({visible(known)})"
    wrong = "; ".join(
        visible(f"{error['pointer']}: {error['message']}" if error["pointer"] else error["message"])
        for error in refusal["errors"]
    )
    return f"line {refusal['line']:,}{name}: {wrong}"


def summary(totals: Totals) -> Iterator[str]:
    """Yield the lines of the import's result."""
    for words, counted in (("imported", totals.imported), ("already there", totals.existing)):
        yield f"{words}: {counted['conversations']:,} conversations, {counted['messages']:,} messages"
    if totals.deleted.total():
        counted = totals.deleted
        yield f"deleted: {counted['conversations']:,} conversations, {counted['messages']:,} messages"
    if totals.redacted:
        yield f"redacted: {totals.redacted:,} messages"
    if totals.doubtful:
        yield f"with a time that can't be: {totals.doubtful:,} lines, imported all the same"
    yield f"refused: {totals.refused:,} of {totals.lines:,} lines"
    if totals.unnamed:
        yield (
            f"of these {totals.unnamed:,} are not listed, as they have too many errors; "
            "fix the others and import the file again"
        )
    yield f"{totals.seconds:,.1f} s"
