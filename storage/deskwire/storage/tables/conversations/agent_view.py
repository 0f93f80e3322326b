"""The agent's view: its parts outside the conversations' rows, threads, and the messages that each agent has seen.

`agent_seen` has a row for an agent's position in a conversation, `seen_marks` a time up to which an agent has marked a project as
seen. The newer of the two applies. A mark does not apply to conversations imported after it. Messages before a conversation's own
`seen_until` count as seen by every agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from deskwire.engine.conversations.conversation import Author, Message
from deskwire.engine.conversations.listing import AgentDetails, ReadPosition, SeenMessages, ThreadMessage
from deskwire.engine.conversations.redaction import PREVIEW_LENGTH_MAX
from deskwire.storage.dialect import differing, either
from deskwire.storage.tables.base import Changes, Queries
from deskwire.storage.tables.conversations.conversations import MESSAGE, NEWEST_SHOWN, message_of
from deskwire.storage.tables.conversations.mentions import MentionReads
from deskwire.storage.tables.workflows import run_of

AGENT_DETAILS: Final = either(
    "SELECT k.value, r.state, f.name, m.id, m.author_type, m.author_id, m.author_name, "
    f"substr(m.text, 1, {PREVIEW_LENGTH_MAX}), m.created_at, m.internal "
    "FROM {numbers} k LEFT JOIN messages m ON m.rowid = "
    "coalesce((SELECT rowid FROM messages WHERE conversation = k.value AND deleted_at IS NULL ORDER BY rowid DESC LIMIT 1), "
    f"{NEWEST_SHOWN.format(1)}) "
    "LEFT JOIN workflow_runs r ON r.conversation = k.value "
    "LEFT JOIN workflow_versions v ON v.rowid = r.version LEFT JOIN workflows f ON f.id = v.workflow_id"
)
THREAD: Final = (
    f"SELECT {MESSAGE}, sequence, rowid FROM messages WHERE conversation = ? AND rowid > ? AND rowid < ? AND deleted_at IS NULL "
    "ORDER BY rowid {} LIMIT ?"
)
_NO_ROW: Final = (1 << 63) - 1


class AgentViewReads(MentionReads):
    """Queries of the agent's view; see `conversations.ports.ConversationReader`."""

    def agent_details(self, conversations: Sequence[int]) -> Mapping[int, AgentDetails]:
        found: dict[int, AgentDetails] = {}
        followers = self.followers(conversations)
        for row in self.conn.execute(AGENT_DETAILS[self.dialect], (self.dialect.listed(conversations),)):
            key, state, workflow, message, *rest = row
            last = None if message is None else _beginning(message, *rest)
            found[key] = AgentDetails(last, run_of(state), workflow, followers.get(key, ()))
        return found

    def message_before(self, conversation: int, sequence: int) -> int | None:
        sql = (
            "SELECT max(rowid) FROM messages WHERE conversation = ?1 AND rowid < coalesce("
            "(SELECT min(rowid) FROM messages WHERE conversation = ?1 AND sequence > ?2), ?3)"
        )
        found: int | None = self.conn.execute(sql, (conversation, sequence, _NO_ROW)).fetchone()[0]
        return found

    def thread(
        self, conversation: int, *, after: int | None, before: int | None, newest_first: bool, limit: int
    ) -> Sequence[ThreadMessage]:
        sql = THREAD.format("DESC" if newest_first else "ASC")
        rows = self.conn.execute(sql, (conversation, after or 0, before or _NO_ROW, limit))
        return [ThreadMessage(message_of(row), row[-2], row[-1]) for row in rows]


def _beginning(
    message_id: str,
    author_type: str,
    author_id: str | None,
    name: str | None,
    text: str,
    at: int,
    internal: int,
) -> Message:
    author = Author(author_type, author_id, name)  # type: ignore[arg-type]  # as it was stored
    return Message(message_id, author, text, at, bool(internal))


