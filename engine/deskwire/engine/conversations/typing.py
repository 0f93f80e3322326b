"""typing"""

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
from deskwire.engine.cluster.bus import Bus
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.facts import (
    AgentFieldsUpdated,
    Assigned,
    Closed,
    Created,
    Deleted,
    Fact,
    MessagePosted,
    MessageRewritten,
    Moved,
    NetworkLogsReplaced,
    Reopened,
    Revealed,
    Updated,
    WorkflowCompleted,
    WorkflowWaits,
)
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.ids import Mint
from deskwire.engine.core.tasks.failure import contained
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import Draft, EphemeralEvent, encode_envelope

STOPS_AFTER_S: Final = 6.0  # decisions 4
"""The seconds after an agent's last sign of typing."""

RENEWAL_S: Final = 3.0  # Ours: ADR 9
"""The least seconds between two `started` of one agent."""

TYPING_TIMEOUT_S: Final = STOPS_AFTER_S + RENEWAL_S
"""The seconds after an agent's last `started` from which on a reader without a `stopped` counts them as no longer typing."""


class TypingAgent(Struct, frozen=True):
    """An agent who types, as the events show it."""

    id: str
    name: str


class SetTyping(Struct, frozen=True):
    """The agent types, or has stopped. Not one of the commands that are stored.

    Args:
        internal: it is a note that the agent types.
    """

    agent: TypingAgent
    typing: bool
    internal: bool = False


class Typist(Struct, frozen=True):
    """An agent who types: when that may be announced again, and when it ends by itself."""

    agent: TypingAgent
    renewable_at: float
    stops_at: float
    internal: bool = False


Typists = Mapping[str, Typist]
"""The agents who type in one conversation, by their ids."""

NO_TYPISTS: Final[Typists] = MappingProxyType({})

TypingOutcome = tuple[Typists, tuple[Draft, ...]]
"""Who types from now on, and the events that say what changed."""


def set_typing(typists: Typists, command: SetTyping, conversation_id: str, now: float) -> TypingOutcome:
    """Return what follows when an agent types, or reports to have stopped."""
    agent = command.agent
    known = typists.get(agent.id)
    if not command.typing:
        return _without(typists, (known,) if known else (), conversation_id)
    other = known is not None and known.internal != command.internal
    if known is not None and not other and now < known.renewable_at:
        again = Typist(agent, known.renewable_at, now + STOPS_AFTER_S, command.internal)
        return {**typists, agent.id: again}, ()
    _, stopped = _without(typists, (known,) if known and other else (), conversation_id)
    started = Draft("agent.typing.started", None, _data(agent, conversation_id, command.internal))
    typist = Typist(agent, now + RENEWAL_S, now + STOPS_AFTER_S, command.internal)
    return {**typists, agent.id: typist}, (*stopped, started)


def after_facts(typists: Typists, facts: Iterable[Fact], conversation_id: str) -> TypingOutcome:
    """Return what follows from what has happened to the conversation."""
    ended = [typist for fact in facts for typist in typists.values() if _ends(fact, typist.agent)]
    return _without(typists, ended, conversation_id)


def expire_typists(typists: Typists, conversation_id: str, now: float) -> TypingOutcome:
    """Return what follows from the time that has passed; with `now` infinite, everybody stops."""
    ended = [typist for typist in typists.values() if typist.stops_at <= now]
    return _without(typists, ended, conversation_id)


def remove_typist(typists: Typists, agent_id: str, conversation_id: str) -> TypingOutcome:
    """Return what follows when an agent's time is over, whatever has ended it."""
    known = typists.get(agent_id)
    return _without(typists, () if known is None else (known,), conversation_id)


def next_timeout(typists: Typists) -> float:
    """Return the time at which the next of them stops by itself; infinite if nobody types."""
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
        case _:
            assert_never(fact)


def _without(typists: Typists, ended: Iterable[Typist], conversation_id: str) -> TypingOutcome:
    gone = {typist.agent.id: typist for typist in ended}
    if not gone:
        return typists, ()
    kept = {agent_id: typist for agent_id, typist in typists.items() if agent_id not in gone}
    stopped = (
        Draft("agent.typing.stopped", None, _data(typist.agent, conversation_id, typist.internal))
        for typist in gone.values()
    )
    return kept or NO_TYPISTS, tuple(stopped)


def _data(agent: TypingAgent, conversation_id: str, internal: bool) -> Mapping[str, Any]:
    """Return the event's data, exactly as decisions 4 lists it; `internal` is in that of notes, which agents alone get."""
    data = {"conversationId": conversation_id, "agent": {"id": agent.id, "name": agent.name}}
    return {**data, "internal": True} if internal else data


log: Final = structlog.get_logger(__name__)

EphemeralListener = Callable[[EphemeralEvent], None]
"""A receiver of ephemeral events, which must not wait."""


