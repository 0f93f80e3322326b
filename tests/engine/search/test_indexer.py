"""The keeper of the index: when it works, how it makes way, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Delete
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.search.indexer import LATE_MIN_SHARE, LATE_S, MIN_SHARE, YIELD_S, Indexer
from deskwire.engine.search.ports import EVERYTHING, IndexPosition, IndexTransaction
from tests.support.builders import PROJECT, HandClock, InlineStore, create, post

T = TypeVar("T")
_START: Final = IndexPosition(0, None, 0, 0)


@dataclass
class Transaction:
    """A transaction of the fake index."""

    index: FakeIndex

    def add(self, conversation: int, project: int, words: set[str]) -> None:
        """Note words of messages."""
        self.index.words.setdefault(conversation, set()).update(words)

    def set_title(self, conversation: int, project: int, words: set[str]) -> None:
        """Note nothing of titles."""

    def replace(self, conversation: int, project: int, words: set[str]) -> None:
        """Know these words of a conversation alone, and have the others overwritten."""
        self.index.words[conversation] = set(words)
        self.index.scrub_due = True

    def remove(self, conversation: int) -> None:
        """Forget a conversation, and have it overwritten."""
        if self.index.words.pop(conversation, None) is not None:
            self.index.scrub_due = True

    def move_to(self, position: IndexPosition, *, complete: bool) -> None:
        """Move on."""
        self.index.position = position
        self.index.complete = self.index.complete or complete


@dataclass
class FakeIndex:
    """An index in memory; a write takes `takes_s` seconds, and raises `failure` once."""

    takes_s: float = 0.0
    failure: Exception | None = None
    position: IndexPosition = _START
    complete: bool = False
    scrub_due: bool = False
    settled: int = 0
    refreshed: int = 0
    words: dict[int, set[str]] = field(default_factory=dict)

    async def bound(self) -> IndexPosition:
        """Return no bound: no other node commits."""
        return EVERYTHING

    async def write(self, job: Callable[[IndexTransaction], T]) -> T:
        """Do the job."""
        await trio.sleep(self.takes_s)
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        tx: Any = Transaction(self)
        return job(tx)

    async def refresh_statistics(self) -> None:
        """Count the calls."""
        await trio.lowlevel.checkpoint()
        self.refreshed += 1

    async def settle(self) -> float | None:
        """Overwrite in two parts."""
        await trio.lowlevel.checkpoint()
        self.settled += 1
        self.scrub_due = False
        return 0.5 if self.settled % 2 else None


class Commit:
    """A commit with that many events."""

    def __init__(self, events: int = 1, erased: frozenset[int] = frozenset()) -> None:
        self.events: Final = range(events)
        self.erased: Final = erased
        self.redacted: Final = frozenset[int]()


@dataclass
class Kept:
    """An indexer that runs, and what it works on."""

    store: InlineStore
    index: FakeIndex
    indexer: Indexer
    commits: Subscribers[Any]
    actors: ActorRegistry

    async def say(self, text: str) -> str:
        """Begin a conversation with a message, and publish the commit; return the conversation's id."""
        command = create(message=post(text=text))
        await self.actors.create(PROJECT, command)
        self.commits.tell(Commit())
        return command.conversation_id


@pytest.fixture
async def kept(tmp_path: Path, nursery: trio.Nursery, autojump_clock: MockClock) -> Any:
    """Yield an indexer that has indexed an empty store.

    A test that uses it asks for `autojump_clock`, too: pytest-trio takes the clock from the parameters of the test alone.
    """
    store, index, commits = InlineStore(tmp_path), FakeIndex(), Subscribers[Any]()
    indexer: Indexer = Indexer(store, index)
    indexer.follow(commits)
    nursery.start_soon(indexer.run)
    await trio.sleep(1)
    yield Kept(
        store,
        index,
        indexer,
        commits,
        ActorRegistry(nursery, store, HandClock(), mailbox=8, idle_s=60, live=10),
    )
    nursery.cancel_scope.cancel()
    store.close()


async def test_committed_words_are_indexed_soon_and_the_delay_is_measured(
    kept: Kept, autojump_clock: MockClock
) -> None:
    assert kept.index.complete
    assert kept.indexer.progress.delay_s == 0
    await kept.say("first words")
    assert "first" not in kept.index.words.get(1, ())
    await trio.sleep(0.05)
    assert kept.indexer.progress.delay_s == pytest.approx(0.05, abs=0.03)
    await trio.sleep(0.1)
    assert kept.index.words == {1: {"first", "words"}}
    assert (kept.indexer.progress.delay_s, kept.indexer.progress.messages) == (0, 1)


async def test_statistics_are_refreshed_once_all_rows_are_indexed(
    kept: Kept, autojump_clock: MockClock
) -> None:
    before = kept.index.refreshed
    await kept.say("where is my parcel")
    await trio.sleep(1)
    assert kept.index.refreshed == before + 1


async def test_a_disk_that_refuses_is_tried_again(kept: Kept, autojump_clock: MockClock) -> None:
    kept.index.failure = Unavailable("full", code="storage_failed")
    await kept.say("words")
    await trio.sleep(0.2)
    assert kept.index.words == {}
    await trio.sleep(1.2)
    assert kept.index.words == {1: {"words"}}


async def test_overwriting_stays_due_until_all_parts_are_done(kept: Kept, autojump_clock: MockClock) -> None:
    name = await kept.say("doomed")
    await trio.sleep(0.2)
    assert not kept.indexer.scrubbing
    await kept.actors.ask(PROJECT, name, Delete("manual"))
    kept.commits.tell(Commit(erased=frozenset({1})))
    assert kept.indexer.scrubbing
    await trio.sleep(0.2)
    assert (kept.index.words, kept.indexer.scrubbing) == ({}, True)
    assert kept.indexer.scrub_delay > 0.1
    await trio.sleep(5)
    assert (kept.indexer.scrubbing, kept.indexer.scrub_delay, kept.index.settled) == (False, 0, 2)
    assert kept.store.at_once(lambda tx: tx.search_changes(0, 10)) == []


async def test_pause_leaves_time_to_other_writers_and_shrinks_when_indexing_is_late(
    kept: Kept, autojump_clock: MockClock
) -> None:
    pause_s = kept.indexer._pause_s
    assert pause_s(10.0, 2) == 2 * YIELD_S
    assert pause_s(0.1, 10_000) == pytest.approx(0.1 * (1 / MIN_SHARE - 1))
    kept.indexer.progress.behind_since = trio.current_time() - LATE_S - 1
    assert pause_s(0.1, 10_000) == pytest.approx(0.1 * (1 / LATE_MIN_SHARE - 1))


async def test_batches_grow_while_no_other_task_writes(
    kept: Kept, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deskwire.engine.search.indexer.BATCH_SIZE", 1)
    monkeypatch.setattr("deskwire.engine.search.indexer.IDLE_BATCH_SIZE", 3)
    for _ in range(9):
        await kept.say("words")
    kept.index.takes_s = 10
    taken_in = []
    for step in range(5):
        await trio.sleep(5)  # a write is under way
        if step == 2:
            kept.commits.tell(Commit())
        await trio.sleep(6)
        taken_in.append(kept.indexer.progress.messages)
    assert taken_in == [1, 4, 7, 8, 9]