SEEN: Final = either(
    "SELECT s.conversation, s.number, s.contact_messages, s.at FROM {numbers} k "
    "{and_then} agent_seen s ON s.user = ? AND s.conversation = k.value"
)
_UNTIL: Final = (
    "CASE WHEN coalesce(c.imported_at, 0) >= coalesce(s.until, 0) OR c.seen_until > coalesce(s.until, 0) "
    "THEN c.seen_until ELSE coalesce(s.until, 0) END"
)
"""The time before which all messages of a conversation `c` are seen, with the mark `s` of its project; 0 for none."""
_WITH_MARK: Final = (
    "FROM {numbers} k {and_then} conversations c ON c.rowid = k.value "
    "LEFT JOIN seen_marks s ON s.project = c.project AND s.user = ?"
)
_BEGUN_LATER: Final = "c.imported_at IS NULL AND c.created_at >= {until}"
"""The condition that all messages of a conversation `c` are newer than a time, without reading them."""
_MARKED: Final = either(
    f"SELECT c.rowid, {_UNTIL}, c.activity, c.messages, c.contact_messages, "
    f"CASE WHEN {_BEGUN_LATER.format(until=_UNTIL)} THEN 1 ELSE 0 END {_WITH_MARK}"
)
_CLOCK_ERROR_MS: Final = 60_000
"""By how much a message may be older than an earlier one: a node whose clock differs by 5 s is not ready."""
_LATE: Final = (
    "m.rowid > CASE WHEN c.imported_at IS NULL THEN coalesce((SELECT o.rowid FROM messages o WHERE o.conversation = c.rowid "
    f"AND o.created_at < {{until}} - {_CLOCK_ERROR_MS} ORDER BY o.rowid DESC LIMIT 1), 0) ELSE 0 END"
)
"""The condition of the messages `m` that may be as new as a time, so that the older ones are not read. Imports have any order."""
_UNSEEN: Final = f"m.conversation = c.rowid AND m.number IS NOT NULL AND m.created_at >= {_UNTIL} AND {_LATE.format(until=_UNTIL)}"
_COUNTED: Final = (
    "count(*) AS later, sum(CASE WHEN m.author_type = 'contact' THEN 1 ELSE 0 END) AS by_contact"
)
_SINCE: Final = either(
    f"SELECT c.rowid, {{counts}} {_WITH_MARK} {{messages}}",
    counts=differing(sqlite=_COUNTED, postgres="n.later, n.by_contact"),
    messages=differing(
        sqlite=f"CROSS JOIN messages m ON {_UNSEEN} GROUP BY c.rowid",
        # Only in a sub-select PostgreSQL begins at the first message that may be as new.
        postgres=f"CROSS JOIN LATERAL (SELECT {_COUNTED} FROM messages m WHERE {_UNSEEN}) AS n WHERE n.later > 0",
    ),
)
_CLAIMED_POSITION: Final = either(
    "SELECT s.number, s.contact_messages, s.at FROM agent_seen s WHERE s.user = ? AND s.conversation = ? {locking[s]}"
)
_NEWEST_OF_CONTACT: Final = (
    "SELECT number FROM messages WHERE conversation = ? AND author_type = 'contact' AND number IS NOT NULL "
    "AND deleted_at IS NULL ORDER BY rowid DESC LIMIT 1"
)
_NEWEST_FIRST: Final = "SELECT number, author_type FROM messages WHERE conversation = ? ORDER BY rowid DESC"

UNREAD: Final = (
    "c.contact_messages > coalesce((SELECT s.contact_messages FROM agent_seen s WHERE s.user = ? AND s.conversation = c.rowid), 0) "
    "AND (EXISTS (SELECT 1 FROM agent_seen s WHERE s.user = ? AND s.conversation = c.rowid AND s.at >= {until}) "
    f"OR ({_BEGUN_LATER}) "
    "OR (c.activity >= {until} AND EXISTS (SELECT 1 FROM messages m WHERE m.conversation = c.rowid AND m.author_type = 'contact' "
    f"AND m.number IS NOT NULL AND m.created_at >= {{until}} AND {_LATE})))"
).replace(
    "{until}", "(CASE WHEN coalesce(c.imported_at, 0) >= ? OR c.seen_until > ? THEN c.seen_until ELSE ? END)"
)
"""The condition that the contact wrote a message in `c` that a user has not seen."""


