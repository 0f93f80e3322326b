"""Events between the feed and the receiver; no waiting, no I/O.

An event is held from when it was read until it and all before it are over. The cursor is the last event that
is: a restart behind it misses nothing. Of each lane one event is under way at a time, in the feed's order,
which within a conversation is that of the sequence.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from deskwire.listen.envelope import Event

CONVERSATIONS: Final = 1_000
"""How many conversations' last sequences are kept; they are written with every move of the cursor."""

DELETED: Final = "conversation.deleted"


class Sequences:
    """The last sequence of each conversation, of those that were last heard of.

    Args:
        last: sequences by conversation id, oldest first.
        forgot: whether there were more.
    """

    def __init__(self, last: Mapping[str, int], forgot: bool) -> None:
        self._last = OrderedDict(last)
        self.forgot = forgot

    @property
    def last(self) -> dict[str, int]:
        """A copy, the conversations heard of last at its end."""
        return dict(self._last)

    def before(self, event: Event) -> int | None:
        """What `Service-Previous-Sequence` says: 0 for none before, None for nothing to say."""
        if event.conversation is None or event.sequence is None:
            return None
        unknown = None if self.forgot and event.sequence > 1 else 0
        return self._last.get(event.conversation, unknown)

    def note(self, event: Event) -> None:
        """The event is the newest of its conversation."""
        if event.conversation is None or event.sequence is None:
            return
        self._last.pop(event.conversation, None)
        if event.type == DELETED:  # nothing can follow
            return
        self._last[event.conversation] = event.sequence
        if len(self._last) > CONVERSATIONS:
            self._last.popitem(last=False)
            self.forgot = True

    def copy(self) -> Sequences:
        """The same, to change on its own."""
        return Sequences(self._last, self.forgot)


@dataclass(slots=True, eq=False)
class Held:
    """One event in the window.

    Args:
        previous: see `Sequences.before`.
        over: whether it was delivered, given up, or left out.
    """

    event: Event
    previous: int | None = None
    wanted: bool = True
    over: bool = False


class Window:
    """What was read and is not over.

    Args:
        after: the cursor to begin with, None for the feed's beginning.
        sequences: what was forwarded up to there.
    """

    def __init__(self, after: str | None, sequences: Sequences) -> None:
        self.after = after
        self.sequences: Final = sequences
        """As of the cursor."""
        self._ahead = sequences.copy()
        self._held: deque[Held] = deque()
        self._waiting: OrderedDict[int, Held] = OrderedDict()
        self._busy: set[str] = set()
        self._read = 0

    def __len__(self) -> int:
        """How many events are held."""
        return len(self._held)

    def add(self, event: Event) -> None:
        """Take in the next event of the feed, to be forwarded."""
        held = Held(event, self._ahead.before(event))
        self._ahead.note(event)
        self._held.append(held)
        self._read += 1
        self._waiting[self._read] = held

    def skip(self, event: Event) -> None:
        """Take in the next event of the feed, which is not to be forwarded."""
        self._held.append(Held(event, wanted=False, over=True))
        self._advance()

    def take(self) -> Held | None:
        """The oldest event whose lane is free, if any; `end` must follow."""
        for number, held in self._waiting.items():
            if held.event.lane not in self._busy:
                del self._waiting[number]
                self._busy.add(held.event.lane)
                return held
        return None

    def end(self, held: Held) -> None:
        """The event was delivered or given up."""
        held.over = True
        self._busy.discard(held.event.lane)
        self._advance()

    def _advance(self) -> None:
        while self._held and self._held[0].over:
            held = self._held.popleft()
            self.after = held.event.id
            if held.wanted:
                self.sequences.note(held.event)
