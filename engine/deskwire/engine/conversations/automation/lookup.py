"""Queries for workflows: by id, by trigger or by version, with the assignees that exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from deskwire.engine.accounts.people import Assignee, Project
from deskwire.engine.core.errors import NotFound, StaleState
from deskwire.engine.definitions.checks import listed
from deskwire.engine.definitions.rules import DefinitionError
from deskwire.engine.workflows.definition import AssignAction, definition_of
from deskwire.engine.workflows.ports import PublishedReader, WorkflowReader
from deskwire.engine.workflows.validation.rules import broken
from deskwire.engine.workflows.validation.shape import ACTIONS_MAX, FLOWS_MAX
from deskwire.engine.workflows.workflow import Published, Workflow


def workflow_for(reader: PublishedReader, project: Project, needed: str | int | None) -> Published | None:
    """Return the workflow that `decide.workflow_needed` names. Reads a few rows by their keys.

    The workflow that new conversations start stands in for one that was deleted.
    """
    if needed is None:
        return None
    if isinstance(needed, int):
        return running_workflow(reader, project, needed)
    named = None if needed == "triggered" else reader.workflow(project.rowid, needed)
    return (
        triggered_workflow(reader, project) if named is None else published_workflow(reader, project, named)
    )


def find_workflow(reader: WorkflowReader, project: Project, workflow_id: str) -> Workflow:
    """Return the project's workflow with this id. Raises NotFound."""
    workflow = reader.workflow(project.rowid, workflow_id)
    if workflow is None:
        raise NotFound("There is no such workflow.", code="workflow_not_found")
    return workflow


def triggered_workflow(reader: PublishedReader, project: Project) -> Published | None:
    """Return the workflow that a new conversation starts: the newest one with that trigger (ADR 20)."""
    newest = reader.workflows(project.rowid, "conversation.created", None, 1)
    return published_workflow(reader, project, newest[0]) if newest else None


def published_workflow(reader: PublishedReader, project: Project, workflow: Workflow) -> Published:
    """Return a workflow's present version."""
    version, flows = reader.workflow_flows(workflow)
    return _published(reader, project, workflow.id, version, flows)


def running_workflow(reader: PublishedReader, project: Project, version: int) -> Published:
    """Return the version with this storage key, which a conversation runs.

    Raises StaleState if there is none: a version is kept as long as it runs somewhere, so the conversation no longer does.
    """
    stored = reader.workflow_version(version)
    if stored is None:
        raise StaleState("the version of its workflow no longer exists")
    workflow_id, flows = stored
    return _published(reader, project, workflow_id, version, flows)


def trial_workflow(reader: PublishedReader, project: Project, flows: Sequence[Any]) -> Published:
    """Return valid flows as a workflow for a simulation, which has no id."""
    return _published(reader, project, "", 0, flows)


def assignee_errors(reader: PublishedReader, project: Project, flows: Any) -> Iterator[DefinitionError]:
    """Yield an error for each action whose assignee the project does not have. Accepts any JSON."""
    for index, flow in enumerate(listed(flows, FLOWS_MAX)):
        actions = flow.get("actions") if isinstance(flow, Mapping) else None
        for position, action in enumerate(listed(actions, ACTIONS_MAX)):
            match action:
                case {
                    "type": "assign",
                    "assignee": {"type": "user" | "team" as kind, "id": str(assignee_id)},
                }:
                    if _assignee(reader, project, AssignAction(0, kind, assignee_id)) is None:
                        yield broken("unknown_assignee", f"/flows/{index}/actions/{position}/assignee/id")


def _published(
    reader: PublishedReader, project: Project, workflow_id: str, version: int, flows: Sequence[Any]
) -> Published:
    definition = definition_of(flows)
    present = (_assignee(reader, project, give) for give in definition.given())
    assignees: dict[tuple[str, str], Assignee] = {
        (assignee.type, assignee.id): assignee for assignee in present if assignee is not None
    }
    return Published(workflow_id, version, definition, assignees)


def _assignee(reader: PublishedReader, project: Project, give: AssignAction) -> Assignee | None:
    match give.type:
        case "user":
            name = reader.assignee_name(project.organisation, give.assignee_id)
        case "team":
            name = reader.team_name(project.rowid, give.assignee_id)
        case _:
            assert_never(give.type)
    return None if name is None else Assignee(give.type, give.assignee_id, name)
