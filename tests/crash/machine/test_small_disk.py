"""A file system that is really full under a running service. Needs to be allowed to mount one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import httpx
import pytest

from tests.support.sockets.server_process import Server, seen

pytestmark = pytest.mark.long

SIZE = "16m"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of its own."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(path: Path) -> None:
    """Take all room that there is."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            with pytest.raises(OSError, match="No space left"):
                write_on(file, bytes(size))


def write_on(file: BinaryIO, data: bytes) -> None:
    while True:
        file.write(data)


async def test_full_disk_and_recovery_are_reported_without_a_client_or_restart(small: Path) -> None:
    server = Server(small)
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
            for _ in range(2):
                await seen(http, server.url, 200)
                fill(small / "ballast")
                refused = await seen(http, server.url, 503)
                assert refused.json()["code"] == "storage_failed"
                assert "full" in refused.json()["detail"]
                assert (await http.get("/healthz")).status_code == 200
                assert "\ndeskwire_ready 0.0" in await metrics(http)
                (small / "ballast").unlink()
            await seen(http, server.url, 200)
            assert "\ndeskwire_ready 1.0" in await metrics(http)
    finally:
        assert await server.stop() == 0, server.log()


async def metrics(http: httpx.AsyncClient) -> str:
    return (await http.get("/metrics")).text
