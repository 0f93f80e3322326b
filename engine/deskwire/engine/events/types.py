"""The registry of event types, and the envelope that carries each event (contract 2.10, 6.1).

A committed event is in the log of its project. It is also in the topics of its conversation and of that conversation's
contact, which stream channels follow.
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


class EventSpec(Struct, frozen=True):
    """The properties of every event of one type.

    Args:
        when: the description in the public reference.
        numbered: takes the next sequence number of its conversation.
        opt_in: sent only to endpoints that list it and consumers that ask for it; never stored.
        directed: sent to one endpoint on demand; it is on no stream and in no feed, and no endpoint can list it.
        audience: `all` for every channel, `agents` for agents' streams only, `named` for no stream.
        extension: beyond the contract; sent only to endpoints and feed readers that name the type.
        confidential: contains text that agents wrote for agents; it is never in the feed, and an endpoint must opt in.
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
        """The value of the `internal` column: 0 for `all`, 1 for `agents`, 2 for `named`."""
        return _LEVELS[self.audience]


_LEVELS: Final[Mapping[Audience, Level]] = {"all": 0, "agents": 1, "named": 2}


# All event types. Code that sends events to the customer's systems uses one of the subsets below.
REGISTRY: Final[Mapping[str, EventSpec]] = {
    kind.type: kind
    for kind in (
        EventSpec("conversation.created", "The conversation becomes visible to the customer."),
        EventSpec(
            "conversation.updated",
            "Fields that the customer can see changed; `data.changed` has their names.",
        ),
        EventSpec(
            "conversation.closed",
            "The conversation was closed for the customer; `closedBy` is agent, bot or system.",
        ),
        EventSpec(
            "conversation.reopened", "The conversation was reopened, perhaps by a message of the customer."
        ),
        EventSpec(
            "conversation.assigned",
            "The assignee of the conversation changed; the conversation has the new one.",
        ),
        EventSpec(
            "conversation.deleted", "The conversation was deleted permanently: remove it from every mirror."
        ),
        EventSpec("message.created", "A message that the customer can see was added."),
        EventSpec("workflow.step.presented", "A workflow step is waiting for the customer."),
        EventSpec("workflow.completed", "A workflow ended; `reason` is completed or handed_off."),
        EventSpec(
            "contact.updated",
            "Identity fields of an existing contact changed; after an erasure they are null.",
            numbered=False,
        ),
        EventSpec("agent.typing.started", "An agent began to type.", numbered=False, opt_in=True),
        EventSpec("agent.typing.stopped", "An agent stopped typing.", numbered=False, opt_in=True),
        EventSpec(
            "webhook.test",
            "A test was requested; only the endpoint under test gets it.",
            numbered=False,
            directed=True,
        ),
        EventSpec(
            "note.created",
            "An agent wrote a note to other agents.",
            numbered=False,
            audience="agents",
            extension=True,
            confidential=True,
        ),
        EventSpec(
            "conversation.changed",
            "A change that no other event shows, or shows without its author; `changed` has the fields' names.",
            numbered=False,
            audience="agents",
        ),
        EventSpec(
            "ticket.created", "A ticket was created.", numbered=False, audience="agents", extension=True
        ),
        EventSpec(
            "ticket.changed",
            "Fields of a ticket changed; `changed` has their names.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        EventSpec(
            "ticket.deleted",
            "A ticket was deleted permanently.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        EventSpec(
            "message.redacted",
            "The text or the attachments of a message were redacted, in part or as a whole.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        EventSpec(
            "message.deleted",
            "A message was deleted permanently.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        EventSpec(
            "message.reached",
            "A client of the contact received the messages up to this one.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        EventSpec(
            "message.seen",
            "A client of the contact showed the messages up to this one.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        EventSpec(
            "contact.changed",
            "Fields of a contact changed that `contact.updated` does not show; `changed` has their names.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        EventSpec(
            "contact.session.started",
            "A customer's session in a channel was stored: of a signed-in customer, or with a visitor's first message.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        EventSpec(
            "contact.merged",
            "A contact was merged into another one, which has its conversations, tickets and responses now.",
            numbered=False,
            audience="agents",
            extension=True,
        ),
        EventSpec(
            "survey.response.created",
            "A response to a survey was stored.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        EventSpec(
            "survey.response.deleted",
            "A response to a survey was deleted, alone or together with its contact.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        EventSpec(
            "survey.deleted",
            "A survey was deleted with all its responses.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        EventSpec(
            "conversations.imported",
            "An import without events stored conversations, or messages in them.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        EventSpec(
            "webhook.circuit.opened",
            "Deliveries to another endpoint kept failing; they are held until a probe succeeds.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        EventSpec(
            "webhook.circuit.closed",
            "Held deliveries to another endpoint are sent again.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        EventSpec(
            "webhook.disabled",
            "Another endpoint was disabled: its deliveries are skipped.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        EventSpec(
            "webhook.enabled",
            "Another endpoint was enabled again.",
            numbered=False,
            audience="named",
            extension=True,
        ),
        EventSpec(
            "memory.changed",
            "A memory entry of a contact was set or deleted.",
            numbered=False,
            audience="agents",
        ),
        EventSpec(
            "settings.changed",
            "A part of the project's setup changed; `what` is its kind, and `id` the object.",
            numbered=False,
            audience="agents",
        ),
    )
}

