"""`deskwire serve` as a process: its start, its end, and what a crash leaves."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from deskwire.storage.sqlite.database import DirectoryLock
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.certificates import Files
from tests.support.sockets.socket_activation import HasDescriptor, handing_over

ENVIRON = {name: value for name, value in os.environ.items() if not name.startswith("DESKWIRE_")}


class Server:
    """A serve process on a directory; `handed` are listening sockets that it is started with."""

    def __init__(
        self,
        directory: Path,
        *options: str,
        handed: Sequence[HasDescriptor] = (),
        **environ: str,
    ) -> None:
        self.directory = directory
        command = [sys.executable, "-m", "deskwire", "serve", "--data", str(directory), *options]
        given = handing_over(handed, command)
        self.process = subprocess.Popen(
            given.command,
            pass_fds=given.inherited,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**ENVIRON, "DESKWIRE_ARGON2_MEMORY_KIB": "8192", **environ},
        )
        for each in given.inherited:
            os.close(each)

    def wait_ready(self) -> str:
        """Return its output up to the line that reports that it is ready."""
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        return "".join(lines)

    @property
    def demo(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "demo.json").read_text())
        return found

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One call with the demo's server key."""
        request = urllib.request.Request(
            f"{self.demo['baseUrl']}/v3{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.demo['serverKey']}", "Content-Type": "application/json"},
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            request, timeout=HANG_TIMEOUT_S
        ) as answer:
            return json.loads(answer.read())

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Send a signal; exit status, rest of the output, log."""
        self.process.send_signal(number)
        out, log = self.process.communicate(timeout=HANG_TIMEOUT_S)
        return self.process.returncode, out, log


def fetch(address: str) -> str:
    """Return what is at an address, without a credential."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        address, timeout=HANG_TIMEOUT_S
    ) as answer:
        body: bytes = answer.read()
    return body.decode()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    """Processes that are killed at the end, whatever became of them."""
    started: list[Server] = []
    yield started
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()
        for pipe in (server.process.stdout, server.process.stderr):
            assert pipe is not None
            pipe.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order_with_status_0(tmp_path: Path, servers: list[Server], number: int) -> None:
    servers.append(server := Server(tmp_path / "new" / "data", "--port", "0"))
    greeting = server.wait_ready()
    assert server.demo["baseUrl"] in greeting
    assert "curl" in greeting
    status, _, log = server.end(number)
    assert (status, "program.stopping" in log) == (0, True)
    assert "Traceback" not in log
    assert not (server.directory / "deskwire.sqlite3-wal").exists()


@pytest.mark.parametrize("desk", ["true", "false"])
def test_every_start_prints_the_page_with_the_demos_chat(
    tmp_path: Path, servers: list[Server], desk: str
) -> None:
    for _ in range(2):
        servers.append(server := Server(tmp_path, "--port", "0", DESKWIRE_UI=desk))
        printed = server.wait_ready()
        (address,) = re.findall(r"http://\S+/widget/\S+", printed)
        assert address == f"{server.demo['baseUrl']}/widget/{server.demo['channelId']}/demo"
        page, loader = fetch(address), fetch(f"{address.removesuffix('/demo')}.js")
        assert f'src="{address.removesuffix("/demo")}.js"' in html.unescape(page)
        assert server.demo["channelId"] in loader
        assert ("/desk" in printed) == (desk == "true")
        server.end()


def test_a_client_that_never_reads_does_not_hold_the_stop(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(server := Server(tmp_path, "--port", "0", DESKWIRE_SHUTDOWN_S="2"))
    server.wait_ready()
    for number in range(120):
        text = {"contact": {"userId": "u"}, "message": {"text": f"{number}" * 5_000}}
        server.call("POST", "/s2s/conversations", text)
    host, _, port = server.demo["baseUrl"].removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port))) as mute:
        mute.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        key = server.demo["serverKey"]
        request = f"GET /v3/s2s/events?limit=200 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n"
        mute.sendall(request.encode() * 20)
        assert mute.recv(1)  # it is being answered
        assert server.end()[0] == 0  # without its bound the stop would never end


def presented(server: Server, files: Files) -> bytes:
    """The certificate that the next connection gets."""
    host, _, port = server.demo["baseUrl"].removeprefix("https://").rpartition(":")
    with (
        socket.create_connection((host, int(port)), timeout=HANG_TIMEOUT_S) as raw,
        files.trust.wrap_socket(raw, server_hostname=host) as secured,
    ):
        return secured.getpeercert(binary_form=True) or b""


def test_sighup_renews_the_certificate_and_a_bad_one_changes_nothing(
    tmp_path: Path, servers: list[Server]
) -> None:
    files = Files(tmp_path)
    options = ("--port", "0", "--tls-cert", str(files.chain), "--tls-key", str(files.key))
    servers.append(server := Server(tmp_path / "data", *options))
    server.wait_ready()
    log = server.process.stderr
    assert log is not None
    first = presented(server, files)
    files.write()
    server.process.send_signal(signal.SIGHUP)
    while "tls.certificate" not in log.readline() or presented(server, files) == first:
        pass  # the line of the start comes before that of the renewal
    second = presented(server, files)
    files.key.write_text("nonsense")
    server.process.send_signal(signal.SIGHUP)
    while "tls.certificate_not_renewed" not in log.readline():
        pass
    assert presented(server, files) == second
    assert server.end()[0] == 0


