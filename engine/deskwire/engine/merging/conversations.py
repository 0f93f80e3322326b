"""Merges of two conversations of a contact, and their undo: one commit that changes both, their ticket, drafts and held messages.

Both actors are paused, in the order of their ids, and the commit decides on the stored states, which it locks. So on several
nodes, too, each change of either conversation comes wholly before the merge or wholly after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.audit.trail import AuditEntry, AuditTransaction, ChangeOrigin
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Absorb, Command, MergeInto, Release, Unmerge
from deskwire.engine.conversations.commit import carry_out, make_plan
from deskwire.engine.conversations.commit_plan import Receipt
from deskwire.engine.conversations.conversation import Conversation, no_such_conversation
from deskwire.engine.conversations.deletion import wait_left
from deskwire.engine.conversations.drafts import (
    DraftTransaction,
    DraftWrite,
    draft_key,
    remove_draft_version,
    write_draft,
)
from deskwire.engine.conversations.held_messages import HeldTransaction
from deskwire.engine.conversations.merge_decisions import earlier, require_mergeable
from deskwire.engine.conversations.merge_records import UNDO_DAYS, UNDO_MS, BeforeMerge, MergeRecord
from deskwire.engine.conversations.ports import CommitTransaction, ConversationReader
from deskwire.engine.conversations.writing_changes import HeldEnded, MessageHeld
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Conflict, Invalid, Problem
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace
from deskwire.engine.tickets.change import change_ticket


class ConversationMergeTransaction(
    CommitTransaction, HeldTransaction, DraftTransaction, AuditTransaction, Protocol
):
    """Changes of both conversations, and of drafts and held messages in them."""


class ConversationMerges(Struct, frozen=True):
    """Merges a project's conversations on behalf of one actor.

    Args:
        origin: the origin of the change, for the audit trail.
    """

    store: Store[ConversationReader, ConversationMergeTransaction]
    actors: ActorRegistry
    clock: Clock
    project: Project
    by: Actor
    origin: ChangeOrigin

    async def merge(self, source_id: str, target_id: str) -> Receipt:
        """Merge a conversation into another one; return the receipt of the merged one. Repeating it changes nothing.

        Raises NotFound for an unknown source, Invalid for an unknown target, Conflict if the states do not allow it, and
        Unavailable as `ActorRegistry.ask`.
        Cancellation: the merge may still be committed.
        """

        def job(tx: ConversationMergeTransaction) -> Receipt:
            return self._merge(tx, source_id, target_id)

        await self.store.read(lambda reader: self._require_both(reader, source_id, target_id))
        async with self.actors.paused(self.project, (source_id, target_id)):
            return await self.store.write(job)

    async def unmerge(self, source_id: str) -> Receipt:
        """Undo the conversation's merge; return its receipt. Without a merge this changes nothing.

        Raises NotFound, and Conflict (`merge_is_final`) after UNDO_DAYS. Cancellation: the undo may still be committed.
        """

        def job(tx: ConversationMergeTransaction) -> Receipt:
            return self._unmerge(tx, source_id)

        target_id = await self.store.read(_target_of(self.project, source_id))
        named = (source_id,) if target_id is None else (source_id, target_id)
        async with self.actors.paused(self.project, named):
            return await self.store.write(job)

    def _require_both(self, reader: ConversationReader, source_id: str, target_id: str) -> None:
        """Raise NotFound without the source, and Invalid without the target."""
        if reader.conversation(self.project.rowid, source_id) is None:
            raise no_such_conversation()
        if source_id == target_id:
            raise Invalid(Problem("/into", "same", "A conversation can't be merged into itself."))
        if reader.conversation(self.project.rowid, target_id) is None:
            raise unknown_target()

    def _merge(self, tx: ConversationMergeTransaction, source_id: str, target_id: str) -> Receipt:
        (source, owner), (target, other) = self._locked(tx, source_id, target_id)
        if source.merged_into == target.id:
            return Receipt(source, source, owner, self.project)
        require_mergeable(source, target)
        if owner.rowid != other.rowid:
            message = "The conversations are of different contacts. Merge the contacts first if they are one person."
            raise Conflict(message, code="different_contacts")
        at, moves_ticket = self.clock(), source.ticket_id is not None
        known = set(tx.follower_keys(target.rowid))
        followers = tuple(each for each in tx.follower_keys(source.rowid) if each not in known)
        merged = self._carry_out(tx, source, MergeInto(target.id, moves_ticket), at)
        absorbed = self._carry_out(tx, target, Absorb(source, followers, moves_ticket), at).after
        before = self._before(source, target, absorbed, followers)
        tx.put_merge(MergeRecord(source.rowid, target.rowid, at, before))
        if source.ticket_id is not None:
            self._move_ticket(tx, source.ticket_id, source, target, at)
        _move_writing(tx, source, absorbed, at)
        self._record(tx, "conversation.merged", source, target)
        return merged

    def _unmerge(self, tx: ConversationMergeTransaction, source_id: str) -> Receipt:
        row = tx.conversation(self.project.rowid, source_id)
        if row is None:
            raise no_such_conversation()
        if row[0].merged_into is None:
            return Receipt(row[0], row[0], row[1], self.project)
        (source, _), (target, _) = self._locked(tx, source_id, row[0].merged_into)
        record, at = tx.merge_of(source.rowid), self.clock()
        assert record is not None, "each merge has a record"
        if record.at + UNDO_MS < at:
            message = (
                f"Conversations were merged more than {UNDO_DAYS} days ago, which can no longer be undone."
            )
            raise Conflict(message, code="merge_is_final")
        before = record.before
        # If an agent has answered since, the contact no longer waits in either.
        waits = before.waiting_since is not None and target.waiting_since == earlier(
            before.waiting_since, before.target_waiting_since
        )
        taken = before.waiting_since if waits and before.closed else None
        if source.split_from is not None:  # its messages may have been split off again since
            taken = wait_left(tx, source, taken)
        gives_ticket = before.ticket_id is not None and target.ticket_id == before.ticket_id
        ticket_id = before.ticket_id if gives_ticket and source.ticket_id is None else None
        released = Release(
            source.id,
            before.tags,
            before.followers,
            ticket_id,
            None if before.waiting_since == before.target_waiting_since else before.waiting_since,
            _own_wait(tx, target, record) if waits else None,
            close=_is_open_by_merge(target, record),
        )
        self._carry_out(tx, target, released, at)
        undone = Unmerge(before.closed, before.status, before.snoozed_until, taken, ticket_id)
        receipt = self._carry_out(tx, source, undone, at)
        if ticket_id is not None:
            self._move_ticket(tx, ticket_id, target, source, at)
        tx.delete_merge(source.rowid)
        self._record(tx, "conversation.unmerged", source, target)
        return receipt

    def _locked(
        self, tx: ConversationMergeTransaction, source_id: str, target_id: str
    ) -> tuple[tuple[Conversation, Contact], tuple[Conversation, Contact]]:
        """Return both conversations with their contacts, locked in the order of their ids. Raises NotFound or Invalid."""
        rows = {each: tx.conversation(self.project.rowid, each) for each in sorted((source_id, target_id))}
        source, target = rows[source_id], rows[target_id]
        if source is None:
            raise no_such_conversation()
        if target is None:
            raise unknown_target()
        return source, target

    def _before(
        self, source: Conversation, target: Conversation, absorbed: Conversation, followers: tuple[int, ...]
    ) -> BeforeMerge:
        return BeforeMerge(
            source.status != "CLOSED",
            source.status,
            source.snoozed_until,
            source.waiting_since,
            target.waiting_since,
            tuple(tag for tag in absorbed.tags if tag not in target.tags),
            followers,
            source.ticket_id,
            target.status == "CLOSED" != absorbed.status,
        )

    def _carry_out(
        self, tx: ConversationMergeTransaction, state: Conversation, command: Command, at: int
    ) -> Receipt:
        return carry_out(make_plan(self.project, state, command, at, None, by=self.by), tx)

    def _move_ticket(
        self,
        tx: Any,  # the store's whole transaction: no one protocol has changes of tickets and of conversations
        ticket_id: str,
        source: Conversation,
        target: Conversation,
        at: int,
    ) -> None:
        ticket = tx.ticket(self.project.rowid, ticket_id)
        if ticket is not None and ticket.conversation_id == source.id:
            values = {"conversation_id": target.id}
            change_ticket(tx, self.project, ticket_id, values, self.by, at, source.id)

    def _record(
        self, tx: ConversationMergeTransaction, action: str, source: Conversation, target: Conversation
    ) -> None:
        with tx.signed(self.origin):
            entry = AuditEntry(action, source.id, project=self.project.rowid, details={"into": target.id})
            tx.record(entry)


def unknown_target() -> Invalid:
    """Return the refusal of a target that the project does not have."""
    return Invalid(Problem("/into", "unknown", "There is no such conversation in this project."))


def _target_of(project: Project, source_id: str) -> Callable[[ConversationReader], str | None]:
    def read(reader: ConversationReader) -> str | None:
        row = reader.conversation(project.rowid, source_id)
        if row is None:
            raise no_such_conversation()
        return row[0].merged_into

    return read


def _is_open_by_merge(target: Conversation, record: MergeRecord) -> bool:
    """Return whether the target is open only because of the merge: it has no message since, and was not reopened again."""
    untouched = target.opened_at == record.at and (target.last_message_at or 0) < record.at
    return record.before.reopened and target.status != "CLOSED" and untouched


def _own_wait(tx: ConversationMergeTransaction, target: Conversation, record: MergeRecord) -> int | None:
    """Return since when (ms) the contact waits in the target without the source, if no agent has answered since the merge."""
    if record.before.target_waiting_since is not None:
        return record.before.target_waiting_since
    return tx.first_of_contact([target.rowid], [target.id], record.at)


def _move_writing(
    tx: ConversationMergeTransaction, source: Conversation, target: Conversation, at: int
) -> None:
    """Move drafts and held messages to the conversation that goes on; held ones count as written with its present state."""
    for draft in tx.drafts_of(source.rowid):
        key = draft_key(target, draft.key.author, internal=draft.key.internal)
        written = DraftWrite(draft.text, draft.attachments, None, None, None, draft.mentions)
        write_draft(tx, key, written, at, bounded=False)
        remove_draft_version(tx, draft.key, draft.version)
    for held in tx.held_in(source.rowid):
        ids = [each.id for each in held.attachments]
        missing = tx.attach_uploads(target.project, target.rowid, ids) if ids else ()
        assert not missing, "uploads of held messages are kept"
        sequence = None if held.if_sequence is None else target.sequence
        moved = replace(held, conversation=target.rowid, conversation_id=target.id, if_sequence=sequence)
        tx.move_held(moved)
        if ids:
            tx.release_uploads(source.rowid, ids)
        tx.note_writing(HeldEnded(held.author, held.project, source.id, held.id, "taken_back", None))
        tx.note_writing(MessageHeld(held.author, held.project, target.id, moved))
