"""Deliveries and attempts by day: the split of both tables, and the days of deliveries that are still to be made (ADR 104).

A pending delivery and its attempts always have the day of the delivery's id. So the recorder of a result knows the
partition, and a repeated attempt replaces the first one. Deliveries that had ended before the split have no day.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

from deskwire.engine.core.ids import DAY_MS, day_of, id_before
from deskwire.storage.postgres.schema.days import ATTEMPTS, DELIVERIES, split

_BATCH: Final = 5_000
_UNDATED: Final = f"""
SELECT d.position, d.id FROM endpoints e JOIN {DELIVERIES.undated} d ON d.endpoint = e.rowid AND d.status = 'pending'
WHERE d.id >= %s LIMIT %s
"""
_DATED: Final = id_before("dlv", DAY_MS)
"""Smaller ids are of day 0, which stands for no day."""

_DATE_DELIVERIES: Final = """
UPDATE deliveries SET day = m.day FROM unnest(%s::bigint[], %s::int[]) AS m (position, day)
WHERE deliveries.day = 0 AND deliveries.position = m.position
"""
_DATE_ATTEMPTS: Final = """
UPDATE attempts SET day = m.day FROM unnest(%s::bigint[], %s::int[]) AS m (position, day)
WHERE attempts.day = 0 AND attempts.delivery = m.position
"""


def split_deliveries(connection: psycopg.Connection[Any]) -> None:
    """Split both tables, then date the pending deliveries; a step of a migration, which may be cut off and run again.

    No older program may run beside it: it does not name the day, which the key of `attempts` has from then on.
    """
    split(DELIVERIES)(connection)
    split(ATTEMPTS)(connection)
    date_pending(connection)


def date_pending(connection: psycopg.Connection[Any]) -> None:
    """Move pending deliveries that have no day, with their attempts, to the partitions of the days of their ids."""
    while rows := connection.execute(_UNDATED, (_DATED, _BATCH)).fetchall():
        values = [position for position, _ in rows], [day_of(delivery_id) for _, delivery_id in rows]
        with connection.transaction():
            connection.execute(_DATE_DELIVERIES, values)
            connection.execute(_DATE_ATTEMPTS, values)
