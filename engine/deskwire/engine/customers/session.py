"""Sessions of customers: their state, lifetime and end, and the part of the store that they need.

A session belongs to one contact in one channel. It ends at a time after its last use, at a maximum age, by sign-out, by another
identity in the same browser, by an agent or backend, and with its contact or channel. The row of an ended session stays for as
long as its token could be used otherwise, because a visitor's token is valid without a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.channels.channel import Channel
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.errors import Conflict, NotFound, Unauthenticated

_DAY_MS: Final = 86_400_000
IDLE_MS: Final = 90 * _DAY_MS  # lifetime after the last use
LONGEST_MS: Final = 400 * _DAY_MS  # lifetime after the first message, or the start of a signed-in session
SESSIONS_MAX: Final = 50  # live sessions of a contact; a new one ends the least recently used
SIGNABLE: Final = ("name", "email", "phone", "avatar", "attributes")
"""The fields that a signed identity may have, in addition to the user id."""


class CustomerSession(Struct, frozen=True):
    """A session of a customer. Times are in milliseconds.

    Args:
        rowid: storage key; None for a visitor without a message, of whom nothing is stored.
        contact: as of the look-up, so that its names may be older than the stored ones. None for a visitor without a message.
        user_id: the contact's `userId`, also of a visitor without a contact.
        verified: whether the backend has signed the identity.
        signed: the names of the fields that it has signed.
        token_hash: SHA-256 of the token.
        context: the customer's current page, reported by the page itself.
        client: shortened `User-Agent`.
    """

    rowid: int | None
    id: str
    project: Project
    channel: Channel
    contact: Contact | None
    user_id: str
    verified: bool
    signed: frozenset[str]
    created_at: int
    expires_at: int
    last_used_at: int = 0
    ended_at: int | None = None
    token_hash: bytes = b""
    context: Mapping[str, Any] | None = None
    client: str = ""


class CustomerSessionReader(Protocol):
    """Queries on sessions of customers. Ids are storage keys unless said otherwise."""

    def customer_session(self, token_hash: bytes) -> CustomerSession | None:
        """Return the session with this SHA-256 of its token, ended ones included."""

    def customer_session_with(self, session: int) -> CustomerSession | None:
        """Return the session with this storage key, ended ones included."""

    def customer_session_by_id(self, contact: int, session_id: str) -> CustomerSession | None:
        """Return the session of a contact with this public id, ended ones included."""

    def customer_sessions(self, contact: int, now: int, before: int, limit: int) -> Sequence[CustomerSession]:
        """Return the live sessions of a contact, newest first, with storage keys below `before`."""

    def all_customer_sessions(self, contact: int, before: int, limit: int) -> Sequence[CustomerSession]:
        """Return the sessions of a contact that have a row, newest first, with storage keys below `before`."""

    def customer_session_states(self, hashes: Sequence[bytes], now: int) -> Mapping[bytes, bool]:
        """Return whether the stored ones of these sessions are live at `now` (ms), by the SHA-256 of their tokens."""

    def was_verified(self, contact: int) -> bool:
        """Return whether a contact has, or had until lately, a session with a signed identity."""


class CustomerSessionTransaction(CustomerSessionReader, Protocol):
    """Changes of sessions of customers."""

    def insert_customer_session(self, session: CustomerSession) -> CustomerSession:
        """Store a new session, whose `contact` must be set. Return it with its `rowid`."""

    def save_customer_session(self, session: CustomerSession) -> None:
        """Store a session's signed fields, context, last use and expiry."""

    def touch_customer_session(self, session: int, at: int, expires_at: int) -> None:
        """Store the last use of a session and its expiry, both in milliseconds."""

    def end_customer_session(self, session: int, at: int) -> bool:
        """End a session unless it has ended. Return whether it was live."""

    def end_customer_sessions(self, contact: int, at: int, kept: int = 0) -> int:
        """End the live sessions of a contact except for the `kept` most recently used. Return the number ended."""

    def record_customer_session_end(self, session: CustomerSession) -> None:
        """Record in the audit trail that an agent or backend has ended a session."""

    def prune_customer_sessions(self, now: int, issued_before: int, limit: int) -> int:
        """Delete up to `limit` sessions that ended or expired before `now` and started before `issued_before`.

        Returns the number deleted.
        """


def expiry(created_at: int, used_at: int) -> int:
    """Return the time (ms) at which a session expires that was last used at `used_at`."""
    return min(used_at + IDLE_MS, created_at + LONGEST_MS)


def session_ended(detail: str = "The session has ended; start another one.") -> Unauthenticated:
    """Return the refusal of a token whose session has ended, or that is not of this service."""
    return Unauthenticated(detail, code="session_ended")


def check_live(session: CustomerSession, now: int) -> None:
    """Raise a refusal if a session can't be used at `now` (ms).

    Raises:
        Unauthenticated: it has ended or expired (`session_ended`), or its channel requires a signed identity by now
            (`identity_required`).
        Conflict: its channel is disabled (`channel_disabled`).
    """
    if session.ended_at is not None or now >= session.expires_at:
        raise session_ended()
    if not accepts(session.channel, verified=session.verified):
        if session.verified:
            raise session_ended("The channel no longer accepts signed identities; start another session.")
        raise identity_required()
    check_enabled(session.channel)


def accepts(channel: Channel, *, verified: bool) -> bool:
    """Return whether a channel is for customers with a signed identity, or for those without."""
    if verified:
        return channel.identity_mode != "none"
    return channel.identity_mode != "required" and channel.visitors_allowed


def check_enabled(channel: Channel) -> None:
    """Raise Conflict (`channel_disabled`) if the channel is disabled."""
    if not channel.enabled:
        raise Conflict("The channel is disabled.", code="channel_disabled")


def identity_required() -> Unauthenticated:
    """Return the refusal of a visitor where a signed identity is needed."""
    return Unauthenticated(
        "This channel is for signed-in customers: the call needs an `identity` that the site's backend has signed.",
        code="identity_required",
    )


def no_such_session() -> NotFound:
    """Return the error for a session that the contact does not have."""
    return NotFound("The contact has no such session; it may have ended.", code="customer_session_not_found")


def exported_session_view(session: CustomerSession) -> dict[str, Any]:
    """Return the session object of a contact's export, which also has ended sessions."""
    return {**session_view(session), "endedAt": iso_or_none(session.ended_at)}


def session_view(session: CustomerSession) -> dict[str, Any]:
    """Return the session object for agents and backends."""
    return {
        "id": session.id,
        "channelId": session.channel.id,
        "verified": session.verified,
        "signed": _in_order(session.signed),
        "context": session.context,
        "client": session.client,
        "createdAt": iso(session.created_at),
        "lastUsedAt": iso(session.last_used_at),
        "expiresAt": iso(session.expires_at),
    }


def own_contact_view(session: CustomerSession, contact: Contact | None) -> dict[str, Any]:
    """Return the customer's own contact object.

    Args:
        contact: the stored contact; None for a visitor without a message.
    """
    return {
        "id": None if contact is None else contact.id,
        "userId": session.user_id,
        "name": None if contact is None else contact.name,
        "email": None if contact is None else contact.email,
        "phone": None if contact is None else contact.phone,
        "avatar": None if contact is None else contact.avatar,
        "verified": session.verified,
        "signed": _in_order(session.signed),
    }


def _in_order(names: Iterable[str]) -> list[str]:
    known = frozenset(names)
    return [name for name in SIGNABLE if name in known]
