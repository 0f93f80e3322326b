"""The facts of commands of agents, redactions, merges and snoozes."""

from __future__ import annotations

import pytest

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.commands import (
    Assign,
    Close,
    DeleteMessage,
    MarkReceived,
    Move,
    Patch,
    Rate,
    RedactMessage,
    Reply,
    WakeSnoozed,
)
from deskwire.engine.conversations.conversation import Author, AuthorType, Conversation, Message
from deskwire.engine.conversations.decide import MovedOn, decide, evolve
from deskwire.engine.conversations.facts import (
    AgentFieldsUpdated,
    Assigned,
    Closed,
    Created,
    Fact,
    MessagePosted,
    MessageRewritten,
    Moved,
    Reopened,
    Revealed,
    Updated,
)
from deskwire.engine.core.errors import Conflict
from deskwire.engine.core.values import replace
from tests.support.builders import NOON, create, played, post

STATE = Conversation(
    "cnv_01M3250V00000000000000000A", 1, created_at=NOON, updated_at=NOON, sequence=7, last_turn=4, messages=3
)
MESSAGE = Message("msg_1", Author("contact"), "Card 4111", NOON, False, 0)
BEA = Assignee("user", "usr_bea", "Bea")


@pytest.mark.parametrize("seen", [None, 4, 5, 7])
def test_reply_to_the_last_turn_is_posted(seen: int | None) -> None:
    (posted,) = decide(STATE, Reply(post("agent"), seen), NOON)
    assert isinstance(posted, MessagePosted)


@pytest.mark.parametrize("seen", [0, 3, 8])
def test_reply_that_missed_a_turn_or_names_an_unknown_one_is_refused(seen: int) -> None:
    with pytest.raises(MovedOn, match="moved on since that sequence"):
        decide(STATE, Reply(post("agent"), seen), NOON)


def test_a_refused_reply_shows_the_turns_that_its_author_has_missed() -> None:
    assert MovedOn({"items": []}).shown == {"items": []}


def test_changes_that_follow_a_reply_are_decided_on_the_state_after_it() -> None:
    reply = Reply(post("agent"), 7, (Assign(BEA), Close("agent"), Close("agent")))
    posted, *followed = decide(STATE, reply, NOON)
    assert isinstance(posted, MessagePosted)
    assert followed == [Assigned(BEA), Closed("agent", NOON)]


def test_a_redaction_rewrites_the_message_once() -> None:
    command = RedactMessage("msg_1", False, ranges=((5, 9),), found=MESSAGE)
    after = replace(MESSAGE, text="Card ****", redacted_at=NOON)
    assert decide(STATE, command, NOON) == (MessageRewritten(MESSAGE, after),)
    assert decide(STATE, replace(command, found=after), NOON + 1) == ()


def test_a_deleted_message_keeps_only_its_index() -> None:
    after = replace(MESSAGE, text="", redacted_at=NOON, deleted=True)
    assert decide(STATE, DeleteMessage("msg_1", False, MESSAGE), NOON) == (MessageRewritten(MESSAGE, after),)


def test_a_merge_moves_the_conversation_to_the_other_contact() -> None:
    assert decide(STATE, Move(3, 4), NOON) == (Moved(3, 4),)


@pytest.mark.parametrize(
    ("until", "wakes"), [(None, False), (NOON + 1, False), (NOON, True), (NOON - 1, True)]
)
def test_a_snooze_ends_when_its_time_has_come(until: int | None, wakes: bool) -> None:
    facts = decide(replace(STATE, snoozed_until=until), WakeSnoozed(), NOON)
    assert facts == ((AgentFieldsUpdated({"snoozed_until": None}),) if wakes else ())


def test_a_snooze_has_no_public_event() -> None:
    assert decide(STATE, Patch({"snoozed_until": NOON + 5}), NOON) == (
        AgentFieldsUpdated({"snoozed_until": NOON + 5}),
    )


def said(author: AuthorType, *, internal: bool = False) -> MessagePosted:
    return MessagePosted(Message("msg_2", Author(author, "usr_bea"), "Hi", NOON + 9, internal, 3))


@pytest.mark.parametrize(
    ("fact", "last_turn"),
    [
        (said("contact"), 8),
        (said("agent"), 8),
        (said("bot"), 8),
        (said("system"), 4),
        (said("agent", internal=True), 4),
        (Closed("agent", NOON), 8),
        (Reopened(), 4),
        (Updated({"title": "A"}), 4),
    ],
)
def test_messages_and_the_end_of_a_conversation_are_its_turns(fact: Fact, last_turn: int) -> None:
    """A reply whose `ifSequence` is older than the last turn is refused."""
    assert evolve(STATE, fact).last_turn == last_turn


def test_hidden_conversation_has_turns_after_it_is_shown() -> None:
    hidden = replace(STATE, visible=False, sequence=0, last_turn=0)
    for fact in (said("agent"), Closed("agent", NOON)):
        assert evolve(hidden, fact).last_turn == 0
    assert evolve(hidden, Revealed()).last_turn == 4
    assert evolve(replace(hidden, status="CLOSED"), Revealed()).last_turn == 5


