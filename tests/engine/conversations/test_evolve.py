"""The effect of one fact on the state: fields, sequence, and the time of the last update (decisions 4)."""

from __future__ import annotations

import pytest

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.commands import Patch
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.decide import events_of, evolve, touches
from deskwire.engine.conversations.facts import (
    Assigned,
    Created,
    Deleted,
    Fact,
    NetworkLogsReplaced,
    WorkflowCompleted,
    WorkflowWaits,
)
from deskwire.engine.core.values import replace
from deskwire.engine.workflows.runs import WorkflowRun
from tests.support.builders import create, played

SHOWN = Conversation(id="cnv_1", project=1, created_at=1_000, updated_at=1_000, sequence=4)
RUN = WorkflowRun("wfl_1", 7)
STEP = replace(RUN, step={"actionId": 3, "action": {}})


@pytest.mark.parametrize(
    ("fact", "numbered"),
    [
        pytest.param(WorkflowWaits(STEP), True, id="a step for the contact"),
        pytest.param(WorkflowWaits(RUN), False, id="a pause"),
        pytest.param(WorkflowCompleted("wfl_1", "completed"), True, id="the end of a workflow"),
        pytest.param(NetworkLogsReplaced(b"{}", 2_000), False, id="network logs"),
        pytest.param(Deleted("manual"), True, id="a deletion"),
    ],
)
def test_only_visible_changes_have_a_sequence_and_a_time(fact: Fact, numbered: bool) -> None:
    after = evolve(SHOWN, fact, 9_000)
    assert (after.sequence, after.updated_at) == ((5, 9_000) if numbered else (4, 1_000))
    assert (events_of(SHOWN, fact), touches(fact)) == (int(numbered), numbered)
    hidden = evolve(replace(SHOWN, visible=False, sequence=0), fact, 9_000)
    assert hidden.sequence == 0


def test_the_state_has_a_run_until_the_workflow_ends() -> None:
    waiting = evolve(SHOWN, WorkflowWaits(STEP), 9_000)
    assert waiting.run == STEP
    assert evolve(waiting, WorkflowCompleted("wfl_1", "handed_off"), 9_000).run is None


def test_an_assignment_ends_bot_only_and_unassigning_does_not() -> None:
    assert evolve(SHOWN, Assigned(Assignee("user", "usr_1", "Ann")), 9_000).human is True
    assert evolve(SHOWN, Assigned(None), 9_000).human is False


@pytest.mark.parametrize(("visible", "sequence"), [(True, 1), (False, 0)])
def test_a_conversation_begins_with_its_creation_or_unseen(visible: bool, sequence: int) -> None:
    created = Created(replace(SHOWN, visible=visible, sequence=0))
    assert evolve(None, created) == replace(SHOWN, visible=visible, sequence=sequence)
    assert evolve(None, created, 9_000).updated_at == 9_000


def test_a_fact_without_a_time_leaves_that_of_the_last_update() -> None:
    assert evolve(SHOWN, WorkflowWaits(STEP)).updated_at == 1_000


def test_the_time_of_archiving_is_kept_while_it_is_archived() -> None:
    play = played(create(), Patch({"archived": True}))
    assert play.now_is.archived_at == play.now
    play(Patch({"archived": False}))
    assert play.now_is.archived_at is None
