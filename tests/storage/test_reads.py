"""Reads beside the writer."""

from __future__ import annotations

from pathlib import Path

import trio

from deskwire.engine.conversation import Conversation
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


async def test_what_many_states_have_alike_is_in_memory_once(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:

        async def stored() -> Conversation:
            command = create()
            await engine.directory.create(PROJECT, command)
            wanted = command.conversation_id
            found = engine.store.peek(lambda reader: reader.conversation(PROJECT.rowid, wanted))
            assert found is not None
            assert found[0].id is wanted  # the caller's own, not a second one
            return found[0]

        one, other = await stored(), await stored()
        assert one.status is other.status
        assert one.attributes is other.attributes
        assert one.attributes == {}
