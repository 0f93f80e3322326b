"""Projects, the people of their organisations, and what they may do (decisions 2, 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from msgspec import Struct

Role = Literal["owner", "admin", "agent", "viewer"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

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
PERMISSIONS: Final[Mapping[Role, frozenset[str]]] = {
    "viewer": _READ,
    "agent": _AGENT,
    "admin": _ADMIN,
    "owner": _ADMIN,
}


class ProjectSettings(Struct, frozen=True):
    """The settings of a project (decisions 4 and 7).

    Args:
        memory_enabled: whether contacts have memory entries.
        archived_retention_days: days after which an archived conversation is deleted, None for never.
        primary_language, languages: BCP 47 tags in their usual case; the primary one is among `languages`.
        upload_quota_bytes: the bytes that the project's uploads may take up together.
    """

    memory_enabled: bool = True
    archived_retention_days: int | None = 365
    primary_language: str = "en"
    languages: tuple[str, ...] = ("en",)
    upload_quota_bytes: int = 10 << 30


DEFAULT_SETTINGS: Final = ProjectSettings()


class Project(Struct, frozen=True):
    """A project, to which conversations, keys and endpoints belong. `rowid` is its storage key."""

    rowid: int
    id: str
    organisation: int
    name: str
    stream_key: str
    settings: ProjectSettings = DEFAULT_SETTINGS
    created_at: int = 0


class Organisation(Struct, frozen=True):
    """An organisation, of which users are members and to which projects belong."""

    rowid: int
    id: str
    name: str
    created_at: int


class User(Struct, frozen=True):
    """A person who can sign in.

    Args:
        password_hash: None for one who signs in elsewhere.
        password_temporary: somebody else has made the password up; it is good for setting another one.
        password_made_at: when (ms) a temporary password was made, which ends some time after that.
        generation: grows with each new password, and ends the tokens that were issued before it.
        home: the organisation whose people may know the password, as the account or its password was made for it
            (storage key); None for none so far.
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
    """An organisation that a user is a member of."""

    organisation: Organisation
    role: Role
    joined_at: int


class Member(Struct, frozen=True):
    """A user who is a member of an organisation."""

    user: User
    role: Role
    joined_at: int


class ServerKey(Struct, frozen=True):
    """A project's server key, of which only a hash is kept. Times are in milliseconds."""

    rowid: int
    id: str
    project: Project
    last_used_at: int | None
    revoked_at: int | None
    label: str = ""
    tail: str = ""
    created_at: int = 0


AssigneeType = Literal["user", "team"]
ASSIGNEE_TYPES: Final[tuple[AssigneeType, ...]] = get_args(AssigneeType)


class Assignee(Struct, frozen=True):
    """The user or team that looks after a conversation; `name` as it was when assigned."""

    type: AssigneeType
    id: str
    name: str
