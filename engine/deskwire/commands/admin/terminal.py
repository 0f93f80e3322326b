"""The common part of the operator's commands: their options, their questions, and the form of their results.

On stdout stands only what was asked for, so that `KEY=$(deskwire key create …)` works; words for people go to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from deskwire.config.settings import Config

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
Columns = Mapping[str, Callable[[Mapping[str, Any]], object]]

WIDTH_IN_A_PIPE: Final = 240  # characters; without a terminal there is no width to fit into
ROLES: Final = ("owner", "admin", "agent", "viewer")


class Refused(click.ClickException):
    """The error that ends a command whose order was refused; `code` is the reason."""

    def __init__(self, message: str, code: str | None) -> None:
        super().__init__(message)
        self.code = code


def common_options(command: CommandT) -> CommandT:
    """Give a command `--data` and `--json`."""
    data = click.option(
        "--data", type=click.Path(path_type=Path), help="Data directory of the server (DESKWIRE_DATA)."
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
    return data(as_json(command))


def place(data: Path | None) -> Config:
    """Return the settings, which say where the installation is. Raises UsageError if two places are named."""
    config = Config.load(os.environ, {"data_dir": data})
    if data is not None and config.database_url is not None:
        raise click.UsageError(
            "--data names a data directory, and DESKWIRE_DATABASE_URL a database: leave out the one that is not meant."
        )
    return config


def order(data: Path | None, operation: str, /, *, make: bool = False, **arguments: Any) -> dict[str, Any]:
    """Send an order and return its result; arguments that are None are left out. Ends the command with status 1 if refused.

    Args:
        make: whether a data directory is made if there is none.
    """
    from deskwire.commands.admin import (
        reach,
    )  # here, so that the other commands do without the server's libraries

    config = place(data)
    try:
        return reach.order(config, operation, arguments, make=make)
    except reach.OrderError as error:
        raise Refused(str(error), error.code) from error


def show(result: Mapping[str, Any], as_json: bool, columns: Columns) -> None:
    """Print a list or one object, as a table or as JSON."""
    if as_json:
        click.echo(json.dumps(result.get("items", result), indent=2))
        return
    items: Sequence[Mapping[str, Any]] = result.get("items", [result])
    if items:
        _print_table(items, columns)
    else:
        click.echo("None yet.", err=True)


def show_created(result: Mapping[str, Any], as_json: bool, field: str, words: str) -> None:
    """Print the one thing that was made, or the whole object as JSON; the words go to stderr."""
    if as_json:
        click.echo(json.dumps(result, indent=2))
        return
    click.echo(words, err=True)
    if field in result:
        click.echo(result[field])


def new_password(from_stdin: bool, one_time: bool) -> str | None:
    """Return the password that is typed twice, or comes as a line on stdin; None for a one-time password.

    A password never stands among the arguments, which everybody on the machine can read. Raises UsageError
    if there is nobody to ask.
    """
    if from_stdin and one_time:
        raise click.UsageError("--password-stdin and --one-time can't be used together.")
    if one_time:
        return None
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise click.UsageError(
            "There is no terminal to ask for a password: use --password-stdin or --one-time."
        )
    typed: str = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return typed


def confirm_new_password(refusal: Refused) -> None:
    """Ask whether an account of another organisation gets a new password; ends the command if not, or with no terminal."""
    if not sys.stdin.isatty():
        raise click.ClickException(
            f"{refusal.message} --yes gives it a new one-time password and ends its tokens; --keep-password leaves it "
            "as it is, if you know that nobody but the owner of the address knows it."
        )
    words = f"{refusal.message} It gets a new one-time password, and all its tokens end. Go on?"
    click.confirm(words, abort=True, err=True)


def password_options(command: CommandT) -> CommandT:
    """Give a command `--password-stdin` and `--one-time`."""
    stdin = click.option("--password-stdin", is_flag=True, help="Read the password from a line on stdin.")
    once = click.option(
        "--one-time",
        is_flag=True,
        help="Generate a password and print it; it must be replaced at the first sign-in.",
    )
    return stdin(once(command))


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
    Console(width=None if sys.stdout.isatty() else WIDTH_IN_A_PIPE).print(table)


def _cell(value: object) -> str:
    text = "-" if value is None else str(value)
    return "".join(each if each.isprintable() else "�" for each in text)
