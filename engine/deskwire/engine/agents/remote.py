"""The agents on other nodes: their presence as those nodes announce it, and ephemeral events between nodes.

Each node announces changes of its agents' presence at once, and the presence of all its agents every few seconds. So a lost
message is repaired soon, and the announcements of a dead node expire. Nothing is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
import trio
from msgspec import Struct

from deskwire.engine.agents.presence import Agent, EncodedEphemeral, View
from deskwire.engine.cluster.cluster import Bus
from deskwire.engine.events.event_stream import Ephemeral

MESSAGE_KIND: Final = "agents"  # the kind of these messages on the bus

ANNOUNCE_INTERVAL_S: Final = 10.0  # interval at which a node announces all its agents
# Time for which an announcement is valid: two announcements in a row may be lost.
_ANNOUNCEMENT_TTL_S: Final = 25.0
_MESSAGE_BYTES_MAX: Final = 3_500  # approximate maximum bytes of a message, below the limit of the bus
_VIEWED_MAX: Final = 60  # maximum conversations announced for one agent


class _RemoteView(Struct, frozen=True):
    view: View
    until: float


class RemoteAgents:
    """The presence of agents on other nodes, and the announcements of this node's agents.

    Args:
        node: the name of this node.
        incarnation: identifies this run of the node; it differs for each start.
        on_change: called with a project and an agent whose presence on other nodes has changed.
        on_event: called with the arguments with which another node called `broadcast`.
    """

    def __init__(
        self,
        bus: Bus,
        node: str,
        incarnation: str,
        on_change: Callable[[int, Agent], None],
        on_event: Callable[[int, Ephemeral, int | None, str | None], None],
    ) -> None:
        self._bus = bus
        self._name = [node, incarnation]
        self._on_change = on_change
        self._on_event = on_event
        self._incarnations: dict[str, str] = {}
        self._remote_views: dict[tuple[str, int, Agent], _RemoteView] = {}
        self._agent_counts = Counter[int]()
        self._viewed = Counter[tuple[int, str]]()
        self._announce_due = trio.Event()
        bus.receive(MESSAGE_KIND, self._receive)
        bus.connected(self._request_announcements)

    @property
    def has_viewers(self) -> bool:
        """True if any page on another node shows any conversation."""
        return bool(self._viewed)

    def viewed(self, project: int, conversation: str) -> bool:
        """Return whether a page on another node shows the conversation."""
        return (project, conversation) in self._viewed

    def views(self, project: int) -> Mapping[Agent, Sequence[View]]:
        """Return a project's agents who are online on other nodes, each with their views there."""
        found: dict[Agent, list[View]] = {}
        if project in self._agent_counts:
            for (_, its_project, agent), remote in self._remote_views.items():
                if its_project == project:
                    found.setdefault(agent, []).append(remote.view)
        return found

    def announce(self, project: int, agent: Agent, view: View | None) -> None:
        """Announce an agent's view on this node to other nodes; None if the agent went offline."""
        self._send([[project, *_announcement(agent, view)]])

    def broadcast(self, project: int, event: Ephemeral, to_user: int | None, viewing: str | None) -> None:
        """Send an event to the other nodes, if an agent there may be a recipient; see `AgentStreams.broadcast`."""
        if project in self._agent_counts and (viewing is None or self.viewed(project, viewing)):
            sent = [project, to_user, viewing, event.body.decode()]
            self._bus.send(MESSAGE_KIND, orjson.dumps({"from": self._name, "pass": sent}))

    async def run(self, ours: Callable[[], Iterable[tuple[int, Agent, View]]]) -> None:
        """Announce all agents periodically, and expire old announcements of other nodes, until cancelled.

        Args:
            ours: returns all agents who are online on this node, each once per project.
        """
        while True:
            with trio.move_on_after(ANNOUNCE_INTERVAL_S):
                await self._announce_due.wait()
            self._announce_due = trio.Event()
            self._expire(lambda _, remote: remote.until <= trio.current_time())
            known = {node for node, _, _ in self._remote_views}
            self._incarnations = {
                node: incarnation for node, incarnation in self._incarnations.items() if node in known
            }
            self._send([[project, *_announcement(agent, view)] for project, agent, view in ours()])

    def _request_announcements(self) -> None:
        self._bus.send(MESSAGE_KIND, orjson.dumps({"from": self._name, "ask": True}))
        self._announce_due.set()

    def _send(self, agents: Sequence[Sequence[Any]]) -> None:
        part: list[bytes] = []
        for one in map(orjson.dumps, agents):
            if part and sum(map(len, part)) + len(one) > _MESSAGE_BYTES_MAX:
                self._send_part(part)
                part = []
            part.append(one)
        if part:
            self._send_part(part)

    def _send_part(self, agents: Sequence[bytes]) -> None:
        self._bus.send(
            MESSAGE_KIND, b'{"from":%b,"agents":[%b]}' % (orjson.dumps(self._name), b",".join(agents))
        )

    def _receive(self, payload: bytes) -> None:
        message = orjson.loads(payload)
        node, incarnation = message["from"]
        if self._incarnations.get(node, incarnation) != incarnation:
            self._expire(lambda key, _: key[0] == node)
        self._incarnations[node] = incarnation
        if "pass" in message:
            project, to_user, viewing, body = message["pass"]
            self._on_event(project, EncodedEphemeral(body.encode()), to_user, viewing)
        if "ask" in message:
            self._announce_due.set()
        for project, user_id, name, conversations, composing in message.get("agents", ()):
            view = None if conversations is None else View(tuple(conversations), composing)
            self._note(node, project, Agent(user_id, name), view)

    def _note(self, node: str, project: int, agent: Agent, view: View | None) -> None:
        known = self._remote_views.pop((node, project, agent), None)
        if known is not None:
            self._count(project, known.view, -1)
        if view is not None:
            self._remote_views[node, project, agent] = _RemoteView(
                view, trio.current_time() + _ANNOUNCEMENT_TTL_S
            )
            self._count(project, view, 1)
        if view != (None if known is None else known.view):
            self._on_change(project, agent)

    def _expire(self, which: Callable[[tuple[str, int, Agent], _RemoteView], bool]) -> None:
        for node, project, agent in [key for key, remote in self._remote_views.items() if which(key, remote)]:
            self._note(node, project, agent, None)

    def _count(self, project: int, view: View, by: int) -> None:
        self._agent_counts[project] += by
        if not self._agent_counts[project]:
            del self._agent_counts[project]
        for conversation in view.conversations:
            key = (project, conversation)
            self._viewed[key] += by
            if not self._viewed[key]:
                del self._viewed[key]


def _announcement(agent: Agent, view: View | None) -> Sequence[Any]:
    if view is None:
        return agent.id, agent.name, None, None
    return agent.id, agent.name, view.conversations[:_VIEWED_MAX], view.composing
