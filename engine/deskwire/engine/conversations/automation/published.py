"""Finds the workflows that run: by trigger, by version, with the assignees that there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from deskwire.engine.accounts.people import Assignee, Project
from deskwire.engine.core.errors import NotFound
from deskwire.engine.definitions.checks import listed
from deskwire.engine.definitions.rules import DefinitionError
from deskwire.engine.workflows.definition import Give, definition_of
from deskwire.engine.workflows.ports import PublishedReader, WorkflowReader
from deskwire.engine.workflows.validation.rules import broken
from deskwire.engine.workflows.validation.shape import ACTIONS_MAX, FLOWS_MAX
from deskwire.engine.workflows.workflow import Published, Workflow


def workflow_for(
    reader: PublishedReader, project: Project, wanted: Literal["triggered"] | int | None
) -> Published | None:
    """Return the workflow that `conduct.needs` asks for; a few rows by their keys."""
    if wanted is None:
        return None
    return triggered(reader, project) if wanted == "triggered" else running(reader, project, wanted)


def find_workflow(reader: WorkflowReader, project: Project, workflow_id: str) -> Workflow:
    """The project's workflow with this id. Raises NotFound."""
    workflow = reader.workflow(project.rowid, workflow_id)
    if workflow is None:
        raise NotFound("There is no such workflow.", code="workflow_not_found")
    return workflow


def triggered(reader: PublishedReader, project: Project) -> Published | None:
    """What starts in a new conversation: of several workflows with that trigger the one made last (ADR 20)."""
    found = reader.workflows(project.rowid, "conversation.created", None, 1)
    return published(reader, project, found[0]) if found else None


def published(reader: PublishedReader, project: Project, workflow: Workflow) -> Published:
    """A workflow as it is now."""
    version, flows = reader.workflow_flows(workflow)
    return _published(reader, project, workflow.id, version, flows)


def running(reader: PublishedReader, project: Project, version: int) -> Published:
    """The version that a conversation runs."""
    found = reader.workflow_version(version)
    assert found is not None, "a version that runs is kept"
    return _published(reader, project, found[0], version, found[1])


def assignee_errors(reader: PublishedReader, project: Project, flows: Any) -> Iterator[DefinitionError]:
    """An error for each action that assigns to somebody whom the project does not have. Total over any JSON."""
    for index, flow in enumerate(listed(flows, FLOWS_MAX)):
        actions = flow.get("actions") if isinstance(flow, Mapping) else None
        for position, action in enumerate(listed(actions, ACTIONS_MAX)):
            match action:
                case {"type": "assign", "assignee": {"type": "user" | "team" as kind, "id": str(wanted)}}:
                    if _assignee(reader, project, Give(0, kind, wanted)) is None:
                        yield broken("unknown_assignee", f"/flows/{index}/actions/{position}/assignee/id")


def _published(
    reader: PublishedReader, project: Project, workflow_id: str, version: int, flows: Sequence[Any]
) -> Published:
    definition = definition_of(flows)
    found = (_assignee(reader, project, give) for give in definition.given())
    assignees: dict[tuple[str, str], Assignee] = {
        (each.type, each.id): each for each in found if each is not None
    }
    return Published(workflow_id, version, definition, assignees)


def _assignee(reader: PublishedReader, project: Project, give: Give) -> Assignee | None:
    if give.type == "user":
        name = reader.member_name(project.organisation, give.assignee_id)
    else:
        name = reader.team_name(project.rowid, give.assignee_id)
    return None if name is None else Assignee(give.type, give.assignee_id, name)
