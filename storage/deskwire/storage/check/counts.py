"""Row counts of an installation, equal for `backup`, `copy` and `check` on both databases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NOT_COUNTED: Final = frozenset(
    {
        # of the database itself, or of the nodes on it
        *("_sqlite_migrations", "schema_migrations", "installation", "nodes", "duties", "couriers", "lanes"),
        *("event_window", "project_heads", "project_events", "message_times", "message_times_end"),
        # derived from other rows: search indexes, and sort values of lists
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
        # files of uploads in the database, which are counted as files
        *("contents", "upload_parts"),
    }
)
"""Tables that only one of the two databases has, or that they fill on their own."""


def counted(rows: Mapping[str, int]) -> int:
    """Return the total of the rows in tables that every copy of an installation has."""
    return sum(count for table, count in rows.items() if table not in NOT_COUNTED)