def test_a_contact_waits_from_the_first_message_until_an_answer() -> None:
    waiting = evolve(STATE, said("contact"))
    assert waiting.waiting_since == NOON + 9
    assert evolve(replace(STATE, waiting_since=NOON), said("contact")).waiting_since == NOON
    assert evolve(waiting, said("system")).waiting_since == NOON + 9
    for fact in (said("agent"), said("bot"), Closed("agent", NOON)):
        assert evolve(waiting, fact).waiting_since is None
    assert evolve(STATE, Reopened(NOON - 5)).waiting_since == NOON - 5
    assert evolve(waiting, Reopened()).waiting_since == NOON + 9


def test_contacts_message_closing_and_reopening_end_a_snooze() -> None:
    snoozed = replace(STATE, snoozed_until=NOON + 60_000)
    for fact in (said("contact"), Closed("agent", NOON), Reopened()):
        assert evolve(snoozed, fact).snoozed_until is None
    for other in (said("agent"), said("bot"), said("system"), Assigned(BEA)):
        assert evolve(snoozed, other).snoozed_until == NOON + 60_000


def test_the_last_assigned_team_is_kept_while_members_take_over() -> None:
    of_team = evolve(STATE, Assigned(Assignee("team", "team_desk", "Desk")))
    assert of_team.team_id == "team_desk"
    assert evolve(of_team, Assigned(BEA)).team_id == "team_desk"
    assert evolve(of_team, Assigned(None)).team_id == "team_desk"
    assert evolve(STATE, Assigned(BEA)).team_id is None


def test_time_of_a_reopening_is_kept_if_it_will_be_stored() -> None:
    assert evolve(STATE, Reopened(), NOON + 5).opened_at == NOON + 5
    assert evolve(STATE, Reopened()).opened_at is None
    assert evolve(STATE, Closed("agent", NOON), NOON + 5).opened_at is None


def test_a_rating_keeps_its_comment_only_if_asked_to_and_the_same() -> None:
    rated = replace(STATE, rating=5, rating_comment="Fine")
    assert decide(rated, Rate(5, keeps_comment=True), NOON) == ()
    (dropped,) = decide(rated, Rate(5), NOON)
    assert dropped == Updated({"rating_comment": None, "rated_at": NOON})
    (other,) = decide(rated, Rate(6, keeps_comment=True), NOON)
    assert other == Updated({"rating": 6, "rating_comment": None, "rated_at": NOON})


def test_a_closed_conversation_is_neither_snoozed_nor_given_a_status() -> None:
    closed = replace(STATE, status="CLOSED")
    for given in ({"snoozed_until": NOON + 5}, {"status": "OPEN"}):
        with pytest.raises(Conflict):
            decide(closed, Patch(given), NOON)
    assert decide(closed, Patch({"snoozed_until": None}), NOON) == ()


def test_redactions_and_merges_leave_the_state_but_for_its_sequence() -> None:
    rewritten = MessageRewritten(MESSAGE, replace(MESSAGE, text=""))
    for fact in (rewritten, Moved(1, 2)):
        assert evolve(STATE, fact) == replace(STATE, sequence=8)
        assert evolve(STATE, fact, NOON + 5).updated_at == NOON + 5
    note = replace(MESSAGE, internal=True)
    assert evolve(STATE, MessageRewritten(note, note), NOON + 5) == replace(STATE, revision=1)
    assert evolve(STATE, AgentFieldsUpdated({"tags": ("a",)}), NOON + 5) == replace(
        STATE, revision=1, tags=("a",)
    )


def test_a_new_conversation_with_an_assignee_is_assigned_before_its_first_message() -> None:
    command = replace(create(message=post("agent")), assignee=BEA, by_agent=True)
    created, assigned, posted = decide(None, command, NOON)
    assert isinstance(created, Created)
    assert created.conversation.human
    assert assigned == Assigned(BEA)
    assert isinstance(posted, MessagePosted)
    assert decide(None, replace(command, message=None), NOON)[1:] == (Assigned(BEA),)


@pytest.mark.parametrize(
    ("command", "marks", "unread"),
    [
        (MarkReceived(reached=1), (1, None), True),
        (MarkReceived(seen=1), (1, 1), True),
        (MarkReceived(reached=0, seen=1), (1, 1), True),
        (MarkReceived(seen=2), (2, 2), False),
        (MarkReceived(everything=True), (2, 2), False),
    ],
)
def test_marks_of_a_client_grow_and_the_last_one_reads_all(
    command: MarkReceived, marks: tuple[int | None, int | None], unread: bool
) -> None:
    play = played(create(message=post()), post("agent"), post("bot"))
    before = play.now_is
    drafts = play(command)
    after = play.now_is
    assert (after.contact_reached_index, after.contact_seen_index, after.unread) == (*marks, unread)
    assert [draft.data["changed"] for draft in drafts] == ([] if unread else [["unread"]])
    assert (after.updated_at == before.updated_at) is unread, "the customer sees no change of a mark alone"
    assert play(command) == []
    assert play(MarkReceived(reached=0)) == []
    assert play.now_is == after
