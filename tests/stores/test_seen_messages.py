"""The messages that a user has seen: as exact for many conversations as for one, in as many statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Author, AuthorType, Conversation, Message
from deskwire.engine.conversations.listing import SeenMessages
from deskwire.engine.core.ids import new_id
from tests.support.builders import NOON, PROJECT

MARK: Final = NOON + 10


def converse(tx: Any, number: int) -> int:
    """Return the key of a new conversation with two messages of the contact before the mark, then at MARK + `number` one of an agent and one of the contact."""
    contact = tx.contact(PROJECT.rowid, "ada") or tx.insert_contact(
        PROJECT.rowid, Contact(0, new_id("con", NOON), "ada", NOON, NOON)
    )
    made = Conversation(
        id=new_id("cnv", NOON),
        project=PROJECT.rowid,
        created_at=NOON,
        updated_at=NOON,
        last_message_at=MARK + number,
        messages=4,
        contact_messages=3,
    )
    key: int = tx.insert_conversation(made, contact.rowid, {}).rowid
    written: tuple[tuple[AuthorType, int], ...] = (
        ("contact", NOON),
        ("contact", NOON),
        ("agent", MARK + number),
        ("contact", MARK + number),
    )
    for index, (who, at) in enumerate(written):
        tx.insert_message(key, Message(new_id("msg", NOON), Author(who), "Hello", at, index=index), index + 2)
    return key


@pytest.fixture
def user(tx: Any) -> int:
    """A user who has marked everything as read."""
    key: int = tx.insert_user("usr_1", "ada@x.org", "Ada", None, NOON).rowid
    tx.put_seen_mark(key, PROJECT.rowid, MARK)
    return key


def test_each_conversation_has_the_messages_before_the_mark_as_seen(tx: Any, user: int) -> None:
    first, opened, old = converse(tx, 5), converse(tx, 6), converse(tx, -5)
    tx.put_seen(user, opened, SeenMessages(3, 3), MARK + 7)
    assert tx.seen(user, [first, opened, old]) == {
        first: SeenMessages(1, 2),
        opened: SeenMessages(3, 3),
        old: SeenMessages(3, 3),
    }


@pytest.mark.sqlite
def test_many_conversations_take_as_many_statements_as_one(tx: Any, user: int) -> None:
    made = [converse(tx, number) for number in range(30)]

    def statements(work: Callable[[], object]) -> int:
        asked: list[str] = []
        tx.conn.set_trace_callback(asked.append)
        work()
        tx.conn.set_trace_callback(None)
        return len(asked)

    assert statements(lambda: tx.seen(user, made)) == statements(lambda: tx.seen(user, made[:1])) == 3
