"""Bulk jobs as the API shows them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.accounts.people import AssigneeType
from deskwire.engine.conversations.bulk_jobs import ActionType, JobStatus
from deskwire.http.schemas.base import BulkJobId, ConversationId, Moment, PersonName, Shape, UserId


class BulkAssignee(Shape):
    """The user or team that a job assigns."""

    type: AssigneeType
    id: str


class BulkAction(Shape):
    """The change of a job: `assignee` of `assign`, `add` and `remove` of `tag`, `until` of `snooze`; empty for others."""

    type: ActionType
    assignee: BulkAssignee | None
    add: list[str]
    remove: list[str]
    until: Moment | None


class BulkGroup(Shape):
    """Conversations that were skipped, or kept by undo, for the same reason; the first of them by id."""

    reason: Annotated[str, Field(examples=["unchanged"])]
    count: int
    conversation_ids: list[ConversationId]


class BulkAuthor(Shape):
    """The user who started a job. The name of a deleted account is empty."""

    id: UserId
    name: PersonName


class BulkJob(Shape):
    """A bulk job and its progress. `reason` says why it was `stopped`.

    `done` counts the conversations that are carried out, of `total`; while a job is undone, those that are restored or kept.
    """

    id: BulkJobId
    status: JobStatus
    reason: str | None
    action: BulkAction
    total: int
    done: int
    changed: int
    skipped: list[BulkGroup]
    undone: int
    kept: list[BulkGroup]
    created_by: BulkAuthor
    created_at: Moment
    ended_at: Moment | None
