"""All streams of agents: opening them, sending events to them, presence, and the checks that end them (ADR 51)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, Protocol, get_args

import structlog
import trio

from deskwire.engine.accounts.ports import CallerCommit
from deskwire.engine.accounts.sessions import SessionCommit
from deskwire.engine.agents.open_desks import Desk, OpenDesks
from deskwire.engine.agents.presence import Agent, View, ephemeral_event, merged, presence_view
from deskwire.engine.agents.remote import RemoteAgents
from deskwire.engine.agents.rights import RightsReader, Viewer, find_lost_right
from deskwire.engine.agents.stream import AgentStream, Bye
from deskwire.engine.cluster.cluster import Bus, Cluster, NoBus
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import Commits
from deskwire.engine.core.errors import NotFound, TooManyRequests, Unavailable
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.limits.fair_share import Shares
from deskwire.engine.core.store import InlineQuery, Store
from deskwire.engine.events.event_stream import Ephemeral, find_start
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.open_streams import OpenStreams
from deskwire.engine.events.ports import EventReader
from deskwire.engine.events.types import AgentsSource, EphemeralEvent

log: Final = structlog.get_logger(__name__)

# Maximum open streams of one user: pages on several machines, and some dead connections that are not detected yet.
MAX_STREAMS_PER_USER: Final = 20
# Time for which changes of presence are collected, so that a reconnect is no change and quick clicks are one.
_PRESENCE_DELAY_S: Final = 0.2
_RETRY_DELAY_S: Final = 0.2  # pause before a failed check of rights is repeated


class AgentReader(EventReader, RightsReader, Protocol):
    """Queries on events, and on the right to see them."""


class RightsCommit(CallerCommit, SessionCommit, Protocol):
    """The part of a commit that may end the right to a stream."""


class AgentStreams(OpenStreams[AgentStream]):
    """The streams of all agents on this node; `run` sends presence and ends streams whose right is lost.

    Args:
        streams_max: maximum open streams. An organisation gets another stream only while at least as many are free as it has.
        bus: the bus to the other nodes, whose agents are part of presence; None on a single node.
        node: the name of this node.
        cluster: the cluster of nodes that share the store.
    """

    def __init__(
        self,
        store: Store[AgentReader, object],
        event_log: EventLog,
        clock: Clock,
        *,
        streams_max: int = 1_000,
        bus: Bus | None = None,
        node: str = "",
        cluster: Cluster | None = None,
    ) -> None:
        super().__init__("agents", get_args(Bye), cluster)
        self._store = store
        self._log = event_log
        self._clock = clock
        self._shares = Shares(
            streams_max
        )  # by organisation, which may have any number of accounts and projects
        self._streams: dict[str, AgentStream] = {}
        self._by_project: dict[int, dict[AgentStream, None]] = {}
        self._by_user: dict[int, dict[AgentStream, None]] = {}
        self._viewers: dict[tuple[int, str], dict[AgentStream, None]] = {}
        self._appeared: dict[tuple[int, Agent], None] = {}
        self._ours_changed: dict[tuple[int, Agent], None] = {}
        self._alone = bus is None
        self._remote = RemoteAgents(
            bus or NoBus(), node, new_id("str", clock()), self._note_agent, self.broadcast_locally
        )
        self._desks = OpenDesks(bus or NoBus(), new_id("str", clock()))
        self._presence_due = trio.Event()
        self._rights_due = trio.Event()
        self.rights_version: int = 0

    def check_room(self, viewer: Viewer) -> None:
        """Raise TooManyRequests (`too_many_streams`) if the viewer can't open one more stream."""
        if self._has_room(viewer):
            return
        mine, total = len(self._by_user.get(viewer.user, ())), self._shares.total
        self.counters.refused += 1
        if mine >= MAX_STREAMS_PER_USER:
            raise TooManyRequests(
                f"You have {mine} open streams; the maximum is {MAX_STREAMS_PER_USER}.",
                code="too_many_streams",
                retry_after_s=30,
            )
        if self._shares.full():
            detail = f"All {total} streams for agents are in use; DESKWIRE_AGENT_STREAMS sets the maximum."
        else:
            detail = (
                f"Your organisation uses its share of the {total} streams for agents; "
                "DESKWIRE_AGENT_STREAMS sets the maximum for all organisations."
            )
        raise TooManyRequests(detail, code="too_many_streams", retry_after_s=30)

    def _has_room(self, viewer: Viewer) -> bool:
        return len(self._by_user.get(viewer.user, ())) < MAX_STREAMS_PER_USER and self._shares.fits(
            viewer.project.organisation
        )

    async def open(self, viewer: Viewer, after: str | None, drop: Callable[[], None]) -> AgentStream:
        """Return a stream that begins after the event `after`, or now; the caller closes it with `close`.

        The stream ends at once if the viewer has lost the right to it, or if a limit is reached. Raises Unavailable. If the
        call raises or is cancelled, no stream is open.

        Args:
            drop: ends the reader's connection.
        """
        project = viewer.project.rowid
        tail = await self._log.open(AgentsSource(project))  # first, so that memory has all later commits
        stream = AgentStream(self._log, tail, new_id("str", self._clock()), viewer, drop)
        if self._closing:
            self.end(stream, "shutdown")
        elif not self._has_room(viewer):
            self.end(stream, "too_many_streams")
        self._enter(stream)
        with ExitStack() as undo:
            undo.callback(self.close, stream)
            # Rights are read after the stream is registered, so that a later change checks it again.
            await self._check(stream)
            start = await self._store.read(lambda reader: find_start(reader, project, after))
            stream.begin(start)
            undo.pop_all()
        self.counters.gaps += stream.start.gap
        return stream

    def close(self, stream: AgentStream) -> None:
        """Remove a stream whose reader has finished, and its part of the agent's presence; called once."""
        del self._streams[stream.id]
        _discard(self._by_project, stream.viewer.project.rowid, stream)
        _discard(self._by_user, stream.viewer.user, stream)
        self._shares.give_back(stream.viewer.project.organisation)
        self._announce_desk(stream)
        for conversation in stream.view.conversations:
            _discard(self._viewers, (stream.viewer.project.rowid, conversation), stream)
        super().close(stream)
        self._note_presence(stream)

    def view(self, stream_id: str, user: int, project: int, view: View) -> Sequence[str]:
        """Set the view of a page, and return the conversations that it did not show before.

        Raises NotFound (`stream_not_found`) if the user has no such stream in the project.
        """
        stream = self._streams.get(stream_id)
        if stream is None or (stream.viewer.user, stream.viewer.project.rowid) != (user, project):
            raise NotFound("You have no such stream open here.", code="stream_not_found")
        if (before := stream.view) == view:
            return ()
        for conversation in before.conversations:
            _discard(self._viewers, (project, conversation), stream)
        stream.view = view
        for conversation in view.conversations:
            self._viewers.setdefault((project, conversation), {})[stream] = None
        self._note_presence(stream)
        return [each for each in view.conversations if each not in before.conversations]

    def offer_to(self, stream_id: str, event: Ephemeral) -> None:
        """Send an ephemeral event to one stream of this node, if it is still open."""
        if (stream := self._streams.get(stream_id)) is not None:
            stream.offer(event)

    def broadcast(
        self, project: int, event: Ephemeral, *, to_user: int | None = None, viewing: str | None = None
    ) -> None:
        """Send an ephemeral event to the open streams of a project, on all nodes.

        Args:
            project: storage key.
            to_user: storage key of the only user to receive it, on all their streams.
            viewing: `cnv_` id of a conversation; only streams whose page shows it receive the event.
        """
        self.broadcast_locally(project, event, to_user, viewing)
        self._remote.broadcast(project, event, to_user, viewing)

    def broadcast_locally(
        self, project: int, event: Ephemeral, to_user: int | None = None, viewing: str | None = None
    ) -> None:
        """Send an event as `broadcast` does, but only to streams of this node."""
        for stream in self._recipients(project, to_user, viewing):
            stream.offer(event)

    def is_present(self, user: int, project: int) -> bool:
        """Return whether a user has a stream of a project open on this node; both are storage keys."""
        return any(stream.viewer.project.rowid == project for stream in self._by_user.get(user, ()))

    def desk_open(self, session: str, project: int) -> bool:
        """Return whether a session (id) has the desk of a project (storage key) open, on any node."""
        return self._desk_open_here((project, session)) or self._desks.is_open((project, session))

    def _desk_open_here(self, desk: Desk) -> bool:
        project, session = desk
        return any(stream.viewer.session == session for stream in self._by_project.get(project, ()))

    def _desks_here(self) -> Iterator[Desk]:
        for project, streams in self._by_project.items():
            yield from dict.fromkeys(
                (project, stream.viewer.session) for stream in streams if stream.viewer.session is not None
            )

    @property
    def projects(self) -> Collection[int]:
        """The storage keys of the projects with an open stream on this node."""
        return self._by_project.keys()

    @property
    def has_viewers(self) -> bool:
        """True if any page on any node shows a conversation."""
        return bool(self._viewers) or self._remote.has_viewers

    def offer_ephemeral(self, event: EphemeralEvent) -> None:
        """Send a typing event to all streams of its project on this node."""
        self.broadcast_locally(event.project, event)

    def viewed(self, project: int, conversation: str) -> bool:
        """Return whether any page on any node shows the conversation."""
        return self.is_viewed_here(project, conversation) or self._remote.viewed(project, conversation)

    def is_viewed_here(self, project: int, conversation: str) -> bool:
        """Return whether a page with a stream on this node shows the conversation."""
        return (project, conversation) in self._viewers

    def present(self, project: int, agents: Iterable[Agent] | None = None) -> Sequence[Mapping[str, Any]]:
        """Return the presence of these agents of a project, or of all agents who are online."""
        views = self._views(project)
        for agent, others in self._remote.views(project).items():
            views.setdefault(agent, []).extend(others)
        return [presence_view(agent, views.get(agent, ())) for agent in (views if agents is None else agents)]

    def _views(self, project: int) -> dict[Agent, list[View]]:
        """Return a project's agents who are online on this node, each with the views of their streams."""
        views: dict[Agent, list[View]] = {}
        for stream in self._by_project.get(project, {}):
            views.setdefault(stream.agent, []).append(stream.view)
        return views

    def follow(self, commits: Commits[RightsCommit]) -> None:
        """End the streams of sessions that a commit ends, and check all rights after a commit that may have ended some."""
        commits.subscribe(lambda _: self.rights_changed_nowait(), "callers", "people")
        commits.subscribe(lambda commit: self.end_sessions(commit.sessions), "sessions")

    def rights_changed_nowait(self) -> None:
        """Schedule a check of all streams, after a committed change of users, members or projects.

        The limits of sessions may have changed as well: each reader compares `rights_version`, and reads its credential again.
        """
        self.rights_version += 1
        self._rights_due.set()

    def end_sessions(self, sessions: Iterable[str]) -> None:
        """End the streams of these sessions."""
        gone = set(sessions)
        for stream in self._streams.values():
            if stream.viewer.session in gone:
                self.end(stream, "session_ended")

    async def end_lost_sessions(self) -> None:
        """End the streams whose session has ended, on whichever node that was committed. Raises Unavailable."""
        held = {session for stream in self._streams.values() if (session := stream.viewer.session)}
        if held:
            self.end_sessions(
                await self._store.read(lambda reader: [each for each in held if not reader.lasts(each)])
            )

    async def run(self) -> None:
        """Send presence and check rights, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send_presence)
            nursery.start_soon(self._check_rights)
            if not self._alone:
                nursery.start_soon(self._remote.run, self._all_views)
                nursery.start_soon(self._desks.run, self._desks_here)
                nursery.start_soon(self._lapse)

    def _recipients(self, project: int, to_user: int | None, viewing: str | None) -> Iterable[AgentStream]:
        if viewing is not None:
            viewers = self._viewers.get((project, viewing), {})
            return [each for each in viewers if to_user is None or each.viewer.user == to_user]
        if to_user is not None:
            return [each for each in self._by_user.get(to_user, ()) if each.viewer.project.rowid == project]
        return self._by_project.get(project, {})

    def _enter(self, stream: AgentStream) -> None:
        super()._enter(stream)
        self._streams[stream.id] = stream
        self._by_project.setdefault(stream.viewer.project.rowid, {})[stream] = None
        self._by_user.setdefault(stream.viewer.user, {})[stream] = None
        self._shares.take(stream.viewer.project.organisation)
        self._announce_desk(stream)
        self._note_presence(stream)

    def _announce_desk(self, stream: AgentStream) -> None:
        session = stream.viewer.session
        if session is not None and not self._alone:
            desk = (stream.viewer.project.rowid, session)
            self._desks.announce(desk, is_open=self._desk_open_here(desk))

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

    async def _send_presence(self) -> None:
        while True:
            await self._presence_due.wait()
            await trio.sleep(_PRESENCE_DELAY_S)
            appeared, self._appeared, self._presence_due = self._appeared, {}, trio.Event()
            ours, self._ours_changed = self._ours_changed, {}
            for project, agent in () if self._alone else ours:
                views = self._views(project).get(agent)
                self._remote.announce(project, agent, None if views is None else merged(views))
            for project, agent in appeared:
                for stream in self._by_project.get(project, {}):
                    stream.queue_presence(agent)
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
                await trio.sleep(_RETRY_DELAY_S)

    async def _check(self, stream: AgentStream) -> None:
        bye = await self._store.read(InlineQuery(lambda reader: find_lost_right(reader, stream.viewer)))
        if bye is not None:
            self.end(stream, bye)


def presence_event(agents: Sequence[Mapping[str, Any]]) -> Ephemeral:
    """Return the event with the presence of these agents."""
    return ephemeral_event("presence", {"agents": agents})


def _discard(of: dict[Any, dict[AgentStream, None]], key: Any, stream: AgentStream) -> None:
    streams = of[key]
    del streams[stream]
    if not streams:
        del of[key]
