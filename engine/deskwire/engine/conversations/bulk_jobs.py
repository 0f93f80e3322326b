"""Bulk jobs: one change of all conversations that a filter matches, carried out in the background.

- The conversations of a job are those that match when it starts. They are stored as its items, and later matches are not added.
- Each item is changed by its conversation's actor. The commit of the change also stores the item's new state, so that after a
  crash none is changed twice and none is left out.
- An item that can't be changed is skipped with a reason.
- Undo restores each changed item, unless the fields that the job has set were changed since; it keeps those with a reason.
- A follow and a read position are the author's alone, and rows outside the conversation; see `bulk_own_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import READ, WORK, Assignee, AssigneeType, Project
from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.conversations.commands import (
    Assign,
    ChangeReadPosition,
    Close,
    Follow,
    MarkNoAnswerNeeded,
    Patch,
    Reopen,
    Restore,
    Retag,
    WaitAgain,
)
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.decide import restorable
from deskwire.engine.conversations.ports import ConversationReader, ConversationTransaction
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.errors import Conflict, NotFound
from deskwire.engine.core.values import replace
from deskwire.engine.events.ports import EventTransaction
from deskwire.engine.events.project_events import append_internal_event, settings_changed

BULK_MAX: Final = 10_000
"""Conversations of a job."""
EXAMINED_MAX: Final = 100_000
"""Conversations that are examined to find those of a job, if no index has only those of its filter."""
RUNNING_MAX: Final = 5
"""Jobs that a project may have in progress; a user may have one of them."""
KEPT_MS: Final = 30 * 86_400_000
"""Time for which an ended job is kept, and can be undone."""
LISTED_MAX: Final = 20
"""Jobs in a list, the newest first."""
NAMED_MAX: Final = 100
"""Skipped conversations that a job names by id."""

ActionType = Literal[
    "close",
    "reopen",
    "pending",
    "assign",
    "tag",
    "snooze",
    "archive",
    "unarchive",
    "noAnswerNeeded",
    "waitAgain",
    "unread",
    "follow",
    "unfollow",
]
JobStatus = Literal["running", "completed", "cancelled", "stopped", "undoing", "undone"]
ItemState = Literal["pending", "changed", "skipped", "undone", "kept"]

WAITING: Final[Mapping[JobStatus, ItemState]] = {"running": "pending", "undoing": "changed"}
"""The state of the items that a job in progress still has to carry out, by its status."""
REFUSED: Final[Mapping[JobStatus, ItemState]] = {"running": "skipped", "undoing": "kept"}
DONE: Final[Mapping[JobStatus, JobStatus]] = {"running": "completed", "undoing": "undone"}

_SET: Final[Mapping[ActionType, tuple[str, ...]]] = {
    "close": ("status", "closed_at"),
    "reopen": ("status", "opened_at"),
    "pending": ("status",),
    "assign": ("assignee",),
    "tag": (),  # undo takes back the job's tags only, so later tags need no comparison
    "snooze": ("snoozed_until",),
    "archive": ("archived", "archived_at"),
    "unarchive": ("archived",),
    "noAnswerNeeded": ("no_answer_needed_since",),
    "waitAgain": ("waiting_since",),
    "unread": (),  # these three change a row of the author alone, which undo compares
    "follow": (),
    "unfollow": (),
}
"""The fields that an action sets; if they differ later, they were changed since."""

MANAGE: Final = "conversations.manage"
PERMISSION: Final[Mapping[ActionType, str]] = {
    "close": MANAGE,
    "reopen": MANAGE,
    "pending": MANAGE,
    "assign": MANAGE,
    "tag": MANAGE,
    "snooze": MANAGE,
    "archive": MANAGE,
    "unarchive": MANAGE,
    "noAnswerNeeded": WORK,
    "waitAgain": WORK,
    "unread": READ,
    "follow": READ,
    "unfollow": READ,
}
"""The permission that the author of a job needs: that of the call for a single conversation."""


class BulkAction(Struct, frozen=True, omit_defaults=True):
    """The change of a job.

    Args:
        assignee: type and id of the new assignee; None to unassign.
        add, remove: normal tags.
        until: the end (ms) of a snooze; None to end it.
    """

    type: ActionType
    assignee: tuple[AssigneeType, str] | None = None
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    until: int | None = None


class Trace(Struct, frozen=True, omit_defaults=True):
    """The data by which an item is undone.

    Args:
        left: the fields that the job has set, with the values that it left.
        before: the fields to restore.
        added, removed: the tags that the job has added and removed.
        own_left, own_before: the author's own row as the job left it and as it was before; see `own_row`.
    """

    left: dict[str, Any] = {}
    before: dict[str, Any] = {}
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    own_left: tuple[int, ...] | None = None
    own_before: tuple[int, ...] | None = None


class BulkJob(Struct, frozen=True):
    """A stored job; times in milliseconds. `project` and `author` are storage keys.

    Args:
        reason: why it was stopped.
        total: the number of its items.
    """

    rowid: int
    id: str
    project: int
    author: int
    author_id: str
    author_name: str
    action: BulkAction
    status: JobStatus
    reason: str | None
    total: int
    created_at: int
    ended_at: int | None = None


class BulkItem(Struct, frozen=True):
    """An item of a job.

    Args:
        conversation, conversation_id: storage key and id; None if the conversation was deleted.
        trace: of a changed item. A pending item of `noAnswerNeeded` has one, too, with the number of messages at the start.
    """

    rowid: int
    conversation_id: str | None
    trace: Trace | None = None
    conversation: int | None = None


class RefusedItem(Struct, frozen=True):
    """An item that was skipped, or kept by undo; see `BulkItem`."""

    state: ItemState
    reason: str
    conversation_id: str | None


class BulkCounts(Struct, frozen=True):
    """The progress of a job.

    Args:
        states: the number of items by state and reason.
        named: the first refused items.
    """

    states: Mapping[tuple[ItemState, str | None], int]
    named: Sequence[RefusedItem]

    def of(self, *states: ItemState) -> int:
        """Return the number of items in these states."""
        return sum(count for (state, _), count in self.states.items() if state in states)


class BulkReader(Protocol):
    """Queries on bulk jobs. Projects, users and jobs are storage keys."""

    def bulk_job(self, project: int, author: int, job_id: str) -> BulkJob | None:
        """Return a user's job."""

    def bulk_jobs(self, project: int, author: int, limit: int) -> Sequence[BulkJob]:
        """Return a user's jobs in a project, the newest first."""

    def count_active_bulk_jobs(self, project: int, author: int | None) -> int:
        """Count the jobs in progress of a project, or of a user in it."""

    def active_bulk_jobs(self) -> Sequence[BulkJob]:
        """Return the jobs in progress of all projects, the oldest first."""

    def next_bulk_job(self) -> int | None:
        """Return the time (ms) of the oldest job in progress; None if there is none."""

    def bulk_items(self, job: int, state: ItemState, limit: int) -> Sequence[BulkItem]:
        """Return the first items of a job in this state."""

    def bulk_counts(self, job: int) -> BulkCounts:
        """Return the progress of a job."""


