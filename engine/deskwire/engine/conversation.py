"""The conversation as a state machine: commands in, facts out, nothing else touched.

`decide` says what follows from a command, `evolve` applies one fact, `announce` says which events
consumers see for it. Rules (contract 3, decisions 4):

- A hidden conversation emits nothing; `Revealed` starts its sequence at 1.
- OPEN and PENDING are open; a message of the contact makes PENDING and CLOSED ones OPEN.
- A command that changes nothing yields no fact.
- An internal note is a fact without an event and without a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, assert_never

import orjson

from deskwire.engine.errors import Conflict, Invalid, Problem

Status = Literal["OPEN", "PENDING", "CLOSED"]
AuthorType = Literal["contact", "agent", "bot", "system"]
Closer = Literal["agent", "bot", "system"]
Reason = Literal["retention", "gdpr", "manual"]

ATTRIBUTES_MAX: Final = 100
"""Keys in `attributes`; a bound on what every event of the conversation has to carry."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote a message; a contact's id and name are filled in when it is committed."""

    type: AuthorType
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Assignee:
    """The user or team that looks after a conversation; `name` as it was when assigned."""

    type: Literal["user", "team"]
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Message:
    """A message, or with `internal` a note that only agents see.

    `index` counts the customer-visible messages of the conversation from 0; None for a note.
    """

    id: str
    author: Author
    text: str
    created_at: int
    internal: bool = False
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation's whole state. Times are milliseconds since the epoch."""

    id: str
    project: int
    created_at: int
    updated_at: int
    rowid: int = 0
    revision: int = 0
    title: str | None = None
    status: Status = "OPEN"
    closed_by: Closer | None = None
    closed_at: int | None = None
    unread: bool = False
    archived: bool = False
    assignee: Assignee | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    rating: int | None = None
    rated_at: int | None = None
    ticket_id: str | None = None
    visible: bool = True
    human: bool = False
    messages: int = 0
    last_message_at: int | None = None
    sequence: int = 0


# Commands: what may be asked of a conversation.


@dataclass(frozen=True, slots=True)
class ContactRef:
    """Whose conversation it is, with the identity fields that were given."""

    user_id: str
    identity: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Create:
    """Start a conversation, hidden ones included; `message` is its first."""

    conversation_id: str
    project: int
    contact: ContactRef
    title: str | None = None
    attributes: Mapping[str, Any] | None = None
    visible: bool = True
    message: PostMessage | None = None


@dataclass(frozen=True, slots=True)
class PostMessage:
    """Add a message, or an internal note."""

    message_id: str
    author: Author
    text: str
    internal: bool = False


@dataclass(frozen=True, slots=True)
class Close:
    """End the conversation for the customer."""

    by: Closer


@dataclass(frozen=True, slots=True)
class Reopen:
    """Take a closed conversation up again."""


@dataclass(frozen=True, slots=True)
class Assign:
    """Give the conversation to a user or team, or to nobody."""

    assignee: Assignee | None


@dataclass(frozen=True, slots=True)
class MarkRead:
    """The contact has seen everything."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Record the contact's rating, 0 to 10 (contract 8)."""

    rating: int


