"""The way in which a dispatcher is told of deliveries that several nodes commit: none is missed, and their order stays.

A project's deliveries stand in one line without a hole (ADR 60). Own commits that are next in it go straight into the
workers' outboxes. All else only says how far the line goes: what an outbox has not been offered it reads from the table, by
endpoint and position, as after a start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import orjson
import structlog

from deskwire.engine.cluster.bus import Bus
from deskwire.engine.core.commits import Commits
from deskwire.engine.events.ports import HeadCommit, ProjectHead
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks.dispatcher import Dispatcher
from deskwire.engine.webhooks.ports import DeliveryCommit

log: Final = structlog.get_logger(__name__)

MESSAGE_KIND: Final = "redeliveries"
"""The kind of message that says which endpoints have redeliveries that another node has made."""
_MESSAGE_ENDPOINTS_MAX: Final = 150
"""Endpoints in one message at most: a number of up to 20 digits each."""


class FollowedCommit(DeliveryCommit, HeadCommit, Protocol):
    """The part of a commit that concerns deliveries, in a store that several nodes share."""


class DeliveryFollower:
    """Tells a dispatcher of the deliveries that this node and others commit; `Follower` knows it as its deliverer."""

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
        """Deliver what this node commits from now on, and tell other nodes of redeliveries."""
        commits.subscribe(self.commit_nowait, "advances", "erased", "rewritten")

    def commit_nowait(self, commit: FollowedCommit) -> None:
        """Take note of an own commit."""
        for before, after in commit.advances:
            if self._known.get(after.project) != before.deliveries:
                self._advance(after)  # first: what is offered to an outbox that is behind is read in its turn
            elif after.deliveries != before.deliveries:
                self._known[after.project] = after.deliveries
        self._dispatcher.commit_nowait(commit.deliveries, commit.erased, commit.rewritten)
        again = {delivery.endpoint: None for delivery in commit.deliveries if delivery.redelivery}
        elsewhere = [endpoint for endpoint in again if not self._dispatcher.delivers_to(endpoint)]
        for start in range(0, len(elsewhere), _MESSAGE_ENDPOINTS_MAX):
            self._bus.send(MESSAGE_KIND, orjson.dumps(elsewhere[start : start + _MESSAGE_ENDPOINTS_MAX]))

    def hinted(self, heads: Iterable[ProjectHead]) -> None:
        """See `follower.Deliverer`."""
        for head in heads:
            self._advance(head)

    def looked(self, heads: Iterable[ProjectHead], before: Mapping[int, int]) -> None:
        """See `follower.Deliverer`. Whatever has come since the last look, there may be redeliveries in it."""
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
        """Have outboxes read up to this head, if they do not know of it."""
        if head.project in self._dispatcher.projects and self._known.get(head.project, -1) < head.deliveries:
            self._known[head.project] = head.deliveries
            self._dispatcher.note_rows(head.project, head.deliveries)

    def _receive(self, payload: bytes) -> None:
        for endpoint in orjson.loads(payload):
            self._dispatcher.note_redeliveries(endpoint)
