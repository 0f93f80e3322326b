"""The rules of webhooks, compared with the server's posts and the receivers' requests (contract 6, decisions 6).

Posts are observed where the server writes them, so that no check depends on whether they arrive.
"""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final
from weakref import WeakSet

import orjson
import trio

from deskwire.engine.events.types import matches
from deskwire.engine.ports import Commit
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitBreaker
from tests.simulation.ledger import Ledger, gone
from tests.simulation.network import Link
from tests.simulation.peers.receiver import Answer, Receiver

PROMPT_S: Final = 8.0
"""The time within which a healthy receiver is sent the first attempt, regardless of other receivers."""

HEARD_S: Final = 5.0
"""The time within which each node knows a rotated secret; until then it may sign with the previous one."""

_UNDER_WAY_S: Final = 5.0
"""An attempt that has begun may end although its conversation was erased in the meantime."""

_ATTEMPTS: Final = 4
_ENDPOINTS: Final = "SELECT rowid, id, project, events, status, url FROM endpoints WHERE status != 'removed'"
_OWED: Final = (
    "SELECT d.id FROM deliveries d JOIN endpoints e ON e.rowid = d.endpoint "
    "WHERE d.missed = 1 AND e.status = 'enabled' AND e.catch_up = 'automatic' "
    "AND e.last_success_at > d.ended_at + 60000"
)
"""Missed deliveries to endpoints that have answered with success a minute later."""

_MISSED: Final = (
    "SELECT d.id, d.endpoint FROM deliveries d JOIN endpoints e ON e.rowid = d.endpoint "
    "WHERE d.missed = 1 AND e.status = 'enabled' AND e.catch_up = 'automatic' AND d.ended_at > ?"
)
"""Missed deliveries that ended after a time, to endpoints that catch up automatically."""
_PROOF: Final = 20
"""The number of accepted deliveries that shows that a pause was requested for one event only."""
_CAUGHT_UP_S: Final = 86_400.0
"""Deliveries missed within this time are sent once their receiver is healthy, also to an otherwise idle endpoint."""

_ROWS: Final = "SELECT endpoint, event, status, reason, id FROM deliveries"
_PENDING: Final = (
    "SELECT endpoint, event, lane, id FROM deliveries WHERE status = 'pending' ORDER BY position"
)


@dataclass(frozen=True, slots=True)
class _Endpoint:
    rowid: int
    id: str
    project: int
    events: str
    status: str
    url: str

    def wants(self, project: int, kind: str) -> bool:
        return self.project == project and matches(frozenset(orjson.loads(self.events)), kind)


@dataclass(slots=True)
class _Due:
    """A delivery that must be sent to a healthy endpoint soon."""

    url: str
    lane: int | None
    published_at: float


