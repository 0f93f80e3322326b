"""The service with a certificate: https and wss on its port, and all URLs that it returns (ADR 25)."""

from __future__ import annotations

import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio
from click.testing import CliRunner
from trio_websocket import open_websocket_url

from deskwire.cli import cli
from deskwire.config.config import Config, ConfigError
from deskwire.program import serve as program
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.certificates import DAY, Files
from tests.support.sockets.server_process import environment


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
async def service(tmp_path: Path, files: Files) -> AsyncIterator[Service]:
    """A service that speaks TLS."""
    async with running(tmp_path / "data", files.trust, **files.settings) as started:
        yield started


async def deskwire(*arguments: str, **variables: str) -> tuple[int, str]:
    """Run a command in a thread; return its exit status and output."""
    with trio.fail_after(HANG_TIMEOUT_S):
        done = await trio.to_thread.run_sync(lambda: CliRunner().invoke(cli, arguments, env=variables))
    return done.exit_code, done.output


async def test_calls_are_served_and_all_urls_are_https(service: Service) -> None:
    conversation = await service.create(message={"text": "Hello"})
    assert await service.types() == ["conversation.created", "message.created"]
    assert (await service.fetch(conversation))["status"] == "OPEN"
    assert service.url == service.demo["baseUrl"]
    assert service.url.startswith("https://127.0.0.1:")
    sent = (await service.http.post("/uploads", files={"file": ("a.txt", b"a file")})).json()
    assert sent["url"].startswith(f"{service.url}/v3/uploads/")
    assert (await service.http.get(sent["url"])).content == b"a file"


async def test_http_2_clients_get_http_1_1_for_websockets(service: Service, files: Files) -> None:
    context = files.trust
    context.set_alpn_protocols(["h2", "http/1.1"])
    port = int(service.url.rpartition(":")[2])
    stream = await trio.open_ssl_over_tcp_stream("127.0.0.1", port, ssl_context=context)
    async with stream:
        await stream.do_handshake()
        assert stream.selected_alpn_protocol() == "http/1.1"


async def test_the_stream_is_wss(service: Service, files: Files) -> None:
    url = f"{service.url.replace('https', 'wss')}/app/{service.demo['streamKey']}?protocol=7"
    with trio.fail_after(HANG_TIMEOUT_S):
        async with open_websocket_url(url, ssl_context=files.trust) as socket:
            assert "pusher:connection_established" in await socket.get_message()


async def test_metrics_have_the_expiry_of_the_certificate(service: Service, files: Files) -> None:
    said = (await service.http.get(f"{service.url}/metrics")).text
    (line,) = [each for each in said.splitlines() if each.startswith("deskwire_tls_certificate_end_")]
    assert float(line.split()[1]) == int((files.now + 90 * DAY).timestamp())


@pytest.mark.parametrize(
    ("ciphers", "served"),
    [
        ("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256", True),
        ("ECDHE+AES+SHA256:ECDHE+AES+SHA1", False),
    ],
)
async def test_tls_1_2_is_spoken_without_cbc(
    service: Service, files: Files, ciphers: str, served: bool
) -> None:
    old = files.trust
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    old.set_ciphers(ciphers)
    assert all(("GCM" in each["name"]) == served for each in old.get_ciphers() if "TLS_" not in each["name"])
    async with httpx.AsyncClient(base_url=service.url, verify=old) as http:
        if served:
            assert (await http.get("/healthz")).status_code == 200
        else:
            with pytest.raises(httpx.ConnectError):
                await http.get("/healthz")


async def test_plain_http_is_refused_with_an_explanation(service: Service) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{service.url.replace('https', 'http')}/healthz")
    assert (answer.status_code, answer.json()["code"]) == (400, "tls_required")


async def test_commands_verify_tls_with_the_given_authority(service: Service, files: Files) -> None:
    access = {"DESKWIRE_URL": service.url, "DESKWIRE_KEY": service.demo["serverKey"]}
    status, said = await deskwire("deliveries", **access)
    assert (status, "self-signed certificate" in said or "issuer certificate" in said) == (1, True), said
    assert "--cacert names your own authority" in said
    status, said = await deskwire("deliveries", "--cacert", str(files.ca), **access)
    assert (status, "No deliveries." in said) == (0, True)
    assert (await deskwire("deliveries", DESKWIRE_CACERT=str(files.ca), **access))[0] == 0
    status, said = await deskwire("deliveries", "--cacert", str(files.key), **access)
    assert (status, f"{files.key} has no certificates in PEM form" in said) == (2, True)


async def test_the_demo_runs_against_it(service: Service, files: Files) -> None:
    key = service.demo["serverKey"]
    options = ("--url", service.url, "--key", key, "--cacert", str(files.ca), "--limit", "2")
    with trio.fail_after(HANG_TIMEOUT_S):
        command = [sys.executable, "-m", "deskwire", "demo", *options]
        done = await trio.run_process(command, env=environment(), capture_stderr=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"DESKWIRE_TLS_CERT": "a"}, "DESKWIRE_TLS_CERT and DESKWIRE_TLS_KEY belong together"),
        ({"DESKWIRE_TLS_KEY": "a"}, "DESKWIRE_TLS_CERT and DESKWIRE_TLS_KEY belong together"),
        (
            {"DESKWIRE_TLS_CERT": "a", "DESKWIRE_TLS_KEY": "b", "DESKWIRE_PUBLIC_URL": "http://a.test"},
            "DESKWIRE_PUBLIC_URL must begin with https:// while DESKWIRE_TLS_CERT is set",
        ),
        ({"DESKWIRE_TRUSTED_PROXIES": "10.0.0.1/8"}, "DESKWIRE_TRUSTED_PROXIES must be CIDR blocks"),
    ],
)
def test_conflicting_settings_are_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config.load(settings, {})
    (problem,) = caught.value.problems
    assert problem.startswith(complaint)


async def test_unusable_files_stop_the_start_with_the_reason(
    tmp_path: Path, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.key.write_text("nonsense")
    assert await program.run(Config(data_dir=tmp_path / "data", port=0, **files.settings)) == 1
    said = capsys.readouterr().err
    assert said == f"Deskwire can't start: There is no private key in PEM form in {files.key}.\n"
    assert not (tmp_path / "data").exists()
