"""Typing indicators (ADR 5): the typists of a conversation as a state, their events, and typists on other nodes.

- An agent who begins to type is `started`; while the agent goes on, `started` is repeated at most every 3 s.
- `stopped` comes once: when the agent says so, posts a message or a note, when the conversation is closed or deleted, or
  6 s after the agent's last sign of typing (decisions 4).
- An agent who is not typing can't stop.
- Typing a note is published to agents only. An agent who switches from a note to a message stops typing the note.
- One node tracks each typist: the one that received the agent's last sign of typing (ADR 60). It may be lost: then a
  `started` comes twice, or a `stopped` some seconds late.

Times are seconds on Trio's clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from types import MappingProxyType
from typing import Any, Final, assert_never

import orjson
import structlog
import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.facts import (
    AgentFieldsUpdated,
    Assigned,
    Closed,
    Created,
    Deleted,
    Fact,
    FollowChanged,
    MessagePosted,
    MessageRewritten,
    MessagesReceived,
    Moved,
    NetworkLogsReplaced,
    Reopened,
    Revealed,
    Updated,
    WorkflowCompleted,
    WorkflowWaits,
)
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.ids import IdGenerator
from deskwire.engine.core.tasks.failure import contain_failures
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EphemeralEvent, EventDraft, encode_envelope

log: Final = structlog.get_logger(__name__)

STOPS_AFTER_S: Final = 6.0  # decisions 4
"""Seconds after an agent's last sign of typing at which `stopped` comes."""

RENEWAL_S: Final = 3.0  # Ours: ADR 5
"""Minimum seconds between two `started` of one agent."""

TYPING_TIMEOUT_S: Final = STOPS_AFTER_S + RENEWAL_S
"""Seconds after the last `started` at which a client that missed the `stopped` removes the typist."""

KIND: Final = "typists"
"""The kind of the messages on the bus."""

_REMOTE_TYPISTS_MAX: Final = 10_000  # typists that `RemoteTypists` keeps; the oldest are evicted


class TypingAgent(Struct, frozen=True):
    """The view of a typing agent in the events."""

    id: str
    name: str


class SetTyping(Struct, frozen=True):
    """The command of an agent who types, or has stopped. It is not stored.

    Args:
        internal: whether the agent types a note.
    """

    agent: TypingAgent
    typing: bool
    internal: bool = False


class Typist(Struct, frozen=True):
    """An agent who types.

    Args:
        renewable_at: when `started` may be repeated.
        stops_at: when `stopped` comes, unless the agent goes on.
    """

    agent: TypingAgent
    renewable_at: float
    stops_at: float
    internal: bool = False


Typists = Mapping[str, Typist]
"""The agents who type in one conversation, by their ids."""

NO_TYPISTS: Final[Typists] = MappingProxyType({})

TypingOutcome = tuple[Typists, tuple[EventDraft, ...]]
"""The typists after a change, and the events of the change."""


def set_typing(typists: Typists, command: SetTyping, conversation_id: str, now: float) -> TypingOutcome:
    """Return the outcome of an agent's command."""
    agent = command.agent
    known = typists.get(agent.id)
    if not command.typing:
        return _without(typists, (known,) if known else (), conversation_id)
    other = known is not None and known.internal != command.internal
    if known is not None and not other and now < known.renewable_at:
        again = Typist(agent, known.renewable_at, now + STOPS_AFTER_S, command.internal)
        return {**typists, agent.id: again}, ()
    _, stopped = _without(typists, (known,) if known and other else (), conversation_id)
    started = EventDraft("agent.typing.started", None, _data(agent, conversation_id, command.internal))
    typist = Typist(agent, now + RENEWAL_S, now + STOPS_AFTER_S, command.internal)
    return {**typists, agent.id: typist}, (*stopped, started)


def after_facts(typists: Typists, facts: Iterable[Fact], conversation_id: str) -> TypingOutcome:
    """Return the outcome of facts: they may stop typists."""
    ended = [typist for fact in facts for typist in typists.values() if _ends(fact, typist.agent)]
    return _without(typists, ended, conversation_id)


