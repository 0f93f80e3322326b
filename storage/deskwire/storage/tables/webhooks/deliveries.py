"""Deliveries to webhook endpoints, their attempts, and replays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.core.values import replace
from deskwire.engine.events.types import EXTENSIONS, StoredEvent, ticket_lane
from deskwire.engine.webhooks.delivery import (
    Attempt,
    Delivery,
    DeliveryStatus,
    OutageCounts,
    ReplayCounts,
    ReplayRange,
)
from deskwire.engine.webhooks.endpoint import disabled_reason
from deskwire.storage.dialect import Statement, differing, either
from deskwire.storage.tables.base import Changes, Queries
from deskwire.storage.tables.events.events import EVENT_COLUMNS, event_of
from deskwire.storage.tables.webhooks.delivery_log import FAILED

_DELIVERY_COLUMNS: Final = (
    "d.position, d.id, d.endpoint, d.lane, d.previous, d.attempts, d.due_at, d.created_at, d.planned_from, "
    "d.failing_since, d.redelivery_of IS NOT NULL, d.refusals"
)
_DELIVERY_WIDTH: Final = len(_DELIVERY_COLUMNS.split(", "))

_SELECTED: Final = f"SELECT {_DELIVERY_COLUMNS}, {EVENT_COLUMNS} FROM deliveries d"
_PENDING: Final = "JOIN events e ON e.position = d.event WHERE d.endpoint = ? AND d.status = 'pending'"
# All pending deliveries, redeliveries only, or other deliveries only: the index that SQLite would otherwise
# not use, and the condition.
_REDELIVERY_CHOICES: Final = {
    None: ("", ""),
    True: ("{indexed[deliveries_again]}", "AND d.redelivery_of IS NOT NULL"),
    False: ("", "AND d.redelivery_of IS NULL"),
}
_PENDING_IN_RANGE: Final = {
    which: either(
        f"{_SELECTED} {index} {_PENDING} AND d.position > ? AND d.position <= ? {condition} ORDER BY d.position LIMIT ?"
    )
    for which, (index, condition) in _REDELIVERY_CHOICES.items()
}
_PENDING_OF_OTHER_LANES: Final = either(
    f"{_SELECTED} {_PENDING} AND d.position > ? AND d.position <= ? AND (d.lane IS NULL OR d.lane <> ?) ORDER BY d.position LIMIT ?"
)
_RETRIES: Final = either(
    f"{_SELECTED} {{indexed[deliveries_planned]}} {_PENDING} AND d.planned_from IS NOT NULL "
    "AND CASE WHEN d.redelivery_of IS NOT NULL THEN d.position <= ? "
    "ELSE d.position <= ? AND NOT (d.position > ? AND d.position <= ?) END ORDER BY d.due_at LIMIT ?"
)
# Takes the values of `delivery_row`, and the day of the delivery's id if the table is partitioned by day.
INSERT_DELIVERY: Final = either(
    "INSERT INTO deliveries (position, id, endpoint, event, lane, previous, status, attempts, due_at, created_at, "
    "ended_at, reason, event_id, type, sequence, redelivery_of{and_day}) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?{and_mark})"
)

_INSERT_ATTEMPT: Final = either(
    "INSERT INTO attempts (delivery, number, at, latency_ms, status, error, answer{and_day}) VALUES (?, ?, ?, ?, ?, ?, ?{and_mark}) "
    "ON CONFLICT (delivery, number{and_day}) DO UPDATE SET at = excluded.at, "
    "latency_ms = excluded.latency_ms, status = excluded.status, error = excluded.error, answer = excluded.answer"
)
_UPDATE_PLAN: Final = either(
    "UPDATE deliveries SET attempts = ?, due_at = ?, planned_from = ?, failing_since = ?, refusals = ? "
    "WHERE position = ? {of_day} AND status = 'pending'"
)
_END_AFTER_ATTEMPT: Final = either(
    "UPDATE deliveries SET status = ?, attempts = ?, ended_at = ?, reason = ?, missed = ? "
    "WHERE position = ? {of_day} AND status = 'pending'"
)
# A pending delivery is always in the partition of its id's day.
_END_WITHOUT_ATTEMPT: Final = either(
    "UPDATE deliveries SET status = ?, reason = ?, ended_at = ? WHERE position = ? {of_day} AND status = 'pending'"
)

_MARK_REDELIVERED: Final = either(
    "UPDATE deliveries SET redelivered_as = ?, missed = NULL WHERE position = ? {of_day}"
)
_CLEAR_MISSED: Final = either("UPDATE deliveries SET missed = NULL WHERE position = ? {of_day}")
_NEXT_MISSED: Final = either(
    "SELECT {keys}, event_id FROM deliveries WHERE endpoint = ? AND missed = 1 AND event > ? ORDER BY event LIMIT 1"
)
_SKIP_TOO_OLD: Final = (
    "UPDATE deliveries SET status = 'skipped', reason = ?, ended_at = ? WHERE created_at < ? AND position IN "
    "(SELECT position FROM deliveries WHERE endpoint = ? AND status = 'pending' ORDER BY position LIMIT ?)"
)
_SKIP_PENDING: Final = (
    "UPDATE deliveries SET status = 'skipped', reason = ?, ended_at = ? WHERE position IN "
    "(SELECT position FROM deliveries WHERE endpoint = ? AND status = 'pending' LIMIT ?)"
)
_KEYS_OF_ENDPOINT: Final = either("SELECT {keys} FROM deliveries WHERE endpoint = ? LIMIT ?")
_DELETE_LANE: Final = either("DELETE FROM deliveries WHERE lane = {hidden} RETURNING {keys}")
_EVENTS_OF_LANE: Final = either("SELECT event, {keys} FROM deliveries WHERE lane = {hidden}")
_ERASE_ANSWER: Final = either("UPDATE attempts SET answer = ? WHERE delivery = ? {of_day}")
# Selected by their lanes, because lanes have an index.
_DELETE_TICKET_LANES: Final = either(
    "DELETE FROM deliveries WHERE lane IN (SELECT :first + e.ticket FROM events e WHERE e.conversation = :subject "
    "AND e.ticket IS NOT NULL) AND event IN (SELECT e.position FROM events e WHERE e.conversation = :subject "
    "AND e.ticket IS NOT NULL) RETURNING {keys}"
)

_KEY_AT: Final = either("SELECT {keys} FROM deliveries WHERE position = ?")
_REDELIVERY_SOURCE: Final = either(
    f"SELECT d.endpoint, d.lane, d.previous, {EVENT_COLUMNS} "
    "FROM deliveries d JOIN events e ON e.position = d.event WHERE d.position = {hidden} {of_day_of[d]}"
)
_FAILED_KEYS: Final = either(
    "SELECT {keys_of[d]} FROM deliveries d JOIN events e ON e.position = d.event "
    f"WHERE {FAILED} AND d.event_id > ? ORDER BY d.event, d.position LIMIT ?"
)
_POSITION_MAX: Final = 2**63 - 1
# Deliveries whose attempts one statement deletes.
_BATCH_SIZE: Final = 5_000


def delivery_at(
    position: int,
    delivery_id: str,
    endpoint: int,
    event: StoredEvent,
    ordering_key: int | None,
    previous: int | None,
    at: int,
    *,
    redelivery: bool,
) -> Delivery:
    """Return a new delivery at this position, due at once."""
    assert not event.internal or event.type in EXTENSIONS, "events for agents only are not delivered"
    return Delivery(
        position, delivery_id, endpoint, event, ordering_key, previous, 0, at, at, redelivery=redelivery
    )


def delivery_row(delivery: Delivery, skipped: str | None, redelivery_of: int | None) -> tuple[object, ...]:
    """Return the values for INSERT_DELIVERY.

    Args:
        skipped: why the delivery ends as skipped; None for a pending delivery.
    """
    event, at = delivery.event, delivery.created_at
    status, ended = ("pending", None) if skipped is None else ("skipped", at)
    return (
        delivery.position,
        delivery.id,
        delivery.endpoint,
        event.position,
        delivery.ordering_key,
        delivery.previous,
        status,
        at,
        at,
        ended,
        skipped,
        event.id,
        event.type,
        event.sequence,
        redelivery_of,
    )


class DeliveryReads(Queries):
    """Queries on pending deliveries; see `ports.Reader`."""

    def pending_deliveries(
        self,
        endpoint: int,
        after: int,
        limit: int,
        *,
        upto: int | None = None,
        redeliveries: bool | None = None,
        other_than: int | None = None,
    ) -> Sequence[Delivery]:
        last = _POSITION_MAX if upto is None else upto
        if other_than is None:
            rows = self.conn.execute(
                _PENDING_IN_RANGE[redeliveries][self.dialect], (endpoint, after, last, limit)
            )
        else:
            rows = self.conn.execute(
                _PENDING_OF_OTHER_LANES[self.dialect], (endpoint, after, last, other_than, limit)
            )
        return [_delivery_of(row) for row in rows]

    def due_retries(
        self, endpoint: int, limit: int, *, upto: int, unread: tuple[int, int], redelivered_upto: int
    ) -> Sequence[Delivery]:
        rows = self.conn.execute(
            _RETRIES[self.dialect],
            (endpoint, redelivered_upto, upto, *unread, limit),
        )
        return [_delivery_of(row) for row in rows]

    def outage_counts(self, endpoint: int) -> OutageCounts:
        held = self.conn.execute(
            "SELECT count(*), min(d.created_at) FROM endpoints w JOIN deliveries d "
            "ON d.endpoint = w.rowid AND d.status = 'pending' "
            "WHERE w.rowid = ? AND (w.probe_at IS NOT NULL OR d.position <= w.held_upto)",
            (endpoint,),
        ).fetchone()
        missed = self.conn.execute(
            "SELECT count(*), min(created_at) FROM deliveries WHERE endpoint = ? AND missed = 1", (endpoint,)
        ).fetchone()
        return OutageCounts(*held, *missed)

    def outstanding(self, endpoint: int, bound: int) -> int:
        (count,) = self.conn.execute(
            "SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE endpoint = ? AND status = 'pending' LIMIT ?) AS waiting",
            (endpoint, bound),
        ).fetchone()
        return int(count)


class DeliveryWrites(Changes):
    """Changes of deliveries; see `ports.Transaction`."""

    deliveries: list[Delivery]

    @abstractmethod
    def add_delivery(
        self,
        endpoint: int,
        event: StoredEvent,
        ordering_key: int | None,
        previous: int | None,
        at: int,
        *,
        skipped: str | None = None,
        redelivery_of: int | None = None,
    ) -> Delivery:
        """Add a delivery at the next position, which the implementation assigns."""

    def insert_delivery(
        self,
        endpoint: int,
        event: StoredEvent,
        ordering_key: int | None,
        previous: int | None,
        at: int,
        *,
        skipped: str | None = None,
    ) -> Delivery:
        return self.add_delivery(endpoint, event, ordering_key, previous, at, skipped=skipped)

    def redeliver(self, position: int, at: int) -> Delivery | None:
        row = self.conn.execute(_KEY_AT[self.dialect], (position,)).fetchone()
        return None if row is None else self._repeat(row, at)

    def recover(self, endpoint: int, after: str, at: int, limit: int) -> int:
        found = self.conn.execute(_FAILED_KEYS[self.dialect], (endpoint, after, limit)).fetchall()
        for key in found:
            self._repeat(key, at)
        return len(found)

    def catch_up(self, endpoint: int, after: str, at: int, limit: int, *, beyond: int = 0) -> int:
        made = 0
        while made < limit:
            row = self.conn.execute(_NEXT_MISSED[self.dialect], (endpoint, beyond)).fetchone()
            if row is None:
                break
            *key, event_id = row
            if event_id > after and self._repeat(key, at) is not None:
                made += 1
            else:
                self.conn.execute(_CLEAR_MISSED[self.dialect], key)
        return made

    def prefetch_results(self, endpoint: int, deliveries: Sequence[Delivery]) -> None:
        pass  # only a batch on PostgreSQL prefetches

    def record_retry(self, planned: Delivery, attempt: Attempt) -> bool:
        changed = self.conn.execute(
            _UPDATE_PLAN[self.dialect],
            (
                planned.attempts,
                planned.due_at,
                planned.planned_from,
                planned.failing_since,
                planned.refusals,
                planned.position,
                *self.dialect.day_of(planned.id),
            ),
        ).rowcount
        if changed:
            self._insert_attempt(planned, attempt)
        return bool(changed)

    def record_end(
        self,
        delivery: Delivery,
        attempt: Attempt,
        status: DeliveryStatus,
        reason: str | None,
        *,
        missed: bool = False,
    ) -> bool:
        changed = self.conn.execute(
            _END_AFTER_ATTEMPT[self.dialect],
            (
                status,
                attempt.number,
                attempt.at + attempt.latency_ms,
                reason,
                1 if missed else None,
                delivery.position,
                *self.dialect.day_of(delivery.id),
            ),
        ).rowcount
        if changed:
            self._insert_attempt(delivery, attempt)
        return bool(changed)

    def end_delivery(self, delivery: Delivery, status: DeliveryStatus, reason: str, at: int) -> bool:
        changed = self.conn.execute(
            _END_WITHOUT_ATTEMPT[self.dialect],
            (status, reason, at, delivery.position, *self.dialect.day_of(delivery.id)),
        ).rowcount
        return bool(changed)

    def end_too_old(self, endpoint: int, before: int, reason: str, at: int, limit: int) -> int:
        values = (reason, at, before, endpoint, limit)
        return self.conn.execute(_SKIP_TOO_OLD, values).rowcount

    def close_deliveries(self, endpoint: int, at: int, limit: int) -> int:
        row = self.conn.execute(
            "SELECT status, status_reason FROM endpoints WHERE rowid = ?", (endpoint,)
        ).fetchone()
        match row:
            case ("disabled", reason):
                return self._skip_pending(endpoint, disabled_reason(reason), at, limit)
            case ("removed", _):
                return self._delete_some(endpoint, limit) or self._delete_endpoint(endpoint)
        return 0

    def erase_deliveries(self, conversation: int) -> None:
        """Delete all deliveries of a conversation's events, including pruned events."""
        self._delete_attempts(self.conn.execute(_DELETE_LANE[self.dialect], (conversation,)).fetchall())
        self.deliveries[:] = [
            delivery for delivery in self.deliveries if delivery.ordering_key != conversation
        ]

    def forget_answers_to(self, conversation: int, events: Sequence[StoredEvent]) -> None:
        """Erase the receivers' responses to these events of a conversation.

        Responses may quote the redacted events.
        """
        bodies = {event.position: event for event in events}
        self.deliveries[:] = [
            replace(delivery, event=bodies.get(delivery.event.position, delivery.event))
            for delivery in self.deliveries
        ]
        rows = self.conn.execute(_EVENTS_OF_LANE[self.dialect], (conversation,)).fetchall()
        for key in [key for event, *key in rows if event in bodies]:
            self.conn.execute(_ERASE_ANSWER[self.dialect], (b"", *key))

    def erase_ticket_deliveries(self, subject: int) -> None:
        """Delete the ticket event deliveries that are erased with this contact.

        They use the ticket's lane, so `erase_deliveries` does not find them.
        """
        values = {"subject": subject, "first": ticket_lane(0)}
        gone = self.conn.execute(_DELETE_TICKET_LANES[self.dialect], values).fetchall()
        self._delete_attempts(gone)
        removed = frozenset(row[0] for row in gone)
        self.deliveries[:] = [delivery for delivery in self.deliveries if delivery.position not in removed]

    def _repeat(self, key: Sequence[int], at: int) -> Delivery | None:
        """Store a pending delivery that repeats the one with this key.

        Returns None if its event is no longer stored.
        """
        row = self.conn.execute(_REDELIVERY_SOURCE[self.dialect], key).fetchone()
        if row is None:
            return None
        endpoint, ordering_key, previous, *event = row
        again = self.add_delivery(endpoint, event_of(event), ordering_key, previous, at, redelivery_of=key[0])
        self.conn.execute(_MARK_REDELIVERED[self.dialect], (again.position, *key))
        return again

    def _insert_attempt(self, delivery: Delivery, attempt: Attempt) -> None:
        """Store an attempt, replacing one with the same number."""
        self.conn.execute(
            _INSERT_ATTEMPT[self.dialect],
            (
                delivery.position,
                attempt.number,
                attempt.at,
                attempt.latency_ms,
                attempt.status,
                attempt.error,
                attempt.answer,
                *self.dialect.day_of(delivery.id),
            ),
        )

    def _skip_pending(self, endpoint: int, reason: str, at: int, limit: int) -> int:
        return self.conn.execute(_SKIP_PENDING, (reason, at, endpoint, limit)).rowcount

    def _delete_some(self, endpoint: int, limit: int) -> int:
        return self._delete(self.conn.execute(_KEYS_OF_ENDPOINT[self.dialect], (endpoint, limit)).fetchall())

    def _delete(self, keys: Sequence[Sequence[int]]) -> int:
        if keys:
            condition, values = self.dialect.among("position", keys)
            self.conn.execute(f"DELETE FROM deliveries WHERE {condition}", values)
            self._delete_attempts(keys)
        return len(keys)

    def _delete_attempts(self, keys: Sequence[Sequence[int]]) -> None:
        """Delete the attempts of deleted deliveries.

        Deliveries must be deleted first: another node may be recording an attempt, and deleting its delivery
        waits for that.
        """
        for start in range(0, len(keys), _BATCH_SIZE):
            condition, values = self.dialect.among("delivery", keys[start : start + _BATCH_SIZE])
            self.conn.execute(f"DELETE FROM attempts WHERE {condition}", values)

    def _delete_endpoint(self, endpoint: int) -> int:
        self.conn.execute("DELETE FROM endpoints WHERE rowid = ?", (endpoint,))
        return 0


