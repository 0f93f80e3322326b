"""Uploads that are looked at, removed, or never used, through the wire (ADR 17, 21)."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.api.conventions.test_conventions import foreign_key
from tests.api.operating.test_metrics import scrape
from tests.api.uploads.test_uploads import gone, on_disk, send
from tests.support.api.planted_texts import mark, vanished
from tests.support.api.service import Service, running
from tests.support.api.staff import person

UNKNOWN = "/uploads/upl_00000000000000000000000000"


async def test_upload_can_be_fetched_with_a_fresh_url(service: Service) -> None:
    sent = await send(service, b"receipt")
    for client in (service.http, service.dashboard):
        found = (await client.get(f"/uploads/{sent['id']}")).json()
        assert {**found, "url": "", "expiresAt": ""} == {**sent, "url": "", "expiresAt": ""}
        async with httpx.AsyncClient() as anybody:
            assert (await anybody.get(found["url"])).content == b"receipt"


@pytest.mark.sqlite  # counts the files of the directory: with PostgreSQL they are rows
async def test_unattached_upload_can_be_removed(service: Service) -> None:
    sent = await send(service, b"receipt", mark("removed"))
    (path,) = on_disk(service)
    answer = await service.dashboard.delete(f"/uploads/{sent['id']}")
    assert answer.json() == {"id": sent["id"], "deleted": True}
    for method in ("GET", "DELETE"):
        again = await service.http.request(method, f"/uploads/{sent['id']}")
        assert (again.status_code, again.json()["code"]) == (404, "upload_not_found")
    await gone(service, path)
    await vanished(service.directory, "removed")
    body = {"contact": {"userId": "u"}, "message": {"attachments": [sent["id"]]}}
    assert (await service.http.post("/s2s/conversations", json=body)).status_code == 422


async def test_attached_upload_stays_and_its_copy_can_be_removed(service: Service) -> None:
    kept, copy = await send(service, b"same"), await send(service, b"same")
    await service.create(message={"attachments": [kept["id"]]})
    refused = await service.http.delete(f"/uploads/{kept['id']}")
    assert (refused.status_code, refused.json()["code"]) == (409, "upload_attached")
    assert (await service.http.delete(f"/uploads/{copy['id']}")).status_code == 200
    async with httpx.AsyncClient() as anybody:
        assert (await anybody.get(kept["url"])).content == b"same"


async def test_unknown_foreign_or_forbidden_removal_is_refused(service: Service) -> None:
    sent = await send(service)
    key = await foreign_key(service.directory)
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as foreign:
        for method in ("GET", "DELETE"):
            for path in (UNKNOWN, "/uploads/nonsense", f"/uploads/{sent['id']}"):
                answer = await foreign.request(method, f"{service.url}/v3{path}")
                assert (answer.status_code, answer.json()["code"]) == (404, "upload_not_found")
    async with person(service, "viewer") as viewer:
        project = {"project": service.demo["projectId"]}
        assert (await viewer.http.get(f"/uploads/{sent['id']}", headers=project)).status_code == 200
        assert (await viewer.http.delete(f"/uploads/{sent['id']}", headers=project)).status_code == 403


async def test_one_that_was_never_used_leaves_no_byte_and_is_counted(tmp_path: Path) -> None:
    async with running(tmp_path, upload_unattached_s=0.0, retention_interval_s=0.05) as service:
        await send(service, mark("neverused").encode(), f"{mark('neverused')}.txt")
        await vanished(service.directory, "neverused")
        assert (await scrape(service))("retention_pruned_rows_total", what="uploads") == 1
