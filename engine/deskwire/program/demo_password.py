"""The demo's password, whose hash is computed in a thread while the program loads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from msgspec import Struct

from deskwire.config.config import Config
from deskwire.engine.accounts.credentials import Passwords
from deskwire.engine.accounts.server_keys import random_base62
from deskwire.storage.sqlite.directory import FILE_NAME


class DemoPassword(Struct, frozen=True):
    """A password and its hash."""

    text: str
    hash: str


def new_password(memory_kib: int) -> DemoPassword:
    """Return a random password. Use a thread, because hashing takes long."""
    text = random_base62(16)
    return DemoPassword(text, Passwords(memory_kib).hash(text))


def start_hashing(config: Config) -> Callable[[], DemoPassword]:
    """Return a blocking function for the demo's password, and start hashing if a new database needs it."""
    make = partial(new_password, config.argon2_memory_kib)
    if not config.demo or config.database_url is not None or not _is_absent(config.data_dir / FILE_NAME):
        return make
    thread = ThreadPoolExecutor(1)
    password = thread.submit(make)
    thread.shutdown(wait=False)
    return password.result


def _is_absent(file: Path) -> bool:
    try:
        return not file.exists()
    except OSError:  # opening the database reports the reason
        return False
