"""The output of commands: tables, JSON, escaped text, and progress.

Only the result goes to stdout, so that `KEY=$(deskwire key create …)` works. Messages for people go to stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from deskwire.engine.core.values import ProgressReporter, no_progress

Columns = Mapping[str, Callable[[Mapping[str, Any]], object]]

WIDTH_IN_A_PIPE: Final = 240  # characters, where there is no terminal


def show(result: Mapping[str, Any], as_json: bool, columns: Columns) -> None:
    """Print a list or an object as a table or as JSON."""
    if as_json:
        print_json(result.get("items", result))
        return
    items: Sequence[Mapping[str, Any]] = result.get("items", [result])
    if items:
        _print_table(items, columns)
    else:
        click.echo("None yet.", err=True)


def show_created(result: Mapping[str, Any], as_json: bool, field: str, words: str) -> None:
    """Print a field of a new object, or the object as JSON, and the message on stderr."""
    if as_json:
        print_json(result)
        return
    click.echo(words, err=True)
    if field in result:
        click.echo(result[field])


def print_json(document: object) -> None:
    """Print a JSON document with one member per line."""
    click.echo(json.dumps(document, indent=2))


def print_lines(documents: Iterable[object]) -> None:
    """Print one JSON object per line, without waiting for the rest."""
    for document in documents:
        click.echo(json.dumps(document))


def _print_table(items: Sequence[Mapping[str, Any]], columns: Columns) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in columns:
        table.add_column(heading, overflow="fold")
    for item in items:
        # As Text, because a value may look like markup.
        table.add_row(*(Text(_cell(cell(item))) for cell in columns.values()))
    Console(width=width()).print(table)


def width() -> int | None:
    """Return the width of tables in characters; None for the terminal's."""
    return None if sys.stdout.isatty() else WIDTH_IN_A_PIPE


def _cell(value: object) -> str:
    text = "-" if value is None else str(value)
    return "".join(each if each.isprintable() else "�" for each in text)


def visible(text: str) -> str:
    """Return the text with every unprintable character escaped, such as `\\x1b`, including line ends.

    Escaped are C0 and C1 controls and format characters that reorder or hide text (Unicode Cf).
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def visible_lines(text: str) -> list[str]:
    """Return the lines of a text, each escaped by `visible`."""
    return [visible(line) for line in text.split("\n")]


@contextmanager
def shown_progress(*, beside: bool = False) -> Iterator[ProgressReporter]:
    """Yield a function that shows a step's progress on one line of stderr; it does nothing without a terminal.

    Args:
        beside: whether the command writes to stdout at the same time; then a terminal there disables the progress.
    """
    if not sys.stderr.isatty() or (beside and sys.stdout.isatty()):
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        step = ""

        def tell(name: str, done: int = 0, total: int | None = None) -> None:
            nonlocal step
            if name != step:
                step = name
                progress.reset(task, description=name)
            progress.update(task, completed=done, total=total)

        yield tell
