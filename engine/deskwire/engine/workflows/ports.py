"""The queries and changes of a store that workflows need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from deskwire.engine.accounts.ports import AccountReader
from deskwire.engine.accounts.teams import TeamReader
from deskwire.engine.workflows.definition import Trigger
from deskwire.engine.workflows.runs import EndedRun, RunOutcome, Version, WaitingRun, WaitingRuns, WorkflowRun
from deskwire.engine.workflows.workflow import Workflow


class WorkflowReader(Protocol):
    """Queries on workflows, and on the conversations in which one runs."""

    def workflow(self, project: int, workflow_id: str) -> Workflow | None:
        """Return the workflow, None if this project has none with that id."""

    def workflows(
        self, project: int, trigger: Trigger | None, before: int | None, limit: int
    ) -> Sequence[Workflow]:
        """Return workflows of a project, with this trigger if any, newest first, of storage keys smaller than `before`."""

    def workflow_flows(self, workflow: Workflow) -> tuple[int, Sequence[Any]]:
        """Return the storage key of a workflow's present version, and its flows as they were given."""

    def workflow_version(self, version: int) -> tuple[str, Sequence[Any]] | None:
        """Return the id of a version's workflow, which may be gone, and the version's flows."""

    def workflow_versions(self, workflow: Workflow, before: int | None, limit: int) -> Sequence[Version]:
        """Return versions of a workflow that are kept, newest first, of numbers smaller than `before`."""

    def waiting_runs(self, workflow: Workflow, before: int | None, limit: int) -> Sequence[WaitingRun]:
        """Return where a workflow waits, the newest conversations first, of storage keys smaller than `before`."""

    def ended_runs(
        self, workflow: Workflow, before: int | None, limit: int, *, stopped: bool
    ) -> Sequence[EndedRun]:
        """Return where a workflow has ended, or only where it could not go on, newest first, of storage keys smaller than `before`."""

    def waiting_places(self, workflow: Workflow) -> Sequence[WaitingRuns]:
        """Count the runs that wait, by version and place."""

    def workflow_outcomes(self, workflow: Workflow) -> Mapping[RunOutcome, int]:
        """Count the runs that have ended, by how."""

    def next_run(self) -> int | None:
        """Return the time (ms) at which the next running workflow of any project goes on by itself."""

    def due_runs(self, until: int, limit: int) -> Sequence[tuple[str, str]]:
        """Return project and conversation ids of workflows that go on by `until` (ms), the earliest first."""


class PublishedReader(WorkflowReader, AccountReader, TeamReader, Protocol):
    """Queries on workflows, and on those to whom they assign."""


class WorkflowTransaction(WorkflowReader, Protocol):
    """Changes of workflows, and of those that run."""

    def insert_workflow(self, workflow: Workflow, flows: Sequence[Any]) -> Workflow:
        """Store a new workflow with its first version; return it with its `rowid`."""

    def save_workflow(self, workflow: Workflow, flows: Sequence[Any] | None) -> None:
        """Store a changed workflow; `flows`, if any, become the version that it names."""

    def delete_workflow(self, workflow: Workflow, at: int) -> None:
        """Remove a workflow at the time `at` (ms). Conversations in which it runs keep their version."""

    def forget_versions(self, now: int) -> None:
        """Remove versions that nothing runs or is about to start: those of workflows that are gone, and all but the newest."""

    def save_run(self, conversation: int, run: WorkflowRun | None, at: int) -> None:
        """Store the run in a conversation as it rests since `at` (ms); None if nothing runs. Raises StaleState if its version is gone."""

    def postpone_runs(self, conversation_ids: Sequence[str], until: int) -> None:
        """Leave workflows that are due alone until this time (ms)."""
