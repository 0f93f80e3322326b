"""The runner of bulk jobs on a real store: its batches, restarts and refusals, and the rows of the author alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import orjson
import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.accounts.people import User
from deskwire.engine.conversations import bulk_running
from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.bulk_jobs import (
    BulkAction,
    BulkJob,
    cancel_bulk_job,
    start_bulk_job,
    undo_bulk_job,
)
from deskwire.engine.conversations.bulk_running import BulkRunner
from deskwire.engine.conversations.commands import Assign, Close, Command, Delete, DeleteMessage, Follow
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.inbox import own_state
from deskwire.engine.conversations.listing import ReadPosition, SeenMessages
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.event_stream import Ephemeral
from tests.support.builders import NOON, PROJECT, HandClock, InlineStore, create, post
from tests.support.seeing import seen

BATCH: Final = bulk_running._BATCH_SIZE
LATER: Final = NOON + 86_400_000


class Streams:
    """The pages of agents: the events that they receive, with the only user who receives them."""

    def __init__(self) -> None:
        self.sent: list[tuple[dict[str, Any], int | None]] = []

    def broadcast(
        self, project: int, event: Ephemeral, *, to_user: int | None = None, viewing: str | None = None
    ) -> None:
        assert (project, viewing) == (PROJECT.rowid, None)
        self.sent.append((orjson.loads(event.body), to_user))


class Jobs:
    """A process that runs bulk jobs of a user; `restart` replaces it by another one on the same store."""

    def __init__(self, store: InlineStore, nursery: trio.Nursery) -> None:
        self.store = store
        self.clock = HandClock(LATER)
        self._nursery = nursery
        self.streams = Streams()
        self.author = self.member("ada")
        self.restart()

    def restart(self) -> None:
        """Forget everything in memory."""
        self.actors = ActorRegistry(self._nursery, self.store, self.clock, mailbox=256, idle_s=60, live=1_000)
        self.runner = BulkRunner(self.store, self.clock, self.actors, self.streams)

    def member(self, name: str, role: str = "agent") -> User:
        """Store a member of the project's organisation."""
        user = self.store.at_once(lambda tx: tx.insert_user(f"usr_{name}", f"{name}@x.org", name, None, NOON))
        self.store.at_once(lambda tx: tx.insert_membership(PROJECT.organisation, user.rowid, role, NOON))
        return user

    async def conversations(self, number: int) -> list[Conversation]:
        """Create conversations whose contacts wait for an answer to their second message."""
        made = []
        for place in range(number):
            command = create(f"u{place}", message=post())
            await self.actors.create(PROJECT, command)
            made.append(await self.ask(command.conversation_id, post()))
        return made

    async def ask(self, conversation_id: str, command: Command) -> Conversation:
        """Carry out a command; return the state after it."""
        return (await self.actors.ask(PROJECT, conversation_id, command)).after

    def start(self, action: BulkAction, conversations: list[Conversation]) -> BulkJob:
        """Start a job."""
        author = self.author
        ids = (0, new_id("blk", NOON), PROJECT.rowid, author.rowid, author.id, author.name)
        job = BulkJob(*ids, action, "running", None, 0, LATER)
        keys = [each.rowid for each in conversations]
        return self.store.at_once(lambda tx: start_bulk_job(tx, PROJECT, job, keys))

    async def carry_out(self, action: BulkAction, conversations: list[Conversation]) -> BulkJob:
        """Start a job; return it after its end."""
        return await self.ended(self.start(action, conversations))

    async def undo(self, job: BulkJob) -> BulkJob:
        """Undo an ended job; return it after that."""
        return await self.ended(self.store.at_once(lambda tx: undo_bulk_job(tx, PROJECT, job, LATER)))

    async def ended(self, job: BulkJob) -> BulkJob:
        """Run batches until the job has ended; return it."""
        while self.stored(job).ended_at is None:
            await self.runner.run_batch()
        return self.stored(job)

    def stored(self, job: BulkJob) -> BulkJob:
        found = seen(self.store, lambda reader: reader.bulk_job(PROJECT.rowid, self.author.rowid, job.id))
        assert found is not None
        return found

    def counts(self, job: BulkJob) -> dict[tuple[str, str | None], int]:
        """Return the number of a job's items by state and reason."""
        found = seen(self.store, lambda reader: reader.bulk_counts(job.rowid))
        return {(state, reason): number for (state, reason), number in found.states.items()}

    def state(self, one: Conversation) -> Conversation:
        found = seen(self.store, lambda reader: reader.conversation(PROJECT.rowid, one.id))
        assert found is not None
        return found[0]

    def followers(self, one: Conversation) -> list[str]:
        return [*seen(self.store, lambda reader: reader.followers([one.rowid]).get(one.rowid, ()))]

    def followed_since(self, one: Conversation) -> int | None:
        return seen(self.store, lambda reader: reader.followed_since(self.author.rowid, one.rowid))

    def read(self, one: Conversation, index: int, at: int, user: User | None = None) -> None:
        """Store how far a user has read a conversation; all its messages are the contact's."""
        position, reader = SeenMessages(index, index + 1), user or self.author
        assert self.store.at_once(lambda tx: tx.put_seen(reader.rowid, one.rowid, position, at))

    def position(self, one: Conversation, user: User | None = None) -> ReadPosition | None:
        reader = (user or self.author).rowid
        return self.store.at_once(lambda tx: tx.claim_read_position(reader, one.rowid))

    def unread(self, one: Conversation) -> int:
        """Return the number of messages that the author has not seen."""
        mine = seen(self.store, lambda reader: own_state(reader, PROJECT, self.author.rowid, self.state(one)))
        return int(mine["unread"])

    def changes(self, one: Conversation) -> list[list[str]]:
        """Return the fields that the conversation's events for agents name."""
        events = seen(self.store, lambda reader: reader.agents_events(PROJECT.rowid, 0, 10_000))
        return [
            orjson.loads(each.body)["data"]["changed"]
            for each in events
            if each.type == "conversation.changed" and each.conversation == one.rowid
        ]