# The types of the contract, which every channel to the customer's systems carries.
CATALOG: Final[Mapping[str, EventSpec]] = {
    name: kind for name, kind in REGISTRY.items() if kind.audience == "all"
}

# The types of internal events: agents' streams carry them in addition to the contract's types.
AGENTS: Final[Mapping[str, EventSpec]] = {
    name: kind for name, kind in REGISTRY.items() if kind.audience == "agents"
}

# The types beyond the contract, sent only to receivers that name them.
EXTENSIONS: Final[Mapping[str, EventSpec]] = {name: kind for name, kind in REGISTRY.items() if kind.extension}

# The types that an endpoint may list in `events`.
LISTABLE: Final = (*(kind.type for kind in CATALOG.values() if not kind.directed), *EXTENSIONS)

# The contract's types that the feed and the stream's replay contain.
STORED: Final = frozenset(kind.type for kind in CATALOG.values() if not (kind.opt_in or kind.directed))

# The extension types that an endpoint receives only if it also asks for confidential events.
CONFIDENTIAL: Final = frozenset(name for name, kind in EXTENSIONS.items() if kind.confidential)

NAMEABLE: Final = frozenset(EXTENSIONS) - CONFIDENTIAL  # the extension types that a feed reader may name


_READ_WITH: Final = {
    "ticket": "tickets.read",
    "survey": "surveys.read",
    "contact": "contacts.read",
    "webhook": "webhooks.manage",
}


def permissions_to_read(types: Iterable[str]) -> Sequence[str]:
    """Return the permissions needed to read events of these types, sorted.

    Unknown types need none.
    """
    return sorted({_needed(name) for name in types if name in CATALOG or name in EXTENSIONS})


def _needed(name: str) -> str:
    # All types of the contract are about conversations and their contacts.
    area = name.partition(".")[0] if name in EXTENSIONS else ""
    return _READ_WITH.get(area, "conversations.read")


# The type of the row that marks an erasure in a log that several nodes share; it is never sent to any receiver.
ERASURE: Final = "erasure"

# The type of the row that marks rewritten events in a shared log and holds their positions; it is never sent either.
REDACTION: Final = "redaction"


class EventDraft(Struct, frozen=True):
    """An event before its commit: it has no id and no position yet."""

    type: str
    sequence: int | None
    data: Mapping[str, Any]


class AgentsSource(NamedTuple):
    """All events of a project for its agents, internal events included.

    Args:
        project: storage key.
    """

    project: int


class NamedTypesSource(Struct, frozen=True):
    """All events of a project for readers that name event types: the contract's types and the extensions.

    Args:
        project: storage key.
    """

    project: int


class Topic(NamedTuple):
    """The key of the events on one channel: those of a conversation, or of a contact and its conversations.

    Args:
        project: storage key.
        subject: the `cnv_` id, or the contact's `userId`; the conversation or contact need not exist.
    """

    # A tuple because tuples hash fast, and each event is looked up by two topics.

    project: int
    kind: Literal["conversation", "contact"]
    subject: str


def topics_of(project: int, data: Mapping[str, Any]) -> tuple[Topic, ...]:
    """Return the topics of an event from its envelope's `data`, which names them for deletions as well."""
    conversation = data.get("conversation")
    contact = (data if conversation is None else conversation).get("contact")
    if contact is None:
        return ()
    of_contact = Topic(project, "contact", contact["userId"])
    if conversation is None:
        return (of_contact,)
    return (Topic(project, "conversation", conversation["id"]), of_contact)


