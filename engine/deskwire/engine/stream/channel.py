"""Channel names, and the events that each channel carries (decisions 5; Pusher protocol, channel names)."""

from __future__ import annotations

import re
from typing import Final, Literal, assert_never

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import ContactFinder, find_contact
from deskwire.engine.core.errors import Forbidden
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.values import replace
from deskwire.engine.events.log import Source
from deskwire.engine.events.types import EphemeralEvent, Topic

ChannelKind = Literal["project", "conversation", "contact"]

_NAME: Final = re.compile(r"private-(project|conversation|contact)-([A-Za-z0-9_\-=@,.;]+)")
_NAME_LENGTH_MAX: Final = 164


class StreamChannel(Struct, frozen=True, eq=False):
    """A channel of one project, identified by project and name. One consumer at a time holds it.

    Args:
        project: storage key.
        subject: the id of its project or conversation, or the `userId` of its contact (see `with_user_id`).
    """

    project: int
    name: str
    kind: ChannelKind
    subject: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamChannel) and (self.project, self.name) == (other.project, other.name)

    def __hash__(self) -> int:
        return hash((self.project, self.name))

    @property
    def source(self) -> Source:
        """The part of the event log that the channel follows."""
        return self.project if self.kind == "project" else Topic(self.project, self.kind, self.subject)


def open_channel(project: Project, name: str) -> StreamChannel:
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
        "private-conversation-<conversation id>, private-contact-<userId> and private-contact-<contact id>. The last "
        "is for a userId with characters that a channel name can't have (it has A-Z a-z 0-9 _ - = @ , . ;).",
        code="unknown_channel",
    )


def named_channel(project: int, name: str) -> StreamChannel | None:
    """Return the channel of this name in the project with this storage key; None if the name is not valid."""
    match = _NAME.fullmatch(name) if len(name) <= _NAME_LENGTH_MAX else None
    if match is None:
        return None
    kind: ChannelKind = match[1]  # type: ignore[assignment]  # the pattern has no other
    subject = match[2]
    if kind == "conversation" and not is_id(subject, "cnv"):
        return None
    return StreamChannel(project, name, kind, subject)


def with_user_id(reader: ContactFinder, channel: StreamChannel) -> StreamChannel:
    """Return the channel with the contact's `userId` as its subject if its name has the contact's `con_` id.

    A contact whose `userId` looks like such an id takes precedence. Raises NotFound (`contact_not_found`, `contact_merged`).
    """
    if channel.kind != "contact" or not is_id(channel.subject, "con"):
        return channel
    if reader.contact(channel.project, channel.subject) is not None:
        return channel
    return replace(
        channel, subject=find_contact(reader, channel.project, channel.subject, by_id=True).user_id
    )


def carries(channel: StreamChannel, event: EphemeralEvent) -> bool:
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
