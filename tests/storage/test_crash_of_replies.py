"""A process that is killed while agents reply and close: message and close are both there, or neither is."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from deskwire.storage.sqlite.directory import FILE_NAME
from tests.support.root import ROOT

ROUNDS = 6

WRITING = """
import sys
from pathlib import Path
import trio
sys.path.insert(0, sys.argv[2])
from deskwire.engine.core.actor import Actor
from deskwire.engine.conversations.commands import Close, Reopen, Reply
from tests.support.builders import PROJECT, create, post, running

AGENT = Actor("user", "usr_1", "Grace")

async def lane(engine):
    command = create(message=post())
    await engine.directory.create(PROJECT, command)
    for _ in range(10_000):
        reply = Reply(post("agent"), None, (Close("agent"),))
        await engine.directory.ask(PROJECT, command.conversation_id, reply, by=AGENT)
        print("closed", command.conversation_id, flush=True)
        await engine.directory.ask(PROJECT, command.conversation_id, Reopen(), by=AGENT)

async def main():
    async with running(Path(sys.argv[1])) as engine, trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(lane, engine)

trio.run(main)
"""


def closed_until_killed(directory: Path, lines: int) -> list[str]:
    """Let a process reply and close, and kill it when it has acknowledged so much; the conversations, each time."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITING, str(directory), str(ROOT)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        read = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        read += process.stdout.readlines()
        assert process.wait() == -signal.SIGKILL
    return [line.decode().split()[1] for line in read if line.endswith(b"\n")]


def test_reply_and_close_are_stored_with_their_agent_events(tmp_path: Path) -> None:
    for number in range(ROUNDS):
        directory = tmp_path / f"round-{number}"
        directory.mkdir()
        acknowledged = closed_until_killed(directory, 20 + 13 * number)
        with closing(sqlite3.connect(directory / FILE_NAME)) as connection:
            rows = connection.execute(
                "SELECT c.id, (SELECT count(*) FROM messages m WHERE m.conversation = c.rowid AND m.author_type = 'agent'), "
                "(SELECT count(*) FROM events e WHERE e.conversation = c.rowid AND e.type = 'conversation.closed'), "
                "(SELECT count(*) FROM conversation_activity a WHERE a.conversation = c.rowid AND a.action = 'closed'), "
                "(SELECT count(*) FROM conversation_activity a WHERE a.conversation = c.rowid AND a.action = 'reopened'), "
                "(SELECT count(*) FROM events e WHERE e.conversation = c.rowid AND e.internal = 1), c.status "
                "FROM conversations c"
            ).fetchall()
        for conversation_id, replies, closes, entries, reopened, told, status in rows:
            assert replies == closes == entries >= acknowledged.count(conversation_id)
            assert told == closes + reopened
            assert (closes - reopened, status) in ((0, "OPEN"), (1, "CLOSED"))
        assert {*acknowledged} <= {row[0] for row in rows}