def _delivery_of(row: Sequence[Any]) -> Delivery:
    position, delivery_id, endpoint, ordering_key, previous, attempts, due_at, created_at, *rest = row[
        :_DELIVERY_WIDTH
    ]
    planned_from, failing_since, redelivery, refusals = rest
    return Delivery(
        position,
        delivery_id,
        endpoint,
        event_of(row[_DELIVERY_WIDTH:]),
        ordering_key,
        previous,
        attempts,
        due_at,
        created_at,
        planned_from,
        failing_since,
        bool(redelivery),
        refusals,
    )


_SEQUENCE_MAX: Final = (1 << 63) - 1
_EVENT_OFFSET: Final = 3
_IN_REPLAY: Final = "e.conversation = :conversation AND e.internal = 0 AND e.sequence >= :first AND e.sequence <= :last AND e.type IN ({types})"
# The sequence of the last event of a batch. Without this limit, each batch would read the deliveries of all
# later batches.
_PART_END: Final = f"(SELECT max(p.sequence) FROM (SELECT e.sequence FROM events e WHERE {_IN_REPLAY} ORDER BY e.sequence LIMIT :limit) AS p)"


def _newest_deliveries(last: str) -> Statement:
    """Return SQL for the newest delivery of each of the conversation's events.

    Args:
        last: SQL for the last sequence to include.
    """
    deliveries = f"FROM deliveries d WHERE d.lane = :conversation AND d.sequence >= :first AND d.sequence <= {last} AND d.endpoint = :endpoint"
    return differing(
        # With max(), SQLite takes the other columns from the row with the maximum.
        sqlite=f"(SELECT d.sequence, max(d.position) AS position, d.status, 0 AS day {deliveries} GROUP BY d.sequence) AS n",
        postgres=f"(SELECT DISTINCT ON (d.sequence) d.sequence, d.position, d.status, d.day {deliveries} "
        "ORDER BY d.sequence, d.position DESC) AS n",
    )


