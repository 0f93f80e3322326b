"""The judge of held messages: by all commits and answers, each is sent once, when it is due, or withdrawn.

It receives each commit when it is made, with the rows of held messages and drafts that exist after it, and each answer
when the agent gets it. After every restart, and at the end, it reads the database itself.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

import orjson

from deskwire.engine.ports import Commit

HELD: Final = "held-{:06d}-"
"""Beginning of the text of a held message; no such text begins another one."""
PROMPT_S: Final = 8.0
"""The most that a message is sent after its time, unless the server crashes or its disk fails."""

_TEXTS: Final = re.compile(r"held-\d{6}-")
_WAITING: Final = (
    "SELECT h.id, h.text, h.send_at, h.problem, c.id FROM held_messages h "
    "JOIN conversations c ON c.rowid = h.conversation"
)
_SENT: Final = "SELECT id, text FROM messages WHERE text GLOB 'held-*'"
_DRAFTS: Final = "SELECT text FROM drafts"


@dataclass(slots=True)
class Held:
    """A message that was stored as held.

    Args:
        send_at: time to send it (ms).
    """

    text: str
    send_at: int
    conversation: str


@dataclass(slots=True)
class _Stored:
    """The held messages, the sent ones and the texts of drafts in a database."""

    waiting: dict[str, Held] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    drafts: Counter[str] = field(default_factory=Counter)
    conversations: set[str] = field(default_factory=set)


class HeldMessages:
    """Receives commits and answers.

    Args:
        wrong: called with each broken promise.
        clock: the server's time, in milliseconds.
    """

    def __init__(self, wrong: Callable[[str], None], clock: Callable[[], int]) -> None:
        self.sent = 0
        self.back = 0
        self._wrong = wrong
        self._clock = clock
        self._known: dict[str, Held] = {}
        self._stored = _Stored()
        self._acknowledged: set[str] = set()
        self._hurried: set[str] = set()
        self._taken_back: set[str] = set()
        self._sent: Counter[str] = Counter()
        self._well_since_ms = -inf

    # Responses to the agent

    def held(self, message_id: str, conversation: str) -> None:
        """Record that a message was acknowledged as held; the commit that stored it can also have deleted its conversation."""
        self._acknowledged.add(message_id)
        if message_id not in self._known and conversation in self._stored.conversations:
            self._wrong(f"{message_id} was acknowledged as held, and is not stored")

    def hurried(self, message_id: str) -> None:
        """Record that the agent is about to ask for the message to be sent immediately."""
        self._hurried.add(message_id)

    def taken_back(self, message_id: str, draft: str) -> None:
        """Record that the message was acknowledged as withdrawn, with the text of its draft."""
        self._taken_back.add(message_id)
        if self._sent[message_id]:
            self._wrong(f"{message_id} was acknowledged as taken back, and was sent")
        if self._known[message_id].text not in draft:
            self._wrong(f"{message_id} was acknowledged as taken back, and its draft lacks it")

    def said_sent(self, message_id: str) -> None:
        """Check an answer that shows the message as sent."""
        if not self._sent[message_id]:
            self._wrong(f"{message_id} is said to be sent, and was not")

    # Commits

    def committed(self, commit: Commit, connection: sqlite3.Connection) -> None:
        """Judge a commit that is on the disk."""
        before, self._stored = self._stored, _stored(connection)
        for message_id, held in self._stored.waiting.items():
            self._known.setdefault(message_id, held)
        sent = self._hear(commit)
        for message_id in before.waiting.keys() - self._stored.waiting.keys():
            self._ended(message_id, sent=message_id in sent)

    def _hear(self, commit: Commit) -> set[str]:
        """Record the held messages that a commit has sent; return their ids."""
        found = set[str]()
        for event in commit.events:
            if event.type != "message.created":
                continue
            message: dict[str, Any] = orjson.loads(event.body)["data"]["message"]
            if _TEXTS.match(message["text"] or "") and not event.internal:
                found.add(message["id"])
                self._send(message["id"], message["text"])
        return found

    def _send(self, message_id: str, text: str) -> None:
        self.sent += 1
        self._sent[message_id] += 1
        known = self._known.get(message_id)
        if known is None or known.text != text:
            self._wrong(f"{message_id} was sent, and was never held like that")
            return
        if self._sent[message_id] > 1:
            self._wrong(f"{message_id} was sent {self._sent[message_id]} times")
        if message_id in self._taken_back:
            self._wrong(f"{message_id} was sent though it had been taken back")
        if message_id in self._stored.waiting:
            self._wrong(f"{message_id} was sent, and is held still")
        if message_id not in self._hurried and self._clock() < known.send_at:
            self._wrong(f"{message_id} was sent {known.send_at - self._clock()} ms before its time")

    def _ended(self, message_id: str, *, sent: bool) -> None:
        """Judge the end of a message that is no longer held: it was sent, or is in a draft."""
        known, stored = self._known[message_id], self._stored
        drafted = stored.drafts[known.text]
        self.back += bool(drafted)
        if known.conversation not in stored.conversations:
            return  # deleted with its conversation
        if sent + drafted != 1:
            self._wrong(f"{message_id} is held no longer: sent {int(sent)} times, in {drafted} drafts")

    # Due times

    def forgive(self) -> None:
        """Restart the clock for due messages, because the server restarts or its disk fails."""
        self._well_since_ms = self._clock()

    def overdue(self) -> list[str]:
        """Return the messages that were not sent in time."""
        late = self._clock() - PROMPT_S * 1000
        return [
            f"{message_id} was to be sent at {held.send_at} ms"
            for message_id, held in self._stored.waiting.items()
            if message_id not in self._stored.refused and max(held.send_at, self._well_since_ms) < late
        ]

    # Rows of the database

    def audit(self, connection: sqlite3.Connection, *, settled: bool) -> None:
        """Check where each message is stored; once `settled`, none is held."""
        stored = _stored(connection)
        messages = Counter(message_id for message_id, _ in connection.execute(_SENT))
        for message_id, held in self._known.items():
            if held.conversation not in stored.conversations:
                continue
            there = (messages[message_id], int(message_id in stored.waiting), stored.drafts[held.text])
            if sum(there) != 1:
                self._wrong(f"{message_id} is sent, held and in drafts {there} times")
            if self._sent[message_id] and not messages[message_id]:
                self._wrong(f"{message_id} was sent, and is not there")
            if message_id in self._taken_back and not stored.drafts[held.text]:
                self._wrong(f"{message_id} was acknowledged as taken back, and is no draft")
        if settled and (left := stored.waiting.keys() - stored.refused.keys()):
            self._wrong(f"{sorted(left)} are held still")


def _stored(connection: sqlite3.Connection) -> _Stored:
    stored = _Stored()
    for message_id, text, send_at, problem, conversation in connection.execute(_WAITING):
        stored.waiting[message_id] = Held(text, send_at, conversation)
        if problem is not None:
            stored.refused[message_id] = problem
    for (text,) in connection.execute(_DRAFTS):
        stored.drafts.update(_TEXTS.findall(text))
    stored.conversations = {each for (each,) in connection.execute("SELECT id FROM conversations")}
    return stored
