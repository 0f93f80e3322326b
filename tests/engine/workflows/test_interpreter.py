"""The interpreter: the effects of a workflow, and the steps at which it waits (decisions 7)."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from hypothesis import given

from deskwire.engine.conversations.automation.interpreter import (
    STEPS_MAX,
    Answered,
    Effect,
    Elapsed,
    RunCommand,
    RunContext,
    SendMessage,
    WorkflowEnded,
    WorkflowInput,
    WorkflowStarted,
    advance,
)
from deskwire.engine.conversations.commands import Assign, Close, Patch
from deskwire.engine.core.values import replace
from deskwire.engine.workflows.definition import definition_of
from deskwire.engine.workflows.runs import WorkflowRun
from tests.engine.workflows.building import (
    FORM,
    LUCK,
    SUPPORT,
    TEAM,
    WORKFLOW,
    branch,
    buttons,
    random_workflow,
    send,
    sound_workflow,
    wait,
    workflow,
)
from tests.support.builders import NOON

AROUND = RunContext(NOON, {}, {("team", "team_1"): TEAM})
START = WorkflowRun(WORKFLOW, 1)


def play(
    document: Mapping[str, Any], *inputs: WorkflowInput, around: RunContext = AROUND
) -> tuple[tuple[Effect, ...], WorkflowRun | None]:
    """Return the effects of the last input, and the run after it."""
    definition = definition_of(document["flows"])
    effects, run = advance(definition, START, WorkflowStarted(), around)
    for each in inputs:
        assert run is not None
        effects, run = advance(definition, run, each, around)
    return effects, run


def test_it_runs_until_a_step_needs_the_contact_and_sends_texts_first() -> None:
    effects, run = play(SUPPORT)
    assert effects == (SendMessage("Hello!"), SendMessage("What is it about?"))
    assert run is not None
    assert run.step == {
        "workflowId": WORKFLOW,
        "stepType": "buttons",
        "actionFlowId": "main",
        "actionId": 2,
        "action": {
            "id": 2,
            "type": "buttons",
            "text": "What is it about?",
            "options": [{"id": "order", "label": "My order"}, {"id": "other", "label": "Something else"}],
            "allowText": False,
        },
    }


def test_option_leads_to_its_flow_and_one_without_to_the_next_action() -> None:
    _, run = play(SUPPORT, Answered("order"))
    assert run is not None
    assert run.step is not None
    assert (run.step["actionFlowId"], run.step["stepType"], run.step["actionId"]) == ("order", "form", 10)
    effects, run = play(SUPPORT, Answered("other"))
    assert (effects, run) == ((WorkflowEnded("handed_off"),), None)


def test_branch_reads_an_answer_and_a_wait_ends_at_a_time() -> None:
    form = Answered({"number": "A-1", "paid": True})
    effects, run = play(SUPPORT, Answered("order"), form)
    assert effects == (RunCommand(Patch({"attributes": {"paid": True}})), RunCommand(Assign(TEAM)))
    assert run is not None
    assert (run.step, run.due_at) == (None, NOON + 60_000)
    effects, run = play(SUPPORT, Answered("order"), form, Elapsed())
    assert (effects, run) == (
        (SendMessage("Thank you."), RunCommand(Close("bot")), WorkflowEnded("completed")),
        None,
    )


def test_without_its_case_a_branch_takes_the_default() -> None:
    for answer in ({"number": "A-1"}, {"number": "A-1", "paid": False}):
        assert play(SUPPORT, Answered("order"), Answered(answer)) == ((WorkflowEnded("completed"),), None)


def test_cases_are_texts_and_numbers_and_booleans_as_json() -> None:
    document = workflow(
        [branch(1, "f1", **{"3": "f2", "true": "f3", "pro": "f4"})],
        *([send(n, str(n))] for n in range(11, 15)),
    )
    for value, text in (
        (3, "12"),
        (True, "13"),
        ("pro", "14"),
        ("3", "12"),
        (None, "11"),
        ([3], "11"),
        (3.5, "11"),
    ):
        effects, _ = play(document, around=replace(AROUND, attributes={"plan": value}))
        assert effects == (SendMessage(text), WorkflowEnded("completed"))


def test_branch_reads_values_set_in_the_same_stretch() -> None:
    set_plan = {"id": 1, "type": "set_attributes", "attributes": {"plan": "pro"}}
    document = workflow([set_plan, branch(2, "end", pro="f1")], [send(3)])
    effects, _ = play(document)
    assert effects == (
        RunCommand(Patch({"attributes": {"plan": "pro"}})),
        SendMessage("Hi"),
        WorkflowEnded("completed"),
    )


def test_text_that_is_no_option_continues_with_the_next_action() -> None:
    document = workflow(
        [buttons(1, "end", free=True), branch(2, "end", on="answers.1", hello="f1")], [send(3)]
    )
    assert play(document, Answered("hello"))[0] == (SendMessage("Hi"), WorkflowEnded("completed"))
    assert play(document, Answered("b0"))[0] == (WorkflowEnded("completed"),)


def test_missing_assignee_hands_over() -> None:
    document = workflow([{"id": 1, "type": "assign", "assignee": {"type": "team", "id": "team_2"}}, send(2)])
    assert play(document) == ((WorkflowEnded("handed_off", "assignee_gone"),), None)


def test_too_many_attributes_hand_over() -> None:
    full = replace(AROUND, attributes={str(number): 1 for number in range(100)})
    document = workflow([{"id": 1, "type": "set_attributes", "attributes": {"one more": 1}}])
    assert play(document, around=full) == ((WorkflowEnded("handed_off", "attributes_full"),), None)


def test_an_endless_loop_is_stopped_by_the_step_limit() -> None:
    effects, run = play(workflow([send(1), branch(2, "f0")]))
    assert (effects[-1], run) == (WorkflowEnded("handed_off", "step_limit"), None)
    assert effects.count(SendMessage("Hi")) == STEPS_MAX // 2


def test_limit_of_the_whole_run_stops_a_loop_over_a_step() -> None:
    definition = definition_of(workflow([buttons(1, "f0", "end")])["flows"])
    run: WorkflowRun | None = START
    given: WorkflowInput = WorkflowStarted()
    answers = 0
    effects: tuple[Effect, ...] = ()
    while run is not None:
        effects, run = advance(definition, run, given, AROUND)
        given, answers = Answered("b0"), answers + 1
    assert (effects, answers) == ((WorkflowEnded("handed_off", "step_limit"),), STEPS_MAX + 1)


def some_answer(luck: Random, run: WorkflowRun) -> WorkflowInput:
    """Draw something that the contact may do at this rest, or time that passes."""
    if run.step is None:
        return Elapsed()
    action = run.step["action"]
    if action["type"] == "form":
        return Answered({"number": "A-1", "paid": luck.random() < 0.5})
    return Answered(
        luck.choice([*(each["id"] for each in action["options"]), *(["x"] * action["allowText"])])
    )


@given(LUCK)
def test_accepted_workflow_ends_or_waits_within_its_own_length(luck: Random) -> None:
    definition = definition_of(sound_workflow(luck)["flows"])
    size = sum(len(flow.actions) for flow in definition.flows)
    run, given = START, WorkflowStarted()  # type: WorkflowRun, WorkflowInput
    for _ in range(20):
        effects, rest = advance(definition, run, given, AROUND)
        ended = [effect for effect in effects if isinstance(effect, WorkflowEnded)]
        if rest is None:
            assert ended == [effects[-1]]
            assert ended[0].stopped is None
            return
        assert ended == []
        assert rest.steps - run.steps <= size
        assert (rest.step is None) != (rest.due_at is None)
        run, given = rest, some_answer(luck, rest)


@given(LUCK)
def test_each_stretch_of_any_flows_ends(luck: Random) -> None:
    definition = definition_of(random_workflow(luck)["flows"])
    run, given = START, WorkflowStarted()  # type: WorkflowRun, WorkflowInput
    while run.steps < 50:
        effects, rest = advance(definition, run, given, AROUND)
        assert len(effects) <= STEPS_MAX + 2
        if rest is None:
            return
        assert rest.steps > run.steps
        run, given = rest, some_answer(luck, rest)


def test_the_form_shows_its_fields() -> None:
    _, run = play(workflow([FORM]))
    assert run is not None
    assert run.step is not None
    assert run.step["action"]["fields"][1] == {
        "id": "paid", "type": "boolean", "label": "Paid already", "required": False,
    }  # fmt: skip
    assert play(workflow([wait(1, 5)]))[1] == replace(START, steps=1, due_at=NOON + 5_000)