def unread_values(user: int, mark: int) -> tuple[int, ...]:
    """Return the values of UNREAD; `mark` is the user's seen mark in the project, 0 for none."""
    marks = (mark, mark, mark)
    return (user, user, *(5 * marks))


class SeenReads(Queries):
    """Queries on seen messages; see `conversations.ports.ConversationReader`."""

    def seen(self, user: int, conversations: Sequence[int]) -> Mapping[int, SeenMessages]:
        keys = self.dialect.listed(conversations)
        rows = {row[0]: row[1:] for row in self.conn.execute(SEEN[self.dialect], (keys, user))}
        found = {conversation: SeenMessages(index, count) for conversation, (index, count, _) in rows.items()}
        marked = [
            row
            for row in self.conn.execute(_MARKED[self.dialect], (keys, user)).fetchall()
            if row[1] and (row[0] not in rows or rows[row[0]][2] < row[1])
        ]
        since = self._since(
            user, [row for row, until, activity, *_, later in marked if activity >= until and not later]
        )
        for conversation, _, _, messages, by_contact, begun_later in marked:
            none_or_all = (messages, by_contact) if begun_later else (0, 0)
            later, unseen = since.get(conversation, none_or_all)
            found[conversation] = SeenMessages(messages - later - 1, by_contact - unseen)
        return found

    def _since(self, user: int, conversations: Sequence[int]) -> Mapping[int, tuple[int, int]]:
        """Return the number of each conversation's messages since the user's mark, and of those from the contact, if there are any."""
        if not conversations:
            return {}
        rows = self.conn.execute(_SINCE[self.dialect], (self.dialect.listed(conversations), user))
        return {conversation: (count, int(by_contact)) for conversation, count, by_contact in rows}

    def seen_mark(self, user: int, project: int) -> int | None:
        row = self.conn.execute(
            "SELECT s.until FROM seen_marks s WHERE s.user = ? AND s.project = ?", (user, project)
        ).fetchone()
        return None if row is None else row[0]

    def newest_of_contact(self, conversation: int) -> int | None:
        row = self.conn.execute(_NEWEST_OF_CONTACT, (conversation,)).fetchone()
        return None if row is None else int(row[0])

    def unseen_after(self, conversation: int, index: int) -> int:
        unseen = 0
        for number, author in self.conn.execute(_NEWEST_FIRST, (conversation,)):
            if number is not None and number <= index:
                break
            unseen += number is not None and author == "contact"
        return unseen


class SeenWrites(Changes):
    """Changes of seen messages; see `conversations.ports.ConversationTransaction`."""

    def put_seen(self, user: int, conversation: int, seen: SeenMessages, at: int) -> bool:
        stored = self.conn.execute(
            "INSERT INTO agent_seen SELECT ?, rowid, ?, ?, ? FROM conversations WHERE rowid = ? "
            'ON CONFLICT ("user", conversation) DO UPDATE SET number = excluded.number, '
            "contact_messages = excluded.contact_messages, at = excluded.at",
            (user, seen.index, seen.contact_messages, at, conversation),
        )
        return stored.rowcount == 1

    def claim_read_position(self, user: int, conversation: int) -> ReadPosition | None:
        row = self.conn.execute(_CLAIMED_POSITION[self.dialect], (user, conversation)).fetchone()
        return None if row is None else ReadPosition(SeenMessages(row[0], row[1]), row[2])

    def delete_read_position(self, user: int, conversation: int) -> None:
        sql = "DELETE FROM agent_seen WHERE agent_seen.user = ? AND conversation = ?"
        self.conn.execute(sql, (user, conversation))

    def put_seen_mark(self, user: int, project: int, until: int | None) -> None:
        if until is None:
            self.conn.execute(
                "DELETE FROM seen_marks WHERE seen_marks.user = ? AND project = ?", (user, project)
            )
            return
        self.conn.execute(
            'INSERT INTO seen_marks ("user", project, until) VALUES (?, ?, ?) '
            'ON CONFLICT ("user", project) DO UPDATE SET until = excluded.until',
            (user, project, until),
        )
