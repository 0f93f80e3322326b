"""Sends admin commands and read queries to the installation, and turns refusals into messages.

The backend of a command is imported only if no server runs the command; a query needs few imports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskwire.commands.shell.options import installation_config
from deskwire.commands.shell.refusals import RefusedCommand, as_options
from deskwire.config.config import Config

if TYPE_CHECKING:
    from deskwire.commands.admin.read_queries import AdminReader

_FIELDS: Final[Mapping[str, str]] = {
    "archivedRetentionDays": "archived_days",
    "overlapS": "overlap",
    "overlapSeconds": "overlap",
    "ttlS": "ttl",
    "uploadQuotaBytes": "upload_quota",
}
"""Parameters of the command line by the names of the command's fields, where they differ."""


def invoke(data: Path | None, operation: str, /, *, make: bool = False, **arguments: Any) -> dict[str, Any]:
    """Send a command and return its result; arguments that are None are omitted.

    A refusal ends the program with status 1.

    Args:
        make: create the data directory if there is none.
    """
    config = installation_config(data)
    body = json.dumps({key: value for key, value in arguments.items() if value is not None}).encode()
    response = _by_server(config, operation, body)
    if response is None:
        from deskwire.commands.admin import local_backend

        try:
            response = local_backend.run_locally(config, operation, body, make=make)
        except local_backend.LocalBackendError as error:
            raise RefusedCommand(str(error), None) from error
    if "refusal" in response:
        words = response["refusal"]
        problems = as_options(words["problems"], _FIELDS) or [words["detail"]]
        raise RefusedCommand("\n".join(problems), words["code"])
    result: dict[str, Any] = response["answer"]
    return result


def _by_server(config: Config, operation: str, body: bytes) -> dict[str, Any] | None:
    """Return the response of the server on the data directory; None without a server, or on a database."""
    from deskwire.commands.admin.client import NoResponseError, send_command

    if config.database_url is not None:
        return None
    try:
        return send_command(config.data_dir, operation, body)
    except (NoResponseError, OSError) as error:
        raise RefusedCommand(str(error), None) from error


def query(data: Path | None, name: str, /, **arguments: Any) -> dict[str, Any]:
    """Return the result of a read query. A refusal ends the program with status 1."""
    from deskwire.commands.admin.read_queries import READ_QUERIES
    from deskwire.engine.core.clock import wall_clock
    from deskwire.engine.core.errors import DomainError

    with open_reader(installation_config(data)) as reader:
        try:
            return dict(READ_QUERIES[name](reader, wall_clock(), **arguments))
        except DomainError as error:
            raise RefusedCommand(error.detail, error.reason) from error


@contextmanager
def open_reader(config: Config) -> Iterator[AdminReader]:
    """Open the installation for read queries. A failure ends the program with status 1."""
    with (
        _of_database(config, config.database_url) if config.database_url else _of_directory(config) as reader
    ):
        yield reader


@contextmanager
def _of_directory(config: Config) -> Iterator[AdminReader]:
    from deskwire.storage.sqlite.directory import DataDirectoryError
    from deskwire.storage.sqlite.read_only import open_read_only

    try:
        with open_read_only(config.data_dir) as reader:
            yield reader
    except DataDirectoryError as error:
        raise RefusedCommand(str(error), None) from error
    except OSError as error:  # usually a directory of another user
        raise RefusedCommand(f"The data directory {config.data_dir} can't be used: {error}", None) from error


@contextmanager
def _of_database(config: Config, url: str) -> Iterator[AdminReader]:
    from deskwire.commands.database.access import refusals

    with refusals():
        from deskwire.commands.database.identity import identity_of
        from deskwire.storage.postgres.admin.installation import open_read_only

        with open_read_only(url, identity_of(config)) as reader:
            yield reader
