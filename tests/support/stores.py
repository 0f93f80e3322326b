"""The two stores for tests that use only the port: `--store postgres` runs them on PostgreSQL.

A directory stands for a store: opening it again finds the same content. On PostgreSQL it has a database of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import psycopg

from deskwire.engine.ports import Commit
from deskwire.storage.connection import Connection
from deskwire.storage.postgres.driver.blocking import BlockingConnection
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.store import PostgresStore, open_postgres
from deskwire.storage.postgres.transaction import PostgresReader, PostgresTransaction
from deskwire.storage.sqlite.database import connect_writer, define_functions, migrate
from deskwire.storage.sqlite.directory import FILE_NAME
from deskwire.storage.sqlite.store import SqliteStore, open_store
from deskwire.storage.sqlite.transaction import SqliteTransaction

T = TypeVar("T")
Kind = Literal["sqlite", "postgres"]
AnyStore = SqliteStore | PostgresStore
AnyTransaction = SqliteTransaction | PostgresTransaction

KINDS: Final[tuple[Kind, ...]] = ("sqlite", "postgres")

_chosen: list[Kind] = ["sqlite"]
_open: dict[Path, ExitStack] = {}
_urls: dict[Path, str] = {}
_looks: dict[str, PostgresReader] = {}


def chosen() -> Kind:
    """Return the store that tests run on."""
    return _chosen[-1]


@contextmanager
def choosing(kind: Kind) -> Iterator[None]:
    """Run the block on this store."""
    _chosen.append(kind)
    try:
        yield
    finally:
        _chosen.pop()


def choose(kind: Kind) -> None:
    """Run all tests on this store."""
    _chosen[:] = [kind]


def url_of(directory: Path) -> str:
    """Return the URL of the database that the directory stands for; it is created on first use."""
    if directory not in _urls:
        stack = _open[directory] = ExitStack()
        # By its name, so that a test that starts no server still counts as a unit.
        fresh_database = import_module("tests.support.postgres").fresh_database
        _urls[directory] = stack.enter_context(fresh_database())
    return _urls[directory]


def settings_of(directory: Path) -> dict[str, Any]:
    """Return further settings for a service on the directory, on the store that tests run on."""
    if chosen() == "sqlite":
        return {}
    directory.mkdir(parents=True, exist_ok=True)  # its secret is created there; real nodes would be given one
    return {"database_url": url_of(directory)}


def forget_directories() -> None:
    """Drop the databases of all directories."""
    for reader in _looks.values():
        reader.conn.close()  # type: ignore[attr-defined]  # that of `look_at`
    _looks.clear()
    for stack in _open.values():
        stack.close()
    _open.clear()
    _urls.clear()


@asynccontextmanager
async def opened(
    directory: Path, on_commit: Callable[[Commit], None], batch: int = 64
) -> AsyncIterator[AnyStore]:
    """Open the store of a directory, with its writer running."""
    opening: AbstractAsyncContextManager[AnyStore]
    if chosen() == "postgres":
        url = url_of(directory)
        opening = open_postgres(url, node="test", batch=batch, readers=2, on_commit=on_commit)
    else:
        opening = open_store(directory, batch=batch, readers=2, on_commit=on_commit)
    async with opening as store:
        yield store


def look_at(store: PostgresStore) -> Any:
    """Return a reader for callers that can't wait."""
    url = store.database.url
    if url not in _looks:
        _looks[url] = PostgresReader(BlockingConnection(store.database, "read"))
    return _looks[url]


@contextmanager
def beside(directory: Path) -> Iterator[Connection]:
    """Open the database of a directory beside its running service; changes of the block are committed."""
    if chosen() == "postgres":
        with closing(BlockingConnection(Database(url_of(directory), "beside"), "lone")) as shared:
            yield shared
    else:
        with closing(sqlite3.connect(directory / FILE_NAME)) as connection, connection:
            define_functions(connection)
            yield connection


def stored(directory: Path) -> bytes:
    """Return every byte of the database of a directory: of its files, or of all rows that PostgreSQL shows."""
    if chosen() == "sqlite":
        return b"".join(each.read_bytes() for each in sorted(directory.glob(f"{FILE_NAME}*")))
    with psycopg.connect(url_of(directory)) as connection, connection.cursor() as cursor:
        tables = cursor.execute("SELECT quote_ident(relname) FROM pg_stat_user_tables").fetchall()
        content = bytearray()
        for (table,) in tables:
            with cursor.copy(f"COPY (SELECT * FROM {table}) TO STDOUT (FORMAT binary)".encode()) as copy:
                for part in copy:
                    content += part
    return bytes(content)


class Transactions:
    """Consecutive transactions on the store of a directory, without a thread."""

    def __init__(self, directory: Path) -> None:
        self._postgres = chosen() == "postgres"
        self._sqlite: SqliteTransaction | None = None
        if self._postgres:
            self.conn: Any = BlockingConnection(Database(url_of(directory), "test"), "lone")
        else:
            migrate(directory / FILE_NAME)
            self.conn = connect_writer(directory / FILE_NAME)
            self._sqlite = SqliteTransaction(self.conn)

    def begun(self) -> Any:
        """Begin a transaction."""
        self._run("BEGIN")
        if self._sqlite is None:
            return PostgresTransaction(self.conn)
        self._sqlite.published.clear()  # events of the previous commit
        return self._sqlite

    def commit(self, tx: AnyTransaction) -> None:
        """Commit the transaction."""
        if isinstance(tx, PostgresTransaction):
            tx.save_heads()
        self._run("COMMIT")

    def roll_back(self) -> None:
        """Roll back the transaction."""
        self._run("ROLLBACK")
        if self._sqlite is not None:
            self._sqlite.forget()

    def at_once(self, job: Callable[[Any], T]) -> T:
        """Run a job in a transaction of its own."""
        tx = self.begun()
        try:
            result = job(tx)
            self.commit(tx)
        except BaseException:  # re-raised: the transaction is rolled back, so the next one can begin
            with suppress(Exception):
                self.roll_back()
            raise
        return result

    @property
    def reader(self) -> Any:
        """A reader of the stored data at the moment of each statement."""
        return PostgresReader(self.conn) if self._sqlite is None else self._sqlite

    def close(self) -> None:
        """Close the connection; uncommitted changes are rolled back."""
        self.conn.close()

    def _run(self, command: str) -> None:
        if self._postgres:
            self.conn.command(command)
        else:
            self.conn.execute(command)


@contextmanager
def transaction(directory: Path) -> Iterator[Any]:
    """Open a transaction on a fresh store; it is never committed."""
    transactions = Transactions(directory)
    try:
        yield transactions.begun()
    finally:
        transactions.close()
