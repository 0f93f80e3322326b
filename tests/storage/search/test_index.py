"""The index compared with a full scan, after any history and any interruption of its work."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.conversations.commands import Delete, Patch
from deskwire.engine.search import ingest
from deskwire.engine.search.ingest import next_batch_to_ingest, take_in
from deskwire.engine.search.ports import RowMatches
from deskwire.engine.search.tokens import query_words, words_of
from deskwire.storage.search import lookup
from deskwire.storage.sqlite.search import file
from deskwire.storage.sqlite.search.file import DAMAGED, FILE_NAME
from deskwire.storage.sqlite.search.index import IndexWrites
from deskwire.storage.sqlite.search.writer import FILLING_CACHE_KIB, KEPT_CACHE_KIB, SqliteSearchIndex
from deskwire.storage.sqlite.store import SqliteStore
from tests.support.builders import OTHER_PROJECT, PROJECT, Running, create, post, running
from tests.support.properties import budget

TEXTS = st.lists(
    st.sampled_from(
        [
            "refund",
            "Refunds",
            "re",
            "rez",
            "ünder",
            "under",
            "A-1",
            "ada@ex.org",
            "東京都",
            "京",
            "x",
            "\u202e",
            "xy",
        ]
    ),
    max_size=4,
).map(" ".join) | st.text("ab\u0301-@ 東", max_size=8)
QUERIES = TEXTS | st.sampled_from(["r", "re", "ref", "refu", "a-", "ada@", "ex", "京", "東", "x"])


async def taken_in(store: SqliteStore, most: int = 1_000) -> bool:
    """Index at most `most` batches of stored messages; return whether the index is complete."""
    for _ in range(most):
        known = partial(next_batch_to_ingest, position=store.index.position, complete=store.index.complete)
        intake = await store.read(known)
        if intake is None:
            return True
        await store.index.write(partial(take_in, intake=intake))
    return False


async def found(
    store: SqliteStore, query: str, limit: int = 1_000, project: int = PROJECT.rowid
) -> RowMatches:
    """Return the rows that a search finds."""
    return await store.read(lambda reader: reader.found_conversations(project, query_words(query), limit))


async def settled(index: SqliteSearchIndex) -> None:
    """Return once removed entries are overwritten."""
    while (pause_s := await index.settle()) is not None:
        await trio.lowlevel.checkpoint() if pause_s == 0 else await trio.sleep(pause_s)


def bytes_of(directory: Path) -> bytes:
    """Return all bytes of the index, including its WAL."""
    return b"".join(path.read_bytes() for path in directory.iterdir() if path.name.startswith(FILE_NAME))


@dataclass
class Model:
    """A model of the conversations, searched by a full scan."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    titles: dict[str, str | None] = field(default_factory=dict)

    def scan(self, query: str) -> set[str]:
        """Return the ids of the conversations that have every word."""
        asked = query_words(query)
        return {name for name in self.texts if asked and all(map(partial(self._has, name), asked))}

    def _has(self, name: str, asked: str) -> bool:
        texts = [*self.texts[name], self.titles[name] or ""]
        return any(word.startswith(asked) for text in texts for word in words_of(text))