def expire_typists(typists: Typists, conversation_id: str, now: float) -> TypingOutcome:
    """Return the outcome at a time; all typists stop if it is infinite."""
    ended = [typist for typist in typists.values() if typist.stops_at <= now]
    return _without(typists, ended, conversation_id)


def remove_typist(typists: Typists, agent_id: str, conversation_id: str) -> TypingOutcome:
    """Return the outcome of removing an agent, whatever the cause."""
    known = typists.get(agent_id)
    return _without(typists, () if known is None else (known,), conversation_id)


def next_timeout(typists: Typists) -> float:
    """Return the time at which the next typist expires; infinite without typists."""
    return min((typist.stops_at for typist in typists.values()), default=inf)


def _ends(fact: Fact, agent: TypingAgent) -> bool:
    match fact:
        case Closed() | Moved() | Deleted():
            return True
        case MessagePosted(message):
            return message.author.type == "agent" and message.author.id == agent.id
        case Created() | Revealed() | Reopened() | Assigned() | Updated() | NetworkLogsReplaced():
            return False
        case AgentFieldsUpdated() | WorkflowWaits() | WorkflowCompleted() | MessageRewritten():
            return False
        case MessagesReceived() | FollowChanged():
            return False
        case _:
            assert_never(fact)


def _without(typists: Typists, ended: Iterable[Typist], conversation_id: str) -> TypingOutcome:
    gone = {typist.agent.id: typist for typist in ended}
    if not gone:
        return typists, ()
    kept = {agent_id: typist for agent_id, typist in typists.items() if agent_id not in gone}
    stopped = (
        EventDraft("agent.typing.stopped", None, _data(typist.agent, conversation_id, typist.internal))
        for typist in gone.values()
    )
    return kept or NO_TYPISTS, tuple(stopped)


def _data(agent: TypingAgent, conversation_id: str, internal: bool) -> Mapping[str, Any]:
    """Return the event's data (decisions 4). Only the events of notes have `internal`, and only agents get those."""
    data = {"conversationId": conversation_id, "agent": {"id": agent.id, "name": agent.name}}
    return {**data, "internal": True} if internal else data


EphemeralListener = Callable[[EphemeralEvent], None]
"""A receiver of ephemeral events, which must not block."""


class EphemeralPublisher:
    """Makes ephemeral events of drafts and passes each to all listeners at once.

    Args:
        clock: wall-clock milliseconds, for `createdAt`.
        listeners: the stream and the webhooks; called on the Trio thread.
        agents: the agents' streams, which also get the events that are hidden from the customer.
    """

    def __init__(
        self, clock: Clock, *listeners: EphemeralListener, agents: EphemeralListener | None = None
    ) -> None:
        self._clock = clock
        self._agents = () if agents is None else (agents,)
        self._listeners = (*listeners, *self._agents)
        self._ids = IdGenerator()

    def publish(self, project: Project, state: Conversation, contact: Contact, draft: EventDraft) -> None:
        """Publish an event of this conversation; one that is `internal` to the agents' streams only."""
        at = self._clock()
        event_id = self._ids.new("evt", at)
        body = encode_envelope(draft, event_id, project.id, at)
        internal = "internal" in draft.data
        event = EphemeralEvent(
            event_id, draft.type, project.rowid, state.rowid, state.id, contact.user_id, body, internal
        )
        for listener in self._agents if internal else self._listeners:
            with contain_failures(lambda failure: log.error("typing.not_told", exc_info=failure)):
                listener(event)