class EphemeralPublisher:
    """A publisher that gives ephemeral events their id and bytes, and hands each to all listeners at once.

    Args:
        clock: wall-clock milliseconds, for `createdAt`.
        listeners: the stream and the webhooks; called on the Trio thread.
        agents: the streams of agents, who alone are told of what the customer may not see.
    """

    def __init__(
        self, clock: Clock, *listeners: EphemeralListener, agents: EphemeralListener | None = None
    ) -> None:
        self._clock = clock
        self._agents = () if agents is None else (agents,)
        self._listeners = (*listeners, *self._agents)
        self._ids = Mint()

    def publish(self, project: Project, state: Conversation, contact: Contact, draft: Draft) -> None:
        """Make `draft`, which is about this conversation, an event for whoever listens now.

        Of what is `internal`, nobody but agents is told.
        """
        at = self._clock()
        event_id = self._ids.new("evt", at)
        body = encode_envelope(draft, event_id, project.id, at)
        internal = "internal" in draft.data
        event = EphemeralEvent(
            event_id, draft.type, project.rowid, state.rowid, state.id, contact.user_id, body, internal
        )
        for listener in self._agents if internal else self._listeners:
            with contained(lambda failure: log.error("typing.not_told", exc_info=failure)):
                listener(event)


class TypingIndicator:
    """One conversation's typists. It belongs to the conversation's actor, which also keeps its time."""

    __slots__ = ("_about", "_project", "_publisher", "_typists")

    def __init__(self, project: Project, publisher: EphemeralPublisher) -> None:
        self._project = project
        self._publisher = publisher
        self._about: tuple[Conversation, Contact] | None = None
        self._typists: Typists = NO_TYPISTS

    @property
    def on(self) -> bool:
        """True while anybody types."""
        return bool(self._typists)

    @property
    def lapses_at(self) -> float:
        """The time on Trio's clock at which `expire_typists` has something to do; infinite if nobody types."""
        return next_timeout(self._typists)

    def set(self, state: Conversation, contact: Contact, command: SetTyping) -> None:
        """Carry out the command. What the customer can't see yet is for agents alone."""
        if not state.visible:
            command = replace(command, internal=True)
        self._about = (state, contact)
        self._become(set_typing(self._typists, command, state.id, trio.current_time()))

    def note(self, facts: Iterable[Fact]) -> None:
        """Take note of what has been committed."""
        if self._about is not None and self._typists:
            self._become(after_facts(self._typists, facts, self._about[0].id))

    def leave(self, agent_id: str, *, told: bool) -> None:
        """Keep an agent's time no longer; `told` if that is to be told, as no other node keeps it either."""
        if self._about is not None and agent_id in self._typists:
            typists, drafts = remove_typist(self._typists, agent_id, self._about[0].id)
            self._become((typists, drafts if told else ()))

    def lapse(self) -> None:
        """Stop those whose time is over."""
        self._lapse(trio.current_time())

    def end(self) -> None:
        """Stop everybody, at once."""
        self._lapse(inf)

    def _lapse(self, now: float) -> None:
        if self._about is not None and self._typists:
            self._become(expire_typists(self._typists, self._about[0].id, now))

    def _become(self, outcome: TypingOutcome) -> None:
        self._typists, drafts = outcome
        assert self._about is not None
        for draft in drafts:
            self._publisher.publish(self._project, *self._about, draft)
        if not self._typists:
            self._about = None


KIND: Final = "typists"
_KNOWN: Final = 10_000
"""Typists that are remembered; the oldest are forgotten first."""

TypistKey = tuple[int, str, str]
"""Storage key of a project, id of a conversation, id of an agent."""


class RemoteTypists:
    """The typists whose time other nodes keep.

    Args:
        remove: called with one whose time is no longer kept here; with True if nobody else says that it has stopped.
    """

    def __init__(self, bus: Bus, remove: Callable[[int, str, str, bool], None]) -> None:
        self._bus = bus
        self._remove = remove
        self._known: dict[TypistKey, float] = {}
        self._told: dict[TypistKey, float] = {}
        bus.receive(KIND, self._hear)

    def note(self, project: int, conversation_id: str, command: SetTyping) -> None:
        """Take note that an agent who types, or has stopped, has said so to this node."""
        place = (project, conversation_id, command.agent.id)
        if not command.typing:
            self._end(place)
            return
        self._known.pop(place, None)
        now = trio.current_time()
        if self._told.get(place, 0.0) <= now:
            _remember(self._told, place, now + RENEWAL_S)
            self._send("here", place)

    def note_facts(self, project: int, conversation_id: str, facts: Iterable[Fact]) -> None:
        """Have those stopped whom this node's commit stops, wherever their time is kept."""
        if not self._known:
            return
        for fact in facts:
            if isinstance(fact, MessagePosted) and fact.message.author.type == "agent":
                self._end((project, conversation_id, fact.message.author.id or ""))
            elif isinstance(fact, Closed | Moved | Deleted):
                for place in [each for each in self._known if each[:2] == (project, conversation_id)]:
                    self._end(place)

    def _end(self, place: TypistKey) -> None:
        self._told.pop(place, None)
        if self._known.pop(place, 0.0) > trio.current_time():
            self._send("over", place)

    def _send(self, what: str, place: TypistKey) -> None:
        self._bus.send(KIND, orjson.dumps([what, *place]))

    def _hear(self, payload: bytes) -> None:
        what, *where = orjson.loads(payload)
        place: TypistKey = tuple(where)
        if what == "here":
            self._told.pop(place, None)
            _remember(self._known, place, trio.current_time() + TYPING_TIMEOUT_S)
        else:
            self._known.pop(place, None)
        self._remove(*place, what == "over")


def _remember(places: dict[TypistKey, float], place: TypistKey, until: float) -> None:
    places.pop(place, None)
    places[place] = until
    if len(places) > _KNOWN:
        del places[next(iter(places))]
