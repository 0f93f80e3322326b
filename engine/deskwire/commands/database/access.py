"""The database that a command is about, and the words for what can't be done; what it needs is imported when it runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from deskwire.config.parsers import source_of
from deskwire.config.settings import SETTINGS
from deskwire.program.opening import NO_DRIVER

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def url_option(command: CommandT) -> CommandT:
    """Give a command `--database-url`."""
    return click.option(
        "--database-url",
        "url",
        help="URL of the PostgreSQL database (DESKWIRE_DATABASE_URL, where nobody else on the machine sees it).",
    )(command)


def given_url(option: str | None) -> str:
    """Return the URL of the option, else of the environment. Raises UsageError without either, or for one that is none."""
    setting = SETTINGS["database_url"]
    _, label, text = source_of(setting, os.environ, {setting.name: option})
    if text is None:
        raise click.UsageError(f"Set {setting.variable}, or name the database with {setting.option}.")
    try:
        return str(setting.parse(text))
    except ValueError as error:
        raise click.UsageError(f"{label} {error}") from error


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what can't be done into a message and exit status 1."""
    from deskwire.program.first_start import SecretError
    from deskwire.storage.postgres.driver.unusable import DatabaseUnusableError
    from deskwire.storage.sqlite.backup.snapshot import CopyError
    from deskwire.storage.sqlite.database import DataDirectoryError

    try:
        yield
    except (CopyError, DataDirectoryError, DatabaseUnusableError, SecretError) as error:
        raise click.ClickException(str(error)) from error
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "psycopg":
            raise
        raise click.ClickException(NO_DRIVER) from error
