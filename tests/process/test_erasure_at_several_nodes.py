"""No node shows, streams or delivers data that another node has erased, even if it stood still in the meantime."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.engine.cluster.membership import LEASE_DURATION_S
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.frames import Listening, listen
from tests.support.node_processes import SETTLE_S, Nodes, running_nodes
from tests.support.postgres_nodes import rows
from tests.support.sockets.receivers import Request, read_request

pytestmark = pytest.mark.long

_HERE: Final = 1
"""The node that stands still, and gets the client's calls."""
_OTHER: Final = 0
_ENDPOINTS: Final = 5
_BRIEF_S: Final = 2.0
_RETRY_AFTER_S: Final = "3,3,60"
"""So that a node that stands still has something to send again when it goes on."""
_WORDS: Final = ("quokka", "numbat", "wombat", "bilby", "dunnart", "echidna", "cuscus", "dingo")
_TURN_S: Final = 0.1
"""Time that this process has to read the data that had arrived before the erasure's response."""


@dataclass
class Witness:
    """All that came out of the installation, and when; `erased` are words and when it was answered that they are gone."""

    seen: list[tuple[float, str, str]] = field(default_factory=list)
    erased: dict[str, float] = field(default_factory=dict)
    _more: trio.Event = field(default_factory=trio.Event)

    def note(self, where: str, text: str) -> None:
        self.seen.append((trio.current_time(), where, text))
        more, self._more = self._more, trio.Event()
        more.set()

    async def until_seen(self, where: str, word: str) -> None:
        with trio.fail_after(HANG_TIMEOUT_S):
            while not self.has(where, word):
                await self._more.wait()

    def late(self) -> list[tuple[str, str]]:
        """Return where a word was seen though it was erased, and which."""
        return [
            (word, where)
            for at, where, text in self.seen
            for word, erased_at in self.erased.items()
            if word in text and at > erased_at
        ]

    def has(self, where: str, word: str) -> bool:
        return any(place == where and word in text for _, place, text in self.seen)


@dataclass
class Stage:
    """The nodes, a receiver of webhooks, and readers of the node that is to stand still."""

    nodes: Nodes
    witness: Witness
    owner: httpx.AsyncClient
    here: httpx.AsyncClient
    other: httpx.AsyncClient
    project: Mapping[str, str]
    began: float = field(default_factory=trio.current_time)

    async def said(self, word: str, user: str, name: str) -> str:
        """The id of a conversation of the contact `user` with a message at the node that is to stand still."""
        contact = {"userId": user, "name": f"{name} contact"}
        made = await self.here.post("/s2s/conversations", json={"contact": contact, "title": f"{word} title"})
        assert made.status_code == 200, made.text
        found = str(made.json()["id"])
        await self.message(self.here, found, word)
        return found

    async def message(self, http: httpx.AsyncClient, conversation: str, word: str) -> httpx.Response:
        """Post, with a key that is the word."""
        path, body = f"/s2s/conversations/{conversation}/messages", {"text": f"{word} text"}
        answer = await http.post(path, json=body, headers={"Idempotency-Key": word})
        assert answer.status_code in (200, 404, 410, 503), answer.text
        return answer

    async def look(self, conversation: str, user: str, word: str) -> None:
        """Read all places at the node, and note their contents."""
        paths = [
            f"/s2s/conversations/{conversation}",
            f"/s2s/conversations/{conversation}/messages",
            f"/s2s/conversations/{conversation}/events",
            f"/s2s/contacts/{user}",
            "/s2s/events?limit=200",
            f"/s2s/webhooks/{await self.endpoint()}/deliveries",
        ]
        async with trio.open_nursery() as nursery:
            for path in paths:
                nursery.start_soon(self._ask, self.here, path, {})
            for path in (f"/search?q={word}", f"/conversations/{conversation}", "/conversations"):
                nursery.start_soon(self._ask, self.owner, path, self.project)
            nursery.start_soon(self._ask_again, conversation, word)

    async def endpoint(self) -> str:
        return str(rows(self.nodes.url, "SELECT id FROM endpoints ORDER BY rowid LIMIT 1")[0][0])

    async def _ask(self, http: httpx.AsyncClient, path: str, headers: Mapping[str, str]) -> None:
        answer = await http.get(path, headers=headers)
        assert answer.status_code in (200, 404, 410, 503), f"{path} {answer.text}"
        self.witness.note(path.partition("?")[0], answer.text)

    async def _ask_again(self, conversation: str, word: str) -> None:
        self.witness.note("kept answer", (await self.message(self.here, conversation, word)).text)

    async def erased(self, path: str, words: Sequence[str]) -> float:
        """Erase at the other node, and take note of when that was answered."""
        answer = await self.other.delete(path)
        assert answer.status_code == 200, answer.text
        answered_at = trio.current_time()
        await trio.sleep(_TURN_S)  # in this time it reads the events that had arrived
        for word in words:
            self.witness.erased[word] = trio.current_time()
        return answered_at


