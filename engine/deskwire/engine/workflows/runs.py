"""Runs of a workflow: their state in a conversation, and their figures over all conversations (ADR 20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from msgspec import Struct, field

from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.workflows.workflow import Workflow

Ending = Literal["completed", "handed_off"]
Stop = Literal["step_limit", "attributes_full", "assignee_gone"]
"""The reason why a workflow stopped."""


class WorkflowRun(Struct, frozen=True):
    """A waiting run: for the contact (`step`) or for a time (`due_at`).

    Args:
        version: storage key of the version with which the run started.
        flow, action: indexes of the action that waits.
        answers: the contact's answers so far, by action id.
        steps: the number of actions carried out.
        step: the pending step in the form of the API (contract 2.5).
        due_at: the time at which the run continues, in milliseconds.
    """

    workflow_id: str
    version: int
    flow: int = 0
    action: int = 0
    answers: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 0
    step: Mapping[str, Any] | None = None
    due_at: int | None = None

    @property
    def action_id(self) -> int | None:
        """Id of the action that is waiting for the contact; None if no action is."""
        return None if self.step is None else self.step["actionId"]

    @property
    def takes_text(self) -> bool:
        """True if a message of the contact answers the pending step."""
        return self.step is not None and bool(self.step["action"].get("allowText"))


VERSIONS_KEPT: Final = 100
"""Newest versions of a workflow that are retained although no run uses them."""

RunState = Literal["waiting", "ended", "stopped"]

RunOutcome = Ending | Stop
"""How a run ended, or why it stopped."""

NullablePosition = tuple[int | None, int | None]
"""The indexes of a flow and of an action in it; both None if unknown."""


class Version(Struct, frozen=True):
    """An immutable version of a workflow. The time (ms) is None if it is older than the column."""

    number: int
    flows: Sequence[Mapping[str, Any]]
    created_at: int | None


class WaitingRun(Struct, frozen=True):
    """A run that waits since `since` (ms) and, for a time, until `due_at`. `rowid` is the conversation's."""

    rowid: int
    conversation_id: str
    version: int
    place: NullablePosition
    since: int | None
    due_at: int | None


class EndedRun(Struct, frozen=True):
    """A run that ended at the time `at` (ms)."""

    rowid: int
    conversation_id: str
    version: int
    place: NullablePosition
    outcome: RunOutcome
    at: int


class WaitingRuns(Struct, frozen=True):
    """The number of runs that wait at a position of a version, and the start (ms) of the longest wait."""

    version: int
    place: NullablePosition
    runs: int
    since: int | None


class StepNames:
    """Looks up the ids of actions by version and position."""

    def __init__(self, versions: Sequence[Version]) -> None:
        self._flows = {each.number: each.flows for each in versions}

    def view(self, version: int, place: NullablePosition) -> dict[str, Any]:
        """Return the ids of the flow and the action; both null if the version or position is unknown."""
        flow, action = place
        flows = self._flows.get(version)
        if flows is None or flow is None or action is None:
            return {"flowId": None, "actionId": None}
        return {"flowId": flows[flow]["id"], "actionId": flows[flow]["actions"][action]["id"]}


def waiting_view(run: WaitingRun, steps: StepNames) -> dict[str, Any]:
    """Return a waiting run in the form of the API."""
    return {
        "conversationId": run.conversation_id,
        "state": "waiting",
        "version": run.version,
        **steps.view(run.version, run.place),
        "since": iso_or_none(run.since),
        "dueAt": iso_or_none(run.due_at),
        "reason": None,
        "stopped": None,
    }


def ended_view(run: EndedRun, steps: StepNames) -> dict[str, Any]:
    """Return an ended run in the form of the API."""
    over = run.outcome in get_args(Ending)
    return {
        "conversationId": run.conversation_id,
        "state": "ended" if over else "stopped",
        "version": run.version,
        **steps.view(run.version, run.place),
        "since": iso(run.at),
        "dueAt": None,
        "reason": run.outcome if over else "handed_off",
        "stopped": None if over else run.outcome,
    }


def figures_view(
    waiting: Sequence[WaitingRuns], outcomes: Mapping[RunOutcome, int], steps: StepNames
) -> dict[str, Any]:
    """Return the numbers of waiting and ended runs in the form of the API."""
    stops: Sequence[Stop] = sorted(get_args(Stop))
    return {
        "waiting": [
            {
                "version": each.version,
                **steps.view(each.version, each.place),
                "runs": each.runs,
                "since": iso_or_none(each.since),
            }
            for each in waiting
        ],
        "completed": outcomes.get("completed", 0),
        "handedOff": outcomes.get("handed_off", 0),
        "stopped": [{"reason": each, "runs": outcomes[each]} for each in stops if outcomes.get(each)],
    }


def version_view(workflow: Workflow, version: Version) -> dict[str, Any]:
    """Return a version in the form of the API's lists, without its flows."""
    return {
        "workflowId": workflow.id,
        "version": version.number,
        "published": version.number == workflow.version,
        "createdAt": iso_or_none(version.created_at),
    }
