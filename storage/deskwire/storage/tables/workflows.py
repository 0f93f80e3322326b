"""Workflows, their versions and their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import to_builtins

from deskwire.engine.conversations.facts import WorkflowCompleted
from deskwire.engine.core.errors import StaleState
from deskwire.engine.core.values import replace
from deskwire.engine.workflows.definition import Trigger
from deskwire.engine.workflows.runs import (
    VERSIONS_KEPT,
    EndedRun,
    RunOutcome,
    Version,
    WaitingRun,
    WaitingRuns,
    WorkflowRun,
)
from deskwire.engine.workflows.workflow import Workflow
from deskwire.storage.tables.base import Changes, Queries

_WORKFLOW: Final = "SELECT rowid, id, project, name, trigger, version, created_at, updated_at FROM workflows"
_NO_ROW: Final = (1 << 63) - 1

KEPT_MS: Final = 60_000
"""Time for which a replaced version is retained, for readers that are about to start it."""


def run_of(state: str | None) -> WorkflowRun | None:
    """Parse the state in a row of `workflow_runs`."""
    return None if state is None else WorkflowRun(**orjson.loads(state))


class WorkflowReads(Queries):
    """Queries on workflows; the methods are those of `workflows.ports.WorkflowReader`."""

    def workflow(self, project: int, workflow_id: str) -> Workflow | None:
        row = self.conn.execute(
            f"{_WORKFLOW} WHERE id = ? AND project = ?", (workflow_id, project)
        ).fetchone()
        return None if row is None else Workflow(*row)

    def workflows(
        self, project: int, trigger: Trigger | None, before: int | None, limit: int
    ) -> Sequence[Workflow]:
        where, values = ("AND trigger = ?", [trigger]) if trigger is not None else ("", [])
        rows = self.conn.execute(
            f"{_WORKFLOW} WHERE project = ? {where} AND rowid < ? ORDER BY rowid DESC LIMIT ?",
            (project, *values, before or _NO_ROW, limit),
        )
        return [Workflow(*row) for row in rows]

    def workflow_flows(self, workflow: Workflow) -> tuple[int, Sequence[Any]]:
        row = self.conn.execute(
            "SELECT rowid, flows FROM workflow_versions WHERE workflow_id = ? AND number = ?",
            (workflow.id, workflow.version),
        ).fetchone()
        return row[0], orjson.loads(row[1])

    def workflow_version(self, version: int) -> tuple[str, Sequence[Any]] | None:
        row = self.conn.execute(
            "SELECT workflow_id, flows FROM workflow_versions WHERE rowid = ?", (version,)
        ).fetchone()
        return None if row is None else (row[0], orjson.loads(row[1]))

    def workflow_versions(self, workflow: Workflow, before: int | None, limit: int) -> Sequence[Version]:
        rows = self.conn.execute(
            "SELECT number, flows, created_at FROM workflow_versions WHERE workflow_id = ? AND number < ? "
            "ORDER BY number DESC LIMIT ?",
            (workflow.id, before or _NO_ROW, limit),
        )
        return [Version(number, orjson.loads(flows), created_at) for number, flows, created_at in rows]

    def waiting_runs(self, workflow: Workflow, before: int | None, limit: int) -> Sequence[WaitingRun]:
        rows = self.conn.execute(
            "SELECT r.conversation, c.id, v.number, r.flow, r.action, r.since, r.due_at FROM workflow_versions v "
            "JOIN workflow_runs r ON r.version = v.rowid JOIN conversations c ON c.rowid = r.conversation "
            "WHERE v.workflow_id = ? AND r.conversation < ? ORDER BY r.conversation DESC LIMIT ?",
            (workflow.id, before or _NO_ROW, limit),
        )
        return [
            WaitingRun(rowid, conversation, number, (flow, action), since, due_at)
            for rowid, conversation, number, flow, action, since, due_at in rows
        ]

    def ended_runs(
        self, workflow: Workflow, before: int | None, limit: int, *, stopped: bool
    ) -> Sequence[EndedRun]:
        rows = self.conn.execute(
            "SELECT e.rowid, c.id, e.number, e.flow, e.action, e.outcome, e.at FROM workflow_ends e "
            "JOIN conversations c ON c.rowid = e.conversation WHERE e.workflow_id = ? AND e.rowid < ? "
            f"{'AND e.stopped = 1 ' if stopped else ''}ORDER BY e.rowid DESC LIMIT ?",
            (workflow.id, before or _NO_ROW, limit),
        )
        return [
            EndedRun(rowid, conversation, number, (flow, action), outcome, at)
            for rowid, conversation, number, flow, action, outcome, at in rows
        ]

    def waiting_places(self, workflow: Workflow) -> Sequence[WaitingRuns]:
        rows = self.conn.execute(
            "SELECT v.number, r.flow, r.action, count(*), min(r.since) FROM workflow_versions v "
            "JOIN workflow_runs r ON r.version = v.rowid WHERE v.workflow_id = ? GROUP BY 1, 2, 3 ORDER BY 1 DESC, 2, 3",
            (workflow.id,),
        )
        return [
            WaitingRuns(number, (flow, action), runs, since) for number, flow, action, runs, since in rows
        ]

    def workflow_outcomes(self, workflow: Workflow) -> Mapping[RunOutcome, int]:
        rows = self.conn.execute(
            "SELECT outcome, count(*) FROM workflow_ends WHERE workflow_id = ? GROUP BY outcome",
            (workflow.id,),
        )
        return dict(rows.fetchall())

    def next_run(self) -> int | None:
        row = self.conn.execute(
            "SELECT due_at FROM workflow_runs WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1"
        ).fetchone()
        return None if row is None else int(row[0])

    def due_runs(self, until: int, limit: int) -> Sequence[tuple[str, str]]:
        rows = self.conn.execute(
            "SELECT p.id, c.id FROM workflow_runs r JOIN conversations c ON c.rowid = r.conversation "
            "JOIN projects p ON p.rowid = c.project WHERE r.due_at <= ? ORDER BY r.due_at LIMIT ?",
            (until, limit),
        )
        return [(row[0], row[1]) for row in rows]


class WorkflowWrites(Changes):
    """Changes of workflows; the methods are those of `workflows.ports.WorkflowTransaction`."""

    runs_due: list[int]

    def insert_workflow(self, workflow: Workflow, flows: Sequence[Any]) -> Workflow:
        rowid = self.inserted(
            "INSERT INTO workflows (id, project, name, trigger, version, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                workflow.id,
                workflow.project,
                workflow.name,
                workflow.trigger,
                workflow.version,
                workflow.created_at,
                workflow.updated_at,
            ),
        )
        self._publish(workflow, flows)
        return replace(workflow, rowid=rowid)

    def save_workflow(self, workflow: Workflow, flows: Sequence[Any] | None) -> None:
        self.conn.execute(
            "UPDATE workflows SET name = ?, trigger = ?, version = ?, updated_at = ? WHERE rowid = ?",
            (workflow.name, workflow.trigger, workflow.version, workflow.updated_at, workflow.rowid),
        )
        if flows is not None:
            self._retire(workflow.id, workflow.updated_at)
            self._publish(workflow, flows)

    def delete_workflow(self, workflow: Workflow, at: int) -> None:
        self._retire(workflow.id, at)
        self.conn.execute("DELETE FROM workflows WHERE rowid = ?", (workflow.rowid,))

    def forget_versions(self, now: int) -> None:
        self.conn.execute(
            "DELETE FROM workflow_versions WHERE retired_at < ? AND NOT EXISTS "
            "(SELECT 1 FROM workflow_runs r WHERE r.version = workflow_versions.rowid) AND NOT EXISTS "
            "(SELECT 1 FROM workflows w WHERE w.id = workflow_versions.workflow_id "
            "AND workflow_versions.number > w.version - ?)",
            (now - KEPT_MS, VERSIONS_KEPT),
        )

    def save_run(self, conversation: int, run: WorkflowRun | None, at: int) -> None:
        if run is None:
            self.conn.execute("DELETE FROM workflow_runs WHERE conversation = ?", (conversation,))
            return
        kept = self.conn.execute("SELECT 1 FROM workflow_versions WHERE rowid = ?", (run.version,)).fetchone()
        if kept is None:
            raise StaleState(f"version {run.version} of the workflow {run.workflow_id} is gone")
        self.conn.execute(
            "INSERT INTO workflow_runs (conversation, version, state, due_at, since, flow, action) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (conversation) DO UPDATE SET version = excluded.version, "
            "state = excluded.state, due_at = excluded.due_at, since = excluded.since, flow = excluded.flow, "
            "action = excluded.action",
            (
                conversation,
                run.version,
                orjson.dumps(to_builtins(run)).decode(),
                run.due_at,
                at,
                run.flow,
                run.action,
            ),
        )
        if run.due_at is not None:
            self.runs_due.append(run.due_at)

    def put_workflow_end(self, conversation: int, end: WorkflowCompleted, at: int) -> None:
        flow, action = (None, None) if end.place is None else end.place
        outcome = end.stopped or end.reason
        self.conn.execute(
            "INSERT INTO workflow_ends (workflow_id, number, conversation, flow, action, outcome, stopped, at) "
            "SELECT v.workflow_id, v.number, ?, ?, ?, ?, ?, ? FROM workflow_versions v WHERE v.rowid = ?",
            (conversation, flow, action, outcome, int(end.stopped is not None), at, end.version),
        )

    def postpone_runs(self, conversation_ids: Sequence[str], until: int) -> None:
        self.conn.executemany(
            "UPDATE workflow_runs SET due_at = ? WHERE due_at IS NOT NULL AND conversation = "
            "(SELECT rowid FROM conversations WHERE id = ?)",
            [(until, each) for each in conversation_ids],
        )

    def _publish(self, workflow: Workflow, flows: Sequence[Any]) -> None:
        self.conn.execute(
            "INSERT INTO workflow_versions (workflow_id, number, flows, created_at) VALUES (?, ?, ?, ?)",
            (workflow.id, workflow.version, orjson.dumps(flows).decode(), workflow.updated_at),
        )

    def _retire(self, workflow_id: str, at: int) -> None:
        self.conn.execute(
            "UPDATE workflow_versions SET retired_at = ? WHERE workflow_id = ? AND retired_at IS NULL",
            (at, workflow_id),
        )
