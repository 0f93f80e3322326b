"""Opens a data directory with a program that has one more migration; run as a program, with the directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import trio
from sqlite_utils import Database

from deskwire.storage.sqlite.migrations.apply import migrations
from deskwire.storage.sqlite.store import open_store

STEPS: Final = (
    "CREATE TABLE added (x TEXT) STRICT",
    "INSERT INTO added SELECT id FROM messages",
    "ALTER TABLE messages ADD COLUMN added TEXT",
)


def know_one_more() -> None:
    """Add a migration to those of the program."""

    @migrations(name="m9999_one_more")
    def one_more(db: Database) -> None:
        for step in STEPS:
            db.execute(step)


async def _open(directory: Path) -> None:
    async with open_store(directory, batch=1, readers=1, on_commit=lambda _: None, upgrade_copies=2):
        print("it is open", flush=True)


if __name__ == "__main__":
    know_one_more()
    trio.run(_open, Path(sys.argv[1]))
