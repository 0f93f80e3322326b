"""The registry of event types, and the envelope that carries each event (contract 2.10, 6.1).

A committed event stands in the log of its project, and in the topics that follow what it is about: its conversation,
and that conversation's contact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, NamedTuple

import orjson
from msgspec import Struct
from msgspec.structs import astuple

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.clock import iso
from deskwire.engine.core.ids import ulid_value

API_VERSION: Final = "2026-11-01"


Audience = Literal["all", "agents", "named"]
Level = Literal[0, 1, 2]


class Kind(Struct, frozen=True):
    """The properties of every event of one type.

    Args:
        numbered: takes the next sequence number of its conversation.
        opt_in: sent only to those who list it or ask for it; never stored.
        directed: sent to one endpoint alone, on demand; on no stream and in no feed, and nobody lists it.
        audience: `agents` are told of it on their stream, and no consumer ever is; `named` is for nobody's stream.
        extension: is sent to the endpoints that name it, and the feed has it for those who name it; nobody else gets it.
        confidential: holds what agents write for agents: an endpoint has to ask for that, too, and the feed never has it.
    """

    type: str
    when: str
    numbered: bool = True
    opt_in: bool = False
    directed: bool = False
    audience: Audience = "all"
    extension: bool = False
    confidential: bool = False

    @property
    def level(self) -> Level:
        """The number that rows of the log have in `internal`: 0 for everybody, 1 for agents, 2 for those who name it alone."""
        return _LEVELS[self.audience]


_LEVELS: Final[Mapping[Audience, Level]] = {"all": 0, "agents": 1, "named": 2}


REGISTRY: Final[Mapping[str, Kind]] = {
    kind.type: kind
    for kind in (
        Kind("conversation.created", "The conversation becomes visible to the customer."),
        Kind(
            "conversation.updated",
            "Fields that the customer can see changed; `data.changed` has their names.",
        ),
        Kind(
            "conversation.closed",
            "The conversation was closed for the customer; `closedBy` is agent, bot or system.",
        ),
        Kind("conversation.reopened", "The conversation was reopened, perhaps by a message of the customer."),
        Kind(
            "conversation.assigned",
            "The assignee of the conversation changed; the conversation has the new one.",
        ),
        Kind(
            "conversation.deleted", "The conversation was deleted permanently: remove it from every mirror."
        ),
        Kind("message.created", "A message that the customer can see was added."),
        Kind("workflow.step.presented", "A workflow step is waiting for the customer."),
        Kind("workflow.completed", "A workflow ended; `reason` is completed or handed_off."),
        Kind(
            "contact.updated",
            "Identity fields of an existing contact changed; after an erasure they are null.",
            numbered=False,
        ),
        Kind("agent.typing.started", "An agent began to type.", numbered=False, opt_in=True),
        Kind("agent.typing.stopped", "An agent stopped typing.", numbered=False, opt_in=True),
        Kind(
            "webhook.test",
            "A test was requested; only the endpoint under test gets it.",
            numbered=False,
            directed=True,
        ),
        Kind(
            "note.created",
            "An agent wrote a note to other agents.",
            numbered=False,
            audience="agents",
            extension=True,
            confidential=True,
        ),
        Kind(
            "conversation.changed",
            "Something changed that no other event shows, or that says nothing of who did it; `changed` has the names.",
            numbered=False,
            audience="agents",
        ),
        Kind("ticket.created", "A ticket was created.", numbered=False, audience="agents", extension=True),
        Kind(
            "ticket.changed",
            "Fields of a ticket changed; `changed` has their names.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        Kind(
            "ticket.deleted",
            "A ticket was deleted permanently.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        Kind(
            "message.redacted",
            "The text or the attachments of a message were redacted, in part or as a whole.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        Kind(
            "message.deleted",
            "A message was deleted permanently.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        Kind(
            "contact.changed",
            "Something of a contact changed that `contact.updated` does not show; `changed` has the names.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        Kind(
            "contact.merged",
            "A contact was merged into another one, which has its conversations, tickets and responses now.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        Kind(
            "survey.response.created",
            "A response to a survey was stored.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        Kind(
            "survey.response.deleted",
            "A response to a survey was deleted, by itself or with its contact.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        Kind(
            "survey.deleted",
            "A survey was deleted with all its responses.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        Kind(
            "conversations.imported",
            "An import without events stored conversations, or messages in them.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        Kind(
            "webhook.circuit.opened",
            "Deliveries to another endpoint kept failing; they are held until a probe succeeds.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        Kind(
            "webhook.circuit.closed",
            "Another endpoint whose deliveries were held is sent them again.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        Kind(
            "webhook.disabled",
            "Another endpoint was disabled: what is made for it is skipped.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        Kind(
            "webhook.enabled",
            "Another endpoint was enabled again.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        Kind(
            "memory.changed",
            "Something that is remembered of a contact was set or deleted.",
            numbered=False,
            audience="agents",
        ),
        Kind(
            "settings.changed",
            "Something that the project is set up with changed: `what` says which kind of thing, `id` which one.",
            numbered=False,
            audience="agents",
        ),
    )
}
"""All types. What goes out to the customer's systems reads one of the parts below."""

