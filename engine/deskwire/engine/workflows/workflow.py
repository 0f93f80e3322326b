"""Workflows of a project and their form in the API (decisions 7; ADR 20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.core.clock import iso
from deskwire.engine.workflows.definition import Trigger, WorkflowDefinition

WORKFLOWS_MAX: Final = 200
"""Maximum workflows of a project."""


class Workflow(Struct, frozen=True):
    """A workflow without its flows. Times are in milliseconds; `version` counts its definitions from 1."""

    rowid: int
    id: str
    project: int
    name: str
    trigger: Trigger
    version: int
    created_at: int
    updated_at: int


class Published(Struct, frozen=True):
    """A version of a workflow as run by a conversation.

    Args:
        version: its storage key.
        assignees: existing users and teams of its `assign` actions, by type and id.
    """

    workflow_id: str
    version: int
    definition: WorkflowDefinition
    assignees: Mapping[tuple[str, str], Assignee]


def workflow_view(workflow: Workflow) -> dict[str, Any]:
    """Return the workflow in the form of the API's lists."""
    return {
        "id": workflow.id,
        "name": workflow.name,
        "trigger": {"type": workflow.trigger},
        "version": workflow.version,
        "createdAt": iso(workflow.created_at),
        "updatedAt": iso(workflow.updated_at),
    }


def full_view(workflow: Workflow, flows: Sequence[Any]) -> dict[str, Any]:
    """Return the workflow in the form of the API, with its flows."""
    return {**workflow_view(workflow), "flows": flows}
