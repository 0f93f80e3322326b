"""The ephemeral events of drafts and held messages, for their author's pages only.

Each event follows its commit. A message on the bus is too small for a draft, so it only names the change, and the other node
reads the present version from the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Protocol

import orjson
import structlog
import trio

from deskwire.engine.agents.presence import ephemeral_event
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.conversations.drafts import DraftReader, draft_view
from deskwire.engine.conversations.held_messages import HeldReader, held_view
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.conversations.writing_changes import (
    DraftChanged,
    HeldEnded,
    MessageHeld,
    WritingChange,
    WritingCommit,
)
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.events.event_stream import Ephemeral
from deskwire.engine.uploads.links import Links

log: Final = structlog.get_logger(__name__)

KIND: Final = "writing"
"""The kind of message on the bus."""

_QUEUE_MAX: Final = 256
"""Queued changes of other nodes. Further ones are dropped, and pages see them at their next read."""


class WritingReader(DraftReader, HeldReader, ConversationReader, Protocol):
    """Queries on drafts and held messages."""


class WritingEvents:
    """Sends events of drafts and held messages to their authors; `run` does so for the commits of other nodes.

    Args:
        bus: connects the nodes; None for a single node.
    """

    def __init__(
        self,
        store: Store[WritingReader, object],
        streams: AgentStreams,
        links: Links,
        clock: Clock,
        bus: Bus | None = None,
    ) -> None:
        self._store = store
        self._streams = streams
        self._links = links
        self._clock = clock
        self._bus = bus
        self._queue, self._queued = trio.open_memory_channel[Sequence[Any]](_QUEUE_MAX)
        if bus is not None:
            bus.receive(KIND, self._receive)

    def follow(self, commits: Commits[WritingCommit]) -> None:
        """Send events for commits from now on."""
        commits.subscribe(self._committed, "writing")

    async def run(self) -> None:
        """Send events for commits of other nodes, until cancelled."""
        async for project, author, *reference in self._queued:
            try:
                change = await self._store.read(InlineQuery(partial(_found, author, project, reference)))
            except Unavailable as error:
                log.warning("writing.not_read", reason=error.reason)
                continue
            if change is not None:
                self._streams.broadcast_locally(project, self._event(change), author)

    def _committed(self, commit: WritingCommit) -> None:
        for change in commit.writing:
            if self._streams.is_present(change.author, change.project):
                self._streams.broadcast_locally(change.project, self._event(change), change.author)
            if self._bus is not None:
                self._bus.send(KIND, orjson.dumps([change.project, change.author, *_reference(change)]))

    def _receive(self, payload: bytes) -> None:
        project, author, *reference = orjson.loads(payload)
        if self._streams.is_present(author, project):
            try:
                self._queue.send_nowait((project, author, *reference))
            except trio.WouldBlock:
                log.warning("writing.dropped", waiting=_QUEUE_MAX)

    def _event(self, change: WritingChange) -> Ephemeral:
        show = partial(self._links.shown, now=self._clock())
        conversation = change.conversation_id
        match change:
            case DraftChanged():
                mode = "note" if change.internal else "reply"
                draft = None if change.draft is None else draft_view(change.draft, show)
                return ephemeral_event(
                    "draft.updated", {"conversationId": conversation, "mode": mode, "draft": draft}
                )
            case MessageHeld():
                return ephemeral_event("message.held", {"heldMessage": held_view(change.held, show)})
            case HeldEnded():
                held = None if change.held is None else held_view(change.held, show)
                ended = {"id": change.message_id, "conversationId": conversation, "outcome": change.outcome}
                return ephemeral_event("message.held_ended", {**ended, "heldMessage": held})


def _reference(change: WritingChange) -> tuple[Any, ...]:
    """Return the key by which another node finds the change in the store."""
    match change:
        case DraftChanged():
            return "draft", change.conversation_id, change.internal
        case MessageHeld():
            return "held", change.conversation_id, change.held.id
        case HeldEnded():
            return "ended", change.conversation_id, change.message_id, change.outcome


def _found(
    author: int, project: int, reference: Sequence[Any], reader: WritingReader
) -> WritingChange | None:
    """Return the change with its present content; None for a held message that has ended, whose end has its own event."""
    kind, conversation_id, *rest = reference
    if kind == "draft":
        found = reader.conversation(project, conversation_id)
        if found is None:
            return None
        drafts = reader.drafts_in(author, found[0].rowid)
        draft = next((each for each in drafts if each.key.internal == rest[0]), None)
        return DraftChanged(author, project, conversation_id, rest[0], draft)
    held = reader.held_message(project, rest[0])
    if kind == "held":
        return None if held is None else MessageHeld(author, project, conversation_id, held)
    return HeldEnded(author, project, conversation_id, rest[0], rest[1], held)
