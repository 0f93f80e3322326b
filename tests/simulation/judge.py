"""Who may receive what: everything that happens is told to the judge, which knows the rules by itself.

Nothing here asks the program: events are known from their commits, a channel's holder from the return of
`Hub.subscribe`, what was said from the bytes that the server writes, what was received from the clients.
A broken rule is written down, not raised: it may be seen within a task of the server, which logs what is raised.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

import orjson
import trio

from deskwire.engine.ports import Commit
from deskwire.engine.stream.channel import Channel
from tests.simulation.network import Link

LEASE_S: Final = 60.0
PROMPT_S: Final = 5.0
"""A consumer that is well has an event after this at the latest, whatever others do."""

SAVED_S: Final = 3.0
"""After this a confirmed position is on the disk, whatever else the disk has to do (`Hub`, `save_s`)."""


@dataclass(eq=False)
class Hold:
    """A connection's hold on a channel: where it began, and what its client has.

    Args:
        proven: the newest position that was confirmed when its subscription was asked for.
        last: position of its newest event, or what it began behind at least.
        begun: position it began behind at most; None if that can't be told from outside.
    """

    link: Link
    consumer_id: str
    resume: str
    proven: int
    last: int = 0
    begun: int | None = None


@dataclass(eq=False)
class Chain:
    """A channel and its holders, one after the other.

    Args:
        positions: the channel's events.
        covered: those that a client has received.
        forgotten: whether the server may know nothing more of who held it.
        excused: position up to which consumers did not want what they lacked, or were told of the gap.
    """

    channel: Channel
    positions: list[int] = field(default_factory=list)
    covered: set[int] = field(default_factory=set)
    excused: int = 0
    holder: Hold | None = None
    last_id: str | None = None
    seatings: int = 0
    superseded: set[str] = field(default_factory=set)
    forgotten: bool = False
    released: bool = False
    dropped_at: float = -inf
    pongs: list[tuple[float, int]] = field(default_factory=list)

    def between(self, low: int, high: int) -> Iterator[int]:
        """Positions behind `low` and before `high`."""
        for position in self.positions[bisect_right(self.positions, low) :]:
            if position >= high:
                return
            yield position

    def proven(self) -> int:
        """The newest position that a holder has confirmed."""
        return max((position for _, position in self.pongs), default=0)


class Judge:
    """Hears what happens; `problems` is the verdict."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.stop: Callable[[], object] = lambda: None
        self.trace: list[tuple[float, str]] = []
        self.gap_s = inf
        self.frames = 0
        self._chains: dict[str, Chain] = {}
        self._positions: dict[str, int] = {}
        self._made_at: dict[int, float] = {}
        self._erased: set[int] = set()
        self._of: dict[int, set[int]] = defaultdict(set)
        self._published = 0
        self._killed_at = -inf
        self._holds: dict[tuple[Link, str], Hold] = {}
        self._dismissed: list[Link] = []
        self._steady = ""
        self._due: dict[int, float] = {}
        self._settled: set[tuple[Link, str]] = set()
        self._asked: dict[tuple[Link, str], tuple[str, int]] = {}

    def note(self, text: str) -> None:
        """Write down what happens, for whoever reads a failure."""
        self.trace.append((round(trio.current_time(), 6), text))

    def wrong(self, text: str) -> None:
        """Write down a broken rule."""
        self.note(f"WRONG: {text}")
        self.problems.append(f"at {trio.current_time():.3f}: {text}")
        self.stop()

    def open(self, channel: Channel) -> None:
        """A channel that consumers will ask for, before there is an event."""
        self._chains[channel.name] = Chain(channel)

    def watch(self, channel: str) -> None:
        """Nobody but a consumer that is always well holds this channel; it must not wait for others."""
        self._steady = channel

    def forgive(self) -> None:
        """Promptness can't be asked of what is under way: the server restarts, or its disk fails."""
        self._due.clear()

    def overdue(self) -> list[str]:
        """Events that a consumer which is well waits for too long."""
        late = trio.current_time() - PROMPT_S
        return [f"event {position} on {self._steady}" for position, at in self._due.items() if at < late]

    # What is there to receive

    def committed(self, commit: Commit) -> None:
        """Events are on the disk, and others are not any more. What agents alone are told of is nobody's here."""
        for event in commit.events:
            self._made_at[event.position] = trio.current_time()
            if event.internal:
                continue  # once it is pruned, the server can't tell that it was for agents alone: that may be a gap
            self._positions[event.id] = event.position
            if event.conversation is not None:
                self._of[event.conversation].add(event.position)
            subjects = _subjects(orjson.loads(event.body))
            for chain in self._chains.values():
                if chain.channel.kind == "project" or chain.channel.subject in subjects:
                    chain.positions.append(event.position)
        for conversation in commit.erased:
            self._erased |= self._of[conversation]
        if commit.events:
            self.note(f"committed up to {commit.events[-1].position}, erased {len(commit.erased)}")

    def published(self, commit: Commit) -> None:
        """The readers of the log know of events."""
        if commit.events:
            self._published = commit.events[-1].position
        chain = self._chains.get(self._steady)
        if (
            chain is not None
            and chain.holder is not None
            and (chain.holder.link, self._steady) in self._settled
        ):
            positions = {event.position for event in commit.events} & set(chain.positions)
            self._due.update(dict.fromkeys(sorted(positions), trio.current_time()))
        self._due = {position: at for position, at in self._due.items() if position not in self._erased}

    def crashed(self, restarted_at: float) -> None:
        """The server is back after a kill: what was confirmed just before may be forgotten."""
        self._published = max(self._made_at, default=0)
        for chain in self._chains.values():
            chain.holder = None
            chain.dropped_at = restarted_at
            chain.pongs = [pong for pong in chain.pongs if pong[0] < self._killed_at - SAVED_S]

    def killed(self) -> None:
        """The server's process has ended."""
        self._killed_at = trio.current_time()
        self.note("server killed")

    def stopped(self, restarted_at: float) -> None:
        """The server is back after a stop in good order."""
        for chain in self._chains.values():
            if chain.holder is not None:
                self.wrong(f"{chain.channel.name} is still held after the stop")
            chain.dropped_at = restarted_at

    def disk_refused(self) -> None:
        """Positions could not be saved."""
        for chain in self._chains.values():
            chain.pongs.clear()

    def forgotten(self, channel: str) -> None:
        """The row of who held a channel is gone (ADR 8): with its contact, or because it was long unused."""
        self.note(f"{channel} is forgotten")
        self._chains[channel].forgotten = True

    # Who holds a channel

    def asked(self, link: Link, channel: str, resume: str) -> None:
        """The server has read a subscription."""
        self._asked[link, channel] = (resume, self._chains[channel].proven())

    def seated(self, link: Link, channel: str, consumer_id: str) -> None:
        """The hub says that this connection holds the channel from now on."""
        chain = self._chains[channel]
        free = chain.holder is None and trio.current_time() >= chain.dropped_at + LEASE_S
        self.note(f"{consumer_id} on {link.number} takes {channel} from {chain.last_id}")
        if chain.forgotten:
            chain.superseded.clear()
            chain.last_id = None
        if consumer_id in chain.superseded and not free:
            self.wrong(f"{consumer_id} took {channel} back from {chain.last_id}")
        if free:
            chain.superseded.clear()
        if chain.last_id is not None and not chain.released:
            chain.superseded.add(chain.last_id)
        chain.superseded.discard(consumer_id)
        if chain.holder is not None and chain.holder.link is not link:
            self._dismissed.append(chain.holder.link)
        chain.holder = self._holds[link, channel] = Hold(link, consumer_id, *self._asked[link, channel])
        chain.last_id, chain.released = consumer_id, False
        chain.seatings += 1
        if (
            chain.seatings == 1 or chain.holder.resume == "live" or chain.forgotten
        ):  # also if its answer gets lost
            self._begins_now(chain, chain.holder)
        chain.forgotten = False

    def left(self, link: Link, channel: str, *, for_good: bool) -> None:
        """A hold has ended."""
        chain = self._chains[channel]
        if chain.holder is None or chain.holder.link is not link:
            return
        self.note(f"{chain.last_id} leaves {channel}{' for good' * for_good}")
        chain.holder = None
        chain.dropped_at = -inf if for_good else trio.current_time()
        chain.released = for_good
        if for_good:
            chain.superseded.clear()

    # What the server says

    def writing(self, link: Link, data: bytes) -> None:
        """The server begins to write these bytes, of which nothing is on its way yet."""
        if data.startswith(b"HTTP/"):
            return
        for message in _messages(data):
            name = message["event"]
            if name == "pusher_internal:subscription_succeeded":
                self._answered(link, message["channel"], orjson.loads(message["data"]))
            elif not name.startswith("pusher"):
                holder = self._chains[message["channel"]].holder
                if holder is None or holder.link is not link:
                    self.wrong(f"{name} on {message['channel']} is written to {link.number}, which lost it")

    def _answered(self, link: Link, channel: str, answer: dict[str, Any]) -> None:
        chain, hold = self._chains[channel], self._holds[link, channel]
        after, gap = answer["resumedAfter"], answer["gap"]
        if channel == self._steady:
            self._settled = {(link, channel)}
        self.note(f"{hold.consumer_id} resumes {channel} after {after and self._positions[after]}, gap {gap}")
        if gap:
            self._check_gap(chain, hold)
        if after is not None:
            hold.begun = hold.last = self._positions[after]
            if hold.resume == "auto":
                self._check_start(chain, hold, hold.last)
        elif gap or hold.resume == "live" or chain.seatings == 1:
            self._begins_now(chain, hold)

    def _begins_now(self, chain: Chain, hold: Hold) -> None:
        hold.begun = self._published
        chain.excused = max(chain.excused, self._published)

    def _check_gap(self, chain: Chain, hold: Hold) -> None:
        missed = [p for p in self._made_at if p > hold.proven]
        if not missed or trio.current_time() - self._made_at[min(missed)] < self.gap_s - SAVED_S:
            self.wrong(f"a gap without need on {chain.channel.name}")

    def _check_start(self, chain: Chain, hold: Hold, start: int) -> None:
        lost = [p for p in chain.between(chain.excused, start + 1) if self._lacking(chain, p)]
        if lost:
            self.wrong(
                f"{hold.consumer_id} starts {chain.channel.name} after {start}; nobody received {lost}"
            )
        if start < hold.proven and any(p not in self._erased for p in chain.between(start, hold.proven + 1)):
            self.wrong(
                f"{hold.consumer_id} starts {chain.channel.name} after {start}; proven is {hold.proven}"
            )

    # What clients receive

    def received(self, link: Link, channel: str, event_id: str) -> int:
        """A client has read an event; its position."""
        chain, hold = self._chains[channel], self._holds[link, channel]
        position = self._positions.get(event_id)
        if position is None:
            self.wrong(f"{event_id} was received before it was committed")
            return 0
        if position not in chain.between(position - 1, position + 1):
            self.wrong(f"{position} is no event of {channel}")
        if position <= hold.last:
            self.wrong(f"{position} came after {hold.last} on {link.number}")
        if skipped := [p for p in chain.between(hold.last, position) if self._owed(chain, hold, p)]:
            self.wrong(f"{position} came on {link.number} without {skipped}")
        self.frames += 1
        waited = trio.current_time() - self._due.pop(position, inf) if channel == self._steady else 0
        if waited > PROMPT_S:
            self.wrong(f"{position} was {waited:.1f} s on its way to {channel}")
        hold.last = position
        chain.covered.add(position)
        return position

    def confirmed(self, link: Link, upto: dict[str, int]) -> None:
        """The server has read a pong of a client that had received so much of each channel."""
        for channel, position in upto.items():
            chain = self._chains[channel]
            if chain.holder is not None and chain.holder.link is link:
                self.note(f"{chain.last_id} confirms {position} on {channel}")
                chain.pongs.append((trio.current_time(), position))

    # The end

    def seatings(self) -> int:
        """How often any channel changed hands so far."""
        return sum(chain.seatings for chain in self._chains.values())

    def lingering(self) -> list[int]:
        """Connections that lost a channel to another one and were not closed."""
        return [link.number for link in self._dismissed if not link.server.closed]

    def missing(self) -> list[tuple[str, int]]:
        """What is still to be received, of all channels that somebody ever held."""
        return [
            (name, position)
            for name, chain in self._chains.items()
            if chain.seatings
            for position in chain.between(chain.excused, 1 << 62)
            if self._lacking(chain, position)
        ]

    def _owed(self, chain: Chain, hold: Hold, position: int) -> bool:
        """Whether the hold must have been sent this before anything later."""
        if hold.begun is None:  # behind an event that was erased since: what is covered, it need not repeat
            return position > chain.excused and self._lacking(chain, position)
        return position > hold.begun and position not in self._erased

    def _lacking(self, chain: Chain, position: int) -> bool:
        return position not in chain.covered and position not in self._erased


def _messages(data: bytes) -> Iterator[dict[str, Any]]:
    """The text messages among a server's whole, unmasked frames (RFC 6455 5.2)."""
    while data:
        size, head = data[1], 2
        if size == 126:
            size, head = int.from_bytes(data[2:4]), 4
        elif size == 127:
            size, head = int.from_bytes(data[2:10]), 10
        if data[0] == 0x81:
            yield orjson.loads(data[head : head + size])
        data = data[head + size :]


def _subjects(envelope: dict[str, Any]) -> set[str]:
    """The conversation's id and the contact's `userId`."""
    data = envelope["data"]
    conversation = data.get("conversation", {})
    contact = data.get("contact") or conversation.get("contact") or {}
    return {conversation.get("id", ""), contact.get("userId", "")} - {""}
