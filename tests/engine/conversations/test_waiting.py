"""The contact's wait for an answer, the end of a snooze, and the messages that the contact has seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.conversations.commands import Close, Command, MarkRead, Patch, PostMessage, Reopen
from deskwire.engine.conversations.conversation import AuthorType, Conversation
from deskwire.engine.conversations.decide import decide, fold
from deskwire.engine.conversations.facts import Closed, Fact, MessagePosted, NetworkLogsReplaced
from deskwire.engine.core.errors import Conflict
from deskwire.engine.core.values import replace
from tests.support.builders import create, played, post

OPEN = Conversation(id="cnv_1", project=1, created_at=1_000, updated_at=1_000, sequence=1)
SNOOZED = replace(OPEN, snoozed_until=99_000)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(post, st.sampled_from(["contact", "agent", "bot", "system"]), internal=st.booleans()),
    st.builds(Close, st.just("agent")),
    st.builds(Reopen),
    st.builds(Patch, st.sampled_from([{"status": "PENDING"}, {"status": "OPEN"}])),
    st.builds(MarkRead),
)


def waits_since(history: Sequence[Fact]) -> int | None:
    """Return the time of the contact's first message after the last answer and the last close."""
    questions: list[int] = []
    for fact in history:
        match fact:
            case Closed():
                questions.clear()
            case MessagePosted(message) if not message.internal and message.author.type == "contact":
                questions.append(message.created_at)
            case MessagePosted(message) if not message.internal and message.author.type in ("agent", "bot"):
                questions.clear()
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
        except Conflict:  # the status of a closed conversation
            continue
        history += facts
        state = after(state, command, at)
        assert state.waiting_since == waits_since(history)
        assert state.status != "CLOSED" or state.waiting_since is None


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