class Life:
    """An engine and its model."""

    def __init__(self, engine: Running, model: Model) -> None:
        self.engine = engine
        self.model = model

    async def begin(self, title: str | None, text: str) -> str:
        """Create a conversation; return its id."""
        command = create(title=title, message=post(text=text))
        await self.engine.directory.create(PROJECT, command)
        self.model.titles[command.conversation_id], self.model.texts[command.conversation_id] = title, [text]
        return command.conversation_id

    async def say(self, which: int, text: str, *, internal: bool) -> None:
        """Add a message or note to a conversation, if there is one."""
        if name := self._name(which):
            await self.engine.directory.ask(PROJECT, name, post("agent", text, internal=internal))
            self.model.texts[name].append(text)

    async def retitle(self, which: int, title: str | None) -> None:
        """Give a conversation another title."""
        if name := self._name(which):
            await self.engine.directory.ask(PROJECT, name, Patch({"title": title}))
            self.model.titles[name] = title

    async def delete(self, which: int) -> None:
        """Delete a conversation."""
        if name := self._name(which):
            await self.engine.directory.ask(PROJECT, name, Delete("manual"))
            del self.model.texts[name], self.model.titles[name]

    async def agree(self, queries: list[str]) -> None:
        """Check that the index finds the same as a scan."""
        assert await taken_in(self.engine.store)
        ids = {row: name for name, row in await self.engine.store.read(_rows)}
        for query in queries:
            rows = (await found(self.engine.store, query)).rows
            assert {ids[row] for row in rows} == self.model.scan(query), query
            activity = {row: at for row, at in await self.engine.store.read(_activity)}
            assert list(rows) == sorted(rows, key=lambda row: (activity[row], row), reverse=True)
        behind = await self.engine.store.read(lambda reader: reader.search_lag())
        assert not any(behind)

    def _name(self, which: int) -> str | None:
        names = list(self.model.texts)
        return names[which % len(names)] if names else None


def _rows(reader: object) -> list[tuple[str, int]]:
    rows: list[tuple[str, int]] = reader.conn.execute("SELECT id, rowid FROM conversations").fetchall()  # type: ignore[attr-defined]
    return rows


def _activity(reader: object) -> list[tuple[int, int]]:
    rows: list[tuple[int, int]] = reader.conn.execute("SELECT rowid, activity FROM conversations").fetchall()  # type: ignore[attr-defined]
    return rows


STEPS = st.lists(
    st.tuples(st.just("begin"), st.none() | TEXTS, TEXTS)
    | st.tuples(st.just("say"), st.integers(0, 9), TEXTS, st.booleans())
    | st.tuples(st.just("retitle"), st.integers(0, 9), st.none() | TEXTS)
    | st.tuples(st.just("delete"), st.integers(0, 9))
    | st.tuples(st.just("take in"), st.integers(1, 2))
    | st.tuples(st.just("restart")),
    min_size=1,
    max_size=25,
)


async def live(steps: list[tuple[object, ...]], queries: list[str], directory: Path) -> None:
    """Carry out the steps, and compare at the end."""
    model, rest = Model(), list(steps)
    while True:
        async with running(directory) as engine:
            life = Life(engine, model)
            while rest:
                match rest.pop(0):
                    case "begin", (str() | None) as title, str(text):
                        await life.begin(title or None, text or "-")
                    case "say", int(which), str(text), bool(internal):
                        await life.say(which, text or "-", internal=internal)
                    case "retitle", int(which), (str() | None) as title:
                        await life.retitle(which, title or None)
                    case "delete", int(which):
                        await life.delete(which)
                    case "take in", int(most):
                        await taken_in(engine.store, most)
                    case _:
                        break
            else:
                await life.agree(queries)
                return


def test_search_equals_a_scan_after_any_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "BATCH_SIZE", 3)  # so that a few messages take several steps

    @given(STEPS, st.lists(QUERIES, min_size=1, max_size=5))
    @budget(60)
    def lives(steps: list[tuple[object, ...]], queries: list[str]) -> None:
        with TemporaryDirectory() as directory:
            trio.run(live, steps, queries, Path(directory))

    lives()


@asynccontextmanager
async def talking(directory: Path, texts: list[str]) -> AsyncIterator[Life]:
    """Yield an engine with an indexed conversation for each of the texts."""
    async with running(directory) as engine:
        life = Life(engine, Model())
        for text in texts:
            await life.begin(None, text)
        await taken_in(engine.store)
        yield life


async def test_message_with_a_reused_key_is_indexed(tmp_path: Path) -> None:
    async with talking(tmp_path, ["first", "second"]) as life:
        await life.delete(1)
        await life.begin(None, "third")
        await life.agree(["first", "second", "third"])


