"""Searches on PostgreSQL and on SQLite: both find the same hits in the same order."""

# ruff: noqa: RUF001  # they are real texts

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.conversations.commands import Create, Delete, Patch
from deskwire.engine.search import ingest
from deskwire.engine.search.ingest import next_batch_to_ingest, take_in
from deskwire.engine.search.ports import IndexLag, SearchIndex
from deskwire.engine.search.search import search
from deskwire.storage.postgres.driver.session import Database
from deskwire.storage.postgres.search.index import PostgresIndex
from deskwire.storage.postgres.store import open_postgres
from tests.support.builders import PROJECT, HandClock, create, found_projects, post, running
from tests.support.postgres import fresh_database

TEXTS = [
    "Where is my order A-1001-77? It should have come on Monday.",
    "Ich möchte die Größe ändern, bitte: Straße 5, 10115 Berlin",
    "Mon colis n'est pas arrivé – où est-il ? Référence: ABC_123/456",
    "¿Dónde está mi pedido? Escríbeme a maría.lópez@correo.example.es",
    "Gdzie jest moja paczka? Zażółć gęślą jaźń, Łódź",
    "Kargom nerede? İstanbul'dan ısmarladım, IŞIK",
    "Где мой заказ? Ёлка и еж, й и и\u0306",
    "Πού είναι η παραγγελία μου; ΆΛΦΑ ς Σ",
    "איפה ההזמנה שלי? שָׁלוֹם",
    "أين طلبي؟ مُحَمَّد ـ كتاب",
    "میں نے آرڈر کیا تھا ۱۲۳۴",
    "मेरा ऑर्डर कहाँ है? क़लम",
    "আমার অর্ডার কোথায়?",
    "எனது ஆர்டர் எங்கே?",
    "คำสั่งซื้อของฉันอยู่ที่ไหน",
    "我的订单在哪里？东京都的地址：〒100-0001",
    "注文はどこですか？ガガ ｶﾞ か\u3099 ヴィトン",
    "내 주문은 어디에 있나요? 한국어",
    "Đơn hàng của tôi ở đâu? Nguyễn Thị Ánh",
    "Hvar er pöntunin mín? Þórður Æsir",
    "Var är min beställning? Ångström Øresund",
    "emoji 👩‍👩‍👧 🎉 and ﬁnancial ligature, ℡ №5 ½",
    "ada@ex.org wrote to support+tickets@deskwire.example.com",
    "192.168.0.1:8080 and 2001:db8::1, https://example.com/path/to?x=1#frag",
    "a NUL \0 in the middle, a private \ue000 letter, \ue0000 too",
    "x" * 100 + " " + "y" * 39 + "z",
    "don't won’t O'Brien & Sons, C++ #hash re-re-re",
    "\u202eright to left\u202c \u200bno\u200bwidth\u200d",
    "",
    "     ",
]
QUERIES = [
    *(text[:end] for text in TEXTS for end in (1, 2, 3, 7, 18)),
    *(word[:length] for text in TEXTS for word in text.split() for length in (1, 2, 3, 5, 50)),
    *(
        "order monday",
        "ada@ deskwire",
        "ex.org",
        "1001",
        "A-10",
        "京",
        "東京",
        "のは",
        "ガ",
        "strasse",
        "GRÖSSE",
        "lodz",
    ),
]


@dataclass
class Kept:
    """A store with its actors and its index."""

    store: Any
    actors: ActorRegistry
    index: SearchIndex

    async def take_in(self) -> None:
        """Index everything that is stored."""
        while True:
            bound = await self.index.bound()
            intake = await self.store.read(
                partial(
                    next_batch_to_ingest,
                    position=self.index.position,
                    complete=self.index.complete,
                    bound=bound,
                )
            )
            if intake is None:
                return
            await self.index.write(partial(take_in, intake=intake))

    async def found(self, query: str, limit: int = 20) -> Any:
        """Return the hits of a search without the row keys, which differ between the stores."""
        result = await self.store.read(
            lambda reader: search(reader, PROJECT.rowid, query, ["conversations"], limit)
        )
        assert result.conversations is not None
        hits = [
            (each.conversation.id, [(hit.message_id, hit.text, hit.ranges) for hit in each.hits])
            for each in result.conversations
        ]
        return hits, result.more, result.behind


