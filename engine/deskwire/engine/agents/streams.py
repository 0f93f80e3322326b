"""All streams of agents: who has one open, what is passed on to whom, and when they end (ADR 51)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import structlog
import trio

from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.accounts.sessions import SessionCommit
from deskwire.engine.agents.counters import StreamCounters
from deskwire.engine.agents.elsewhere import Elsewhere
from deskwire.engine.agents.passing import Passing, passing
from deskwire.engine.agents.presence import Agent, View, merged, presence_view
from deskwire.engine.agents.rights import RightsReader, Viewer, lost
from deskwire.engine.agents.start import find_start
from deskwire.engine.agents.stream import AgentStream, Bye
from deskwire.engine.cluster.bus import Bus, NoBus
from deskwire.engine.cluster.cluster import Alone, Cluster
from deskwire.engine.cluster.grace_period import GracePeriod
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import NotFound, TooManyRequests, Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.limits.fair_share import Shares
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.ports import EventReader
from deskwire.engine.events.types import Agents, EphemeralEvent

log: Final = structlog.get_logger(__name__)

EACH: Final = 20
"""Streams that one user may have open: pages on several machines, with some that are gone and not noticed yet."""
_PRESENCE_S: Final = 0.2
"""Time in which changes of presence are gathered: who comes back at once was never away, and clicking costs nothing."""
_GOODBYE_S: Final = 1.5
"""Time that a stop leaves a reader for its goodbye."""
_AGAIN_S: Final = 0.2
"""Pause before rights are read again that could not be read."""


class AgentReader(EventReader, RightsReader, Protocol):
    """Queries on events, and on the right to see them."""


class RightsCommit(CallerCommit, SessionCommit, Protocol):
    """The effect of a commit on the rights of those who have a stream open."""


class AgentStreams:
    """The streams of all agents; `run` sees to presence, and to the end of those that have lost their right.

    Args:
        most: streams that may be open. An organisation gets another one while at least as many are free as it has.
        bus: the way to the other nodes, whose agents belong to those who are there.
        node: the name of this one.
        cluster: this node among those that share the store.
    """

    def __init__(
        self,
        store: Store[AgentReader, object],
        event_log: EventLog,
        clock: Clock,
        *,
        most: int = 1_000,
        bus: Bus | None = None,
        node: str = "",
        cluster: Cluster | None = None,
    ) -> None:
        self._cluster = cluster or Alone()
        self._grace_period = GracePeriod(self._cluster)
        self._store = store
        self._log = event_log
        self._clock = clock
        self._shares = Shares(most)  # by organisation, which may have any number of accounts and projects
        self._streams: dict[str, AgentStream] = {}
        self._by_project: dict[int, dict[AgentStream, None]] = {}
        self._by_user: dict[int, dict[AgentStream, None]] = {}
        self._viewers: dict[tuple[int, str], dict[AgentStream, None]] = {}
        self._appeared: dict[tuple[int, Agent], None] = {}
        self._ours_changed: dict[tuple[int, Agent], None] = {}
        self._alone = bus is None
        self._elsewhere = Elsewhere(
            bus or NoBus(), node, new_id("str", clock()), self._note_agent, self.pass_here
        )
        self._presence_due = trio.Event()
        self._rights_due = trio.Event()
        self._closing = False
        self._stopped = trio.Event()
        self.counters: Final = StreamCounters()

    def __len__(self) -> int:
        """Return the number of open streams."""
        return len(self._streams)

    @property
    def lag(self) -> int:
        """The number of events that the slowest reader has not taken yet, as far as they are in memory."""
        return max((stream.lag for stream in self._streams.values()), default=0)

    def check_room(self, viewer: Viewer) -> None:
        """Raise TooManyRequests (`too_many_streams`) if the viewer can't open one more stream."""
        if self._has_room(viewer):
            return
        mine, most = len(self._by_user.get(viewer.user, ())), self._shares.total
        self.counters.refused += 1
        if mine >= EACH:
            raise TooManyRequests(
                f"You have {mine} streams open, and {EACH} is the most.",
                code="too_many_streams",
                retry_after_s=30,
            )
        if self._shares.full():
            detail = f"All {most} streams for agents are open; DESKWIRE_AGENT_STREAMS is the most."
        else:
            detail = (
                f"Your organisation has its share of the {most} streams for agents open, and the rest is for others; "
                "DESKWIRE_AGENT_STREAMS is the most for all."
            )
        raise TooManyRequests(detail, code="too_many_streams", retry_after_s=30)

    def _has_room(self, viewer: Viewer) -> bool:
        return len(self._by_user.get(viewer.user, ())) < EACH and self._shares.fits(
            viewer.project.organisation
        )

    async def open(self, viewer: Viewer, after: str | None, drop: Callable[[], None]) -> AgentStream:
        """Return a stream that begins behind the event `after`, or now; the caller closes it with `close`.

        What the viewer may not see any more, or has no room for, ends at once.

        Args:
            drop: ends the reader's connection.

        Raises Unavailable, with nothing open.

        Cancellation: nothing is open.
        """
        project = viewer.project.rowid
        tail = await self._log.open(Agents(project))  # first: what is committed from here on is in memory
        stream = AgentStream(self._log, tail, new_id("str", self._clock()), viewer, drop)
        if self._closing:
            self.end(stream, "shutdown")
        elif not self._has_room(viewer):
            self.end(stream, "too_many_streams")
        self._enter(stream)
        try:
            # Rights are read once the stream is known: a later change finds it here.
            await self._check(stream)
            start = await self._store.read(lambda reader: find_start(reader, project, after))
            stream.begin(start)
        except BaseException:  # re-raised: a failed or cancelled opening leaves no stream
            self.close(stream)
            raise
        self.counters.gaps += stream.start.gap
        return stream

    def close(self, stream: AgentStream) -> None:
        """Forget a stream whose reader has gone, once; its agent's presence goes with it."""
        del self._streams[stream.id]
        _take_out(self._by_project, stream.viewer.project.rowid, stream)
        _take_out(self._by_user, stream.viewer.user, stream)
        self._shares.give_back(stream.viewer.project.organisation)
        for conversation in stream.view.conversations:
            _take_out(self._viewers, (stream.viewer.project.rowid, conversation), stream)
        stream.close()
        self._log.close(Agents(stream.viewer.project.rowid))
        self._note_presence(stream)
        if self._closing and not self._streams:
            self._stopped.set()

    def end(self, stream: AgentStream, bye: Bye) -> None:
        """End a stream with a goodbye; its reader closes it."""
        if stream.bye is None:
            self.counters.ended[bye] += 1
        stream.end(bye)

    def view(self, stream_id: str, user: int, project: int, view: View) -> None:
        """Note what a page shows. Raises NotFound (`stream_not_found`) if the user has no such stream there."""
        stream = self._streams.get(stream_id)
        if stream is None or (stream.viewer.user, stream.viewer.project.rowid) != (user, project):
            raise NotFound("You have no such stream open here.", code="stream_not_found")
        if stream.view == view:
            return
        for conversation in stream.view.conversations:
            _take_out(self._viewers, (project, conversation), stream)
        stream.view = view
        for conversation in view.conversations:
            self._viewers.setdefault((project, conversation), {})[stream] = None
        self._note_presence(stream)

    def pass_on(
        self, project: int, event: Passing, *, to_user: int | None = None, viewing: str | None = None
    ) -> None:
        """Pass an event on to the streams of a project that are open now.

        Args:
            project: storage key.
            to_user: storage key of the one user who is told, on all their streams.
            viewing: the `cnv_` id of the conversation that those who are told look at.
        """
        self.pass_here(project, event, to_user, viewing)
        self._elsewhere.pass_on(project, event, to_user, viewing)

    def pass_here(
        self, project: int, event: Passing, to_user: int | None = None, viewing: str | None = None
    ) -> None:
        """Pass an event on as `pass_on` does, but to no other node."""
        for stream in self._told(project, to_user, viewing):
            stream.offer(event)

    def is_there(self, user: int, project: int) -> bool:
        """Return whether a user has a stream of a project open on this node; both by their storage keys."""
        return any(stream.viewer.project.rowid == project for stream in self._by_user.get(user, ()))

    @property
    def projects(self) -> Collection[int]:
        """The projects that any agent has open on this node, by their storage keys."""
        return self._by_project.keys()

    @property
    def anybody(self) -> bool:
        """True if any page shows any conversation now."""
        return bool(self._viewers) or self._elsewhere.anybody

    def offer_ephemeral(self, event: EphemeralEvent) -> None:
        """Pass a typing event on to all agents of its project on this node."""
        self.pass_here(event.project, event)

    def viewed(self, project: int, conversation: str) -> bool:
        """Return whether any page shows the conversation now; nobody else is passed on what is for its viewers."""
        return (project, conversation) in self._viewers or self._elsewhere.viewed(project, conversation)

    def present(self, project: int, agents: Iterable[Agent] | None = None) -> Sequence[Mapping[str, Any]]:
        """Return what others are told of these agents of a project, or of all that are there."""
        views = self._views(project)
        for agent, others in self._elsewhere.views(project).items():
            views.setdefault(agent, []).extend(others)
        return [presence_view(agent, views.get(agent, ())) for agent in (views if agents is None else agents)]

    def _views(self, project: int) -> dict[Agent, list[View]]:
        """Return the agents of a project that are there on this node, each with what its streams show."""
        views: dict[Agent, list[View]] = {}
        for stream in self._by_project.get(project, {}):
            views.setdefault(stream.agent, []).append(stream.view)
        return views

    def follow(self, commits: Commits[RightsCommit]) -> None:
        """End streams whose session a commit ends, and look at the rights of all after one that may have ended some."""
        commits.subscribe(lambda _: self.rights_changed_nowait(), "callers", "people")
        commits.subscribe(lambda commit: self.end_sessions(commit.sessions), "sessions")

    def rights_changed_nowait(self) -> None:
        """Have all streams checked: something about users, members or projects is another, and on the disk."""
        self._rights_due.set()

    def end_sessions(self, sessions: Iterable[str]) -> None:
        """End the streams of these sessions."""
        gone = set(sessions)
        for stream in self._streams.values():
            if stream.viewer.session in gone:
                self.end(stream, "session_ended")

    async def end_lost_sessions(self) -> None:
        """End the streams whose session has ended, wherever that was committed. Raises Unavailable."""
        held = {session for stream in self._streams.values() if (session := stream.viewer.session)}
        if held:
            self.end_sessions(
                await self._store.read(lambda reader: [each for each in held if not reader.lasts(each)])
            )

    def close_all(self) -> None:
        """End every stream, and each that opens later: with a goodbye, or without for those that do not take it soon."""
        self._closing = True
        for stream in self._streams.values():
            self.end(stream, "shutdown")
        if not self._streams:
            self._stopped.set()

    async def last_words(self) -> None:
        """Return when all streams are gone, after `close_all`. The connections of those that do not read are dropped."""
        with trio.move_on_after(_GOODBYE_S):
            await self._stopped.wait()
        for stream in self._streams.values():
            stream.drop()

    async def run(self) -> None:
        """Tell of presence and check rights, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tell_presence)
            nursery.start_soon(self._check_rights)
            if not self._alone:
                nursery.start_soon(self._elsewhere.run, self._all_views)
                nursery.start_soon(self._lapse)

    @property
    def silent(self) -> int:
        """The number of streams that get nothing new, because the node has no lease."""
        return 0 if trio.current_time() < self._cluster.valid_until else len(self._streams)

    def send_away_nowait(self) -> None:
        """End the streams of a node that has been without its lease for a moment: another node is ready."""
        self._grace_period.end_nowait()

    async def _lapse(self) -> None:
        """End all streams once the node has been without its lease for long: other nodes may have the newer events."""
        while True:
            await self._grace_period.until_check_due()
            if not await self._grace_period.run(self._cluster.until_valid):
                log.warning("agents.streams_lapsed", streams=len(self._streams))
                for stream in self._streams.values():
                    stream.lapse()
                self.counters.ended["out_of_touch"] += len(self._streams)
                await self._cluster.until_valid()

    def _told(self, project: int, to_user: int | None, viewing: str | None) -> Iterable[AgentStream]:
        if viewing is not None:
            viewers = self._viewers.get((project, viewing), {})
            return [each for each in viewers if to_user is None or each.viewer.user == to_user]
        if to_user is not None:
            return [each for each in self._by_user.get(to_user, ()) if each.viewer.project.rowid == project]
        return self._by_project.get(project, {})

    def _enter(self, stream: AgentStream) -> None:
        self._streams[stream.id] = stream
        self._by_project.setdefault(stream.viewer.project.rowid, {})[stream] = None
        self._by_user.setdefault(stream.viewer.user, {})[stream] = None
        self._shares.take(stream.viewer.project.organisation)
        self._note_presence(stream)

    def _note_presence(self, stream: AgentStream) -> None:
        self._ours_changed[stream.viewer.project.rowid, stream.agent] = None
        self._note_agent(stream.viewer.project.rowid, stream.agent)

    def _note_agent(self, project: int, agent: Agent) -> None:
        self._appeared[project, agent] = None
        self._presence_due.set()

    def _all_views(self) -> Iterator[tuple[int, Agent, View]]:
        for project in self._by_project:
            for agent, views in self._views(project).items():
                yield project, agent, merged(views)

    async def _tell_presence(self) -> None:
        while True:
            await self._presence_due.wait()
            await trio.sleep(_PRESENCE_S)
            appeared, self._appeared, self._presence_due = self._appeared, {}, trio.Event()
            ours, self._ours_changed = self._ours_changed, {}
            for project, agent in () if self._alone else ours:
                views = self._views(project).get(agent)
                self._elsewhere.tell(project, agent, None if views is None else merged(views))
            for project, agent in appeared:
                for stream in self._by_project.get(project, {}):
                    stream.tell_presence(agent)
                await trio.lowlevel.checkpoint()

    async def _check_rights(self) -> None:
        while True:
            await self._rights_due.wait()
            self._rights_due = trio.Event()
            try:
                for stream in [*self._streams.values()]:
                    await self._check(stream)
                    await trio.lowlevel.checkpoint()
            except Unavailable as error:
                log.warning("agents.rights_not_read", reason=error.reason)
                self._rights_due.set()
                await trio.sleep(_AGAIN_S)

    async def _check(self, stream: AgentStream) -> None:
        bye = await self._store.read(InlineQuery(lambda reader: lost(reader, stream.viewer)))
        if bye is not None:
            self.end(stream, bye)


def presence_event(agents: Sequence[Mapping[str, Any]]) -> Passing:
    """Return the event that tells of agents whose presence is another."""
    return passing("presence", {"agents": agents})


def _take_out(of: dict[Any, dict[AgentStream, None]], key: Any, stream: AgentStream) -> None:
    streams = of[key]
    del streams[stream]
    if not streams:
        del of[key]
