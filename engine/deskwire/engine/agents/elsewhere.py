"""The agents on other nodes: who is there and looks at what, as those nodes say, and what passes between the nodes.

Each node says of its agents what has changed, and every few seconds everything: whatever was lost is made good by that,
and what a node that has died has said is forgotten a little later. Nothing of it is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
import trio
from msgspec import Struct

from deskwire.engine.agents.passing import Passing, PassingEvent
from deskwire.engine.agents.presence import Agent, View
from deskwire.engine.cluster.bus import Bus

KIND: Final = "agents"
"""The kind of message on the bus."""

SAY_S: Final = 10.0
"""Time after which a node says everything again."""
_GOOD_S: Final = 25.0
"""Time for which it is believed: two messages may be lost."""
_MESSAGE: Final = 3_500
"""Bytes of a message about, so that none is too long."""
_VIEWED: Final = 60
"""Conversations that other nodes are told of for one agent, at most."""


class _Said(Struct, frozen=True):
    view: View
    until: float


class Elsewhere:
    """The agents of other nodes as those have told of them, and what they are told of ours.

    Args:
        node: the name of this node.
        life: is another one each time that the node begins anew.
        changed: called with a project and an agent whose presence elsewhere is another.
        passed: called with what another node passes on, as `pass_on` is.
    """

    def __init__(
        self,
        bus: Bus,
        node: str,
        life: str,
        changed: Callable[[int, Agent], None],
        passed: Callable[[int, Passing, int | None, str | None], None],
    ) -> None:
        self._bus = bus
        self._name = [node, life]
        self._changed = changed
        self._passed = passed
        self._lives: dict[str, str] = {}
        self._said: dict[tuple[str, int, Agent], _Said] = {}
        self._there = Counter[int]()
        self._viewed = Counter[tuple[int, str]]()
        self._say_due = trio.Event()
        bus.receive(KIND, self._came)
        bus.connected(self._ask)

    @property
    def anybody(self) -> bool:
        """True if any page on another node shows any conversation."""
        return bool(self._viewed)

    def viewed(self, project: int, conversation: str) -> bool:
        """Return whether a page on another node shows the conversation."""
        return (project, conversation) in self._viewed

    def views(self, project: int) -> Mapping[Agent, Sequence[View]]:
        """Return the agents of a project that are there on other nodes, each with what it looks at on them."""
        found: dict[Agent, list[View]] = {}
        if project in self._there:
            for (_, its_project, agent), said in self._said.items():
                if its_project == project:
                    found.setdefault(agent, []).append(said.view)
        return found

    def tell(self, project: int, agent: Agent, view: View | None) -> None:
        """Tell other nodes what an agent looks at on this one; None if it is not there any more."""
        self._send([[project, *_shown(agent, view)]])

    def pass_on(self, project: int, event: Passing, to_user: int | None, viewing: str | None) -> None:
        """Pass an event on to those nodes whose agents it may be for, if there are any."""
        if project in self._there and (viewing is None or self.viewed(project, viewing)):
            passed = [project, to_user, viewing, event.body.decode()]
            self._bus.send(KIND, orjson.dumps({"from": self._name, "pass": passed}))

    async def run(self, ours: Callable[[], Iterable[tuple[int, Agent, View]]]) -> None:
        """Say everything again from time to time, and forget what was said long ago, until cancelled.

        Args:
            ours: returns all agents that are there on this node, each once in a project.
        """
        while True:
            with trio.move_on_after(SAY_S):
                await self._say_due.wait()
            self._say_due = trio.Event()
            self._forget(lambda _, said: said.until <= trio.current_time())
            known = {node for node, _, _ in self._said}
            self._lives = {node: life for node, life in self._lives.items() if node in known}
            self._send([[project, *_shown(agent, view)] for project, agent, view in ours()])

    def _ask(self) -> None:
        self._bus.send(KIND, orjson.dumps({"from": self._name, "ask": True}))
        self._say_due.set()

    def _send(self, agents: Sequence[Sequence[Any]]) -> None:
        part: list[bytes] = []
        for one in map(orjson.dumps, agents):
            if part and sum(map(len, part)) + len(one) > _MESSAGE:
                self._send_part(part)
                part = []
            part.append(one)
        if part:
            self._send_part(part)

    def _send_part(self, agents: Sequence[bytes]) -> None:
        self._bus.send(KIND, b'{"from":%b,"agents":[%b]}' % (orjson.dumps(self._name), b",".join(agents)))

    def _came(self, payload: bytes) -> None:
        message = orjson.loads(payload)
        node, life = message["from"]
        if self._lives.get(node, life) != life:
            self._forget(lambda whose, _: whose[0] == node)
        self._lives[node] = life
        if "pass" in message:
            project, to_user, viewing, body = message["pass"]
            self._passed(project, PassingEvent(body.encode()), to_user, viewing)
        if "ask" in message:
            self._say_due.set()
        for project, user_id, name, conversations, composing in message.get("agents", ()):
            view = None if conversations is None else View(tuple(conversations), composing)
            self._note(node, project, Agent(user_id, name), view)

    def _note(self, node: str, project: int, agent: Agent, view: View | None) -> None:
        known = self._said.pop((node, project, agent), None)
        if known is not None:
            self._count(project, known.view, -1)
        if view is not None:
            self._said[node, project, agent] = _Said(view, trio.current_time() + _GOOD_S)
            self._count(project, view, 1)
        if view != (None if known is None else known.view):
            self._changed(project, agent)

    def _forget(self, which: Callable[[tuple[str, int, Agent], _Said], bool]) -> None:
        for node, project, agent in [whose for whose, said in self._said.items() if which(whose, said)]:
            self._note(node, project, agent, None)

    def _count(self, project: int, view: View, by: int) -> None:
        self._there[project] += by
        if not self._there[project]:
            del self._there[project]
        for conversation in view.conversations:
            key = (project, conversation)
            self._viewed[key] += by
            if not self._viewed[key]:
                del self._viewed[key]


def _shown(agent: Agent, view: View | None) -> Sequence[Any]:
    if view is None:
        return agent.id, agent.name, None, None
    return agent.id, agent.name, view.conversations[:_VIEWED], view.composing
