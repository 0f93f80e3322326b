"""A process that is killed while it writes: all acknowledged writes are stored, and numbering continues."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import orjson
import trio

from deskwire.engine.conversations.commands import MarkRead
from tests.support.builders import PROJECT, Running, post, running
from tests.support.root import ROOT
from tests.support.seeing import seen

ROUNDS = 12
LANES = 8

WRITING = f"""
import sys
from pathlib import Path
import trio
sys.path.insert(0, sys.argv[2])
from deskwire.engine.conversations.commands import Close
from tests.support.builders import PROJECT, create, post, running

async def lane(engine):
    command = create()
    await engine.directory.create(PROJECT, command)
    print("created", command.conversation_id, flush=True)
    for n in range(10_000):
        asked = Close("agent") if n % 5 == 4 else post()
        await engine.directory.ask(PROJECT, command.conversation_id, asked)
        word = "closed" if n % 5 == 4 else asked.message_id
        print(word, command.conversation_id, flush=True)

async def main():
    async with running(Path(sys.argv[1])) as engine, trio.open_nursery() as nursery:
        for _ in range({LANES}):
            nursery.start_soon(lane, engine)

trio.run(main)
"""


def written_until_killed(directory: Path, lines: int) -> list[tuple[str, str]]:
    """Let a process write, kill it after a number of acknowledgements, and return all acknowledgements."""
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
    words = [line.decode().split() for line in read if line.endswith(b"\n")]  # the last may be cut short
    return [(word, conversation_id) for word, conversation_id in words]


async def check(engine: Running, acknowledged: list[tuple[str, str]]) -> None:
    """Check that everything acknowledged is stored, each command completely or not at all, and numbered from 1."""
    said = defaultdict[str, list[str]](list)
    for word, conversation_id in acknowledged:
        said[conversation_id].append(word)
    for conversation_id, words in said.items():
        found = seen(
            engine.store,
            lambda reader, wanted=conversation_id: reader.conversation(PROJECT.rowid, wanted),  # type: ignore[misc]
        )
        assert found is not None, "an acknowledged conversation is lost"
        state = found[0]
        bodies = seen(
            engine.store,
            lambda reader, rowid=state.rowid: reader.conversation_events(rowid, 0, 100_000),  # type: ignore[misc]
        )
        events = [orjson.loads(body) for body in bodies]
        assert [event["sequence"] for event in events] == list(range(1, state.sequence + 1))
        messages = seen(
            engine.store,
            lambda reader, rowid=state.rowid: reader.messages(rowid, internal=True),  # type: ignore[misc]
        )
        ids = [message.id for message in messages]
        assert [
            event["data"]["message"]["id"] for event in events if event["type"] == "message.created"
        ] == ids
        assert [message.index for message in messages] == list(range(state.messages))
        posted = [word for word in words if word.startswith("msg_")]
        assert ids[: len(posted)] == posted
        assert len(ids) <= len(posted) + 1, "a command that nobody asked for"
        assert sum(event["type"] == "conversation.closed" for event in events) >= words.count("closed")


async def go_on(engine: Running, conversation_ids: set[str]) -> None:
    """Check that the next command gets the next number."""
    for conversation_id in conversation_ids:
        before = seen(
            engine.store,
            lambda reader, wanted=conversation_id: reader.conversation(PROJECT.rowid, wanted),  # type: ignore[misc]
        )
        receipt = await engine.directory.ask(PROJECT, conversation_id, MarkRead())
        assert before is not None
        assert receipt.state is not None
        assert receipt.state.sequence == before[0].sequence
        receipt = await engine.directory.ask(PROJECT, conversation_id, post("agent"))
        assert receipt.state is not None
        assert receipt.state.sequence == before[0].sequence + 1


async def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(12)
    for _ in range(ROUNDS):
        acknowledged = await trio.to_thread.run_sync(written_until_killed, tmp_path, chance.randrange(1, 300))
        async with running(tmp_path) as engine:
            await check(engine, acknowledged)
            positions = [
                event.position
                for event in await engine.store.read(
                    lambda reader: reader.events(1, 0, 1_000_000, frozenset())
                )
            ]
            assert positions == sorted(set(positions))
            await go_on(engine, {conversation_id for _, conversation_id in acknowledged})
