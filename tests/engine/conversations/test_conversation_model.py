"""Random commands in any order; a consumer of the events alone must get the same state."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.commands import (
    Assign,
    Close,
    Command,
    Delete,
    MarkNoAnswerNeeded,
    MarkRead,
    Patch,
    PostMessage,
    Rate,
    Reopen,
    ReplaceNetworkLogs,
    Reply,
    WaitAgain,
    WakeSnoozed,
    WorkflowCommand,
)
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.decide import events_of, evolve
from deskwire.engine.conversations.events import conversation_view
from deskwire.engine.conversations.facts import Created, Fact
from deskwire.engine.core.errors import Conflict, Invalid
from deskwire.engine.events.types import EventDraft
from tests.support.builders import CONTACT, NOON, PROJECT, Play, create, post

NOTE = "a note that nobody outside may see"
VALUES = st.sampled_from([None, 0, 1, True, False, "x", [1], {"a": None}])
ATTRIBUTES = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from([None, "A", "B"]),
        "archived": st.booleans(),
        "status": st.sampled_from(["OPEN", "PENDING"]),
        "attributes": ATTRIBUTES,
        "visible": st.booleans(),
        "tags": st.sampled_from([(), ("a",), ("a", "b")]),
        "snoozed_until": st.sampled_from([None, NOON, NOON + 10_000_000]),
    },
)
MESSAGES = st.builds(post, st.sampled_from(["contact", "agent", "bot", "system"]), st.just("text"))
NOTES = st.builds(post, st.just("agent"), st.just(NOTE), internal=st.just(True))
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    MESSAGES,
    NOTES,
    st.builds(Close, st.sampled_from(["agent", "bot", "system"])),
    st.builds(Reopen),
    st.builds(Assign, st.sampled_from([None, Assignee("user", "u", "U"), Assignee("team", "t", "T")])),
    st.builds(MarkRead),
    st.builds(Rate, st.integers(0, 10)),
    st.builds(Patch, FIELDS),
    st.builds(WakeSnoozed),
    st.builds(
        Reply,
        MESSAGES | NOTES,
        st.none() | st.integers(0, 12),
        st.lists(
            st.builds(Close, st.just("agent"))
            | st.just(Patch({"status": "PENDING"}))
            | st.just(Assign(None)),
            max_size=2,
        ).map(tuple),
    ),
    st.builds(ReplaceNetworkLogs, st.just(b"[]")),
    st.builds(MarkNoAnswerNeeded, st.integers(0, 4)),
    st.builds(WaitAgain),
)


class Consumer:
    """A mirror built from the events alone."""

    def __init__(self) -> None:
        self.sequence = 0
        self.conversation: dict[str, Any] = {}
        self.messages: list[str] = []
        self.deleted = False

    def take(self, draft: EventDraft) -> None:
        self.sequence += 1
        assert draft.sequence == self.sequence, "a gap or a repeated sequence"
        assert (draft.type == "conversation.created") == (self.sequence == 1)
        assert not self.deleted, "an event after the deletion"
        shown = orjson.loads(orjson.dumps(draft.data))
        before = dict(self.conversation)
        self.conversation |= shown["conversation"]
        if draft.type == "message.created":
            assert shown["message"]["index"] == len(self.messages)
            self.messages.append(shown["message"]["id"])
        if draft.type == "conversation.updated":
            assert all(self.conversation[name] != before[name] or _typed(name) for name in shown["changed"])
        self.deleted = draft.type == "conversation.deleted"


def _typed(name: str) -> bool:
    """Return whether values of this field can differ although they are equal in Python (1 and true)."""
    return name == "attributes"


class AnyCommands(RuleBasedStateMachine):
    """One conversation from its creation, possibly to its deletion."""

    def __init__(self) -> None:
        super().__init__()
        self.play = Play()
        self.consumer = Consumer()

    def carry_out(self, command: Command | WorkflowCommand) -> None:
        before = self.play.state
        try:
            drafts = self.play(command)
        except (Conflict, Invalid):
            assert self.play.state == before
            return
        assert len(drafts) == promised(before, self.play.facts)
        assert NOTE not in str(drafts)
        if not self.play.facts:
            assert (drafts, self.play.state) == ([], before)
        for draft in drafts:
            self.consumer.take(draft)

    @initialize(visible=st.booleans(), attributes=ATTRIBUTES, message=st.none() | MESSAGES | NOTES)
    def begin(self, visible: bool, attributes: Any, message: Any) -> None:
        self.carry_out(create(visible=visible, attributes=attributes, message=message))

    @rule(command=COMMANDS)
    def command(self, command: Command) -> None:
        if self.play.state is not None:
            self.carry_out(command)

    @rule(command=COMMANDS)
    def twice(self, command: Command) -> None:
        """A repeated command changes nothing, unless it is a message or a snapshot."""
        if self.play.state is not None:
            self.carry_out(command)
            self.carry_out(command)
            repeats = isinstance(command, ReplaceNetworkLogs | PostMessage | Reply)
            assert repeats or self.play.facts == [] or _refused(self.play.now_is, command)

    @rule(roll=st.integers(0, 9))
    def delete(self, roll: int) -> None:
        if self.play.state is not None and roll == 0:
            shown = self.play.state.visible
            self.carry_out(Delete("manual"))
            assert self.consumer.deleted == shown

    @invariant()
    def a_consumer_sees_exactly_what_is(self) -> None:
        state = self.play.state
        if state is None:
            return
        assert self.consumer.sequence == state.sequence
        if state.visible:
            view = orjson.loads(orjson.dumps(conversation_view(state, CONTACT, PROJECT.id)))
            assert orjson.dumps(self.consumer.conversation) == orjson.dumps(view)
            assert self.consumer.messages == [m.id for m in self.play.messages if not m.internal]
        else:
            assert self.consumer.sequence == 0

    @invariant()
    def closed_is_a_matter_of_status_alone(self) -> None:
        state = self.play.state
        if state is not None:
            closed = state.status == "CLOSED"
            assert (state.closed_by is not None) == closed == (state.closed_at is not None)


def promised(before: Conversation | None, facts: list[Fact]) -> int:
    """Return the number of events of these facts by `events_of`."""
    total, state = 0, before
    for fact in facts:
        after = evolve(state, fact)
        if state is None:
            assert isinstance(fact, Created)
            total += int(after.visible)
        else:
            total += events_of(state, fact)
        state = after
    return total


def _refused(state: Conversation, command: Command) -> bool:
    if isinstance(command, WaitAgain):
        return state.status == "CLOSED"
    if isinstance(command, MarkNoAnswerNeeded):
        newest = state.messages - 1
        unseen = state.waiting_since is not None and command.index < newest
        return state.status == "CLOSED" or command.index > newest or unseen
    return isinstance(command, Patch) and (
        (state.status == "CLOSED" and "status" in command.given)
        or (state.status == "CLOSED" and command.given.get("snoozed_until") is not None)
        or (state.visible and command.given.get("visible") is False)
    )


@pytest.mark.thorough
def test_consumer_of_the_events_reconstructs_the_conversation() -> None:
    run_state_machine_as_test(
        AnyCommands,
        settings=settings(max_examples=150, stateful_step_count=25, deadline=None, derandomize=True),
    )
