"""Reads beside the writer."""

from __future__ import annotations

from pathlib import Path

import trio

from deskwire.engine.ports import Reader
from tests.builders import PROJECT, create, post, running


async def test_a_read_sees_one_moment_whatever_is_committed_meanwhile(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        command = create()
        await engine.directory.create(PROJECT, command)

        def sequences(reader: Reader) -> list[int]:
            def look() -> int:
                found = reader.conversation(PROJECT.rowid, command.conversation_id)
                assert found is not None
                return found[0].sequence

            before = look()
            trio.from_thread.run(engine.directory.ask, PROJECT, command.conversation_id, post())
            return [before, look()]

        assert await engine.store.read(sequences) == [1, 1]
        found = engine.store.peek(lambda reader: reader.conversation(PROJECT.rowid, command.conversation_id))
        assert found is not None
        assert found[0].sequence == 2
