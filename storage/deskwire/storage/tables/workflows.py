"""Workflows with their versions, and where they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import orjson

from deskwire.engine.core.errors import StaleState
from deskwire.engine.workflows.definition import Trigger
from deskwire.engine.workflows.run import Run
from deskwire.engine.workflows.workflow import Workflow
from deskwire.storage.tables.base import Changes, Queries

_WORKFLOW: Final = "SELECT rowid, id, project, name, trigger, version, created_at, updated_at FROM workflows"
_NO_ROW: Final = (1 << 63) - 1

KEPT_MS: Final = 60_000
"""The time for which a replaced version is kept, for readers that are about to start it."""


def run_of(state: str | None) -> Run | None:
    """Return the run in a row of `workflow_runs`."""
    return None if state is None else Run(**orjson.loads(state))


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
            "(SELECT 1 FROM workflow_runs r WHERE r.version = workflow_versions.rowid)",
            (now - KEPT_MS,),
        )

    def save_run(self, conversation: int, run: Run | None) -> None:
        if run is None:
            self.conn.execute("DELETE FROM workflow_runs WHERE conversation = ?", (conversation,))
            return
        kept = self.conn.execute("SELECT 1 FROM workflow_versions WHERE rowid = ?", (run.version,)).fetchone()
        if kept is None:
            raise StaleState(f"version {run.version} of the workflow {run.workflow_id} is gone")
        self.conn.execute(
            "INSERT INTO workflow_runs (conversation, version, state, due_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (conversation) DO UPDATE SET version = excluded.version, state = excluded.state, "
            "due_at = excluded.due_at",
            (conversation, run.version, orjson.dumps(asdict(run)).decode(), run.due_at),
        )
        if run.due_at is not None:
            self.runs_due.append(run.due_at)

    def postpone_runs(self, conversation_ids: Sequence[str], until: int) -> None:
        self.conn.executemany(
            "UPDATE workflow_runs SET due_at = ? WHERE due_at IS NOT NULL AND conversation = "
            "(SELECT rowid FROM conversations WHERE id = ?)",
            [(until, each) for each in conversation_ids],
        )

    def _publish(self, workflow: Workflow, flows: Sequence[Any]) -> None:
        self.conn.execute(
            "INSERT INTO workflow_versions (workflow_id, number, flows) VALUES (?, ?, ?)",
            (workflow.id, workflow.version, orjson.dumps(flows).decode()),
        )

    def _retire(self, workflow_id: str, at: int) -> None:
        self.conn.execute(
            "UPDATE workflow_versions SET retired_at = ? WHERE workflow_id = ? AND retired_at IS NULL",
            (at, workflow_id),
        )
