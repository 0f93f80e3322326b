"""Runs an admin command in this process when no server does: on a data directory or on a shared database."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from secrets import token_hex
from typing import Any, Final

import trio

from deskwire.commands.admin.client import NoResponseError, send_command
from deskwire.commands.admin.operations import run_operation
from deskwire.config.config import Config
from deskwire.engine.accounts.credential_ends import CredentialLife
from deskwire.engine.accounts.credentials import Passwords, Tokens
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.secret import Secrets
from deskwire.engine.ports import Store
from deskwire.logs import setup as logs
from deskwire.program.admin_context import AdminContext
from deskwire.program.errors import StartError, driver_needed
from deskwire.program.rotation import Rotation
from deskwire.program.secret_file import SecretError, installation_secrets
from deskwire.storage.postgres.driver.errors import DatabaseUnusableError
from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError, DirectoryInUseError, no_deskwire
from deskwire.storage.sqlite.store import open_store

DIRECTORY_TIMEOUT_S: Final = (
    10.0  # for another command, or a server that starts or stops, to release the directory
)
_RETRY_DELAY_S: Final = 0.1
_NOT_CONFIRMED: Final = (
    "The change is stored, but not every node has confirmed it. A node that does not respond leaves the cluster when its "
    "lease ends; check /readyz of each node."
)


class LocalBackendError(Exception):
    """The command could not be run; the text says why."""


def run_locally(config: Config, name: str, arguments: bytes, *, make: bool = False) -> dict[str, Any]:
    """Run a command and return its response: a result or a refusal.

    Args:
        arguments: a JSON object.
        make: create the data directory if there is none.

    Raises LocalBackendError.
    """
    logs.configure(config.log_format, "error", sys.stderr)
    try:
        return trio.run(partial(run_on_installation, config, name, arguments, make))
    except (DatabaseUnusableError, DataDirectoryError, SecretError, StartError, NoResponseError) as error:
        raise LocalBackendError(str(error)) from error
    except OSError as error:  # usually a directory of another user
        raise LocalBackendError(f"The data directory {config.data_dir} can't be used: {error}") from error


async def run_on_installation(config: Config, name: str, arguments: bytes, make: bool) -> dict[str, Any]:
    """Run a command like `run_locally`, but let every exception pass."""
    if config.database_url is not None:
        return await _run_on_database(config, config.database_url, name, arguments)
    directory = config.data_dir
    if not make and not (directory / FILE_NAME).exists():
        raise DataDirectoryError(no_deskwire(directory))
    deadline = trio.current_time() + DIRECTORY_TIMEOUT_S
    while True:
        try:
            return await _run_on_directory(config, name, arguments)
        except DirectoryInUseError:
            if trio.current_time() >= deadline:
                raise
        await trio.sleep(_RETRY_DELAY_S)
        response = send_command(directory, name, arguments)
        if response is not None:
            return response


async def _run_on_database(config: Config, url: str, name: str, arguments: bytes) -> dict[str, Any]:
    """Run the command on a database that nodes may share. Return after the nodes have confirmed the change."""
    with driver_needed():
        from deskwire.commands.database.identity import identity_of
        from deskwire.storage.postgres.admin.installation import claim, wait_until_nodes_notified
        from deskwire.storage.postgres.admin.preflight import examine
        from deskwire.storage.postgres.driver.servers import Servers, watched
        from deskwire.storage.postgres.migrations.apply import migrate
        from deskwire.storage.postgres.store import open_postgres
    secrets = installation_secrets(config.data_dir, config.secret, config.secret_previous)
    identity = identity_of(config, secrets)

    def prepare() -> None:
        examine(url)
        migrate(url)
        claim(url, identity, None)

    await trio.to_thread.run_sync(prepare)
    node = f"command-{os.getpid()}-{token_hex(3)}"
    servers = Servers()
    async with open_postgres(
        url, node=node, batch=1, readers=1, on_commit=lambda _: None, servers=servers
    ) as store:
        with watched(servers, store.database.options("setup")):
            context = _context(config, store, lambda: secrets)
            response = await run_operation(context.signed(os.geteuid()), name, arguments)
    if not await trio.to_thread.run_sync(wait_until_nodes_notified, url):
        logs.say(_NOT_CONFIRMED, sys.stderr)
    return response


def _context(config: Config, store: Store, secrets: Callable[[], Secrets]) -> AdminContext:
    """Return the services for a command that this process runs."""

    def tokens() -> Tokens | None:
        if not config.own_tokens:
            return None
        return Tokens(secrets(), config.jwt_issuer, config.jwt_audience)

    passwords = Passwords(config.argon2_memory_kib, config.one_time_password_s)
    url = config.public_url or f"http://{config.host}:{config.port}"
    send_test_mail = None
    if config.smtp_host is not None:
        from deskwire.program.outbound import test_mail_sender  # it imports the clients of other servers

        send_test_mail = test_mail_sender(config, url)
    rotation = lambda: Rotation.of(config, store, secrets())
    life = CredentialLife.of(config.credential_max_s)
    return AdminContext(store, wall_clock, passwords, tokens, rotation, life, url, send_test_mail)


async def _run_on_directory(config: Config, name: str, arguments: bytes) -> dict[str, Any]:
    """Run the command on the data directory. Raises DirectoryInUseError."""

    def secrets() -> Secrets:
        try:
            return installation_secrets(config.data_dir, config.secret, config.secret_previous)
        except (
            SecretError
        ) as error:  # returned as a refusal; the store's nursery would wrap another exception in a group
            raise Unavailable(str(error), code="secret_unusable") from error

    async with open_store(
        config.data_dir,
        batch=1,
        readers=1,
        on_commit=lambda _: None,
        upgrade_copies=config.upgrade_copies,
    ) as store:
        context = _context(config, store, secrets)
        return await run_operation(context.signed(os.geteuid()), name, arguments)