_COUNT_REPLAY: Final = either(
    "SELECT count(*), count(CASE WHEN n.status = 'pending' THEN 1 END) FROM events e LEFT JOIN {newest} "
    "ON n.sequence = e.sequence WHERE {wanted}",
    newest=_newest_deliveries(":last"),
    wanted=differing(sqlite=_IN_REPLAY, postgres=_IN_REPLAY),
)
_COUNT_NOT_STORED: Final = (
    "SELECT count(*) FROM deliveries d WHERE d.lane = :conversation AND d.sequence >= :first AND d.sequence <= :last "
    "AND d.endpoint = :endpoint AND d.redelivered_as IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM events e WHERE e.position = d.event)"
)
_LIST_REPLAY: Final = either(
    f"SELECT n.status, n.position, n.day, {EVENT_COLUMNS} FROM events e LEFT JOIN {{newest}} ON n.sequence = e.sequence "
    "WHERE {wanted} ORDER BY e.sequence LIMIT :limit",
    newest=_newest_deliveries(_PART_END),
    wanted=differing(sqlite=_IN_REPLAY, postgres=_IN_REPLAY),
)
_PREVIOUS_SEQUENCE: Final = (
    "SELECT coalesce(max(sequence), 0) FROM deliveries WHERE lane = ? AND endpoint = ? AND sequence < ?"
)


