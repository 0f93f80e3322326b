"""Listings of conversations: which they show, and where they go on."""

from __future__ import annotations

from dataclasses import dataclass

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation


@dataclass(frozen=True, slots=True)
class ConversationFilter:
    """The filter of a listing; None means any."""

    contact: int | None = None
    status: str | None = None
    archived: bool | None = None
    assignee: str | None = None
    text: str | None = None
    hidden: bool = True


@dataclass(frozen=True, slots=True)
class Page:
    """The place where a newest-first listing goes on: after this activity (ms) and row."""

    activity: int
    rowid: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A conversation in a listing."""

    conversation: Conversation
    contact: Contact
    at: Page