@dataclass(frozen=True, slots=True)
class Patch:
    """Change fields; only those named in `given` count.

    `attributes` are merged key by key, None removes a key. `visible` can only become true.
    """

    given: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReplaceNetworkLogs:
    """Store a network log snapshot, as sent, in place of the previous one (contract 4.3)."""

    snapshot: bytes


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the conversation and everything that belongs to it, for good."""

    reason: Reason


Command = (
    Create | PostMessage | Close | Reopen | Assign | MarkRead | Rate | Patch | ReplaceNetworkLogs | Delete
)

# Facts: what has happened. Each is stored by its effect on the tables, not by itself.


@dataclass(frozen=True, slots=True)
class Created:
    """There is a new conversation."""

    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Revealed:
    """A hidden conversation became visible to the customer."""


@dataclass(frozen=True, slots=True)
class MessagePosted:
    """A message or a note was added."""

    message: Message


@dataclass(frozen=True, slots=True)
class Closed:
    """The conversation was closed."""

    by: Closer
    at: int


@dataclass(frozen=True, slots=True)
class Reopened:
    """The conversation was reopened."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """The assignee changed."""

    assignee: Assignee | None


@dataclass(frozen=True, slots=True)
class Updated:
    """Fields changed: names of `Conversation` with their new values."""

    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NetworkLogsReplaced:
    """The network log snapshot was replaced."""

    snapshot: bytes


@dataclass(frozen=True, slots=True)
class Deleted:
    """The conversation is gone."""

    reason: Reason


Fact = (
    Created
    | Revealed
    | MessagePosted
    | Closed
    | Reopened
    | Assigned
    | Updated
    | NetworkLogsReplaced
    | Deleted
)

_SORTED: Final = orjson.OPT_SORT_KEYS

PUBLIC_NAMES: Final[Mapping[str, str | None]] = {
    "title": "title",
    "status": "status",
    "attributes": "attributes",
    "archived": "archived",
    "unread": "unread",
    "rating": "rating",
    "rated_at": None,  # carried by `rating`
}
"""Which name in `data.changed` stands for a changed field."""


def decide(state: Conversation | None, command: Command, at: int) -> tuple[Fact, ...]:
    """Say what follows from `command` at time `at` (ms); touch nothing.

    Raises:
        Conflict: the present state does not allow it.
        Invalid: the command does not fit this conversation.
    """
    if isinstance(command, Create):
        return _create(command, at)
    assert state is not None, "only Create may start a conversation"
    match command:
        case PostMessage():
            return _post(state, command, at)
        case Close(by):
            return () if state.status == "CLOSED" else (Closed(by, at),)
        case Reopen():
            return (Reopened(),) if state.status == "CLOSED" else ()
        case Assign(assignee):
            return () if state.assignee == assignee else (Assigned(assignee),)
        case MarkRead():
            return (Updated({"unread": False}),) if state.unread else ()
        case Rate(rating):
            return () if state.rating == rating else (Updated({"rating": rating, "rated_at": at}),)
        case Patch(given):
            return _patch(state, given)
        case ReplaceNetworkLogs(snapshot):
            return (NetworkLogsReplaced(snapshot),)
        case Delete(reason):
            return (Deleted(reason),)
        case _:
            assert_never(command)


def _create(command: Create, at: int) -> tuple[Fact, ...]:
    created = Created(
        Conversation(
            id=command.conversation_id,
            project=command.project,
            created_at=at,
            updated_at=at,
            title=command.title,
            attributes=_without_nulls(command.attributes or {}),
            visible=command.visible,
        )
    )
    if command.message is None:
        return (created,)
    state = evolve(None, created)
    return (created, *_post(state, command.message, at))


def _post(state: Conversation, command: PostMessage, at: int) -> tuple[Fact, ...]:
    index = None if command.internal else state.messages
    posted = MessagePosted(
        Message(command.message_id, command.author, command.text, at, command.internal, index)
    )
    if command.internal or command.author.type != "contact":
        return (posted,)
    before: list[Fact] = []
    if state.status == "CLOSED":
        before.append(Reopened())
    elif state.status == "PENDING":
        before.append(Updated({"status": "OPEN"}))
    return (*before, posted)


def _patch(state: Conversation, given: Mapping[str, Any]) -> tuple[Fact, ...]:
    wanted = {name: value for name, value in given.items() if name != "visible"}
    if "attributes" in given:
        wanted["attributes"] = _merged(state.attributes, given["attributes"])
    if state.status == "CLOSED" and "status" in wanted:
        raise Conflict("The conversation is closed; reopen it first.", code="conversation_closed")
    if given.get("visible") is False and state.visible:
        message = "A conversation that the customer has seen can't be hidden again."
        raise Invalid(Problem("/visible", "not_reversible", message))
    changes = {name: value for name, value in wanted.items() if not _same(getattr(state, name), value)}
    updated = (Updated(changes),) if changes else ()
    revealed = (Revealed(),) if given.get("visible") and not state.visible else ()
    # The change first, so that the event of creation shows the conversation as it is revealed.
    return (*updated, *revealed)


def _same(one: Any, other: Any) -> bool:
    """Whether both are the same JSON; to Python 1 and true are equal, to a consumer they are not."""
    return orjson.dumps(one, option=_SORTED) == orjson.dumps(other, option=_SORTED)


def _merged(attributes: Mapping[str, Any], patch: Mapping[str, Any]) -> Mapping[str, Any]:
    merged = _without_nulls({**attributes, **patch})
    if len(merged) > ATTRIBUTES_MAX:
        message = f"A conversation holds at most {ATTRIBUTES_MAX} attributes; this makes {len(merged)}."
        raise Invalid(Problem("/attributes", "too_many", message))
    return merged


def _without_nulls(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in attributes.items() if value is not None}


def evolve(state: Conversation | None, fact: Fact) -> Conversation:
    """The state after `fact`, its sequence number included; total, as the past can't be refused."""
    if isinstance(fact, Created):
        return replace(fact.conversation, sequence=1 if fact.conversation.visible else 0)
    assert state is not None, "only Created starts a conversation"
    after = _applied(state, fact)
    return replace(after, sequence=state.sequence + events_of(state, fact))


def events_of(state: Conversation, fact: Fact) -> int:
    """How many events `fact` causes in `state`."""
    match fact:
        case Revealed():
            return 1 + state.messages
        case NetworkLogsReplaced():
            return 0
        case MessagePosted(message) if message.internal:
            return 0
        case _:
            return 1 if state.visible else 0


def _applied(state: Conversation, fact: Fact) -> Conversation:
    match fact:
        case Revealed():
            return replace(state, visible=True)
        case MessagePosted(message):
            return _with_message(state, message)
        case Closed(by, at):
            return replace(state, status="CLOSED", closed_by=by, closed_at=at)
        case Reopened():
            return replace(state, status="OPEN", closed_by=None, closed_at=None)
        case Assigned(assignee):
            return replace(state, assignee=assignee, human=state.human or assignee is not None)
        case Updated(changes):
            return replace(state, **changes)
        case NetworkLogsReplaced() | Deleted() | Created():
            return state
        case _:
            assert_never(fact)


def _with_message(state: Conversation, message: Message) -> Conversation:
    human = state.human or message.author.type == "agent"
    if message.internal:
        return replace(state, human=human)
    return replace(
        state,
        human=human,
        unread=message.author.type != "contact",
        messages=state.messages + 1,
        last_message_at=message.created_at,
    )


def touches(fact: Fact) -> bool:
    """Whether `fact` changes what a customer can see, and with it `updatedAt`."""
    match fact:
        case NetworkLogsReplaced():
            return False
        case MessagePosted(message):
            return not message.internal
        case _:
            return True


def fold(
    state: Conversation | None, facts: tuple[Fact, ...], at: int
) -> Iterator[tuple[Conversation | None, Fact, Conversation]]:
    """Each fact with the state before and after it, `updated_at` moved on."""
    for fact in facts:
        after = evolve(state, fact)
        if touches(fact):
            after = replace(after, updated_at=at)
        yield state, fact, after
        state = after
