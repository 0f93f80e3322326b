"""The typists of a conversation, as a state: commands, facts and time in, events out (ADR 9).

- An agent who begins to type is `started`; one who goes on is announced again, at most every 3 s.
- `stopped` comes once: when the agent says so, writes a message or a note, when the conversation is closed
  or deleted, or 6 s after the agent's last sign of typing (decisions 4).
- Whoever does not type can't stop.
- Typing a note is told to agents alone; who goes on from a note to a message has stopped with the one.

Times are seconds on one clock, which need not be the wall's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from types import MappingProxyType
from typing import Any, Final, assert_never

from msgspec import Struct

from deskwire.engine.conversations.facts import (
    Assigned,
    Closed,
    Created,
    Deleted,
    Fact,
    Filed,
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
from deskwire.engine.events.types import EventDraft

STOPS_AFTER_S: Final = 6.0  # decisions 4
"""The seconds after an agent's last sign of typing."""

RENEWAL_S: Final = 3.0  # Ours: ADR 9
"""The least seconds between two `started` of one agent."""

TYPING_TIMEOUT_S: Final = STOPS_AFTER_S + RENEWAL_S
"""The seconds after an agent's last `started` from which on a reader without a `stopped` counts them as no longer typing."""


class Agent(Struct, frozen=True):
    """An agent who types, as the events show it."""

    id: str
    name: str


class SetTyping(Struct, frozen=True):
    """The agent types, or has stopped. Not one of the commands that are stored.

    Args:
        internal: it is a note that the agent types.
    """

    agent: Agent
    typing: bool
    internal: bool = False


class Typist(Struct, frozen=True):
    """An agent who types: when that may be announced again, and when it ends by itself."""

    agent: Agent
    renewable_at: float
    stops_at: float
    internal: bool = False


Typists = Mapping[str, Typist]
"""The agents who type in one conversation, by their ids."""

NOBODY: Final[Typists] = MappingProxyType({})

Outcome = tuple[Typists, tuple[EventDraft, ...]]
"""Who types from now on, and the events that say what changed."""


def set_typing(typists: Typists, command: SetTyping, conversation_id: str, now: float) -> Outcome:
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
    started = EventDraft("agent.typing.started", None, _data(agent, conversation_id, command.internal))
    typist = Typist(agent, now + RENEWAL_S, now + STOPS_AFTER_S, command.internal)
    return {**typists, agent.id: typist}, (*stopped, started)


def after_facts(typists: Typists, facts: Iterable[Fact], conversation_id: str) -> Outcome:
    """Return what follows from what has happened to the conversation."""
    ended = [typist for fact in facts for typist in typists.values() if _ends(fact, typist.agent)]
    return _without(typists, ended, conversation_id)


def lapse(typists: Typists, conversation_id: str, now: float) -> Outcome:
    """Return what follows from the time that has passed; with `now` infinite, everybody stops."""
    ended = [typist for typist in typists.values() if typist.stops_at <= now]
    return _without(typists, ended, conversation_id)


def leave(typists: Typists, agent_id: str, conversation_id: str) -> Outcome:
    """Return what follows when an agent's time is over, whatever has ended it."""
    known = typists.get(agent_id)
    return _without(typists, () if known is None else (known,), conversation_id)


def next_lapse(typists: Typists) -> float:
    """Return the time at which the next of them stops by itself; infinite if nobody types."""
    return min((typist.stops_at for typist in typists.values()), default=inf)


def _ends(fact: Fact, agent: Agent) -> bool:
    match fact:
        case Closed() | Moved() | Deleted():
            return True
        case MessagePosted(message):
            return message.author.type == "agent" and message.author.id == agent.id
        case Created() | Revealed() | Reopened() | Assigned() | Updated() | NetworkLogsReplaced():
            return False
        case Filed() | WorkflowWaits() | WorkflowCompleted() | MessageRewritten():
            return False
        case _:
            assert_never(fact)


def _without(typists: Typists, ended: Iterable[Typist], conversation_id: str) -> Outcome:
    gone = {typist.agent.id: typist for typist in ended}
    if not gone:
        return typists, ()
    kept = {agent_id: typist for agent_id, typist in typists.items() if agent_id not in gone}
    stopped = (
        EventDraft("agent.typing.stopped", None, _data(typist.agent, conversation_id, typist.internal))
        for typist in gone.values()
    )
    return kept or NOBODY, tuple(stopped)


def _data(agent: Agent, conversation_id: str, internal: bool) -> Mapping[str, Any]:
    """Return the event's data, exactly as decisions 4 lists it; `internal` is in that of notes, which agents alone get."""
    data = {"conversationId": conversation_id, "agent": {"id": agent.id, "name": agent.name}}
    return {**data, "internal": True} if internal else data