@pytest.fixture
async def jobs(inline_store: InlineStore, autojump_clock: MockClock) -> AsyncIterator[Jobs]:
    async with trio.open_nursery() as nursery:
        yield Jobs(inline_store, nursery)
        nursery.cancel_scope.cancel()


CLOSE: Final = BulkAction("close")
FOLLOW: Final = BulkAction("follow")
UNFOLLOW: Final = BulkAction("unfollow")
UNREAD: Final = BulkAction("unread")
SETTLE: Final = BulkAction("noAnswerNeeded")


# The runner


@pytest.mark.parametrize("action", [CLOSE, FOLLOW, UNREAD, SETTLE], ids=lambda action: action.type)
async def test_job_and_its_undo_go_on_after_a_restart(
    jobs: Jobs, autojump_clock: MockClock, action: BulkAction
) -> None:
    made = await jobs.conversations(BATCH + 3)
    for each in made:
        jobs.read(each, 1, NOON)
    job = jobs.start(action, made)
    await jobs.runner.run_batch()
    assert jobs.counts(job) == {("changed", None): BATCH, ("pending", None): 3}
    jobs.restart()
    job = await jobs.ended(job)
    assert (job.status, jobs.counts(job)) == ("completed", {("changed", None): BATCH + 3})
    job = jobs.store.at_once(lambda tx: undo_bulk_job(tx, PROJECT, job, LATER))
    await jobs.runner.run_batch()
    assert jobs.counts(job) == {("undone", None): BATCH, ("changed", None): 3}
    jobs.restart()
    job = await jobs.ended(job)
    assert (job.status, jobs.counts(job)) == ("undone", {("undone", None): BATCH + 3})
    # One change by the job, and one by its undo; the read position is private.
    assert {len(jobs.changes(each)) for each in made} == {0 if action is UNREAD else 2}


