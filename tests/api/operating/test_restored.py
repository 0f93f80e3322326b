"""A restored service continues for all clients of the old one."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio

from deskwire.program.secret_file import installation_secrets
from deskwire.storage.sqlite.backup.make import BackupRequest, back_up
from deskwire.storage.sqlite.backup.restore import RestoreRequest as RestoreOrder
from deskwire.storage.sqlite.backup.restore import restore
from deskwire.storage.sqlite.check import check
from tests.support.api.service import running


@pytest.mark.sqlite  # a backup and its restore are of a directory
async def test_restore_keeps_keys_tokens_links_cursors_and_webhook_secrets(tmp_path: Path) -> None:
    async with running(tmp_path / "old") as service:
        sent = (await service.http.post("/uploads", files={"file": ("a.txt", b"bytes")})).json()
        conversation = await service.create(message={"text": "Hello", "attachments": [sent["id"]]})
        await service.http.post(
            "/s2s/webhooks", json={"url": "http://127.0.0.1:9000/x", "events": ["contact.updated"]}
        )
        secrets = installation_secrets(tmp_path / "old", None)
        order = BackupRequest(
            tmp_path / "old", tmp_path / "b.tar", secrets, True, False, "0.1.0", "2026-11-21T12:00:00.000Z"
        )
        await trio.to_thread.run_sync(back_up, order)
        lost = await service.say(conversation, "said after the backup")
        cursor = (await service.events())[-1]["id"]
    restore(RestoreOrder(tmp_path / "b.tar", tmp_path / "new", None, False, False, False, 0))
    shutil.copy(tmp_path / "old" / "demo.json", tmp_path / "new")  # where the tests' client has its key from
    async with running(tmp_path / "new") as service:
        (message,) = (await service.http.get(f"/s2s/conversations/{conversation['id']}/messages")).json()[
            "items"
        ]
        assert (message["text"], message["id"] < lost["id"]) == ("Hello", True)
        async with httpx.AsyncClient(trust_env=False) as browser:
            path = sent["url"].partition("/v3")[2]
            assert (await browser.get(f"{service.url}/v3{path}")).content == b"bytes"
        assert (await service.dashboard.get("/conversations")).status_code == 200
        await service.say(conversation, "said to the restored service")
        (event,) = await service.events(after=cursor)
        assert event["data"]["message"]["text"] == "said to the restored service"
        assert len((await service.http.get("/s2s/webhooks")).json()["items"]) == 1
        report = await trio.to_thread.run_sync(partial(check, tmp_path / "new", secrets, contents=True))
        assert report.problems == []
