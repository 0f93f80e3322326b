"""The service with Caddy and Prometheus, configured by the files in docs/deploy."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import httpx
import pytest
import trio
from structlog.testing import capture_logs
from trio_websocket import open_websocket_url

from deskwire.config.parsers import networks
from tests.deploy.tools import needs, program
from tests.support.api.service import running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT
from tests.support.sockets.server_process import LOOK_S, free_port

DEPLOY: Final = ROOT / "docs/deploy"
TOKEN: Final = "a token of more than thirty-two characters"


@asynccontextmanager
async def started(command: Sequence[str], url: str, environ: Mapping[str, str]) -> AsyncIterator[None]:
    """Run a program within the block, from its first answer on."""
    process = await trio.lowlevel.open_process(
        list(command), env={**os.environ, **environ}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        async with httpx.AsyncClient(trust_env=False) as http:
            with trio.fail_after(HANG_TIMEOUT_S):
                while True:
                    with suppress(httpx.TransportError):
                        if (await http.get(url)).is_success:
                            break
                    await trio.sleep(LOOK_S)  # poll: there is no notification
        yield
    finally:
        process.terminate()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10):
            await process.wait()


@needs("caddy")
@pytest.mark.parametrize(("file", "variable"), [("Caddyfile", "NODE"), ("Caddyfile.nodes", "NODES")])
async def test_uploads_and_the_stream_go_through_caddy_and_the_client_is_known(
    tmp_path: Path, file: str, variable: str
) -> None:
    caddy = program("caddy")
    assert caddy is not None
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with running(tmp_path / "data", trusted_proxies=networks("127.0.0.1/32")) as service:
        environ = {"SITE": url, variable: service.url.removeprefix("http://")}
        environ |= {"HOME": str(tmp_path), "CADDY_ADMIN": f"unix/{tmp_path}/admin"}
        command = [caddy, "run", "--config", str(DEPLOY / file), "--adapter", "caddyfile"]
        async with started(command, f"{url}/readyz", environ):
            transport = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
            key = {"Authorization": f"Bearer {service.demo['serverKey']}"}
            async with httpx.AsyncClient(
                transport=transport, base_url=url, headers=key, timeout=HANG_TIMEOUT_S
            ) as client:
                big = {"file": ("big.bin", bytes(25 * 2**20))}
                assert (await client.post("/v3/uploads", files=big)).status_code == 200
                with capture_logs() as said:
                    refused = await client.post(
                        "/v3/auth/token",
                        json={"email": "nobody@demo.example", "password": "wrong password"},
                        headers={"X-Forwarded-For": "203.0.113.1, 127.0.0.1"},
                    )
                assert refused.status_code == 401
                (failed,) = [each for each in said if each["event"] == "sign_in.failed"]
                assert failed["address"] == "127.0.0.2"
                assert (await client.get("/metrics")).status_code == 403
            stream = f"{url.replace('http', 'ws')}/app/{service.demo['streamKey']}?protocol=7"
            with trio.fail_after(HANG_TIMEOUT_S):
                async with open_websocket_url(stream) as websocket:
                    assert "pusher:connection_established" in await websocket.get_message()


@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="needs prometheus, of Debian's package of that name"
)
async def test_prometheus_reads_the_metrics_by_its_file_and_knows_all_alerts(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    text = (DEPLOY / "prometheus.yml").read_text()
    async with running(tmp_path / "data", metrics_token=TOKEN) as service:
        text = text.replace("/run/secrets/metrics-token", str(tmp_path / "token"))
        text = text.replace("deskwire:8080", service.url.removeprefix("http://")).replace("15s", "1s")
        text = text.replace("/etc/prometheus/alerts.yml", str(ROOT / "docs/monitoring/alerts.yml"))
        (tmp_path / "prometheus.yml").write_text(text)
        port = free_port()
        command = [
            "prometheus",
            f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/tsdb",
        ]
        url = f"http://127.0.0.1:{port}"
        async with (
            started([*command, f"--web.listen-address=127.0.0.1:{port}"], f"{url}/-/ready", {}),
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
        ):
            with trio.fail_after(HANG_TIMEOUT_S):
                while True:
                    answer = await http.get("/api/v1/query", params={"query": "deskwire_ready"})
                    if found := answer.json()["data"]["result"]:
                        break
                    await trio.sleep(LOOK_S)  # poll: there is no notification of a scrape
            assert found[0]["value"][1] == "1"
            rules = (await http.get("/api/v1/rules")).json()["data"]["groups"]
            assert {each["name"] for group in rules for each in group["rules"]} >= {"DeskwireGone"}
            assert all(each["health"] != "err" for group in rules for each in group["rules"])
