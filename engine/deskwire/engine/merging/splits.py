"""Splits: an agent starts a new conversation with messages of another one. One commit stores the new one and changes the other.

The actor of the other conversation is paused, and the commit decides on the stored state, which it locks. So on several nodes,
too, each change of that conversation comes wholly before the split or wholly after it. Merging undoes a split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.audit.trail import AuditEntry, AuditTransaction, ChangeOrigin
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Command, ContactRef, Create, SplitOff, SplitOrigin
from deskwire.engine.conversations.commit import carry_out, make_plan
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.conversation import Conversation, Message, no_such_conversation
from deskwire.engine.conversations.decide import waiting_since
from deskwire.engine.conversations.deletion import wait_left
from deskwire.engine.conversations.ports import CommitTransaction, ConversationReader
from deskwire.engine.conversations.split_decisions import chosen_messages, require_splittable
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import CommitHook, with_hook
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import Store


class SplitTransaction(CommitTransaction, AuditTransaction, Protocol):
    """Changes of both conversations."""


class SplitRequest(Struct, frozen=True):
    """A conversation to start.

    Args:
        conversation_id: its new id.
        message_ids: the messages of the other conversation that it shows, each once.
    """

    conversation_id: str
    message_ids: tuple[str, ...]
    title: str | None = None


class ConversationSplits(Struct, frozen=True):
    """Splits a project's conversations on behalf of one actor.

    Args:
        origin: the origin of the change, for the audit trail.
    """

    store: Store[ConversationReader, SplitTransaction]
    actors: ActorRegistry
    clock: Clock
    project: Project
    by: Actor
    origin: ChangeOrigin

    async def split(
        self, source_id: str, wanted: SplitRequest, hook: CommitHook[Receipt] | None = None
    ) -> Receipt:
        """Start a conversation with messages of another one; return the receipt of the new one.

        Args:
            hook: does more work in the commit.

        Raises NotFound, Invalid and Conflict if the states do not allow it, and Unavailable as `ActorRegistry.ask`.
        Cancellation: the split may still be committed.
        """

        def job(tx: SplitTransaction) -> Receipt:
            return self._split(tx, source_id, wanted)

        async with self.actors.paused(self.project, (source_id,)):
            return await self.store.write(with_hook(job, hook))

    def _split(self, tx: SplitTransaction, source_id: str, wanted: SplitRequest) -> Receipt:
        row = tx.conversation(self.project.rowid, source_id)
        if row is None:
            raise no_such_conversation()
        source, owner = row
        require_splittable(source)
        found = tx.owned_messages(self.project.rowid, wanted.message_ids)
        chosen, at = chosen_messages(source, wanted.message_ids, found), self.clock()
        if tx.survivor(owner.rowid) is None:
            raise Unavailable("The conversation is being moved; try again.", code="conversation_busy")
        tx.show_in([each.id for each in chosen], wanted.conversation_id)
        created = self._carry_out(tx, None, _creation(source, owner, wanted, chosen), at)
        left = SplitOff(
            wanted.conversation_id,
            wait_left(tx, source, source.waiting_since),
            wait_left(tx, source, source.no_answer_needed_since),
        )
        self._carry_out(tx, source, left, at)
        with tx.signed(self.origin):
            details: dict[str, str | int | None] = {"into": wanted.conversation_id, "messages": len(chosen)}
            tx.record(
                AuditEntry("conversation.split", source.id, project=self.project.rowid, details=details)
            )
        return created

    def _carry_out(
        self, tx: SplitTransaction, state: Conversation | None, command: Command, at: int
    ) -> Receipt:
        return carry_out(make_plan(self.project, state, command, at, None, by=self.by), tx)


def _creation(
    source: Conversation, owner: Contact, wanted: SplitRequest, chosen: Sequence[Message]
) -> Create:
    """Return the command that creates the new conversation, with the values that it takes over."""
    public, waits = [each for each in chosen if not each.internal], None
    for each in public:
        if not each.deleted:
            waits = waiting_since(waits, each.author.type, each.created_at)
    return Create(
        wanted.conversation_id,
        source.project,
        ContactRef(owner.user_id, {}, owner.id),
        wanted.title,
        assignee=source.assignee,
        by_agent=True,
        channel=source.channel,
        split=SplitOrigin(source.id, tuple(each.id for each in public), source.tags, source.team_id, waits),
    )