class TypingIndicator:
    """The typists of one conversation that this node tracks. It belongs to the conversation's actor."""

    __slots__ = ("_about", "_project", "_publisher", "_typists")

    def __init__(self, project: Project, publisher: EphemeralPublisher) -> None:
        self._project = project
        self._publisher = publisher
        self._about: tuple[Conversation, Contact] | None = None
        self._typists: Typists = NO_TYPISTS

    @property
    def on(self) -> bool:
        """True while an agent types."""
        return bool(self._typists)

    @property
    def next_timeout(self) -> float:
        """The time at which `expire` has something to do; infinite without typists."""
        return next_timeout(self._typists)

    def set(self, state: Conversation, contact: Contact, command: SetTyping) -> None:
        """Carry out the command. Typing in a hidden conversation is published to agents only."""
        if not state.visible:
            command = replace(command, internal=True)
        self._about = (state, contact)
        self._become(set_typing(self._typists, command, state.id, trio.current_time()))

    def apply(self, facts: Iterable[Fact]) -> None:
        """Apply committed facts."""
        if self._about is not None and self._typists:
            self._become(after_facts(self._typists, facts, self._about[0].id))

    def remove(self, agent_id: str, *, notify: bool) -> None:
        """Stop tracking an agent; publish `stopped` if `notify`, that is, if no other node tracks the agent."""
        if self._about is not None and agent_id in self._typists:
            typists, drafts = remove_typist(self._typists, agent_id, self._about[0].id)
            self._become((typists, drafts if notify else ()))

    def expire(self) -> None:
        """Stop the typists whose time is over."""
        self._expire(trio.current_time())

    def end(self) -> None:
        """Stop all typists at once."""
        self._expire(inf)

    def _expire(self, now: float) -> None:
        if self._about is not None and self._typists:
            self._become(expire_typists(self._typists, self._about[0].id, now))

    def _become(self, outcome: TypingOutcome) -> None:
        self._typists, drafts = outcome
        assert self._about is not None
        for draft in drafts:
            self._publisher.publish(self._project, *self._about, draft)
        if not self._typists:
            self._about = None


TypistKey = tuple[int, str, str]
"""Storage key of a project, id of a conversation, id of an agent."""


class RemoteTypists:
    """The typists that other nodes track.

    Args:
        remove: called for a typist that this node no longer tracks; with True if no other node will publish its `stopped`.
    """

    def __init__(self, bus: Bus, remove: Callable[[int, str, str, bool], None]) -> None:
        self._bus = bus
        self._remove = remove
        self._known: dict[TypistKey, float] = {}  # tracked by other nodes, until these times
        self._announced: dict[TypistKey, float] = {}  # claimed by this node, not repeated before these times
        bus.receive(KIND, self._receive)

    def note(self, project: int, conversation_id: str, command: SetTyping) -> None:
        """Tell the other nodes that this one now tracks an agent, or that the agent has stopped."""
        key = (project, conversation_id, command.agent.id)
        if not command.typing:
            self._end(key)
            return
        self._known.pop(key, None)
        now = trio.current_time()
        if self._announced.get(key, 0.0) <= now:
            _remember(self._announced, key, now + RENEWAL_S)
            self._send("here", key)

    def note_facts(self, project: int, conversation_id: str, facts: Iterable[Fact]) -> None:
        """Have other nodes stop the typists that a commit of this node stops."""
        if not self._known:
            return
        for fact in facts:
            if isinstance(fact, MessagePosted) and fact.message.author.type == "agent":
                self._end((project, conversation_id, fact.message.author.id or ""))
            elif isinstance(fact, Closed | Moved | Deleted):
                for key in [each for each in self._known if each[:2] == (project, conversation_id)]:
                    self._end(key)

    def _end(self, key: TypistKey) -> None:
        self._announced.pop(key, None)
        if self._known.pop(key, 0.0) > trio.current_time():
            self._send("over", key)

    def _send(self, change: str, key: TypistKey) -> None:
        self._bus.send(KIND, orjson.dumps([change, *key]))

    def _receive(self, payload: bytes) -> None:
        change, *parts = orjson.loads(payload)
        key: TypistKey = tuple(parts)
        if change == "here":
            self._announced.pop(key, None)
            _remember(self._known, key, trio.current_time() + TYPING_TIMEOUT_S)
        else:
            self._known.pop(key, None)
        self._remove(*key, change == "over")


def _remember(typists: dict[TypistKey, float], key: TypistKey, until: float) -> None:
    typists.pop(key, None)
    typists[key] = until
    if len(typists) > _REMOTE_TYPISTS_MAX:
        del typists[next(iter(typists))]
