"""A model of the rows of one endpoint's deliveries, with queries and commits.

Commits are announced later, as between nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.queue.outbox import RowBatch
from tests.support.sockets.receivers import delivery


@dataclass
class Told:
    """The notification of a commit."""

    erased: frozenset[int]
    made: Sequence[Delivery]


@dataclass
class Table:
    """The stored rows; each change is a commit, announced later and in order.

    Attributes:
        pending: positions of deliveries still to be sent.
        missed: positions of deliveries dropped by an outage and to be sent again.
        held_upto: as stored with the endpoint.
    """

    rows: dict[int, Delivery] = field(default_factory=dict)
    pending: set[int] = field(default_factory=set)
    missed: set[int] = field(default_factory=set)
    held_upto: int | None = None
    untold: list[Told] = field(default_factory=list)
    commits: int = 0

    def commit(self, conversations: Iterable[int | None], now: int) -> None:
        """Make a delivery in each of these conversations."""
        self._tell(
            [self._insert(delivery(self._next(), conversation, due_at=now)) for conversation in conversations]
        )

    def redeliver(self, position: int, now: int) -> None:
        """Make a delivery that repeats this one."""
        of = self.rows[position]
        again = replace(delivery(self._next(), of.ordering_key, due_at=now), event=of.event, redelivery=True)
        self._tell([self._insert(again)])

    def erase(self, conversation: int, now: int) -> None:
        """Erase a conversation; the same commit makes the delivery of its deletion event."""
        gone = {at for at, row in self.rows.items() if row.event.conversation == conversation}
        self.pending -= gone
        self.missed -= gone
        deletion = delivery(self._next(), conversation, due_at=now)
        deletion = self._insert(replace(deletion, event=replace(deletion.event, conversation=None)))
        self._tell([deletion], frozenset({conversation}))

    def catch_up(self, limit: int, now: int) -> int:
        """Redeliver missed deliveries, oldest first; return their number."""
        chosen = sorted(self.missed)[:limit]
        for position in chosen:
            self.missed.discard(position)
            self.redeliver(position, now)
        return len(chosen)

    def untold_erasure(self, row: Delivery) -> bool:
        """Return whether the row was erased with its conversation but not announced yet."""
        return any(row.event.conversation in told.erased for told in self.untold)

    def read(self, batch: RowBatch) -> list[Delivery]:
        """Return the rows that the query for a batch finds now."""
        rows = [self.rows[position] for position in sorted(self.pending)]
        if batch.part == "retries":
            found = [row for row in rows if row.planned_from is not None and _may_be_retry(row, batch)]
            return sorted(found, key=lambda row: row.due_at)[: batch.limit]
        again = batch.part == "redeliveries"
        found = [row for row in rows if row.redelivery == again and batch.after < row.position <= batch.upto]
        return found[: batch.limit]

    def oldest(self, limit: int) -> list[Delivery]:
        """Return the rows that the query for a probe finds."""
        return [self.rows[position] for position in sorted(self.pending)[:limit]]

    def _next(self) -> int:
        return len(self.rows) + 1

    def _insert(self, row: Delivery) -> Delivery:
        self.rows[row.position] = row
        self.pending.add(row.position)
        return row

    def _tell(self, made: Sequence[Delivery], erased: frozenset[int] = frozenset()) -> None:
        self.untold.append(Told(erased, made))
        self.commits += 1


def _may_be_retry(row: Delivery, batch: RowBatch) -> bool:
    if row.redelivery:
        return row.position <= batch.after
    return row.position <= batch.upto and not batch.unread[0] < row.position <= batch.unread[1]
