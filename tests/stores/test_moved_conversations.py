"""The events of conversations that were moved to another contact, as the channel of each contact finds them."""

from __future__ import annotations

from typing import Any

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.types import EventDraft, Topic
from tests.support.builders import NOON, PROJECT


def test_channel_has_events_from_its_contacts_time_with_the_conversation(tx: Any) -> None:
    people = [
        tx.insert_contact(PROJECT.rowid, Contact(0, new_id("con", NOON), user, NOON, NOON)) for user in "abc"
    ]
    state = Conversation(new_id("cnv", NOON), PROJECT.rowid, NOON, NOON)
    state = tx.insert_conversation(state, people[0].rowid, {})
    wanted: dict[str, list[str]] = {contact.user_id: [] for contact in people}
    sequence = 0
    for place, contact in enumerate(people):
        for _ in range(2):
            sequence += 1
            shown = {"conversation": {"id": state.id, "contact": {"userId": contact.user_id}}}
            event = tx.append_event(
                PROJECT, EventDraft("conversation.updated", sequence, shown), state.rowid, NOON
            )
            wanted[contact.user_id].append(event.id)
            if place and len(wanted[contact.user_id]) == 1:  # the first one says that it has moved
                previous = people[place - 1]
                tx.move_conversation(state.rowid, previous.rowid, contact.rowid)
                tx.note_moved(state.rowid, previous.rowid, event.id)
                tx.begin_merge(previous.rowid, contact.rowid)
    for user, ids in wanted.items():
        found = tx.topic_events(Topic(PROJECT.rowid, "contact", user), 0, 100, frozenset())
        assert [event.id for event in found] == ids, user
