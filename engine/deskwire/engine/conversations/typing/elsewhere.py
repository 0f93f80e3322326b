"""Typists of a conversation that several nodes serve: one node keeps the time of each, the one that heard of it last.

All of it may be lost: then a `started` comes twice, or a `stopped` some seconds late, as it may (ADR 9, ADR 60).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import orjson
import trio

from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.conversations.facts import Closed, Deleted, Fact, MessagePosted, Moved
from deskwire.engine.conversations.typing.state import RENEWAL_S, TYPING_TIMEOUT_S, SetTyping

KIND: Final = "typists"
_KNOWN: Final = 10_000
"""Typists that are remembered; the oldest are forgotten first."""

Place = tuple[int, str, str]
"""Storage key of a project, id of a conversation, id of an agent."""


class TypistsElsewhere:
    """The typists whose time other nodes keep.

    Args:
        leave: called with one whose time is no longer kept here; with True if nobody else says that it has stopped.
    """

    def __init__(self, bus: Bus, leave: Callable[[int, str, str, bool], None]) -> None:
        self._bus = bus
        self._leave = leave
        self._known: dict[Place, float] = {}
        self._told: dict[Place, float] = {}
        bus.receive(KIND, self._hear)

    def note(self, project: int, conversation_id: str, command: SetTyping) -> None:
        """Take note that an agent who types, or has stopped, has said so to this node."""
        place = (project, conversation_id, command.agent.id)
        if not command.typing:
            self._end(place)
            return
        self._known.pop(place, None)
        now = trio.current_time()
        if self._told.get(place, 0.0) <= now:
            _remember(self._told, place, now + RENEWAL_S)
            self._send("here", place)

    def note_facts(self, project: int, conversation_id: str, facts: Iterable[Fact]) -> None:
        """Have those stopped whom this node's commit stops, wherever their time is kept."""
        if not self._known:
            return
        for fact in facts:
            if isinstance(fact, MessagePosted) and fact.message.author.type == "agent":
                self._end((project, conversation_id, fact.message.author.id or ""))
            elif isinstance(fact, Closed | Moved | Deleted):
                for place in [each for each in self._known if each[:2] == (project, conversation_id)]:
                    self._end(place)

    def _end(self, place: Place) -> None:
        self._told.pop(place, None)
        if self._known.pop(place, 0.0) > trio.current_time():
            self._send("over", place)

    def _send(self, what: str, place: Place) -> None:
        self._bus.send(KIND, orjson.dumps([what, *place]))

    def _hear(self, payload: bytes) -> None:
        what, *where = orjson.loads(payload)
        place: Place = tuple(where)
        if what == "here":
            self._told.pop(place, None)
            _remember(self._known, place, trio.current_time() + TYPING_TIMEOUT_S)
        else:
            self._known.pop(place, None)
        self._leave(*place, what == "over")


def _remember(places: dict[Place, float], place: Place, until: float) -> None:
    places.pop(place, None)
    places[place] = until
    if len(places) > _KNOWN:
        del places[next(iter(places))]
