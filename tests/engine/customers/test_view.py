"""The customer's view: of every event only listed fields, whatever happens in a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.people import ASSIGNEE_TYPES
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.commands import (
    Command,
    Follow,
    LinkTicket,
    MarkReceived,
    Move,
    Patch,
    WorkflowCommand,
)
from deskwire.engine.conversations.conversation import Mention
from deskwire.engine.conversations.events import (
    agent_view,
    conversation_view,
    dashboard_message_view,
    message_view,
)
from deskwire.engine.core.errors import Conflict, Invalid
from deskwire.engine.core.values import replace
from deskwire.engine.customers.view import (
    customer_conversation,
    customer_event,
    customer_message,
)
from deskwire.engine.events.project_events import note_created
from deskwire.engine.events.types import CATALOG, EventDraft, encode_envelope
from deskwire.http.description.event_examples import example_envelopes
from deskwire.http.description.extension_examples import extension_envelopes
from deskwire.http.schemas.base import model_of
from deskwire.http.schemas.customer_conversations import CustomerConversation, CustomerMessage, CustomerStep
from tests.engine.conversations.test_conversation_model import COMMANDS, NOTE
from tests.engine.workflows.building import SUPPORT, published
from tests.support.builders import CONTACT, NOON, PROJECT, Play, create, post

SECRET = "only-for-agents"
"""Stands in every field that customers must not see."""

LISTED = frozenset(
    [
        "id",
        "type",
        "createdAt",
        "sequence",
        "data",
        "data.conversation",
        "data.message",
        "data.step",
        "data.closedBy",
        "data.changed",
        "data.changed[]",
        "data.deletedMessageIds",
        "data.deletedMessageIds[]",
        "data.redactedMessageIds",
        "data.redactedMessageIds[]",
        "conversation.id",
        "conversation.clientId",
        "conversation.title",
        "conversation.status",
        "conversation.closed",
        "conversation.closedBy",
        "conversation.mergedInto",
        "conversation.splitFrom",
        "conversation.unread",
        "conversation.assignee",
        "conversation.assignee.type",
        "conversation.assignee.name",
        "conversation.rating",
        "conversation.ratingComment",
        "conversation.lastMessageAt",
        "conversation.createdAt",
        "conversation.updatedAt",
        "conversation.closedAt",
        "conversation.sequence",
        "conversation.channelId",
        "message.id",
        "message.clientId",
        "message.conversationId",
        "message.index",
        "message.author",
        "message.author.type",
        "message.author.name",
        "message.author.self",
        "message.text",
        "message.format",
        "message.attachments",
        "message.attachments[].id",
        "message.attachments[].name",
        "message.attachments[].type",
        "message.attachments[].size",
        "message.attachments[].url",
        "message.createdAt",
        "message.redactedAt",
        "step.stepType",
        "step.actionId",
        "step.action",
        "step.action.id",
        "step.action.type",
        "step.action.text",
        "step.action.options",
        "step.action.options[].id",
        "step.action.options[].label",
        "step.action.allowText",
        "step.action.fields",
        "step.action.fields[].id",
        "step.action.fields[].type",
        "step.action.fields[].label",
        "step.action.fields[].required",
    ]
)
"""The fields of events that a customer may see, written down apart from the code."""

NAMES = frozenset(
    {"title", "status", "closedBy", "closedAt", "unread", "assignee", "rating", "ratingComment", "messages"}
)
"""The names that `changed` may have."""


def paths(value: Any, place: str = "") -> Iterator[str]:
    """Yield the path of each field in a value; those of a conversation, message and step begin with their own name."""
    if isinstance(value, dict):
        for name, each in value.items():
            path = f"{place}.{name}" if place else name
            yield path
            yield from paths(each, name if name in ("conversation", "message", "step") else path)
    elif isinstance(value, list):
        for each in value:
            if isinstance(each, dict):
                yield from paths(each, f"{place}[]")
            else:
                yield f"{place}[]"


def check(draft: EventDraft) -> dict[str, Any]:
    """Check that a stored event shows its customer listed fields only; return the view."""
    body = encode_envelope(draft, "evt_01KZ00000000000000000000E1", PROJECT.id, NOON)
    shown = customer_event(orjson.loads(body))
    assert set(paths(shown)) <= LISTED
    assert set(shown["data"].get("changed", ())) <= NAMES
    assert shown.get("sequence") == draft.sequence
    text = orjson.dumps(shown).decode()
    for hidden in (SECRET, NOTE, PROJECT.id, CONTACT.id, CONTACT.user_id, "ada@example.org"):
        assert hidden not in text
    return shown


AGENTS: st.SearchStrategy[Command | WorkflowCommand] = st.one_of(
    COMMANDS,
    st.just(Patch({"attributes": {SECRET: SECRET}, "tags": (SECRET,)})),
    st.just(LinkTicket(f"tkt_{SECRET}", True)),
    st.just(Move(CONTACT.rowid, CONTACT.rowid + 1)),
    st.builds(MarkReceived, st.integers(0, 5), st.integers(0, 5)),
    st.builds(Follow, st.just(1), st.booleans()),
    st.builds(
        lambda kind: replace(
            post("agent", NOTE, internal=True), mentions=(Mention(kind, f"usr_{SECRET}", SECRET),)
        ),
        st.sampled_from(ASSIGNEE_TYPES),
    ),
)


@given(st.lists(AGENTS, max_size=15), st.booleans())
def test_no_event_of_any_life_shows_a_field_that_is_not_listed(
    commands: list[Command | WorkflowCommand], with_workflow: bool
) -> None:
    play = Play(workflow=published(SUPPORT) if with_workflow else None)
    start = replace(create(message=post()), attributes={SECRET: SECRET}, channel="chn_1", client_id="c-1")
    drafts = list(play(start))
    for command in commands:
        if play.state is None:
            break
        try:
            drafts += play(command)
        except (Conflict, Invalid):
            continue
    sequences = [check(draft)["sequence"] for draft in drafts]
    assert sequences == list(range(1, len(drafts) + 1))


@given(st.lists(AGENTS, max_size=10))
def test_no_object_of_agents_shows_customers_notes_mentions_or_followers(
    commands: list[Command | WorkflowCommand],
) -> None:
    """A note's event is on no customer's stream; if it were, mentions and followers would still not be shown."""
    play = Play()
    play(create(message=post()))
    for command in commands:
        if play.state is None:
            return
        try:
            play(command)
        except (Conflict, Invalid):
            continue
    if play.state is None:
        return
    last, followers = play.messages[-1], [f"usr_{SECRET}"]
    view = agent_view(play.now_is, CONTACT, PROJECT.id, last, None, followers)
    shown = [customer_conversation(view)]
    for message in play.messages:
        shown.append(customer_message(dashboard_message_view(message, play.now_is.id, lambda _: [])))
    draft = note_created({**shown[-1], "mentions": followers}, {**view, "lastMessage": None}, followers)
    shown.append(customer_event(orjson.loads(encode_envelope(draft, "evt_1", PROJECT.id, NOON))))
    assert SECRET not in orjson.dumps(shown).decode()
    assert {"mentions", "followers", "mentioned"}.isdisjoint(path.split(".")[-1] for path in paths(shown[-1]))


EXAMPLES = {**example_envelopes(), **extension_envelopes()}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_no_type_of_event_shows_a_field_that_is_not_listed(name: str) -> None:
    """Also the types that no customer's stream carries."""
    assert set(CATALOG) <= set(EXAMPLES)
    assert set(paths(customer_event(orjson.loads(EXAMPLES[name])))) <= LISTED


