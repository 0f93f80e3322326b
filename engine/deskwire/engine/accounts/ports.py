"""What accounts need of a store: projects, server keys, users and their memberships."""

from __future__ import annotations

from typing import Protocol

from deskwire.engine.accounts.people import Project, Role, ServerKey, User


class AccountReader(Protocol):
    """Queries on projects, server keys and users."""

    def has_projects(self) -> bool:
        """Whether there is any project."""

    def project(self, project_id: str) -> Project | None:
        """The project with this id."""

    def project_by_stream_key(self, stream_key: str) -> Project | None:
        """The project of a stream key."""

    def server_key(self, key_hash: bytes) -> ServerKey | None:
        """The key with this SHA-256 hash, revoked ones included."""

    def user(self, user_id: str) -> User | None:
        """The user with this id."""

    def user_by_email(self, email: str) -> User | None:
        """The user with this e-mail address, whatever its case."""

    def role(self, organisation: int, user: int) -> Role | None:
        """The user's role there, None for no member."""

    def member_name(self, organisation: int, user_id: str) -> str | None:
        """The name of a user of the organisation."""


class AccountTransaction(AccountReader, Protocol):
    """Changes of projects, server keys and users."""

    def insert_organisation(self, organisation_id: str, name: str, at: int) -> int:
        """Store a new organisation; returns its storage key."""

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


class CallerCommit(Protocol):
    """What a commit has done to the rights of callers."""

    @property
    def callers(self) -> bool:
        """Whether anything about server keys or projects has changed."""
