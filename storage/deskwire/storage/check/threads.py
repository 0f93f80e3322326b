"""Rules between the conversations whose messages one thread shows: merged ones and those that were split off."""

from __future__ import annotations

from typing import Final

from deskwire.storage.check.rule import CheckRule, rule
from deskwire.storage.dialect import Statement, differing

_OTHER_CONTACT: Final = (
    "({0}.contact <> {1}.contact AND NOT EXISTS "
    "(SELECT 1 FROM contacts k WHERE k.erasing IN (1, 2) AND k.rowid IN ({0}.contact, {1}.contact)))"
)
"""The condition that two conversations are of different contacts, of which none is being merged or erased."""
_MEMBERS: Final = "SELECT c.{0} UNION ALL SELECT s.{0} FROM conversations s WHERE s.merged_into = c.id"


def _never_asked(since: str) -> str:
    """Return the condition that no thread of `c` has a message of the contact of this time."""
    asked = f"m.internal = 0 AND m.author_type = 'contact' AND m.created_at = c.{since}"
    return " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM messages m WHERE m.{column} IN ({_MEMBERS.format(key)}) AND {asked})"
        for column, key in (("conversation", "rowid"), ("shown_in", "id"))
    )


def _named_differ(list_column: str, pointer: str) -> Statement:
    """Return the query for conversations whose list of others is not that of those which point to them."""
    query = (
        f"SELECT c.id, c.{list_column}, t.found FROM conversations c LEFT JOIN (SELECT {pointer} AS named, count(*) AS found "
        f"FROM conversations WHERE {pointer} IS NOT NULL GROUP BY {pointer}) t ON t.named = c.id "
        f"WHERE (c.{list_column} <> '[]' OR t.found IS NOT NULL) AND (json_array_length({{array}}) <> coalesce(t.found, 0) "
        "OR EXISTS (SELECT 1 FROM {elements} WHERE NOT EXISTS (SELECT 1 FROM conversations s "
        f"WHERE s.id = j.value AND s.{pointer} = c.id)))"
    )
    column = f"c.{list_column}"
    cast = f"CAST({column} AS json)"
    return differing(
        sqlite=query.format(array=column, elements=f"json_each({column}) j"),
        postgres=query.format(array=cast, elements=f"json_array_elements_text({cast}) AS j (value)"),
    )


THREAD_RULES: Final[tuple[CheckRule, ...]] = (
    rule(
        "merged_wrong",
        "Conversation {} is merged into {}, which is not there, another contact's or merged itself; or it is not closed.",
        "SELECT c.id, c.merged_into FROM conversations c LEFT JOIN conversations t ON t.id = c.merged_into "
        "AND t.project = c.project LEFT JOIN conversation_merges g ON g.conversation = c.rowid AND g.target = t.rowid "
        "WHERE c.merged_into IS NOT NULL AND (t.rowid IS NULL OR g.conversation IS NULL OR c.status <> 'CLOSED' "
        f"OR c.visible = 0 OR t.merged_into IS NOT NULL OR c.merged <> '[]' OR {_OTHER_CONTACT.format('c', 't')})",
    ),
    rule(
        "merged_differ",
        "Conversation {} says that it shows the messages of {}, and {} conversations are merged into it.",
        "{differ}",
        differ=_named_differ("merged", "merged_into"),
    ),
    rule(
        "split_wrong",
        "Conversation {} was split off from {}, which is not there or another contact's.",
        "SELECT c.id, c.split_from FROM conversations c LEFT JOIN conversations o ON o.id = c.split_from "
        "AND o.project = c.project WHERE c.split_from IS NOT NULL "
        f"AND (o.rowid IS NULL OR {_OTHER_CONTACT.format('c', 'o')})",
    ),
    rule(
        "splits_differ",
        "Conversation {} says that {} were split off from it, and {} conversations were.",
        "{differ}",
        differ=_named_differ("split_into", "split_from"),
    ),
    rule(
        "split_message_wrong",
        "Message {} is shown in {}, which was not split off from its conversation.",
        "SELECT m.id, m.shown_in FROM messages m JOIN conversations o ON o.rowid = m.conversation "
        "LEFT JOIN conversations c ON c.id = m.shown_in "
        "WHERE m.shown_in IS NOT NULL AND (c.split_from IS NULL OR c.split_from <> o.id)",
    ),
    rule(
        "waiting_for_nothing",
        "Conversation {} is said to wait since {}, and is closed or has no message of the contact of that time.",
        "SELECT c.id, c.waiting_since FROM conversations c WHERE c.waiting_since IS NOT NULL "
        f"AND (c.status = 'CLOSED' OR ({_never_asked('waiting_since')}))",
    ),
    rule(
        "no_answer_to_nothing",
        "Conversation {} is marked as needing no answer since {}, and waits or has no message of the contact of that time.",
        "SELECT c.id, c.no_answer_needed_since FROM conversations c WHERE c.no_answer_needed_since IS NOT NULL "
        f"AND (c.waiting_since IS NOT NULL OR ({_never_asked('no_answer_needed_since')}))",
    ),
)
