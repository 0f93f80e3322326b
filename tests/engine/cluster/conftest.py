"""Fixtures of the tests of leases: nodes that share a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from tests.support.builders import InlineStore
from tests.support.nodes import ANode, Wires, with_clock

Starting = Callable[[str], Awaitable[ANode]]


@pytest.fixture
def shared(inline_store: InlineStore) -> InlineStore:
    """The store that all nodes share."""
    return with_clock(inline_store)


@pytest.fixture
def wires() -> Wires:
    """The bus between them."""
    return Wires()


@pytest.fixture
def start(shared: InlineStore, wires: Wires, nursery: trio.Nursery) -> Starting:
    """Start a node of this name: `await start("a")`."""

    async def started(name: str) -> ANode:
        node = ANode(name, shared, wires)
        await nursery.start(node.membership.run)
        return node

    return started