CATALOG: Final[Mapping[str, Kind]] = {name: kind for name, kind in REGISTRY.items() if kind.audience == "all"}
"""The types of the contract: what the customer's systems are sent on every channel."""

AGENTS: Final[Mapping[str, Kind]] = {
    name: kind for name, kind in REGISTRY.items() if kind.audience == "agents"
}
"""The types that agents are told of on their stream beside those of the contract: internal events."""

EXTENSIONS: Final[Mapping[str, Kind]] = {name: kind for name, kind in REGISTRY.items() if kind.extension}
"""The types beyond the contract, for those who name them."""

LISTABLE: Final = (*(kind.type for kind in CATALOG.values() if not kind.directed), *EXTENSIONS)
"""The types that an endpoint may list."""

STORED: Final = frozenset(kind.type for kind in CATALOG.values() if not (kind.opt_in or kind.directed))
"""The types that the feed and the stream's replay have."""

CONFIDENTIAL: Final = frozenset(name for name, kind in EXTENSIONS.items() if kind.confidential)
"""The types that an endpoint is sent only if it asks for what agents write for agents, too."""

NAMEABLE: Final = frozenset(EXTENSIONS) - CONFIDENTIAL
"""The types that the feed has beside those of the contract, for whoever names them."""


_READ_WITH: Final = {
    "ticket": "tickets.read",
    "survey": "surveys.read",
    "contact": "contacts.read",
    "webhook": "webhooks.manage",
}


def needed_for(types: Iterable[str]) -> Sequence[str]:
    """Return the permissions that reading events of these types takes, in alphabetical order; none for unknown types."""
    return sorted({_needed(name) for name in types if name in CATALOG or name in EXTENSIONS})


def _needed(name: str) -> str:
    """Return the permission for one type. Those of the contract all tell of conversations and their contacts."""
    area = name.partition(".")[0] if name in EXTENSIONS else ""
    return _READ_WITH.get(area, "conversations.read")


ERASURE: Final = "erasure"
"""The type of the row that stands in a shared log where a conversation was erased: nobody is told of it, so it is none of the above."""

REDACTION: Final = "redaction"
"""The type of the row that stands in a shared log where events were rewritten, whose positions it has: nobody is told of it, either."""


class Draft(Struct, frozen=True):
    """An event that is decided but not yet committed: it has no id and no position."""

    type: str
    sequence: int | None
    data: Mapping[str, Any]


class Agents(NamedTuple):
    """All events of a project, also those that agents alone are told of.

    Args:
        project: storage key.
    """

    project: int


class Named(Struct, frozen=True):
    """All events of a project that whoever names their types may have: those of the contract, and those beyond it.

    Args:
        project: storage key.
    """

    project: int


class Topic(NamedTuple):
    """The events of one conversation, or of one contact with those of its conversations, as a channel follows them.

    A tuple, as each event is looked up by two.

    Args:
        project: storage key.
        subject: the `cnv_` id, or the contact's `userId`. Neither need exist.
    """

    project: int
    kind: Literal["conversation", "contact"]
    subject: str


def topics_of(project: int, data: Mapping[str, Any]) -> tuple[Topic, ...]:
    """Return the topics of an event, by its envelope's `data`, which has them also of what was deleted."""
    conversation = data.get("conversation")
    contact = (data if conversation is None else conversation).get("contact")
    if contact is None:
        return ()
    of_contact = Topic(project, "contact", contact["userId"])
    if conversation is None:
        return (of_contact,)
    return (Topic(project, "conversation", conversation["id"]), of_contact)


def contact_lane(contact: int) -> int:
    """Return the key under which a contact's own events stand beside those of conversations: negative."""
    return -contact


def ticket_lane(ticket: int) -> int:
    """Return the key under which a ticket's events are delivered, and erased: beyond those of conversations."""
    return _TICKETS + ticket


