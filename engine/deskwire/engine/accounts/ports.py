"""The store port of accounts.

Other domains and each request need only `AccountReader`: projects, server keys, users and roles. `OrganisationReader` adds the
queries for managing organisations, members, projects and keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from deskwire.engine.accounts.credential_ends import CredentialEnds, CredentialType, EndingCredential
from deskwire.engine.accounts.people import (
    GrantedRole,
    Member,
    Membership,
    Organisation,
    Project,
    Role,
    ServerKey,
    User,
)


class AccountReader(Protocol):
    """Queries on projects, server keys and users."""

    def has_projects(self) -> bool:
        """Return whether there is any project."""

    def project(self, project_id: str) -> Project | None:
        """Return the project with this id."""

    def project_with(self, project: int) -> Project | None:
        """Return the project with this storage key."""

    def project_by_stream_key(self, stream_key: str) -> Project | None:
        """Return the project of a stream key."""

    def server_key(self, key_hash: bytes) -> ServerKey | None:
        """Return the key with this SHA-256 hash, revoked ones included."""

    def user(self, user_id: str) -> User | None:
        """Return the user with this id."""

    def user_by_email(self, email: str) -> User | None:
        """Return the user with this e-mail address, compared by `core.folding.address_key`: case is ignored, accents count."""

    def similar_account_exists(self, email: str) -> bool:
        """Return whether a user has an e-mail address with the same folded form."""

    def role(self, organisation: int, user: int) -> GrantedRole | None:
        """Return the user's role in the organisation, None if the user is not a member."""

    def granted_role(self, organisation: int, role: Role) -> GrantedRole | None:
        """Return the organisation's role with this id, None if it has none."""

    def member_name(self, organisation: int, user_id: str) -> str | None:
        """Return the name of a user of the organisation."""

    def assignee_name(self, organisation: int, user_id: str) -> str | None:
        """Return the name of a member who can be assigned conversations and tickets.

        None for members whose role lacks the permission WORK.
        """


class AccountTransaction(AccountReader, Protocol):
    """Changes of projects, server keys and users."""

    def lock_across_nodes(self) -> None:
        """Block other nodes that call this until this transaction ends, so that later reads here stay valid."""

    def insert_organisation(self, organisation_id: str, name: str, at: int) -> int:
        """Store a new organisation. Return its storage key."""

    def insert_project(
        self, project_id: str, organisation: int, name: str, stream_key: str, at: int
    ) -> Project:
        """Store a new project."""

    def insert_user(self, user_id: str, email: str, name: str, password_hash: str | None, at: int) -> User:
        """Store a new user."""

    def insert_membership(self, organisation: int, user: int, role: Role, at: int) -> None:
        """Store a new membership."""

    def insert_key(
        self,
        key_id: str,
        project: int,
        key_hash: bytes,
        tail: str,
        label: str,
        at: int,
        expires_at: int | None = None,
    ) -> None:
        """Store a new server key, as its hash and last characters."""

    def touch_key(self, key: int, at: int) -> None:
        """Note when a server key was last used."""


class OrganisationReader(AccountReader, Protocol):
    """Queries for managing accounts. Ids are storage keys unless said otherwise."""

    def organisation(self, organisation_id: str) -> Organisation | None:
        """Return the organisation with this public id."""

    def organisation_of(self, organisation: int) -> Organisation:
        """Return the organisation with this storage key. It must exist but may be deleted."""

    def organisations(self) -> Sequence[Organisation]:
        """Return all organisations, oldest first."""

    def memberships(self, user: int, after: tuple[int, int], limit: int) -> Sequence[Membership]:
        """Return the user's memberships, oldest first, after the one with this time (ms) and organisation."""

    def members(self, organisation: int, after: int, limit: int) -> Sequence[Member]:
        """Return members whose user's storage key is larger than `after`, in that order."""

    def organisation_member(self, organisation: int, user_id: str) -> Member | None:
        """Return the member with this user id."""

    def owners(self, organisation: int) -> int:
        """Count the owners of an organisation."""

    def users(self) -> Sequence[User]:
        """Return all users, oldest first."""

    def password_costs(self) -> Mapping[str, int]:
        """Return the number of users by the prefix of their password hashes: algorithm, version and cost."""

    def projects(
        self, organisation: int | None, user: int | None, before: int, limit: int
    ) -> Sequence[Project]:
        """Return projects, newest first, with storage keys smaller than `before`.

        Args:
            organisation: storage key, for the projects of this organisation only.
            user: storage key, for the organisations of this member only.
        """

    def project_is_used(self, project: int) -> bool:
        """Return whether a project has data other than keys, teams and positions of stream consumers."""

    def keys(self, project: int, before: int, limit: int) -> Sequence[ServerKey]:
        """Return a project's keys, newest first, with storage keys smaller than `before`."""

    def key(self, key_id: str) -> ServerKey | None:
        """Return the key with this public id, of any project."""

    def keys_in_force(self, project: int, at: int) -> int:
        """Count a project's keys that are neither revoked nor expired at this time (ms)."""

    def credentials_ending(self, project: int, after: int, until: int) -> Sequence[EndingCredential]:
        """Return a project's unrevoked server keys and machine credentials that end between two times (ms), soonest first.

        At most ENDING_MAX. Those whose whole life is no longer than this period are left out: they were made for a short use.
        """

    def count_credential_ends(self, after: int, until: int) -> Mapping[CredentialType, CredentialEnds]:
        """Count the credentials of all projects by type: those of `credentials_ending`, and unrevoked ones without an end."""


class OrganisationTransaction(OrganisationReader, AccountTransaction, Protocol):
    """Changes of organisations, members, projects and keys."""

    def save_organisation(self, organisation: Organisation) -> None:
        """Store an organisation's name and limits."""

    def delete_organisation(self, organisation: int, at: int) -> None:
        """Mark an organisation as deleted at `at` (ms), so that no query by id finds it.

        Its name stays for the audit trail.
        """

    def save_project(self, project: Project) -> None:
        """Store a project's name and settings."""

    def remove_project(self, project: int, at: int) -> None:
        """Mark a project as removed at `at` (ms), so that no query finds it, and revoke its keys."""

    def set_role(self, organisation: int, user: int, role: Role) -> None:
        """Change a member's role."""

    def delete_membership(self, organisation: int, user: int) -> None:
        """End a membership in the organisation and in the teams of its projects."""

    def save_user(self, user: User) -> None:
        """Store a user's name, password and home."""

    def forget_ways_to_sign_in(self, user: int) -> None:
        """Delete the second factors and identities of a user (storage key) whose account changes hands, with audit records."""

    def delete_user(self, user: int, at: int) -> None:
        """Erase a user without memberships, except for the user id, at `at` (ms)."""

    def revoke_key(self, key: int, at: int) -> None:
        """Revoke a key at `at` (ms)."""


class CallerCommit(Protocol):
    """The effect of a commit on the rights of callers: of server keys, projects and users."""

    @property
    def callers(self) -> bool:
        """True if a server key, machine credential or project has changed."""

    @property
    def people(self) -> bool:
        """True if a user changed the password or was deleted, a member joined, changed the role or was removed, or an organisation changed."""
