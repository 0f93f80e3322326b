"""Servers whose only work is to send frames, a process each: Deskwire's stream over its log, without HTTP and commits,
and trio-websocket sending the same bytes. A line on stdin says how many frames each channel gets and how many at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import orjson
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, WebSocketRequest, serve_websocket

from benchmarks.reference import empty
from deskwire.engine.accounts.people import Project
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.log import EventLog
from deskwire.engine.events.types import EventDraft, StoredEvent, encode_envelope, topics_of
from deskwire.engine.ports import Transaction
from deskwire.engine.stream.hub import Hub
from deskwire.http.server.adapters.hypercorn import HypercornServer
from deskwire.http.server.listener import FrontLimits, serve_front
from deskwire.http.stream import pusher
from deskwire.http.stream.server import RealtimeStream
from deskwire.program.process import tune_collector_for_serving
from deskwire.storage.sqlite.store import open_store

TOKEN_KEY: Final = b"benchmark" * 4
STREAM_KEY: Final = "benchmark"
KEY_ID: Final = "key_benchmark"
_COMMIT: Final = 64
"""Events that a group commit publishes at once."""
_WINDOW: Final = 1_000_000
"""More events than are published, so that a slow consumer still finds them, although they are in no table."""
_TEXT: Final = "The parcel has not arrived yet, could you please look into it? " * 6


def envelope(project_id: str, conversation: str) -> bytes:
    """Return a message's envelope, of about 1 KB."""
    message = {
        "id": new_id("msg", 0),
        "conversationId": conversation,
        "index": 1,
        "text": _TEXT,
        "attachments": [],
    }
    contact = {"id": new_id("con", 0), "userId": f"user-{conversation}", "name": "Ada", "email": None}
    about = {
        "id": conversation,
        "projectId": project_id,
        "contact": contact,
        "status": "OPEN",
        "closed": False,
    }
    draft = EventDraft("message.created", 1, {"message": message, "conversation": about})
    return encode_envelope(draft, new_id("evt", wall_clock()), project_id, wall_clock())


async def _orders() -> AsyncIterator[tuple[int, int]]:
    """Yield the orders on stdin: frames for each channel, and the size of a burst."""
    while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
        each, burst = map(int, line.split())
        yield each, burst


def _turns(channels: int, each: int, burst: int) -> Sequence[int]:
    """Return the channel of each event: every channel gets `burst` in a row."""
    return [number for _ in range(each // burst) for number in range(channels) for _ in range(burst)]


@asynccontextmanager
async def _stream(directory: Path) -> AsyncIterator[tuple[int, Project, EventLog]]:
    """Run a stream; yield its port, project and log."""

    def found(tx: Transaction) -> Project:
        organisation = tx.insert_organisation(new_id("org", 0), "Benchmark", 0)
        project = tx.insert_project(new_id("prj", 0), organisation, "Benchmark", STREAM_KEY, 0)
        tx.insert_key(KEY_ID, project.rowid, b"", "", "benchmark", 0)
        return project

    async with (
        open_store(directory, batch=_COMMIT, readers=4, on_commit=lambda commit: None) as store,
        trio.open_nursery() as nursery,
    ):
        project = await store.write(found)
        log = EventLog(store, 0, ring_events=_WINDOW, ring_bytes=_WINDOW * 4_096)
        hub = Hub(store, log, wall_clock)
        await nursery.start(hub.run)
        stream = RealtimeStream(store, hub, wall_clock, keys=lambda: (TOKEN_KEY,))
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")

        async def serve(task_status: trio.TaskStatus[None]) -> None:
            await serve_front(
                listeners,
                HypercornServer(empty, idle_s=5.0, head_s=10.0),
                stream_handler=stream.handle,
                close_streams=stream.close_all,
                stop=trio.Event(),
                limits=FrontLimits(),
                task_status=task_status,
            )

        nursery.start_soon(stream.run)
        await nursery.start(serve)
        yield listeners[0].socket.getsockname()[1], project, log
        nursery.cancel_scope.cancel()


async def deskwire(directory: Path, conversations: list[str]) -> None:
    """Publish to the log as fast as the event loop allows, one group commit for each iteration."""
    async with _stream(directory) as (port, project, log):
        bodies = [envelope(project.id, conversation) for conversation in conversations]
        lanes = [
            topics_of(project.rowid, orjson.loads(body)["data"]) for body in bodies
        ]  # as a commit has them
        print(json.dumps([port, project.id]), flush=True)
        async for each, burst in _orders():
            first = log.position(project.rowid) + 1
            events = [
                StoredEvent(
                    position,
                    f"evt_{position:026}",
                    "message.created",
                    project.rowid,
                    number,
                    1,
                    bodies[number],
                    topics=lanes[number],
                )
                for position, number in enumerate(_turns(len(bodies), each, burst), first)
            ]
            for start in range(0, len(events), _COMMIT):
                log.publish(events[start : start + _COMMIT])
                await trio.lowlevel.checkpoint()


async def reference(conversations: list[str]) -> None:
    """Send the same messages, one after the other, to the consumer that would hold the channel."""
    consumers: list[WebSocketConnection] = []

    async def accept(request: WebSocketRequest) -> None:
        websocket = await request.accept()
        consumers.append(websocket)
        try:
            await websocket.get_message()
        except ConnectionClosed:
            consumers.remove(websocket)

    channel = f"private-conversation-{conversations[0]}"
    text = pusher.event("message.created", channel, envelope(new_id("prj", 0), conversations[0])).decode()
    async with trio.open_nursery() as nursery:
        server = await nursery.start(serve_websocket, accept, "127.0.0.1", 0, None)
        print(json.dumps([server.port, ""]), flush=True)
        async for each, burst in _orders():
            share = len(conversations) // len(consumers)
            for number in _turns(len(conversations), each, burst):
                await consumers[number // share].send_message(text)
        nursery.cancel_scope.cancel()


async def main(kind: str, directory: str, count: int) -> None:
    """Serve until stdin ends. Prints the port and the project; the conversations are numbered from 0."""
    conversations = [conversation_id(number) for number in range(count)]
    await (deskwire(Path(directory), conversations) if kind == "deskwire" else reference(conversations))


def conversation_id(number: int) -> str:
    """Return the made-up id of a conversation."""
    return f"cnv_{number:026}"


if __name__ == "__main__":
    tune_collector_for_serving()  # as the program does; and the same for both
    trio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
