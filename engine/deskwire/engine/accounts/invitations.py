"""Invitations to an organisation: creation, renewal, revocation and acceptance.

An invitation names an address and a role. Its link lets the person choose a password for a new account. The owner of an
existing account joins by the account's own password: no manager of one organisation ever sets the password of an account of
another one (ADR 15). The right of the inviter to give the role is checked at the creation and again at the acceptance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from msgspec import Struct

from deskwire.engine.accounts.links import (
    LINK_LIFETIME_MS,
    LinkEnded,
    LinkReader,
    LinkTransaction,
    OneTimeLink,
    open_hashed_link,
    open_link,
)
from deskwire.engine.accounts.members import NewAccount, join, make_user
from deskwire.engine.accounts.people import Member, Organisation, Role, User
from deskwire.engine.accounts.roles import ActingMember, acting_member, check_grant, role_named
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import Conflict, DomainError, Forbidden, NotFound
from deskwire.engine.core.folding import address_key
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace

INVITATIONS_MAX: Final = 1_000
"""The invitations of an organisation that may be open at once, expired ones included."""
EXPIRED_KEPT_MS: Final = 30 * 24 * 3_600_000
"""Time after its expiry for which an invitation stays in the list, to be renewed."""
_ALL: Final = (1 << 63) - 1


class InvitationMail(Struct, frozen=True):
    """The newest mail of an invitation.

    Args:
        status: `waiting`, `sent`, or `failed` if no further attempt will be made.
        error: the reason of the last failure.
    """

    status: str
    error: str | None
    last_at: int | None


class Invitation(Struct, frozen=True):
    """An invitation. Times are in milliseconds.

    Args:
        organisation: storage key of the organisation.
        name: the name of the person, as far as the inviter knows it.
        invited_by: user id of the member who created or renewed it last.
        mail: None if no mail was queued.
        rowid: storage key, 0 before it is stored.
    """

    id: str
    organisation: int
    email: str
    name: str | None
    role: Role
    invited_by: str
    created_at: int
    expires_at: int
    mail: InvitationMail | None = None
    rowid: int = 0


class InvitationReader(LinkReader, Protocol):
    """Queries on invitations."""

    def invitation(self, organisation: int, invitation_id: str) -> Invitation | None:
        """Return the invitation of an organisation (storage key) with this public id."""

    def invitation_with(self, invitation: int) -> Invitation | None:
        """Return the invitation with this storage key."""

    def invitations(self, organisation: int, before: int, limit: int) -> Sequence[Invitation]:
        """Return invitations of an organisation, newest first, with storage keys smaller than `before`."""

    def count_invitations(self, organisation: int) -> int:
        """Count the invitations of an organisation."""

    def invitations_for(self, email: str, limit: int) -> Sequence[Invitation]:
        """Return the invitations of an address in all organisations, compared by `core.folding.address_key`."""


class InvitationTransaction(InvitationReader, LinkTransaction, Protocol):
    """Changes of invitations. Creation, renewal, revocation and acceptance are recorded in the audit trail."""

    def insert_invitation(self, invitation: Invitation) -> Invitation:
        """Store a new invitation."""

    def renew_invitation(self, invitation: Invitation) -> None:
        """Store the new inviter and expiry of an invitation, and delete its links and waiting mails."""

    def end_invitation(self, invitation: Invitation, user: User | None) -> None:
        """Delete an invitation with its links and waiting mails: accepted by `user`, or revoked if that is None."""

    def prune_invitations(self, expired_before: int, limit: int) -> int:
        """Delete up to `limit` invitations that expired before this time (ms) and return the number deleted."""


def invitation_view(invitation: Invitation, url: str | None = None) -> dict[str, Any]:
    """Return the invitation object; `url` only once, when the link was made."""
    mail = invitation.mail
    return {
        "id": invitation.id,
        "email": invitation.email,
        "name": invitation.name,
        "role": invitation.role,
        "invitedBy": invitation.invited_by,
        "createdAt": iso(invitation.created_at),
        "expiresAt": iso(invitation.expires_at),
        "url": url,
        "mailed": mail is not None,
        "mail": None
        if mail is None
        else {
            "status": mail.status,
            "error": mail.error,
            "lastAttemptAt": None if mail.last_at is None else iso(mail.last_at),
        },
    }


def create_invitation(
    tx: InvitationTransaction, actor: ActingMember, invitation: Invitation, hashed: bytes
) -> Invitation:
    """Store an invitation with its link.

    Raises:
        Forbidden: the actor may not give the role.
        Conflict: the address is that of a member (`already_member`), reads like that of another account (`email_in_use`), is
            invited already (`invitation_exists`), or the organisation has too many invitations (`invitation_limit_reached`).
    """
    tx.lock_across_nodes()
    check_grant(actor, role_named(tx, invitation.organisation, invitation.role))
    organisation = invitation.organisation
    user = tx.user_by_email(invitation.email)
    if user is None and tx.similar_account_exists(invitation.email):
        raise Conflict(
            "There is an account with an e-mail address that reads like this one.", code="email_in_use"
        )
    if user is not None and tx.role(organisation, user.rowid) is not None:
        raise Conflict("This user is a member already.", code="already_member")
    if any(each.organisation == organisation for each in tx.invitations_for(invitation.email, _ALL)):
        raise Conflict("This address is invited already; renew that invitation.", code="invitation_exists")
    if tx.count_invitations(organisation) >= INVITATIONS_MAX:
        raise Conflict(
            f"An organisation has at most {INVITATIONS_MAX} invitations; revoke one first.",
            code="invitation_limit_reached",
        )
    stored = tx.insert_invitation(invitation)
    tx.insert_link(_link(stored, hashed, invitation.created_at))
    return stored


def renew_invitation(
    tx: InvitationTransaction,
    actor: ActingMember,
    organisation: int,
    invitation_id: str,
    hashed: bytes,
    at: int,
) -> Invitation:
    """Give an invitation another link and lifetime; earlier links end. The actor becomes the inviter.

    Raises NotFound (`invitation_not_found`), and Forbidden if the actor may not give the role.
    """
    invitation = found_invitation(tx, organisation, invitation_id)
    check_grant(actor, role_named(tx, invitation.organisation, invitation.role))
    inviter = tx.user_with(actor.user)
    assert inviter is not None, "the actor is a member"
    renewed = replace(invitation, invited_by=inviter.id, expires_at=at + LINK_LIFETIME_MS, mail=None)
    tx.renew_invitation(renewed)
    tx.insert_link(_link(renewed, hashed, at))
    return renewed


def revoke_invitation(tx: InvitationTransaction, organisation: int, invitation_id: str) -> Invitation:
    """Delete an invitation; its links end. Raises NotFound (`invitation_not_found`)."""
    invitation = found_invitation(tx, organisation, invitation_id)
    tx.end_invitation(invitation, None)
    return invitation


def found_invitation(reader: InvitationReader, organisation: int, invitation_id: str) -> Invitation:
    """Return the invitation of an organisation with this id. Raises NotFound (`invitation_not_found`)."""
    invitation = reader.invitation(organisation, invitation_id)
    if invitation is None:
        raise NotFound("There is no such invitation; it may have been accepted.", code="invitation_not_found")
    return invitation


def invitation_of(reader: InvitationReader, link: OneTimeLink, at: int) -> Invitation:
    """Return the invitation that a link accepts.

    Raises LinkEnded, and Forbidden (`inviter_not_permitted`) if the inviter may no longer give the role.
    """
    invitation = None if link.invitation is None else reader.invitation_with(link.invitation)
    if invitation is None or at >= invitation.expires_at:
        raise LinkEnded
    check_inviter(reader, invitation)
    return invitation


def check_inviter(reader: InvitationReader, invitation: Invitation) -> None:
    """Raise Forbidden (`inviter_not_permitted`) unless the inviter may still give the role."""
    actor = acting_member(reader, invitation.organisation, invitation.invited_by)
    try:
        if actor is not None:
            check_grant(actor, role_named(reader, invitation.organisation, invitation.role))
            return
    except DomainError:
        pass
    raise Forbidden(
        "The member who invited you may no longer give you this role. Ask for a new invitation.",
        code="inviter_not_permitted",
    )


def accept_with_new_account(
    tx: InvitationTransaction, token: str, newcomer: NewAccount, at: int
) -> tuple[User, Invitation]:
    """Create the account of an invited person, who becomes a member. The link ends.

    Raises:
        LinkEnded: the link can't be used.
        Forbidden: the inviter may no longer give the role (`inviter_not_permitted`).
        Conflict: an account with the address was created since (`email_in_use`).
    """
    invitation = invitation_of(tx, open_link(tx, token, at), at)
    user = make_user(tx, replace(newcomer, email=invitation.email), at)
    member = join(tx, invitation.organisation, user, invitation.role, at)
    tx.end_invitation(invitation, member.user)
    return member.user, invitation


def accept_with_account(tx: InvitationTransaction, hashed: bytes, user: User, at: int) -> Member:
    """Make the holder of an account a member, after a sign-in with the account's own password. The link ends.

    Args:
        hashed: SHA-256 of the link's token.
        user: the account as it was when the password was checked.

    Raises:
        LinkEnded: the link can't be used, or is not for this account.
        Forbidden: the inviter may no longer give the role (`inviter_not_permitted`).
        Conflict: the user is a member already (`already_member`), or the password has changed (`password_changed`).
    """
    invitation = invitation_of(tx, open_hashed_link(tx, hashed, at), at)
    now = tx.user(user.id)
    if now is None or address_key(now.email) != address_key(invitation.email):
        raise LinkEnded
    if now.generation != user.generation:
        raise Conflict("The password has just been changed by another call.", code="password_changed")
    member = join(tx, invitation.organisation, now, invitation.role, at)
    tx.end_invitation(invitation, member.user)
    return member


def valid_invitations(
    tx: InvitationTransaction, email: str, at: int, within: int | None
) -> Iterator[Invitation]:
    """Yield the open invitations of an address whose inviter may still give the role.

    Args:
        within: storage key of the only organisation whose invitations count, None for all.
    """
    for invitation in tx.invitations_for(email, _ALL):
        if at >= invitation.expires_at or within not in (None, invitation.organisation):
            continue
        with suppress(Forbidden):
            check_inviter(tx, invitation)
            yield invitation


def accept_invitations_of(
    tx: InvitationTransaction, user: User, at: int, within: int | None = None
) -> Sequence[Member]:
    """Accept the invitations of a user whose address an identity provider has just verified. Return the memberships.

    Args:
        within: see `valid_invitations`.

    An account whose home is another organisation and that has a password is left out, because managers there may know the
    password: its owner opens the link and gives the password. Invitations whose inviter may no longer give the role stay open.
    """
    joined = []
    for invitation in [*valid_invitations(tx, user.email, at, within)]:
        now = tx.user(user.id)
        if now is None:
            continue
        if now.password_hash is not None and now.home not in (None, invitation.organisation):
            continue
        if tx.role(invitation.organisation, now.rowid) is not None:
            continue
        joined.append(join(tx, invitation.organisation, now, invitation.role, at))
        tx.end_invitation(invitation, now)
    return joined


def make_first_owner(
    tx: InvitationTransaction, token: str, newcomer: NewAccount, organisation_name: str, at: int
) -> tuple[User, Organisation]:
    """Create the first account and its organisation, by the link for the first owner. All such links end.

    Raises LinkEnded, also if another request has created an account since.
    """
    tx.lock_across_nodes()
    link = open_link(tx, token, at)
    if link.purpose != "setUp":
        raise LinkEnded
    organisation_id = new_id("org", at)
    organisation = tx.insert_organisation(organisation_id, organisation_name, at)
    member = join(tx, organisation, make_user(tx, newcomer, at), "owner", at)
    tx.keep_first_owner_links(0)
    return member.user, Organisation(organisation, organisation_id, organisation_name, at)


def _link(invitation: Invitation, hashed: bytes, at: int) -> OneTimeLink:
    return OneTimeLink("invitation", hashed, at, invitation.expires_at, invitation=invitation.rowid)