class BulkTransaction(BulkReader, EventTransaction, Protocol):
    """Changes of bulk jobs."""

    def insert_bulk_job(self, job: BulkJob, conversations: Sequence[int]) -> BulkJob:
        """Store a new job with an item for each conversation that exists; return it as stored. The commit wakes the runner.

        Each item of `noAnswerNeeded` stores the number of messages that its conversation has now.
        """

    def claim_bulk_job(self, job: int) -> JobStatus | None:
        """Return the status of a job, locked against other nodes until this commit."""

    def save_bulk_job(self, job: BulkJob) -> None:
        """Store a job's changed status; the commit wakes the runner."""

    def claim_bulk_item(self, item: int) -> tuple[JobStatus, ItemState] | None:
        """Return the status of an item's job and the item's state, locked against other nodes until this commit."""

    def save_bulk_item(self, item: int, state: ItemState, reason: str | None, trace: Trace | None) -> None:
        """Store the outcome of an item. Without a trace, the stored one is removed."""

    def prune_bulk_jobs(self, older_than: int, limit: int) -> int:
        """Delete up to `limit` rows of jobs that ended before this time (ms); return their number."""


class BulkStepReader(BulkReader, ConversationReader, AccountReader, TeamReader, Protocol):
    """Queries for the checks before an item is changed."""


