"""One-time links: for invitations, for new passwords, and for the first owner of an installation.

The token of a link is 32 random bytes in the fragment of its URL, which browsers send to no server. Only its SHA-256 is
stored. The row of a link is deleted when the link is used, so a link works once. A link for a password is bound to the
`generation` of the account, so each change of the password ends it, and to the organisation whose manager made it, whose
right is checked again when the link is used.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.members import check_password_reset, with_password
from deskwire.engine.accounts.people import User
from deskwire.engine.accounts.ports import OrganisationReader, OrganisationTransaction
from deskwire.engine.accounts.roles import MANAGE, ActingMember, acting_member
from deskwire.engine.core.errors import DomainError, Gone

_BYTES: Final = 32
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_HOUR_MS: Final = 3_600_000
LINK_LIFETIME_MS: Final = 7 * 24 * _HOUR_MS
"""Lifetime of a link that a person or the log carries."""
MAILED_PASSWORD_LIFETIME_MS: Final = _HOUR_MS
"""Lifetime of a link for a password that its owner asked for by mail."""
FIRST_OWNER_LINKS_MAX: Final = 10
"""Maximum number of links for the first owner. Each start prints one, and the oldest ones end."""

LinkPurpose = Literal["invitation", "password", "setUp"]


class OneTimeLink(Struct, frozen=True):
    """A stored link. Times are in milliseconds.

    Args:
        hashed: SHA-256 of the token.
        invitation: storage key of the invitation that the link accepts.
        user, generation: the account that gets a new password, by its storage key, and its `generation` at the creation.
        organisation, made_by: the organisation and the user id of the manager who made a link for a password. Both are None
            if the owner of the account asked for it by mail, and None for other links.
        rowid: storage key, 0 before it is stored.
    """

    purpose: LinkPurpose
    hashed: bytes
    created_at: int
    expires_at: int
    invitation: int | None = None
    user: int | None = None
    generation: int | None = None
    organisation: int | None = None
    made_by: str | None = None
    rowid: int = 0


class LinkReader(OrganisationReader, Protocol):
    """Queries on links."""

    def link(self, hashed: bytes) -> OneTimeLink | None:
        """Return the link with this SHA-256 of its token, expired ones included."""

    def user_with(self, user: int) -> User | None:
        """Return the user with this storage key."""

    def has_users(self) -> bool:
        """Return whether there is any account."""


class LinkTransaction(LinkReader, OrganisationTransaction, Protocol):
    """Changes of links."""

    def insert_link(self, link: OneTimeLink) -> None:
        """Store a new link. A link for a password is recorded in the audit trail."""

    def delete_link(self, link: int) -> None:
        """Delete the link with this storage key."""

    def delete_password_links(self, user: int, organisation: int | None) -> None:
        """Delete the links for the password of a user (storage key).

        Args:
            organisation: only those that its managers made. None for all.
        """

    def keep_first_owner_links(self, kept: int) -> None:
        """Delete the links for the first owner, except the newest ones."""

    def prune_links(self, now: int, limit: int) -> int:
        """Delete up to `limit` links that have expired at `now` (ms) and return the number deleted."""


def new_link_token() -> str:
    """Return the token of a new link."""
    return secrets.token_urlsafe(_BYTES)


def hash_link_token(token: str) -> bytes:
    """Return the SHA-256 of a token, which is stored. It needs no salt because the token is random."""
    return hashlib.sha256(token.encode()).digest()


def link_url(base_url: str, token: str) -> str:
    """Return the URL of the desk's page for a link."""
    return f"{base_url}/desk/link#{token}"


class LinkEnded(Gone):
    """A link that was used, replaced or revoked, or has expired. All cases give the same error."""

    code = "link_ended"

    def __init__(self) -> None:
        super().__init__("This link was used already, was replaced, or has expired. Ask for a new one.")


def open_link(reader: LinkReader, token: str, at: int) -> OneTimeLink:
    """Return the link with this token, if it can still be used. Raises LinkEnded."""
    if _TOKEN.fullmatch(token) is None:
        raise LinkEnded
    return open_hashed_link(reader, hash_link_token(token), at)


def open_hashed_link(reader: LinkReader, hashed: bytes, at: int) -> OneTimeLink:
    """Return the link with this SHA-256 of its token, if it can still be used. Raises LinkEnded."""
    link = reader.link(hashed)
    if link is None or at >= link.expires_at or (link.purpose == "setUp" and reader.has_users()):
        raise LinkEnded
    return link


def make_password_link(
    tx: LinkTransaction, actor: ActingMember, organisation: int, user_id: str, hashed: bytes, at: int
) -> OneTimeLink:
    """Store a link by which a member chooses a new password; it replaces an earlier one of this organisation.

    The password and all sessions stay until the link is used. Raises the errors of `check_password_reset`.
    """
    user, maker = check_password_reset(tx, actor, organisation, user_id).user, tx.user_with(actor.user)
    assert maker is not None, "the actor is a member"
    link = OneTimeLink(
        "password",
        hashed,
        at,
        at + LINK_LIFETIME_MS,
        user=user.rowid,
        generation=user.generation,
        organisation=organisation,
        made_by=maker.id,
    )
    tx.delete_password_links(user.rowid, organisation)
    tx.insert_link(link)
    return link


def make_mailed_password_link(tx: LinkTransaction, user: User, hashed: bytes, at: int) -> None:
    """Store a link by which the owner of an account, who asked for it by mail, chooses a new password."""
    expires_at = at + MAILED_PASSWORD_LIFETIME_MS
    tx.insert_link(
        OneTimeLink("password", hashed, at, expires_at, user=user.rowid, generation=user.generation)
    )


def password_link_owner(reader: LinkReader, link: OneTimeLink) -> User:
    """Return the account whose password a link replaces.

    Raises LinkEnded if the password was changed, the account is gone, or the manager who made the link may no longer give
    the account a new password.
    """
    user = None if link.user is None else reader.user_with(link.user)
    if user is None or user.generation != link.generation:
        raise LinkEnded
    if link.organisation is not None:
        _check_maker(reader, link.organisation, link.made_by, user)
    return user


def _check_maker(reader: LinkReader, organisation: int, made_by: str | None, user: User) -> None:
    """Raise LinkEnded unless the manager may still give the account a new password."""
    actor = acting_member(reader, organisation, made_by)
    if actor is None:
        raise LinkEnded
    if MANAGE not in actor.permissions:
        raise LinkEnded
    try:
        check_password_reset(reader, actor, organisation, user.id)
    except DomainError:
        raise LinkEnded from None


def use_password_link(tx: LinkTransaction, token: str, password_hash: str, at: int) -> User:
    """Give the account of a link its new password, and end all its links, tokens and sessions. Return the user.

    Raises LinkEnded.
    """
    link = open_link(tx, token, at)
    if link.purpose != "password":
        raise LinkEnded
    user = with_password(password_link_owner(tx, link), password_hash, at)
    tx.save_user(user)
    tx.delete_password_links(user.rowid, None)
    return user


def make_first_owner_link(tx: LinkTransaction, hashed: bytes, at: int) -> bool:
    """Store a link for the first owner, unless there is an account. Return whether it was stored."""
    tx.lock_across_nodes()
    if tx.has_users():
        return False
    tx.keep_first_owner_links(FIRST_OWNER_LINKS_MAX - 1)
    tx.insert_link(OneTimeLink("setUp", hashed, at, at + LINK_LIFETIME_MS))
    return True
