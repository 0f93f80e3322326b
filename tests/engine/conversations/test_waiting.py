"""The contact's wait for an answer, the end of a snooze, and the messages that the contact has seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.conversations.commands import (
    Close,
    Command,
    MarkNoAnswerNeeded,
    MarkRead,
    Patch,
    PostMessage,
    Reopen,
    WaitAgain,
)
from deskwire.engine.conversations.conversation import AuthorType, Conversation
from deskwire.engine.conversations.decide import decide, fold
from deskwire.engine.conversations.facts import (
    AgentFieldsUpdated,
    Closed,
    Fact,
    MessagePosted,
    NetworkLogsReplaced,
)
from deskwire.engine.core.errors import Conflict, Invalid
from deskwire.engine.core.values import replace
from deskwire.engine.importing.records import MessageRecord
from deskwire.engine.importing.thread import with_messages
from tests.support.builders import create, played, post

OPEN = Conversation(id="cnv_1", project=1, created_at=1_000, updated_at=1_000, sequence=1)
SNOOZED = replace(OPEN, snoozed_until=99_000)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(post, st.sampled_from(["contact", "agent", "bot", "system"]), internal=st.booleans()),
    st.builds(Close, st.just("agent")),
    st.builds(Reopen),
    st.builds(Patch, st.sampled_from([{"status": "PENDING"}, {"status": "OPEN"}])),
    st.builds(MarkRead),
    st.builds(MarkNoAnswerNeeded, st.integers(0, 3)),
    st.builds(WaitAgain),
)


def waits_since(history: Sequence[Fact]) -> int | None:
    """Return the time of the contact's first message after the last answer, close and mark that no answer is needed."""
    questions: list[int] = []
    unneeded: list[int] = []
    for fact in history:
        if (
            isinstance(fact, MessagePosted)
            and not fact.message.internal
            and fact.message.author.type != "system"
        ):
            unneeded.clear()
        match fact:
            case Closed():
                questions.clear()
            case MessagePosted(message) if not message.internal and message.author.type == "contact":
                questions.append(message.created_at)
            case MessagePosted(message) if not message.internal and message.author.type in ("agent", "bot"):
                questions.clear()
            case AgentFieldsUpdated(changes) if changes.get("no_answer_needed_since") is not None:
                unneeded[:] = questions
                questions.clear()
            case AgentFieldsUpdated(changes) if "no_answer_needed_since" in changes:
                questions[:] = unneeded
                unneeded.clear()
            case _:
                pass
    return questions[0] if questions else None


def after(state: Conversation, command: Command, at: int = 9_000) -> Conversation:
    steps = fold(state, decide(state, command, at), at)
    return steps[-1][2] if steps else state


@given(st.lists(COMMANDS, max_size=12), st.booleans())
def test_since_when_the_contact_waits_follows_from_the_history_alone(
    commands: Sequence[Command], visible: bool
) -> None:
    state, history = replace(OPEN, visible=visible), list[Fact]()
    for at, command in enumerate(commands, 2_000):
        try:
            facts = decide(state, command, at)
        except (Conflict, Invalid):  # a closed conversation, or an index that was not seen
            continue
        history += facts
        state = after(state, command, at)
        assert state.waiting_since == waits_since(history)
        assert state.status != "CLOSED" or state.waiting_since is None
        assert state.waiting_since is None or state.no_answer_needed_since is None


def test_a_contact_waits_from_its_first_unanswered_message_on() -> None:
    play = played(create(message=post()), post())
    assert play.now_is.waiting_since == play.now - 1_000
    play(post("agent", internal=True))
    play(post("system"))
    assert play.now_is.waiting_since == play.now - 3_000
    play(post("agent"))
    assert play.now_is.waiting_since is None


@pytest.mark.parametrize("command", [post(), Close("system")], ids=["message", "close"])
def test_a_message_of_the_contact_and_a_close_end_a_snooze(command: Command) -> None:
    assert after(SNOOZED, command).snoozed_until is None


def test_reopening_ends_a_snooze_that_was_set_while_it_was_closed() -> None:
    assert after(replace(SNOOZED, status="CLOSED"), Reopen()).snoozed_until is None


@pytest.mark.parametrize("author", ["agent", "bot", "system"])
def test_messages_of_others_do_not_end_a_snooze(author: AuthorType) -> None:
    assert after(SNOOZED, post(author)).snoozed_until == 99_000


def test_a_note_in_the_contacts_name_neither_waits_nor_wakes() -> None:
    state = after(SNOOZED, post(internal=True))
    assert (state.waiting_since, state.snoozed_until) == (None, 99_000)


def test_reading_marks_the_newest_message_as_seen() -> None:
    state = after(replace(OPEN, unread=True, messages=3), MarkRead(), 7_000)
    assert (state.unread, state.contact_seen_index, state.contact_seen_at) == (False, 2, 7_000)
    assert after(after(state, post("agent")), post("agent")).contact_seen_index == 2