def endpoint_lane(endpoint: int) -> int:
    """Return the key in whose order events about a webhook endpoint are delivered: below those of tickets."""
    return _ENDPOINTS + endpoint


def response_lane(response_id: str) -> int:
    """Return the key under which a survey response's events stand, are delivered and are erased: beyond those of tickets.

    It comes from the random part of the id, as a response's storage key may be given again.
    """
    return RESPONSES | (ulid_value(response_id) & _TICKETS - 1)


_ENDPOINTS: Final = 1 << 60
_TICKETS: Final = 1 << 61
RESPONSES: Final = 1 << 62
"""The first key of survey responses."""


NO_PROJECT: Final = 0
"""Stands in the row of an event that is for one endpoint alone, so that no feed finds it."""


class StoredEvent(Struct, frozen=True, eq=False):
    """A committed event. `body` is the envelope, the same bytes on every channel.

    `position` is its place in the log of the whole installation: it grows in commit order and may
    have holes. `conversation` is the storage key of what the event is about; for a contact by itself it
    is that of `contact_lane`, and for a survey response of `response_lane`. None is for what outlives its subject: a deletion. `topics` come
    with the commit; what is read from the table has none. `ticket` is the storage key of a ticket that it is erased with, too.
    """

    position: int
    id: str
    type: str
    project: int
    conversation: int | None
    sequence: int | None
    body: bytes
    ticket: int | None = None
    topics: tuple[Topic, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Tell whether both are the same event, with topics or without."""
        return isinstance(other, StoredEvent) and astuple(self)[:-1] == astuple(other)[:-1]

    def __hash__(self) -> int:
        return self.position

    @property
    def internal(self) -> bool:
        """True if it is on none of the contract's channels."""
        return self.type not in CATALOG

    @property
    def on_no_stream(self) -> bool:
        """True if not even agents are told of it; so it is with what a newer program has put into a shared log."""
        kind = REGISTRY.get(self.type)
        return kind is None or kind.audience == "named"

    def erased_with(self, lanes: AbstractSet[int]) -> bool:
        """Tell whether it goes when what has these keys is erased: conversations, contacts and tickets by their lanes."""
        return self.conversation in lanes or (self.ticket is not None and ticket_lane(self.ticket) in lanes)


class EphemeralEvent(Struct, frozen=True):
    """An event that is never stored: it is there for those who listen now (decisions 4; ADR 9).

    `body` is the envelope, the same bytes on every channel. What the envelope does not carry, but its way
    to the listeners takes, stands beside it.

    Args:
        project, conversation: storage keys.
        conversation_id: the `cnv_` id.
        user_id: the contact's.
        internal: whether agents alone are told of it.
    """

    id: str
    type: str
    project: int
    conversation: int
    conversation_id: str
    user_id: str
    body: bytes
    internal: bool = False


def encode_envelope(draft: Draft, event_id: str, project_id: str, created_at: int) -> bytes:
    """Return the envelope's bytes, with its fields in the order of contract 2.10."""
    encoded = orjson.dumps(
        {
            "id": event_id,
            "type": draft.type,
            "apiVersion": API_VERSION,
            "createdAt": iso(created_at),
            "projectId": project_id,
            "sequence": draft.sequence,
            "data": draft.data,
        }
    )
    return bytes(memoryview(encoded))  # a copy: what orjson returns keeps the 8 KiB it was written into


def stored_event(
    position: int,
    event_id: str,
    project: Project,
    draft: Draft,
    conversation: int | None,
    at: int,
    *,
    directed: bool,
    ticket: int | None,
) -> StoredEvent:
    """Return an event at its place in the log; one that is `directed` to an endpoint is in no feed and in no topic."""
    internal = REGISTRY[draft.type].audience != "all"
    assert not (internal and (directed or draft.sequence is not None)), (
        "what consumers do not get has no number"
    )
    return StoredEvent(
        position,
        event_id,
        draft.type,
        NO_PROJECT if directed else project.rowid,
        conversation,
        draft.sequence,
        encode_envelope(draft, event_id, project.id, at),
        ticket,
        () if directed or internal else topics_of(project.rowid, draft.data),
    )


def matches(subscribed: frozenset[str], event_type: str) -> bool:
    """Tell whether an endpoint with this `events` list is sent this type.

    An empty list means all of the contract's types except typing (contract 6.2.3, 6.2.4). What goes beyond the contract is
    sent to those who name it; what agents alone are told of nobody can name.
    """
    if subscribed:
        return event_type in subscribed and (event_type in CATALOG or event_type in EXTENSIONS)
    return event_type in STORED