@asynccontextmanager
async def on_postgres(nursery: trio.Nursery) -> AsyncIterator[Kept]:
    """A store on a fresh database."""
    with fresh_database() as url:
        async with open_postgres(url, node="a", batch=16, readers=2, on_commit=lambda _: None) as store:
            await store.write(found_projects)
            index = PostgresIndex(Database(url, "a"))
            actors = ActorRegistry(nursery, store, HandClock(), mailbox=8, idle_s=60, live=200)
            try:
                yield Kept(store, actors, index)
            finally:
                index.close()


async def both_agree(stores: list[Kept], queries: list[str], limit: int = 20) -> int:
    """Check that all stores find the same; return the number of queries that found something."""
    hits = 0
    for query in queries:
        one, other = [await store.found(query, limit) for store in stores]
        assert one == other, query
        hits += bool(one[0])
    return hits


async def test_both_show_the_newest_messages_that_together_have_all_words(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    texts = [
        "Löwe",
        "oldest QUARTZ_1",
        *(f"alpha {number}" for number in range(40)),
        "Alphä",
        *("so long",) * 30,
        *("not (alphabetical)", "xalpha"),
    ]
    async with running(tmp_path) as sqlite, on_postgres(nursery) as postgres:
        stores = [Kept(sqlite.store, sqlite.directory, sqlite.store.index), postgres]
        first = create("user-1", message=post(text="first"))
        posts = [post("agent", text, internal=number % 3 == 0) for number, text in enumerate(texts)]
        for store in stores:
            await store.actors.create(PROJECT, first)
            for each in posts:
                await store.actors.ask(PROJECT, first.conversation_id, each)
            await store.take_in()
        shown = {
            "alpha": ["not (alphabetical)"],
            "alpha lowe": ["not (alphabetical)", "Löwe"],
            "alpha quartz": ["not (alphabetical)", "oldest QUARTZ_1"],
            "quartz_1 lowe first": ["oldest QUARTZ_1", "Löwe", "first"],
            "39": ["alpha 39"],
        }
        for query, expected in shown.items():
            for store in stores:
                (((_, hits),), _, _) = await store.found(query)
                assert [text for _, text, _ in hits] == expected
        assert await both_agree(stores, [*shown, "nothing", "xalp", "long"]) == len(shown) + 2
    nursery.cancel_scope.cancel()


@pytest.mark.thorough
async def test_both_find_the_same_in_every_language_after_changes_and_deletions(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "BATCH_SIZE", 40)
    dice = random.Random(7)
    async with running(tmp_path) as sqlite, on_postgres(nursery) as postgres:
        stores = [Kept(sqlite.store, sqlite.directory, sqlite.store.index), postgres]

        async def ask(name: str, command: Any) -> None:
            for store in stores:
                await store.actors.ask(PROJECT, name, command)

        names = []
        for number in range(90):
            text = TEXTS[number % len(TEXTS)]
            command: Create = create(
                f"user-{number % 7}", message=post(text=text), title=dice.choice([None, text[:20] or None])
            )
            for store in stores:
                await store.actors.create(PROJECT, command)
            names.append(command.conversation_id)
            for _ in range(dice.choice([0, 0, 1, 3])):
                await ask(dice.choice(names), post("agent", dice.choice(TEXTS), internal=dice.random() < 0.3))
        for store in stores:
            await store.take_in()
        assert await both_agree(stores, dice.sample(QUERIES, 250)) > 150
        for name in names[::3]:
            await ask(name, Delete("manual"))
        for name in names[1::6]:
            await ask(name, Patch({"title": dice.choice(TEXTS)[:60] or None}))
        for store in stores:
            await store.take_in()
        assert await both_agree(stores, dice.sample(QUERIES, 80), limit=3) > 30
        for store in stores:
            assert (await store.found("order"))[2] == IndexLag(0, 0, False)
    nursery.cancel_scope.cancel()
