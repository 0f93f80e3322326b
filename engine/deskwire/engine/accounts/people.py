"""Organisations, projects, users, members and server keys, and the permissions of roles (decisions 2, 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct

BuiltInRole = Literal["owner", "admin", "agent", "viewer"]
ROLES: Final[tuple[BuiltInRole, ...]] = get_args(BuiltInRole)
"""The roles that every organisation has."""

Role = str
"""The id of a role: the name of a built-in one, or `rol_…` for one of the organisation's own."""

_READ: Final = frozenset(
    f"{area}.read" for area in ("conversations", "tickets", "surveys", "translations", "contacts", "memory")
)
_AGENT: Final = _READ | {
    "conversations.reply",
    "conversations.manage",
    "tickets.manage",
    "contacts.manage",
    "memory.manage",
    "snippets.manage",
}
_ADMIN: Final = _AGENT | {
    "conversations.delete",
    "surveys.manage",
    "translations.manage",
    "webhooks.manage",
    "projects.manage",
    "members.manage",
}
PERMISSIONS: Final[Mapping[str, frozenset[str]]] = {
    "viewer": _READ,
    "agent": _AGENT,
    "admin": _ADMIN,
    "owner": _ADMIN,
}
"""The permissions of the built-in roles. Those of a member come with the membership."""

READ: Final = "conversations.read"
"""The permission of members whom notes can mention, and who can follow conversations."""

WORK: Final = "conversations.reply"
"""The permission of members to whom conversations and tickets can be assigned."""


class GrantedRole(Struct, frozen=True):
    """The role that a member has, with its permissions at the moment."""

    id: Role
    permissions: frozenset[str]


def built_in_role(role: BuiltInRole) -> GrantedRole:
    """Return a built-in role with its permissions."""
    return GrantedRole(role, PERMISSIONS[role])


class ProjectSettings(Struct, frozen=True):
    """The settings of a project (decisions 4 and 7).

    Args:
        memory_enabled: whether contacts have memory entries.
        archived_retention_days: days after which an archived conversation is deleted, None for never.
        primary_language, languages: BCP 47 tags in their usual case. The primary one is among `languages`.
        upload_quota_bytes: total size of the project's uploads.
    """

    memory_enabled: bool = True
    archived_retention_days: int | None = 365
    primary_language: str = "en"
    languages: tuple[str, ...] = ("en",)
    upload_quota_bytes: int = 10 << 30


DEFAULT_SETTINGS: Final = ProjectSettings()


class Project(Struct, frozen=True):
    """A project, which owns conversations, keys and endpoints. `rowid` is its storage key."""

    rowid: int
    id: str
    organisation: int
    name: str
    stream_key: str
    settings: ProjectSettings = DEFAULT_SETTINGS
    created_at: int = 0


class Organisation(Struct, frozen=True):
    """An organisation, which has members and owns projects.

    Args:
        session_idle_s, session_max_s: limits of its members' sessions in seconds, None for the installation's.
        second_factor: whether it requires a second factor of its members.
    """

    rowid: int
    id: str
    name: str
    created_at: int
    session_idle_s: int | None = None
    session_max_s: int | None = None
    second_factor: bool = False


class User(Struct, frozen=True):
    """A person who can sign in.

    Args:
        password_hash: None if an identity provider signs the user in.
        password_temporary: whether the password is a one-time password, with which the user can only set another one.
        password_made_at: creation time (ms) of a one-time password, from which its expiry follows.
        generation: number of password changes. A change ends all tokens with a smaller one.
        home: storage key of the organisation for which the account or its password was made, and whose admins may know the
            password. None if there is none.
    """

    rowid: int
    id: str
    email: str
    name: str
    password_hash: str | None
    password_temporary: bool = False
    generation: int = 0
    created_at: int = 0
    home: int | None = None
    password_made_at: int | None = None


class Membership(Struct, frozen=True):
    """A membership of a user, seen from the user."""

    organisation: Organisation
    role: Role
    joined_at: int
    permissions: frozenset[str]


class Member(Struct, frozen=True):
    """A membership of a user, seen from the organisation."""

    user: User
    role: Role
    joined_at: int
    permissions: frozenset[str]


class ServerKey(Struct, frozen=True):
    """A server key of a project. Only its hash is stored. Times are in milliseconds."""

    rowid: int
    id: str
    project: Project
    last_used_at: int | None
    revoked_at: int | None
    label: str = ""
    tail: str = ""
    created_at: int = 0
    expires_at: int | None = None


AssigneeType = Literal["user", "team"]
ASSIGNEE_TYPES: Final[tuple[AssigneeType, ...]] = get_args(AssigneeType)


class Assignee(Struct, frozen=True):
    """The user or team to which a conversation is assigned.

    `name` is the name at the time of assignment.
    """

    type: AssigneeType
    id: str
    name: str
