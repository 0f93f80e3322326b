"""The number of an installation's rows, counted alike by `backup`, `copy` and `check` on both databases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NOT_COUNTED: Final = frozenset(
    {
        # of the database itself, or of the nodes on it
        *("_sqlite_migrations", "schema_migrations", "installation", "nodes", "duties", "couriers", "lanes"),
        *("event_window", "project_heads", "project_events", "message_times", "message_times_end"),
        # made of other rows: indexes of the search, values by which lists are found
        *(
            "search_changes",
            "search_source",
            "search_upkeep",
            "search_postings",
            "search_state",
            "search_words",
        ),
        *(
            "ticket_words",
            "ticket_search_config",
            "ticket_search_data",
            "ticket_search_docsize",
            "ticket_search_idx",
        ),
        "conversation_attributes",
        # uploads' files, where the database has them; they are counted as files
        *("contents", "upload_parts"),
    }
)
"""Tables that the two databases do not have in common, or fill by themselves."""


def counted(rows: Mapping[str, int]) -> int:
    """Return the number of rows in the tables that each copy of an installation has, given those of all tables."""
    return sum(count for table, count in rows.items() if table not in NOT_COUNTED)
