"""The runs, versions and try-outs of workflows (ADR 20)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, WithJsonSchema

from deskwire.engine.conversations.automation.lookup import find_workflow, trial_workflow
from deskwire.engine.conversations.automation.simulate import simulate
from deskwire.engine.core.errors import Invalid, NotFound, Problem
from deskwire.engine.workflows.ports import WorkflowReader
from deskwire.engine.workflows.runs import (
    EndedRun,
    RunState,
    StepNames,
    Version,
    WaitingRun,
    ended_view,
    figures_view,
    version_view,
    waiting_view,
)
from deskwire.engine.workflows.workflow import Workflow
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import WHOLE, Routes, Tag
from deskwire.http.resources.fields import Attributes
from deskwire.http.resources.workflows import ONE, READ, definition_errors
from deskwire.http.schemas import workflows as shapes
from deskwire.http.schemas.base import page_of

routes = Routes(
    Tag(
        "Workflow runs",
        "See where a workflow waits and how it has ended, read its versions, and try one out.",
    ),
    unrecorded="It changes nothing.",
)
_ANSWERS_MAX: Final = 100
_VERSIONS_MAX: Final = 1 << 31
"""Versions that are read to name steps: all that are kept, which are few."""


class RunList(Paged):
    """The filter of a list of runs, and its page. `ended` includes runs that could not continue; `stopped` has only those."""

    state: RunState = "waiting"


class SimulateWorkflowRequest(Body):
    """The flows to try out, the attributes of the conversation, and the contact's answers in order.

    An answer is what `value` is in a reply to a step.
    """

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})
    as_sent = True  # problems with numbers of the flows are among those of the definition

    flows: Annotated[Any, WithJsonSchema({"type": "array", "items": {"x-shape": "WorkflowFlow"}})]
    attributes: Annotated[Attributes, Field(default_factory=dict)]
    answers: Annotated[list[Any], Field(max_length=_ANSWERS_MAX, default_factory=list)]


@routes.add(
    "GET",
    f"{ONE}/runs",
    READ,
    operation_id="listWorkflowRuns",
    query=RunList,
    answer=page_of(shapes.WorkflowRun),
)
async def list_runs(call: Call[Body, RunList]) -> Answer:
    """List the conversations in which a workflow waits, or in which it has ended; the most recently ended first.

    Runs are kept as long as their conversations.
    """
    query, before = call.query, call.query.row

    def listed(reader: WorkflowReader) -> tuple[StepNames, list[WaitingRun | EndedRun]]:
        workflow = find_workflow(reader, call.project, call.path["workflow_id"])
        steps = StepNames(reader.workflow_versions(workflow, None, _VERSIONS_MAX))
        if query.state == "waiting":
            return steps, [*reader.waiting_runs(workflow, before, query.rows)]
        return steps, [*reader.ended_runs(workflow, before, query.rows, stopped=query.state == "stopped")]

    steps, runs = await call.services.store.read(listed)

    def view(run: WaitingRun | EndedRun) -> dict[str, Any]:
        return waiting_view(run, steps) if isinstance(run, WaitingRun) else ended_view(run, steps)

    return page(query, runs, view, lambda run: run.rowid)


@routes.add("GET", f"{ONE}/figures", READ, operation_id="getWorkflowFigures", answer=shapes.WorkflowFigures)
async def get_figures(call: Call[Body, Query]) -> Answer:
    """Count the runs of a workflow: how many wait at each step, and how many have ended by each reason."""

    def read(reader: WorkflowReader) -> dict[str, Any]:
        workflow = find_workflow(reader, call.project, call.path["workflow_id"])
        steps = StepNames(reader.workflow_versions(workflow, None, _VERSIONS_MAX))
        return figures_view(reader.waiting_places(workflow), reader.workflow_outcomes(workflow), steps)

    return await call.services.store.read(read)


@routes.add(
    "GET",
    f"{ONE}/versions",
    READ,
    operation_id="listWorkflowVersions",
    query=Paged,
    answer=page_of(shapes.WorkflowVersionSummary),
)
async def list_versions(call: Call[Body, Paged]) -> Answer:
    """List the versions of a workflow that are kept, newest first, without their flows.

    The newest 100 are kept, and older ones as long as they run somewhere.
    """
    query, before = call.query, call.query.row

    def listed(reader: WorkflowReader) -> tuple[Workflow, list[Version]]:
        workflow = find_workflow(reader, call.project, call.path["workflow_id"])
        return workflow, [*reader.workflow_versions(workflow, before, query.rows)]

    workflow, versions = await call.services.store.read(listed)
    return page(
        query, versions, lambda version: version_view(workflow, version), lambda version: version.number
    )


@routes.add(
    "GET",
    f"{ONE}/versions/<version>",
    READ,
    operation_id="getWorkflowVersion",
    answer=shapes.WorkflowVersion,
    errors=("workflow_version_not_found",),
)
async def get_version(call: Call[Body, Query]) -> Answer:
    """Fetch a version of a workflow with its flows."""
    text = call.path["version"]
    number = int(text) if text.isdecimal() and len(text) < 10 else 0

    def read(reader: WorkflowReader) -> dict[str, Any]:
        workflow = find_workflow(reader, call.project, call.path["workflow_id"])
        for version in reader.workflow_versions(workflow, number + 1, 1):
            if version.number == number:
                return {**version_view(workflow, version), "flows": version.flows}
        raise NotFound("This version of the workflow is not kept.", code="workflow_version_not_found")

    return await call.services.store.read(read)


async def _check_flows(call: Call[SimulateWorkflowRequest, Query]) -> None:
    if "flows" in call.body.model_fields_set:
        document = {"name": "Try-out", "trigger": {"type": "manual"}, "flows": call.body.flows}
        errors = await definition_errors(call, document)
        if errors:
            raise Invalid(*(Problem(each.path, each.code, each.message) for each in errors))


@routes.add(
    "POST",
    "/workflows/simulate",
    READ,
    operation_id="simulateWorkflow",
    body=SimulateWorkflowRequest,
    limit=WHOLE,
    answer=shapes.Simulation,
    further=(_check_flows,),
)
async def simulate_workflow(call: Call[SimulateWorkflowRequest, Query]) -> Answer:
    """Simulate flows with a contact's answers, and return what the workflow would do.

    Nothing is stored or sent. A wait for a time is skipped. The simulation stops where an
    answer is missing, and returns what the contact would see.
    """
    body, project = call.body, call.project
    await _check_flows(call)
    workflow = await call.services.store.read(lambda reader: trial_workflow(reader, project, body.flows))
    simulated = simulate(workflow, body.attributes, body.answers)
    return {
        "events": simulated.events,
        "waits": simulated.waits,
        "ended": None
        if simulated.ended is None
        else {"reason": simulated.ended.reason, "stopped": simulated.ended.stopped},
        "attributes": dict(simulated.attributes),
        "answersUsed": simulated.answers,
        "path": simulated.path,
    }
