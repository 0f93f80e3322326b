"""Decisions on commands for a conversation in which a workflow runs (contract 3, decisions 7)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from deskwire.engine.conversations.commands import (
    AnswerStep,
    Assign,
    Close,
    Patch,
    Reopen,
    StartWorkflow,
    WakeWorkflow,
)
from deskwire.engine.core.errors import Conflict, Invalid
from deskwire.engine.events.types import EventDraft
from tests.engine.conversations.test_conversation_model import AnyCommands, Consumer
from tests.engine.workflows.building import (
    LUCK,
    SUPPORT,
    TEAM,
    WORKFLOW,
    buttons,
    published,
    send,
    sound_workflow,
    wait,
    workflow,
)
from tests.support.builders import Play, create, post


def types(drafts: list[EventDraft]) -> list[str]:
    return [draft.type for draft in drafts]


def started(document: Any = SUPPORT, **fields: Any) -> Play:
    """Return a new conversation in which the workflow has started."""
    play = Play()
    play(create(**fields))
    play.workflow = published(document)
    play(StartWorkflow(play.workflow))
    return play


def test_new_conversation_starts_it_after_its_first_message() -> None:
    play = Play(workflow=published())
    drafts = play(create(message=post()))
    assert types(drafts) == [
        "conversation.created", "message.created", "message.created", "message.created", "workflow.step.presented",
    ]  # fmt: skip
    assert [draft.sequence for draft in drafts] == [1, 2, 3, 4, 5]
    assert drafts[2].data["message"]["author"] == {"type": "bot", "id": WORKFLOW, "name": None}
    assert drafts[-1].data["step"]["actionId"] == 2


def test_a_hidden_conversation_starts_it_when_it_becomes_visible() -> None:
    play = Play(workflow=published())
    assert play(create(visible=False, message=post())) == []
    assert play.now_is.run is None
    assert types(play(Patch({"visible": True})))[:2] == ["conversation.created", "message.created"]
    assert play.now_is.run is not None


@pytest.mark.parametrize("before", [post("agent"), Assign(TEAM), Close("system")])
def test_no_workflow_starts_after_an_agent_or_in_a_closed_conversation(before: Any) -> None:
    play = Play(workflow=published())
    play(create(visible=False))
    play(before)
    play(Patch({"visible": True}))
    assert play.now_is.run is None


def test_a_first_message_of_an_agent_starts_nothing() -> None:
    play = Play(workflow=published())
    assert types(play(create(message=post("agent")))) == ["conversation.created", "message.created"]


def test_answer_is_a_contacts_message_and_the_effects_are_one_turn() -> None:
    play = started()
    drafts = play(AnswerStep(2, "order"))
    assert types(drafts) == ["message.created", "message.created", "workflow.step.presented"]
    authors = [draft.data["message"]["author"]["type"] for draft in drafts[:2]]
    texts = [draft.data["message"]["text"] for draft in drafts[:2]]
    assert (authors, texts) == (["contact", "bot"], ["My order", "Which one?"])
    drafts = play(AnswerStep(10, {"number": "A-1", "paid": True}))
    assert types(drafts) == ["message.created", "conversation.updated", "conversation.assigned"]
    assert drafts[0].data["message"]["text"] == "Order number: A-1\nPaid already: yes"
    assert drafts[1].data["changed"] == ["attributes"]


def test_its_close_is_the_bots_and_it_is_completed() -> None:
    play = Play()
    play(create())
    drafts = play(StartWorkflow(published(workflow([send(1), {"id": 2, "type": "close"}]))))
    assert types(drafts) == ["message.created", "conversation.closed", "workflow.completed"]
    assert (drafts[1].data["closedBy"], drafts[2].data["reason"]) == ("bot", "completed")
    assert (play.now_is.closed_by, play.now_is.run) == ("bot", None)


def test_wait_ends_at_its_time_and_not_before() -> None:
    play = started(workflow([wait(1, 10), send(2)]))
    run = play.now_is.run
    assert run is not None
    assert run.due_at is not None
    assert play(WakeWorkflow()) == []
    play.now = run.due_at
    drafts = play(WakeWorkflow())
    assert types(drafts) == ["message.created", "workflow.completed"]
    assert drafts[-1].data["workflowId"] == WORKFLOW
    assert drafts[-1].data["reason"] == "completed"
    assert play(WakeWorkflow()) == []


def test_step_that_is_not_pending_refuses_answers() -> None:
    play = started()
    play(AnswerStep(2, "order"))
    for action_id in (2, 77):
        with pytest.raises(Conflict) as refused:
            play(AnswerStep(action_id, "order"))
        assert refused.value.reason == "step_not_pending"


def test_free_text_is_a_message_and_no_answer() -> None:
    play = started()
    before = play.now_is.run
    assert types(play(post(text="My order"))) == ["message.created"]
    assert play.now_is.run == before


def test_free_text_answers_where_the_step_allows_it() -> None:
    document = workflow([buttons(1, "f1", None, free=True), send(2, "next")], [send(3, "picked")])
    for text, said in ((" button 0", "picked"), ("something else", "next"), ("BUTTON 1", "next")):
        play = started(document)
        drafts = play(post(text=text))
        assert types(drafts) == ["message.created", "message.created", "workflow.completed"]
        assert [draft.data["message"]["text"] for draft in drafts[:2]] == [text, said]
        play = started(document)
        assert types(play(post("bot", text=text))) == ["message.created"]


def test_agents_reply_hands_over_and_a_note_or_an_assignment_does_not() -> None:
    play = started()
    play(post("agent", internal=True))
    play(Assign(TEAM))
    play(post("system"))
    assert play.now_is.run is not None
    drafts = play(post("agent"))
    assert types(drafts) == ["message.created", "workflow.completed"]
    assert drafts[-1].data["reason"] == "handed_off"
    assert play.now_is.run is None


def test_close_by_another_actor_ends_it_and_reopening_does_not_resume_it() -> None:
    play = started()
    drafts = play(Close("agent"))
    assert types(drafts) == ["conversation.closed", "workflow.completed"]
    assert drafts[-1].data["reason"] == "handed_off"
    play(Reopen())
    assert play.now_is.run is None


def test_one_workflow_runs_at_a_time_and_only_in_visible_conversations() -> None:
    play = started()
    assert code_of(play, StartWorkflow(published())) == "workflow_running"
    play(Close("agent"))
    assert code_of(play, StartWorkflow(published())) == "conversation_closed"
    hidden = Play()
    hidden(create(visible=False))
    assert code_of(hidden, StartWorkflow(published())) == "conversation_hidden"


def code_of(play: Play, command: Any) -> str:
    with pytest.raises(Conflict) as refused:
        play(command)
    return refused.value.reason


def test_a_bot_alone_is_no_human() -> None:
    play = started(workflow([send(1), buttons(2, None), {"id": 3, "type": "close"}]))
    play(AnswerStep(2, "b0"))
    assert not play.now_is.human
    assert play.now_is.closed_by == "bot"
    play = started(workflow([{"id": 1, "type": "assign", "assignee": {"type": "team", "id": "team_1"}}]))
    assert play.now_is.human


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("red", [("/value", "invalid_type")]),
        ({}, [("/value/number", "required")]),
        ({"number": "", "age": 3}, [("/value/age", "unknown_field"), ("/value/number", "bad_answer")]),
        ({"number": 3, "paid": "yes"}, [("/value/number", "bad_answer"), ("/value/paid", "bad_answer")]),
        ({"number": "x" * 20_000}, [("/value", "too_long")]),
    ],
)
def test_answer_that_does_not_fit_its_form_is_refused_with_every_problem(value: Any, problems: Any) -> None:
    play = started()
    play(AnswerStep(2, "order"))
    with pytest.raises(Invalid) as refused:
        play(AnswerStep(10, value))
    assert [(each.pointer, each.code) for each in refused.value.problems] == problems


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("email", ["a@b", "ada@example.org"], ["", "ada", "a b@c", "@", 3, "x" * 400 + "@y"]),
        ("number", [0, -1.5, 10**9], ["3", True, 10**16]),
        ("boolean", [True, False], ["true", 1]),
        ("date", ["2026-11-01"], ["2026-13-01", "1.11.2026", 20261101]),
        ("text", ["x"], ["", " ", 7, ["x"]]),
    ],
)
def test_fields_accept_values_of_their_type(kind: str, good: list[Any], bad: list[Any]) -> None:
    fields = [{"id": "f", "type": kind, "label": "F"}]
    document = workflow([{"id": 1, "type": "form", "text": "T", "fields": fields}])
    for value in good:
        assert types(started(document)(AnswerStep(1, {"f": value})))[-1] == "workflow.completed"
    for value in bad:
        with pytest.raises(Invalid):
            started(document)(AnswerStep(1, {"f": value}))


def test_a_form_that_is_left_empty_is_answered_without_a_message() -> None:
    fields = [{"id": "f", "type": "text", "label": "F"}]
    document = workflow([{"id": 1, "type": "form", "text": "T", "fields": fields}, send(2)])
    assert types(started(document)(AnswerStep(1, {"f": None}))) == ["message.created", "workflow.completed"]


def test_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Invalid) as refused:
        started()(AnswerStep(2, "red"))
    (problem,) = refused.value.problems
    assert (problem.pointer, problem.code) == ("/value", "not_allowed")
    assert "order, other" in problem.message


class StepConsumer(Consumer):
    """A mirror that keeps the pending step, too."""

    def __init__(self) -> None:
        super().__init__()
        self.step: Any = None

    def take(self, draft: EventDraft) -> None:
        super().take(draft)
        if draft.type == "workflow.step.presented":
            self.step = draft.data["step"]
        if draft.type == "workflow.completed":
            self.step = None


class AnyCommandsAndAWorkflow(AnyCommands):
    """The machine of its base, with workflows that start, are answered, woken and interrupted."""

    def __init__(self) -> None:
        super().__init__()
        self.consumer: StepConsumer = StepConsumer()

    @initialize(luck=LUCK, visible=st.booleans())
    def begin(self, luck: Random, visible: bool) -> None:
        self.play.workflow = published(sound_workflow(luck))
        self.carry_out(create(visible=visible))

    @rule()
    def start(self) -> None:
        if self.play.state is not None and self.play.workflow is not None:
            self.carry_out(StartWorkflow(self.play.workflow))

    @rule(luck=LUCK)
    def answer(self, luck: Random) -> None:
        state = self.play.state
        if state is None or state.run is None or state.run.step is None:
            return
        action = state.run.step["action"]
        value: Any = {"number": "A-1", "paid": True}
        if action["type"] == "buttons":
            value = luck.choice([*(each["id"] for each in action["options"]), "free text"])
        self.carry_out(AnswerStep(action["id"], value))

    @rule()
    def wake(self) -> None:
        if self.play.state is not None:
            self.play.now += 100_000
            self.carry_out(WakeWorkflow())

    @invariant()
    def a_workflow_rests_only_where_it_may(self) -> None:
        state = self.play.state
        if state is None or state.run is None:
            assert self.consumer.step is None or self.consumer.deleted
            return
        assert state.visible
        assert state.status != "CLOSED"
        assert (state.run.step is None) != (state.run.due_at is None)
        assert state.run.step is None or self.consumer.step == state.run.step


def test_consumer_reconstructs_the_conversation_during_any_workflow() -> None:
    run_state_machine_as_test(
        AnyCommandsAndAWorkflow,
        settings=settings(max_examples=25, stateful_step_count=25, deadline=None, derandomize=True),
    )
