"""The typing indicator of a conversation: who types, when that ends by itself, and who is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Final

import structlog
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.facts import Fact
from deskwire.engine.conversations.typing.state import (
    NOBODY,
    Outcome,
    SetTyping,
    Typists,
    after_facts,
    lapse,
    leave,
    next_lapse,
    set_typing,
)
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.ids import IdGenerator
from deskwire.engine.core.tasks.failure import contain_failures
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EphemeralEvent, EventDraft, encode_envelope

log: Final = structlog.get_logger(__name__)

Listener = Callable[[EphemeralEvent], None]
"""A receiver of ephemeral events, which must not wait."""


class EphemeralPublisher:
    """A publisher that gives ephemeral events their id and bytes, and hands each to all listeners at once.

    Args:
        clock: wall-clock milliseconds, for `createdAt`.
        listeners: the stream and the webhooks; called on the Trio thread.
        agents: the streams of agents, who alone are told of what the customer may not see.
    """

    def __init__(self, clock: Clock, *listeners: Listener, agents: Listener | None = None) -> None:
        self._clock = clock
        self._agents = () if agents is None else (agents,)
        self._listeners = (*listeners, *self._agents)
        self._ids = IdGenerator()

    def publish(self, project: Project, state: Conversation, contact: Contact, draft: EventDraft) -> None:
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
            with contain_failures(lambda failure: log.error("typing.not_told", exc_info=failure)):
                listener(event)


class Indicator:
    """One conversation's typists. It belongs to the conversation's actor, which also keeps its time."""

    __slots__ = ("_about", "_project", "_publisher", "_typists")

    def __init__(self, project: Project, publisher: EphemeralPublisher) -> None:
        self._project = project
        self._publisher = publisher
        self._about: tuple[Conversation, Contact] | None = None
        self._typists: Typists = NOBODY

    @property
    def on(self) -> bool:
        """True while anybody types."""
        return bool(self._typists)

    @property
    def lapses_at(self) -> float:
        """The time on Trio's clock at which `lapse` has something to do; infinite if nobody types."""
        return next_lapse(self._typists)

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
            typists, drafts = leave(self._typists, agent_id, self._about[0].id)
            self._become((typists, drafts if told else ()))

    def lapse(self) -> None:
        """Stop those whose time is over."""
        self._lapse(trio.current_time())

    def end(self) -> None:
        """Stop everybody, at once."""
        self._lapse(inf)

    def _lapse(self, now: float) -> None:
        if self._about is not None and self._typists:
            self._become(lapse(self._typists, self._about[0].id, now))

    def _become(self, outcome: Outcome) -> None:
        self._typists, drafts = outcome
        assert self._about is not None
        for draft in drafts:
            self._publisher.publish(self._project, *self._about, draft)
        if not self._typists:
            self._about = None
