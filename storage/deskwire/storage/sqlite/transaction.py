"""Combines the groups of queries and changes into the reader and the transaction of SQLite."""

from __future__ import annotations

import sqlite3

from deskwire.engine.conversations.writing_changes import WritingChange
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.storage.dialect import SQLITE
from deskwire.storage.search.lookup import SearchReads
from deskwire.storage.sqlite.kept_answers import SqliteAnswerReads, SqliteAnswerWrites
from deskwire.storage.sqlite.log import LogReads, LogWrites, MessageTimes
from deskwire.storage.sqlite.ticket_search import TicketErasure, TicketWords
from deskwire.storage.tables.accounts.machines import MACHINE_RIGHTS
from deskwire.storage.tables.all import AllReads, AllWrites


class SqliteReader(SearchReads, LogReads, TicketWords, SqliteAnswerReads, AllReads):
    """`ports.Reader` on one connection."""

    conn: sqlite3.Connection
    dialect = SQLITE

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.conn = connection


class SqliteTransaction(SqliteReader, LogWrites, MessageTimes, TicketErasure, SqliteAnswerWrites, AllWrites):
    """Implements `ports.Transaction` on the writer's connection.

    Notifications for the rest of the program are collected in `published`, `deliveries`, `erased`, `redacted`,
    `rewritten`, `due`, `runs_due`, `snoozes_due`, `held_due`, `bulk_due`, `writing` and `sessions_ended` until the commit is durable.
    Triggers set `callers_changed` after changes of server keys, machine credentials, projects and channels, and `people_changed`
    after changes of passwords, accounts, members and organisations. `scrub_wanted` is True if other text was deleted.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.published: list[StoredEvent] = []
        self.deliveries: list[Delivery] = []
        self.erased: set[int] = set()
        self.redacted: set[int] = set()
        self.rewritten: list[StoredEvent] = []
        self.due: list[int] = []
        self.runs_due: list[int] = []
        self.sessions_ended: list[str] = []
        self.snoozes_due: list[int] = []
        self.held_due: list[int] = []
        self.bulk_due: list[int] = []
        self.writing: list[WritingChange] = []
        self.callers_changed = False
        self.people_changed = False
        connection.create_function("callers_change", 0, self._note_callers)
        for table, what in (
            ("server_keys", "UPDATE OF hash, project, revoked_at"),
            ("machine_credentials", f"UPDATE OF {MACHINE_RIGHTS}"),
            ("projects", "UPDATE"),
            ("channels", "UPDATE"),
        ):
            for change in ("INSERT", what, "DELETE"):
                connection.execute(
                    f"CREATE TEMP TRIGGER IF NOT EXISTS {table}_{change.split()[0]} AFTER {change} ON main.{table} "
                    "BEGIN SELECT callers_change(); END"
                )
        connection.create_function("session_ends", 1, self.sessions_ended.append)
        connection.execute(
            "CREATE TEMP TRIGGER IF NOT EXISTS sessions_DELETE AFTER DELETE ON main.sessions "
            "BEGIN SELECT session_ends(OLD.id); END"
        )
        connection.execute(
            "CREATE TEMP TRIGGER IF NOT EXISTS access_tokens_UPDATE AFTER UPDATE OF ended_at ON main.access_tokens "
            "BEGIN SELECT session_ends(NEW.id); END"
        )
        connection.execute(
            "CREATE TEMP TRIGGER IF NOT EXISTS contact_sessions_UPDATE AFTER UPDATE OF ended_at ON main.contact_sessions "
            "BEGIN SELECT session_ends(NEW.id); END"
        )
        connection.create_function("people_change", 0, self._note_people)
        for table, changes in (
            ("memberships", ("INSERT", "UPDATE", "DELETE")),
            ("roles", ("UPDATE OF permissions", "DELETE")),
            ("users", ("UPDATE OF generation", "DELETE")),
            ("organisations", ("UPDATE",)),
        ):
            for change in changes:
                connection.execute(
                    f"CREATE TEMP TRIGGER IF NOT EXISTS {table}_{change.split()[0]} AFTER {change} ON main.{table} "
                    "BEGIN SELECT people_change(); END"
                )
        connection.create_function("contacts_change", 0, self.clear_claims)
        for change in ("UPDATE", "DELETE"):
            connection.execute(
                f"CREATE TEMP TRIGGER IF NOT EXISTS contacts_{change} AFTER {change} ON main.contacts "
                "BEGIN SELECT contacts_change(); END"
            )
        self.clear_claims()
        self.start_events()
        self.start_endpoints()
        self.start_deliveries()
        self.start_message_times()

    def forget(self) -> None:
        """Reload cached values after a rollback, because they may come from the discarded transaction."""
        self.clear_claims()
        self.forget_endpoints()
        self.start_message_times()
        self.start_feeds()

    def _note_callers(self) -> None:
        self.callers_changed = True

    def _note_people(self) -> None:
        self.people_changed = True

    def lock_across_nodes(self) -> None:
        """See `AccountTransaction.lock_across_nodes`. There is one."""
