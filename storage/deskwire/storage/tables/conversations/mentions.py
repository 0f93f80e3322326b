"""Mentions in notes, and the followers of conversations; see `engine.conversations.mentions`.

`messages.mentions` has the users and teams of a note as JSON, `mentions` a row for each person whom a note mentions, and
`followers` a row for each user who follows a conversation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import orjson

from deskwire.engine.accounts.people import READ
from deskwire.engine.conversations.conversation import Mention
from deskwire.engine.conversations.mentions import (
    MentionablePerson,
    MentionableTeam,
    OwnMentions,
)
from deskwire.storage.dialect import either
from deskwire.storage.tables.accounts.people import granted
from deskwire.storage.tables.base import IN_ORGANISATION, Changes, Queries

_GRANTED: Final = "LEFT JOIN roles r ON r.id = m.role AND r.organisation = m.organisation"
_PERSON: Final = (
    "SELECT u.rowid, u.id, u.name, m.role, r.permissions FROM users u JOIN memberships m ON m.user = u.rowid "
    f"{_GRANTED} WHERE u.id = ? AND m.organisation = ?"
)
_TEAM_MEMBERS: Final = (
    "SELECT u.rowid, u.id, u.name, m.role, r.permissions FROM team_members t JOIN users u ON u.rowid = t.user "
    "JOIN projects p ON p.rowid = ? JOIN memberships m ON m.user = u.rowid AND m.organisation = p.organisation "
    f"{_GRANTED} WHERE t.team = ? ORDER BY u.rowid"
)
FOLLOWERS: Final = either(
    "SELECT f.conversation, u.id, m.role, r.permissions FROM {numbers} k {and_then} followers f "
    "ON f.conversation = k.value JOIN projects p ON p.rowid = f.project JOIN users u ON u.rowid = f.user "
    f"JOIN memberships m ON m.user = u.rowid AND m.organisation = p.organisation {_GRANTED} "
    "ORDER BY f.conversation, f.at, u.rowid"
)
OWN_MENTIONS: Final = either(
    "SELECT g.conversation, count(*), sum(CASE WHEN g.seen_at IS NULL THEN 1 ELSE 0 END) FROM {numbers} k "
    "{and_then} mentions g ON g.user = ? AND g.project = ? AND g.conversation = k.value GROUP BY g.conversation"
)
UNSEEN_MENTIONS: Final = "SELECT count(*) FROM (SELECT 1 FROM mentions g WHERE g.user = ? AND g.project = ? AND g.seen_at IS NULL LIMIT ?) AS found"


# A removal deletes the membership before the mentions and follows, so it waits for this commit and then finds them.
_CLAIMED_MEMBERS: Final = either(
    "SELECT m.user FROM memberships m WHERE m.organisation = ? AND m.user IN ({{}}) ORDER BY m.user {locking[m]}"
)


class MentionReads(Queries):
    """See `engine.conversations.mentions.MentionReader`."""

    def mentionable_person(self, organisation: int, user_id: str) -> MentionablePerson | None:
        row = self.conn.execute(_PERSON, (user_id, organisation)).fetchone()
        return None if row is None else _person_of(row)

    def mentionable_team(self, project: int, team_id: str) -> MentionableTeam | None:
        row = self.conn.execute(
            "SELECT rowid, name FROM teams WHERE deleted_at IS NULL AND project = ? AND id = ?",
            (project, team_id),
        ).fetchone()
        if row is None:
            return None
        members = self.conn.execute(_TEAM_MEMBERS, (project, row[0])).fetchall()
        return MentionableTeam(row[1], [_person_of(each) for each in members])

    def mentioned_by(self, conversation: int, message_id: str) -> Sequence[str]:
        rows = self.conn.execute(
            "SELECT u.id FROM mentions g JOIN users u ON u.rowid = g.user WHERE g.conversation = ? AND g.message = ? "
            "ORDER BY g.user",
            (conversation, message_id),
        )
        return [row[0] for row in rows]

    def own_mentions(
        self, user: int, project: int, conversations: Sequence[int]
    ) -> Mapping[int, OwnMentions]:
        values = (self.dialect.listed(conversations), user, project)
        rows = self.conn.execute(OWN_MENTIONS[self.dialect], values)
        return {row[0]: OwnMentions(int(row[1]), int(row[2])) for row in rows}

    def unseen_mentions(self, user: int, project: int, bound: int) -> int:
        return int(self.conn.execute(UNSEEN_MENTIONS, (user, project, bound)).fetchone()[0])

    def followers(self, conversations: Sequence[int]) -> Mapping[int, Sequence[str]]:
        found: dict[int, list[str]] = {}
        rows = self.conn.execute(FOLLOWERS[self.dialect], (self.dialect.listed(conversations),))
        for conversation, user_id, role, permissions in rows:
            if READ in granted(role, permissions).permissions:
                found.setdefault(conversation, []).append(user_id)
        return found

    def followed_since(self, user: int, conversation: int) -> int | None:
        sql = "SELECT f.at FROM followers f WHERE f.user = ? AND f.conversation = ?"
        row = self.conn.execute(sql, (user, conversation)).fetchone()
        return None if row is None else int(row[0])


class MentionWrites(Changes):
    """See `engine.conversations.mentions.MentionTransaction`."""

    def claim_members(self, organisation: int, users: Sequence[int]) -> Collection[int]:
        if not users:
            return ()
        marks = ", ".join("?" for _ in users)
        sql = _CLAIMED_MEMBERS[self.dialect].format(marks)
        return [row[0] for row in self.conn.execute(sql, (organisation, *users)).fetchall()]

    def insert_mentions(
        self, project: int, conversation: int, message_id: str, users: Sequence[int], at: int
    ) -> None:
        rows = [(user, project, conversation, message_id, at) for user in users]
        self.conn.executemany(
            'INSERT INTO mentions ("user", project, conversation, message, at) VALUES (?, ?, ?, ?, ?)', rows
        )

    def delete_mentions(self, conversation: int, message_id: str) -> None:
        self.conn.execute(
            "DELETE FROM mentions WHERE conversation = ? AND message = ?", (conversation, message_id)
        )

    def see_mentions(self, user: int, project: int, conversation: int, upto: int, at: int) -> None:
        self.conn.execute(
            "UPDATE mentions SET seen_at = ? WHERE mentions.user = ? AND project = ? AND conversation = ? "
            "AND seen_at IS NULL AND message IN (SELECT id FROM messages WHERE conversation = ? AND rowid <= ?)",
            (at, user, project, conversation, conversation, upto),
        )

    def follow(self, project: int, conversation: int, users: Sequence[int], at: int) -> bool:
        rows = self.conn.execute(
            "SELECT f.user FROM followers f WHERE f.conversation = ?", (conversation,)
        ).fetchall()
        missing = [user for user in dict.fromkeys(users) if (user,) not in {tuple(row) for row in rows}]
        self.conn.executemany(
            'INSERT INTO followers ("user", project, conversation, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
            [(user, project, conversation, at) for user in missing],
        )
        return bool(missing)

    def unfollow(self, project: int, conversation: int, user: int) -> bool:
        key = (user, project, conversation)
        where = "followers.user = ? AND project = ? AND conversation = ?"
        if self.conn.execute(f"SELECT 1 FROM followers WHERE {where}", key).fetchone() is None:
            return False
        self.conn.execute(f"DELETE FROM followers WHERE {where}", key)
        return True

    def forget_involvement(self, user: int, organisation: int | None) -> None:
        """Remove a user's mentions and follows, in all projects or those of an organisation."""
        within = "" if organisation is None else IN_ORGANISATION
        values = (user,) if organisation is None else (user, organisation)
        for table in ("mentions", "followers"):
            self.conn.execute(f"DELETE FROM {table} WHERE {table}.user = ?{within}", values)


def mentions_json(mentions: Sequence[Mention]) -> str | None:
    """Return mentions in the form of their column."""
    if not mentions:
        return None
    return orjson.dumps([[each.type, each.id, each.name] for each in mentions]).decode()


def mentions_of(stored: str | None) -> tuple[Mention, ...]:
    """Return the mentions in a value of `mentions_json`."""
    return () if stored is None else tuple(Mention(*each) for each in orjson.loads(stored))


def _person_of(row: Sequence[Any]) -> MentionablePerson:
    rowid, user_id, name, role, permissions = row
    return MentionablePerson(rowid, user_id, name, READ in granted(role, permissions).permissions)
