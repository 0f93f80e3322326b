"""The installation's secret: that of the settings, or the file in the data directory, made at the first start (decisions 2)."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from deskwire.engine.core.secret import FormerSecret, Secrets
from deskwire.storage.files import sync
from deskwire.storage.sqlite.directory import SECRET_FILE

FOR_EVER: Final = 253_370_764_800_000
"""The year 9999, in milliseconds."""

_SHORTEST: Final = 32
_PRIVATE: Final = 0o600


class SecretError(Exception):
    """The secret's file can't be used; the text says why."""


def present_secrets(directory: Path, configured: str | None, previous: str | None = None) -> Secrets | None:
    """Return the secrets of the settings, else those of the data directory, None if there are none yet. Raises SecretError."""
    if configured is None and not (directory / SECRET_FILE).exists():
        return None
    return installation_secrets(directory, configured, previous)


def installation_secrets(directory: Path, configured: str | None, previous: str | None = None) -> Secrets:
    """Return the secrets of the settings, else those of the data directory, made at the first start.

    Args:
        configured: the settings' secret.
        previous: the one before it, for as long as it is in the settings.

    Raises SecretError if the file can't be read or written, or has been cut short.
    """
    if configured is not None:
        return Secrets(configured, [] if previous is None else [FormerSecret(previous, 0, FOR_EVER)])
    path = directory / SECRET_FILE
    try:
        if not path.exists():
            write_private(path, Secrets(new_secret()).written())
        return secrets_in(path)
    except OSError as error:
        raise SecretError(f"The installation's secret in {path} can't be used: {error}") from error


def secrets_in(path: Path) -> Secrets:
    """Return the secrets in a file. Raises OSError, and SecretError if they are no secrets."""
    try:
        stored = Secrets.read(path.read_text())
    except ValueError:
        stored = Secrets("")
    if any(len(secret) < _SHORTEST for secret in stored.known):
        raise SecretError(
            f"The installation's secret in {path} is damaged: restore it, or sealed data is lost."
        )
    return stored


def new_secret() -> str:
    """Make a secret for an installation that nobody can guess."""
    return secrets.token_urlsafe(48)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read; it appears whole or not at all, and is on disk at the return."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.unlink(missing_ok=True)  # a crash's, or somebody's link to another place
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _PRIVATE)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
    sync(path.parent)