async def test_search_of_many_conversations_is_bounded_and_reports_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "SORTED_MAX", 4)
    monkeypatch.setattr(lookup, "WALKED_MAX", 3)
    texts = [f"every {'rare' if number < 2 else 'common'} one" for number in range(12)]
    async with talking(tmp_path, texts) as life:
        store = life.engine.store
        assert await found(store, "every", 3) == RowMatches([12, 11, 10], more=True)
        assert await found(store, "every", 4) == RowMatches([12, 11, 10, 9], more=True)
        assert await found(store, "rare", 5) == RowMatches([2, 1], more=False)
        await life.say(0, "again", internal=False)
        assert (await found(store, "every", 3)).rows == [1, 12, 11]
        assert (await found(store, "every", 3, OTHER_PROJECT.rowid)).rows == []


@pytest.mark.parametrize("harm", ["missing", "version", "torn", "marked", "empty", "another"])
async def test_mismatching_index_is_rebuilt_at_the_next_start(
    tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / FILE_NAME
    async with talking(tmp_path, ["kept words"]) as life:
        model = life.model
    match harm:
        case "missing":
            path.unlink()
        case "version":
            monkeypatch.setattr(file, "VERSION", "another")
        case "torn":
            path.write_bytes(b"\0" * 8192)
        case "marked":
            path.with_name(f"{FILE_NAME}{DAMAGED}").touch()
        case "empty":
            path.write_bytes(b"")
        case _:
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("UPDATE state SET database = 'another'")
    async with running(tmp_path) as engine:
        behind = await engine.store.read(lambda reader: reader.search_lag())
        assert (behind.messages, behind.building) == (1, True)
        await Life(engine, model).agree(["kept", "words"])
    assert not path.with_name(f"{FILE_NAME}{DAMAGED}").exists()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_index_newer_than_its_database_is_rebuilt(tmp_path: Path) -> None:
    old = tmp_path / "old.sqlite3"
    async with talking(tmp_path, ["before"]) as life:
        with closing(sqlite3.connect(tmp_path / "deskwire.sqlite3")) as connection:
            connection.execute("VACUUM INTO ?", (str(old),))
        model = Model(dict(life.model.texts), dict(life.model.titles))
        await life.begin(None, "lost")
        await life.agree(["lost"])
    old.replace(tmp_path / "deskwire.sqlite3")
    async with running(tmp_path) as engine:
        await Life(engine, model).agree(["before", "lost"])


async def test_settled_index_has_no_erased_word_in_any_file(tmp_path: Path) -> None:
    dice = random.Random(4)
    words = [f"w{dice.randrange(10**9)}x" for _ in range(3_000)]
    texts = [" ".join(words[at : at + 20]) for at in range(0, len(words), 20)]
    async with talking(tmp_path, texts) as life:
        index = life.engine.store.index
        for _ in range(75):
            await life.delete(0)
            if dice.random() < 0.1:
                await taken_in(life.engine.store)
                await index.settle()
        assert await taken_in(life.engine.store)
        await settled(index)
        content = bytes_of(tmp_path)
        left = [
            word for word in words[:1_500] for length in (len(word), 4) if word[:length].encode() in content
        ]
        still = " ".join(words[1_500:])
        assert [each for each in left if each[:4] not in still] == []
        assert words[-1].encode() in content
        await life.agree([words[0], words[-1]])


async def test_page_cache_is_small_once_the_index_is_complete(tmp_path: Path) -> None:
    def cache(tx: object) -> int:
        assert isinstance(tx, IndexWrites)
        kib: int = tx._connection.execute("PRAGMA cache_size").fetchone()[0]
        return kib

    async with running(tmp_path) as engine:
        index = engine.store.index
        assert await index.write(cache) == -FILLING_CACHE_KIB
        await index.write(lambda tx: tx.move_to(index.position, complete=True))
        assert await index.write(cache) == -KEPT_CACHE_KIB
    async with running(tmp_path) as engine:
        assert await engine.store.index.write(cache) == -KEPT_CACHE_KIB