@dataclass
class Receiver:
    """A receiver that refuses what has one of the words, so that it is to be sent again."""

    witness: Witness
    port: int = 0

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        task_status.started()
        await trio.serve_listeners(self._serve_one, [listener])

    async def _serve_one(self, stream: trio.SocketStream) -> None:
        data = b""
        try:
            while True:
                request: Request
                request, data = await read_request(stream, data, 0)
                text = request.body.decode()
                self.witness.note("webhook", text)
                later = any(word in text for word in _WORDS)
                status = b"503 Later" if later else b"200 OK"
                await stream.send_all(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)
        except (EOFError, trio.BrokenResourceError):
            pass  # the node has closed it


async def follow(url: str, project: str, token: str, witness: Witness) -> None:
    """Note what a node's stream for agents says, coming back whenever it ends."""
    headers = {"Authorization": f"Bearer {token}", "project": project}
    async with httpx.AsyncClient(headers=headers, timeout=None, trust_env=False) as http:
        while True:
            try:
                async with http.stream("GET", f"{url}/v3/stream") as answer:
                    async for line in answer.aiter_lines():
                        witness.note("agents' stream", line)
            except httpx.TransportError:
                pass  # the node ends it when it has lost its lease
            await trio.sleep(0.1)  # the client's own pause


async def consume(nodes: Nodes, node: int, http: httpx.AsyncClient, witness: Witness) -> None:
    """Note what a node's realtime stream says to a consumer that comes back whenever it is ended."""
    channel = f"private-project-{nodes.project}"
    while True:
        one = Listening("one", heard=lambda text: witness.note("stream", text))
        await listen(nodes.servers[node].url, http, nodes.stream_key, channel, one)
        await trio.sleep(0.1)  # the client's own pause


@asynccontextmanager
async def staged(directory: Path) -> AsyncIterator[Stage]:
    witness = Witness()
    environ = {"DESKWIRE_WEBHOOK_RETRY_AFTER_S": _RETRY_AFTER_S}
    async with (
        running_nodes(directory, "ab", environ) as nodes,
        nodes.client(_HERE, nodes.token) as owner,
        nodes.client(_HERE, nodes.key) as here,
        nodes.client(_OTHER, nodes.key) as other,
        trio.open_nursery() as nursery,
    ):
        receiver = Receiver(witness)
        await nursery.start(receiver.serve)
        for number in range(_ENDPOINTS):
            url = f"http://127.0.0.1:{receiver.port}/{number}"
            made = await here.post("/s2s/webhooks", json={"url": url})
            assert made.status_code == 200, made.text
        nursery.start_soon(follow, nodes.servers[_HERE].url, nodes.project, nodes.token, witness)
        nursery.start_soon(consume, nodes, _HERE, here, witness)
        await witness.until_seen("stream", "subscription_succeeded")
        await witness.until_seen("agents' stream", "hello")
        yield Stage(nodes, witness, owner, here, other, {"project": nodes.project})
        nursery.cancel_scope.cancel()


