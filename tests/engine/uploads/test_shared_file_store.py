"""The shared file store, with nodes that may stop at any point."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import pytest
import trio

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.values import replace
from deskwire.engine.uploads.file_store import ABANDONED_AGE_MS, SharedFileStore
from deskwire.engine.uploads.ports import FileContent, UploadReader
from deskwire.engine.uploads.service import UploadService
from deskwire.engine.uploads.upload import Upload
from tests.support.builders import LINKS, NOON, PROJECT, InlineStore

CONTENTS = [FileContent(PROJECT.rowid, sha256(bytes([at])).hexdigest()) for at in range(2)]
NODES = 3
QUOTA = 1 << 40


def entry_of(content: FileContent) -> FileContent:
    """Return a file's name, which includes its entry."""
    return content


def digest_of(content: FileContent) -> FileContent:
    """Return a file's name in a single node's file store."""
    return replace(content, entry=0)


@dataclass
class SharedFiles:
    """Files that nodes share. Calls take time, sometimes as long as a stopped node's."""

    dice: random.Random
    name: Any = entry_of
    kept: set[FileContent] = field(default_factory=set)

    def clear_drafts(self) -> None:
        raise NotImplementedError

    def draft(self) -> AnyDraft:
        return AnyDraft(self)

    def size(self, content: FileContent) -> int | None:
        raise NotImplementedError

    def read(self, content: FileContent, start: int, length: int) -> bytes:
        raise NotImplementedError

    def remove(self, content: FileContent) -> None:
        self.wait()
        self.kept.discard(self.name(content))
        self.wait()

    def contents(self) -> Iterator[FileContent]:
        return iter(list(self.kept))

    def close(self) -> None:
        raise NotImplementedError

    def wait(self) -> None:
        """Wait in a worker thread, by Trio's clock."""
        trio.from_thread.run(trio.sleep, self.dice.choice([0, 0.1, 1, 1, 60]))


class AnyDraft:
    """A draft of any content."""

    def __init__(self, files: SharedFiles) -> None:
        self._files = files

    def write(self, data: bytes) -> None:
        raise NotImplementedError

    def finish(self) -> str:
        raise NotImplementedError

    def keep(self, content: FileContent) -> None:
        self._files.wait()
        self._files.kept.add(self._files.name(content))
        self._files.wait()

    def discard(self) -> None:
        raise NotImplementedError


class Life:
    """Nodes that repeatedly keep and remove the same few contents."""

    def __init__(self, store: InlineStore, seed: int, name: Any = entry_of) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.store = store
        self.store.before_write = self._wait
        self.files = SharedFiles(self.dice, name)
        self.now = NOON
        self.shelves = [SharedFileStore(self.store, self.files, lambda: self.now) for _ in range(NODES)]
        self.count = 0

    async def run(self) -> None:
        """Run all nodes until they have finished."""
        async with trio.open_nursery() as nursery:
            for shelf in self.shelves:
                nursery.start_soon(self._puts, shelf)
                nursery.start_soon(self._removes, shelf)

    async def _wait(self) -> None:
        await trio.sleep(self.dice.choice([0, 0.1, 1]))

    async def _puts(self, shelf: SharedFileStore) -> None:
        for _ in range(8):
            self.count += 1
            content = self.dice.choice(CONTENTS)
            upload = Upload(
                f"upl_{self.seed}_{self.count}", content.project, "a", "text/plain", 1, content.sha256, NOON
            )
            await shelf.keep(content, self.files.draft(), lambda tx, u=upload: tx.insert_upload(u, QUOTA))  # type: ignore[misc]
            await self.whole()

    async def _removes(self, shelf: SharedFileStore) -> None:
        for _ in range(12):
            await trio.sleep(self.dice.choice([0, 1, 5]))
            await self.store.write(lambda tx: tx.expire_uploads(NOON + 1, 1))
            for doomed in await self.store.read(lambda reader: reader.orphaned_contents(10)):
                await shelf.remove_unused(doomed.content)
                await self.store.write(lambda tx, rowid=doomed.rowid: tx.delete_orphan(rowid))  # type: ignore[misc]
                await self.whole()

    async def whole(self) -> None:
        """Check that each upload's file exists."""
        for place in await self.referred_to():
            assert self.files.name(place) in self.files.kept

    async def referred_to(self) -> list[FileContent]:
        """Return the named contents that have an upload, in one transaction."""

        def query(reader: UploadReader) -> list[FileContent]:
            used = [content for content in CONTENTS if not reader.contents_without_upload([content])]
            return [replace(content, entry=reader.content_entry(content) or -1) for content in used]

        return await self.store.read(query)


@pytest.mark.parametrize("seed", range(8))
async def test_every_upload_has_its_file_wherever_nodes_stop(
    seed: int, inline_store: InlineStore, autojump_clock: trio.testing.MockClock
) -> None:
    life = Life(inline_store, seed)
    await life.run()
    await life.shelves[0].sweep(NOON + 2 * ABANDONED_AGE_MS)
    assert life.files.kept == set(await life.referred_to())


async def test_files_named_by_their_digest_alone_would_be_lost(
    inline_store: InlineStore, autojump_clock: trio.testing.MockClock
) -> None:
    async def lives() -> None:
        for seed in range(20):
            await Life(inline_store, seed, digest_of).run()

    with pytest.raises(ExceptionGroup) as lost:
        await lives()
    assert lost.group_contains(AssertionError)


async def test_a_failed_write_leaves_no_file(
    inline_store: InlineStore, autojump_clock: trio.testing.MockClock
) -> None:
    life = Life(inline_store, 1)

    def refused(tx: Any) -> None:
        raise Unavailable("no", code="storage_failed")

    with pytest.raises(Unavailable):
        await life.shelves[0].keep(CONTENTS[0], life.files.draft(), refused)
    assert life.files.kept == set()
    assert await life.store.read(lambda reader: reader.abandoned_contents(NOON * 2, 10)) == []


async def test_the_sweep_finds_a_dead_nodes_file_after_a_day(
    inline_store: InlineStore, autojump_clock: trio.testing.MockClock
) -> None:
    life = Life(inline_store, 1)
    entry = await life.store.write(lambda tx: tx.claim_content(CONTENTS[0], NOON))
    life.files.kept.add(replace(CONTENTS[0], entry=entry))
    await life.shelves[1].sweep(NOON + ABANDONED_AGE_MS)
    assert life.files.kept
    await life.shelves[1].sweep(NOON + ABANDONED_AGE_MS + 1)
    assert life.files.kept == set()


class NotedSweeps(SharedFileStore):
    """A file store that records the times of its sweeps, without threads."""

    def __init__(self, store: InlineStore, clock: Clock) -> None:
        super().__init__(store, SharedFiles(random.Random(1)), clock)
        self.hours: list[int] = []

    async def sweep(self, now: int) -> None:
        await trio.lowlevel.checkpoint()
        self.hours.append((now - NOON) // 3_600_000)


async def test_the_node_on_duty_sweeps_files_of_other_nodes(
    inline_store: InlineStore, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    def clock() -> int:
        return NOON + int(trio.current_time() * 1_000)

    shelf = NotedSweeps(inline_store, clock)
    uploads = UploadService(inline_store, shelf, clock, LINKS, limit=1, unattached_s=3_600)
    nursery.start_soon(uploads.run, 60)
    await trio.sleep(13 * 3_600)
    assert shelf.hours == [0, 6, 12]
    nursery.cancel_scope.cancel()
