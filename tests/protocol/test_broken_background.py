"""Bugs in background tasks stop neither the service nor other tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.storage.sqlite.transaction import SqliteReader, SqliteTransaction
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.failures import failures_logged


class Told:
    """An event that any thread may set."""

    def __init__(self) -> None:
        self.event = trio.Event()
        self._token = trio.lowlevel.current_trio_token()

    def tell(self) -> None:
        self._token.run_sync_soon(self.event.set)


async def test_failing_erasure_does_not_block_other_contacts(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase, broken, tried = SqliteTransaction.erase_contact, Told(), list[int]()

    def breaking(self: SqliteTransaction, contact: int) -> None:
        tried.append(contact)
        if contact == tried[0]:
            broken.tell()
            raise ExceptionGroup("planted", [ValueError("planted")])
        erase(self, contact)

    monkeypatch.setattr(SqliteTransaction, "erase_contact", breaking)
    with trio.fail_after(HANG_TIMEOUT_S), failures_logged() as failures:
        for user in ("u1", "u2"):
            await service.create(user)
        async with trio.open_nursery() as asking:
            asking.start_soon(service.http.delete, "/s2s/contacts/u1")
            await broken.event.wait()
            asking.cancel_scope.cancel()
        assert (await service.http.delete("/s2s/contacts/u2")).status_code == 200
        assert (await service.http.get("/s2s/contacts/u2")).status_code == 404
        assert [entry["event"] for entry in failures()] == ["erasure.failed"]


@pytest.mark.parametrize("part", ["prune_events", "prune_deliveries", "next_wake_up", "expire_uploads"])
async def test_failing_background_round_is_logged_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    broken = Told()

    def breaking(*_: Any) -> int:
        broken.tell()
        raise ExceptionGroup("planted", [trio.ClosedResourceError("planted")])

    owner = SqliteReader if hasattr(SqliteReader, part) else SqliteTransaction
    monkeypatch.setattr(owner, part, breaking)
    with trio.fail_after(HANG_TIMEOUT_S), failures_logged() as failures:
        async with running(tmp_path) as service:
            await broken.event.wait()
            assert (await service.http.get("/s2s/events")).status_code == 200
        assert "failed" in " ".join(entry["event"] for entry in failures())