class Mail:
    """Receives commits, posts and arrivals.

    Args:
        breaker: returns the circuit of an endpoint's worker, by its storage key; None if it is not served.
    """

    def __init__(
        self,
        wrong: Callable[[str], None],
        ledger: Ledger,
        log_s: float,
        breaker: Callable[[int], CircuitBreaker | None],
    ) -> None:
        self.posts = 0
        self._breaker = breaker
        self.secrets: dict[str, str] = {}
        self.rotated: dict[str, float] = {}
        self._wrong = wrong
        self._ledger = ledger
        self._log_s = log_s
        self._endpoints: dict[int, _Endpoint] = {}
        self._expected: dict[tuple[int, int], tuple[float, int | None]] = {}
        self._to: dict[str, _Endpoint] = {}
        self._made_at: dict[str, int] = {}
        self._again: set[str] = set()
        self._repeatable: set[str] = set()
        self._changed_at: dict[int, float] = {}
        self._erased: dict[int, float] = {}
        self._lane: dict[str, int | None] = {}
        self._taken: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._kept: WeakSet[Link] = WeakSet()
        """Connections on which a request was posted."""
        self._sent_on: dict[str, tuple[Link, bool]] = {}
        """The connection of each delivery's last post, and whether a request was posted on it before."""
        self._alone: dict[str, int] = {}
        """Deliveries that a receiver asked to wait, with the value of `_took` at that time."""
        self._took: Counter[int] = Counter()
        """The number of deliveries that each endpoint has accepted."""
        self._newest: dict[tuple[int, int, bool], tuple[int, str]] = {}
        self._due: dict[str, _Due] = {}

    # Deliveries to send

    def committed(self, commit: Commit, connection: sqlite3.Connection) -> None:
        """Judge a commit on the disk: each event has a row for each endpoint that exists before and after it."""
        before = self._endpoints
        self._endpoints = {row[0]: _Endpoint(*row) for row in connection.execute(_ENDPOINTS)}
        steady = [each for rowid, each in self._endpoints.items() if before.get(rowid) == each]
        made = self._made(connection, commit)
        for rowid in before.keys() | self._endpoints.keys():
            if before.get(rowid) != self._endpoints.get(rowid):
                self._begin_anew(rowid)
        now = trio.current_time()
        for conversation in commit.erased:
            self._erased.setdefault(conversation, float("inf"))
        for event in commit.events:
            self._lane[event.id] = event.conversation
            for endpoint in steady:
                if endpoint.status != "enabled" or not endpoint.wants(event.project, event.type):
                    continue
                if event.conversation in commit.erased:
                    continue
                if (endpoint.rowid, event.position) not in made:
                    self._wrong(f"event {event.position} has no delivery to {endpoint.url}")
                self._expected[endpoint.rowid, event.position] = (now, event.conversation)

    def _begin_anew(self, rowid: int) -> None:
        """Reset the state of an endpoint that was changed."""
        gone = {delivery for delivery, to in self._to.items() if to.rowid == rowid}
        self._attempts = {name: number for name, number in self._attempts.items() if name not in gone}
        self._repeatable -= gone
        self._newest = {where: last for where, last in self._newest.items() if where[0] != rowid}
        self._changed_at[rowid] = trio.current_time()

    def _made(self, connection: sqlite3.Connection, commit: Commit) -> set[tuple[int, int]]:
        first = commit.events[0].position if commit.events else 1 << 62
        rows = connection.execute(
            "SELECT endpoint, event, id FROM deliveries WHERE event >= ?", (first,)
        ).fetchall()
        self._to.update({row[2]: self._endpoints[row[0]] for row in rows if row[0] in self._endpoints})
        self._again |= {delivery.id for delivery in commit.deliveries if delivery.redelivery}
        for delivery in commit.deliveries:  # redeliveries are of earlier events
            if delivery.endpoint in self._endpoints:
                self._to[delivery.id] = self._endpoints[delivery.endpoint]
        return {(row[0], row[1]) for row in rows}

    def published(self, commit: Commit, healthy: set[str]) -> None:
        """Note that the senders know of a commit."""
        now = trio.current_time()
        for conversation in commit.erased:
            self._erased[conversation] = now
        self._due = {name: due for name, due in self._due.items() if due.lane not in commit.erased}
        for delivery in commit.deliveries:
            endpoint = self._endpoints.get(delivery.endpoint)
            self._made_at[delivery.id] = delivery.position
            if (
                not delivery.redelivery
                and endpoint is not None
                and endpoint.url in healthy
                and endpoint.status == "enabled"
            ):
                self._due[delivery.id] = _Due(endpoint.url, delivery.ordering_key, now)

    def forgive(self) -> None:
        """Expect no promptness for deliveries in flight, because the server restarts or its disk fails."""
        self._due.clear()

    def ended(self) -> None:
        """Note that the sending process has ended; the next one may repeat attempts that were not recorded."""
        self._attempts.clear()
        self._repeatable.clear()
        self._newest.clear()
        self._erased = dict.fromkeys(self._erased, trio.current_time())
        self.forgive()

    def overdue(self) -> list[str]:
        """Return deliveries to healthy receivers that were not sent in time."""
        late = trio.current_time() - PROMPT_S
        return [f"{name} to {due.url}" for name, due in self._due.items() if due.published_at < late]

    # Posts and arrivals

    def posting(self, receiver: Receiver, link: Link, data: bytes) -> None:
        """Judge bytes that the server begins to write on a connection to a receiver."""
        if not data.startswith(b"POST "):
            return
        head, _, body = data.partition(b"\r\n\r\n")
        pairs = (line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        headers = {name.lower(): value for name, value in pairs}
        envelope, delivery = orjson.loads(body), headers["service-delivery-id"]
        attempt, event_id = int(headers["service-attempt"]), envelope["id"]
        self.posts += 1
        stale = self._was_stale(delivery)
        self._sent_on[delivery] = (link, link in self._kept)
        self._kept.add(link)
        if due := self._due.pop(delivery, None):
            waited = trio.current_time() - due.published_at
            if waited > PROMPT_S:
                self._wrong(f"{receiver.host} waited {waited:.1f} s for {delivery}")
        self._ledger.check_body(event_id, body, delivery)
        rowid = self._to[delivery].rowid
        if trio.current_time() < self._changed_at.get(rowid, -1) + _UNDER_WAY_S:
            return  # attempts in progress are cancelled, and begin again
        breaker = self._breaker(rowid)
        probe = breaker is not None and not breaker.closed
        last = self._attempts.get(delivery, 0) - (stale or delivery in self._repeatable)
        if not last < attempt <= _ATTEMPTS:
            self._wrong(f"{delivery} has attempt {attempt} after {last}")
        self._attempts[delivery] = attempt
        if probe:
            self._repeatable.add(delivery)
        else:
            self._repeatable.discard(delivery)
        lane = self._lane.get(event_id)
        if lane is not None:
            self._check_erased(delivery, lane)
            if attempt == 1 and not probe and delivery not in self._again and delivery not in self._alone:
                held_upto = None if breaker is None else breaker.held_upto
                held = self._made_at.get(delivery, 0) <= (held_upto or 0)
                self._check_order(receiver, delivery, (rowid, lane, held), envelope["sequence"])

    def _was_stale(self, delivery: str) -> bool:
        """Return whether the last post went to a kept connection that has ended, which does not count as an attempt."""
        link, kept = self._sent_on.get(delivery, (None, False))
        return kept and link is not None and link.client.readable

    def _check_erased(self, delivery: str, lane: int) -> None:
        if self._erased.get(lane, float("inf")) < trio.current_time() - _UNDER_WAY_S:
            self._wrong(f"{delivery} is sent though its conversation is erased")

    def _check_order(
        self, receiver: Receiver, delivery: str, where: tuple[int, int, bool], sequence: int | None
    ) -> None:
        """Check the order of a conversation's first attempts; deliveries held by a circuit are ordered separately."""
        if sequence is not None:
            last, by = self._newest.get(where, (0, ""))
            if sequence < last:
                self._wrong(f"{receiver.host} is sent {sequence} ({delivery}) after {last} ({by})")
            self._newest[where] = (max(last, sequence), delivery)

    def arrived(self, receiver: Receiver, headers: dict[str, str], body: bytes, answer: Answer) -> None:
        """Judge a request that a receiver has, and is about to answer."""
        rowid = self._to[headers["service-delivery-id"]].rowid
        if answer == "taken":
            self._taken.add(headers["service-delivery-id"])
            self._took[rowid] += 1
        elif answer == "wait":  # it requests a pause, which uses up no attempt
            # It is sent again after those that arrived in the meantime (guide of webhooks).
            self._repeatable.add(headers["service-delivery-id"])
            self._alone.setdefault(headers["service-delivery-id"], self._took[rowid])
        endpoint = self._to[headers["service-delivery-id"]].id
        secret, since = self.secrets.get(endpoint), self.rotated.get(endpoint, -inf)
        if trio.current_time() < since + HEARD_S:
            secret = None  # the sender may be a node that does not know the rotation yet
        if secret is not None and not _signed(secret, headers["service-signature"], body):
            self._wrong(f"{headers['service-delivery-id']} is not signed with the secret of {receiver.host}")

    # Rows of the database

    def audit(self, connection: sqlite3.Connection, *, settled: bool = False) -> None:
        """Check that each event is delivered, pending or ended with a reason at each endpoint; once `settled`, none is pending."""
        rows = {(row[0], row[1]): row[2:] for row in connection.execute(_ROWS)}
        endpoints = {row[0]: _Endpoint(*row) for row in connection.execute(_ENDPOINTS)}
        kept_from = trio.current_time() - self._log_s
        erased = set(gone(connection, self._erased))
        for (rowid, event), (at, lane) in self._expected.items():
            row = rows.get((rowid, event))
            if row is None and rowid in endpoints and at > kept_from and lane not in erased:
                self._wrong(f"the delivery of event {event} to {endpoints[rowid].url} is lost")
        for status, reason, delivery in rows.values():
            if status == "delivered" and delivery not in self._taken:
                self._wrong(f"{delivery} is said to be delivered, and nobody has taken it")
            if status in ("dropped", "skipped") and not reason:
                self._wrong(f"{delivery} is {status} for no reason")
        if settled:
            self._audit_pending(connection)
            for (delivery,) in connection.execute(_OWED):
                self._wrong(f"{delivery} was dropped in an outage, and not sent once more after it")
            since = (trio.current_time() - _CAUGHT_UP_S) * 1000
            for delivery, rowid in connection.execute(_MISSED, (since,)):
                if self._has_to_wait(delivery, rowid):
                    continue  # the probe itself: the receiver asks for a pause at each attempt of this event
                self._wrong(f"{delivery} was missed, and its quiet endpoint was not probed with it")

    def _audit_pending(self, connection: sqlite3.Connection) -> None:
        """Check that the only pending deliveries are those whose receiver may want a pause of all, and later ones in their lanes."""
        held_up: set[tuple[int, int | None]] = set()
        for rowid, event, lane, delivery in connection.execute(_PENDING):
            if self._has_to_wait(delivery, rowid):
                held_up.add((rowid, lane))
            elif lane is None or (rowid, lane) not in held_up:
                self._wrong(f"{delivery} of event {event} to endpoint {rowid} is pending still")

    def _has_to_wait(self, delivery: str, rowid: int) -> bool:
        """Return whether a requested pause may mean the whole endpoint: it has accepted hardly any delivery since."""
        return self._took[rowid] < self._alone.get(delivery, -_PROOF) + _PROOF


def _signed(secret: str, header: str, body: bytes) -> bool:
    moment, *given = (part.partition("=")[2] for part in header.split(","))
    wanted = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return wanted in given