@pytest.mark.parametrize("action", [CLOSE, FOLLOW, UNREAD, SETTLE], ids=lambda action: action.type)
async def test_failed_commit_leaves_its_item_to_the_next_batch(
    jobs: Jobs, autojump_clock: MockClock, action: BulkAction
) -> None:
    made = await jobs.conversations(2)
    for each in made:
        jobs.read(each, 1, NOON)
    job = jobs.start(action, made)
    jobs.store.write_failure = Unavailable("The disk refused.", code="storage_failed")
    with pytest.raises(Unavailable):
        await jobs.runner.run_batch()
    assert jobs.counts(job) == {("changed", None): 1, ("pending", None): 1}
    assert jobs.counts(await jobs.ended(job)) == {("changed", None): 2}


async def test_cancelled_job_changes_no_further_conversation(jobs: Jobs, autojump_clock: MockClock) -> None:
    made = await jobs.conversations(BATCH + 1)
    job = jobs.start(FOLLOW, made)
    await jobs.runner.run_batch()
    jobs.store.at_once(lambda tx: cancel_bulk_job(tx, PROJECT, job, LATER))
    assert await jobs.runner.run_batch() is False
    assert jobs.counts(job) == {("changed", None): BATCH, ("pending", None): 1}
    undone = await jobs.undo(jobs.stored(job))
    assert jobs.counts(undone) == {("undone", None): BATCH, ("pending", None): 1}


async def test_deleted_conversations_are_skipped_and_kept(jobs: Jobs, autojump_clock: MockClock) -> None:
    gone, later, stays = await jobs.conversations(3)
    job = jobs.start(FOLLOW, [gone, later, stays])
    await jobs.ask(gone.id, Delete("manual"))
    job = await jobs.ended(job)
    assert jobs.counts(job) == {("changed", None): 2, ("skipped", "conversation_deleted"): 1}
    await jobs.ask(later.id, Delete("manual"))
    assert jobs.counts(await jobs.undo(job)) == {
        ("undone", None): 1,
        ("kept", "conversation_deleted"): 1,
        ("skipped", "conversation_deleted"): 1,
    }


async def test_job_stops_once_its_snooze_has_ended_or_its_assignee_is_gone(
    jobs: Jobs, autojump_clock: MockClock
) -> None:
    made = await jobs.conversations(1)
    ended = await jobs.carry_out(BulkAction("snooze", until=NOON), made)
    assert (ended.status, ended.reason) == ("stopped", "snooze_ended")
    ended = await jobs.carry_out(BulkAction("assign", assignee=("user", "usr_gone")), made)
    assert (ended.status, ended.reason) == ("stopped", "assignee_gone")
    assert jobs.counts(ended) == {("pending", None): 1}


@pytest.mark.parametrize(
    ("role", "lost"),
    [("viewer", {"close", "noAnswerNeeded"}), (None, {"close", "noAnswerNeeded", "unread", "follow"})],
    ids=["viewer", "no-member"],
)
async def test_job_stops_without_the_permission_of_its_action(
    jobs: Jobs, autojump_clock: MockClock, role: str | None, lost: set[str]
) -> None:
    made, author = await jobs.conversations(1), jobs.author.rowid
    jobs.read(made[0], 1, NOON)
    if role is None:
        jobs.store.at_once(lambda tx: tx.delete_membership(PROJECT.organisation, author))
    else:
        jobs.store.at_once(lambda tx: tx.set_role(PROJECT.organisation, author, role))
    stopped = set()
    for action in (CLOSE, SETTLE, UNREAD, FOLLOW):
        job = await jobs.carry_out(action, made)
        if job.status == "stopped":
            assert (job.reason, jobs.counts(job)) == ("permission_lost", {("pending", None): 1})
            stopped.add(action.type)
    assert stopped == lost


# No answer needed


