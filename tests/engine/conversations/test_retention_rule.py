"""The expiry of conversations (contract 3; decisions 4; ADR 21)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.commands import (
    Assign,
    Close,
    Command,
    ConversationRetention,
    Expire,
    Patch,
    Rate,
    Reopen,
)
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.expiry import expiry_reason
from deskwire.engine.core.values import replace
from tests.support.builders import NOON, Play, create, played, post

BLANK = Conversation(id="cnv_1", project=1, created_at=1_000, updated_at=1_000)
TIMES = st.integers(0, 3_000)


@given(TIMES, st.none() | TIMES, st.booleans(), TIMES, st.none() | TIMES, TIMES)
def test_each_reason_counts_from_its_own_beginning(
    created: int, archived: int | None, human: bool, bot_only: int, window: int | None, at: int
) -> None:
    state = replace(
        BLANK, created_at=created, archived=archived is not None, archived_at=archived, human=human
    )
    reason = expiry_reason(state, ConversationRetention(bot_only, window), at)
    too_long_archived = archived is not None and window is not None and at - archived > window
    too_long_alone = not human and at - created > bot_only
    assert (reason is not None) == (too_long_archived or too_long_alone)
    assert reason != "archived" or too_long_archived
    assert reason != "bot_only" or too_long_alone


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(post("agent"), id="an agent's message"),
        pytest.param(post("agent", internal=True), id="an agent's note"),
        pytest.param(Assign(Assignee("user", "usr_1", "Ann")), id="an agent it is assigned to"),
        pytest.param(Assign(Assignee("team", "team_1", "Support")), id="a team it is assigned to"),
    ],
)
def test_an_agents_part_ends_bot_only_permanently(command: Command) -> None:
    play = played(create(message=post()), command, Assign(None), post("bot"), Close("bot"), Reopen())
    assert play.now_is.human


@pytest.mark.parametrize("author", ["contact", "bot", "system"])
def test_commands_of_others_leave_a_conversation_bot_only(author: str) -> None:
    message = post(author)  # type: ignore[arg-type]
    commands = (
        message,
        Patch({"title": "T", "archived": True}),
        Close("bot"),
        Reopen(),
        Rate(3),
        Assign(None),
    )
    assert not played(create(message=post()), *commands).now_is.human


def test_an_agents_first_message_in_a_hidden_conversation_ends_bot_only() -> None:
    assert played(create(message=post("agent"), visible=False)).now_is.human


def test_archiving_is_timed_once_and_taking_it_out_forgets_the_time() -> None:
    play = played(create(), Patch({"archived": True}))
    first = play.now
    assert play.now_is.archived_at == first
    play(Patch({"archived": True, "title": "New"}))
    play(post())
    assert play.now_is.archived_at == first
    play(Patch({"archived": False}))
    assert play.now_is.archived_at is None
    play(Patch({"archived": True}))
    assert play.now_is.archived_at == play.now > first


def test_expire_deletes_only_conversations_past_their_retention() -> None:
    play = Play()
    play(create(message=post()))
    assert play(Expire(ConversationRetention(bot_only=10**9, archived=None))) == []
    assert play.state is not None
    (event,) = play(Expire(ConversationRetention(bot_only=play.now - NOON - 2_000, archived=None)))
    assert (event.type, event.data["reason"]) == ("conversation.deleted", "retention")
    assert play.state is None
