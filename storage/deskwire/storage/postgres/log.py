"""Queries on the logs of projects, each of which has positions of its own: those of a project are `project << 40 | n`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deskwire.engine.core.ids import DAY_MS, day_of, id_before, is_id
from deskwire.engine.webhooks.outcome import NOT_STORED
from deskwire.storage.dialect import UNPLANNED
from deskwire.storage.postgres.dropping import (
    WITHOUT_EVENT,
    DayHeldUp,
    DayInUse,
    DayNotOwned,
    days_of,
    deliveries_of,
    drop_deliveries_of,
    drop_events_of,
    save_pruned,
)
from deskwire.storage.postgres.schema.days import ATTEMPTS, DELIVERIES, EVENTS, TODAY
from deskwire.storage.tables.base import Queries
from deskwire.storage.tables.events.events import EventWrites
from deskwire.storage.tables.webhooks.deliveries import DeliveryWrites

_BISECTED: Final = """
WITH RECURSIVE bisected (low, high) AS (
    SELECT h.project << 40, {high} FROM project_heads h WHERE h.project = :project
    UNION ALL
    SELECT CASE WHEN e.id IS NULL OR e.id <= :id THEN b.middle ELSE b.low END,
        CASE WHEN e.id IS NULL OR e.id <= :id THEN b.high ELSE e.position - 1 END
    FROM (SELECT low, high, (low + high + 1) / 2 AS middle FROM bisected WHERE low < high) AS b LEFT JOIN LATERAL
        (SELECT t.position, t.id FROM {table} t WHERE t.position <= b.middle AND t.position > CAST(:project AS bigint) << 40 {chosen}
        ORDER BY t.position DESC LIMIT 1) AS e ON true)
SELECT low FROM bisected WHERE low >= high
"""
"""The position up to which nothing is newer than an id, as ids grow with positions: everything up to `low` is not newer,
everything behind `high` is."""
_EVENT: Final = _BISECTED.format(high="h.position", table="events", chosen="")
_DAY: Final = f"CAST(:day AS int){UNPLANNED}"
_OF_DAY: Final = f"AND t.day IN (0, {_DAY})"

_DELIVERED_BEFORE: Final = _BISECTED.format(
    high="least(h.delivery, (SELECT CAST(:end AS bigint)))", table="deliveries", chosen=_OF_DAY
)
"""All of earlier days are older than the id, and all of later days newer, of which `end` is before the first."""

_END_OF_DAY: Final = f"""
SELECT min(position) - 1 FROM deliveries WHERE position > (SELECT CAST(:project AS bigint) << 40)
AND position < (SELECT (CAST(:project AS bigint) + 1) << 40) AND day > {_DAY}
"""
_DELIVERY: Final = (
    "SELECT n.position FROM (SELECT d.position, d.id FROM deliveries d WHERE d.position <= ("
    + _BISECTED.format(high="h.delivery", table="deliveries", chosen=_OF_DAY)
    + ") AND d.position > CAST(:project AS bigint) << 40 AND d.day IN (0, "
    + _DAY
    + ") ORDER BY d.position DESC LIMIT 1) AS n WHERE n.id = :id"
)
_OLD: Final = """
SELECT h.project, e.position, e.id, e.conversation IS NULL AND e.internal = 0 FROM project_heads h CROSS JOIN LATERAL
    (SELECT v.position, v.id, v.created_at, v.conversation, v.internal FROM {partition} v
    WHERE v.position > h.project << 40 AND v.position < (h.project + 1) << 40
    ORDER BY v.position LIMIT :limit) AS e
WHERE e.created_at < :older_than
AND EXISTS (SELECT 1 FROM events n WHERE n.position > e.position AND n.position < (h.project + 1) << 40) LIMIT :limit
"""
_OLD_DELIVERIES: Final = """
SELECT d.position, d.day FROM project_heads h CROSS JOIN LATERAL
    (SELECT v.position, v.day, v.created_at, v.status FROM {partition} v
    WHERE v.position > h.project << 40 AND v.position < (h.project + 1) << 40
    ORDER BY v.position LIMIT :limit) AS d
