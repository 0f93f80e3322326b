"""Shortcuts for setup that nearly every test needs and few are about: done once in a process, and copied.

Starting a service for each test costs a fifth of a second of work, most of which is skipped here.
"""

from __future__ import annotations

import os
import sqlite3
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import certifi
import httpx
from sqlite_utils import Database, Migrations

from deskwire.storage.sqlite.migrations.apply import migrations
from tests.support.deadlines import HANG_TIMEOUT_S


def trust_nobody() -> None:
    """Start TLS contexts of this process without authorities: loading those of the system takes 30 ms each time.

    A test names the authorities that it trusts; no test calls another machine.
    """
    bundles = {certifi.where(), os.environ.get("SSL_CERT_FILE")}
    load = ssl.SSLContext.load_verify_locations

    def load_others(context: ssl.SSLContext, cafile: Any = None, *given: Any, **named: Any) -> None:
        if cafile is None or cafile not in bundles:
            load(context, cafile, *given, **named)

    ssl.SSLContext.load_default_certs = lambda *_: None  # type: ignore[method-assign]
    ssl.SSLContext.load_verify_locations = load_others  # type: ignore[assignment,method-assign]


def wait_for_answers() -> None:
    """Give clients without a timeout of their own longer than httpx's 5 s, which a busy machine may need.

    The service itself always names its timeouts.
    """
    httpx._config.DEFAULT_TIMEOUT_CONFIG.__init__(HANG_TIMEOUT_S)  # type: ignore[misc]


def copy_fresh_databases() -> None:
    """Create an empty database by copying a migrated one, instead of running all migrations."""
    migrations.apply = _applied  # type: ignore[method-assign]


@contextmanager
def migrated_step_by_step() -> Iterator[None]:
    """Apply every migration to every database, for tests of migrations."""
    del migrations.apply
    yield
    copy_fresh_databases()


def _applied(db: Database, **how: Any) -> None:
    if how or db.conn.execute("SELECT 1 FROM sqlite_schema").fetchone():
        Migrations.apply(migrations, db, **how)
        return
    within = db.conn.in_transaction
    if within:  # a transaction allows no copy; it is still empty
        db.conn.execute("COMMIT")
    _model().backup(db.conn)
    if within:
        db.conn.execute("BEGIN")


@cache
def _model() -> sqlite3.Connection:
    """Return a migrated database in memory, which stays open as long as the process lives."""
    connection = sqlite3.Connection(":memory:", isolation_level=None, check_same_thread=False)
    Migrations.apply(migrations, Database(connection, execute_plugins=False))
    return connection