def test_lists_have_the_same_view_as_events() -> None:
    play = Play()
    drafts = play(create(message=post()))
    shown = [check(draft)["data"] for draft in drafts]
    stored = conversation_view(play.now_is, CONTACT, PROJECT.id)
    assert shown[-1]["conversation"] == customer_conversation(stored)
    message = message_view(play.messages[0], play.now_is.id, lambda _: [])
    assert shown[-1]["message"] == customer_message(message)
    assert customer_conversation(stored, message)["lastMessage"] == customer_message(message)


def test_preview_of_a_note_in_the_agents_view_is_not_shown() -> None:
    play = Play()
    play(create(message=post()))
    play(post("agent", NOTE, internal=True))
    view = agent_view(play.now_is, CONTACT, PROJECT.id, play.messages[-1], None)
    assert NOTE not in str(customer_conversation(view))


def test_messages_of_a_merged_contact_stay_the_customers_own() -> None:
    other = Contact(2, "con_01KZ000000000000000000V1S1", "visitor-7", NOON, NOON, "Ada")
    play = Play(contact=other)
    drafts = play(create(message=post()))
    assert check(drafts[-1])["data"]["message"]["author"] == {"type": "contact", "name": "Ada", "self": True}


def test_reference_documents_the_fields_of_the_view() -> None:
    def fields(shape: Any) -> set[str]:
        return {each.alias or name for name, each in model_of(shape).model_fields.items()}

    own = {"conversation": CustomerConversation, "message": CustomerMessage, "step": CustomerStep}
    for prefix, shape in own.items():
        listed = {path.split(".")[1].removesuffix("[]") for path in LISTED if path.startswith(f"{prefix}.")}
        assert fields(shape) - {"lastMessage"} == listed