async def shown_everywhere(stage: Stage, conversation: str, user: str, word: str) -> None:
    """Look until the word was seen in every place: else nothing would be shown by its absence later."""
    places: tuple[str, ...] = (
        "agents' stream",
        "stream",
        "webhook",
        "kept answer",
        "/search",
        "/conversations",
    )
    places += (f"/s2s/conversations/{conversation}/messages", "/s2s/events")
    missing = [*places]
    with trio.move_on_after(20):
        while missing:
            await stage.look(conversation, user, word)
            missing = [place for place in places if not stage.witness.has(place, word)]
    assert missing == []


async def erased_while_it_stands_still(
    stage: Stage, words: Sequence[str], users: Sequence[str], *, long: bool
) -> None:
    """Delete one conversation and erase the contact of another while the node, which knows both, stands still.

    Args:
        words: two that the node has read of, and two that come while it stands still.
        long: whether that is for longer than its lease.
    """
    nodes, word = stage.nodes, dict(zip(("deleted", "erased", "late", "later"), words, strict=True))
    deleted = await stage.said(word["deleted"], users[0], "Ada")
    erased = await stage.said(word["erased"], users[1], word["erased"])
    known = (deleted, users[0], word["deleted"]), (erased, users[1], word["erased"])
    for each in known:
        await shown_everywhere(stage, *each)
    if long:
        await trio.sleep_until(stage.began + SETTLE_S)
    before = nodes.lives()
    over, goes_on, answered = trio.Event(), trio.Event(), list[float]()

    async def erase(path: str, *gone: str) -> None:
        answered.append(await stage.erased(path, gone))
        if len(answered) == len(known):
            over.set()
        if long:
            assert "b" not in nodes.leased(), "it might still believe what it remembers"
        else:
            assert nodes.lives()["b"] == before["b"], "it was not given up, but has forgotten"

    async def delete_again() -> None:
        """Hear that it is gone, as a client that lost the answer: not before it is gone at every node."""
        while rows(nodes.url, f"SELECT 1 FROM conversations WHERE id = '{deleted}'"):  # noqa: ASYNC110
            await trio.sleep(0.05)  # poll: there is no notification
        again = await stage.other.delete(f"/s2s/conversations/{deleted}")
        assert again.status_code == 404, again.text
        assert goes_on.is_set() or "b" not in nodes.leased(), "it might still believe what it remembers"

    async with trio.open_nursery() as nursery:
        asked = trio.current_time()
        with nodes.stopped(_HERE):
            await stage.message(stage.other, deleted, word["late"])  # which the node has not read yet
            await stage.message(stage.other, erased, word["later"])
            nursery.start_soon(erase, f"/s2s/conversations/{deleted}", word["deleted"], word["late"])
            nursery.start_soon(erase, f"/s2s/contacts/{users[1]}", word["erased"], word["later"])
            nursery.start_soon(delete_again)
            for each in known:
                nursery.start_soon(stage.look, *each)
            with trio.move_on_after(LEASE_DURATION_S + 3 if long else _BRIEF_S):
                await over.wait()
            assert over.is_set() == long, "a node that may go on with what it remembers is waited for"
            assert long or answered == []
        goes_on.set()
    print("answered after", [f"{at - asked:.2f} s" for at in answered])
    for _ in range(5):
        for each in known:
            await stage.look(*each)


async def test_node_stopped_during_an_erasure_shows_and_sends_no_erased_data(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        await erased_while_it_stands_still(stage, _WORDS[:4], ("u1", "u2"), long=False)
        await erased_while_it_stands_still(stage, _WORDS[4:], ("u3", "u4"), long=True)
        word = "possum"
        with trio.fail_after(HANG_TIMEOUT_S):
            while not await is_taken(stage, word):  # noqa: ASYNC110
                await trio.sleep(0.1)  # the client's own pause
        for place in ("agents' stream", "stream", "webhook"):
            await stage.witness.until_seen(place, word)
        assert sorted(set(stage.witness.late())) == []


async def is_taken(stage: Stage, word: str) -> bool:
    """Whether the node that stood still takes a message again."""
    made = await stage.here.post("/s2s/conversations", json={"contact": {"userId": "u3"}, "title": word})
    if made.status_code == 503:
        return False
    found: dict[str, Any] = made.json()
    await stage.message(stage.here, found["id"], word)
    return True
