"""Follows the deliveries that all nodes commit, without gaps and in order.

The deliveries of a project have consecutive positions (ADR 60). An own commit that continues them is enqueued
in the workers' outboxes directly. All other messages only announce the newest position, and an outbox reads
missing rows from the table by endpoint and position, as after a start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import orjson
import structlog

from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.core.commits import Commits
from deskwire.engine.events.ports import HeadCommit, ProjectHead
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.engine.webhooks.ports import DeliveryCommit

log: Final = structlog.get_logger(__name__)

# Kind of bus message that lists endpoints for which another node has made redeliveries.
MESSAGE_KIND: Final = "redeliveries"
# Endpoints per message; each is a number of up to 20 digits.
_MESSAGE_ENDPOINTS_MAX: Final = 150


class FollowedCommit(DeliveryCommit, HeadCommit, Protocol):
    """The deliveries of a commit, in a store that several nodes share."""


class DeliveryFollower:
    """Passes the deliveries committed by any node to a dispatcher.

    It is the deliverer of the `Follower`.
    """

    def __init__(self, dispatcher: Dispatcher, bus: Bus) -> None:
        self._dispatcher = dispatcher
        self._bus = bus
        self._known: dict[int, int] = {}
        self._polled: dict[int, int] = {}
        bus.receive(MESSAGE_KIND, self._receive)

    @property
    def positions(self) -> Mapping[int, int]:
        """See `follower.Deliverer`."""
        return {project: self._known.get(project, 0) for project in self._dispatcher.projects}

    def follow(self, commits: Commits[FollowedCommit]) -> None:
        """Subscribe to this node's commits; announce redeliveries to other nodes."""
        commits.subscribe(self.commit_nowait, "advances", "erased", "rewritten")

    def commit_nowait(self, commit: FollowedCommit) -> None:
        """Process a commit of this node."""
        for before, after in commit.advances:
            if self._known.get(after.project) != before.deliveries:
                # First: an outbox with missing rows must not take the new deliveries before them.
                self._advance(after)
            elif after.deliveries != before.deliveries:
                self._known[after.project] = after.deliveries
        self._dispatcher.commit_nowait(commit.deliveries, commit.erased, commit.rewritten)
        again = {delivery.endpoint: None for delivery in commit.deliveries if delivery.redelivery}
        of_other_nodes = [endpoint for endpoint in again if not self._dispatcher.delivers_to(endpoint)]
        for start in range(0, len(of_other_nodes), _MESSAGE_ENDPOINTS_MAX):
            self._bus.send(MESSAGE_KIND, orjson.dumps(of_other_nodes[start : start + _MESSAGE_ENDPOINTS_MAX]))

    def note_hints(self, heads: Iterable[ProjectHead]) -> None:
        """See `follower.Deliverer`."""
        for head in heads:
            self._advance(head)

    def note_heads(self, heads: Iterable[ProjectHead], before: Mapping[int, int]) -> None:
        """See `follower.Deliverer`.

        New rows since the last poll may include redeliveries.
        """
        served = self._dispatcher.projects
        for head in heads:
            project, upto = head.project, head.deliveries
            if upto < before[project]:
                log.error("delivery.went_back", project=project, position=upto)
                self._known[project] = upto
                self._dispatcher.restart_workers(project)
            elif self._polled.get(project) != upto:
                self._advance(head)
                self._dispatcher.note_rows(project, upto, again=True)
            self._polled[project] = upto
        for known in (self._known, self._polled):
            for project in known.keys() - served:
                del known[project]

    def forget(self, conversations: frozenset[int]) -> None:
        """See `follower.Deliverer`."""
        self._dispatcher.forget(conversations)

    def rewrite(self, events: Sequence[StoredEvent]) -> None:
        """See `follower.Deliverer`."""
        self._dispatcher.rewrite(events)

    def _advance(self, head: ProjectHead) -> None:
        """Announce rows up to this head to the outboxes, unless they know of them."""
        if head.project in self._dispatcher.projects and self._known.get(head.project, -1) < head.deliveries:
            self._known[head.project] = head.deliveries
            self._dispatcher.note_rows(head.project, head.deliveries)

    def _receive(self, payload: bytes) -> None:
        for endpoint in orjson.loads(payload):
            self._dispatcher.note_redeliveries(endpoint)
