"""Behaviour that must not depend on fast look-ups: a store on a network is slow (ADR 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.accounts.server_keys import hash_server_key
from deskwire.engine.core.commits import Subscribers
from deskwire.engine.core.errors import Unauthenticated
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Commit, Reader, Transaction
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.http.api.auth.credential_caches import ServerKeyCache
from deskwire.http.resources.webhooks.endpoints import _commit_and_apply
from tests.support.builders import NOON, PROJECT, InlineStore, endpoint

T = TypeVar("T")
KEY = "sk_" + "k" * 43


class SlowStore(InlineStore):
    """Its reads are of the moment in which they begin, and take what `takes_s` says, the first one first."""

    takes_s: tuple[float, ...] = ()
    asked = 0

    async def read(self, query: Callable[[Reader], T]) -> T:
        self.asked += 1
        result = await super().read(query)
        takes_s, self.takes_s = self.takes_s[:1], self.takes_s[1:]
        await trio.sleep(sum(takes_s))  # virtual time: the mock clock jumps
        return result


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SlowStore]:
    store = SlowStore(tmp_path)
    yield store
    store.close()


async def test_key_revoked_during_its_look_up_is_not_cached(
    autojump_clock: MockClock, store: SlowStore
) -> None:
    store.at_once(lambda tx: tx.insert_key("key_1", PROJECT.rowid, hash_server_key(KEY), "kkkk", "", NOON))
    keys = ServerKeyCache(store)
    commits = Subscribers[Commit]()
    keys.follow(commits)
    store.takes_s = (2.0,)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keys.authenticate, KEY, NOON)  # it came before the revocation
        await trio.sleep(1)  # virtual time: the mock clock jumps
        store.at_once(_revoke)
        commits.tell(Commit((), (), frozenset(), callers=True))
    with pytest.raises(Unauthenticated):
        await keys.authenticate(KEY, NOON)


def _revoke(tx: Transaction) -> None:
    key = tx.key("key_1")
    assert key is not None
    tx.revoke_key(key.rowid, NOON)


async def test_a_key_is_looked_up_once_until_a_commit_changes_keys(store: SlowStore) -> None:
    store.at_once(lambda tx: tx.insert_key("key_1", PROJECT.rowid, hash_server_key(KEY), "kkkk", "", NOON))
    keys = ServerKeyCache(store)
    for _ in range(3):
        assert (await keys.authenticate(KEY, NOON)).id == "key_1"
    assert store.asked == 1
    keys.invalidate()
    await keys.authenticate(KEY, NOON)
    assert store.asked == 2


async def test_later_change_of_an_endpoint_is_applied_last(
    autojump_clock: MockClock, store: SlowStore
) -> None:
    stored = store.at_once(lambda tx: tx.insert_endpoint(endpoint()))
    followed: list[str] = []
    webhooks = SimpleNamespace(change=lambda each: followed.append(each.status), following=trio.Lock())
    call = cast(Any, SimpleNamespace(services=SimpleNamespace(store=store, webhooks=webhooks)))
    store.takes_s = (2.0, 0.1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_commit_and_apply, call, _becomes(stored, "disabled"))
        await trio.sleep(1)  # virtual time: the mock clock jumps
        nursery.start_soon(_commit_and_apply, call, _becomes(stored, "enabled"))
    assert followed == ["disabled", "enabled"]


def _becomes(stored: Endpoint, status: Any) -> Callable[[Transaction], Endpoint]:
    def change(tx: Transaction) -> Endpoint:
        changed = replace(stored, status=status)
        tx.save_endpoint(changed)
        return changed

    return change
