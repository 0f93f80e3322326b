"""The database that a command is about, and the words for what can't be done; what it needs is imported when it runs."""

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
    """Give a command `--database-url`."""
    return click.option(
        "--database-url",
        "url",
        cls=SettingOption,
        setting=SETTINGS["database_url"],
        metavar="URL",
        help="URL of the PostgreSQL database; in the variable nobody else on the machine sees it.",
    )(command)


def given_url(option: str | None, flag: str = "--database-url") -> str:
    """Return the URL of the option, else of the environment. Raises UsageError without either, or for one that is none."""
    url = given("database_url", option, flag)
    if url is None:
        variable = SETTINGS["database_url"].variable
        raise click.UsageError(f"Set {variable}, or name the database with {flag}.")
    return url


def given(name: str, option: str | None, flag: str) -> str | None:
    """Return what the command's option of that flag says, else the setting's variable; None without either.

    Raises UsageError for what the setting does not take.
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
    """Turn what can't be done into a message and exit status 1."""
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
