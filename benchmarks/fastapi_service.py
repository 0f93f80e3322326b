"""A straightforward service: FastAPI on uvicorn, asyncio, which commits a row to SQLite for each message.

It follows FastAPI's documentation: a pydantic model of the body, and a connection that a dependency injects. SQLite is
as durable as Deskwire's (WAL, every commit synced), and connections are kept, because opening one for each request is
slower. There are two ways to write the route: `def`, which FastAPI runs in its thread pool and recommends for blocking
code, and `async def`, which commits on the event loop itself.
"""

from __future__ import annotations

import socket
import sqlite3
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Final

import uvicorn
from fastapi import Depends, FastAPI
from pydantic import BaseModel, Field

_BACKLOG: Final = 2_048  # uvicorn's own
_WAIT_S: Final = 30.0
_idle: Final = list[sqlite3.Connection]()
_path: Final = Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "messages.sqlite3"


class NewMessage(BaseModel):
    """The body."""

    text: str = Field(min_length=1, max_length=20_000)


class Message(NewMessage):
    """The response."""

    id: int
    conversation_id: str
    created_at: float


def _opened() -> sqlite3.Connection:
    connection = sqlite3.connect(_path, timeout=_WAIT_S, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS messages "
        "(id INTEGER PRIMARY KEY, conversation_id TEXT NOT NULL, text TEXT NOT NULL, created_at REAL NOT NULL)"
    )
    return connection


async def database() -> AsyncIterator[sqlite3.Connection]:
    """Lend a connection to one request."""
    connection = _idle.pop() if _idle else _opened()
    try:
        yield connection
    finally:
        _idle.append(connection)


Database = Annotated[sqlite3.Connection, Depends(database)]


def _insert(connection: sqlite3.Connection, conversation_id: str, new: NewMessage) -> Message:
    at = time.time()
    with connection:  # commits
        cursor = connection.execute(
            "INSERT INTO messages (conversation_id, text, created_at) VALUES (?, ?, ?)",
            (conversation_id, new.text, at),
        )
    return Message(id=cursor.lastrowid or 0, conversation_id=conversation_id, text=new.text, created_at=at)


def service(kind: str) -> FastAPI:
    """The app; `def` or `async`."""
    app = FastAPI()

    @app.get("/healthz")
    async def lives() -> dict[str, str]:
        return {"status": "ok"}

    if kind == "async":

        @app.post("/v3/s2s/conversations/{conversation_id}/messages")
        async def post_on_loop(conversation_id: str, new: NewMessage, connection: Database) -> Message:
            return _insert(connection, conversation_id, new)

    else:

        @app.post("/v3/s2s/conversations/{conversation_id}/messages")
        def post(conversation_id: str, new: NewMessage, connection: Database) -> Message:
            return _insert(connection, conversation_id, new)

    return app


def main(kind: str) -> None:
    """Serve on a free port, which is printed, until killed."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(service(kind), log_level="error", access_log=False, timeout_keep_alive=120)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[2])