async def test_message_after_the_start_keeps_its_contact_waiting(
    jobs: Jobs, autojump_clock: MockClock
) -> None:
    quiet, writes, answered = await jobs.conversations(3)
    await jobs.ask(answered.id, post("agent"))
    job = jobs.start(SETTLE, [quiet, writes, answered])
    before = (await jobs.ask(writes.id, post())).waiting_since
    job = await jobs.ended(job)
    assert jobs.counts(job) == {
        ("changed", None): 1,
        ("skipped", "newer_message"): 1,
        ("skipped", "unchanged"): 1,
    }
    assert jobs.state(writes).waiting_since == before
    assert jobs.state(quiet).waiting_since is None
    await jobs.undo(job)
    assert jobs.state(quiet).waiting_since == quiet.waiting_since


async def test_marks_are_taken_back_and_set_again_by_undo(jobs: Jobs, autojump_clock: MockClock) -> None:
    marked, waiting = await jobs.conversations(2)
    await jobs.carry_out(SETTLE, [marked])
    job = await jobs.carry_out(BulkAction("waitAgain"), [marked, waiting])
    assert jobs.counts(job) == {("changed", None): 1, ("skipped", "unchanged"): 1}
    assert jobs.state(marked).waiting_since == marked.waiting_since
    await jobs.undo(job)
    assert jobs.state(marked).no_answer_needed_since == marked.waiting_since
    assert jobs.state(waiting).waiting_since == waiting.waiting_since


# Followers


async def test_job_follows_for_its_author_alone(jobs: Jobs, autojump_clock: MockClock) -> None:
    bea = jobs.member("bea")
    new, known = await jobs.conversations(2)
    await jobs.ask(known.id, Follow(jobs.author.rowid, True))
    await jobs.ask(new.id, Follow(bea.rowid, True))
    since, revision = jobs.followed_since(known), jobs.state(known).revision
    job = await jobs.carry_out(FOLLOW, [new, known])
    assert jobs.counts(job) == {("changed", None): 1, ("skipped", "unchanged"): 1}
    assert (jobs.followed_since(known), jobs.state(known).revision) == (since, revision)
    assert {*jobs.followers(new)} == {bea.id, jobs.author.id}
    await jobs.undo(job)
    assert (jobs.followers(new), jobs.followers(known)) == ([bea.id], [jobs.author.id])
    assert jobs.streams.sent == []


async def test_undo_keeps_a_follow_that_was_ended_or_begun_again_since(
    jobs: Jobs, autojump_clock: MockClock
) -> None:
    ended, again, left = await jobs.conversations(3)
    job = await jobs.carry_out(FOLLOW, [ended, again, left])
    for one in (ended, again):
        await jobs.ask(one.id, Follow(jobs.author.rowid, False))
    await jobs.ask(again.id, Follow(jobs.author.rowid, True))
    assert jobs.counts(await jobs.undo(job)) == {("undone", None): 1, ("kept", "changed_since"): 2}
    assert [jobs.followers(each) for each in (ended, again, left)] == [[], [jobs.author.id], []]


async def test_undo_of_an_ended_follow_restores_its_start_and_rank(
    jobs: Jobs, autojump_clock: MockClock
) -> None:
    bea = jobs.member("bea")
    first, again, never = await jobs.conversations(3)
    for one in (first, again):
        for user in (jobs.author, bea):
            await jobs.ask(one.id, Follow(user.rowid, True))
    since = jobs.followed_since(first)
    job = await jobs.carry_out(UNFOLLOW, [first, again, never])
    assert jobs.counts(job) == {("changed", None): 2, ("skipped", "unchanged"): 1}
    assert jobs.followers(first) == [bea.id]
    await jobs.ask(again.id, Follow(jobs.author.rowid, True))
    assert jobs.counts(await jobs.undo(job)) == {
        ("undone", None): 1,
        ("kept", "changed_since"): 1,
        ("skipped", "unchanged"): 1,
    }
    assert (jobs.followed_since(first), jobs.followers(first)) == (since, [jobs.author.id, bea.id])
    assert jobs.followers(again) == [bea.id, jobs.author.id]


