"""The rules of a conversation (contract 3, decisions 4), each as a sentence."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.commands import (
    Assign,
    Close,
    Command,
    Delete,
    LinkTicket,
    MarkRead,
    Patch,
    Rate,
    Reopen,
    ReplaceNetworkLogs,
)
from deskwire.engine.conversations.conversation import AuthorType, Closer, Reason
from deskwire.engine.conversations.events import conversation_view
from deskwire.engine.core.errors import Conflict, Invalid
from deskwire.engine.core.values import replace
from deskwire.engine.definitions.attributes import ATTRIBUTES_MAX
from deskwire.engine.events.types import CATALOG, EventDraft
from tests.support.builders import CONTACT, PROJECT, Play, create, played, post

BEA = Assignee("user", "usr_bea", "Bea")
DESK = Assignee("team", "team_desk", "Desk")


def types(drafts: list[EventDraft]) -> list[str]:
    return [draft.type for draft in drafts]


def changed(drafts: list[EventDraft]) -> list[str]:
    """Return the fields that the only event names."""
    (draft,) = drafts
    assert draft.type == "conversation.updated"
    names: list[str] = draft.data["changed"]
    return names


def test_a_new_conversation_is_open_and_its_creation_is_number_one() -> None:
    play = Play()
    (created,) = play(create(title="Order 12"))
    assert (created.type, created.sequence) == ("conversation.created", 1)
    assert created.data["conversation"]["status"] == "OPEN"
    assert created.data["conversation"]["title"] == "Order 12"
    assert created.data["conversation"]["sequence"] == 1


def test_a_first_message_follows_the_creation_it_came_with() -> None:
    created, first = Play()(create(message=post(text="Where is it?")))
    assert [created.sequence, first.sequence] == [1, 2]
    assert first.data["message"]["text"] == "Where is it?"
    assert first.data["message"]["index"] == 0
    assert created.data["conversation"]["lastMessageAt"] is None
    assert first.data["conversation"]["lastMessageAt"] == first.data["message"]["createdAt"]


def test_every_numbered_event_shows_its_own_sequence_in_the_conversation() -> None:
    play = Play()
    drafts = play(create(visible=False, message=post("agent")))
    for command in (Patch({"visible": True}), post(), Close("agent"), post(), Rate(7), Assign(BEA)):
        drafts += play(command)
    assert [draft.sequence for draft in drafts] == list(range(1, 9))
    assert all(draft.data["conversation"]["sequence"] == draft.sequence for draft in drafts)


def test_a_message_of_the_contact_reopens_a_closed_conversation_first() -> None:
    play = played(create(), Close("agent"))
    reopened, message = play(post())
    assert [reopened.type, message.type] == ["conversation.reopened", "message.created"]
    assert reopened.data["conversation"]["status"] == "OPEN"
    assert reopened.data["conversation"]["closedBy"] is None
    assert reopened.data["conversation"]["closedAt"] is None
    assert message.sequence == 4


@pytest.mark.parametrize("author", ["agent", "bot", "system"])
def test_only_the_contact_reopens_a_closed_conversation(author: AuthorType) -> None:
    play = played(create(), Close("agent"))
    (message,) = play(post(author))
    assert message.type == "message.created"
    assert message.data["conversation"]["closed"] is True


def test_a_message_of_the_contact_opens_a_pending_conversation() -> None:
    play = played(create(), Patch({"status": "PENDING"}))
    updated, message = play(post())
    assert changed([updated]) == ["status"]
    assert updated.data["conversation"]["status"] == "OPEN"
    assert message.type == "message.created"


@pytest.mark.parametrize("author", ["agent", "bot", "system"])
def test_only_the_contact_opens_a_pending_conversation(author: AuthorType) -> None:
    play = played(create(), Patch({"status": "PENDING"}))
    assert types(play(post(author))) == ["message.created"]
    assert play.now_is.status == "PENDING"


@pytest.mark.parametrize("by", ["agent", "bot", "system"])
def test_closing_has_one_event_with_its_actor(by: Closer) -> None:
    play = played(create())
    (closed,) = play(Close(by))
    assert closed.type == "conversation.closed"
    assert closed.data["closedBy"] == by
    view = closed.data["conversation"]
    assert (view["status"], view["closed"], view["closedBy"]) == ("CLOSED", True, by)
    assert view["closedAt"] == view["updatedAt"]


def test_a_pending_conversation_can_be_closed_and_reopens_as_open() -> None:
    play = played(create(), Patch({"status": "PENDING"}))
    assert types(play(Close("bot"))) == ["conversation.closed"]
    assert types(play(Reopen())) == ["conversation.reopened"]
    assert play.now_is.status == "OPEN"


@pytest.mark.parametrize(
    ("before", "command"),
    [
        pytest.param([Close("agent")], Close("bot"), id="closing what is closed"),
        pytest.param([], Reopen(), id="reopening what is open"),
        pytest.param([Patch({"status": "PENDING"})], Reopen(), id="reopening what is pending"),
        pytest.param([Assign(BEA)], Assign(BEA), id="assigning to the same user"),
        pytest.param([], Assign(None), id="unassigning what nobody has"),
        pytest.param([], MarkRead(), id="reading what is read"),
        pytest.param([Rate(7)], Rate(7), id="the same rating"),
        pytest.param([Patch({"title": "A"})], Patch({"title": "A"}), id="the same title"),
        pytest.param([], Patch({"archived": False}), id="taking out of the archive what is not in it"),
        pytest.param([], Patch({"status": "OPEN"}), id="the same status"),
        pytest.param([], Patch({"visible": True}), id="showing what is visible"),
        pytest.param(
            [Patch({"attributes": {"a": [1]}})], Patch({"attributes": {"a": [1]}}), id="an attribute"
        ),
        pytest.param([], Patch({"attributes": {"a": None}}), id="removing an attribute that is not there"),
        pytest.param([], Patch({}), id="nothing at all"),
    ],
)
def test_a_command_that_changes_nothing_emits_nothing(before: list[Command], command: Command) -> None:
    play = played(create(), *before)
    state = play.state
    assert play(command) == []
    assert (play.facts, play.state) == ([], state)


def test_assigning_emits_assigned_alone_with_the_assignee() -> None:
    play = played(create())
    (assigned,) = play(Assign(DESK))
    assert assigned.type == "conversation.assigned"
    assert assigned.data["conversation"]["assignee"] == {"type": "team", "id": "team_desk", "name": "Desk"}
    assert assigned.data["conversation"]["status"] == "OPEN"
    (nobody,) = play(Assign(None))
    assert nobody.data["conversation"]["assignee"] is None


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (Rate(0), ["rating"]),
        (Patch({"title": "New"}), ["title"]),
        (Patch({"archived": True}), ["archived"]),
        (Patch({"attributes": {"plan": "gold"}}), ["attributes"]),
        (Patch({"status": "PENDING"}), ["status"]),
        (
            Patch({"title": "New", "archived": True, "attributes": {"a": 1}}),
            ["archived", "attributes", "title"],
        ),
        (MarkRead(), ["unread"]),
    ],
)
def test_changed_fields_make_one_update_that_names_them(command: Command, names: list[str]) -> None:
    play = played(create(), post("agent"))
    assert changed(play(command)) == names


def test_an_update_names_only_fields_that_differ() -> None:
    play = played(create(title="Old", attributes={"a": 1}))
    assert changed(play(Patch({"title": "Old", "attributes": {"a": 1}, "archived": True}))) == ["archived"]


@pytest.mark.parametrize(
    ("old", "new"), [(1, True), (0, False), ([1], [True]), ({"deep": 0}, {"deep": False})]
)
def test_a_number_that_becomes_a_boolean_is_a_change(old: Any, new: Any) -> None:
    play = played(create(attributes={"flag": old}))
    assert changed(play(Patch({"attributes": {"flag": new}}))) == ["attributes"]
    assert orjson.dumps(play.now_is.attributes["flag"]) == orjson.dumps(new)


def test_attributes_are_merged_key_by_key_and_null_removes_one() -> None:
    play = played(create(attributes={"a": 1, "b": 2, "gone": None}))
    assert play.now_is.attributes == {"a": 1, "b": 2}
    play(Patch({"attributes": {"b": None, "c": {"d": None}}}))
    assert play.now_is.attributes == {"a": 1, "c": {"d": None}}


def test_more_attributes_than_allowed_are_refused_and_change_nothing() -> None:
    play = played(create(attributes={str(n): n for n in range(ATTRIBUTES_MAX)}))
    state = play.state
    with pytest.raises(Invalid) as refused:
        play(Patch({"attributes": {"one more": 1}}))
    assert [problem.code for problem in refused.value.problems] == ["too_many"]
    assert play.state == state
    assert changed(play(Patch({"attributes": {"one more": 1, "0": None}}))) == ["attributes"]


def test_the_status_of_a_closed_conversation_can_only_be_changed_by_reopening() -> None:
    play = played(create(), Close("agent"))
    with pytest.raises(Conflict) as refused:
        play(Patch({"status": "PENDING"}))
    assert refused.value.reason == "conversation_closed"


def test_note_leaves_no_trace_in_events_numbers_or_shown_fields() -> None:
    play = played(create(), post())
    before = conversation_view(play.now_is, CONTACT, PROJECT.id)
    assert play(post("agent", "she is angry", internal=True)) == []
    assert conversation_view(play.now_is, CONTACT, PROJECT.id) == before
    (message,) = play(post("agent"))
    assert message.data["message"]["index"] == 1
    assert message.sequence == 3


def test_a_note_in_a_closed_conversation_does_not_reopen_it() -> None:
    play = played(create(), Close("agent"))
    assert play(post("agent", internal=True)) == []
    assert play.now_is.status == "CLOSED"


def test_network_logs_cause_no_event_and_no_visible_change() -> None:
    play = played(create())
    before = play.now_is
    assert play(ReplaceNetworkLogs(b'{"requests":[]}')) == []
    assert len(play.facts) == 1
    assert play.state == replace(before, revision=before.revision + 1, network_logs_at=play.now)


@pytest.mark.parametrize("author", ["agent", "bot", "system"])
def test_agents_or_bots_message_is_unread_until_the_contact_reads_or_writes(author: AuthorType) -> None:
    play = played(create())
    (message,) = play(post(author))
    assert message.data["conversation"]["unread"] is True
    (read,) = play(MarkRead())
    assert read.data["conversation"]["unread"] is False
    play(post(author))
    (reply,) = play(post("contact"))
    assert reply.data["conversation"]["unread"] is False


def test_a_hidden_conversation_has_no_public_events() -> None:
    play = Play()
    assert play(create(visible=False, message=post("agent"))) == []
    quiet = (
        post("contact"),
        post("bot"),
        Assign(BEA),
        Rate(3),
        Patch({"title": "T"}),
        Close("bot"),
        Reopen(),
        MarkRead(),
    )
    for command in quiet:
        assert play(command) == []
        assert play.facts
    assert play.now_is.sequence == 0
    assert play(Delete("manual")) == []


def test_revealing_has_the_events_of_the_creation_and_each_message() -> None:
    play = played(create(visible=False), post("agent", "one"), post("agent", "note", internal=True))
    play(post("bot", "two"))
    created, one, two = play(Patch({"visible": True, "title": "Shown"}))
    assert types([created, one, two]) == ["conversation.created", "message.created", "message.created"]
    assert [created.sequence, one.sequence, two.sequence] == [1, 2, 3]
    assert [draft.data["message"]["text"] for draft in (one, two)] == ["one", "two"]
    assert [draft.data["message"]["index"] for draft in (one, two)] == [0, 1]
    assert created.data["conversation"]["title"] == "Shown"
    (after,) = play(post())
    assert after.sequence == 4


def test_a_visible_conversation_cannot_be_hidden() -> None:
    play = played(create())
    with pytest.raises(Invalid) as refused:
        play(Patch({"visible": False}))
    assert [problem.pointer for problem in refused.value.problems] == ["/visible"]


@pytest.mark.parametrize("reason", ["retention", "gdpr", "manual"])
def test_a_deletion_has_the_fields_of_a_mirror_and_no_personal_data(reason: Reason) -> None:
    play = played(create(title="SECRET", attributes={"k": "SECRET"}, message=post(text="SECRET")))
    play(Assign(Assignee("user", "usr_1", "SECRET")))
    (deleted,) = play(Delete(reason))
    conversation = deleted.data["conversation"]
    assert set(deleted.data) == {"conversation", "reason"}
    assert set(conversation) == {"id", "status", "closed", "unread", "contact"}
    assert conversation["contact"] == {"userId": CONTACT.user_id}
    assert deleted.data["reason"] == reason
    assert deleted.sequence == 4
    text = str(deleted.data)
    assert not any(secret in text for secret in ("SECRET", "Ada", "ada@example.org", CONTACT.id))


@pytest.mark.parametrize("author", ["contact", "bot", "system"])
def test_without_an_agent_a_conversation_counts_as_bot_only(author: AuthorType) -> None:
    play = played(create(), post(author), Rate(1), Close("bot"), Assign(None))
    assert play.now_is.human is False


@pytest.mark.parametrize(
    "command",
    [Assign(BEA), Assign(DESK), post("agent"), post("agent", internal=True)],
)
def test_an_agents_message_or_assignment_ends_bot_only_permanently(command: Command) -> None:
    play = played(create(), command, Assign(None), post("bot"))
    assert play.now_is.human is True


def test_every_visible_change_moves_the_time_of_the_last_update() -> None:
    play = played(create())
    for command in (post(), Assign(BEA), Rate(3), Patch({"title": "T"}), Close("agent"), Reopen()):
        (draft,) = play(command)
        assert play.now_is.updated_at == play.now
        assert draft.data["conversation"]["updatedAt"] > draft.data["conversation"]["createdAt"]


def test_every_type_that_is_emitted_is_in_the_catalog_as_numbered() -> None:
    play = Play()
    drafts = play(create(message=post()))
    for command in (Close("agent"), post(), Assign(BEA), Rate(1), Delete("manual")):
        drafts += play(command)
    assert len({draft.type for draft in drafts}) == 7
    assert all(CATALOG[draft.type].numbered for draft in drafts)


def link(ticket_id: str, linked: bool = True) -> LinkTicket:
    return LinkTicket(ticket_id, linked)


def test_linking_and_unlinking_a_ticket_have_public_events() -> None:
    play = played(create())
    linked = play(link("tkt_1"))
    assert (changed(linked), linked[0].data["conversation"]["ticketId"]) == (["ticketId"], "tkt_1")
    cut = play(link("tkt_1", linked=False))
    assert (changed(cut), cut[0].data["conversation"]["ticketId"]) == (["ticketId"], None)


def test_a_conversation_with_a_ticket_refuses_another_one() -> None:
    play = played(create(), link("tkt_1"))
    assert play(link("tkt_1")) == []
    assert play(link("tkt_2", linked=False)) == []
    with pytest.raises(Conflict) as refused:
        play(link("tkt_2"))
    assert refused.value.reason == "conversation_linked"