def test_a_second_reading_changes_nothing() -> None:
    assert decide(replace(OPEN, contact_seen_index=2, messages=3), MarkRead(), 7_000) == ()


def test_network_logs_have_their_arrival_time() -> None:
    (step,) = fold(OPEN, (NetworkLogsReplaced(b"{}", 5_000),), 5_000)
    assert step[2].network_logs_at == 5_000


def test_messages_of_a_hidden_conversation_wait_as_well() -> None:
    command: PostMessage = post()
    assert after(replace(OPEN, visible=False, sequence=0), command, 4_000).waiting_since == 4_000


WAITING = replace(OPEN, messages=3, contact_messages=2, waiting_since=1_500, last_turn=1)
MARKED = replace(WAITING, waiting_since=None, no_answer_needed_since=1_500)


def test_a_contact_who_needs_no_answer_does_not_wait_until_the_next_message() -> None:
    marked = after(WAITING, MarkNoAnswerNeeded(2))
    assert (marked.waiting_since, marked.no_answer_needed_since) == (None, 1_500)
    asked = after(marked, post(), 8_000)
    assert (asked.waiting_since, asked.no_answer_needed_since) == (8_000, None)


@pytest.mark.parametrize("status", ["OPEN", "PENDING"])
def test_taking_the_mark_back_restores_the_start_of_the_wait(status: Any) -> None:
    state = replace(WAITING, status=status, snoozed_until=99_000)
    again = after(after(state, MarkNoAnswerNeeded(2)), WaitAgain())
    assert (again.waiting_since, again.no_answer_needed_since) == (1_500, None)
    assert (again.status, again.snoozed_until) == (status, 99_000)


@pytest.mark.parametrize("author", ["agent", "bot"])
def test_an_answer_ends_the_mark_so_that_it_cannot_be_taken_back(author: AuthorType) -> None:
    answered = after(MARKED, post(author))
    assert answered.no_answer_needed_since is None
    assert decide(answered, WaitAgain(), 9_000) == ()


def test_notes_and_messages_of_the_system_leave_the_mark() -> None:
    for command in (post("agent", internal=True), post("system")):
        assert after(MARKED, command).no_answer_needed_since == 1_500


def test_a_mark_is_refused_while_there_is_a_newer_message() -> None:
    with pytest.raises(Conflict) as refused:
        decide(WAITING, MarkNoAnswerNeeded(1), 9_000)
    assert refused.value.reason == "newer_message"


def test_a_mark_with_the_index_of_no_message_is_invalid() -> None:
    with pytest.raises(Invalid) as refused:
        decide(MARKED, MarkNoAnswerNeeded(3), 9_000)
    assert [(each.pointer, each.code) for each in refused.value.problems] == [("/index", "too_large")]


def test_a_second_mark_of_another_agent_changes_nothing() -> None:
    assert decide(MARKED, MarkNoAnswerNeeded(2), 9_000) == ()
    assert decide(MARKED, MarkNoAnswerNeeded(0), 9_000) == ()
    assert decide(WAITING, WaitAgain(), 9_000) == ()


@pytest.mark.parametrize("command", [MarkNoAnswerNeeded(2), WaitAgain()])
def test_a_closed_conversation_takes_no_mark(command: Command) -> None:
    with pytest.raises(Conflict) as refused:
        decide(after(MARKED, Close("agent")), command, 9_000)
    assert refused.value.reason == "conversation_closed"


def test_a_mark_outlives_closing_and_reopening_unless_the_contact_waits_again() -> None:
    closed = after(MARKED, Close("agent"))
    assert after(closed, Reopen()).no_answer_needed_since == 1_500
    waits = after(closed, Reopen(1_400))
    assert (waits.waiting_since, waits.no_answer_needed_since) == (1_400, None)


def test_a_mark_is_neither_a_reply_nor_seen_by_the_customer() -> None:
    marked = after(WAITING, MarkNoAnswerNeeded(2))
    kept = ("sequence", "last_turn", "updated_at", "answered_at", "replier_id", "human", "unread", "messages")
    assert [getattr(marked, name) for name in kept] == [getattr(WAITING, name) for name in kept]
    assert marked.revision == WAITING.revision + 1


@pytest.mark.parametrize(
    ("author", "waits", "unneeded"),
    [("contact", 7_000, None), ("agent", None, None), ("system", None, 1_500)],
)
def test_imported_messages_end_the_mark_as_new_ones_do(
    author: AuthorType, waits: int | None, unneeded: int | None
) -> None:
    record = MessageRecord(1, "1", "1", author, None, None, "Old", internal=False, created_at=7_000)
    state = with_messages(MARKED, [record])
    assert (state.waiting_since, state.no_answer_needed_since) == (waits, unneeded)
