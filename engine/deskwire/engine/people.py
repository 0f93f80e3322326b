"""Projects, the people of their organisations, and what they may do (decisions 2, 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["owner", "admin", "agent", "viewer"]

_READ: Final = frozenset(
    f"{area}.read" for area in ("conversations", "tickets", "surveys", "translations", "contacts", "memory")
)
_AGENT: Final = _READ | {
    "conversations.reply",
    "conversations.manage",
    "tickets.manage",
    "contacts.manage",
    "memory.manage",
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


@dataclass(frozen=True, slots=True)
class Project:
    """A project: what conversations, keys and endpoints belong to. `rowid` is its storage key."""

    rowid: int
    id: str
    organisation: int
    name: str
    stream_key: str


@dataclass(frozen=True, slots=True)
class User:
    """A person who can sign in."""

    rowid: int
    id: str
    email: str
    name: str
    password_hash: str | None


@dataclass(frozen=True, slots=True)
class ServerKey:
    """A project's server key, of which only a hash is kept. Times are in milliseconds."""

    rowid: int
    id: str
    project: Project
    last_used_at: int | None
    revoked_at: int | None
