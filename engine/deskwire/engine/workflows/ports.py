"""The requirements of workflows on the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.workflows.definition import Trigger
from deskwire.engine.workflows.runs import EndedRun, RunOutcome, Version, WaitingRun, WaitingRuns, WorkflowRun
from deskwire.engine.workflows.workflow import Workflow


class WorkflowReader(Protocol):
    """Queries on workflows and on their runs."""

    def workflow(self, project: int, workflow_id: str) -> Workflow | None:
        """Return the workflow, None if this project has none with that id."""

    def workflows(
        self, project: int, trigger: Trigger | None, before: int | None, limit: int
    ) -> Sequence[Workflow]:
        """Return workflows of a project, newest first, with storage keys below `before` and optionally one trigger."""

    def workflow_flows(self, workflow: Workflow) -> tuple[int, Sequence[Any]]:
        """Return the storage key of the current version of a workflow, and its flows."""

    def workflow_version(self, version: int) -> tuple[str, Sequence[Any]] | None:
        """Return the workflow id of a version, which may have been deleted, and the version's flows."""

    def workflow_versions(self, workflow: Workflow, before: int | None, limit: int) -> Sequence[Version]:
        """Return retained versions of a workflow, newest first, with numbers below `before`."""

    def waiting_runs(self, workflow: Workflow, before: int | None, limit: int) -> Sequence[WaitingRun]:
        """Return waiting runs, the newest conversations first, with storage keys below `before`."""

    def ended_runs(
        self, workflow: Workflow, before: int | None, limit: int, *, stopped: bool
    ) -> Sequence[EndedRun]:
        """Return ended runs, or only failed ones if `stopped`, newest first, with storage keys below `before`."""

    def waiting_places(self, workflow: Workflow) -> Sequence[WaitingRuns]:
        """Count the waiting runs by version and position."""

    def workflow_outcomes(self, workflow: Workflow) -> Mapping[RunOutcome, int]:
        """Count the ended runs by outcome."""

    def next_run(self) -> int | None:
        """Return the time (ms) at which the next timed run of any project continues."""

    def due_runs(self, until: int, limit: int) -> Sequence[tuple[str, str]]:
        """Return project and conversation ids of timed runs due by `until` (ms), the earliest first."""


class PublishedReader(WorkflowReader, AccountReader, TeamReader, Protocol):
    """Queries on workflows, and on the users and teams to which they assign."""


class WorkflowTransaction(WorkflowReader, Protocol):
    """Changes of workflows and of their runs."""

    def insert_workflow(self, workflow: Workflow, flows: Sequence[Any]) -> Workflow:
        """Store a new workflow with its first version; return it with its `rowid`."""

    def save_workflow(self, workflow: Workflow, flows: Sequence[Any] | None) -> None:
        """Store a changed workflow; `flows`, if given, become its current version."""

    def delete_workflow(self, workflow: Workflow, at: int) -> None:
        """Delete a workflow at the time `at` (ms). Conversations in which it runs keep their version."""

    def forget_versions(self, now: int) -> None:
        """Delete unused versions of deleted workflows, and of others all but the newest VERSIONS_KEPT."""

    def save_run(self, conversation: int, run: WorkflowRun | None, at: int) -> None:
        """Store the run of a conversation that waits since `at` (ms), or None. Raises StaleState if its version was deleted."""

    def postpone_runs(self, conversation_ids: Sequence[str], until: int) -> None:
        """Postpone due runs to this time (ms)."""
