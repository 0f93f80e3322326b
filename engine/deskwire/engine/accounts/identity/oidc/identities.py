"""Identities: bindings of accounts to users of OpenID providers, and the roles that claims give.

A user of a provider is known by issuer and `sub`; an address may change and be given to another person. The address decides
only about the first binding, and only if the provider has verified it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from deskwire.engine.accounts.identity.oidc.provider import Registration
from deskwire.engine.accounts.identity.oidc.role_rules import mapped_role
from deskwire.engine.accounts.invitations import (
    InvitationTransaction,
    accept_invitations_of,
    valid_invitations,
)
from deskwire.engine.accounts.members import NewAccount, join, make_user
from deskwire.engine.accounts.people import Organisation, Role, User
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import NotFound, Unauthenticated
from deskwire.engine.core.folding import address_key
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.values import replace

EMAIL_MAX: Final = 320
NAME_MAX: Final = 200
_MICROSOFT: Final = "login.microsoftonline.com"
_ALL: Final = (1 << 63) - 1


class Identity(Struct, frozen=True):
    """A binding of an account to a user of a provider.

    Args:
        provider: name of the provider in the settings.
        subject: the provider's id of the user (`sub`).
        email: address that the provider gave with the last sign-in.
        gives_role: whether the claims of the provider have given the user a role. Then claims without one end the access.
        rowid: storage key, 0 before it is stored.
    """

    id: str
    issuer: str
    provider: str
    subject: str
    email: str
    gives_role: bool
    created_at: int
    rowid: int = 0


class IdentityReader(Protocol):
    """Queries on identities."""

    def identity(self, issuer: str, subject: str) -> tuple[Identity, User] | None:
        """Return the identity of a provider's user, with its account."""

    def identities_of(self, user: int) -> Sequence[Identity]:
        """Return the identities of a user (storage key), oldest first."""


class IdentityChanges(IdentityReader, Protocol):
    """Changes of identities, recorded in the audit trail."""

    def insert_identity(self, identity: Identity, user: int) -> None:
        """Store a new identity of the user with this storage key."""

    def save_identity(self, identity: Identity) -> None:
        """Store the address of an identity, and whether its claims give the role."""

    def delete_identity(self, identity: Identity, user: int) -> None:
        """Delete an identity of a user (storage key)."""

    def end_provider_sessions(self, provider: str, user: int | None, sid: str | None) -> int:
        """End the sessions that a provider has signed in, of a user (storage key) or one of its own sessions.

        Return the number of ended sessions.
        """

    def remember_logout(self, issuer: str, jti: str, until: int) -> bool:
        """Remember a logout token until `until` (ms). Return False if it is remembered already."""


class BindingReader(OrganisationReader, IdentityReader, Protocol):
    """Queries on identities and accounts."""


class BindingTransaction(InvitationTransaction, IdentityChanges, Protocol):
    """Changes of identities, accounts and members, and of their invitations."""


NO_ORGANISATION: Final = -1
"""The storage key of no organisation."""


class SignInRefused(Unauthenticated):
    """The provider's user may not sign in here. The code is shown on the desk's page."""

    code: ClassVar[str] = "no_account"

    def __init__(
        self, code: str, reason: str, *, organisation: int | None = None, user: User | None = None
    ) -> None:
        super().__init__(reason, code=code)
        self.organisation: Final = organisation
        self.user: Final = user


class NewIds(Struct, frozen=True):
    """The ids for objects that a sign-in may create."""

    identity: str
    user: str


def admitted(
    tx: BindingTransaction, client: Registration, claims: Mapping[str, Any], ids: NewIds, at: int
) -> User:
    """Return the account of a provider's user, which is bound or created if needed, and gets the role of the claims.

    Raises SignInRefused: `no_account`, `no_role`, `address_not_verified` or `account_elsewhere`. Then nothing has been changed.
    """
    tx.lock_across_nodes()  # because the owners are counted, and two sign-ins of one person may meet
    organisation = organisation_of(tx, client)
    role = mapped_role(claims, client.role_claim, client.roles)
    if role is not None and (organisation is None or tx.granted_role(organisation.rowid, role) is None):
        role = None  # the setting names a role that the organisation does not have
    known = tx.identity(client.issuer, claims["sub"])
    if known is not None:
        identity, user = known
        if not within_reach(tx, client, user):
            raise SignInRefused(
                "account_elsewhere",
                "The account belongs to another organisation than the provider, too.",
                organisation=None if organisation is None else organisation.rowid,
                user=user,
            )
    else:
        user = _user_to_bind(tx, client, claims, organisation, role, ids, at)
        identity = Identity(ids.identity, client.issuer, client.name, claims["sub"], user.email, False, at)
    if role is None and identity.gives_role and client.roles:
        raise _no_role(organisation, user)
    gives = role is not None and organisation is not None
    if role is not None and organisation is not None:
        user = _with_role(tx, organisation, user, role, at)
    changed = replace(
        identity,
        email=verified_email(client, claims) or identity.email,
        gives_role=identity.gives_role or gives,
        provider=client.name,
    )
    if known is None:
        tx.insert_identity(changed, user.rowid)
    elif changed != identity:
        tx.save_identity(changed)
    email = verified_email(client, claims)
    if email is not None and address_key(email) == address_key(user.email):
        accept_invitations_of(tx, user, at, _within(client, organisation))
    return user


