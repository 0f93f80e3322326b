"""The start of sessions, in the transactions that store them.

A signed-in customer's session is stored when it starts, with the contact as the identity describes it. A visitor's session is
stored with the first message, in the commit of its conversation and contact. Starting a session can be repeated at any point:
the same token and identity lead to the same session, and a visitor is merged into the identified contact at most once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.channels.channel import Channel
from deskwire.engine.contacts.contact import (
    EMPTY_PROFILE,
    Contact,
    Profile,
    contact_with_profile_view,
    is_reserved,
)
from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.contacts import IdentityTransaction, change_profile, put_contact
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import Invalid
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.customers.identity import identity_invalid
from deskwire.engine.customers.session import (
    SESSIONS_MAX,
    CustomerSession,
    CustomerSessionTransaction,
    check_live,
    expiry,
)
from deskwire.engine.events.types import EventDraft, contact_lane
from deskwire.engine.webhooks.publish import publish_extension

SESSION_STARTED: Final = "contact.session.started"


class SignInTransaction(CustomerSessionTransaction, IdentityTransaction, Protocol):
    """Changes of the start of a session."""


class SignIn(Struct, frozen=True):
    """A verified identity that starts a session, or continues one.

    Args:
        identity: the signed fields of the contact's identity.
        attributes: the signed attributes, if there are any.
        token_hash: SHA-256 of the token of a new session.
        client: shortened `User-Agent`.
        shown: SHA-256 of the token that the client has used so far, if it has one.
    """

    project: Project
    channel: Channel
    user_id: str
    identity: Mapping[str, str | None]
    attributes: Mapping[str, Any] | None
    token_hash: bytes
    client: str
    shown: bytes | None = None

    @property
    def signed(self) -> frozenset[str]:
        """The names of the signed fields."""
        return frozenset(self.identity) | (frozenset() if self.attributes is None else {"attributes"})


class StartedSession(Struct, frozen=True):
    """A session that was started or continued.

    Args:
        resumed: whether the client's token remains the session's.
        ended: whether the client's session of another contact was ended.
        visitor: id of the visitor's contact that is to be merged into the session's, if there is one.
    """

    session: CustomerSession
    contact: Contact
    resumed: bool = False
    ended: bool = False
    visitor: str | None = None


def start_session(tx: SignInTransaction, wanted: SignIn, at: int) -> StartedSession:
    """Start the session of a signed identity at `at` (ms), or continue that of the client.

    The client's session of another identity is ended. Raises Invalid (`reserved_user_id`), and Unauthenticated
    (`identity_invalid`) if the signed attributes are too many.
    """
    contact = _signed_contact(tx, wanted, at)
    shown = None if wanted.shown is None else tx.customer_session(wanted.shown)
    if shown is not None and shown.channel.rowid != wanted.channel.rowid:
        shown = None
    live = shown is not None and shown.ended_at is None and at < shown.expires_at
    if shown is not None and shown.verified and live:
        assert shown.rowid is not None, "it is stored"
        if shown.contact is not None and shown.contact.rowid == contact.rowid:
            same = replace(
                shown,
                contact=contact,
                signed=wanted.signed,
                client=wanted.client,
                last_used_at=at,
                expires_at=expiry(shown.created_at, at),
            )
            tx.save_customer_session(same)
            return StartedSession(same, contact, resumed=True)
        ended = tx.end_customer_session(shown.rowid, at)
    else:
        ended = False
    session = _insert(tx, wanted, contact, at)
    visitor = None if shown is None else _visitor_to_merge(tx, shown, contact, live=live)
    return StartedSession(session, contact, ended=ended, visitor=visitor)


def _signed_contact(tx: SignInTransaction, wanted: SignIn, at: int) -> Contact:
    """Return the contact of an identity, created or updated with the signed fields."""
    ref = ContactRef(wanted.user_id, wanted.identity, pointer="/identity")
    contact = put_contact(tx, wanted.project, ref, at)
    if not wanted.attributes:
        return contact
    try:
        given = {"attributes": wanted.attributes}
        return change_profile(tx, wanted.project, contact, given, _actor(contact), at)[0]
    except Invalid as refused:
        problems = " ".join(each.message for each in refused.problems)
        raise identity_invalid(f"Its attributes can't be stored. {problems}") from None


def _insert(tx: SignInTransaction, wanted: SignIn, contact: Contact, at: int) -> CustomerSession:
    """Store and announce a new session."""
    tx.end_customer_sessions(contact.rowid, at, kept=SESSIONS_MAX - 1)
    session = CustomerSession(
        None,
        new_id("cse", at),
        wanted.project,
        wanted.channel,
        contact,
        contact.user_id,
        verified=True,
        signed=wanted.signed,
        created_at=at,
        expires_at=expiry(at, at),
        last_used_at=at,
        token_hash=wanted.token_hash,
        client=wanted.client,
    )
    return _stored(tx, session, at)


def _stored(tx: SignInTransaction, session: CustomerSession, at: int) -> CustomerSession:
    assert session.contact is not None, "a stored session has its contact"
    contact, stored = session.contact, tx.insert_customer_session(session)
    # A contact that is created now has no profile, so a visitor's first message takes no query for it.
    profile = EMPTY_PROFILE if contact.created_at == at else tx.profile(contact.rowid)
    lane = contact_lane(contact.rowid)
    publish_extension(tx, session.project, session_started(session, contact, profile), lane, at, lane=lane)
    return stored


def _visitor_to_merge(
    tx: SignInTransaction, shown: CustomerSession, contact: Contact, *, live: bool
) -> str | None:
    """Return the id of the visitor's contact that the identified contact takes over.

    That a visitor is merged already is no reason against it: the call may be repeated after a lost response, and then waits for
    the end of the merge. A contact that ever had a signed identity is never merged by a browser.
    """
    visitor = shown.contact
    if shown.verified or visitor is None or visitor.rowid == contact.rowid:
        return None
    if not is_reserved(visitor.user_id) or tx.was_verified(visitor.rowid):
        return None
    if live:
        return visitor.id
    merged = tx.merged(shown.project.rowid, visitor.id, by_id=True)
    return visitor.id if merged is not None and merged.target.rowid == contact.rowid else None


class VisitorStart:
    """The commit hook of a visitor's first conversation, which stores the session in the same commit.

    It may run for a session that is stored already: then it only checks that the session has not ended.

    Args:
        session: as the call was authenticated.
        context: the page that the customer is on, if the call names it.
    """

    def __init__(
        self, session: CustomerSession, at: int, context: Mapping[str, Any] | None = None, client: str = ""
    ) -> None:
        self._session = session
        self._at = at
        self._context = context
        self._client = client
        self._known: CustomerSession | None = None

    @property
    def contact(self) -> ContactRef:
        """The contact of the session's new conversations, which the first one creates."""
        return contact_ref(self._session)

    def before(self, tx: SignInTransaction) -> None:
        """Raise Unauthenticated (`session_ended`) if the session has ended."""
        self._known = tx.customer_session(self._session.token_hash)
        if self._known is not None:
            check_live(self._known, self._at)

    def after(self, tx: SignInTransaction, receipt: Any) -> None:
        """Store the session, or its context if it is stored already."""
        known = self._known
        if known is not None:
            if self._context is not None:
                tx.save_customer_session(replace(known, context=self._context))
            return
        _stored(
            tx,
            replace(
                self._session,
                contact=receipt.contact,
                context=self._context,
                client=self._client,
                created_at=self._at,
                last_used_at=self._at,
                expires_at=expiry(self._at, self._at),
            ),
            self._at,
        )


def contact_ref(session: CustomerSession, identity: Mapping[str, str | None] | None = None) -> ContactRef:
    """Return the contact for a new conversation of a session.

    Args:
        identity: fields that a visitor has filled in; they are ignored for a signed-in customer, whose calls can't change the
            contact along the way.
    """
    if session.contact is not None:
        given = {} if session.verified else identity or {}
        return ContactRef(session.contact.user_id, given, session.contact.id)
    return ContactRef(session.user_id, identity or {}, visitor=True)


def session_started(session: CustomerSession, contact: Contact, profile: Profile) -> EventDraft:
    """Return the event of a session that was stored."""
    about = {
        "id": session.id,
        "channelId": session.channel.id,
        "verified": session.verified,
        "context": session.context,
    }
    return EventDraft(
        SESSION_STARTED, None, {"contact": contact_with_profile_view(contact, profile), "session": about}
    )


def _actor(contact: Contact) -> Actor:
    return Actor("contact", contact.id)
