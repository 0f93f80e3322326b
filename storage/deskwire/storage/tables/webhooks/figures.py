"""Counts of an endpoint's deliveries by time, from the ranges of their positions in one index."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, get_args

from deskwire.engine.webhooks.delivery import DeliveryStatus
from deskwire.engine.webhooks.figures import SAMPLE, Counts, Figures
from deskwire.storage.dialect import either
from deskwire.storage.tables.webhooks.delivery_log import DeliveryPlaces

_STATUSES: Final[Sequence[DeliveryStatus]] = get_args(DeliveryStatus)
_COUNTED: Final = either(
    "SELECT p.number, p.text, (SELECT count(*) FROM deliveries d WHERE d.endpoint = ? AND d.status = ? "
    "{in_span} AND d.position > p.number AND d.position <= CAST(p.text AS bigint)) FROM {spans} p"
)
"""The deliveries of a status in ranges of positions, each from behind its first one to its last.

Each range is counted by itself: grouping their rows would sort all of them, which took SQLite 3.9 s for a million, not 0.2.
"""
_LARGEST: Final = (1 << 63) - 1
_FOREVER_MS: Final = 1 << 48
_TOOK: Final = (
    "SELECT ended_at - created_at FROM deliveries WHERE endpoint = ? AND status = 'delivered' AND position > ? "
    "AND position <= ? ORDER BY position DESC LIMIT ?"
)


class DeliveryFigureReads(DeliveryPlaces):
    """Queries on deliveries by time; the methods are those of `ports.Reader`."""

    def delivery_figures(
        self, project: int, endpoint: int, starts: Sequence[int], until: int | None
    ) -> Figures:
        times = [*starts] if until is None else [*starts, until]
        bounds = self.delivery_positions_before(project, times)
        end = _LARGEST if until is None else bounds.pop()
        ranges = [(low, str(high)) for low, high in pairwise([*bounds, end])]
        spans = self.dialect.spanned(ranges, [*starts, _FOREVER_MS if until is None else until])
        counts = {status: self._deliveries_in(endpoint, status, spans) for status in _STATUSES}
        took = self.conn.execute(_TOOK, (endpoint, bounds[0], end, SAMPLE)).fetchall()
        return Figures(
            [
                Counts(at, {status: counts[status].get(part, 0) for status in _STATUSES})
                for at, part in zip(starts, ranges, strict=True)
            ],
            [max(0, ms) for (ms,) in took],
        )

    def dropped_since(self, project: int, endpoint: int, since: int, bound: int) -> int:
        (count,) = self.conn.execute(
            "SELECT count(*) FROM (SELECT 1 FROM deliveries WHERE endpoint = ? AND status = 'dropped' AND position > ? "
            "AND redelivered_as IS NULL LIMIT ?) AS dropped",
            (endpoint, self.delivery_position_before(project, since), bound),
        ).fetchone()
        return int(count)

    def _deliveries_in(
        self, endpoint: int, status: DeliveryStatus, spans: Sequence[Any]
    ) -> dict[tuple[int, str], int]:
        values = (endpoint, status, *spans)
        return {(low, high): count for low, high, count in self.conn.execute(_COUNTED[self.dialect], values)}