class ReplayReads(Queries):
    """Queries on the events of a replay; see `ports.Reader`."""

    def replayable(self, endpoint: int, conversation: int, wanted: ReplayRange) -> ReplayCounts:
        if not wanted.types:
            return ReplayCounts(0, 0, 0)
        sql, values = _replay_statement(_COUNT_REPLAY[self.dialect], endpoint, conversation, wanted)
        found, pending = self.conn.execute(sql, values).fetchone()
        bounds = {name: values[name] for name in ("endpoint", "conversation", "first", "last")}
        (gone,) = self.conn.execute(_COUNT_NOT_STORED, bounds).fetchone()
        return ReplayCounts(found - pending, pending, gone)


class ReplayWrites(DeliveryWrites):
    """Deliveries of replays; see `ports.Transaction`."""

    def replay(
        self, endpoint: int, conversation: int, wanted: ReplayRange, at: int, limit: int
    ) -> tuple[int, int | None]:
        if not wanted.types:
            return 0, None
        sql, values = _replay_statement(_LIST_REPLAY[self.dialect], endpoint, conversation, wanted)
        rows = self.conn.execute(sql, {**values, "limit": limit}).fetchall()
        made = sum(self._send_again(endpoint, conversation, row, at) for row in rows)
        return made, event_of(rows[-1][_EVENT_OFFSET:]).sequence if len(rows) == limit else None

    def _send_again(self, endpoint: int, conversation: int, row: Sequence[Any], at: int) -> bool:
        status, *newest = row[:_EVENT_OFFSET]
        if status == "pending":
            return False
        if status is not None:
            return self._repeat(self.dialect.key(*newest), at) is not None
        event = event_of(row[_EVENT_OFFSET:])
        (previous,) = self.conn.execute(
            _PREVIOUS_SEQUENCE, (conversation, endpoint, event.sequence)
        ).fetchone()
        self.insert_delivery(endpoint, event, conversation, previous, at)
        return True


def _replay_statement(
    template: str, endpoint: int, conversation: int, wanted: ReplayRange
) -> tuple[str, dict[str, Any]]:
    """Return a statement for the types of a replay, and its values."""
    names = {f"type{number}": name for number, name in enumerate(sorted(wanted.types))}
    values = {
        "endpoint": endpoint,
        "conversation": conversation,
        "first": wanted.first or 1,
        "last": _SEQUENCE_MAX if wanted.last is None else wanted.last,
        **names,
    }
    return template.format(types=", ".join(f":{name}" for name in names)), values
