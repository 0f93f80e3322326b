"""Presence of contacts for agents: whether a contact has a stream open, and on which page of the website.

Agents learn it as the ephemeral event `contact.presence`, on pages that show a conversation of the contact: once when the page
reports the conversation, and after each change. A contact goes offline some seconds after its last stream has closed, so that
a reload is no change. Nothing is stored.

Where nodes share the store, a node announces only the contacts that another node has asked for, because there may be thousands
of contacts online. Each node repeats its requests every few seconds: a lost message is repaired soon, and a dead node expires.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from math import inf
from typing import Any, Final, NamedTuple

import orjson
import trio

from deskwire.engine.agents.presence import EncodedEphemeral, ephemeral_event
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.cluster.cluster import Bus, NoBus
from deskwire.engine.customers.stream import Page

MESSAGE_KIND: Final = "contacts"  # the kind of these messages on the bus

# Time after the last stream closes until the contact is offline: a reload takes less.
OFFLINE_DELAY_S: Final = 5.0
REQUEST_INTERVAL_S: Final = 10.0  # interval at which a node repeats its requests
_TTL_S: Final = 25.0  # time for which a request or an announcement is valid: two in a row may be lost
_ANSWER_TIMEOUT_S: Final = 0.3  # time that a single question waits for other nodes
_MESSAGE_BYTES_MAX: Final = 3_500  # approximate maximum bytes of a message, below the limit of the bus
_PAGE_TEXT_MAX: Final = 500  # characters of a page's address and title that are announced


class ContactKey(NamedTuple):
    """A contact: the storage key of its project, and its `con_` id."""

    project: int
    contact: str


class ContactPresence:
    """The contacts who are online on this node, and those that its agents look at on all nodes.

    Args:
        node: the name of this node.
    """

    def __init__(self, agents: AgentStreams, bus: Bus | None = None, node: str = "") -> None:
        self._agents = agents
        self._alone = bus is None
        self._bus = bus or NoBus()
        self._node = node
        self._streams: dict[ContactKey, int] = {}  # the number of streams; 0 during the delay
        self._pages: dict[ContactKey, Page] = {}
        self._leaving: dict[ContactKey, float] = {}
        self._viewed: dict[ContactKey, dict[str, None]] = {}  # with the viewed conversations
        self._asked: dict[ContactKey, float] = {}
        self._requested: dict[ContactKey, float] = {}  # by other nodes, until these times
        self._elsewhere: dict[ContactKey, dict[str, tuple[Page | None, float]]] = {}
        self._repeat_at = 0.0
        self._changed = trio.Event()
        self._due = trio.Event()
        self._bus.receive(MESSAGE_KIND, self._receive)
        self._bus.connected(self._repeat_now)

    def opened(self, contact: ContactKey, page: Page | None) -> None:
        """Note a stream of the contact, and the page on which it was opened."""
        new = contact not in self._streams
        self._streams[contact] = self._streams.get(contact, 0) + 1
        self._leaving.pop(contact, None)
        if not self.set_page(contact, page) and new:
            self._changed_here(contact)

    def closed(self, contact: ContactKey) -> None:
        """Note the end of a stream of the contact, who is offline after a delay unless another one opens."""
        self._streams[contact] -= 1
        if not self._streams[contact]:
            if not self._leaving:
                self._due.set()
            self._leaving[contact] = trio.current_time() + OFFLINE_DELAY_S

    def set_page(self, contact: ContactKey, page: Page | None) -> bool:
        """Set the page on which a contact with a stream is; return whether that is a change."""
        if page is None or contact not in self._streams or self._pages.get(contact) == page:
            return False
        self._pages[contact] = page
        self._changed_here(contact)
        return True

    def show(self, stream_id: str, views: Mapping[str, ContactKey]) -> None:
        """Send an agent's page the presence of the contacts of the conversations that it shows now.

        Args:
            views: the conversations that the page did not show before, each with its contact.
        """
        for conversation, contact in views.items():
            if contact not in self._viewed:
                self._request([contact])
            self._viewed.setdefault(contact, {})[conversation] = None
        for contact in dict.fromkeys(views.values()):
            self._agents.offer_to(stream_id, self._event(contact))

    def merged(self, source: ContactKey, target: ContactKey) -> None:
        """Send the pages that show conversations of a merged contact the presence of the contact that has them now."""
        self._follow_merge(source, target)
        self._send("merged", [[*source, target.contact]])

    def view(self, contact: ContactKey) -> Mapping[str, Any]:
        """Return the presence of a contact as agents see it, as far as this node knows it."""
        here = contact in self._streams
        others = self._elsewhere.get(contact, {})
        pages = (self._pages.get(contact), *(page for page, _ in others.values()))
        page = next((each for each in pages if each is not None), None)
        return {
            "contactId": contact.contact,
            "online": here or bool(others),
            "page": page and {"url": page.url, "title": page.title},
        }

    async def ask(self, contact: ContactKey) -> Mapping[str, Any]:
        """Return the presence of a contact on all nodes; it takes a moment if no agent looks at the contact."""
        await trio.lowlevel.checkpoint()
        known = self._alone or any(contact in each for each in (self._streams, self._viewed, self._asked))
        if not known:
            self._asked[contact] = trio.current_time() + _TTL_S
            self._request([contact])
            with trio.move_on_after(_ANSWER_TIMEOUT_S):
                while contact not in self._elsewhere:
                    await self._changed.wait()
        return self.view(contact)

    async def run(self) -> None:
        """Take contacts offline, and repeat and expire requests, until cancelled."""
        while True:
            # The delay is the same for all, so that the first contact in the dict is the next one.
            with trio.move_on_at(min(self._repeat_at, next(iter(self._leaving.values()), inf))):
                await self._due.wait()
            self._due = trio.Event()
            self._take_offline()
            if trio.current_time() >= self._repeat_at:
                self._repeat_at = trio.current_time() + REQUEST_INTERVAL_S
                self._forget_unviewed()
                self._expire()
                self._request(dict.fromkeys((*self._viewed, *self._asked)))

    def _repeat_now(self) -> None:
        self._repeat_at = 0.0
        self._due.set()

    def _take_offline(self) -> None:
        now = trio.current_time()
        for contact in [*takewhile(lambda each: self._leaving[each] <= now, self._leaving)]:
            del self._leaving[contact], self._streams[contact]
            self._pages.pop(contact, None)
            self._changed_here(contact)

    def _changed_here(self, contact: ContactKey) -> None:
        self._notify(contact)
        if self._requested.get(contact, 0.0) > trio.current_time():
            self._announce([contact])

    def _notify(self, contact: ContactKey) -> None:
        """Send the presence to all pages of this node that show a conversation of the contact."""
        for conversation in self._viewed.get(contact, ()):
            self._agents.broadcast_locally(contact.project, self._event(contact), viewing=conversation)
        self._changed.set()
        self._changed = trio.Event()

    def _follow_merge(self, source: ContactKey, target: ContactKey) -> None:
        conversations = self._viewed.pop(source, None)
        if conversations is None:
            return
        if target not in self._viewed:
            self._request([target])
        self._viewed.setdefault(target, {}).update(conversations)
        self._notify(target)

    def _event(self, contact: ContactKey) -> EncodedEphemeral:
        return ephemeral_event("contact.presence", self.view(contact))

    def _forget_unviewed(self) -> None:
        for contact, conversations in [*self._viewed.items()]:
            for each in [*conversations]:
                if not self._agents.is_viewed_here(contact.project, each):
                    del conversations[each]
            if not conversations:
                del self._viewed[contact]

    def _expire(self) -> None:
        now = trio.current_time()
        self._asked = {contact: until for contact, until in self._asked.items() if until > now}
        self._requested = {contact: until for contact, until in self._requested.items() if until > now}
        for contact, nodes in [*self._elsewhere.items()]:
            for node in [name for name, (_, until) in nodes.items() if until <= now]:
                self._note_elsewhere(node, contact, None, online=False)

    def _request(self, contacts: Iterable[ContactKey]) -> None:
        self._send("request", [[*each] for each in contacts])

    def _announce(self, contacts: Iterable[ContactKey]) -> None:
        self._send("presence", [[*each, *self._announcement(each)] for each in contacts])

    def _announcement(self, contact: ContactKey) -> Sequence[Any]:
        page = self._pages.get(contact)
        shown = page and [page.url[:_PAGE_TEXT_MAX], (page.title or "")[:_PAGE_TEXT_MAX]]
        return contact in self._streams, shown

    def _send(self, what: str, items: Iterable[Sequence[Any]]) -> None:
        part: list[bytes] = []
        for one in () if self._alone else map(orjson.dumps, items):
            if part and sum(map(len, part)) + len(one) > _MESSAGE_BYTES_MAX:
                self._send_part(what, part)
                part = []
            part.append(one)
        if part:
            self._send_part(what, part)

    def _send_part(self, what: str, items: Sequence[bytes]) -> None:
        body = b'{"from":%b,"%b":[%b]}' % (orjson.dumps(self._node), what.encode(), b",".join(items))
        self._bus.send(MESSAGE_KIND, body)

    def _receive(self, payload: bytes) -> None:
        message = orjson.loads(payload)
        wanted = [ContactKey(*each) for each in message.get("request", ())]
        until = trio.current_time() + _TTL_S
        self._requested.update(dict.fromkeys(wanted, until))
        self._announce(each for each in wanted if each in self._streams)
        for project, source, target in message.get("merged", ()):
            self._follow_merge(ContactKey(project, source), ContactKey(project, target))
        for project, contact, online, page in message.get("presence", ()):
            shown = None if page is None else Page(page[0], page[1] or None)
            self._note_elsewhere(message["from"], ContactKey(project, contact), shown, online=online)

    def _note_elsewhere(self, node: str, contact: ContactKey, page: Page | None, *, online: bool) -> None:
        before = self.view(contact)
        nodes = self._elsewhere.setdefault(contact, {})
        nodes.pop(node, None)
        if online:
            nodes[node] = page, trio.current_time() + _TTL_S
        if not nodes:
            del self._elsewhere[contact]
        if self.view(contact) != before:
            self._notify(contact)
