"""Bulk jobs and their items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from deskwire.engine.conversations.bulk_jobs import (
    NAMED_MAX,
    BulkAction,
    BulkCounts,
    BulkItem,
    BulkJob,
    ItemState,
    JobStatus,
    RefusedItem,
    Trace,
)
from deskwire.engine.core.values import replace
from deskwire.storage.dialect import either
from deskwire.storage.tables.base import Changes, Queries

_JOB: Final = (
    "SELECT j.rowid, j.id, j.project, u.rowid, u.id, u.name, j.action, j.status, j.reason, j.total, j.created_at, j.ended_at "
    "FROM bulk_jobs j JOIN users u ON u.rowid = j.author "
)
_CLAIMED_JOB: Final = either("SELECT j.status FROM bulk_jobs j WHERE j.rowid = ? {locking[j]}")
_CLAIMED_ITEM: Final = either(
    "SELECT j.status, i.state FROM bulk_job_items i JOIN bulk_jobs j ON j.rowid = i.job WHERE i.rowid = ? {locking[i]}"
)
_FOUND: Final = "FROM {numbers} w {and_then} conversations c ON c.rowid = w.value"
_INSERT_ITEMS: Final = either(
    f"INSERT INTO bulk_job_items (job, conversation, state) SELECT ?, c.rowid, 'pending' {_FOUND}"
)
# The trace of a pending item: its conversation's number of messages, in the form of `Trace`.
_INSERT_COUNTED_ITEMS: Final = either(
    "INSERT INTO bulk_job_items (job, conversation, state, trace) "
    """SELECT ?, c.rowid, 'pending', '{{"before":{{"messages":' || c.messages || '}}}}' """
    f"{_FOUND}"
)


class BulkReads(Queries):
    """See `engine.conversations.bulk_jobs.BulkReader`."""

    def bulk_job(self, project: int, author: int, job_id: str) -> BulkJob | None:
        sql = f"{_JOB}WHERE j.id = ? AND j.project = ? AND j.author = ?"
        row = self.conn.execute(sql, (job_id, project, author)).fetchone()
        return None if row is None else _job_of(row)

    def bulk_jobs(self, project: int, author: int, limit: int) -> Sequence[BulkJob]:
        sql = f"{_JOB}WHERE j.author = ? AND j.project = ? ORDER BY j.rowid DESC LIMIT ?"
        return [_job_of(row) for row in self.conn.execute(sql, (author, project, limit))]

    def count_active_bulk_jobs(self, project: int, author: int | None) -> int:
        sql = "SELECT count(*) FROM bulk_jobs WHERE ended_at IS NULL AND project = ?"
        values = (project,)
        if author is not None:
            sql, values = f"{sql} AND author = ?", (project, author)  # type: ignore[assignment]
        return int(self.conn.execute(sql, values).fetchone()[0])

    def active_bulk_jobs(self) -> Sequence[BulkJob]:
        rows = self.conn.execute(f"{_JOB}WHERE j.ended_at IS NULL ORDER BY j.created_at, j.rowid", ())
        return [_job_of(row) for row in rows]

    def next_bulk_job(self) -> int | None:
        sql = "SELECT created_at FROM bulk_jobs WHERE ended_at IS NULL ORDER BY created_at LIMIT 1"
        row = self.conn.execute(sql, ()).fetchone()
        return None if row is None else int(row[0])

    def bulk_items(self, job: int, state: ItemState, limit: int) -> Sequence[BulkItem]:
        rows = self.conn.execute(
            "SELECT i.rowid, c.id, i.trace, c.rowid FROM bulk_job_items i LEFT JOIN conversations c ON c.rowid = i.conversation "
            "WHERE i.job = ? AND i.state = ? ORDER BY i.rowid LIMIT ?",
            (job, state, limit),
        )
        return [BulkItem(row[0], row[1], _trace_of(row[2]), row[3]) for row in rows]

    def bulk_counts(self, job: int) -> BulkCounts:
        rows = self.conn.execute(
            "SELECT state, reason, count(*) FROM bulk_job_items WHERE job = ? GROUP BY state, reason", (job,)
        ).fetchall()
        named = self.conn.execute(
            "SELECT i.state, i.reason, c.id FROM bulk_job_items i LEFT JOIN conversations c ON c.rowid = i.conversation "
            "WHERE i.job = ? AND i.state IN ('skipped', 'kept') ORDER BY i.rowid LIMIT ?",
            (job, NAMED_MAX),
        )
        return BulkCounts(
            {(state, reason): count for state, reason, count in rows}, [RefusedItem(*row) for row in named]
        )


class BulkWrites(Changes):
    """See `engine.conversations.bulk_jobs.BulkTransaction`."""

    bulk_due: list[int]

    def insert_bulk_job(self, job: BulkJob, conversations: Sequence[int]) -> BulkJob:
        rowid = self.inserted(
            "INSERT INTO bulk_jobs (id, project, author, action, status, reason, total, created_at, ended_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                job.id,
                job.project,
                job.author,
                msgspec.json.encode(job.action).decode(),
                job.status,
                job.reason,
                0,
                job.created_at,
                job.ended_at,
            ),
        )
        insert = _INSERT_COUNTED_ITEMS if job.action.type == "noAnswerNeeded" else _INSERT_ITEMS
        self.conn.execute(insert[self.dialect], (rowid, self.dialect.listed(conversations)))
        sql = "SELECT count(*) FROM bulk_job_items WHERE job = ?"
        total = int(self.conn.execute(sql, (rowid,)).fetchone()[0])
        self.conn.execute("UPDATE bulk_jobs SET total = ? WHERE rowid = ?", (total, rowid))
        self.bulk_due.append(job.created_at)
        return replace(job, rowid=rowid, total=total)

    def claim_bulk_job(self, job: int) -> JobStatus | None:
        row = self.conn.execute(_CLAIMED_JOB[self.dialect], (job,)).fetchone()
        return None if row is None else row[0]

    def save_bulk_job(self, job: BulkJob) -> None:
        sql = "UPDATE bulk_jobs SET status = ?, reason = ?, ended_at = ? WHERE rowid = ?"
        self.conn.execute(sql, (job.status, job.reason, job.ended_at, job.rowid))
        self.bulk_due.append(job.created_at)

    def claim_bulk_item(self, item: int) -> tuple[JobStatus, ItemState] | None:
        row = self.conn.execute(_CLAIMED_ITEM[self.dialect], (item,)).fetchone()
        return None if row is None else (row[0], row[1])

    def save_bulk_item(self, item: int, state: ItemState, reason: str | None, trace: Trace | None) -> None:
        sql = "UPDATE bulk_job_items SET state = ?, reason = ?, trace = ? WHERE rowid = ?"
        text = None if trace is None else msgspec.json.encode(trace).decode()
        self.conn.execute(sql, (state, reason, text, item))

    def prune_bulk_jobs(self, older_than: int, limit: int) -> int:
        items = self.conn.execute(
            "DELETE FROM bulk_job_items WHERE rowid IN (SELECT i.rowid FROM bulk_jobs j JOIN bulk_job_items i ON i.job = j.rowid "
            "WHERE j.ended_at < ? LIMIT ?)",
            (older_than, limit),
        ).rowcount
        jobs = self.conn.execute(
            "DELETE FROM bulk_jobs WHERE rowid IN (SELECT j.rowid FROM bulk_jobs j WHERE j.ended_at < ? AND NOT EXISTS "
            "(SELECT 1 FROM bulk_job_items i WHERE i.job = j.rowid) LIMIT ?)",
            (older_than, limit - items),
        ).rowcount
        return items + jobs


def _trace_of(text: str | None) -> Trace | None:
    return None if text is None else msgspec.json.decode(text, type=Trace)


def _job_of(row: Sequence[Any]) -> BulkJob:
    action = msgspec.json.decode(row[6], type=BulkAction)
    values = (*row[:6], action, *row[7:])
    return BulkJob(*values)
