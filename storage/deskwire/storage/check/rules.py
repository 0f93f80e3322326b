"""Rules between rows that the database does not enforce itself, each with a query that finds violations.

The columns of a query fill the placeholders `{}` of the rule's sentence. The event log is pruned from its start, so the
stored events of a conversation are the last ones of its sequence, or all of them before the first pruning.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from msgspec import Struct, field

from deskwire.engine.conversations.tags import tag_key
from deskwire.engine.core.values import ProgressReporter, no_progress
from deskwire.engine.events.types import AGENTS, CATALOG, ERASURE, EXTENSIONS, REGISTRY, RESPONSES
from deskwire.storage.check.rule import CheckRule, rule
from deskwire.storage.check.sign_ins import SIGN_IN_RULES
from deskwire.storage.check.threads import THREAD_RULES
from deskwire.storage.connection import Connection
from deskwire.storage.dialect import Dialect, differing, literals, postgres_json
from deskwire.storage.refolding import TAGGED
from deskwire.storage.tables.conversations.attributes import ATTRIBUTES_DIFFER
from deskwire.storage.tables.events.events import ADDED
from deskwire.storage.tables.reports.reports import AGENT, AUTHOR

SHOWN: Final = 20
"""Maximum violations reported of one rule."""


class CheckProblem(Struct, frozen=True):
    """A violation; its `code` is stable."""

    code: str
    message: str


class CheckReport(Struct):
    """The result of a check; the installation is sound if there are no problems. `rows` are counted by table, `files` are uploads."""

    problems: list[CheckProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    files: int = 0


_SPANS: Final = (
    "SELECT conversation, min(sequence) AS first, max(sequence) AS last, count(sequence) AS stored FROM events "
    "WHERE conversation > 0 GROUP BY conversation"
)

_AUDITED: Final = " UNION ALL ".join(
    f"SELECT id, created_at, '{action}' AS action FROM {table}"
    for table, action in (
        ("organisations", "organisation.created"),
        ("projects", "project.created"),
        ("users", "account.created"),
        ("server_keys", "key.created"),
        ("machine_credentials", "credential.created"),
        ("invitations", "invitation.created"),
        ("roles", "role.created"),
        ("endpoints", "webhook.created"),
        ("channels", "channel.created"),
    )
)


_LEVEL: Final = f"CASE WHEN type IN ({literals(*AGENTS, ERASURE)}) THEN 1 WHEN type IN ({literals(*CATALOG)}) THEN 0 ELSE 2 END"
_UNDELIVERED: Final = literals(
    *(name for name in REGISTRY if name not in CATALOG and name not in EXTENSIONS), ERASURE
)
_SETTLED_MS: Final = 3_600_000
"""A margin for objects created at about the start of the trail or of its retention."""

_NEVER_PRUNED: Final = differing(
    sqlite="(SELECT pruned_id FROM event_window) IS NULL",
    postgres="(SELECT h.pruned_id FROM project_heads h WHERE h.project = c.project) IS NULL",
)
_WITHIN: Final = differing(sqlite="1", postgres="position >> 40")
"""The scope of the order of events: the installation, or a project."""
_TAGS_DIFFER: Final = differing(
    sqlite="SELECT c.id, c.tags, t.found FROM conversations c LEFT JOIN (SELECT conversation, json_group_array(tag) AS found "
    "FROM (SELECT conversation, tag FROM conversation_tags ORDER BY conversation, tag) GROUP BY conversation) t "
    "ON t.conversation = c.rowid WHERE c.tags <> coalesce(t.found, '[]')",
    postgres="SELECT c.id, c.tags, t.found FROM conversations c LEFT JOIN (SELECT conversation, "
    "'[' || string_agg(CAST(to_json(tag) AS text), ',' ORDER BY tag) || ']' AS found FROM conversation_tags "
    "GROUP BY conversation) t ON t.conversation = c.rowid WHERE c.tags <> coalesce(t.found, '[]')",
)
_TAG_KEYS: Final = " UNION ALL ".join(
    f"SELECT '{holder}' AS holder, min({holder}) AS one, tag, folded FROM {holder}_tags GROUP BY tag, folded"
    for holder, _ in TAGGED
)


def _is_other_key(holder: str, one: int, tag: str, folded: str) -> bool:
    return tag_key(tag) != folded


_MESSAGE_OF_EVENT: Final = differing(
    sqlite="json_extract(CAST(e.body AS TEXT), '$.data.message.id')",
    postgres=f"trim(BOTH '\"' FROM CAST({postgres_json('e.body')} #> '{{data,message,id}}' AS text))",
)
_ROUTED_AHEAD: Final = differing(
    sqlite="SELECT c.id, j.key, j.value FROM conversations c, json_each(c.routed) j WHERE j.value > c.sequence",
    postgres="SELECT c.id, j.key, j.value FROM conversations c CROSS JOIN LATERAL json_each_text(CAST(c.routed AS json)) j "
    "WHERE CAST(j.value AS bigint) > c.sequence",
)
_NEVER_GIVEN: Final = differing(
    sqlite="position > (SELECT coalesce(max(e.position), 0) FROM events e) AND position > (SELECT spent_position FROM event_window)",
    postgres="position > (SELECT h.position FROM project_heads h WHERE h.project = c.project)",
)
_COUNTED_WRONG: Final = differing(
    sqlite="SELECT m.rowid FROM messages m LEFT JOIN message_times t "
    "ON t.project = m.project AND t.created_at = m.created_at AND t.message = m.rowid "
    "WHERE m.rowid <= (SELECT e.message FROM message_times_end e) AND m.internal = 0 AND (t.message IS NULL "
    f"OR t.conversation <> m.conversation OR t.author <> {AUTHOR} OR t.agent_id IS NOT {AGENT}) "
    "UNION ALL SELECT t.message FROM message_times t LEFT JOIN messages m ON m.rowid = t.message WHERE m.rowid IS NULL "
    "OR m.rowid > (SELECT e.message FROM message_times_end e) OR m.internal <> 0 OR m.project <> t.project OR m.created_at <> t.created_at "
    "UNION ALL SELECT e.message FROM message_times_end e WHERE e.message > (SELECT coalesce(max(m.rowid), 0) FROM messages m)",
    postgres="SELECT rowid FROM messages WHERE 1 = 0",  # it has an index in place of the table
)
_OF_PROJECT: Final = differing(
    sqlite=f"SELECT e.position, e.project FROM events e WHERE e.internal = 0 AND e.project > 0 AND e.position < {ADDED} "
    "AND NOT EXISTS (SELECT 1 FROM project_events l WHERE l.project = e.project AND l.position = e.position) "
    "UNION ALL SELECT l.position, l.project FROM project_events l WHERE NOT EXISTS "
    "(SELECT 1 FROM events e WHERE e.position = l.position AND e.project = l.project AND e.internal = 0)",
    postgres="SELECT position, project FROM events WHERE 1 = 0",  # it finds them by their positions
)

RULES: Final = (
    *THREAD_RULES,
    rule(
        "sequence_hole",
        "Conversation {} has stored events {} to {}, but only {} of them.",
        f"SELECT c.id, s.first, s.last, s.stored FROM ({_SPANS}) s JOIN conversations c ON c.rowid = s.conversation "
        "WHERE s.stored <> s.last - s.first + 1",
    ),
    rule(
        "sequence_start",
        "Conversation {} begins with event {}, although no event was ever pruned.",
        f"SELECT c.id, s.first FROM ({_SPANS}) s JOIN conversations c ON c.rowid = s.conversation "
        "WHERE s.first <> 1 AND {never_pruned}",
        never_pruned=_NEVER_PRUNED,
    ),
    rule(
        "sequence_behind",
        "Conversation {} says that its newest event is {}, and the log's is {}.",
        f"SELECT c.id, c.sequence, s.last FROM ({_SPANS}) s JOIN conversations c ON c.rowid = s.conversation "
        "WHERE s.last <> c.sequence",
    ),
    rule(
        "events_lost",
        "Conversation {} says that its newest event is {}, and the log has none, although no event was ever pruned.",
        "SELECT id, sequence FROM conversations c WHERE sequence > 0 "
        "AND {never_pruned} AND NOT EXISTS (SELECT 1 FROM events e WHERE e.conversation = c.rowid)",
        never_pruned=_NEVER_PRUNED,
    ),
    rule(
        "event_order",
        "Event {} stands behind {}, which has a larger id.",
        "SELECT id, earlier FROM (SELECT id, lag(id) OVER (PARTITION BY {within} ORDER BY position, id DESC) AS earlier FROM events) AS e "
        "WHERE id <= earlier",
        within=_WITHIN,
    ),
    rule(
        "event_of_nothing",
        "Event {} is of a conversation or contact that is not there (row {}).",
        f"SELECT id, conversation FROM events e WHERE conversation < {RESPONSES} "
        "AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.rowid = e.conversation) "
        "AND NOT EXISTS (SELECT 1 FROM contacts k WHERE k.rowid = -e.conversation)",
    ),
    rule(
        "event_of_no_ticket",
        "Event {} is of a ticket that is not there (row {}).",
        "SELECT id, ticket FROM events WHERE ticket IS NOT NULL AND ticket NOT IN (SELECT rowid FROM tickets)",
    ),
    rule(
        "event_shown",
        "Event {} ({}) is marked as internal to agents although its type is public, or the reverse.",
        f"SELECT id, type FROM events WHERE internal <> {_LEVEL}",
    ),
    rule(
        "events_of_project",
        "The event at position {} is not found among those of project row {}, or is found there and is none of them.",
        "{of_project_differ}",
        of_project_differ=_OF_PROJECT,
    ),
    rule(
        "internal_delivery",
        "Delivery {} is of event {}, which is for agents alone.",
        f"SELECT id, event_id FROM deliveries WHERE type IN ({_UNDELIVERED})",
    ),
    rule(
        "message_count",
        "Conversation {} says that it has {} messages, and has {}, numbered to {}.",
        "SELECT c.id, c.messages, count(m.number), max(m.number) FROM conversations c "
        "LEFT JOIN messages m ON m.conversation = c.rowid AND m.internal = 0 GROUP BY c.rowid "
        "HAVING count(m.number) <> c.messages OR coalesce(max(m.number) + 1, 0) <> c.messages",
    ),
    rule(
        "milestones_differ",
        "Conversation {} is {}, and was closed {} times and reopened {} times.",
        "SELECT id, status, closings, reopenings FROM (SELECT c.id, c.status, "
        "sum(CASE WHEN m.kind = 'closed' THEN 1 ELSE 0 END) AS closings, "
        "sum(CASE WHEN m.kind = 'reopened' THEN 1 ELSE 0 END) AS reopenings FROM conversations c "
        "LEFT JOIN milestones m ON m.conversation = c.rowid GROUP BY c.rowid) AS each_one "
        "WHERE closings - reopenings <> CASE WHEN status = 'CLOSED' THEN 1 ELSE 0 END",
    ),
    rule(
        "answer_differs",
        "Conversation {} was first answered by an agent at {} ms, and reports have {} answers, at {} ms.",
        "SELECT c.id, c.answered_at, count(m.rowid), max(m.at) FROM conversations c "
        "LEFT JOIN milestones m ON m.conversation = c.rowid AND m.kind = 'answered' GROUP BY c.rowid "
        "HAVING count(m.rowid) <> CASE WHEN c.answered_at IS NULL THEN 0 ELSE 1 END OR (c.answered_at IS NOT NULL AND max(m.at) <> c.answered_at)",
    ),
    rule(
        "rating_differs",
        "Conversation {} has the rating {}, and reports have {} of it, {}.",
        "SELECT c.id, c.rating, count(m.rowid), max(m.score) FROM conversations c "
        "LEFT JOIN milestones m ON m.conversation = c.rowid AND m.kind = 'rated' GROUP BY c.rowid "
        "HAVING count(m.rowid) <> CASE WHEN c.rating IS NULL THEN 0 ELSE 1 END OR max(m.score) <> c.rating",
    ),
    rule(
        "message_of_project",
        "Message {} is said to be of project row {}, and its conversation is of {}.",
        "SELECT m.id, m.project, c.project FROM messages m JOIN conversations c ON c.rowid = m.conversation "
        "WHERE m.project IS NULL OR m.project <> c.project",
    ),
    rule(
        "message_times_differ",
        "Reports count message row {} as something else than it is, twice, or not at all.",
        "{counted_wrong}",
        counted_wrong=_COUNTED_WRONG,
    ),
    rule(
        "tags_differ",
        "Conversation {} has the tags {}, and is found by {}.",
        "{tags_differ}",
        tags_differ=_TAGS_DIFFER,
    ),
    rule("tags_differ", "A {} (row {}) has the tag {}, and is found by {}.", _TAG_KEYS, _is_other_key),
    rule(
        "attributes_differ",
        "Conversation row {} has the attribute {} and is not found by it, or the other way round.",
        "{attributes_differ}",
        attributes_differ=ATTRIBUTES_DIFFER,
    ),
    rule(
        "contact_message_count",
        "Conversation {} says that its contact wrote {} of its messages, who wrote {}.",
        "SELECT c.id, c.contact_messages, count(m.number) FROM conversations c LEFT JOIN messages m "
        "ON m.conversation = c.rowid AND m.internal = 0 AND m.author_type = 'contact' GROUP BY c.rowid "
        "HAVING count(m.number) <> c.contact_messages",
    ),
    rule(
        "message_sequence",
        "Message {} says that its event has sequence {}, and it has {}.",
        "SELECT m.id, m.sequence, e.sequence FROM events e JOIN messages m "
        "ON m.id = {message_of_event} "
        "WHERE e.type = 'message.created' AND m.sequence IS NOT NULL AND m.sequence <> e.sequence",
        message_of_event=_MESSAGE_OF_EVENT,
    ),
    rule(
        "hour_of_activity",
        "Conversation {} stands in lists at hour {}, and its last activity was at {} ms.",
        "SELECT id, hour, activity FROM conversations WHERE hour <> activity / 3600000",
    ),
    rule(
        "activity_without_message",
        "Conversation {} was active last at {} ms, and has no message of that time.",
        "SELECT c.id, c.activity FROM conversations c WHERE c.activity <> coalesce(c.last_message_at, c.created_at) OR "
        "(c.last_message_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.conversation = c.rowid "
        "AND m.internal = 0 AND m.created_at = c.last_message_at))",
    ),
    rule(
        "seen_ahead",
        "User row {} has seen message {} of conversation {}, which is not there yet.",
        "SELECT s.user, s.number, c.id FROM agent_seen s JOIN conversations c ON c.rowid = s.conversation "
        "WHERE s.number >= c.messages OR s.contact_messages > c.contact_messages",
    ),
    rule(
        "mention_of_nothing",
        "User row {} is mentioned by {} in conversation {} of project row {}, which has no such note.",
        "SELECT g.user, g.message, c.id, g.project FROM mentions g JOIN conversations c ON c.rowid = g.conversation "
        "LEFT JOIN messages m ON m.id = g.message AND m.conversation = g.conversation AND m.mentions IS NOT NULL "
        "WHERE c.project <> g.project OR m.id IS NULL",
    ),
    rule(
        "follower_elsewhere",
        "User row {} follows conversation {}, which is said to be of project row {}, and is not.",
        "SELECT f.user, c.id, f.project FROM followers f JOIN conversations c ON c.rowid = f.conversation "
        "WHERE c.project <> f.project",
    ),
    rule(
        "draft_of_nothing",
        "A {} of user row {} in conversation {} is said to be of project row {}, and is not.",
        "SELECT CASE d.internal WHEN 0 THEN 'reply' ELSE 'note' END, d.author, c.id, d.project FROM drafts d "
        "JOIN conversations c ON c.rowid = d.conversation WHERE c.project <> d.project",
    ),
    rule(
        "held_and_sent",
        "Message {} of conversation {} was sent, and is held as well.",
        "SELECT h.id, c.id FROM held_messages h JOIN messages m ON m.id = h.id JOIN conversations c ON c.rowid = m.conversation",
    ),
    rule(
        "held_of_nothing",
        "Held message {} of conversation {} is said to be of project row {}, and is not.",
        "SELECT h.id, c.id, h.project FROM held_messages h JOIN conversations c ON c.rowid = h.conversation "
        "WHERE c.project <> h.project",
    ),
    rule(
        "routed_ahead",
        "Conversation {} says that endpoint row {} was sent event {}, which is not there yet.",
        "{routed_ahead}",
        routed_ahead=_ROUTED_AHEAD,
    ),
    rule(
        "delivery_to_nowhere",
        "Delivery {} is for an endpoint that is not there (row {}).",
        "SELECT d.id, d.endpoint FROM deliveries d LEFT JOIN endpoints e ON e.rowid = d.endpoint WHERE e.rowid IS NULL",
    ),
    rule(
        "delivery_of_nothing",
        "Delivery {} is pending, and its event is not stored.",
        "SELECT d.id FROM deliveries d LEFT JOIN events e ON e.position = d.event "
        "WHERE d.status = 'pending' AND e.position IS NULL",
    ),
    rule(
        "attempt_of_nothing",
        "Attempt {} is of a delivery that is not there (position {}).",
        "SELECT a.number, a.delivery FROM attempts a LEFT JOIN deliveries d ON d.position = a.delivery "
        "WHERE d.position IS NULL",
    ),
    rule(
        "consumer_ahead",
        "Consumer {} of {} has confirmed position {}, which was never given.",
        "SELECT consumer, channel, position FROM consumers c WHERE {never_given}",
        never_given=_NEVER_GIVEN,
    ),
    rule(
        "attached_to_nothing",
        "Upload {} says that a message or draft refers to it, and none does.",
        "SELECT u.id FROM uploads u LEFT JOIN attachments a ON a.upload = u.rowid WHERE u.attached = 1 AND a.upload IS NULL",
    ),
    rule(
        "upload_usage",
        "Project row {} is said to hold {} bytes of uploads, and holds {}.",
        "SELECT p.rowid, coalesce(w.bytes, 0), coalesce(h.bytes, 0) FROM projects p "
        "LEFT JOIN upload_usage w ON w.project = p.rowid "
        "LEFT JOIN (SELECT project, sum(size) AS bytes FROM (SELECT DISTINCT project, sha256, size FROM uploads) AS u "
        "GROUP BY project) h ON h.project = p.rowid WHERE coalesce(w.bytes, 0) <> coalesce(h.bytes, 0)",
    ),
    rule(
        "response_count",
        "Survey {} says that it has {} responses, and has {}.",
        "SELECT s.id, s.responses, count(r.rowid) FROM surveys s LEFT JOIN survey_responses r ON r.survey = s.rowid "
        "WHERE s.removed = 0 GROUP BY s.rowid HAVING count(r.rowid) <> s.responses",
    ),
    rule(
        "contact_words",
        "Contact row {} is found by {} words, and is not there, or in another project.",
        "SELECT w.contact, count(*) FROM contact_words w LEFT JOIN contacts k ON k.rowid = w.contact "
        "WHERE k.rowid IS NULL OR k.project <> w.project GROUP BY w.contact",
    ),
    rule(
        "session_of_nothing",
        "The session {} of a customer is live, and its contact is erased, merged or being so (row {}).",
        "SELECT s.id, s.contact FROM contact_sessions s LEFT JOIN contacts k ON k.rowid = s.contact "
        "WHERE s.ended_at IS NULL AND (k.rowid IS NULL OR k.erasing <> 0)",
    ),
    rule(
        "session_elsewhere",
        "The session {} is of a contact in project row {}, and its channel is in project row {}.",
        "SELECT s.id, k.project, c.project FROM contact_sessions s JOIN contacts k ON k.rowid = s.contact "
        "JOIN channels c ON c.rowid = s.channel WHERE k.project <> c.project",
    ),
    rule(
        "client_id_elsewhere",
        "The client id {} of contact row {} is of conversation {}, which is another contact's.",
        "SELECT i.client_id, i.contact, c.id FROM conversation_client_ids i JOIN conversations c ON c.rowid = i.conversation "
        "WHERE c.contact <> i.contact",
    ),
    rule(
        "client_ids_differ",
        "Conversation {} has the client id {}, and its contact's client ids say that it has {}.",
        "SELECT c.id, c.client_id, i.client_id FROM conversation_client_ids i "
        "JOIN conversations c ON c.rowid = i.conversation WHERE c.client_id IS NULL OR c.client_id <> i.client_id",
    ),
    rule(
        # After a merge, another conversation of the contact may be the one that is found.
        "client_id_of_nothing",
        "Conversation {} has the client id {}, by which its contact finds no conversation.",
        "SELECT c.id, c.client_id FROM conversations c WHERE c.client_id IS NOT NULL AND NOT EXISTS "
        "(SELECT 1 FROM conversation_client_ids i WHERE i.contact = c.contact AND i.client_id = c.client_id)",
    ),
    rule(
        # A unique index keeps this; a database whose index is lost is found all the same.
        "client_id_repeated",
        "Conversation {} has {} messages with the client id {}.",
        "SELECT c.id, m.messages, m.client_id FROM (SELECT conversation, client_id, count(*) AS messages FROM messages "
        "WHERE client_id IS NOT NULL GROUP BY conversation, client_id HAVING count(*) > 1) m "
        "JOIN conversations c ON c.rowid = m.conversation",
    ),
    rule(
        "received_ahead",
        "Conversation {} has {} messages, and its contact has received the one with index {} and seen that with {}.",
        "SELECT id, messages, contact_reached_index, contact_seen_index FROM conversations "
        "WHERE contact_reached_index >= messages OR contact_seen_index >= messages",
    ),
    *SIGN_IN_RULES,
    rule(
        "audit_missing",
        "The audit trail does not have that {} was made.",
        f"SELECT t.id FROM ({_AUDITED}) t WHERE t.created_at >= (SELECT since + {_SETTLED_MS} FROM audit_window) "
        "AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.object = t.id AND a.action = t.action)",
    ),
    rule(
        "audit_of_nothing",
        "Record {} of the audit trail is of an organisation that is not there (row {}).",
        "SELECT a.id, a.organisation FROM audit a LEFT JOIN organisations o ON o.rowid = a.organisation "
        "WHERE a.organisation IS NOT NULL AND o.rowid IS NULL",
    ),
)


def broken_rules(
    connection: Connection, dialect: Dialect, tell: ProgressReporter = no_progress
) -> Iterator[CheckProblem]:
    """Yield the violations in an up-to-date database, up to SHOWN of each rule.

    Args:
        tell: called with the progress.
    """
    for number, each in enumerate(RULES):
        tell("Checking the rules between rows", number, len(RULES))
        rows = _broken_rows(connection, each, each.query[dialect])
        for row in rows[:SHOWN]:
            yield CheckProblem(each.code, each.sentence.format(*row))
        if len(rows) > SHOWN:
            yield CheckProblem(each.code, f"There are more than {SHOWN} problems of this kind ({each.code}).")


def _broken_rows(connection: Connection, broken: CheckRule, query: str) -> list[Any]:
    """Return up to SHOWN + 1 violations of a rule."""
    is_broken = broken.is_broken
    if is_broken is None:
        return connection.execute(f"SELECT * FROM ({query}) AS broken LIMIT {SHOWN + 1}").fetchall()
    return list(islice((row for row in connection.execute(query) if is_broken(*row)), SHOWN + 1))
