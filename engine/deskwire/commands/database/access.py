"""The database URL of a command, and messages for failures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import click

from deskwire.commands.shell.options import SettingOption
from deskwire.config.parsers import source_of
from deskwire.config.settings import SETTINGS

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def url_option(command: CommandT) -> CommandT:
    """Add `--database-url` to a command."""
    return click.option(
        "--database-url",
        "url",
        cls=SettingOption,
        setting=SETTINGS["database_url"],
        metavar="URL",
        help="URL of the PostgreSQL database; other users of the machine can't read it from the variable.",
    )(command)


def given_url(option: str | None, flag: str = "--database-url") -> str:
    """Return the URL of the option or the environment. Raises UsageError if it is missing or invalid."""
    url = given("database_url", option, flag)
    if url is None:
        variable = SETTINGS["database_url"].variable
        raise click.UsageError(f"Set {variable}, or name the database with {flag}.")
    return url


def given(name: str, option: str | None, flag: str) -> str | None:
    """Return the value of the option with this flag, else of the setting's variable; None without either.

    Raises UsageError for an invalid value.
    """
    setting = replace(SETTINGS[name], option=flag)
    _, label, text = source_of(setting, os.environ, {name: option})
    try:
        value = None if text is None else setting.parse(text)
    except ValueError as error:
        raise click.UsageError(f"{label} {error}") from error
    return None if value is None else str(value)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn known failures into a message and exit status 1."""
    from deskwire.program.errors import StartError, driver_needed
    from deskwire.program.secret_file import SecretError
    from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
    from deskwire.storage.sqlite.backup.snapshot import CopyError
    from deskwire.storage.sqlite.directory import DataDirectoryError

    try:
        with driver_needed():
            yield
    except (CopyError, DataDirectoryError, DatabaseUnusableError, SecretError, StartError) as error:
        raise click.ClickException(str(error)) from error