class BulkStepTransaction(BulkTransaction, ConversationTransaction, AccountReader, Protocol):
    """Changes of an item, in its conversation's commit."""


BulkCommand = (
    Close
    | Reopen
    | Patch
    | Assign
    | Retag
    | MarkNoAnswerNeeded
    | WaitAgain
    | Follow
    | ChangeReadPosition
    | Restore
)
"""The commands of jobs."""


def command_of(job: BulkJob, item: BulkItem, assignee: Assignee | None) -> BulkCommand:
    """Return the command of an item; `assignee` is the job's assignee with the present name."""
    action = job.action
    match action.type:
        case "close":
            return Close("agent")
        case "reopen":
            return Reopen()
        case "pending":
            return Patch({"status": "PENDING"})
        case "assign":
            return Assign(assignee)
        case "tag":
            return Retag(action.add, action.remove)
        case "snooze":
            return Patch({"snoozed_until": action.until})
        case "archive" | "unarchive":
            return Patch({"archived": action.type == "archive"})
        case "noAnswerNeeded":
            # The messages at the start, so that the mark does not hide a message that the author has not seen.
            return MarkNoAnswerNeeded(_newest_index(item))
        case "waitAgain":
            return WaitAgain()
        case "unread":
            return ChangeReadPosition()
        case "follow" | "unfollow":
            return Follow(job.author, action.type == "follow")


def _newest_index(item: BulkItem) -> int:
    """Return the index of the newest message that a trace has counted; -1 for none."""
    assert item.trace is not None, "the item stores the number of messages"
    newest: int = item.trace.before["messages"] - 1
    return newest


_RESTORED: Final = ("status", "closed_by", "waiting_since", "snoozed_until", "assignee", "archived")
_RESTORED_BY: Final[Mapping[str, tuple[str, ...]]] = {"assign": ("assignee",), "waitAgain": ("messages",)}


def trace_of(action: BulkAction, before: Conversation, after: Conversation) -> Trace:
    """Return the trace of a changed conversation."""
    names = _RESTORED_BY.get(action.type, _RESTORED)
    if action.type == "tag":
        added = tuple(each for each in after.tags if each not in before.tags)
        return Trace(added=added, removed=tuple(each for each in before.tags if each not in after.tags))
    return Trace(
        {name: restorable(after, name) for name in _SET[action.type]},
        {name: restorable(before, name) for name in names},
    )


def restore_of(job: BulkJob, item: BulkItem, assignee: Assignee | None, now: int) -> BulkCommand:
    """Return the command that undoes a changed item at time `now` (ms).

    Args:
        assignee: the former assignee with the present name.
    """
    trace = item.trace
    assert trace is not None, "a changed item has a trace"
    before = trace.before
    then: list[Reopen | Close | Assign | Patch | Retag | MarkNoAnswerNeeded | WaitAgain | Follow] = []
    match job.action.type:
        case "close":
            then.append(Reopen(before["waiting_since"]))
            if before["status"] == "PENDING":
                then.append(Patch({"status": "PENDING"}))
            if (before["snoozed_until"] or 0) > now:
                then.append(Patch({"snoozed_until": before["snoozed_until"]}))
        case "reopen":
            then.append(Close(before["closed_by"] or "agent"))
        case "pending":
            then.append(Patch({"status": before["status"]}))
        case "assign":
            then.append(Assign(assignee))
        case "tag":
            then.append(Retag(trace.removed, trace.added))
        case "snooze":
            until = before["snoozed_until"]
            then.append(Patch({"snoozed_until": until if (until or 0) > now else None}))
        case "archive" | "unarchive":
            then.append(Patch({"archived": before["archived"]}))
        case "noAnswerNeeded":
            then.append(WaitAgain())
        case "waitAgain":
            then.append(MarkNoAnswerNeeded(_newest_index(item)))
        case "unread":
            return ChangeReadPosition()
        case "follow":
            then.append(Follow(job.author, False))
        case "unfollow":
            assert trace.own_before is not None, "the author has followed it"
            then.append(Follow(job.author, True, trace.own_before[0]))
    return Restore(trace.left, tuple(then))


