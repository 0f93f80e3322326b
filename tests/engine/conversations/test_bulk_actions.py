"""The commands of bulk jobs, and their undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.bulk_jobs import (
    BulkAction,
    BulkCommand,
    BulkItem,
    BulkJob,
    Trace,
    command_of,
    restore_of,
    trace_of,
)
from deskwire.engine.conversations.commands import (
    Assign,
    ChangeReadPosition,
    Close,
    Follow,
    MarkNoAnswerNeeded,
    Patch,
    Reopen,
    Restore,
    Retag,
    WaitAgain,
)
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.decide import after, decide
from deskwire.engine.conversations.facts import AgentFieldsUpdated
from deskwire.engine.core.errors import Conflict
from deskwire.engine.core.values import replace
from tests.support.builders import NOON, post

BEA: Final = Assignee("user", "usr_bea", "Bea")
CAL: Final = Assignee("user", "usr_cal", "Cal")
HOUR: Final = 3_600_000
OPEN: Final = Conversation(
    "cnv_01M3250V00000000000000000A", 1, created_at=NOON, updated_at=NOON, sequence=7, last_turn=4, messages=3
)
ACTIONS: Final = (
    BulkAction("close"),
    BulkAction("reopen"),
    BulkAction("pending"),
    BulkAction("assign", assignee=("user", BEA.id)),
    BulkAction("assign"),
    BulkAction("tag", add=("vip", "new"), remove=("old",)),
    BulkAction("snooze", until=NOON + 9 * HOUR),
    BulkAction("snooze"),
    BulkAction("archive"),
    BulkAction("unarchive"),
    BulkAction("noAnswerNeeded"),
    BulkAction("waitAgain"),
)
SHOWN: Final = (
    "status",
    "waiting_since",
    "no_answer_needed_since",
    "snoozed_until",
    "assignee",
    "archived",
    "tags",
)
AUTHOR: Final = 7
"""The storage key of the jobs' author."""
STATES: Final = st.builds(
    lambda fields, waits, closed: (
        changed(replace(OPEN, **fields, **waits), Close("agent"))
        if closed
        else replace(OPEN, **fields, **waits)
    ),
    st.fixed_dictionaries(
        {
            "status": st.sampled_from(["OPEN", "PENDING"]),
            "snoozed_until": st.sampled_from([None, NOON + HOUR]),
            "assignee": st.sampled_from([None, BEA, CAL]),
            "archived": st.booleans(),
            "tags": st.lists(st.sampled_from(["vip", "old", "other"]), unique=True).map(tuple),
        }
    ),
    st.sampled_from([{}, {"waiting_since": NOON - HOUR}, {"no_answer_needed_since": NOON - HOUR}]),
    st.booleans(),
)


def changed(state: Conversation, command: Any) -> Conversation:
    return after(state, decide(state, command, NOON))


def job_of(action: BulkAction) -> BulkJob:
    """Return a running job with this action."""
    return BulkJob(1, "blk_1", 1, AUTHOR, "usr_author", "Author", action, "running", None, 1, NOON)


def command_for(action: BulkAction, state: Conversation) -> BulkCommand:
    """Return the command of an item that was stored when its conversation had this state."""
    item = BulkItem(1, state.id, Trace(before={"messages": state.messages}))
    return command_of(job_of(action), item, BEA if action.assignee else None)


def undo_of(
    action: BulkAction, trace: Trace, assignee: Assignee | None = None, now: int = NOON
) -> BulkCommand:
    """Return the command that undoes a changed item."""
    return restore_of(job_of(action), BulkItem(1, OPEN.id, trace), assignee, now)


def carried_out(action: BulkAction, state: Conversation) -> Conversation | None:
    """Return the state after an action; None if the conversation refuses it or has nothing to change."""
    try:
        result = changed(state, command_for(action, state))
    except Conflict:
        return None
    return None if all(getattr(result, name) == getattr(state, name) for name in SHOWN) else result


def fields(state: Conversation) -> Mapping[str, Any]:
    return {name: frozenset(state.tags) if name == "tags" else getattr(state, name) for name in SHOWN}


@given(st.sampled_from(ACTIONS), STATES)
def test_undo_restores_all_that_an_action_has_changed(action: BulkAction, before: Conversation) -> None:
    result = carried_out(action, before)
    if result is None:
        return
    undo = undo_of(action, trace_of(action, before, result), before.assignee)
    assert fields(changed(result, undo)) == fields(before)


@pytest.mark.parametrize(
    ("action", "since"),
    [
        (BulkAction("close"), Reopen()),
        (BulkAction("pending"), Patch({"status": "OPEN"})),
        (BulkAction("assign", assignee=("user", BEA.id)), Assign(CAL)),
        (BulkAction("snooze", until=NOON + 9 * HOUR), Patch({"snoozed_until": NOON + HOUR})),
        (BulkAction("archive"), Patch({"archived": False})),
        (BulkAction("noAnswerNeeded"), WaitAgain()),
        (BulkAction("noAnswerNeeded"), post("contact")),
        (BulkAction("noAnswerNeeded"), post("agent")),
        (BulkAction("waitAgain"), MarkNoAnswerNeeded(2)),
        (BulkAction("waitAgain"), post("agent")),
    ],
    ids=lambda each: each.type if isinstance(each, BulkAction) else "",
)
def test_undo_is_refused_after_a_later_change_of_the_same_fields(action: BulkAction, since: Any) -> None:
    before = (
        replace(OPEN, no_answer_needed_since=NOON - HOUR)
        if action.type == "waitAgain"
        else replace(OPEN, waiting_since=NOON - HOUR)
    )
    result = carried_out(action, before)
    assert result is not None
    undo = undo_of(action, trace_of(action, before, result))
    with pytest.raises(Conflict) as refused:
        decide(changed(result, since), undo, NOON)
    assert refused.value.reason == "changed_since"


