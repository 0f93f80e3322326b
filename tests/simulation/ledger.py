"""The API's promises, compared with the database: nothing acknowledged is lost, nothing happens twice.

It receives each commit when it is made, and each answer when a client has it. After every restart, and at the end,
it reads the database itself.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

import orjson

from deskwire.engine.events.types import StoredEvent
from deskwire.engine.ports import Commit

MARK: Final = "mark-{:06d}-"
"""Beginning of the text that a request stores, to count its effects; no mark begins another one."""

_MARKED: Final = re.compile(rb"mark-\d{6}-")
UNDER_WAY_S: Final = 10.0
"""The time after a redaction's answer in which an operation that began before it may still show the text."""

HELD_S: Final = 170.0
"""An extra time for a frame that was sent earlier, and is held by a stopped process or network."""

PATIENCE_S: Final = 300.0
"""A request is not repeated within this time before its key may expire."""

_CONTACTS: Final = (
    "SELECT c.id, k.user_id, k.erasing = 3 AND t.erasing = 0 FROM conversations c JOIN contacts k ON k.rowid = c.contact "
    "LEFT JOIN contacts t ON t.rowid = k.merged_into"
)
"""Each conversation with its contact, and whether that was merged into one that is not being erased."""
_RECOVERED: Final = (
    "SELECT position, id, type, project, conversation, sequence, body FROM events "
    "WHERE internal = 0 AND position > ?"
)


@dataclass(eq=False)
class Wish:
    """An operation that a client wants, over all its requests.

    Args:
        mark: text that its effect carries, "" if its effect can't be counted.
        conversation: its conversation; None for one that creates a conversation, until it has an answer.
        takes_away: the mark of another wish's effect, which this one redacts or deletes.
        answers: bodies of the answers with status 200.
        made_at: the client's start time (s).
        carried_out: whether one of the answers was no replay.
    """

    method: str
    path: str
    body: dict[str, Any]
    key: str | None
    mark: str
    conversation: str | None
    takes_away: str = ""
    answers: list[bytes] = field(default_factory=list)
    made_at: float = 0.0
    carried_out: bool = False


