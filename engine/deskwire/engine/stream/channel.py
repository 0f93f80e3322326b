"""Channel names, and the events that each channel carries (decisions 5; Pusher protocol, channel names)."""

from __future__ import annotations

import re
from typing import Final, Literal, assert_never

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.errors import Forbidden
from deskwire.engine.core.ids import is_id
from deskwire.engine.events.log import Source
from deskwire.engine.events.types import EphemeralEvent, Topic

Kind = Literal["project", "conversation", "contact"]

_NAME: Final = re.compile(r"private-(project|conversation|contact)-([A-Za-z0-9_\-=@,.;]+)")
_NAME_LIMIT: Final = 164


class Channel(Struct, frozen=True):
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
    channel = named_channel(project.rowid, name)
    if channel is not None and (channel.kind != "project" or channel.subject == project.id):
        return channel
    raise Forbidden(
        "There is no such channel. A project has private-project-<project id>, "
        "private-conversation-<conversation id> and private-contact-<userId>.",
        code="unknown_channel",
    )


def named_channel(project: int, name: str) -> Channel | None:
    """Return the channel of this name, of the project with this storage key; None if no channel has such a name."""
    match = _NAME.fullmatch(name) if len(name) <= _NAME_LIMIT else None
    if match is None:
        return None
    kind: Kind = match[1]  # type: ignore[assignment]  # the pattern has no other
    subject = match[2]
    if kind == "conversation" and not is_id(subject, "cnv"):
        return None
    return Channel(project, name, kind, subject)


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