def test_undo_of_a_snooze_does_not_bring_back_one_that_has_ended() -> None:
    before = replace(OPEN, snoozed_until=NOON + HOUR)
    action = BulkAction("snooze", until=NOON + 9 * HOUR)
    result = carried_out(action, before)
    assert result is not None
    undo = undo_of(action, trace_of(action, before, result), now=NOON + 2 * HOUR)
    assert changed(result, undo).snoozed_until is None


def test_retag_keeps_other_tags() -> None:
    state = replace(OPEN, tags=("a", "b", "old"))
    assert decide(state, Retag(("new", "A"), ("OLD",)), NOON) == (
        AgentFieldsUpdated({"tags": ("a", "b", "new")}),
    )
    assert decide(state, Retag(("a",), ("absent",)), NOON) == ()


def test_retag_beyond_the_limit_is_refused() -> None:
    full = replace(OPEN, tags=tuple(f"t{number}" for number in range(20)))
    with pytest.raises(Conflict) as refused:
        decide(full, Retag(("one more",)), NOON)
    assert refused.value.reason == "tag_limit_reached"
    assert decide(full, Retag(("one more",), ("t3",)), NOON) != ()


def test_mark_does_not_hide_a_message_after_the_start_of_the_job() -> None:
    waiting = replace(OPEN, waiting_since=NOON - HOUR)
    command = command_for(BulkAction("noAnswerNeeded"), waiting)
    with pytest.raises(Conflict) as refused:
        decide(changed(waiting, post("contact")), command, NOON)
    assert refused.value.reason == "newer_message"


def test_undo_of_a_removed_mark_does_not_hide_a_later_message() -> None:
    action, before = BulkAction("waitAgain"), replace(OPEN, no_answer_needed_since=NOON - HOUR)
    result = carried_out(action, before)
    assert result is not None
    undo = undo_of(action, trace_of(action, before, result))
    with pytest.raises(Conflict) as refused:
        decide(changed(result, post("contact")), undo, NOON)
    assert refused.value.reason == "newer_message"


def test_undo_leaves_a_closed_conversation_without_a_wait() -> None:
    action, before = BulkAction("noAnswerNeeded"), replace(OPEN, waiting_since=NOON - HOUR)
    result = carried_out(action, before)
    assert result is not None
    undo = undo_of(action, trace_of(action, before, result))
    with pytest.raises(Conflict) as refused:
        decide(changed(result, Close("agent")), undo, NOON)
    assert refused.value.reason == "conversation_closed"


def test_own_rows_have_commands_of_the_author() -> None:
    assert command_for(BulkAction("follow"), OPEN) == Follow(AUTHOR, True)
    assert command_for(BulkAction("unfollow"), OPEN) == Follow(AUTHOR, False)
    assert command_for(BulkAction("unread"), OPEN) == ChangeReadPosition()
    assert decide(OPEN, ChangeReadPosition(), NOON) == ()


def test_undo_of_own_rows_restores_them() -> None:
    former = Trace(own_before=(NOON - HOUR,))
    assert undo_of(BulkAction("follow"), Trace(own_left=(NOON,))) == Restore({}, (Follow(AUTHOR, False),))
    assert undo_of(BulkAction("unfollow"), former) == Restore({}, (Follow(AUTHOR, True, NOON - HOUR),))
    assert undo_of(BulkAction("unread"), Trace(own_left=(1, 1, NOON))) == ChangeReadPosition()


def test_retag_of_the_same_tags_in_other_letters_changes_nothing() -> None:
    state = replace(OPEN, tags=("arger", "b"))
    assert decide(state, Retag(("b", "ärger"), ("absent",)), NOON) == ()


def test_retag_that_removes_and_adds_a_tag_keeps_it() -> None:
    state = replace(OPEN, tags=("b", "vip"))
    assert decide(state, Retag(("vip",), ("vip",)), NOON) == ()


def test_restore_carries_out_each_command_on_the_state_after_the_one_before() -> None:
    restore = Restore({"status": "CLOSED"}, (Reopen(NOON - HOUR), Patch({"status": "PENDING"}), Assign(CAL)))
    closed = changed(replace(OPEN, waiting_since=NOON - HOUR), Close("agent"))
    result = changed(closed, restore)
    assert (result.status, result.waiting_since, result.assignee) == ("PENDING", NOON - HOUR, CAL)


def test_restore_compares_an_assignee_without_the_name() -> None:
    state = replace(OPEN, assignee=replace(BEA, name="Beatrice"))
    restore = Restore({"assignee": ["user", BEA.id]}, (Assign(None),))
    assert changed(state, restore).assignee is None


def test_restore_of_a_changed_conversation_carries_out_no_command() -> None:
    with pytest.raises(Conflict) as refused:
        decide(OPEN, Restore({"status": "OPEN", "archived": True}, (Close("agent"),)), NOON)
    assert refused.value.reason == "changed_since"
