"""A full disk under a running service: the service reports it, keeps its data, and continues when there is room."""

from __future__ import annotations

from errno import EIO, ENOSPC, EROFS
from pathlib import Path

import pytest
import trio

from deskwire.program.secret_file import present_secrets
from deskwire.storage.sqlite.check import check
from tests.crash.shim import Shim, missing
from tests.crash.shimmed import made, service
from tests.support.sockets.server_process import EndedError, Server, seen

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing() or "there is a shim")]

FAULTS = [{"writes": ENOSPC}, {"writes": EROFS}, {"writes": EIO}, {"syncs": EIO}]
CLIENTS = 8


async def test_failed_write_is_refused_completely_and_others_continue(tmp_path: Path) -> None:
    kept: list[str] = []
    async with service(tmp_path) as (shim, server, http):
        conversation = (await made(http))["id"]
        path = f"/s2s/conversations/{conversation}"

        async def post(text: str, status: int) -> None:
            answer = await http.post(f"{path}/messages", json={"text": text})
            assert answer.status_code == status, answer.text
            if status == 200:
                kept.append(text)
            else:
                assert answer.json()["code"] == "storage_failed"
                assert answer.headers["Retry-After"]

        for number, fault in enumerate(FAULTS):
            shim.fail(**fault)
            async with trio.open_nursery() as nursery:
                for client in range(CLIENTS):
                    nursery.start_soon(post, f"refused {number} {client}", 503)
            assert (await http.get(path)).status_code == 200
            upload = await http.post("/uploads", files={"file": ("a.txt", b"some text")})
            assert (upload.status_code, upload.json()["code"]) == (503, "storage_failed")
            shim.fail()
            async with trio.open_nursery() as nursery:
                for client in range(CLIENTS):
                    nursery.start_soon(post, f"kept {number} {client}", 200)
        listed = (await http.get(f"{path}/messages", params={"limit": 200})).json()["items"]
        events = (await http.get(f"{path}/events", params={"limit": 200})).json()["items"]
        assert sorted(each["text"] for each in listed) == sorted(["Hello", *kept])
        assert [each["sequence"] for each in events] == list(range(1, len(kept) + 3))
        assert (
            "storage.commit_failed" in server.log()
        )  # further ones within a minute are counted in the next line
    data = shim.root / "data"
    report = check(data, present_secrets(data, None), contents=True, settled_s=0)
    assert (report.problems, report.rows["uploads"]) == ([], 0)


async def test_while_the_disk_refuses_the_service_is_not_ready_and_alive(tmp_path: Path) -> None:
    async with service(tmp_path) as (shim, server, http):

        async def told(status: int, words: str) -> None:
            answer = await seen(http, server.url, status)
            assert words in answer.text
            assert (await http.get(f"{server.url}/healthz")).status_code == 200

        for fault in FAULTS:
            await told(200, "ready")
            shim.fail(**fault)
            await told(503, "The disk refuses writes")
            shim.fail()
        await told(200, "ready")
        shim.fail(writes=ENOSPC)
        await told(503, "full")
        shim.fail()
        await made(http)
        assert (await http.get(f"{server.url}/readyz")).status_code == 200, "as soon as anything is taken"


async def test_start_on_a_full_disk_names_the_cause_and_the_next_one_succeeds(tmp_path: Path) -> None:
    shim = Shim(tmp_path, tmp_path / "disk")
    shim.fail(writes=ENOSPC)
    server = Server(shim.root, environ=shim.environ)
    with pytest.raises(EndedError, match=r"Deskwire can't start: .* No space left on device"):
        await server.start()
    assert await server.stop() == 1
    assert "Traceback" not in server.log()
    shim.fail()
    await server.start()
    assert await server.stop() == 0
