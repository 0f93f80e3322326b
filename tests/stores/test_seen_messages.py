"""The messages that a user has seen: as exact for many conversations as for one, in as many statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Author, AuthorType, Conversation, Message
from deskwire.engine.conversations.listing import NEWEST_FIRST, ConversationFilter, SeenMessages
from deskwire.engine.core.ids import new_id
from tests.support.builders import NOON, PROJECT

MARK: Final = NOON + 10


def converse(tx: Any, number: int, begin: int = NOON, imported_at: int | None = None) -> int:
    """Return the key of a new conversation with two messages of the contact at its beginning, then at MARK + `number` one of an agent and one of the contact."""
    contact = tx.contact(PROJECT.rowid, "ada") or tx.insert_contact(
        PROJECT.rowid, Contact(0, new_id("con", NOON), "ada", NOON, NOON)
    )
    made = Conversation(
        id=new_id("cnv", NOON),
        project=PROJECT.rowid,
        created_at=begin,
        updated_at=begin,
        imported_at=imported_at,
        last_message_at=MARK + number,
        messages=4,
        contact_messages=3,
    )
    key: int = tx.insert_conversation(made, contact.rowid, {}).rowid
    written: tuple[tuple[AuthorType, int], ...] = (
        ("contact", begin),
        ("contact", begin),
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


def unread(tx: Any, user: int) -> set[int]:
    """Return the keys of the conversations in the user's list of unread ones."""
    wanted = ConversationFilter(unread=True, user=user)
    return {
        each.conversation.rowid for each in tx.conversations(PROJECT.rowid, wanted, NEWEST_FIRST, None, 50)
    }


def test_each_conversation_has_the_messages_before_the_mark_as_seen(tx: Any, user: int) -> None:
    first, opened, old = converse(tx, 5), converse(tx, 6), converse(tx, -5)
    tx.put_seen(user, opened, SeenMessages(3, 3), MARK + 7)
    assert tx.seen(user, [first, opened, old]) == {
        first: SeenMessages(1, 2),
        opened: SeenMessages(3, 3),
        old: SeenMessages(3, 3),
    }


def test_no_message_of_a_conversation_begun_after_the_mark_is_seen(tx: Any, user: int) -> None:
    begun, opened = converse(tx, 5, MARK), converse(tx, 5, MARK + 1)
    tx.put_seen(user, opened, SeenMessages(1, 2), MARK + 4)
    assert tx.seen(user, [begun, opened]) == {begun: SeenMessages(-1, 0), opened: SeenMessages(1, 2)}
    assert unread(tx, user) == {begun, opened}
    tx.put_seen(user, opened, SeenMessages(3, 3), MARK + 6)
    assert unread(tx, user) == {begun}


def test_messages_of_an_import_count_by_their_times(tx: Any, user: int) -> None:
    # The record may give a conversation a later creation than its messages; the mark is newer than the import.
    imported = converse(tx, 5, imported_at=NOON + 1)
    tx.conn.execute("UPDATE conversations SET created_at = ? WHERE rowid = ?", (MARK + 1, imported))
    assert tx.seen(user, [imported]) == {imported: SeenMessages(1, 2)}
    assert unread(tx, user) == {imported}
    old = converse(tx, -5, imported_at=NOON + 1)
    tx.conn.execute("UPDATE conversations SET created_at = ? WHERE rowid = ?", (MARK + 1, old))
    assert tx.seen(user, [old]) == {old: SeenMessages(3, 3)}
    assert unread(tx, user) == {imported}


def test_messages_within_a_minute_of_the_mark_count_in_any_order(tx: Any, user: int) -> None:
    """Two nodes' clocks differ by some seconds."""
    key = converse(tx, 5, NOON - 120_000)
    for index, at in ((4, MARK - 9_000), (5, MARK + 6), (6, MARK - 1)):
        tx.insert_message(key, Message(new_id("msg", NOON), Author("contact"), "Hello", at, index=index), 9)
    tx.conn.execute(
        "UPDATE conversations SET messages = 7, contact_messages = 6 WHERE conversations.rowid = ?", (key,)
    )
    assert tx.seen(user, [key]) == {key: SeenMessages(3, 4)}
    assert unread(tx, user) == {key}


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("begin", "written_at"), [(MARK, MARK + 5), (NOON - 200_000, NOON - 150_000)], ids=["after", "before"]
)
def test_cost_of_the_newest_messages_does_not_depend_on_the_older_ones(
    tx: Any, user: int, begin: int, written_at: int
) -> None:
    """An agent's list would otherwise take time for each message since the agent joined, or for each seen one."""
    key = converse(tx, 5, begin)

    def steps(work: Callable[[], object]) -> int:
        taken = 0

        def count() -> int:
            nonlocal taken
            taken += 1
            return 0

        tx.conn.set_progress_handler(count, 1)
        work()
        tx.conn.set_progress_handler(None, 1)
        return taken

    found = list[tuple[int, int]]()
    for first in (0, 300):  # more older messages each time
        tx.conn.executemany(
            "INSERT INTO messages (rowid, id, conversation, number, author_type, text, internal, created_at, project) "
            "VALUES (?, ?, ?, ?, 'bot', 'Hello', 0, ?, 1)",
            [(-1 - row, new_id("msg", NOON), key, 4 + row, written_at) for row in range(first, first + 300)],
        )
        found.append((steps(lambda: tx.seen(user, [key])), steps(lambda: tx.message_id_at(key, 3))))
    assert found[0] == found[1]
    assert all(found[0])


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
