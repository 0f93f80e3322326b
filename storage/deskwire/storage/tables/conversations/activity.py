"""The activity of conversations, their milestones and tags, and the ends of snoozes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from deskwire.engine.conversations.activity import ActivityEntry, ConversationActivity, FieldChange, Milestone
from deskwire.engine.conversations.conversation import Conversation
from deskwire.engine.conversations.facts import WorkflowStep
from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.project_events import event_actor_type
from deskwire.storage.tables.base import Changes, Queries

_NO_ROW: Final = (1 << 63) - 1
_ENTRY: Final = "id, conversation, at, actor_type, actor_id, actor_name, action, changes, event_id"
_INSERT: Final = f"INSERT INTO conversation_activity ({_ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
"""Has parameters only, so that PostgreSQL gets the rows of many conversations in one statement."""
_INSERT_WITH_STEP: Final = (
    f"INSERT INTO conversation_activity ({_ENTRY}, step_version, step_flow, step_action) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT number FROM workflow_versions WHERE rowid = ?), ?, ?)"
)


class ActivityReads(Queries):
    """See `engine.conversations.ports.ConversationReader`."""

    def conversation_activity(
        self, conversation: int, before: int | None, limit: int
    ) -> Sequence[ConversationActivity]:
        rows = self.conn.execute(
            "SELECT id, at, actor_type, actor_id, actor_name, action, changes, step_version, step_flow, step_action, event_id, rowid "
            "FROM conversation_activity WHERE conversation = ? AND rowid < ? ORDER BY rowid DESC LIMIT ?",
            (conversation, _NO_ROW if before is None else before, limit),
        )
        return [_activity_of(row) for row in rows]

    def conversation_tags(self, project: int, after: str, limit: int) -> Sequence[tuple[str, int]]:
        return self.conn.execute(
            "SELECT min(tag), count(*) FROM conversation_tags WHERE project = ? AND folded > ? "
            "GROUP BY folded ORDER BY folded LIMIT ?",
            (project, tag_key(after), limit),
        ).fetchall()

    def next_snooze_end(self) -> int | None:
        row = self.conn.execute(
            "SELECT snoozed_until FROM conversations WHERE snoozed_until IS NOT NULL ORDER BY snoozed_until LIMIT 1"
        ).fetchone()
        return None if row is None else int(row[0])

    def due_snoozes(self, until: int, limit: int) -> Sequence[tuple[str, str]]:
        return self.conn.execute(
            "SELECT p.id, c.id FROM conversations c JOIN projects p ON p.rowid = c.project "
            "WHERE c.snoozed_until <= ? ORDER BY c.snoozed_until LIMIT ?",
            (until, limit),
        ).fetchall()


class ActivityWrites(Changes):
    """See `engine.conversations.ports.ConversationTransaction`."""

    snoozes_due: list[int]

    def insert_conversation_activity(
        self, conversation: int, entry: ActivityEntry, at: int, event_id: str | None
    ) -> None:
        by, step = entry.by, entry.step
        changes = orjson.dumps([[each.field, each.before, each.after] for each in entry.changes]).decode()
        actor_type = event_actor_type(by)
        values = (
            new_id("act", at),
            conversation,
            at,
            actor_type,
            by.id,
            by.name,
            entry.action,
            changes,
            event_id,
        )
        if step is None:
            self.conn.execute(_INSERT, values)
        else:
            self.conn.execute(_INSERT_WITH_STEP, (*values, step.version, step.flow_id, step.action_id))

    def put_conversation_tags(self, state: Conversation) -> None:
        self.conn.execute("DELETE FROM conversation_tags WHERE conversation = ?", (state.rowid,))
        self.conn.executemany(
            "INSERT INTO conversation_tags (project, tag, conversation, folded) VALUES (?, ?, ?, ?)",
            [(state.project, tag, state.rowid, tag_key(tag)) for tag in state.tags],
        )

    def put_milestone(self, state: Conversation, milestone: Milestone) -> None:
        if milestone.kind == "rated":
            self.conn.execute(
                "DELETE FROM milestones WHERE conversation = ? AND kind = 'rated'", (state.rowid,)
            )
            if milestone.score is None:
                return
        self.conn.execute(
            "INSERT INTO milestones (project, conversation, kind, at, since, score, agent_id, team_id, imported) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                state.project,
                state.rowid,
                milestone.kind,
                milestone.at,
                milestone.since,
                milestone.score,
                milestone.agent_id,
                milestone.team_id,
                int(state.imported_at is not None),
            ),
        )

    def schedule_snooze_end(self, at: int) -> None:
        self.snoozes_due.append(at)


def _activity_of(row: tuple[Any, ...]) -> ConversationActivity:
    activity_id, at, actor_type, actor_id, actor_name, action, changes, *step, event_id, rowid = row
    version, flow, action_id = step
    entry = ActivityEntry(
        Actor("server_key" if actor_type == "key" else actor_type, actor_id, actor_name),
        action,
        tuple(FieldChange(*each) for each in orjson.loads(changes)),
        None if flow is None else WorkflowStep(actor_id, version, flow, action_id),
    )
    return ConversationActivity(activity_id, at, entry, event_id, rowid)
