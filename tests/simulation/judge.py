"""The rules of who may receive which events; the judge knows them without the program.

The program is not asked: events are known from their commits, a channel's holder from the return of
`Hub.subscribe`, the server's messages from the bytes it writes, received events from the clients.
A broken rule is recorded, not raised: it may be detected within a task of the server, which logs exceptions.
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
from deskwire.engine.stream.channel import StreamChannel
from tests.simulation.network import Link

LEASE_S: Final = 60.0
PROMPT_S: Final = 5.0
"""The most that an event takes to a healthy consumer, regardless of other consumers."""

SAVED_S: Final = 3.0
"""The time after which a confirmed position is on the disk, regardless of other writes (`Hub`, `save_s`)."""


@dataclass(eq=False)
class Hold:
    """A connection's hold on a channel: its start, and the events that its client has.

    Args:
        proven: the newest position that was confirmed when its subscription was requested.
        last: position of its newest event; at first the lowest position after which it may have begun.
        begun: the position after which it began at the latest; None if that can't be determined from outside.
    """

    link: Link
    consumer_id: str
    resume: str
    proven: int
    last: int = 0
    begun: int | None = None


@dataclass(eq=False)
class Chain:
    """A channel and its successive holders.

    Args:
        positions: the channel's events.
        covered: those that a client has received.
        forgotten: whether the server may have forgotten who held it.
        excused: position up to which consumers declined the events they lacked, or were notified of a gap.
    """

    channel: StreamChannel
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
        """Yield the positions after `low` and before `high`."""
        for position in self.positions[bisect_right(self.positions, low) :]:
            if position >= high:
                return
            yield position

    def proven(self) -> int:
        """The newest position that a holder has confirmed."""
        return max((position for _, position in self.pongs), default=0)


class Judge:
    """Receives everything that happens; `problems` is the verdict."""

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
        """Add to the trace that explains a failure."""
        self.trace.append((round(trio.current_time(), 6), text))

    def wrong(self, text: str) -> None:
        """Record a broken rule."""
        self.note(f"WRONG: {text}")
        self.problems.append(f"at {trio.current_time():.3f}: {text}")
        self.stop()

    def open(self, channel: StreamChannel) -> None:
        """Add a channel that consumers will request before it has an event."""
        self._chains[channel.name] = Chain(channel)

    def watch(self, channel: str) -> None:
        """Expect prompt delivery on this channel, which only a healthy consumer holds."""
        self._steady = channel

    def forgive(self) -> None:
        """Expect no promptness for events in flight, because the server restarts or its disk fails."""
        self._due.clear()

    def overdue(self) -> list[str]:
        """Return the events that a healthy consumer has waited for too long."""
        late = trio.current_time() - PROMPT_S
        return [f"event {position} on {self._steady}" for position, at in self._due.items() if at < late]

    # Events to receive

    def committed(self, commit: Commit) -> None:
        """Add a commit's events and drop those it erased; events for agents only do not count here."""
        for event in commit.events:
            self._made_at[event.position] = trio.current_time()
            if event.internal:
                continue  # once it is pruned, the server can't know that it was for agents only: this may be a gap
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
        """Note that the readers of the log know these events."""
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
        """Note that the server is back after a kill: positions confirmed just before may be lost."""
        self._published = max(self._made_at, default=0)
        for chain in self._chains.values():
            chain.holder = None
            chain.dropped_at = restarted_at
            chain.pongs = [pong for pong in chain.pongs if pong[0] < self._killed_at - SAVED_S]

    def killed(self) -> None:
        """Note that the server's process has ended."""
        self._killed_at = trio.current_time()
        self.note("server killed")

    def stopped(self, restarted_at: float) -> None:
        """Note that the server is back after an orderly stop."""
        for chain in self._chains.values():
            if chain.holder is not None:
                self.wrong(f"{chain.channel.name} is still held after the stop")
            chain.dropped_at = restarted_at

    def disk_refused(self) -> None:
        """Note that positions could not be saved."""
        for chain in self._chains.values():
            chain.pongs.clear()

    def forgotten(self, channel: str) -> None:
        """Note that a channel's row is gone (ADR 8): with its contact, or because it was unused for long."""
        self.note(f"{channel} is forgotten")
        self._chains[channel].forgotten = True

    # Holders of channels

    def asked(self, link: Link, channel: str, resume: str) -> None:
        """Note that the server has read a subscription."""
        self._asked[link, channel] = (resume, self._chains[channel].proven())

    def seated(self, link: Link, channel: str, consumer_id: str) -> None:
        """Judge the hub's decision that this connection holds the channel from now on."""
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
        ):  # even if the subscription's answer gets lost
            self._begins_now(chain, chain.holder)
        chain.forgotten = False

    def left(self, link: Link, channel: str, *, for_good: bool) -> None:
        """Note that a hold has ended."""
        chain = self._chains[channel]
        if chain.holder is None or chain.holder.link is not link:
            return
        self.note(f"{chain.last_id} leaves {channel}{' for good' * for_good}")
        chain.holder = None
        chain.dropped_at = -inf if for_good else trio.current_time()
        chain.released = for_good
        if for_good:
            chain.superseded.clear()

    # Messages of the server

    def writing(self, link: Link, data: bytes) -> None:
        """Judge bytes that the server begins to write; none of them is on its way yet."""
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

    # Events received by clients

    def received(self, link: Link, channel: str, event_id: str) -> int:
        """Judge an event that a client has read; return its position."""
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
        """Note a pong that the server has read, by which its client had received each channel up to these positions."""
        for channel, position in upto.items():
            chain = self._chains[channel]
            if chain.holder is not None and chain.holder.link is link:
                self.note(f"{chain.last_id} confirms {position} on {channel}")
                chain.pongs.append((trio.current_time(), position))

    # The end

    def seatings(self) -> int:
        """Return how often channels have changed hands so far."""
        return sum(chain.seatings for chain in self._chains.values())

    def lingering(self) -> list[int]:
        """Return connections that lost a channel to another one and were not closed."""
        return [link.number for link in self._dismissed if not link.server.closed]

    def missing(self) -> list[tuple[str, int]]:
        """Return the events still to be received, on all channels that ever had a holder."""
        return [
            (name, position)
            for name, chain in self._chains.items()
            if chain.seatings
            for position in chain.between(chain.excused, 1 << 62)
            if self._lacking(chain, position)
        ]

    def _owed(self, chain: Chain, hold: Hold, position: int) -> bool:
        """Return whether this event had to be sent on the hold before anything later."""
        if (
            hold.begun is None
        ):  # it began after an event that is now erased: covered events need not be repeated
            return position > chain.excused and self._lacking(chain, position)
        return position > hold.begun and position not in self._erased

    def _lacking(self, chain: Chain, position: int) -> bool:
        return position not in chain.covered and position not in self._erased


def _messages(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the text messages among a server's whole, unmasked frames (RFC 6455 5.2)."""
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
    """Return the conversation's id and the contact's `userId`."""
    data = envelope["data"]
    conversation = data.get("conversation", {})
    contact = data.get("contact") or conversation.get("contact") or {}
    return {conversation.get("id", ""), contact.get("userId", "")} - {""}