# A lane is the key of a group of events that are delivered in order and erased together. Conversations use their own
# storage key, and the other lanes are in ranges that no storage key reaches.


def contact_lane(contact: int) -> int:
    """Return the lane of a contact's own events: negative, so that it differs from every conversation's key."""
    return -contact


def ticket_lane(ticket: int) -> int:
    """Return the lane in which a ticket's events are delivered and erased: above all conversations' keys."""
    return _TICKETS + ticket


def endpoint_lane(endpoint: int) -> int:
    """Return the lane in which events about a webhook endpoint are delivered: below the lanes of tickets."""
    return _ENDPOINTS + endpoint


def response_lane(response_id: str) -> int:
    """Return the lane in which a survey response's events are stored, delivered and erased: above all tickets' lanes."""
    # From the random part of the id, because a response's storage key may be reused.
    return RESPONSES | (ulid_value(response_id) & _TICKETS - 1)


_ENDPOINTS: Final = 1 << 60
_TICKETS: Final = 1 << 61
RESPONSES: Final = 1 << 62  # the lowest lane of survey responses


NO_PROJECT: Final = 0
"""Stands in the row of an event that is for one endpoint alone, so that no feed finds it."""


class StoredEvent(Struct, frozen=True, eq=False):
    """A committed event.

    Args:
        position: place in the log of the installation; positions grow in commit order and may have holes.
        conversation: storage key of the event's conversation, `contact_lane` of its contact, or `response_lane` of its
            survey response. None for a deletion, which outlives its subject.
        body: the envelope, the same bytes on every channel.
        ticket: storage key of the ticket together with which the event is erased, if there is one.
        topics: set at the commit only; an event read from the table has none.
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
        """Compare all fields but the topics, which events read from the table lack."""
        return isinstance(other, StoredEvent) and astuple(self)[:-1] == astuple(other)[:-1]

    def __hash__(self) -> int:
        return self.position

    @property
    def internal(self) -> bool:
        """True if no channel of the contract carries the event."""
        return self.type not in CATALOG

    @property
    def on_no_stream(self) -> bool:
        """True if not even agents' streams carry the event.

        An unknown type, which a node with a newer version stored in a shared log, is on no stream either.
        """
        kind = REGISTRY.get(self.type)
        return kind is None or kind.audience == "named"

    def erased_with(self, lanes: AbstractSet[int]) -> bool:
        """Return whether an erasure of these lanes (conversations, contacts, tickets) includes the event."""
        return self.conversation in lanes or (self.ticket is not None and ticket_lane(self.ticket) in lanes)


class EphemeralEvent(Struct, frozen=True):
    """An event that is never stored and reaches only current listeners (decisions 4; ADR 5).

    Args:
        project, conversation: storage keys, by which listeners are found.
        conversation_id: the `cnv_` id.
        user_id: the contact's `userId`.
        body: the envelope, the same bytes on every channel.
        internal: True if only agents' streams carry it.
    """

    id: str
    type: str
    project: int
    conversation: int
    conversation_id: str
    user_id: str
    body: bytes
    internal: bool = False


def encode_envelope(draft: EventDraft, event_id: str, project_id: str, created_at: int) -> bytes:
    """Return the envelope as JSON, with its fields in the order of contract 2.10."""
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
    return bytes(memoryview(encoded))  # a copy, because orjson's result keeps its 8 KiB buffer alive


def stored_event(
    position: int,
    event_id: str,
    project: Project,
    draft: EventDraft,
    conversation: int | None,
    at: int,
    *,
    directed: bool,
    ticket: int | None,
) -> StoredEvent:
    """Return an event at its place in the log; one that is `directed` to an endpoint is in no feed and in no topic."""
    internal = REGISTRY[draft.type].audience != "all"
    assert not (internal and (directed or draft.sequence is not None)), (
        "an event that consumers do not receive has no sequence"
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
    """Return whether an endpoint with this `events` list receives this type.

    An empty list means all of the contract's types except typing (contract 6.2.3, 6.2.4). Extension types must be listed.
    Internal types that are no extension can't be listed.
    """
    if subscribed:
        return event_type in subscribed and (event_type in CATALOG or event_type in EXTENSIONS)
    return event_type in STORED