# Read positions


async def test_job_marks_unread_for_its_author_alone(jobs: Jobs, autojump_clock: MockClock) -> None:
    bea, silent = jobs.member("bea"), create("silent")
    read, unread = await jobs.conversations(2)
    written = (await jobs.actors.create(PROJECT, silent)).after
    for user in (jobs.author, bea):
        jobs.read(read, 1, NOON, user)
    answered = await jobs.ask(read.id, post("agent"))
    job = await jobs.carry_out(UNREAD, [read, unread, written])
    assert jobs.counts(job) == {
        ("changed", None): 1,
        ("skipped", "unchanged"): 1,
        ("skipped", "no_contact_message"): 1,
    }
    position = jobs.position(read)
    assert position is not None
    assert position.seen == SeenMessages(0, 1)
    assert (jobs.unread(read), jobs.unread(unread)) == (1, 2)
    assert jobs.position(read, bea) == ReadPosition(SeenMessages(1, 2), NOON)
    assert jobs.state(read).revision == answered.revision
    ((event, to),) = jobs.streams.sent
    assert (event["type"], to) == ("me.seen", jobs.author.rowid)
    assert event["data"]["conversationId"] == read.id
    assert (event["data"]["index"], event["data"]["mine"]["unread"]) == (0, 1)


async def test_undo_restores_the_read_position_with_its_time(jobs: Jobs, autojump_clock: MockClock) -> None:
    read, marked = await jobs.conversations(2)
    jobs.read(read, 1, NOON + 5)
    author, until = jobs.author.rowid, jobs.clock()
    jobs.store.at_once(lambda tx: tx.put_seen_mark(author, PROJECT.rowid, until))
    job = await jobs.carry_out(UNREAD, [read, marked])
    assert (jobs.unread(read), jobs.unread(marked)) == (1, 1)
    await jobs.undo(job)
    assert jobs.position(read) == ReadPosition(SeenMessages(1, 2), NOON + 5)
    assert jobs.position(marked) is None
    assert (jobs.unread(read), jobs.unread(marked)) == (0, 0)
    assert [event["data"]["mine"]["unread"] for event, _ in jobs.streams.sent] == [1, 1, 0, 0]


async def test_undo_keeps_a_conversation_that_was_read_since(jobs: Jobs, autojump_clock: MockClock) -> None:
    opened, left = await jobs.conversations(2)
    for one in (opened, left):
        jobs.read(one, 1, NOON)
    job = await jobs.carry_out(UNREAD, [opened, left])
    jobs.read(opened, 1, LATER + 9)
    assert jobs.counts(await jobs.undo(job)) == {("undone", None): 1, ("kept", "changed_since"): 1}
    assert jobs.position(opened) == ReadPosition(SeenMessages(1, 2), LATER + 9)


async def test_deleted_message_of_the_contact_is_not_marked_unread(
    jobs: Jobs, autojump_clock: MockClock
) -> None:
    (one,) = await jobs.conversations(1)
    jobs.read(one, 1, NOON)
    _, newest = seen(jobs.store, lambda reader: reader.messages(one.rowid, internal=False))
    await jobs.ask(one.id, DeleteMessage(newest.id, internal=False))
    await jobs.carry_out(UNREAD, [one])
    position = jobs.position(one)
    assert position is not None
    assert position.seen == SeenMessages(-1, 0)


async def test_changes_of_other_fields_do_not_prevent_undo(jobs: Jobs, autojump_clock: MockClock) -> None:
    (one,) = await jobs.conversations(1)
    job = await jobs.carry_out(SETTLE, [one])
    await jobs.ask(one.id, Assign(None))
    await jobs.ask(one.id, Follow(jobs.author.rowid, True))
    assert jobs.counts(await jobs.undo(job)) == {("undone", None): 1}
    await jobs.ask(one.id, Close("agent"))
    assert jobs.counts(await jobs.carry_out(SETTLE, [one])) == {("skipped", "conversation_closed"): 1}