def _again(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer as its replay shows it: a webhook's secret is shown in full only once."""
    return {**answer, "secret": answer["secret"][-4:]} if "secret" in answer else answer


class Ledger:
    """Receives wishes, answers and commits. `wrong` is called with each broken promise, `now` returns the time (s)."""

    def __init__(
        self, wrong: Callable[[str], None], now: Callable[[], float], event_window_s: float, kept_s: float
    ) -> None:
        self.events = 0
        self.replays = 0
        self.bodies: dict[str, bytes] = {}
        self._wrong = wrong
        self._now = now
        self._event_window_s = event_window_s
        self._kept_s = kept_s
        self._wishes: dict[str, Wish] = {}
        self._sequences: dict[str, int] = {}
        self._acknowledged: dict[str, int] = defaultdict(int)
        self._deleted: set[str] = set()
        self._promised_gone: set[str] = set()
        self._fading: set[str] = set()
        self._faded: dict[str, float] = {}
        self._former: dict[str, set[bytes]] = defaultdict(set)
        self._lanes: set[int] = set()
        self._contacts: dict[str, str] = {}
        self._merged: set[tuple[str, str]] = set()
        self._promised_merged: set[tuple[str, str]] = set()
        self._heard: dict[int, tuple[float, str | None]] = {}

    # Answers to clients

    def made(self, wish: Wish) -> None:
        """Note that a client begins with a wish."""
        wish.made_at = self._now()
        self._fading |= {wish.takes_away} - {""}
        if wish.mark:
            self._wishes[wish.mark] = wish

    def answered(self, wish: Wish, body: bytes, *, replayed: bool) -> None:
        """Judge an answer with status 200 that a client has."""
        if wish.key is not None:
            self._check_answer(wish, body, replayed)
        wish.answers.append(body)
        shown = orjson.loads(body)
        if wish.path.endswith("/merge"):
            self._promised_merged.add((wish.body["from"], shown["userId"]))
        if wish.takes_away:
            self._faded.setdefault(wish.takes_away, self._now())
        elif wish.method == "DELETE":
            self._promised_gone.add(shown["id"])
        elif "sequence" in shown and not replayed:
            known = self._acknowledged[shown["id"]]
            self._acknowledged[shown["id"]] = max(known, shown["sequence"])
        if wish.conversation is None and shown.get("id", "").startswith("cnv_"):
            wish.conversation = shown["id"]

    def still_kept(self, wish: Wish) -> bool:
        """Return whether the wish's key is still valid; after that the same request may be carried out again.

        The time counts from the client's start, because the request may have been carried out without an answer.
        """
        return self._now() < wish.made_at + self._kept_s - PATIENCE_S

    def _check_answer(self, wish: Wish, body: bytes, replayed: bool) -> None:
        self.replays += replayed
        faded_at = self._faded.get(wish.mark, inf) if replayed and wish.mark.encode() in body else inf
        if self._now() > faded_at + UNDER_WAY_S:
            self._wrong(f"{wish.method} {wish.path} is answered with {wish.mark} again, which was redacted")
        if wish.answers and self._now() < wish.made_at + self._kept_s:
            self._compare(wish, body, replayed)
        wish.carried_out = wish.carried_out or not replayed

    def _compare(self, wish: Wish, body: bytes, replayed: bool) -> None:
        if not replayed and wish.carried_out:
            self._wrong(f"{wish.method} {wish.path} was carried out again under its key {wish.key}")
        if _again(orjson.loads(body)) != _again(orjson.loads(wish.answers[0])):
            self._wrong(f"{wish.method} {wish.path} has another answer under its key {wish.key}")

    # Commits

    def committed(self, commit: Commit) -> None:
        """Judge a commit that is on the disk."""
        for event in commit.events:
            self._hear(event)
        for event in commit.rewritten:
            self._rewrite(event.id, event.body)

    def _rewrite(self, event_id: str, body: bytes) -> None:
        """Note an event that now shows less; operations in progress may still show its previous body."""
        known = self.bodies.get(event_id, body)
        if known != body:
            self._former[event_id].add(known)
            self.bodies[event_id] = body

    def check_body(self, event_id: str, body: bytes, what: str, held_s: float = 0.0) -> None:
        """Judge a body that has arrived: the event's own, or shortly after a rewrite its previous one.

        Args:
            held_s: the time it may have been on its way since it was sent.
        """
        if body != self.bodies.get(event_id) and body not in self._former[event_id]:
            self._wrong(f"{what} has a body that is not that of {event_id}")
        if found := _MARKED.search(body):
            faded_at = self._faded.get(found[0].decode())
            if faded_at is not None and self._now() > faded_at + UNDER_WAY_S + held_s:
                self._wrong(f"{what} shows {found[0].decode()}, which was redacted")

    def _hear(self, event: StoredEvent) -> None:
        newest = max(self._heard, default=0)
        if event.position <= newest:
            self._wrong(f"event {event.position} came after {newest}")
        data = orjson.loads(event.body)["data"]
        conversation: str | None = data.get("conversation", {}).get("id")
        self.events += 1
        if event.conversation is not None:
            self._lanes.add(event.conversation)
        self._heard[event.position] = (self._now(), conversation)
        self.bodies[event.id] = event.body
        if event.type == "contact.merged":
            self._merged.add((data["merged"]["userId"], data["contact"]["userId"]))
        if conversation is not None and "contact" in data["conversation"]:
            self._contacts[conversation] = data["conversation"]["contact"]["userId"]
        if event.type == "conversation.deleted":
            assert conversation is not None
            self._deleted.add(conversation)
        if event.sequence is None:
            return
        assert conversation is not None
        last = self._sequences.get(conversation, 0)
        if event.sequence != last + 1:
            self._wrong(f"{conversation} has {event.type} with sequence {event.sequence} after {last}")
        self._sequences[conversation] = event.sequence

    # Rows of the database

    def recovered(self, connection: sqlite3.Connection) -> Commit:
        """Return the commits that a crashed process made without publishing them."""
        newest = max(self._heard, default=0)
        events = [
            StoredEvent(*row) for row in connection.execute(f"{_RECOVERED} ORDER BY position", (newest,))
        ]
        self._lanes |= {event.conversation for event in events if event.conversation is not None}
        for event_id, body in connection.execute("SELECT id, body FROM events WHERE internal = 0").fetchall():
            self._rewrite(event_id, body)  # a rewrite that was committed, but not published
        return Commit(events, (), frozenset(gone(connection, self._lanes)))

    def audit(self, connection: sqlite3.Connection, *, settled: bool) -> None:
        """Check that nothing is missing and nothing stored twice; once `settled`, that everything has ended."""
        if (verdict := connection.execute("PRAGMA quick_check(3)").fetchall()) != [("ok",)]:
            self._wrong(f"the database is damaged: {verdict}")
        there = dict(connection.execute("SELECT id, sequence FROM conversations").fetchall())
        self._audit_events(connection)
        self._audit_conversations(there)
        self._audit_contacts(connection, settled=settled)
        rows = connection.execute("SELECT substr(text, 1, 12) FROM messages")
        titles = connection.execute("SELECT json_extract(attributes, '$.mark') FROM conversations")
        marks = Counter(mark for (mark,) in (*rows, *titles))
        for wish in self._wishes.values():
            self._audit_wish(wish, marks[wish.mark], there)

    def _audit_events(self, connection: sqlite3.Connection) -> None:
        stored = {position for (position,) in connection.execute("SELECT position FROM events")}
        kept_from = self._now() - self._event_window_s
        lost = [
            position
            for position, (at, conversation) in self._heard.items()
            if position not in stored and at > kept_from and conversation not in self._deleted
            if conversation is not None
        ]
        if lost:
            self._wrong(f"events {lost} are lost")

    def _audit_conversations(self, there: dict[str, int]) -> None:
        for conversation, sequence in self._sequences.items():
            if conversation in self._deleted:
                if conversation in there:
                    self._wrong(f"{conversation} was deleted and is there")
            elif there.get(conversation) != sequence:
                self._wrong(f"{conversation} is at {there.get(conversation)}, its events at {sequence}")
        for conversation, sequence in self._acknowledged.items():
            if conversation not in self._deleted and there.get(conversation, -1) < sequence:
                self._wrong(
                    f"{conversation} was acknowledged at {sequence}, and is at {there.get(conversation)}"
                )
        if back := self._promised_gone & there.keys():
            self._wrong(f"{sorted(back)} were deleted, and are there")

    def _audit_contacts(self, connection: sqlite3.Connection, *, settled: bool) -> None:
        for conversation, contact, was_left in connection.execute(_CONTACTS):
            if self._contacts.get(conversation) != contact:
                self._wrong(
                    f"{conversation} is {contact}'s, its events say {self._contacts.get(conversation)}'s"
                )
            if was_left:
                self._wrong(f"{conversation} was left with {contact}, who was merged")
        if lost := self._promised_merged - self._merged:
            self._wrong(f"merges {sorted(lost)} were acknowledged, and nobody was told")
        under_way = connection.execute("SELECT user_id FROM contacts WHERE erasing IN (1, 2)").fetchall()
        if settled and under_way:
            self._wrong(f"merges and erasures of {under_way} never end")

    def _audit_wish(self, wish: Wish, count: int, there: dict[str, int]) -> None:
        if count > 1:
            self._wrong(f"{wish.method} {wish.path} under its key {wish.key} was carried out {count} times")
        if count and wish.mark in self._faded:
            self._wrong(f"{wish.mark} was redacted, and is there")
        if wish.answers and not count and wish.conversation in there and wish.mark not in self._fading:
            self._wrong(f"{wish.method} {wish.path} was acknowledged, and {wish.mark} is not there")
        if wish.answers and wish.conversation not in there and wish.conversation not in self._deleted:
            self._wrong(f"{wish.conversation} was acknowledged, is not there, and was never deleted")

    def leftovers(self, files: bytes) -> list[str]:
        """Return marks of deleted conversations and redacted messages that the database's files still contain."""
        gone = [
            wish
            for wish in self._wishes.values()
            if wish.conversation in self._deleted or wish.mark in self._faded
        ]
        return [wish.mark for wish in gone if wish.mark.encode() in files]


def gone(connection: sqlite3.Connection, lanes: Iterable[int]) -> list[int]:
    """Return those of `lanes` (conversations, and contacts as negative numbers) that no longer exist."""
    there = {rowid for (rowid,) in connection.execute("SELECT rowid FROM conversations")}
    there |= {-rowid for (rowid,) in connection.execute("SELECT rowid FROM contacts WHERE erasing != 1")}
    return [lane for lane in lanes if lane not in there]
