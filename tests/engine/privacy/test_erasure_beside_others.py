"""A contact's erasure when several nodes may carry it out: one does, and another one when that is gone."""

from __future__ import annotations

from typing import cast

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.conversations.actors import ActorRegistry
from deskwire.engine.core.errors import NotFound, Unavailable
from deskwire.engine.privacy.erasure import Erasures
from tests.engine.privacy.test_erasure import Unruly, conversations
from tests.support.builders import PROJECT, HandClock, InlineStore, create
from tests.support.nodes import ANode, Wires, with_clock
from tests.support.seeing import seen


class Eraser(ANode):
    """A node that erases."""

    def __init__(self, name: str, store: InlineStore, wires: Wires, nursery: trio.Nursery) -> None:
        super().__init__(name, store, wires)
        actors = ActorRegistry(nursery, self.way, HandClock(), mailbox=8, idle_s=60, live=10)
        self.unruly = Unruly(actors)
        self.erasures = Erasures(
            nursery, self.way, HandClock(), cast(ActorRegistry, self.unruly), self.membership
        )


async def two(store: InlineStore, nursery: trio.Nursery) -> tuple[Eraser, Eraser]:
    """Two nodes, and a contact with three conversations."""
    wires = Wires()
    a, b = (Eraser(name, with_clock(store), wires, nursery) for name in "ab")
    for node in (a, b):
        await nursery.start(node.membership.run)
        nursery.start_soon(node.membership.while_leader, node.erasures.keep_resuming)
    actors = ActorRegistry(nursery, store, HandClock(), mailbox=8, idle_s=60, live=10)
    for _ in range(3):
        await actors.create(PROJECT, create())
    return a, b


def announced(store: InlineStore) -> list[str]:
    events = seen(store, lambda reader: reader.events(PROJECT.rowid, 0, 100, frozenset()))
    return [event.type for event in events]


@pytest.mark.sqlite  # the leases' clock is Trio's, by functions of its own
async def test_caller_at_another_node_waits_for_the_erasure_under_way(
    inline_store: InlineStore, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    a, b = await two(inline_store, nursery)
    a.unruly.failures = [Unavailable("full", code="storage_failed")] * 6
    nursery.start_soon(a.erasures.erase, PROJECT, "user-1")
    await trio.sleep(0.1)
    assert conversations(inline_store) > 0
    erased = await b.erasures.erase(PROJECT, "user-1")
    assert (erased.user_id, conversations(inline_store), b.unruly.failed) == ("user-1", 0, 0)
    assert announced(inline_store).count("contact.updated") == 1
    with pytest.raises(NotFound):
        await b.erasures.erase(PROJECT, "user-1")


@pytest.mark.sqlite  # the leases' clock is Trio's, by functions of its own
async def test_erasure_of_a_dead_node_is_taken_over_and_announced_once(
    inline_store: InlineStore, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    a, _ = await two(inline_store, nursery)
    await trio.sleep(6)
    a.unruly.failures = [Unavailable("full", code="storage_failed")] * 3
    nursery.start_soon(a.erasures.erase, PROJECT, "user-1")
    await trio.sleep(0.1)
    a.stop()
    await trio.sleep(12)
    assert (conversations(inline_store), seen(inline_store, lambda reader: reader.erasing())) == (0, [])
    a.go_on()
    await trio.sleep(5)
    assert announced(inline_store).count("contact.updated") == 1
    rows = inline_store.connection.execute("SELECT count(*) FROM contact_erasures").fetchall()
    assert rows == [(0,)]