def start_bulk_job(
    tx: BulkTransaction, project: Project, job: BulkJob, conversations: Sequence[int]
) -> BulkJob:
    """Store a new job; return it as stored, which is ended if it has no conversations.

    Raises Conflict if the user or the project has too many in progress.
    """
    _require_room(tx, job)
    stored = tx.insert_bulk_job(job, conversations)
    if not stored.total:
        return end_bulk_job(tx, project, stored, "completed", None, stored.created_at)
    _notify(tx, project, stored, stored.created_at)
    return stored


def cancel_bulk_job(tx: BulkTransaction, project: Project, job: BulkJob, at: int) -> BulkJob:
    """Cancel a running job; its changes stay. Raises Conflict if it is not running."""
    if tx.claim_bulk_job(job.rowid) != "running":
        raise Conflict("Only a running job can be cancelled.", code="bulk_job_ended")
    return end_bulk_job(tx, project, job, "cancelled", None, at)


def undo_bulk_job(tx: BulkTransaction, project: Project, job: BulkJob, at: int) -> BulkJob:
    """Begin to undo an ended job. Raises Conflict if it is in progress, was undone, or others are in progress."""
    status = tx.claim_bulk_job(job.rowid)
    if status in WAITING:
        raise Conflict("The job is in progress; cancel it first.", code="bulk_job_running")
    if status == "undone":
        raise Conflict("The job was undone already.", code="bulk_job_ended")
    _require_room(tx, job)
    undoing = replace(job, status="undoing", reason=None, ended_at=None)
    tx.save_bulk_job(undoing)
    _notify(tx, project, undoing, at)
    return undoing


def end_bulk_job(
    tx: BulkTransaction, project: Project, job: BulkJob, status: JobStatus, reason: str | None, at: int
) -> BulkJob:
    """Store the end of a job, and notify the agents."""
    ended = replace(job, status=status, reason=reason, ended_at=at)
    tx.save_bulk_job(ended)
    _notify(tx, project, ended, at)
    return ended


def _require_room(tx: BulkTransaction, job: BulkJob) -> None:
    if tx.count_active_bulk_jobs(job.project, job.author):
        raise Conflict("You have a bulk job in progress; wait for its end.", code="bulk_job_running")
    if tx.count_active_bulk_jobs(job.project, None) >= RUNNING_MAX:
        message = f"The project has {RUNNING_MAX} bulk jobs in progress; wait until one has ended."
        raise Conflict(message, code="bulk_job_limit_reached")


def _notify(tx: BulkTransaction, project: Project, job: BulkJob, at: int) -> None:
    append_internal_event(tx, project, settings_changed("bulk_jobs", job.id), None, at)


def no_such_job() -> NotFound:
    """Return the refusal for a job that the user does not have."""
    return NotFound("You have no such bulk job in this project.", code="bulk_job_not_found")


def bulk_job_view(job: BulkJob, counts: BulkCounts) -> dict[str, Any]:
    """Return the object of a job with its progress."""
    undo = job.status in ("undoing", "undone")
    return {
        "id": job.id,
        "status": job.status,
        "reason": job.reason,
        "action": _action_view(job.action),
        "total": job.total,
        "done": counts.of("undone", "kept") if undo else job.total - counts.of("pending"),
        "changed": counts.of("changed", "undone", "kept"),
        "skipped": _groups(counts, "skipped"),
        "undone": counts.of("undone"),
        "kept": _groups(counts, "kept"),
        "createdBy": {"id": job.author_id, "name": job.author_name},
        "createdAt": iso(job.created_at),
        "endedAt": iso_or_none(job.ended_at),
    }


def _groups(counts: BulkCounts, state: ItemState) -> list[dict[str, Any]]:
    return [
        {
            "reason": reason,
            "count": count,
            "conversationIds": [
                each.conversation_id
                for each in counts.named
                if (each.state, each.reason) == (state, reason) and each.conversation_id is not None
            ],
        }
        for (each_state, reason), count in sorted(counts.states.items(), key=str)
        if each_state == state
    ]


def _action_view(action: BulkAction) -> dict[str, Any]:
    assignee = action.assignee
    return {
        "type": action.type,
        "assignee": None if assignee is None else {"type": assignee[0], "id": assignee[1]},
        "add": [*action.add],
        "remove": [*action.remove],
        "until": iso_or_none(action.until),
    }
