"""Search, uploads and metrics of a service whose database is a PostgreSQL, through the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import trio

from tests.api.operating.test_metrics import scrape
from tests.api.search.test_search import conversations
from tests.api.uploads.test_uploads import PNG, send
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.s3 import MISSING, has_s3, s3_server
from tests.support.sockets.server_process import LOOK_S


@pytest.fixture
async def service(tmp_path: Path, postgres_url: str) -> AsyncIterator[Service]:
    async with running(tmp_path, database_url=postgres_url, files="database") as service:
        yield service


def rows(url: str, sql: str) -> list[Any]:
    """Return the rows of a statement."""
    with psycopg.connect(url) as connection:
        return connection.execute(sql.encode()).fetchall()


async def gone(url: str, sql: str) -> None:
    """Wait until a statement returns nothing."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while rows(url, sql):  # noqa: ASYNC110  # poll: there is no notification
            await trio.sleep(LOOK_S)  # poll: there is no notification


async def test_search_finds_posted_but_not_deleted_messages(service: Service, postgres_url: str) -> None:
    made = await service.create("u1", title="Parcel")
    await service.say(made, "Where is order A-1001, please?")
    for q in ("parc", "orde whe", "A-10", "1001"):
        assert await conversations(service, q) == ["Parcel"], q
    assert (await service.dashboard.delete(f"/conversations/{made['id']}")).is_success
    assert await conversations(service, "parc") == []
    await gone(postgres_url, "SELECT word FROM search_postings WHERE word LIKE 'parc%'")


async def test_an_upload_is_served_in_parts_and_goes_with_its_conversation(
    service: Service, postgres_url: str
) -> None:
    sent = await send(service, PNG + bytes(300_000))
    again = await send(service, PNG + bytes(300_000))
    assert len(rows(postgres_url, "SELECT rowid FROM contents")) == 1
    made = await service.create("u1", message={"attachments": [sent["id"]]})
    async with httpx.AsyncClient() as anybody:
        part = await anybody.get(sent["url"], headers={"Range": "bytes=262140-262150"})
        assert (part.status_code, part.content) == (206, (PNG + bytes(300_000))[262_140:262_151])
        assert (await anybody.get(again["url"])).content == PNG + bytes(300_000)
    assert (await service.dashboard.delete(f"/uploads/{again['id']}")).is_success
    assert (await service.dashboard.delete(f"/conversations/{made['id']}")).is_success
    await gone(postgres_url, "SELECT content FROM upload_parts")
    await gone(postgres_url, "SELECT rowid FROM contents")


async def test_metrics_show_the_state_of_the_node(service: Service) -> None:
    await service.create("u1")
    figures = await scrape(service)
    assert 3 < figures("node_lease_valid_seconds") <= 5
    assert figures("node_live_nodes") == figures("node_on_duty") == 1
    assert abs(figures("node_clock_offset_seconds")) < 1
    assert figures("node_commit_round_seconds_count", round="commit") > 0
    assert figures("node_outcomes_resolved_total", stored="no") == 0


@pytest.mark.s3
async def test_uploads_in_a_bucket(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_s3():
        pytest.skip(MISSING)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with s3_server(tmp_path) as address:
        place = f"s3://uploads/here?endpoint={address}"
        async with running(tmp_path, database_url=postgres_url, files=place) as service:
            sent = await send(service, PNG)
            async with httpx.AsyncClient() as anybody:
                assert (await anybody.get(sent["url"])).content == PNG
                assert b"here/1/" in (await anybody.get(f"{address}/uploads")).content
                assert (await service.dashboard.delete(f"/uploads/{sent['id']}")).is_success
                with trio.fail_after(HANG_TIMEOUT_S):
                    while b"here/1/" in (await anybody.get(f"{address}/uploads")).content:  # noqa: ASYNC110  # as above
                        await trio.sleep(LOOK_S)  # poll: there is no notification
