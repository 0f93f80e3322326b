"""The installation's secret: from the settings, or from a file that the first start creates (decisions 2)."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from deskwire.engine.core.secret import PreviousSecret, Secrets
from deskwire.storage.files import sync
from deskwire.storage.sqlite.directory import SECRET_FILE

FOR_EVER: Final = 253_370_764_800_000  # the year 9999 in milliseconds

_SHORTEST: Final = 32
_PRIVATE: Final = 0o600


class SecretError(Exception):
    """The secret's file can't be used; the text gives the reason."""


def present_secrets(directory: Path, configured: str | None, previous: str | None = None) -> Secrets | None:
    """Return the secrets of the settings, else of the data directory; None if there are none yet. Raises SecretError."""
    if configured is None and not (directory / SECRET_FILE).exists():
        return None
    return installation_secrets(directory, configured, previous)


def installation_secrets(directory: Path, configured: str | None, previous: str | None = None) -> Secrets:
    """Return the secrets of the settings, else of the data directory; the first start creates the file.

    Args:
        configured: the settings' secret.
        previous: the settings' previous secret, if any.

    Raises SecretError if the file can't be read or written, or is truncated.
    """
    if configured is not None:
        return Secrets(configured, [] if previous is None else [PreviousSecret(previous, 0, FOR_EVER)])
    path = directory / SECRET_FILE
    try:
        if not path.exists():
            write_private(path, Secrets(new_secret()).written())
        return secrets_in(path)
    except OSError as error:
        raise SecretError(f"The installation's secret in {path} can't be used: {error}") from error


def secrets_in(path: Path) -> Secrets:
    """Return the secrets in a file. Raises OSError, and SecretError for invalid content."""
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
    """Return a random secret for an installation."""
    return secrets.token_urlsafe(48)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, atomically and durably."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.unlink(missing_ok=True)  # left by a crash, or another user's symbolic link
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _PRIVATE)
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
    sync(path.parent)
