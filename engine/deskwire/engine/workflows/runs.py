"""The runs of a workflow over all conversations: where they wait, and how they ended (ADR 20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from msgspec import Struct, field

from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.workflows.workflow import Workflow

Ending = Literal["completed", "handed_off"]
Stop = Literal["step_limit", "attributes_full", "assignee_gone"]
"""The reason for which a workflow could not go on."""


class WorkflowRun(Struct, frozen=True):
    """A running workflow at rest: it waits for the contact (`step`) or for a time (`due_at`).

    Args:
        version: storage key of the version that it keeps to its end.
        flow, action: positions of the action that waits.
        answers: the contact's answers so far, by action id.
        steps: the number of actions that were carried out.
        step: the pending step as the contact's side sees it (contract 2.5).
        due_at: when it goes on by itself, in milliseconds.
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
        """The id of the action that waits for the contact."""
        return None if self.step is None else self.step["actionId"]

    @property
    def takes_text(self) -> bool:
        """True if a message of the contact answers the pending step."""
        return self.step is not None and bool(self.step["action"].get("allowText"))


VERSIONS_KEPT: Final = 100
"""Versions of a workflow that are kept although nothing runs them any more, the newest."""

RunState = Literal["waiting", "ended", "stopped"]

RunOutcome = Ending | Stop
"""How a run ended: why it could not go on, else its end."""

NullablePosition = tuple[int | None, int | None]
"""The positions of a flow and of an action in it; both None if that is not known."""


class Version(Struct, frozen=True):
    """A version of a workflow, which never changes. The time (ms) is None for one from before times were noted."""

    number: int
    flows: Sequence[Mapping[str, Any]]
    created_at: int | None


class WaitingRun(Struct, frozen=True):
    """A run that waits: `since` when (ms), and until when if it waits for a time. `rowid` is the conversation's."""

    rowid: int
    conversation_id: str
    version: int
    place: NullablePosition
    since: int | None
    due_at: int | None


class EndedRun(Struct, frozen=True):
    """A run that has ended, at the time `at` (ms)."""

    rowid: int
    conversation_id: str
    version: int
    place: NullablePosition
    outcome: RunOutcome
    at: int


class WaitingRuns(Struct, frozen=True):
    """The number of runs that wait at a place of a version, and since when (ms) the first one does."""

    version: int
    place: NullablePosition
    runs: int
    since: int | None


class StepNames:
    """Names the actions at places of versions, as far as those are kept."""

    def __init__(self, versions: Sequence[Version]) -> None:
        self._flows = {each.number: each.flows for each in versions}

    def view(self, version: int, place: NullablePosition) -> dict[str, Any]:
        """Return the ids of the flow and the action; both null for a place that is not known."""
        flow, action = place
        flows = self._flows.get(version)
        if flows is None or flow is None or action is None:
            return {"flowId": None, "actionId": None}
        return {"flowId": flows[flow]["id"], "actionId": flows[flow]["actions"][action]["id"]}


def waiting_view(run: WaitingRun, steps: StepNames) -> dict[str, Any]:
    """Return a run that waits as the API shows it."""
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
    """Return a run that has ended as the API shows it."""
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
    """Return how many runs wait where, and how many have ended how, as the API shows it."""
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
    """Return a version as lists show it, without its flows."""
    return {
        "workflowId": workflow.id,
        "version": version.number,
        "published": version.number == workflow.version,
        "createdAt": iso_or_none(version.created_at),
    }
