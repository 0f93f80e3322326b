"""The registry of actors: at most one a conversation, a bounded number alive, none lost between two.

Everything that adds or removes an actor happens without waiting, so that eviction and a new command
can't cross: either the command finds the actor, or the actor is gone and a new one reads the state.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextvars import Context
from functools import partial
from itertools import islice
from typing import Final

import trio
from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.conversations.actor import ActorCommand, ConversationActor, Envelope, shutting_down
from deskwire.engine.conversations.commands import Create
from deskwire.engine.conversations.conversation import no_such_conversation
from deskwire.engine.conversations.pipeline import Shared
from deskwire.engine.conversations.plan import Receipt
from deskwire.engine.conversations.ports import CommitReader, CommitTransaction
from deskwire.engine.conversations.typing.elsewhere import TypistsElsewhere
from deskwire.engine.conversations.typing.indicator import EphemeralPublisher
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import CommitHook
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.uploads.links import Links

_EVICTION_LOOK: Final = 64
"""How many of the longest unused actors are looked at for an idle one before giving up."""

_Key = tuple[int, str]


class Commands(Struct):
    """The counts of what has happened to commands since the start.

    Args:
        actors: started for one, as its conversation had none.
        mailbox_full: refused because too many waited for the conversation.
        too_many_actors: refused because no further actor may live.
    """

    actors: int = 0
    mailbox_full: int = 0
    too_many_actors: int = 0


class ActorRegistry:
    """The live conversations.

    Args:
        nursery: where the actors live; not that of any request.
        mailbox: commands that may wait for one conversation.
        idle_s: seconds without a command after which an actor ends.
        live: how many actors may be alive.
        publisher: where typing is told; nowhere by default.
        links: give attachments their URLs; None for who serves no files.
        wrappers: what else is done in each commit.
        bus: to other nodes, which change the conversations as well; None for a node that is alone.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        store: Store[CommitReader, CommitTransaction],
        clock: Clock,
        *,
        mailbox: int,
        idle_s: float,
        live: int,
        publisher: EphemeralPublisher | None = None,
        links: Links | None = None,
        wrappers: Sequence[CommitHook[Receipt]] = (),
        bus: Bus | None = None,
    ) -> None:
        self.commands: Final = Commands()
        self._nursery = nursery
        self._idle_s = idle_s
        self._live = live
        elsewhere = None if bus is None else TypistsElsewhere(bus, self._let_typist_go)
        self._shared = Shared(
            store, clock, mailbox, publisher or EphemeralPublisher(clock), links, tuple(wrappers), elsewhere
        )
        self._actors: OrderedDict[_Key, ConversationActor] = OrderedDict()  # the longest unused first
        self._tending = False
        self._ended = self._forget_ended  # one for all, as each actor keeps it

    def __len__(self) -> int:
        """Return how many actors are alive."""
        return len(self._actors)

    async def ask(
        self,
        project: Project,
        conversation_id: str,
        command: ActorCommand,
        wrapper: CommitHook[Receipt] | None = None,
        by: Actor | None = None,
    ) -> Receipt:
        """Have the conversation carry out `command`; return the receipt once that is durable.

        Args:
            wrapper: what else is done in the commit.
            by: who gave the command, for the conversation's activity.

        Raises:
            NotFound: the project has no such conversation.
            Conflict, Invalid: the command may not happen, or `wrapper` has refused it.
            Unavailable: the mailbox is full, too many actors are alive, or the disk refused.

        Cancellation: the command may still be carried out.
        """
        envelope = Envelope(command, wrapper, by)
        actor = self._actor(project, conversation_id)
        try:
            actor.send_nowait(envelope)
        except Unavailable:
            self.commands.mailbox_full += 1
            raise
        return await envelope.take()

    async def create(
        self,
        project: Project,
        command: Create,
        wrapper: CommitHook[Receipt] | None = None,
        by: Actor | None = None,
    ) -> Receipt:
        """Have a conversation created; otherwise as `ask`."""
        return await self.ask(project, command.conversation_id, command, wrapper, by)

    def _let_typist_go(self, project: int, conversation_id: str, agent_id: str, told: bool) -> None:
        actor = self._actors.get((project, conversation_id))
        if actor is not None:
            actor.let_typist_go(agent_id, told=told)

    def _actor(self, project: Project, conversation_id: str) -> ConversationActor:
        key = (project.rowid, conversation_id)
        actor = self._actors.get(key)
        if actor is None:
            if self._nursery.cancel_scope.cancel_called:  # an actor in it would never serve
                raise shutting_down()
            self._make_room()
            actor = ConversationActor(project, conversation_id, self._shared)
            self._actors[key] = actor
            self.commands.actors += 1
            # In a context of its own: the request's would be kept alive, and its id in the log be wrong.
            spawn = partial(self._nursery.start_soon, name=conversation_id)
            Context().run(spawn, actor.run, self._ended)
            if not self._tending:
                self._tending = True
                Context().run(self._nursery.start_soon, self._tend)
        else:
            self._actors.move_to_end(key)
        actor.used_at = trio.current_time()
        return actor

    async def _tend(self) -> None:
        """End actors that nobody has used for long; one task for all, as a timer each costs more than they do."""
        try:
            while self._actors:
                key, actor = next(iter(self._actors.items()))
                until = actor.used_at + self._idle_s
                if trio.current_time() < until:
                    await trio.sleep_until(until)
                elif not self._let_go(key, actor):
                    actor.used_at = trio.current_time()
                    self._actors.move_to_end(key)
        finally:
            self._tending = False

    def _forget_ended(self, actor: ConversationActor) -> None:
        self._forget((actor.project.rowid, actor.conversation_id), actor)
        actor.refuse_rest(no_such_conversation())

    def _let_go(self, key: _Key, actor: ConversationActor, *, typing: bool = False) -> bool:
        """End the actor if it is idle; with `typing` also one that has yet to say who stops typing."""
        if not actor.idle or (actor.typing and not typing):
            return False
        self._forget(key, actor)
        return True

    def _forget(self, key: _Key, actor: ConversationActor) -> None:
        if self._actors.get(key) is actor:
            del self._actors[key]
        actor.close()

    def _make_room(self) -> None:
        if len(self._actors) < self._live:
            return
        oldest = list(islice(self._actors.items(), _EVICTION_LOOK))
        for typing in (False, True):  # Ours: a command is worth more than an indicator (ADR 9)
            if any(self._let_go(key, actor, typing=typing) for key, actor in oldest):
                return
        self.commands.too_many_actors += 1
        raise Unavailable("Too many conversations are active at once.", code="overloaded")
