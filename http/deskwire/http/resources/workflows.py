"""Workflows: created, validated, changed, deleted (decisions 7; ADR 20)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final

import orjson
import trio
from pydantic import ConfigDict, WithJsonSchema

from deskwire.engine.audit.audited_changes import deleted
from deskwire.engine.channels.references import drop_references
from deskwire.engine.conversations.automation.lookup import assignee_errors, find_workflow
from deskwire.engine.core.errors import Conflict, Invalid, Problem
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import entity_tag, replace
from deskwire.engine.definitions.rules import DefinitionError
from deskwire.engine.events.project_events import append_internal_event, settings_changed
from deskwire.engine.ports import Transaction
from deskwire.engine.workflows.definition import Trigger
from deskwire.engine.workflows.ports import WorkflowReader, WorkflowTransaction
from deskwire.engine.workflows.validation.check import workflow_errors
from deskwire.engine.workflows.workflow import WORKFLOWS_MAX, Workflow, full_view, workflow_view
from deskwire.http.api.calls import Answer, Call, Tagged
from deskwire.http.api.input.validation import INTEGER_RANGE, Body, Query, large_integers
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import WHOLE, Routes, Tag, dashboard
from deskwire.http.schemas import workflows as shapes
from deskwire.http.schemas.base import Deleted, page_of
from deskwire.http.schemas.surveys import SurveyValidation

routes = Routes(
    Tag("Workflows", "Create, validate, change and delete workflows."),
    unrecorded="It is content: its versions are kept, and conversations name the version that they run.",
)
ONE: Final = "/workflows/<workflow_id>"
READ: Final = dashboard("conversations.read")
DELETE: Final = dashboard("projects.manage")
MANAGE: Final = dashboard("projects.manage", "conversations.manage", "conversations.reply")
"""Our own choice: a workflow writes to every customer of the project (ADR 20), so it needs these permissions."""


class ValidateWorkflowRequest(Body):
    """The workflow to validate, an object with any fields."""

    model_config = ConfigDict(extra="allow")  # the workflow's own check finds every problem
    as_sent = True

    name: Any = None
    trigger: Any = None
    flows: Any = None


class ChangeWorkflowRequest(ValidateWorkflowRequest):
    """The fields to change. The guide to workflows describes them."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    name: Annotated[Any, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 200})] = None
    trigger: Annotated[Any, WithJsonSchema({"x-shape": "WorkflowTrigger"})] = None
    flows: Annotated[Any, WithJsonSchema({"type": "array", "items": {"x-shape": "WorkflowFlow"}})] = None


class CreateWorkflowRequest(ChangeWorkflowRequest):
    """The new workflow. The guide to workflows describes its fields."""

    model_config = ConfigDict(
        json_schema_extra={"additionalProperties": False, "required": ["name", "trigger", "flows"]}
    )


class WorkflowList(Paged):
    """The filter of a list of workflows, and its page."""

    trigger: Trigger | None = None


@routes.add(
    "POST",
    "/workflows",
    MANAGE,
    operation_id="createWorkflow",
    tells="workflows",
    body=CreateWorkflowRequest,
    limit=WHOLE,
    answer=shapes.Workflow,
    errors=("workflow_limit_reached",),
    idempotent=True,
)
async def create_workflow(call: Call[ValidateWorkflowRequest, Query]) -> Answer:
    """Create a workflow."""
    given, now, project = _given(call), call.services.clock(), call.project
    await _check(call, given)
    workflow_id = new_id("wfl", now)

    def create(tx: WorkflowTransaction) -> Workflow:
        if len(tx.workflows(project.rowid, None, None, WORKFLOWS_MAX)) == WORKFLOWS_MAX:
            raise Conflict(f"A project has at most {WORKFLOWS_MAX} workflows.", code="workflow_limit_reached")
        tx.forget_versions(now)
        name, trigger = given["name"], given["trigger"]["type"]
        workflow = Workflow(0, workflow_id, project.rowid, name, trigger, 1, now, now)
        return tx.insert_workflow(workflow, given["flows"])

    return await call.commit(create, lambda made: full_view(made, given["flows"]))


@routes.add(
    "GET",
    "/workflows",
    READ,
    operation_id="listWorkflows",
    query=WorkflowList,
    answer=page_of(shapes.WorkflowSummary),
)
async def list_workflows(call: Call[Body, WorkflowList]) -> Answer:
    """List the workflows of a project, newest first, without their flows."""
    query, project = call.query, call.project.rowid
    before = query.row
    workflows = await call.services.store.read(
        lambda reader: reader.workflows(project, query.trigger, before, query.rows)
    )
    return page(query, workflows, workflow_view, lambda workflow: workflow.rowid)


@routes.add("GET", ONE, READ, operation_id="getWorkflow", answer=shapes.Workflow, tagged=True)
async def get_workflow(call: Call[Body, Query]) -> Answer:
    """Fetch a workflow with its flows. Its `ETag` is for `If-Match` of a change."""
    return _tagged(*await call.services.store.read(lambda reader: _stored(reader, call)))


