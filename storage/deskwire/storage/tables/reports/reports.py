"""The figures of reports: one statement each, supported by an index of the counted rows.

The scope is passed as named values. Rows without a group are counted under the key NULL.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Final, get_args

import orjson

from deskwire.engine.conversations.conversation import AUTHOR_TYPES, UNCLOSED, Status
from deskwire.engine.reports.period import DAY_MS
from deskwire.engine.reports.ports import (
    GroupBy,
    GroupCount,
    GroupKey,
    MessageCounts,
    RatingCount,
    ReportScope,
    Timed,
)
from deskwire.storage.dialect import POSTGRES, SQLITE, Statement, differing, either, literals
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.reports.groups import Grouping, Source, grouping, key_of, limit_values, limits

_MILESTONE: Final = Source("m.conversation", "m.at", "m.agent_id", "m.team_id")
_CONVERSATION: Final = Source(
    "c.rowid",
    "c.created_at",
    "CASE WHEN c.assignee_type = 'user' THEN c.assignee_id ELSE c.replier_id END",
    "c.team_id",
    "c.channel",
)
_MESSAGE: Final = Source("m.conversation", "m.created_at", "m.agent_id", "c.team_id")
_MILESTONES: Final = "milestones m {} WHERE m.project = :project AND m.at >= :start AND m.at < :end AND m.imported <= :imported"
_KNOWN: Final = "m.since IS NOT NULL AND (m.since <= m.at OR m.imported = 0)"
"""Milestones with a duration. Impossible ones of imports have none; others that end early, after a clock was set back, are 0."""
_CONVERSATIONS: Final = "conversations c {} WHERE c.project = :project AND c.archived IN (0, 1) AND (:imported = 1 OR c.imported_at IS NULL)"
_OPEN: Final = f"c.status IN ({literals(*UNCLOSED)})"
_PLACES: Final = " ".join(f"WHEN '{author}' THEN {place}" for place, author in enumerate(AUTHOR_TYPES))
AUTHOR: Final = f"CASE author_type {_PLACES} END"
"""The index of the author type in `AUTHOR_TYPES`; NULL for an unknown one, which every table refuses."""
AGENT: Final = "CASE WHEN author_type = 'agent' THEN author_id END"
"""The agent who wrote a message."""
_AS_COUNTED: Final = (
    f"SELECT conversation, created_at, {AUTHOR} AS author, {AGENT} AS agent_id "
    "FROM messages WHERE project = :project AND internal = 0"
)
_MESSAGES: Final = differing(
    sqlite="(SELECT * FROM message_times WHERE project = :project) m", postgres=f"({_AS_COUNTED}) m"
)
_NEWEST: Final = f"({_AS_COUNTED} AND rowid > (SELECT message FROM message_times_end)) m"
"""Messages that SQLite has not added to `message_times` yet, fewer than 512."""
_WRITTEN: Final = (
    "WHERE m.created_at >= :start AND m.created_at < :end AND (:imported = 1 OR m.conversation NOT IN "
    "(SELECT i.conversation FROM imported_conversations i WHERE i.project = :project))"
)
_SLICE_MS: Final = 30 * DAY_MS
"""Time span of messages counted by one statement, because its result is held in memory."""
_COUNTED: Final = differing(
    sqlite="SELECT json_group_array({}) FROM {} {}", postgres="SELECT {}, count(*) FROM {} {} GROUP BY 1"
)
"""SQLite counts groups by sorting, which takes three times as long as counting here."""
_AGENT_NAMES: Final = either(
    "SELECT u.id, CASE WHEN u.deleted_at IS NULL THEN u.name END FROM {texts} k {and_then} users u ON u.id = k.value"
)
_CHANNEL_NAMES: Final = either(
    "SELECT c.id, c.name FROM {texts} k {and_then} channels c ON c.id = k.value WHERE c.project = ? AND c.removed_at IS NULL"
)
_TEAM_NAMES: Final = either(
    "SELECT t.id, t.name FROM {texts} k {and_then} teams t ON t.id = k.value WHERE t.project = ? AND t.deleted_at IS NULL"
)


_OF_TEAMS: Final = either(
    "SELECT k.value, c.team_id FROM {numbers} k {and_then} conversations c ON c.rowid = k.value"
)
_OF_CHANNELS: Final = either(
    "SELECT k.value, c.channel FROM {numbers} k {and_then} conversations c ON c.rowid = k.value"
)
_OF_TAGS: Final = either(
    "SELECT k.value, g.folded FROM {numbers} k {and_then} conversation_tags g ON g.conversation = k.value"
)
_TAG_NAMES: Final = either(
    "SELECT k.value, min(g.tag) FROM {texts} k {and_then} conversation_tags g ON g.folded = k.value AND g.project = ? GROUP BY k.value"
)
"""Of several spellings of a tag, the first in code point order."""
_OF_CONVERSATIONS: Final = {"team": _OF_TEAMS, "channel": _OF_CHANNELS, "tag": _OF_TAGS}
_NO_GROUP: Final[Sequence[GroupKey]] = (None,)
_BATCH_SIZE: Final = 10_000
"""Conversations whose team, channel or tags are looked up by one statement."""


class ReportReads(Queries):
    """The methods are those of `engine.reports.ports.ReportReader`."""

    def durations(
        self, scope: ReportScope, kind: Timed, by: GroupBy | None
    ) -> Mapping[GroupKey, Sequence[int]]:
        group = grouping(_MILESTONE, scope, by)
        lasted = "CASE WHEN m.at > m.since THEN m.at - m.since ELSE 0 END"
        sql = (
            f"SELECT {group.key} AS k, {lasted} AS d FROM {_milestones(scope, group)} AND m.kind = :kind "
            f"AND {_KNOWN} ORDER BY d"
        )
        return self._gathered(sql, {**_values(scope, group), "kind": kind}, by)

    def scores(self, scope: ReportScope, by: GroupBy | None) -> Sequence[RatingCount]:
        group = grouping(_MILESTONE, scope, by)
        sql = (
            f"SELECT {group.key} AS k, m.score, count(*) FROM {_milestones(scope, group)} "
            "AND m.kind = 'rated' GROUP BY 1, 2"
        )
        rows = self.conn.execute(sql, _values(scope, group))
        return [RatingCount(key_of(key, by), score, count) for key, score, count in rows]

    def created_conversations(self, scope: ReportScope, by: GroupBy | None) -> Sequence[GroupCount]:
        group = grouping(_CONVERSATION, scope, by)
        sql = (
            f"SELECT {group.key} AS k, count(*) FROM {_conversations(scope, group)} "
            f"AND c.status IN ({literals(*get_args(Status))}) AND c.created_at >= :start AND c.created_at < :end GROUP BY 1"
        )
        rows = self.conn.execute(sql, _values(scope, group))
        return [GroupCount(key_of(key, by), "created", count) for key, count in rows if count]

    def turns(self, scope: ReportScope, by: GroupBy | None) -> Sequence[GroupCount]:
        group = grouping(_MILESTONE, scope, by)
        sql = (
            f"SELECT {group.key} AS k, m.kind, count(*) FROM {_milestones(scope, group)} "
            "AND m.kind IN ('closed', 'reopened') GROUP BY 1, 2"
        )
        rows = self.conn.execute(sql, _values(scope, group))
        return [GroupCount(key_of(key, by), kind, count) for key, kind, count in rows]

    def written_messages(self, scope: ReportScope, by: GroupBy | None) -> MessageCounts:
        if by == "agent":
            return self._by_agent(scope)
        if by in _OF_CONVERSATIONS:
            return self._by_conversation(scope, _OF_CONVERSATIONS[by])
        group = grouping(_MESSAGE, scope, by)
        written = _Tallies()
        expression = "m.author" if by is None else f"({group.key}) * 4 + m.author"
        for number, count in self._counted(expression, scope, group.values).items():
            key = None if by is None else key_of(number // 4, by)
            written.add((key,), number % 4, count)
        return written.done()

    def _by_agent(self, scope: ReportScope) -> MessageCounts:
        written = _Tallies()
        for agent, count in self._counted("m.agent_id", scope, {}, " AND m.author = 1").items():
            written.add((agent,), 1, count)
        for code, count in self._counted("m.author", scope, {}, " AND m.author <> 1").items():
            written.add((None,), code, count)
        return written.done()

    def _by_conversation(self, scope: ReportScope, sql: Statement) -> MessageCounts:
        written = _Tallies()
        counted = self._counted("m.conversation * 4 + m.author", scope, {})
        keys = self._keys_of({number // 4 for number in counted}, sql)
        for number, count in counted.items():
            written.add(keys.get(number // 4, _NO_GROUP), number % 4, count)
        return written.done()

    def open_conversations(self, scope: ReportScope, by: GroupBy | None) -> Mapping[GroupKey, Sequence[int]]:
        group = grouping(_CONVERSATION, scope, by)
        sql = f"SELECT {group.key} AS k, c.created_at FROM {_conversations(scope, group)} AND {_OPEN} ORDER BY 2"
        return self._gathered(sql, _values(scope, group), by)

    def waiting_conversations(self, scope: ReportScope, by: GroupBy | None) -> Mapping[GroupKey, int]:
        group = grouping(_CONVERSATION, scope, by)
        sql = f"SELECT {group.key} AS k, count(*) FROM {_conversations(scope, group)} AND {_OPEN} AND c.waiting_since IS NOT NULL GROUP BY 1"
        return {
            key_of(key, by): count for key, count in self.conn.execute(sql, _values(scope, group)) if count
        }

    def agent_names(self, ids: Sequence[str]) -> Mapping[str, str | None]:
        return dict(self.conn.execute(_AGENT_NAMES[self.dialect], (self.dialect.listed(ids),)).fetchall())

    def channel_names(self, project: int, ids: Sequence[str]) -> Mapping[str, str]:
        return dict(
            self.conn.execute(_CHANNEL_NAMES[self.dialect], (self.dialect.listed(ids), project)).fetchall()
        )

    def team_names(self, project: int, ids: Sequence[str]) -> Mapping[str, str]:
        return dict(
            self.conn.execute(_TEAM_NAMES[self.dialect], (self.dialect.listed(ids), project)).fetchall()
        )

    def tag_names(self, project: int, keys: Sequence[str]) -> Mapping[str, str]:
        return dict(
            self.conn.execute(_TAG_NAMES[self.dialect], (self.dialect.listed(keys), project)).fetchall()
        )

    def _gathered(
        self, sql: str, values: Mapping[str, Any], by: GroupBy | None
    ) -> dict[GroupKey, array[int]]:
        """Return the numbers by key, in the order of the rows, as arrays of eight bytes each."""
        gathered: dict[Any, array[int]] = {}
        for key, number in self.conn.execute(sql, values):
            numbers = gathered.get(key)
            if numbers is None:
                numbers = gathered[key] = array("q")
            numbers.append(number)
        return {key_of(key, by): numbers for key, numbers in gathered.items()}

    def _counted(
        self, expression: str, scope: ReportScope, values: Mapping[str, int], further: str = ""
    ) -> Counter[Any]:
        """Count the messages of the scope by the value of an expression."""
        further += limits("m.conversation", scope)
        counts: Counter[Any] = Counter()
        for start in range(scope.period.start, scope.period.end, _SLICE_MS):
            within = {**values, "start": start, "end": min(start + _SLICE_MS, scope.period.end)}
            counts.update(self._counts(_MESSAGES[self.dialect], expression, scope, within, further))
        if self.dialect is SQLITE:
            counts.update(self._counts(_NEWEST, expression, scope, values, further))
        return counts

    def _counts(
        self, source: str, expression: str, scope: ReportScope, values: Mapping[str, int], further: str
    ) -> Mapping[Any, int] | Sequence[Any]:
        """Count the messages of a source by the value of an expression."""
        sql = _COUNTED[self.dialect].format(expression, source, _WRITTEN + further)
        rows = self.conn.execute(sql, _values(scope, Grouping("", "", values))).fetchall()
        return dict(rows) if self.dialect is POSTGRES else orjson.loads(rows[0][0])

    def _keys_of(self, conversations: Collection[int], sql: Statement) -> Mapping[int, Sequence[str | None]]:
        """Return the keys of conversations by a statement; conversations without a key are left out."""
        found: dict[int, list[str | None]] = {}
        remaining = iter(sorted(conversations))
        while some := [*islice(remaining, _BATCH_SIZE)]:
            for conversation, key in self.conn.execute(sql[self.dialect], (self.dialect.listed(some),)):
                found.setdefault(conversation, []).append(key)
        return found


class _Tallies:
    """Sums messages in total and by group."""

    def __init__(self) -> None:
        self._total = [0] * len(AUTHOR_TYPES)
        self._groups: dict[GroupKey, list[int]] = {}

    def add(self, keys: Sequence[GroupKey], code: int, count: int) -> None:
        """Add messages of an author type to each of these groups."""
        self._total[code] += count
        for key in keys:
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = [0] * len(AUTHOR_TYPES)
            group[code] += count

    def done(self) -> MessageCounts:
        """Return the counts."""
        groups = [
            GroupCount(key, author, count)
            for key, counts in self._groups.items()
            for author, count in zip(AUTHOR_TYPES, counts, strict=True)
            if count
        ]
        return MessageCounts(dict(zip(AUTHOR_TYPES, self._total, strict=True)), groups)


def _milestones(scope: ReportScope, group: Grouping) -> str:
    return _MILESTONES.format(group.joined) + limits("m.conversation", scope)


def _conversations(scope: ReportScope, group: Grouping) -> str:
    return _CONVERSATIONS.format(group.joined) + limits("c.rowid", scope)


def _values(scope: ReportScope, group: Grouping) -> dict[str, Any]:
    return {
        "project": scope.project,
        "start": scope.period.start,
        "end": scope.period.end,
        "imported": int(scope.imported),
        **limit_values(scope),
        **group.values,
    }
