"""The events for agents alone, and the entries of the activity."""

from __future__ import annotations

from typing import Any

import pytest

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.commands import (
    AnswerStep,
    Assign,
    Close,
    Command,
    Delete,
    MarkNoAnswerNeeded,
    MarkRead,
    Patch,
    Reopen,
    ReplaceNetworkLogs,
    StartWorkflow,
    WakeSnoozed,
    WorkflowCommand,
)
from deskwire.engine.conversations.commit import is_single_public_message, make_plan
from deskwire.engine.conversations.commit_plan import CommitPlan
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.events import changed_by, changed_for_agents
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.values import replace
from deskwire.engine.workflows.workflow import Published
from tests.engine.workflows.building import buttons, published, send, workflow
from tests.support.builders import CONTACT, NOON, PROJECT, create, post

GRACE = Actor("user", "usr_1", "Grace")
SHOWN = Conversation(id="cnv_1", project=1, created_at=1_000, updated_at=1_000, sequence=4, unread=True)
HIDDEN = replace(SHOWN, visible=False, sequence=0)
WAITING = replace(SHOWN, messages=1, waiting_since=NOON - 10_000)
CLOSE = {"id": 2, "type": "close"}
ADA = Assignee("user", "usr_2", "Ada")


def planned(
    command: Command | WorkflowCommand,
    state: Conversation | None = SHOWN,
    by: Actor | None = GRACE,
    running: Published | None = None,
) -> CommitPlan:
    return make_plan(PROJECT, state, command, NOON, running, by=by)


def told(plan: CommitPlan) -> list[str]:
    return changed_for_agents(plan.steps, plan.entries)


def entries(plan: CommitPlan) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (entry.by.type, entry.action, {change.field: change.after for change in entry.changes})
        for entry in plan.entries
        if entry is not None
    ]


@pytest.mark.parametrize(
    ("command", "fields", "changes"),
    [
        (Assign(ADA), ["assignee"], {"assignee": {"type": "user", "id": "usr_2", "name": "Ada"}}),
        (Close("agent"), ["status", "closedBy", "closedAt"], {"status": "CLOSED"}),
        (Patch({"status": "PENDING"}), ["status"], {"status": "PENDING"}),
        (Patch({"archived": True}), ["archived"], {"archived": True}),
        (Patch({"title": "T"}), ["title"], {"title": "T"}),
        (Patch({"tags": ("vip",)}), ["tags"], {"tags": ["vip"]}),
        (
            Patch({"snoozed_until": NOON + 60_000}),
            ["snoozedUntil"],
            {"snoozedUntil": "2026-09-21T14:14:20.000Z"},
        ),
        (
            MarkNoAnswerNeeded(0),
            ["waitingSince", "noAnswerNeededSince"],
            {"noAnswerNeededSince": "2026-09-21T14:13:10.000Z"},
        ),
    ],
)
def test_a_change_has_an_event_and_an_entry_with_its_actor(
    command: Command, fields: list[str], changes: dict[str, Any]
) -> None:
    plan = planned(command, WAITING if isinstance(command, MarkNoAnswerNeeded) else SHOWN)
    assert told(plan) == fields
    ((_, _, noted),) = entries(plan)
    assert noted == changes
    assert changed_by(plan.by, plan.steps, plan.entries, CONTACT) == GRACE


@pytest.mark.parametrize("author", ["contact", "agent", "bot", "system"])
def test_a_public_message_is_single_and_has_no_entry(author: Any) -> None:
    plan = planned(post(author))
    assert plan.single
    assert plan.entries == ()


def test_a_message_that_reopens_or_ends_a_snooze_has_public_events_only() -> None:
    plan = planned(post(), replace(SHOWN, status="CLOSED", snoozed_until=NOON + 5), by=None)
    assert (plan.single, told(plan), entries(plan)) == (False, [], [])


@pytest.mark.parametrize("internal", [True, False])
def test_a_note_and_a_hidden_message_are_not_single_public_messages(internal: bool) -> None:
    state = SHOWN if internal else HIDDEN
    plan = planned(post("agent", internal=internal), state)
    assert not plan.single
    assert told(plan) == []  # the note has an event of its own
    assert not is_single_public_message([], SHOWN)


def test_agents_get_all_events_of_a_hidden_conversation() -> None:
    assert told(planned(create(visible=False), None)) == ["created"]
    assert told(planned(Patch({"attributes": {"a": 1}}), HIDDEN)) == ["attributes"]
    assert told(planned(Patch({"visible": True}), HIDDEN)) == ["visible"]
    assert told(planned(Delete("manual"), HIDDEN)) == ["deleted"]


def test_a_change_that_public_events_show_in_full_has_no_other_event() -> None:
    assert told(planned(create(), None)) == []
    assert told(planned(Delete("manual"))) == []
    assert told(planned(Patch({"attributes": {"a": 1}}))) == []


def test_a_change_that_only_agents_see_has_an_event_for_any_actor() -> None:
    assert told(planned(MarkRead(), by=None)) == ["unread", "contactSeenIndex", "contactSeenAt"]
    assert told(planned(ReplaceNetworkLogs(b"[]"), by=None)) == ["networkLogsAt"]
    snoozed = replace(SHOWN, snoozed_until=NOON - 1)
    plan = planned(WakeSnoozed(), snoozed, Actor("system"))
    assert told(plan) == ["snoozedUntil"]
    assert entries(plan) == [("system", "changed", {"snoozedUntil": None})]


def test_only_a_conversation_started_by_an_agent_has_an_entry() -> None:
    command = replace(create(message=post("agent")), by_agent=True, assignee=ADA)
    plan = planned(command, None)
    assert [(kind, action) for kind, action, _ in entries(plan)] == [
        ("user", "started"),
        ("user", "assigned"),
    ]
    assert plan.steps
    assert plan.steps[-1][2].human
    assert entries(planned(create(), None, Actor("server_key", "key_1"))) == []


def test_the_workflow_is_the_actor_of_its_steps() -> None:
    started = published(workflow([send(1, "Hello"), CLOSE]))
    plan = planned(StartWorkflow(started), SHOWN, GRACE)
    assert [(kind, action) for kind, action, _ in entries(plan)] == [("bot", "closed")]
    assert told(plan) == []


def test_a_waiting_workflow_has_an_event() -> None:
    started = published(workflow([buttons(1, None), CLOSE]))
    plan = planned(StartWorkflow(started), SHOWN, GRACE)
    assert "workflow" in told(plan)
    waiting = plan.steps[-1][2]
    assert waiting is not None
    assert waiting.run is not None
    assert waiting.run.step is not None
    option = waiting.run.step["action"]["options"][0]["id"]
    answered = planned(AnswerStep(1, option), waiting, None, started)
    assert [(kind, action) for kind, action, _ in entries(answered)] == [("bot", "closed")]


def test_a_command_that_changes_nothing_has_no_event_and_no_entry() -> None:
    for command in (Reopen(), Patch({"tags": ()}), WakeSnoozed(), Assign(None)):
        plan = planned(command)
        assert (plan.steps, plan.entries) == ([], ())
