"""Events of a megabyte on the wire, and a consumer that does not read them."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
import trio
from wsproto.events import TextMessage

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.events.types import EventDraft
from deskwire.engine.ports import Transaction
from tests.support.api.service import Service, running, tapping
from tests.support.sockets.raw_peer import RawPeer, upgrade
from tests.support.stores import AnyStore

SIZE: Final = 1_000_000


@pytest.fixture
async def tapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Service, AnyStore]]:
    """Yield a service, and the store beneath it."""
    stores = tapping(monkeypatch)
    async with running(tmp_path) as service:
        yield service, stores[0]


async def consumer(service: Service, channel: str, *, narrow: bool = False) -> RawPeer:
    """Yield a consumer of a channel; a `narrow` one has almost no room for unread bytes."""
    raw = await trio.open_tcp_stream("127.0.0.1", int(service.url.rpartition(":")[2]))
    if narrow:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    peer = RawPeer(raw)
    await peer.open(upgrade(key=service.demo["streamKey"]))
    socket_id = orjson.loads((await peer.message())["data"])["socket_id"]
    asked = {"socket_id": socket_id, "channel_name": channel, "consumerId": channel}
    answer = await service.http.post("/s2s/stream/auth", json=asked)
    data = {"channel": channel, **answer.json()}
    await peer.send(TextMessage(orjson.dumps({"event": "pusher:subscribe", "data": data}).decode()))
    assert (await peer.message())["event"] == "pusher_internal:subscription_succeeded"
    return peer


async def envelope(peer: RawPeer) -> str:
    """The envelope of the next event."""
    text: str = (await peer.message())["data"]
    return text


async def append(service: Service, store: AnyStore, conversation: dict[str, Any], *sizes: int) -> list[str]:
    """Commit events of the conversation with this much text at once; return their envelopes."""

    def job(tx: Transaction) -> list[str]:
        project = tx.project(service.demo["projectId"])
        assert project is not None
        found = tx.conversation(project.rowid, conversation["id"])
        assert found is not None
        shown = {"id": conversation["id"], "contact": conversation["contact"]}
        drafts = [
            EventDraft("message.created", None, {"conversation": shown, "text": "ü" * (size // 2)})
            for size in sizes
        ]
        return [
            tx.append_event(project, draft, found[0].rowid, wall_clock()).body.decode() for draft in drafts
        ]

    return await store.write(job)


async def test_slow_reader_of_a_megabyte_blocks_no_other_and_gets_it_later(
    tapped: tuple[Service, AnyStore],
) -> None:
    """Decisions 5: a slow reader slows no other reader."""
    service, store = tapped
    conversation = await service.create()
    mute = await consumer(service, f"private-project-{service.demo['projectId']}", narrow=True)
    others = [
        await consumer(service, f"private-conversation-{conversation['id']}"),
        await consumer(service, "private-contact-u1"),
    ]
    sent = await append(service, store, conversation, SIZE, 10, SIZE)
    for other in others:
        assert [await envelope(other) for _ in sent] == sent
    sent += await append(service, store, conversation, 10)
    for other in others:
        assert await envelope(other) == sent[-1]
    assert [await envelope(mute) for _ in sent] == sent
    for peer in (mute, *others):
        await trio.aclose_forcefully(peer.stream)
