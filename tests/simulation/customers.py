"""The judge of customers: their messages, their sessions, and the events on their streams.

It receives each commit when it is made, and each answer and event when a browser has it. At every audit it reads the database
itself. The lists of visible fields are its own, so that a field that the program lists by mistake is found.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

import orjson
import trio

from deskwire.engine.events.log import NO_EVENT_ID
from deskwire.engine.ports import Commit
from tests.simulation.ledger import Ledger

SAID: Final = "said-{:06d}-"
"""Beginning of a customer's text; no such text begins another one."""
ENDED_S: Final = 1.0
"""The most that a stream continues after the end of its session."""
_PRUNING_S: Final = 2 * 86_400.0
"""A gap may come this much before an event is pruned: retention runs once a day at most."""

_SEEN: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"id", "type", "createdAt", "sequence", "data"}),
    "data": frozenset(
        {
            *("conversation", "message", "step", "closedBy", "changed"),
            *("deletedMessageIds", "redactedMessageIds"),
        }
    ),
    "conversation": frozenset(
        {
            *("id", "clientId", "title", "status", "closed", "closedBy", "unread", "assignee", "rating"),
            *("ratingComment", "lastMessageAt", "lastMessage", "createdAt", "updatedAt", "closedAt"),
            *("sequence", "channelId"),
        }
    ),
    "assignee": frozenset({"type", "name"}),
    "message": frozenset(
        {
            *("id", "clientId", "conversationId", "index", "author", "text", "attachments", "createdAt"),
            "redactedAt",
        }
    ),
    "author": frozenset({"type", "name", "self"}),
}
"""The fields that a customer may see, by the name of the object; objects without a name here are plain values."""


@dataclass(eq=False)
class Draft:
    """A message that a browser keeps until the service has stored or refused it.

    Args:
        thread: client id of its conversation.
        starts: whether it is the first message of the conversation.
        stored: id of the stored message, once an answer named it.
    """

    text: str
    client_id: str
    thread: str
    starts: bool
    stored: str = ""
    given_up: bool = False
    sending: bool = False


@dataclass(eq=False)
class Watch:
    """A browser's view of the events of its contact, over all its connections.

    Args:
        session: `cse_` id.
        last: position of the newest event that the browser has; None before it knows one.
        asked: position of the event after which the open connection was requested; None for one from now on.
    """

    user_id: str
    session: str
    cursor: str | None = None
    last: int | None = None
    asked: str | None = None
    greeted: bool = False