def test_a_second_process_on_the_directory_is_refused(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(first := Server(tmp_path, "--port", "0"))
    first.wait_ready()
    servers.append(second := Server(tmp_path, "--port", "0"))
    _, log = second.process.communicate(timeout=HANG_TIMEOUT_S)
    assert second.process.returncode == 1
    assert f"in use by a Deskwire server (pid {first.process.pid})" in log
    assert "Traceback" not in log
    assert first.end()[0] == 0


def test_a_start_waits_for_a_command_that_has_the_directory(tmp_path: Path, servers: list[Server]) -> None:
    lock = DirectoryLock(tmp_path)
    servers.append(server := Server(tmp_path, "--port", "0"))
    assert server.process.stderr is not None
    while "storage.waits_for_command" not in (line := server.process.stderr.readline()):
        assert line, "it has ended"
    lock.release()
    server.wait_ready()
    assert server.end()[0] == 0


def test_occupied_port_is_named(tmp_path: Path, servers: list[Server]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        servers.append(server := Server(tmp_path, "--port", str(port)))
        _, log = server.process.communicate(timeout=HANG_TIMEOUT_S)
    assert server.process.returncode == 1
    assert f"can't listen on 127.0.0.1:{port}" in log
    assert "Traceback" not in log


def test_impossible_directory_is_named(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(server := Server(tmp_path / ("x" * 300), "--port", "0"))
    _, log = server.process.communicate(timeout=HANG_TIMEOUT_S)
    assert server.process.returncode == 1
    assert "Deskwire can't start: The data directory" in log
    assert "File name too long" in log
    assert "Traceback" not in log


def test_failed_start_leaves_a_directory_that_the_next_one_can_use(
    tmp_path: Path, servers: list[Server]
) -> None:
    test_occupied_port_is_named(tmp_path, servers)
    servers.append(server := Server(tmp_path, "--port", "0"))
    greeting = server.wait_ready()
    assert server.demo["serverKey"] in greeting


def test_acknowledged_data_survive_kill_9_and_the_sequence_continues(
    tmp_path: Path, servers: list[Server]
) -> None:
    servers.append(server := Server(tmp_path, "--port", "0"))
    server.wait_ready()
    conversation = server.call("POST", "/s2s/conversations", {"contact": {"userId": "u1"}})
    path = f"/s2s/conversations/{conversation['id']}"
    sent = [server.call("POST", f"{path}/messages", {"text": str(number)})["id"] for number in range(30)]
    key = server.demo["serverKey"]
    assert server.end(signal.SIGKILL)[0] == -signal.SIGKILL

    servers.append(again := Server(tmp_path, "--port", "0"))
    assert "sk_" not in again.wait_ready()  # the credentials are shown once
    assert again.demo["serverKey"] == key
    messages = again.call("GET", f"{path}/messages")["items"]
    assert [message["id"] for message in messages] == sent
    assert again.call("POST", f"{path}/close")["sequence"] == 32
    events = again.call("GET", "/s2s/events?limit=200")["items"]
    assert [event["sequence"] for event in events] == list(range(1, 33))
    assert again.end()[0] == 0


def test_no_demo_makes_no_demo(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(server := Server(tmp_path, "--port", "0", "--no-demo"))
    server.wait_ready()
    assert server.end()[0] == 0
    assert not (tmp_path / "demo.json").exists()


def test_no_secret_is_in_the_log(tmp_path: Path, servers: list[Server]) -> None:
    servers.append(
        server := Server(tmp_path, "--port", "0", "--log-level", "debug", "--allow-private-webhooks")
    )
    server.wait_ready()
    hook = server.call("POST", "/s2s/webhooks", {"url": "http://127.0.0.1:19999/"})
    server.call("POST", "/auth/token", server.demo["user"])
    server.call(
        "POST", "/s2s/conversations", {"contact": {"userId": "u1"}, "message": {"text": "planted-text"}}
    )
    demo = server.demo
    _, _, log = server.end()
    assert "http.request" in log
    secret = (tmp_path / "secret").read_text().strip()
    for planted in (
        *(demo["serverKey"], demo["token"], demo["user"]["password"], hook["secret"], secret),
        "planted-text",
    ):
        assert planted not in log


def test_the_embedded_database_is_refused_by_an_older_program(tmp_path: Path, servers: list[Server]) -> None:
    import sqlite3

    servers.append(server := Server(tmp_path, "--port", "0"))
    server.wait_ready()
    server.end()
    with sqlite3.connect(tmp_path / "deskwire.sqlite3") as connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('deskwire', 'm9999_new', 'x')"
        )
    connection.close()
    servers.append(older := Server(tmp_path, "--port", "0"))
    _, log = older.process.communicate(timeout=HANG_TIMEOUT_S)
    assert older.process.returncode == 1
    assert "newer Deskwire" in log
