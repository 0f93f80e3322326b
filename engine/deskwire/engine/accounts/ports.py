"""The queries and changes of a store that accounts need.

`AccountReader` is what other domains and each request ask for: projects, server keys, users and roles.
`OrganisationReader` adds what managing organisations, members, projects and keys needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from deskwire.engine.accounts.people import Member, Membership, Organisation, Project, Role, ServerKey, User


class AccountReader(Protocol):
    """Queries on projects, server keys and users."""

    def has_projects(self) -> bool:
        """Tell whether there is any project."""

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
        """Return the user with this e-mail address, whatever its case; accents count (`core.folding.address_key`)."""

    def similar_account_exists(self, email: str) -> bool:
        """Return whether there is a user whose e-mail address is the same once it is folded."""

    def role(self, organisation: int, user: int) -> Role | None:
        """Return the user's role in the organisation, None for no member."""

    def member_name(self, organisation: int, user_id: str) -> str | None:
        """Return the name of a user of the organisation."""

    def assignee_name(self, organisation: int, user_id: str) -> str | None:
        """Return the name of a user of the organisation who can be given conversations and tickets: no viewer's."""


class AccountTransaction(AccountReader, Protocol):
    """Changes of projects, server keys and users."""

    def lock_across_nodes(self) -> None:
        """Keep other nodes that call this waiting until this commit; what is read behind it they can't change meanwhile."""

    def insert_organisation(self, organisation_id: str, name: str, at: int) -> int:
        """Store a new organisation; return its storage key."""

    def insert_project(
        self, project_id: str, organisation: int, name: str, stream_key: str, at: int
    ) -> Project:
        """Store a new project."""

    def insert_user(self, user_id: str, email: str, name: str, password_hash: str | None, at: int) -> User:
        """Store a new user."""

    def insert_membership(self, organisation: int, user: int, role: Role, at: int) -> None:
        """Make a user a member."""

    def insert_key(self, key_id: str, project: int, key_hash: bytes, tail: str, label: str, at: int) -> None:
        """Store a new server key, as its hash and last characters."""

    def touch_key(self, key: int, at: int) -> None:
        """Note when a server key was last used."""


class OrganisationReader(AccountReader, Protocol):
    """Queries for managing accounts. Ids are storage keys unless said otherwise."""

    def organisation(self, organisation_id: str) -> Organisation | None:
        """Return the organisation with this public id."""

    def organisation_of(self, organisation: int) -> Organisation:
        """Return the organisation with this storage key, which must exist; it may be deleted."""

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
        """Count the users by the algorithm, version and cost that their password hashes begin with."""

    def projects(
        self, organisation: int | None, user: int | None, before: int, limit: int
    ) -> Sequence[Project]:
        """Return projects, newest first, with storage keys smaller than `before`.

        Args:
            organisation: only of this one.
            user: only of organisations that this user is a member of.
        """

    def project_is_used(self, project: int) -> bool:
        """Tell whether a project holds more than keys, teams and the positions of stream consumers."""

    def keys(self, project: int, before: int, limit: int) -> Sequence[ServerKey]:
        """Return a project's keys, newest first, with storage keys smaller than `before`."""

    def key(self, key_id: str) -> ServerKey | None:
        """Return the key with this public id, of any project."""

    def keys_in_force(self, project: int) -> int:
        """Count a project's keys that are not revoked."""


class OrganisationTransaction(OrganisationReader, AccountTransaction, Protocol):
    """Changes of organisations, members, projects and keys."""

    def rename_organisation(self, organisation: int, name: str) -> None:
        """Give an organisation another name."""

    def delete_organisation(self, organisation: int, at: int) -> None:
        """Let no query find an organisation any more by its id, from `at` (ms) on; its name stays for the audit trail."""

    def save_project(self, project: Project) -> None:
        """Store a project's name and settings."""

    def remove_project(self, project: int, at: int) -> None:
        """Let no query find a project any more, and revoke its keys, from `at` (ms) on."""

    def set_role(self, organisation: int, user: int, role: Role) -> None:
        """Change a member's role."""

    def delete_membership(self, organisation: int, user: int) -> None:
        """End a membership, and those in the teams of the organisation's projects."""

    def save_user(self, user: User) -> None:
        """Store a user's name, password and home."""

    def delete_user(self, user: int, at: int) -> None:
        """Leave nothing of a user who is a member of nothing, from `at` (ms) on, but the user id."""

    def revoke_key(self, key: int, at: int) -> None:
        """Let a key be used no more, from `at` (ms) on."""


class CallerCommit(Protocol):
    """The effect of a commit on the rights of callers: of server keys, projects and users."""

    @property
    def callers(self) -> bool:
        """True if anything about server keys or projects has changed."""

    @property
    def people(self) -> bool:
        """True if a user has another password or is gone, or a member has another role or is none any more."""
