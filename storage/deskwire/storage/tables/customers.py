"""Sessions of customers. They implement `CustomerSessionReader` and `CustomerSessionTransaction`.

The row of an ended session stays, without its data about the customer, because a visitor's token is valid without a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from deskwire.engine.audit.trail import AuditEntry
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.core.values import replace
from deskwire.engine.customers.session import CustomerSession
from deskwire.engine.customers.tokens import visitor_user_id
from deskwire.storage.tables.accounts.people import PROJECT, PROJECT_WIDTH, as_project
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.channels import CHANNEL, CHANNEL_WIDTH, as_channel
from deskwire.storage.tables.contacts.contacts import CONTACT_COLUMNS, contact_of

_CONTACT_WIDTH: Final = len(CONTACT_COLUMNS.split(", "))
_OWN: Final = "s.rowid, s.id, s.verified, s.signed, s.created_at, s.expires_at, s.last_used_at, s.ended_at, s.hash, s.context, s.client"
_SESSIONS: Final = (
    f"SELECT {PROJECT}, {CHANNEL}, {CONTACT_COLUMNS}, {_OWN} FROM contact_sessions s "
    "JOIN channels c ON c.rowid = s.channel AND c.removed_at IS NULL "
    "JOIN projects p ON p.rowid = c.project AND p.removed_at IS NULL "
    "LEFT JOIN contacts k ON k.rowid = s.contact"
)
_LIVE: Final = "s.ended_at IS NULL AND s.expires_at > ?"


class CustomerSessionReads(Queries):
    """Queries on sessions of customers."""

    def customer_session(self, token_hash: bytes) -> CustomerSession | None:
        return self._customer_session("s.hash", token_hash)

    def customer_session_with(self, session: int) -> CustomerSession | None:
        return self._customer_session("s.rowid", session)

    def customer_sessions(self, contact: int, now: int, before: int, limit: int) -> Sequence[CustomerSession]:
        rows = self.conn.execute(
            f"{_SESSIONS} WHERE s.contact = ? AND s.rowid < ? AND {_LIVE} ORDER BY s.rowid DESC LIMIT ?",
            (contact, before, now, limit),
        )
        return [_as_session(row) for row in rows]

    def customer_session_by_id(self, contact: int, session_id: str) -> CustomerSession | None:
        row = self.conn.execute(
            f"{_SESSIONS} WHERE s.contact = ? AND s.id = ?", (contact, session_id)
        ).fetchone()
        return None if row is None else _as_session(row)

    def all_customer_sessions(self, contact: int, before: int, limit: int) -> Sequence[CustomerSession]:
        rows = self.conn.execute(
            f"{_SESSIONS} WHERE s.contact = ? AND s.rowid < ? ORDER BY s.rowid DESC LIMIT ?",
            (contact, before, limit),
        )
        return [_as_session(row) for row in rows]

    def customer_session_states(self, hashes: Sequence[bytes], now: int) -> Mapping[bytes, bool]:
        wanted = ", ".join("?" * len(hashes))
        rows = self.conn.execute(
            f"SELECT s.hash, s.contact IS NOT NULL AND {_LIVE} FROM contact_sessions s WHERE s.hash IN ({wanted})",
            (now, *hashes),
        )
        return {bytes(hashed): bool(live) for hashed, live in rows}

    def was_verified(self, contact: int) -> bool:
        sql = "SELECT 1 FROM contact_sessions WHERE contact = ? AND verified = 1 LIMIT 1"
        return self.conn.execute(sql, (contact,)).fetchone() is not None

    def _customer_session(self, column: str, value: bytes | int) -> CustomerSession | None:
        row = self.conn.execute(f"{_SESSIONS} WHERE {column} = ?", (value,)).fetchone()
        return None if row is None else _as_session(row)


class CustomerSessionWrites(CustomerSessionReads, AuditWrites):
    """Changes of sessions of customers."""

    def insert_customer_session(self, session: CustomerSession) -> CustomerSession:
        assert session.contact is not None, "a stored session has its contact"
        rowid = self.inserted(
            "INSERT INTO contact_sessions (id, contact, channel, hash, verified, signed, context, client, created_at, "
            "last_used_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                session.id,
                session.contact.rowid,
                session.channel.rowid,
                session.token_hash,
                int(session.verified),
                _listed(session),
                _context(session),
                session.client,
                session.created_at,
                session.last_used_at,
                session.expires_at,
            ),
        )
        return replace(session, rowid=rowid)

    def save_customer_session(self, session: CustomerSession) -> None:
        self.conn.execute(
            "UPDATE contact_sessions SET signed = ?, context = ?, client = ?, last_used_at = ?, expires_at = ? WHERE rowid = ?",
            (
                _listed(session),
                _context(session),
                session.client,
                session.last_used_at,
                session.expires_at,
                session.rowid,
            ),
        )

    def touch_customer_session(self, session: int, at: int, expires_at: int) -> None:
        self.conn.execute(
            "UPDATE contact_sessions SET last_used_at = ?, expires_at = ? WHERE rowid = ?",
            (at, expires_at, session),
        )

    def end_customer_session(self, session: int, at: int) -> bool:
        return bool(self._end_customers("rowid = ?", at, session))

    def end_customer_sessions(self, contact: int, at: int, kept: int = 0) -> int:
        newest = (
            "SELECT s.rowid FROM contact_sessions s WHERE s.contact = ? AND s.ended_at IS NULL "
            "ORDER BY s.last_used_at DESC, s.rowid DESC LIMIT ?"
        )
        return self._end_customers(f"contact = ? AND rowid NOT IN ({newest})", at, contact, contact, kept)

    def prune_customer_sessions(self, now: int, issued_before: int, limit: int) -> int:
        return self.conn.execute(
            "DELETE FROM contact_sessions WHERE rowid IN (SELECT s.rowid FROM contact_sessions s "
            "WHERE s.expires_at <= ? AND s.created_at <= ? ORDER BY s.expires_at LIMIT ?)",
            (now, issued_before, limit),
        ).rowcount

    def record_customer_session_end(self, session: CustomerSession) -> None:
        assert session.contact is not None, "a stored session has its contact"
        self.record(
            AuditEntry(
                "contact.session_ended",
                session.contact.id,
                project=session.project.rowid,
                details={"session": session.id},
            )
        )

    def _end_customers(self, which: str, at: int, *values: int) -> int:
        """End live sessions and forget the page that each was on. Return their number."""
        ended = self.conn.execute(
            "UPDATE contact_sessions SET ended_at = ?, expires_at = ?, context = NULL, client = '' "
            f"WHERE ended_at IS NULL AND {which}",
            (at, at, *values),
        ).rowcount
        if ended:
            self.want_scrub()
        return ended


def _listed(session: CustomerSession) -> str:
    return orjson.dumps(sorted(session.signed)).decode()


def _context(session: CustomerSession) -> str | None:
    return None if session.context is None else orjson.dumps(session.context).decode()


def _as_session(row: Sequence[Any]) -> CustomerSession:
    channel_at, contact_at = PROJECT_WIDTH, PROJECT_WIDTH + CHANNEL_WIDTH
    own_at = contact_at + _CONTACT_WIDTH
    contact: Contact | None = None if row[contact_at] is None else contact_of(row[contact_at:own_at])
    (
        rowid,
        session_id,
        verified,
        signed,
        created_at,
        expires_at,
        used_at,
        ended_at,
        hashed,
        context,
        client,
    ) = row[own_at:]
    return CustomerSession(
        rowid,
        session_id,
        as_project(row[:PROJECT_WIDTH]),
        as_channel(row[channel_at:contact_at]),
        contact,
        visitor_user_id(session_id) if contact is None else contact.user_id,
        bool(verified),
        frozenset(orjson.loads(signed)),
        created_at,
        expires_at,
        used_at,
        ended_at,
        bytes(hashed),
        None if context is None else orjson.loads(context),
        client,
    )