WHERE d.created_at < :older_than AND d.status <> 'pending' LIMIT :limit
"""
WANT_SCRUB: Final = "UPDATE event_window SET scrub_due = CASE scrub_due WHEN 0 THEN clock_ms() ELSE scrub_due END, erasures = erasures + 1"
"""`scrub_due` is the time of the oldest erasure that no vacuum has covered."""
_NO_DAY: Final = -1


class LogReads(Queries):
    """Queries on the log of a project as a whole."""

    def event_position(self, project: int, event_id: str) -> int:
        row = self.conn.execute(_EVENT, {"project": project, "id": event_id}).fetchone()
        return 0 if row is None else int(row[0])

    def event_window(self, project: int) -> tuple[str | None, str | None]:
        row = self.conn.execute(
            "SELECT pruned_id, last_id FROM project_heads WHERE project = ?", (project,)
        ).fetchone()
        return (None, None) if row is None else (row[0], row[1])

    def pruned_position(self, project: int) -> int:
        row = self.conn.execute(
            "SELECT pruned_position FROM project_heads WHERE project = ?", (project,)
        ).fetchone()
        return 0 if row is None else int(row[0])

    def last_event_position(self) -> int:
        (position,) = self.conn.execute("SELECT coalesce(max(position), 0) FROM project_heads").fetchone()
        return int(position)

    def delivery_position(self, project: int, delivery_id: str) -> int | None:
        if not is_id(delivery_id, "dlv"):
            return None
        values = {"project": project, "id": delivery_id, "day": day_of(delivery_id)}
        row = self.conn.execute(_DELIVERY, values).fetchone()
        return None if row is None else int(row[0])

    def delivery_position_before(self, project: int, at: int) -> int:
        return self.delivery_positions_before(project, [at])[0]

    def delivery_positions_before(self, project: int, times: Sequence[int]) -> list[int]:
        bounds = [id_before("dlv", at) for at in times]
        ends = {day: self._end_of_day(project, day) for day in dict.fromkeys(map(day_of, bounds))}
        return [self._delivered_before(project, bound, ends[day_of(bound)]) for bound in bounds]

    def _end_of_day(self, project: int, day: int) -> int | None:
        """Return the position before the first delivery of a later day."""
        (end,) = self.conn.execute(_END_OF_DAY, {"project": project, "day": day}).fetchone()
        return None if end is None else int(end)

    def _delivered_before(self, project: int, bound: str, end: int | None) -> int:
        values = {"project": project, "id": bound, "day": day_of(bound), "end": end}
        row = self.conn.execute(_DELIVERED_BEFORE, values).fetchone()
        return project << 40 if row is None else int(row[0])


class LogWrites(EventWrites, DeliveryWrites):
    """Changes of the logs of all projects."""

    def want_scrub(self) -> None:
        self.conn.execute(WANT_SCRUB)
        self.scrub_wanted = True

    def note_spent(self) -> None:
        self.want_scrub()  # no position is given again: the heads have them

    def prune_events(self, older_than: int, limit: int, at: int) -> int:
        """Drop the days that are over; if there is none, delete old rows that have no day. A dated row goes with its whole day."""
        (today,) = self.conn.execute(TODAY).fetchone()
        days = days_of(self.conn, EVENTS)
        past = [day for day in days if day < today]
        count, by_row = self._drop_days([day for day in past if (day + 1) * DAY_MS <= older_than], at)
        if count:
            return count
        standing = [day * DAY_MS for day in past if day not in by_row]
        by_row += [day for day in days if day >= today and day * DAY_MS < older_than]
        before = min([older_than, *standing])
        for partition in (EVENTS.undated, EVENTS.default, *map(EVENTS.partition, by_row)):
            count += self._prune_rows(partition, before, limit - count, at)
        return count

    def _drop_days(self, days: Sequence[int], at: int) -> tuple[int, list[int]]:
        """Drop days, oldest first, until one is held up; return the number of dropped events, and the days to delete by row."""
        count = 0
        for day in days:
            try:
                count += drop_events_of(self.conn, day, at)
            except DayHeldUp:
                break
            except DayNotOwned:
                return count, [*days]
        return count, []

    def _prune_rows(self, partition: str, older_than: int, limit: int, at: int) -> int:
        if limit <= 0:
            return 0
        sql = _OLD.format(partition=partition)
        rows = self.conn.execute(sql, {"older_than": older_than, "limit": limit}).fetchall()
        last: dict[int, tuple[int, str]] = {}
        for project, position, event_id, _ in rows:
            last[project] = max(last.get(project, (0, "")), (position, event_id))
        pruned = [(project, *newest) for project, newest in sorted(last.items())]
        for project, upto, _ in pruned:
            self._prune(partition, project, upto, older_than, at)
        if any(row[3] for row in rows):  # deletions, each with the user id of a contact
            self.want_scrub()
        save_pruned(self.conn, pruned)
        return len(rows)

    def prune_deliveries(self, older_than: int, limit: int) -> int:
        """Drop the days that are over; if there is none, delete old rows of no day, and of days that can't be dropped yet."""
        (today,) = self.conn.execute(TODAY).fetchone()
        stored = days_of(self.conn, DELIVERIES)
        past = sorted(day for day in {*stored, *days_of(self.conn, ATTEMPTS)} if day < today)
        count, by_row = self._drop_delivery_days(
            [day for day in past if (day + 1) * DAY_MS <= older_than], limit
        )
        if count:
            return count
        by_row += [day for day in stored if day >= today and day * DAY_MS < older_than]
        names = [DELIVERIES.partition(day) for day in by_row if day in stored]
        for partition in (DELIVERIES.undated, DELIVERIES.default, *names):
            values = {"older_than": older_than, "limit": limit - count}
            rows = self.conn.execute(_OLD_DELIVERIES.format(partition=partition), values).fetchall()
            count += self._delete(rows)
        return count

    def _drop_delivery_days(self, days: Sequence[int], limit: int) -> tuple[int, list[int]]:
        """Drop days, oldest first, up to some deliveries; return the number of these, and the days to delete by row."""
        sizes: dict[int, int] = {}
        count, by_row = 0, []
        for day in days:
            try:
                sizes[day] = deliveries_of(self.conn, day, limit)
            except DayInUse:
                by_row.append(day)
            if sum(sizes.values()) >= limit:
                break
        for day, size in sizes.items():
            try:
                count += drop_deliveries_of(self.conn, day, size, limit)
            except DayInUse:
                by_row.append(day)
            except DayHeldUp:
                break
            except DayNotOwned:
                return count, [*by_row, *[each for each in days if each >= day]]
        return count, by_row

    def _prune(self, partition: str, project: int, upto: int, older_than: int, at: int) -> None:
        self.conn.execute(
            f"DELETE FROM {partition} WHERE position > CAST(? AS bigint) << 40 AND position <= ? AND created_at < ?",
            (project, upto, older_than),
        )
        self.conn.execute(WITHOUT_EVENT, (NOT_STORED, at, upto, project, _NO_DAY))