@routes.add(
    "PATCH",
    ONE,
    MANAGE,
    operation_id="changeWorkflow",
    tells="workflows",
    body=ChangeWorkflowRequest,
    limit=WHOLE,
    answer=shapes.Workflow,
    errors=("changed_meanwhile",),
    tagged=True,
)
async def change_workflow(call: Call[ValidateWorkflowRequest, Query]) -> Answer:
    """Change the name, trigger or flows of a workflow. Conversations in which it runs keep their version."""
    given, now = _given(call), call.services.clock()
    if not given:
        raise Invalid(Problem("", "required", "Give at least one field to change."))
    before, flows = await call.services.store.read(lambda reader: _stored(reader, call))
    whole = {"name": before.name, "trigger": {"type": before.trigger}, "flows": flows, **given}
    await _check(call, whole, {"name", "trigger", "flows"} - set(given))

    def change(tx: WorkflowTransaction) -> tuple[Workflow, Any]:
        before, flows = _stored(tx, call)
        call.seen.check(lambda: entity_tag(full_view(before, flows)))
        after = replace(
            before,
            name=given.get("name", before.name),
            trigger=given["trigger"]["type"] if "trigger" in given else before.trigger,
        )
        replaced = "flows" in given and given["flows"] != flows
        if after == before and not replaced:
            return before, flows
        after = replace(after, version=before.version + replaced, updated_at=now)
        tx.save_workflow(after, given["flows"] if replaced else None)
        tx.forget_versions(now)
        return after, given["flows"] if replaced else flows

    return _tagged(*await call.services.store.write(change))


@routes.add(
    "DELETE",
    ONE,
    DELETE,
    operation_id="deleteWorkflow",
    tells="workflows",
    answer=Deleted,
    errors=("changed_meanwhile",),
    records=("workflow.deleted", "channel.changed"),
    tagged=True,
)
async def delete_workflow(call: Call[Body, Query]) -> Answer:
    """Delete a workflow. In conversations in which it runs, it continues to its end. Channels no longer start it."""
    now = call.services.clock()

    def delete(tx: Transaction) -> Workflow:
        workflow, flows = _stored(tx, call)
        call.seen.check(lambda: entity_tag(full_view(workflow, flows)))
        tx.delete_workflow(workflow, now)
        tx.forget_versions(now)
        for channel in drop_references(tx, call.project, now, workflow=workflow.id):
            append_internal_event(tx, call.project, settings_changed("channels", channel), None, now)
        tx.record(deleted("workflow", workflow.id, call.project.rowid))
        return workflow

    workflow = await call.services.store.write(delete)
    return {"id": workflow.id, "deleted": True}


@routes.add(
    "POST",
    "/workflows/validate",
    READ,
    operation_id="validateWorkflow",
    body=ValidateWorkflowRequest,
    limit=WHOLE,
    answer=SurveyValidation,
)
async def validate_workflow(call: Call[ValidateWorkflowRequest, Query]) -> Answer:
    """Validate a workflow, and list every problem with it. Nothing is stored, and problems also return 200."""
    errors = await definition_errors(call, _given(call))
    listed = [{"path": each.path, "code": each.code, "message": each.message} for each in errors]
    return {"ok": not errors, "errors": listed}


def _given(call: Call[ValidateWorkflowRequest, Query]) -> Mapping[str, Any]:
    """Return the body as it was sent, unknown fields included."""
    given: Mapping[str, Any] = orjson.loads(call.raw or b"{}")
    return given


def _tagged(workflow: Workflow, flows: Any) -> Tagged:
    view = full_view(workflow, flows)
    return Tagged(view, entity_tag(view))


def _stored(reader: WorkflowReader, call: Call[Any, Any]) -> tuple[Workflow, Any]:
    workflow = find_workflow(reader, call.project, call.path["workflow_id"])
    return workflow, reader.workflow_flows(workflow)[1]


async def _check(call: Call[Any, Any], document: Mapping[str, Any], kept: Collection[str] = ()) -> None:
    """Raise Invalid with every problem of a workflow, except in the fields that stay as they are."""
    errors = await definition_errors(call, document)
    # A stored flow may name a team that is gone; that does not prevent a change of the name.
    errors = [each for each in errors if each.path.split("/")[1] not in kept]
    if errors:
        raise Invalid(*(Problem(each.path, each.code, each.message) for each in errors))


async def definition_errors(call: Call[Any, Any], document: Mapping[str, Any]) -> list[DefinitionError]:
    """Return every problem of a workflow in a body."""
    errors = await trio.to_thread.run_sync(workflow_errors, document)
    named = {each.path for each in errors}
    large = (path for path in large_integers(call.raw, document).pointers if path not in named)
    errors += [DefinitionError(path, "too_large", INTEGER_RANGE) for path in large]
    flows, project = document.get("flows"), call.project
    return errors + await call.services.store.read(
        lambda reader: list(assignee_errors(reader, project, flows))
    )
