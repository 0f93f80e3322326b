"""The service behind nginx with the documented configuration (ADR 25)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import httpx
import pytest
import trio
from structlog.testing import capture_logs
from trio_websocket import open_websocket_url

from deskwire.config.parsers import networks
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT
from tests.support.sockets.certificates import Files
from tests.support.sockets.server_process import free_port

CONF: Final = ROOT / "docs/deploy/nginx.conf"
HEAD: Final = "daemon off;\nerror_log stderr;\npid {0}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n"
BUFFERS: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
CLIENT: Final = "127.0.0.2"
"""Where requests come from: a loopback address that is not the proxy's."""

pytestmark = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")


def configuration(files: Files, upstream: str, port: int) -> str:
    """The documented configuration with the test's ports, addresses and certificate."""
    text = CONF.read_text().replace("127.0.0.1:8080", upstream).replace("listen 443", f"listen {port}")
    text = re.sub(r"ssl_certificate /\S+;", f"ssl_certificate {files.chain};", text)
    text = re.sub(r"ssl_certificate_key /\S+;", f"ssl_certificate_key {files.key};", text)
    buffers = "".join(f"{name}_temp_path {files.folder}/{name};\n" for name in BUFFERS)
    return HEAD.format(files.folder) + buffers + text + "}\n"


async def listening(port: int) -> None:
    """Wait until a server listens on the port, by polling."""
    while True:
        try:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
        except OSError:
            await trio.sleep(0.02)  # poll: nginx sends no notification when it is ready
        else:
            return await trio.aclose_forcefully(stream)


@asynccontextmanager
async def nginx(files: Files, service: Service) -> AsyncIterator[str]:
    """Run nginx before the service; yield its URL."""
    port = free_port()
    path = files.folder / "nginx.conf"
    path.write_text(configuration(files, service.url.removeprefix("http://"), port))
    process = await trio.lowlevel.open_process(
        ["nginx", "-p", str(files.folder), "-e", "stderr", "-c", str(path)], stderr=subprocess.DEVNULL
    )
    try:
        with trio.fail_after(HANG_TIMEOUT_S):
            await listening(port)
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10):
            await process.wait()


async def test_calls_uploads_and_the_stream_pass_nginx_with_the_client_address(tmp_path: Path) -> None:
    files = Files(tmp_path)
    trusted = networks("127.0.0.1/32")
    async with running(tmp_path / "data", trusted_proxies=trusted) as service, nginx(files, service) as url:
        transport = httpx.AsyncHTTPTransport(verify=files.trust, local_address=CLIENT)
        key = {"Authorization": f"Bearer {service.demo['serverKey']}"}
        async with httpx.AsyncClient(
            transport=transport, base_url=url, headers=key, timeout=HANG_TIMEOUT_S
        ) as client:
            big = {"file": ("big.bin", bytes(8 * 2**20))}
            assert (await client.post("/v3/uploads", files=big)).status_code == 200
            with capture_logs() as said:
                refused = await client.post(
                    "/v3/auth/token",
                    json={"email": "nobody@demo.example", "password": "wrong password"},
                    headers={"X-Forwarded-For": "203.0.113.1, 127.0.0.1"},
                )
            assert refused.status_code == 401
            assert [each["address"] for each in said if each["event"] == "sign_in.failed"] == [CLIENT]
            assert (await client.get("/metrics")).status_code == 403
        stream = f"{url.replace('https', 'wss')}/app/{service.demo['streamKey']}?protocol=7"
        with trio.fail_after(HANG_TIMEOUT_S):
            async with open_websocket_url(stream, ssl_context=files.trust) as websocket:
                assert "pusher:connection_established" in await websocket.get_message()


async def test_ids_in_paths_pass_nginx_unchanged(tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with running(tmp_path / "data") as service, nginx(files, service) as url:
        key = {"Authorization": f"Bearer {service.demo['serverKey']}"}
        async with httpx.AsyncClient(
            verify=files.trust, base_url=f"{url}/v3/s2s/contacts", headers=key
        ) as client:
            for user in ("a%2Fconversations", "%2E%2E", "a%2F%2Fb", "%252F", "%3F", "%23"):
                put = await client.put(f"/{user}", json={"name": "Ada"})
                assert (put.status_code, put.json().get("userId")) == (200, unquote(user))
                assert (await client.get(f"/{user}/conversations")).json()["items"] == []
