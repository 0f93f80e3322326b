"""The output of commands: tables for people, JSON for scripts, and the one thing that was made.

On stdout stands only what was asked for, so that `KEY=$(deskwire key create …)` works; words for people go to stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

from deskwire.engine.core.progress import Tell, nobody

Columns = Mapping[str, Callable[[Mapping[str, Any]], object]]

WIDTH_IN_A_PIPE: Final = 240  # characters; without a terminal there is no width to fit into


def show(result: Mapping[str, Any], as_json: bool, columns: Columns) -> None:
    """Print a list or one object, as a table or as JSON."""
    if as_json:
        print_json(result.get("items", result))
        return
    items: Sequence[Mapping[str, Any]] = result.get("items", [result])
    if items:
        _print_table(items, columns)
    else:
        click.echo("None yet.", err=True)


def show_created(result: Mapping[str, Any], as_json: bool, field: str, words: str) -> None:
    """Print the one thing that was made, or the whole object as JSON; the words go to stderr."""
    if as_json:
        print_json(result)
        return
    click.echo(words, err=True)
    if field in result:
        click.echo(result[field])


def print_json(document: object) -> None:
    """Print one JSON document, a member a line."""
    click.echo(json.dumps(document, indent=2))


def print_lines(documents: Iterable[object]) -> None:
    """Print a JSON object per line, each as it comes."""
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
        # As text, for what is written in it may look like markup.
        table.add_row(*(Text(_cell(cell(item))) for cell in columns.values()))
    Console(width=width()).print(table)


def width() -> int | None:
    """Return the width of tables in characters; None for that of the terminal."""
    return None if sys.stdout.isatty() else WIDTH_IN_A_PIPE


def _cell(value: object) -> str:
    text = "-" if value is None else str(value)
    return "".join(each if each.isprintable() else "�" for each in text)


def visible(text: str) -> str:
    """`text` with everything that is not plainly printable as an escape, such as `\\x1b`, line ends included.

    That covers C0 and C1 controls, and the format characters that reorder or hide text (Unicode Cf).
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def visible_lines(text: str) -> list[str]:
    """Return the lines of a text, each as `visible` makes it."""
    return [visible(line) for line in text.split("\n")]


@contextmanager
def shown_progress(*, beside: bool = False) -> Iterator[Tell]:
    """Yield what takes each step, with how much of it is done; it does nothing unless stderr is a terminal.

    Args:
        beside: whether something is written to stdout meanwhile: then nothing is shown if that is a terminal, too.
    """
    if not sys.stderr.isatty() or (beside and sys.stdout.isatty()):
        yield nobody
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
