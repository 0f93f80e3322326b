"""Channel names, and what each lets through (decisions 5; Pusher protocol, channel names)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

import orjson

from deskwire.engine.errors import Forbidden
from deskwire.engine.events import StoredEvent
from deskwire.engine.ids import is_id
from deskwire.engine.people import Project

Kind = Literal["project", "conversation", "contact"]

_NAME: Final = re.compile(r"private-(project|conversation|contact)-([A-Za-z0-9_\-=@,.;]+)")
_NAME_LIMIT: Final = 164
_REMEMBERED: Final = 8192


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of one project: what a consumer holds.

    Args:
        project: storage key.
        subject: the id of what it is about: project or conversation, or the contact's `userId`.
    """

    project: int
    name: str
    kind: Kind
    subject: str


def open_channel(project: Project, name: str) -> Channel:
    """The channel `name` as `project` may use it.

    A conversation or contact need not exist (yet): of what is not the project's, nothing ever comes.

    Raises Forbidden (`unknown_channel`): not a channel of this project.
    """
    match = _NAME.fullmatch(name) if len(name) <= _NAME_LIMIT else None
    if match is not None:
        kind, subject = match.groups()
        if kind == "contact":
            return Channel(project.rowid, name, "contact", subject)
        if kind == "conversation" and is_id(subject, "cnv"):
            return Channel(project.rowid, name, "conversation", subject)
        if kind == "project" and subject == project.id:
            return Channel(project.rowid, name, "project", subject)
    raise Forbidden(
        f"There is no such channel. This project has private-project-{project.id}, "
        "private-conversation-<conversation id> and private-contact-<userId>.",
        code="unknown_channel",
    )


class Subjects:
    """What events are about, read from each envelope once for all channels that ask."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str | None, str | None]] = {}

    def admits(self, channel: Channel, event: StoredEvent) -> bool:
        """Whether the channel carries the event, which is of its project."""
        if channel.kind == "project":
            return True
        conversation, contact = self._of(event)
        return channel.subject == (conversation if channel.kind == "conversation" else contact)

    def _of(self, event: StoredEvent) -> tuple[str | None, str | None]:
        """Conversation id and contact's `userId`; the envelope has them also of what was deleted."""
        found = self._known.get(event.id)
        if found is None:
            found = self._known[event.id] = _subjects(orjson.loads(event.body))
            if len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
        return found


def _subjects(envelope: object) -> tuple[str | None, str | None]:
    match envelope:
        case {"data": {"conversation": {"id": str(conversation), "contact": {"userId": str(contact)}}}}:
            return conversation, contact
        case {"data": {"contact": {"userId": str(contact)}}}:
            return None, contact
        case {"data": {"conversationId": str(conversation)}}:  # typing
            return conversation, None
        case _:
            return None, None
