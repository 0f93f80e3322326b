"""Channel names, and the events that each channel carries (decisions 5; Pusher protocol, channel names)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, assert_never

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.errors import Forbidden
from deskwire.engine.core.ids import is_id
from deskwire.engine.events.log import Source
from deskwire.engine.events.types import EphemeralEvent, Topic

Kind = Literal["project", "conversation", "contact"]

_NAME: Final = re.compile(r"private-(project|conversation|contact)-([A-Za-z0-9_\-=@,.;]+)")
_NAME_LIMIT: Final = 164


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of one project, which one consumer at a time holds.

    Args:
        project: storage key.
        subject: the id of its project or conversation, or the `userId` of its contact.
    """

    project: int
    name: str
    kind: Kind
    subject: str

    @property
    def source(self) -> Source:
        """The part of the event log that the channel follows."""
        return self.project if self.kind == "project" else Topic(self.project, self.kind, self.subject)


def open_channel(project: Project, name: str) -> Channel:
    """Return the channel `name` as `project` may use it.

    The authorization checks that the project has the conversation or contact; a channel of another project's
    conversation or contact would carry nothing.

    Raises Forbidden (`unknown_channel`) if it is not a channel of this project.
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
        "There is no such channel. A project has private-project-<project id>, "
        "private-conversation-<conversation id> and private-contact-<userId>.",
        code="unknown_channel",
    )


def carries(channel: Channel, event: EphemeralEvent) -> bool:
    """Return whether the channel carries an ephemeral event of its project."""
    match channel.kind:
        case "project":
            return True
        case "conversation":
            return channel.subject == event.conversation_id
        case "contact":
            return channel.subject == event.user_id
        case _:
            assert_never(channel.kind)