class CustomerJudge:
    """Receives commits, answers and events of streams; `wrong` is called with each broken promise."""

    def __init__(self, wrong: Callable[[str], None], ledger: Ledger, window_s: float) -> None:
        self.said = 0
        self.shown = 0
        self.upgrades = 0
        self.ended: dict[str, float] = {}
        """Time at which each session ended (s)."""
        self._wrong = wrong
        self._ledger = ledger
        self._window_s = window_s
        self._positions: dict[str, int] = {NO_EVENT_ID: 0}
        self._made_at: dict[int, float] = {}
        self._lanes: dict[int, int | None] = {}
        self._erased: set[int] = set()
        self._of: dict[str, list[int]] = defaultdict(list)
        self._drafts: dict[str, Draft] = {}

    # Commits

    def committed(self, commit: Commit) -> None:
        """Add the events of a commit that is on the disk, and drop those that it erased."""
        for event in commit.events:
            self._positions[event.id] = event.position
            self._made_at[event.position] = trio.current_time()
            self._lanes[event.position] = event.conversation
            if not event.internal and (user_id := _user_id(event.body)) is not None:
                self._of[user_id].append(event.position)
        if commit.erased:
            gone = {position for position, lane in self._lanes.items() if lane in commit.erased}
            self._erased |= gone

    def published(self, commit: Commit) -> None:
        """Note the sessions that end with a commit, before the server's parts learn about it."""
        for session in commit.sessions:
            self.ended.setdefault(session, trio.current_time())

    def recovered(self, connection: sqlite3.Connection) -> None:
        """Note the sessions that ended in commits of a crashed process."""
        ended = connection.execute("SELECT id FROM contact_sessions WHERE ended_at IS NOT NULL")
        for (session,) in ended:
            self.ended.setdefault(session, trio.current_time())

    # Answers to browsers

    def kept(self, draft: Draft) -> None:
        """Note that a browser shows a message as kept."""
        self.said += 1
        self._drafts[draft.client_id] = draft

    def stored(self, draft: Draft, message: Mapping[str, Any]) -> None:
        """Judge an answer that shows a message as stored."""
        if message["clientId"] != draft.client_id:
            self._wrong(f"{draft.client_id} is answered with {message['clientId']}")
        if draft.stored not in ("", message["id"]):
            self._wrong(f"{draft.client_id} is answered with {message['id']}, and was {draft.stored}")
        draft.stored = message["id"]

    def answered(self, session: str, began_at: float, status: int, what: str) -> None:
        """Judge an answer to a call that was made with the token of a session."""
        ended_at = self.ended.get(session, inf)
        if status < 400 and began_at > ended_at:
            self._wrong(f"{what} of {session} is answered {status}, and the session ended at {ended_at:.3f}")

    # Events of streams

    def position(self, event_id: str) -> int | None:
        """Return an event's position; None for one for agents that a crashed process stored."""
        return self._positions.get(event_id)

    def greeted(self, watch: Watch, hello: Mapping[str, Any]) -> None:
        """Judge the start of a connection, or the response of a long poll."""
        after, gap = hello["resumedAfter"], hello["gap"]
        watch.greeted = True
        if gap:
            self._check_gap(watch)
        elif watch.asked is not None and after != watch.asked:
            self._wrong(
                f"{watch.session} asked for the events after {watch.asked}, and resumes after {after}"
            )
        if gap or watch.asked is None:
            watch.cursor = hello["at"]
            # The log is empty once all events are pruned; none of them is owed.
            watch.last = self._pruned() if watch.cursor == NO_EVENT_ID else self._positions.get(watch.cursor)

    def received(self, watch: Watch, event_id: str, shown: Mapping[str, Any] | None) -> None:
        """Judge an event on a stream or in a long poll."""
        self.shown += 1
        position, of_user = self._positions.get(event_id), self._of[watch.user_id]
        if position is None or position not in of_user:
            self._wrong(f"{event_id} came to {watch.user_id}, and is none of its public events")
            return
        if watch.last is not None:
            if position <= watch.last:
                self._wrong(f"{position} came to {watch.session} after {watch.last}")
            if skipped := [p for p in self._after(watch) if p < position]:
                self._wrong(f"{position} came to {watch.session} without {skipped}")
        watch.cursor, watch.last = event_id, position
        if (trio.current_time() - self.ended.get(watch.session, inf)) > ENDED_S:
            self._wrong(f"{position} came to {watch.session}, which has ended")
        if shown is not None:
            self._check_shown(event_id, shown)

    def missing(self, watch: Watch) -> list[int]:
        """Return the public events of a contact that its open stream has not shown; an ended session is owed none."""
        return [] if watch.last is None or watch.session in self.ended else [*self._after(watch)]

    def _after(self, watch: Watch) -> Iterator[int]:
        assert watch.last is not None
        positions = self._of[watch.user_id]
        return (p for p in positions[bisect_right(positions, watch.last) :] if p not in self._erased)

    def _pruned(self) -> int:
        """Return the position of the newest event that retention may have pruned."""
        before = trio.current_time() - self._window_s + _PRUNING_S
        return max((position for position, at in self._made_at.items() if at < before), default=0)

    def _check_gap(self, watch: Watch) -> None:
        known = None if watch.asked is None else self._positions.get(watch.asked)
        if known is None:
            if watch.asked is None:
                self._wrong(f"{watch.session} asked for new events, and is told of a gap")
            return
        age_s = trio.current_time() - self._made_at.get(known, -inf)
        if known not in self._erased and age_s < self._window_s - _PRUNING_S:
            self._wrong(f"a gap without need for {watch.session} after {known}")

    def _check_shown(self, event_id: str, shown: Mapping[str, Any]) -> None:
        for place, name in _off_the_list("", shown):
            self._wrong(f"{event_id} shows the customer {place}.{name}")
        known = self._ledger.bodies.get(event_id)
        if known is not None and orjson.loads(known)["type"] != shown["type"]:
            self._wrong(f"{event_id} came as {shown['type']}")

    # Rows of the database

    def audit(self, connection: sqlite3.Connection, *, settled: bool) -> None:
        """Check that no message and no conversation is stored twice, and none is missing; once `settled`, nothing waits."""
        messages = {
            client_id: (message, conversation)
            for message, client_id, conversation in connection.execute(
                "SELECT m.id, m.client_id, c.id FROM messages m JOIN conversations c ON c.rowid = m.conversation "
                "WHERE m.client_id IS NOT NULL"
            )
        }
        self._audit_copies(connection)
        for draft in self._drafts.values():
            self._audit_draft(draft, messages.get(draft.client_id), connection, settled=settled)

    def _audit_copies(self, connection: sqlite3.Connection) -> None:
        """Check that each client id is of one message, and each one of a conversation of one conversation."""
        for what, table in (("messages", "messages"), ("conversations", "conversations")):
            rows = connection.execute(f"SELECT client_id FROM {table} WHERE client_id IS NOT NULL")
            for client_id, count in Counter(each for (each,) in rows).items():
                if count > 1:
                    self._wrong(f"{count} {what} have the client id {client_id}")
        texts = connection.execute("SELECT substr(text, 1, 12) FROM messages WHERE text GLOB 'said-*'")
        for text, count in Counter(each for (each,) in texts).items():
            if count > 1:
                self._wrong(f"{text} is stored {count} times")

    def _audit_draft(
        self, draft: Draft, found: tuple[str, str] | None, connection: sqlite3.Connection, *, settled: bool
    ) -> None:
        if draft.stored:
            if found is None:
                if self._threads(connection, draft):
                    self._wrong(f"{draft.client_id} was acknowledged, and is not there")
            elif found[0] != draft.stored:
                self._wrong(f"{draft.client_id} was acknowledged as {draft.stored}, and is {found[0]}")
        elif settled and not draft.given_up:
            self._wrong(f"{draft.client_id} was kept, and is neither stored nor refused")

    def _threads(self, connection: sqlite3.Connection, draft: Draft) -> int:
        """Return the number of stored conversations with the draft's client id."""
        (count,) = connection.execute(
            "SELECT count(*) FROM conversations WHERE client_id = ?", (draft.thread,)
        ).fetchone()
        return int(count)


def _off_the_list(place: str, value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the places and names of fields that no customer may see."""
    for name, inner in value.items():
        if name not in _SEEN[place]:
            yield place, name
        elif isinstance(inner, dict):
            named = "message" if name == "lastMessage" else name
            if named in _SEEN:
                yield from _off_the_list(named, inner)


def _user_id(body: bytes) -> str | None:
    """Return the `userId` of the contact that an event is about; None if it is about none."""
    data = orjson.loads(body)["data"]
    contact = data.get("conversation", data).get("contact")
    return None if contact is None else contact["userId"]