def known_user(reader: BindingReader, client: Registration, claims: Mapping[str, Any]) -> User | None:
    """Return the account that a provider's user is bound to, or will be by the verified address. None for a stranger."""
    known = reader.identity(client.issuer, claims["sub"])
    if known is not None:
        return known[1]
    email = verified_email(client, claims)
    return None if email is None else reader.user_by_email(email)


def organisation_of(reader: OrganisationReader, client: Registration) -> Organisation | None:
    """Return the organisation of a provider, by its id or name; without a setting the only one. None if there is none."""
    handle = client.organisation
    if handle is not None and is_id(handle, "org"):
        return reader.organisation(handle)
    found = [each for each in reader.organisations() if handle in (None, each.name)]
    return found[0] if len(found) == 1 else None


def verified_email(client: Registration, claims: Mapping[str, Any]) -> str | None:
    """Return the address in the claims if the provider has verified it, else None.

    Microsoft has no `email_verified`. Its claim `xms_edov` says that the owner of the address's domain is verified.
    """
    email = claims.get("email")
    if not isinstance(email, str) or not _is_address(email):
        return None
    if claims.get("email_verified") is True:
        return email
    if urlsplit(client.issuer).hostname == _MICROSOFT and claims.get("xms_edov") in (True, 1, "1", "true"):
        return email
    return None


def identity_view(identity: Identity) -> dict[str, Any]:
    """Return the identity object."""
    return {
        "id": identity.id,
        "provider": identity.provider,
        "subject": identity.subject,
        "email": identity.email,
        "createdAt": iso(identity.created_at),
    }


def unlink(tx: IdentityChanges, user: int, identity_id: str) -> None:
    """Delete an identity of a user (storage key). Raises NotFound (`identity_not_found`)."""
    found = next((each for each in tx.identities_of(user) if each.id == identity_id), None)
    if found is None:
        raise NotFound("You have no such identity.", code="identity_not_found")
    tx.delete_identity(found, user)


def _user_to_bind(
    tx: BindingTransaction,
    client: Registration,
    claims: Mapping[str, Any],
    organisation: Organisation | None,
    role: Role | None,
    ids: NewIds,
    at: int,
) -> User:
    """Return the account with the verified address in the claims, or a new one for a mapped role or an invitation."""
    email = verified_email(client, claims)
    if email is None:
        raise SignInRefused(
            "address_not_verified",
            "The provider gives no verified e-mail address for the first sign-in.",
            organisation=None if organisation is None else organisation.rowid,
        )
    user = tx.user_by_email(email)
    if user is not None:
        if not within_reach(tx, client, user):
            raise SignInRefused(
                "no_account",
                "The account with this e-mail address belongs to another organisation than the provider.",
                organisation=None if organisation is None else organisation.rowid,
            )
        return user
    invited = any(valid_invitations(tx, email, at, _within(client, organisation)))
    if not invited and (role is None or organisation is None):
        raise (
            _no_role(organisation, None)
            if client.roles
            else SignInRefused(
                "no_account",
                "There is no account with this e-mail address.",
                organisation=None if organisation is None else organisation.rowid,
            )
        )
    if tx.similar_account_exists(email):
        raise SignInRefused(
            "no_account",
            "Another account has an address that reads like this one.",
            organisation=None if organisation is None else organisation.rowid,
        )
    return make_user(tx, NewAccount(ids.user, email, _name_in(claims) or email, None), at)


def _within(client: Registration, organisation: Organisation | None) -> int | None:
    """Return the organisation (storage key) whose invitations a provider's users accept, None for all.

    A provider of one organisation decides which addresses it calls verified, and may not join its users to others.
    """
    if client.organisation is None:
        return None
    return NO_ORGANISATION if organisation is None else organisation.rowid


def within_reach(reader: OrganisationReader, client: Registration, user: User) -> bool:
    """Return whether a provider may sign a user in: one of an organisation only accounts of that organisation alone.

    The operators of such a provider decide whom it signs in, and may not come into another organisation by it.
    """
    if client.organisation is None:
        return True
    organisation = organisation_of(reader, client)
    if organisation is None:
        return False
    memberships = reader.memberships(user.rowid, (-1, -1), _ALL)
    elsewhere = any(each.organisation.rowid != organisation.rowid for each in memberships)
    return not elsewhere and user.home in (None, organisation.rowid)


def _with_role(tx: BindingTransaction, organisation: Organisation, user: User, role: Role, at: int) -> User:
    """Return the user as a member with this role. The last owner stays an owner."""
    member = tx.organisation_member(organisation.rowid, user.id)
    if member is None:
        return join(tx, organisation.rowid, user, role, at).user
    last_owner = member.role == "owner" and tx.owners(organisation.rowid) == 1
    if member.role != role and not last_owner:
        tx.set_role(organisation.rowid, user.rowid, role)
    return member.user


def _no_role(organisation: Organisation | None, user: User | None) -> SignInRefused:
    return SignInRefused(
        "no_role",
        "The provider's claims give no role here.",
        organisation=None if organisation is None else organisation.rowid,
        user=user,
    )


def _is_address(email: str) -> bool:
    local, at, domain = email.rpartition("@")
    plain = email.isprintable() and not any(each.isspace() for each in email)
    return bool(local and at and domain) and plain and len(email) <= EMAIL_MAX


def _name_in(claims: Mapping[str, Any]) -> str | None:
    name = claims.get("name")
    if not isinstance(name, str):
        return None
    printable = "".join(each if each.isprintable() else " " for each in name)
    return " ".join(printable.split())[:NAME_MAX] or None
